"""Records of any program as a run: what was given is what is loaded, after a crash too."""

import errno
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import stagescope as ss
from stagescope.runs import files
from stagescope.runs import manifest as manifests
from tests.runs import samples

AXES = {"attention": ("head", "key")}


def arrays(step):
    rng = np.random.default_rng(step)
    return {"loss": float(rng.normal()), "attention": rng.random((2, 3)).astype(np.float32), "count": int(rng.integers(99))}


def fill(recorder, start, stop):
    for step in range(start, stop):
        recorder.record(step, **arrays(step))


def holds(run, stop):
    """Whether a run has exactly the records of the steps before `stop`."""
    made = [arrays(step) for step in range(stop)]
    wanted = {name: np.array([one[name] for one in made]) for name in made[0]}
    same = all(run.series[name].tobytes() == values.tobytes() for name, values in wanted.items())
    return same and run.step.tolist() == list(range(stop))


@pytest.fixture(params=["disk", "memory"])
def out(request, tmp_path):
    return tmp_path / "run" if request.param == "disk" else None


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def cut(folder):
    """A run whose program ended early, with 25 records committed."""
    recorder = ss.Recorder(folder, axes=AXES)
    fill(recorder, 0, 25)
    recorder.close()
    return folder


def test_what_was_recorded_is_in_the_run(out):
    with ss.Recorder(out, axes=AXES, source={"kind": "recorded", "model": "mine"}, blocks=["W"]) as recorder:
        assert recorder.last is None
        for step in (0, 3, 70):
            recorder.record(step, W=np.full((2, 2), step / 7), **arrays(step))
            assert recorder.last == step
    run = recorder.run
    assert (run.clock, run.status, run.type, run.seed, run.frames) == ("step", "finished", "recorded", None, 3)
    assert run.axes["attention"] == ("step", "head", "key")
    assert run.axes["W"] == ("step", "W_0", "W_1")
    assert {name: str(value.dtype) for name, value in run.series.items()} == {
        "step": "int64",
        "loss": "float64",
        "attention": "float32",
        "count": "int64",
    }
    assert list(run.params) == ["W"]
    assert run.spec["blocks"] == {"W": [2, 2]}
    assert run.spec["source"] == {"kind": "recorded", "model": "mine"}
    np.testing.assert_array_equal(run.params["W"][:, 0, 1], np.array([0, 3, 70]) / 7)
    assert recorder.steps == [0, 3, 70] == run.step.tolist()
    assert run.to_xarray()["attention"].dims == ("step", "head", "key")
    assert len(ss.stages(run).stages) == 1


@settings(max_examples=25, deadline=None)
@given(data=st.data(), every=st.integers(1, 4), disk=st.booleans(), planned=st.none() | st.integers(1, 9))
def test_any_records_come_back_bit_for_bit(data, every, disk, planned):
    kinds = st.sampled_from([np.float32, np.float64, np.int64])
    shapes = data.draw(
        st.dictionaries(st.sampled_from("abc"), st.tuples(hnp.array_shapes(min_dims=0, max_dims=2), kinds), min_size=1)
    )
    steps = sorted(data.draw(st.sets(st.integers(0, 2**63 - 1), min_size=1, max_size=9)))
    drawn = [{name: data.draw(hnp.arrays(kind, shape)) for name, (shape, kind) in shapes.items()} for _ in steps]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        with ss.Recorder(folder if disk else None, every=every, planned=planned) as recorder:
            for step, record in zip(steps, drawn, strict=True):
                recorder.record(step, **record)
        run = recorder.run
        assert run.step.tolist() == steps
        for name, (_, kind) in shapes.items():
            wanted = np.array([record[name] for record in drawn])
            assert run.series[name].dtype == kind
            assert run.series[name].tobytes() == wanted.tobytes()
        assert not disk or ss.verify(folder) == []


def test_given_arrays_are_copied(out):
    recorder, values = ss.Recorder(out), np.zeros(3)
    for step in range(3):
        values[:] = step
        recorder.record(step, values=values)
    np.testing.assert_array_equal(recorder.run.series["values"][:, 0], [0, 1, 2])


def test_many_chunks_without_a_planned_number(folder):
    """Frames of 200 KiB make chunks of five: arrays have the committed frames at every commit, and are whole at the end."""
    wide = [np.random.default_rng(step).random(25_600) for step in range(23)]
    recorder = ss.Recorder(folder, every=2)
    for step, values in enumerate(wide):
        recorder.record(step, wide=values)
        run = ss.load(folder)
        assert run.frames >= max(1, step)
        assert ss.verify(folder) == []
    assert manifests.read(folder).committed == 20
    recorder.finish()
    assert recorder.run.series["wide"].tobytes() == np.array(wide).tobytes()
    assert recorder.run.to_xarray().sizes["step"] == 23


