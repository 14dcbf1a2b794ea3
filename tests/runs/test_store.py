"""Save and load are inverse; what is on disk is checked before it is believed, and again when it is read."""

import warnings

import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from stagescope.core.errors import DamagedRun, InputError, NotARun, StoreError
from stagescope.runs import store
from stagescope.runs.run import Arrays, Run
from tests.runs import samples


def made_of(blocks, clock="t", **facts):
    """A run in memory with the given parameter blocks, time first."""
    frames = len(next(iter(blocks.values())))
    times = np.arange(frames, dtype=np.int64 if clock == "step" else float)
    axes = {clock: (clock,)} | {name: (clock, *(f"{name}_{i}" for i in range(b.ndim - 1))) for name, b in blocks.items()}
    shapes = {name: list(block.shape[1:]) for name, block in blocks.items()}
    return Run(
        params=Arrays.of(blocks),
        series=Arrays.of({clock: times}),
        spec={**samples.SPEC, "blocks": shapes},
        clock=clock,
        axes=axes,
        **{"status": "finished", **facts},
    )


@st.composite
def runs(draw):
    frames = draw(st.integers(1, 6))
    names = draw(st.lists(st.sampled_from(["W0", "W1", "WQ", "A", "a", "zarr", "c", "file", "theta"]), min_size=1, unique=True))
    blocks = {}
    for name in names:
        shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, max_side=3))
        kind = draw(st.sampled_from([np.float64, np.float32]))
        numbers = st.floats(allow_nan=False, width=64 if kind is np.float64 else 32)
        blocks[name] = draw(hnp.arrays(kind, (frames, *shape), elements=numbers))
    facts = {
        "clock": draw(st.sampled_from(["t", "step"])),
        "status": draw(st.sampled_from(["finished", "stopped", "diverged", "failed"])),
        "reason": draw(st.text(max_size=20)),
        "seed": draw(st.none() | st.integers(0, 2**64)),
        "study": draw(st.none() | st.just("scan-snap")),
        "config": draw(st.none() | st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False))),
        "tags": draw(st.sampled_from([(), ("SnS:data", "SnS:model")])),
    }
    return made_of(blocks, **facts)


@given(runs())
def test_load_is_the_inverse_of_save(tmp_path_factory, run):
    folder = tmp_path_factory.mktemp("store") / "run"
    saved = run.save(folder)
    found = store.load(folder)
    assert store.verify(folder) == []
    assert saved.path == found.path == folder
    for name in ("spec", "clock", "status", "reason", "seed", "study", "config", "tags", "axes", "config_digest"):
        assert getattr(found, name) == getattr(run, name), name
    for mine, theirs in ((run.params, found.params), (run.series, found.series)):
        assert list(mine) == list(theirs)
        for name, values in mine.items():
            assert theirs[name].dtype == values.dtype
            assert theirs[name].shape == values.shape
            assert theirs[name].tobytes() == values.tobytes()


@pytest.mark.long
@given(runs())
def test_saving_a_loaded_run_again_changes_nothing(tmp_path_factory, run):
    folder = tmp_path_factory.mktemp("store")
    run.save(folder / "one")
    store.load(folder / "one").save(folder / "two")
    one, two = store.load(folder / "one"), store.load(folder / "two")
    assert one.spec == two.spec
    assert all(np.array_equal(one.params[name], two.params[name]) for name in one.params)


def test_a_run_can_be_saved_over_itself(tmp_path):
    """Its arrays are read when asked for, so they must all be read before their files go."""
    samples.finished(tmp_path / "run")
    store.load(tmp_path / "run").save(tmp_path / "run", overwrite=True)
    assert samples.equal(store.load(tmp_path / "run"), 10)
    with pytest.raises(InputError, match=r"not empty; .* --overwrite \(in Python overwrite=True\)"):
        store.load(tmp_path / "run").save(tmp_path / "run")


def test_a_run_without_frames_can_be_saved(tmp_path):
    samples.memory_run(frames=0).save(tmp_path / "run")
    assert store.load(tmp_path / "run").frames == 0
    assert store.verify(tmp_path / "run") == []


def test_infinities_and_nan_are_stored_as_they_are(tmp_path):
    odd = np.array([[np.nan, np.inf], [-np.inf, -0.0]])
    made_of({"W": odd}).save(tmp_path / "run")
    assert store.load(tmp_path / "run").params["W"].tobytes() == odd.tobytes()


