"""The writer: every instant is a run that opens and goes on, and nothing of anybody else's is ever deleted."""

import errno
import json
import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import xarray
import zarr
from hypothesis import given
from hypothesis import strategies as st

from stagescope.core.errors import InputError, StoreError
from stagescope.runs import files, store, writer
from stagescope.runs.arrays import Column
from stagescope.runs.manifest import read as read_manifest
from stagescope.runs.writer import Writer, check_place, chunk_frames
from tests.runs import samples


class Crash(BaseException):
    """The end of the process, simulated: nobody may catch it and go on."""


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def events(folder):
    return [json.loads(line)["event"] for line in (folder / "events.jsonl").read_text().splitlines()]


def go_on(folder, last=10):
    """Resume a run of samples from its last commit and finish it."""
    again, state = Writer.reopen(folder)
    frames = again.manifest.committed + len(again._buffer)
    assert int(state["position"]) == frames - 1
    np.testing.assert_array_equal(state["theta"], samples.state(frames - 1)["theta"])
    again.commit(state, "resumed")
    samples.extend(again, frames, last, commits=(6,))
    again.finish("finished" if last == 10 else "stopped", "", samples.state(last))


# chunks


@given(st.integers(0, 10**6), st.lists(st.integers(0, 10**5), min_size=1, max_size=4))
def test_chunks_are_at_least_one_frame_and_at_most_the_run(planned, sizes):
    columns = {str(size): Column((size,), ("t", "x")) for size in sizes} | {"t": Column((), ("t",))}
    chunk = chunk_frames(planned, columns)
    frame = sum(column.frame_bytes for column in columns.values())
    assert 1 <= chunk <= max(planned, 1)
    assert chunk == 1 or chunk * frame <= writer.LARGE


def test_a_small_run_is_one_chunk_and_a_large_one_sixteen():
    assert chunk_frames(400, {"t": Column((), ("t",))}) == 400
    assert chunk_frames(1600, {"W": Column((1000,), ("t", "x"))}) == 131  # a chunk is about SMALL bytes at least
    assert chunk_frames(16000, {"W": Column((200,), ("t", "x"))}) == 1000


# one run from start to end