def test_a_commit_of_pending_frames_writes_three_files(folder, monkeypatch):
    recorder = ss.Recorder(folder, every=100)
    fill(recorder, 0, 9)
    written, real = [], files.replace
    monkeypatch.setattr(files, "replace", lambda path, data: (written.append(path.name), real(path, data)))
    before = (folder / "events.jsonl").stat().st_size
    recorder.commit()
    assert written == ["000002.safetensors", "manifest.json"]
    assert (folder / "events.jsonl").stat().st_size > before
    assert holds(ss.load(folder), 9)
    recorder.close()


def test_it_is_committed_at_first_and_then_every_so_often(folder):
    recorder = ss.Recorder(folder, every=10)
    seen = []
    for step in range(25):
        recorder.record(step, **arrays(step))
        seen.append(ss.load(folder).frames)
    assert seen == [1] * 10 + [11] * 10 + [21] * 5
    assert ss.load(folder).status == "running"
    assert holds(recorder.run, 25)
    recorder.close()


def test_a_run_is_continued(cut):
    run = ss.load(cut)
    assert run.status == "interrupted"
    assert f"ss.Recorder({str(cut)!r}, resume=True)" in run.reason
    with ss.Recorder(cut, axes=AXES, resume=True) as recorder:
        assert recorder.last == 24
        assert recorder.steps == list(range(25))
        fill(recorder, 25, 40)
    assert holds(recorder.run, 40)
    assert recorder.run.status == "finished"
    assert [event["event"] for event in _events(cut)].count("resumed") == 1
    assert ss.verify(cut) == []


def _events(folder):
    from validation.killing import events

    return events(folder)


def test_resume_where_there_is_nothing_begins(folder):
    for _ in range(2):
        recorder = ss.Recorder(folder, axes=AXES, resume=True)
        fill(recorder, len(recorder.steps), len(recorder.steps) + 5)
        recorder.close()
    assert holds(ss.load(folder), 10)


def _break(recorder, stop, error, before=lambda: None):
    """A program that records some steps and fails."""
    with recorder:
        fill(recorder, 0, stop)
        before()
        raise error


def test_an_error_commits_and_leaves_the_run_resumable(folder):
    recorder = ss.Recorder(folder, every=1000)
    with pytest.raises(ZeroDivisionError):
        _break(recorder, 7, ZeroDivisionError)
    assert holds(ss.load(folder), 7)
    assert ss.load(folder).status == "interrupted"
    with pytest.raises(ss.InputError, match="closed, its run is interrupted; continue with ss"):
        recorder.record(7, **arrays(7))


def test_a_finished_run_is_not_continued(folder):
    with ss.Recorder(folder) as recorder:
        fill(recorder, 0, 3)
    with pytest.raises(ss.InputError, match="closed, its run is finished"):
        recorder.record(3, **arrays(3))
    with pytest.raises(ss.InputError, match="is finished, so there is nothing to resume; choose another folder"):
        ss.Recorder(folder, resume=True)
    with pytest.raises(ss.InputError, match="not empty"):
        ss.Recorder(folder)
    with ss.Recorder(folder, overwrite=True) as recorder:
        fill(recorder, 0, 2)
    assert holds(ss.load(folder), 2)


def test_an_outcome_of_its_own(out):
    recorder = ss.Recorder(out)
    fill(recorder, 0, 2)
    with pytest.raises(ss.InputError, match="no status 'done'"):
        recorder.finish("done")
    recorder.finish("diverged", "the loss is not finite")
    assert (recorder.run.status, recorder.run.reason) == ("diverged", "the loss is not finite")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"source": {"kind": "watched"}}, "holds a run of source kind 'recorded', not of 'watched'"),
        ({"blocks": ["attention"]}, "has the blocks []"),
        ({"axes": {"attention": ("head", "query")}}, "attention has the axes ('head', 'key')"),
        ({"axes": {"scores": ("head",)}}, "axes names 'scores'"),
        ({"overwrite": True}, "exclude each other"),
    ],
)
def test_another_run_is_not_continued(cut, options, said):
    with pytest.raises(ss.InputError, match=re.escape(said)):
        ss.Recorder(cut, **options, resume=True)
    assert holds(ss.load(cut), 25)
    assert not files.locked(cut)