def test_xarray_reads_a_saved_run(tmp_path):
    run = samples.memory_run(frames=6)
    run.save(tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = xarray.open_zarr(tmp_path / "run/data.zarr").load()
    xarray.testing.assert_equal(dataset, run.to_xarray())


def test_pending_frames_of_an_unfinished_run_are_loaded(tmp_path):
    run = store.load(samples.unfinished(tmp_path / "run", frames=8))
    assert samples.equal(run, 8)
    assert run.status == "interrupted"
    assert not run.done
    assert f"ss.resume({str(tmp_path / 'run')!r}, objective)" in run.reason


def test_a_run_that_is_being_written_says_so(tmp_path):
    writer = samples.started(tmp_path / "run")
    assert store.load(tmp_path / "run").status == "running"
    writer.close()
    assert store.load(tmp_path / "run").status == "interrupted"


def test_a_commit_between_two_looks_is_no_damage(tmp_path, monkeypatch):
    """The writer drops a checkpoint that the reader has just been told of: the reader looks again."""
    writer = samples.started(tmp_path / "run")
    check = store._check_files
    commits = iter([1, 2])

    def slow(folder, manifest):
        for i in commits:
            samples.extend(writer, i, i + 1, commits=(i,))
            break
        return check(folder, manifest)

    monkeypatch.setattr(store, "_check_files", slow)
    assert samples.equal(store.load(tmp_path / "run"), 2 + 1)
    writer.close()


def test_a_folder_that_is_not_a_run(tmp_path):
    for read in (store.load, store.verify):
        with pytest.raises(NotARun, match="holds no run"):
            read(tmp_path)
        with pytest.raises(NotARun, match="does not exist"):
            read(str(tmp_path / "nothing"))


def test_a_newer_schema_is_said_by_load_and_verify(tmp_path):
    folder = samples.finished(tmp_path / "run")
    path = folder / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"schema_version": 2', b'"schema_version": 3'))
    with pytest.raises(StoreError, match="newer"):
        store.load(folder)
    assert "newer" in store.verify(folder)[0]


def test_a_missing_chunk_is_named(tmp_path):
    folder = samples.finished(tmp_path / "run")
    chunk = folder / "data.zarr/W/c/1/0/0"
    chunk.unlink()
    with pytest.raises(DamagedRun, match=r"W/c/1/0/0: No such file or directory; restore the file from a copy"):
        store.load(folder)
    assert store.verify(folder) == [f"{chunk}: No such file or directory"]


def test_verify_names_every_damaged_file(tmp_path):
    folder = samples.finished(tmp_path / "run")
    names = ["data.zarr/W/c/0/0/0", "data.zarr/t/zarr.json", "events.jsonl"]
    for name in names:
        (folder / name).write_bytes(b"other")
    problems = store.verify(folder)
    assert [problem.split(": ")[0] for problem in problems] == [str(folder / name) for name in names]


def test_damage_after_opening_is_seen_when_reading(tmp_path):
    """Arrays are read when first asked for, perhaps long after the run was opened."""
    folder = samples.finished(tmp_path / "run")
    run = store.load(folder)
    before = run.params["A"]
    chunk = folder / "data.zarr/W/c/1/0/0"
    chunk.write_bytes(bytes(len(chunk.read_bytes())))
    with pytest.raises(DamagedRun, match="W/c/1/0/0: damaged or replaced since the run was opened"):
        _ = run.params["W"]
    chunk.unlink()
    with pytest.raises(StoreError, match="W/c/1/0/0: No such file"):
        _ = run.params["W"]
    assert run.params["A"] is before


def test_a_line_after_the_end_of_the_log_is_damage(tmp_path):
    """What a killed run logged but did not commit is no damage; a run that has ended, well or not, has no such tail."""
    assert store.verify(samples.unfinished(tmp_path / "killed")) == []
    samples.memory_run(status="diverged", reason="diverged at t=1").save(tmp_path / "diverged")
    for folder in (samples.finished(tmp_path / "finished"), tmp_path / "diverged"):
        with open(folder / "events.jsonl", "a") as log:
            log.write('{"event": "finished"}\n')
        assert "events.jsonl: damaged" in store.verify(folder)[0]