def test_frames_travel_in_the_checkpoint_until_they_fill_a_chunk(tmp_path):
    made = samples.started(tmp_path / "run")
    for frames in range(1, 8):
        found = read_manifest(tmp_path / "run")
        stored = safetensors.numpy.load_file(tmp_path / "run" / str(found.checkpoint))
        assert found.committed == 3 * (frames // 3)
        assert found.committed + len(stored.get("pending/t", ())) == frames
        assert samples.equal(store.load(tmp_path / "run"), frames)
        samples.extend(made, frames, frames + 1, commits=(frames,))
    made.close()


def test_chunks_are_never_rewritten(tmp_path):
    made = samples.started(tmp_path / "run")
    samples.extend(made, 1, 5, commits=(4,))
    early = {name: data for name, data in contents(tmp_path / "run").items() if "/c/" in name}
    times = {name: (tmp_path / "run" / name).stat().st_mtime_ns for name in early}
    assert early
    samples.extend(made, 5, 10, commits=(6, 7))
    made.finish("finished", "", samples.state(10))
    late = contents(tmp_path / "run")
    assert all(late[name] == data for name, data in early.items())
    assert times == {name: (tmp_path / "run" / name).stat().st_mtime_ns for name in early}


def test_the_state_comes_back_as_it_was(tmp_path):
    """Also numbers: an array of one entry in place of a number broke every resume."""
    samples.unfinished(tmp_path / "run", frames=8)
    again, state = Writer.reopen(tmp_path / "run")
    again.close()
    for name, expected in samples.state(7).items():
        assert state[name].shape == expected.shape
        assert state[name].dtype == expected.dtype
        assert state[name].tobytes() == expected.tobytes()
    assert set(state) == set(samples.state(7))


def test_events_tell_the_story(tmp_path):
    samples.unfinished(tmp_path / "run", frames=6)
    assert events(tmp_path / "run") == ["started", "checkpoint", "checkpoint", "checkpoint"]
    go_on(tmp_path / "run")
    assert events(tmp_path / "run") == ["started", "checkpoint", "checkpoint", "resumed", "checkpoint", "finished"]


def test_only_one_checkpoint_is_kept_and_strays_are_dropped(tmp_path):
    folder = samples.unfinished(tmp_path / "run")
    (folder / "checkpoint/000099.safetensors.new").write_bytes(b"cut short")
    assert store.verify(folder) == []
    go_on(folder)
    assert [path.name for path in (folder / "checkpoint").iterdir()] == [Path(str(read_manifest(folder).checkpoint)).name]


@pytest.mark.parametrize("frames", [1, 3, 4, 9, 10])
def test_zarr_and_xarray_read_finished_and_stopped_runs(tmp_path, frames):
    """A run that ends before its planned frames is cut to those that exist."""
    folder = samples.finished(tmp_path / "run", frames=frames)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group = zarr.open(folder / "data.zarr", mode="r")
        dataset = xarray.open_zarr(folder / "data.zarr").load()
    assert isinstance(group, zarr.Group)
    run = store.load(folder)
    assert samples.equal(run, frames)
    for name, values in {**run.series, **run.params}.items():
        np.testing.assert_array_equal(np.asarray(group[name]), values)
        np.testing.assert_array_equal(dataset[name].values, values)
        assert dataset[name].dims == tuple(run.axes[name])
    assert dataset.sizes["t"] == frames


def test_a_finished_run_is_refused_and_left_unlocked(tmp_path):
    folder = samples.finished(tmp_path / "run")
    before = contents(folder)
    with pytest.raises(StoreError, match="finished by now"):
        Writer.reopen(folder)
    assert not files.locked(folder)
    assert contents(folder) == before


def test_a_second_writer_is_refused(tmp_path):
    made = samples.started(tmp_path / "run")
    with pytest.raises(StoreError, match="another process is writing"):
        Writer.reopen(tmp_path / "run")
    with pytest.raises(StoreError, match="another process is writing"):
        samples.started(tmp_path / "run", overwrite=True)
    made.close()
    go_on(tmp_path / "run")


# crashes


def crash_at(patch, count, after):
    """Let the process end at the count-th durable write, before or after it took effect."""
    left = [count]

    def guarded(write):
        def call(*arguments, **named):
            left[0] -= 1
            if left[0] == 0 and not after:
                raise Crash
            result = write(*arguments, **named)
            if left[0] == 0:
                raise Crash
            return result

        return call

    patch.setattr(files, "replace", guarded(files.replace))
    patch.setattr(Writer, "_log", guarded(Writer._log))
    patch.setattr(Path, "unlink", guarded(Path.unlink))
    return left


@pytest.mark.parametrize(
    ("last", "planned", "after"),
    [
        pytest.param(10, 10, False, id="to the end, before"),
        pytest.param(8, 10, True, id="stopped early, after"),
        pytest.param(8, None, False, id="unknown length, before"),
        pytest.param(10, 10, True, id="to the end, after", marks=pytest.mark.long),
        pytest.param(8, 10, False, id="stopped early, before", marks=pytest.mark.long),
        pytest.param(8, None, True, id="unknown length, after", marks=pytest.mark.long),
    ],
)
def test_a_crash_at_any_write_loses_nothing_committed(tmp_path, monkeypatch, last, planned, after):
    """Crash at the first, second, ... write of a run until one has no crash; each opens, verifies, and ends up the same.

    The process ends, not the machine: thousands of waits for the disk would show nothing.
    """
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    crashes = 0
    for count in range(1, 200):
        folder = tmp_path / str(count)
        made = samples.started(folder, planned)
        with monkeypatch.context() as patch:
            left = crash_at(patch, count, after)
            try:
                samples.extend(made, 1, last, commits=(1, 3, 4, 7))
                made.finish("finished" if last == 10 else "stopped", "", samples.state(last))
            except Crash:
                crashes += 1
        made.close()
        assert store.verify(folder) == []
        run = store.load(folder)
        assert samples.equal(run, run.frames)
        if not run.done:
            go_on(folder, last)
        final = store.load(folder)
        assert store.verify(folder) == []
        assert final.status == ("finished" if last == 10 else "stopped")
        assert samples.equal(final, last)
        assert xarray.open_zarr(folder / "data.zarr").sizes["t"] == last
        shutil.rmtree(folder)
        if left[0] > 0:
            break
    else:
        pytest.fail("the run never got through")
    assert crashes > 30


def test_a_crash_between_cutting_the_arrays_and_the_last_manifest(tmp_path, monkeypatch):
    """Some metadata is cut, some is not, no final manifest: no damage, and no frame counted twice."""
    made = samples.started(tmp_path / "run")
    samples.extend(made, 1, 5, commits=(3,))

    def crash(*_, **__):
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "_commit_state", crash)
        with pytest.raises(Crash):
            made.finish("stopped", "", samples.state(5))
    made.close()
    assert '"shape": [\n    5' in (tmp_path / "run/data.zarr/t/zarr.json").read_text()
    assert store.verify(tmp_path / "run") == []
    run = store.load(tmp_path / "run")
    assert run.status == "interrupted"
    assert samples.equal(run, 4)
    go_on(tmp_path / "run")  # on to the planned end this time: the arrays grow again
    assert store.verify(tmp_path / "run") == []
    assert samples.equal(store.load(tmp_path / "run"), 10)
    assert xarray.open_zarr(tmp_path / "run/data.zarr").sizes["t"] == 10