def test_runs_of_other_programs_are_not_continued(tmp_path):
    samples.unfinished(tmp_path / "evolved")
    with pytest.raises(ss.InputError, match="holds a run of a field"):
        ss.Recorder(tmp_path / "evolved", resume=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(ss.NotARun, match="holds no run"):
        ss.Recorder(tmp_path / "mine", resume=True)


def test_a_damaged_run_is_not_continued(cut):
    place = cut / str(manifests.read(cut).checkpoint)
    data = bytearray(place.read_bytes())
    data[-1] ^= 1
    place.write_bytes(bytes(data))
    with pytest.raises(ss.DamagedRun, match="safetensors"):
        ss.Recorder(cut, resume=True)
    assert ss.verify(cut) != []


CHANGED = {
    "missing": ({"loss": 1.0}, "attention is missing"),
    "more": ({**arrays(0), "more": 1.0}, "more was not in the first record"),
    "shape": (
        {**arrays(0), "attention": np.zeros((3, 2), np.float32)},
        "attention has shape (3, 2), in the first record it had (2, 3)",
    ),
    "type": ({**arrays(0), "attention": np.zeros((2, 3))}, "attention is float64, in the first record it was float32"),
    "text": ({**arrays(0), "loss": "low"}, "loss holds"),
}


@pytest.mark.parametrize("case", CHANGED)
@pytest.mark.parametrize("resumed", [False, True])
def test_a_record_that_does_not_agree_is_refused(cut, tmp_path, case, resumed):
    given, said = CHANGED[case]
    recorder = ss.Recorder(cut, resume=True) if resumed else ss.Recorder(tmp_path / "new")
    start = len(recorder.steps)
    fill(recorder, start, start + 1)
    with pytest.raises(ss.InputError, match=re.escape(said)):
        recorder.record(start + 1, **given)
    fill(recorder, start + 1, start + 3)
    recorder.finish()
    assert holds(recorder.run, start + 3)


FIRST = {
    "nothing": ({}, {}, "nothing beside the step"),
    "name": ({}, {"my loss": 1.0}, "cannot name a stored array"),
    "taken": ({}, {"t": 1.0}, "'t' has a meaning of its own"),
    "loss": ({}, {"loss": [1.0, 2.0]}, "loss has shape (2,)"),
    "empty": ({}, {"a": []}, "holds no number"),
    "text": ({}, {"a": "b"}, "a holds"),
    "axes": ({"axes": {"a": ("x",)}}, {"a": np.zeros((2, 2))}, "a has shape (2, 2), and axes names 1"),
    "equal axes": ({"axes": {"a": ("x", "x")}}, {"a": np.zeros((2, 2))}, "not different"),
    "two lengths": ({"axes": {"a": ("x",), "b": ("x",)}}, {"a": [1, 2], "b": [1]}, "'x' has 2 items in a and 1 in b"),
    "axes of nothing": ({"axes": {"b": ("x",)}}, {"a": 1.0}, "axes names 'b', which is not recorded"),
    "blocks of nothing": ({"blocks": ["b"]}, {"a": 1.0}, "blocks names 'b', which is not recorded"),
}


@pytest.mark.parametrize("case", FIRST)
def test_a_first_record_that_cannot_be_stored_is_refused(case, out):
    options, given, said = FIRST[case]
    recorder = ss.Recorder(out, **options)
    with pytest.raises(ss.InputError, match=re.escape(said)):
        recorder.record(0, **given)
    assert recorder.steps == []
    assert out is None or not out.exists()


@pytest.mark.parametrize(("step", "said"), [(4, "4 after 4"), (1, "1 after 4"), (5.5, "5.5"), ("6", "'6'"), (2**63, "2^63")])
def test_steps_rise(step, said):
    recorder = ss.Recorder()
    recorder.record(4, loss=1.0)
    with pytest.raises(ss.InputError, match=re.escape(said)):
        recorder.record(step, loss=1.0)
    assert recorder.steps == [4]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"every": 0}, "every is 0"),
        ({"planned": 1.5}, "planned is 1.5"),
        ({"source": {"model": "mine"}}, "source has no kind"),
        ({"source": {"kind": "recorded", "x": float("nan")}}, "source cannot be written as JSON"),
        ({"source": {"kind": "recorded", "x": "\ud800"}}, "source cannot be written as JSON"),
        ({"record": object()}, "record cannot be written as JSON"),
    ],
)
def test_options_that_cannot_be_used(options, said):
    with pytest.raises(ss.InputError, match=said):
        ss.Recorder(**options)