def test_a_crash_while_arrays_of_unknown_length_grow(tmp_path, monkeypatch):
    """Some metadata has grown, no manifest says so: no damage, also if the run goes on another way."""
    made = samples.started(tmp_path / "run", planned=None)
    samples.extend(made, 1, 4, commits=(3,))

    def crash(*_, **__):
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "_commit_state", crash)
        samples.extend(made, 4, 10)
        with pytest.raises(Crash):
            made.commit(samples.state(9))
    made.close()
    assert '"shape": [\n    9' in (tmp_path / "run/data.zarr/t/zarr.json").read_text()
    assert store.verify(tmp_path / "run") == []
    again, state = Writer.reopen(tmp_path / "run")
    again.commit(state, "resumed")
    assert store.verify(tmp_path / "run") == []
    samples.extend(again, 4, 5)
    again.finish("stopped", "", samples.state(5))
    assert store.verify(tmp_path / "run") == []
    assert samples.equal(store.load(tmp_path / "run"), 5)
    assert xarray.open_zarr(tmp_path / "run/data.zarr").sizes["t"] == 5


@pytest.mark.parametrize("planned", [10, None])
def test_other_tools_see_the_committed_frames_of_a_run_of_unknown_length(tmp_path, planned):
    """Of a run whose length is known, they see the planned frames, of which those not there yet are NaN."""
    made = samples.started(tmp_path / "run", planned=planned)
    for last in (2, 5, 8):
        samples.extend(made, made.manifest.committed + len(made._buffer), last, commits=(last - 1,))
        seen = xarray.open_zarr(tmp_path / "run/data.zarr", consolidated=True)
        assert seen.sizes["t"] == (10 if planned else last // 3 * 3)
        assert samples.equal(store.load(tmp_path / "run"), last)
    made.finish("finished", "", samples.state(8))
    assert read_manifest(tmp_path / "run").planned == planned
    assert xarray.open_zarr(tmp_path / "run/data.zarr").sizes["t"] == 8


def test_chunks_of_a_run_of_unknown_length():
    small, large = {"t": Column((), ("t",))}, {"W": Column((2**20,), ("t", "W_0"))}
    assert chunk_frames(None, small) == writer.SMALL // 8
    assert chunk_frames(None, large) == 1


def test_frames_are_kept_as_float32_from_the_first_commit_on(tmp_path):
    """Before they fill a chunk and after: the same bytes."""
    columns = {"t": Column((), ("t",)), "W": Column((2,), ("t", "W_0"), "float32")}
    facts = {"spec": {**samples.SPEC, "blocks": {"W": [2]}}, "clock": "t", "config_digest": ""}
    header = writer.header(facts, columns, None).model_copy(update={"chunk": 2})

    def begin(writer):
        writer.frame({"t": 0.0, "W": np.array([1 / 3, 2 / 3])})
        writer.commit({"position": np.array(0)}, "started")

    made = Writer.create(tmp_path / "run", header, columns, begin)
    pending = store.load(tmp_path / "run").params["W"]
    made.frame({"t": 1.0, "W": np.array([1.0, 2.0])})
    made.finish("finished", "", {"position": np.array(1)})
    found = store.load(tmp_path / "run").params["W"]
    assert found.dtype == pending.dtype == np.float32
    np.testing.assert_array_equal(found, np.array([[1 / 3, 2 / 3], [1, 2]], np.float32))
    np.testing.assert_array_equal(pending, found[:1])


def test_a_full_disk_is_told_and_the_run_goes_on_later(tmp_path, monkeypatch):
    made = samples.started(tmp_path / "run")
    samples.extend(made, 1, 4, commits=(3,))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="the disk is full; free some space and resume"):
            samples.extend(made, 4, 8, commits=(7,))
    made.close()
    assert store.verify(tmp_path / "run") == []
    assert samples.equal(store.load(tmp_path / "run"), 4)
    go_on(tmp_path / "run")
    assert samples.equal(store.load(tmp_path / "run"), 10)


# where a run may go


def test_a_run_appears_whole_or_not_at_all(tmp_path):
    def broken(made):
        samples.begin(made)
        raise Crash

    with pytest.raises(Crash):
        Writer.create(tmp_path / "run", samples.manifest(), samples.COLUMNS, broken)
    assert list(tmp_path.iterdir()) == []
    samples.finished(tmp_path / "run")
    before = contents(tmp_path / "run")
    with pytest.raises(Crash):
        Writer.create(tmp_path / "run", samples.manifest(), samples.COLUMNS, broken, overwrite=True)
    assert contents(tmp_path / "run") == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_overwrite_replaces_a_run_and_leaves_nothing_else(tmp_path):
    samples.finished(tmp_path / "run")
    with pytest.raises(InputError, match=r"not empty; choose another folder, or --overwrite"):
        samples.started(tmp_path / "run")
    samples.started(tmp_path / "run", overwrite=True).close()
    assert samples.equal(store.load(tmp_path / "run"), 1)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    go_on(tmp_path / "run")


def test_overwrite_takes_a_killed_run_too(tmp_path):
    samples.unfinished(tmp_path / "run")
    for name in (
        "manifest.json.new",
        "checkpoint/000042.safetensors.new",
        "data.zarr/W/c/5/0/0.new",
        "data.zarr/W/zarr.json.new",
    ):
        (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / name).write_bytes(b"cut short")
    samples.started(tmp_path / "run", overwrite=True).close()
    assert samples.equal(store.load(tmp_path / "run"), 1)


@pytest.mark.parametrize(
    "name", ["notes.txt", "data.zarr/notes.txt", "checkpoint/thesis.tex", "data.zarr/W/c/notes", "my/own/data.csv"]
)
def test_a_folder_with_other_files_is_never_deleted(tmp_path, name):
    folder = samples.finished(tmp_path / "run")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("mine")
    before = contents(folder)
    with pytest.raises(InputError, match=rf"not \(only\) a run \({name}\); it will not be deleted"):
        samples.started(folder, overwrite=True)
    assert contents(folder) == before


def test_a_link_inside_is_a_foreign_file(tmp_path):
    folder = samples.finished(tmp_path / "run")
    (tmp_path / "precious").mkdir()
    (folder / "data.zarr/link").symlink_to(tmp_path / "precious")
    with pytest.raises(InputError, match="will not be deleted"):
        samples.started(folder, overwrite=True)


@pytest.mark.parametrize("text", ["{}", '{"name": "a web application"}', '{"schema_version": 1}', "", "not JSON"])
def test_a_manifest_of_something_else_is_not_a_run(tmp_path, text):
    (tmp_path / "app").mkdir()
    (tmp_path / "app/manifest.json").write_text(text)
    with pytest.raises(InputError, match=r"no manifest.json of a run\); it will not be deleted"):
        samples.started(tmp_path / "app", overwrite=True)
    assert (tmp_path / "app/manifest.json").read_text() == text


def test_places_that_cannot_be_a_run(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file; choose a folder"):
        check_place(tmp_path / "file", overwrite=True)
    with pytest.raises(StoreError, match="a part of this path is a file"):
        samples.started(tmp_path / "file/run")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="is the current folder"):
        samples.started(Path())


def test_an_empty_folder_and_missing_parents_will_do(tmp_path):
    (tmp_path / "empty").mkdir()
    samples.started(tmp_path / "empty").close()
    samples.started(tmp_path / "some/where/new").close()
    assert store.verify(tmp_path / "empty") == store.verify(tmp_path / "some/where/new") == []


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    samples.started(tmp_path / "link").close()
    samples.started(tmp_path / "link", overwrite=True).close()
    assert (tmp_path / "link").is_symlink()
    assert samples.equal(store.load(tmp_path / "real"), 1)


def test_a_place_taken_meanwhile_is_not_replaced(tmp_path):
    """Two commands start at once: the second finds the folder free, but not any more when it moves in."""

    def slow(made):
        samples.begin(made)
        samples.finished(tmp_path / "run")

    with pytest.raises(InputError, match="not empty"):
        Writer.create(tmp_path / "run", samples.manifest(), samples.COLUMNS, slow)
    assert samples.equal(store.load(tmp_path / "run"), 10)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_the_mode_of_a_run_follows_the_umask(tmp_path):
    mask = os.umask(0o027)
    try:
        samples.started(tmp_path / "run").close()
    finally:
        os.umask(mask)
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o750