def test_nothing_recorded(out):
    with ss.Recorder(out) as recorder:
        pass
    assert out is None or not out.exists()
    with pytest.raises(ss.InputError, match="nothing was recorded"):
        _ = recorder.run


def test_a_folder_that_is_being_written_is_refused(folder):
    recorder = ss.Recorder(folder)
    fill(recorder, 0, 3)
    for options in ({"resume": True}, {"overwrite": True}):
        with pytest.raises(ss.StoreError, match="another process is writing"):
            ss.Recorder(folder, **options)
    recorder.finish()
    assert holds(ss.load(folder), 3)


@pytest.mark.parametrize("broken", ["safetensors", "manifest.json", "zarr.json", "0"])
@pytest.mark.parametrize("frames", [14, 330])
def test_a_full_disk(folder, monkeypatch, broken, frames):
    """What was committed stands. The records since are kept, and committed once there is space, or lost with the process."""
    monkeypatch.setattr("stagescope.runs.writer.SMALL", 48 * 100)
    recorder = ss.Recorder(folder, axes=AXES, every=1000)
    fill(recorder, 0, frames)
    real = files.replace

    def full(path, data):
        if path.name.endswith(broken):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        real(path, data)

    monkeypatch.setattr(files, "replace", full)
    if broken in ("safetensors", "manifest.json") or frames > 100:
        with pytest.raises(ss.StoreError, match="the disk is full; free some space and resume"):
            recorder.commit()
        assert ss.verify(folder) == []
        assert holds(ss.load(folder), 1)
        with pytest.raises(ss.StoreError, match="the disk is full"):
            recorder.finish()
    monkeypatch.setattr(files, "replace", real)
    fill(recorder, frames, frames + 5)
    recorder.finish()
    assert holds(ss.load(folder), frames + 5)
    assert ss.verify(folder) == []


def test_a_full_disk_does_not_hide_the_error_of_the_program(folder, monkeypatch):
    def full(path, data):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with pytest.raises(ZeroDivisionError) as error:
        _break(ss.Recorder(folder), 3, ZeroDivisionError, lambda: monkeypatch.setattr(files, "replace", full))
    assert "the disk is full" in error.value.__notes__[0]
    assert holds(ss.load(folder), 1)


@pytest.mark.parametrize("place", ["manifest.json", "safetensors", "zarr.json"])
def test_an_interrupt_within_a_commit_loses_nothing(folder, monkeypatch, place):
    """Ctrl-C strikes as a file is in place: the commit before or the commit after stands, and closing adds the rest."""
    monkeypatch.setattr("stagescope.runs.writer.SMALL", 48 * 10)
    real = files.replace

    def struck(path, data):
        real(path, data)
        if path.name.endswith(place):
            monkeypatch.setattr(files, "replace", real)
            raise KeyboardInterrupt

    def strike():
        monkeypatch.setattr(files, "replace", struck)
        recorder.commit()

    recorder = ss.Recorder(folder, every=1000)
    with pytest.raises(KeyboardInterrupt):
        _break(recorder, 25, AssertionError, strike)
    assert holds(ss.load(folder), 25)
    assert ss.verify(folder) == []


PROGRAM = """
import sys, itertools, numpy as np, stagescope as ss
from tests.runs.test_recorder import arrays
recorder = ss.Recorder(sys.argv[1], every=3, resume=True)
for step in itertools.count(len(recorder.steps)):
    recorder.record(step, **arrays(step))
    if step % 3 == 0:
        recorder.commit()
        print(step, flush=True)
"""


def test_a_killed_program_keeps_what_it_committed(folder):
    kept = 0
    for count in (4, 5):
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        said = [int(process.stdout.readline()) for _ in range(count)]
        process.send_signal(signal.SIGKILL)
        said += [int(line) for line in process.communicate()[0].splitlines()]
        run = ss.load(folder)
        assert run.step[-1] >= said[-1]
        assert holds(run, run.frames)
        assert run.status == "interrupted"
        assert ss.verify(folder) == []
        assert run.frames > kept
        kept = run.frames
    with ss.Recorder(folder, resume=True) as recorder:
        assert recorder.last == kept - 1
        fill(recorder, kept, kept + 1)
    assert holds(ss.load(folder), kept + 1)


def test_tensors_of_pytorch_are_taken_from_their_graph():
    class Tensor:
        def detach(self):
            return self

        def cpu(self):
            return np.ones(2, np.float16)

    recorder = ss.Recorder()
    recorder.record(0, values=Tensor())
    assert recorder.run.series["values"].dtype == np.float32
