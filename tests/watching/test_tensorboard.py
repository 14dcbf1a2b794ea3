"""Log directories of the real SummaryWriter become runs with stages, and runs become log directories that TensorBoard reads."""

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from torch.utils.tensorboard import SummaryWriter

import stagescope as ss
from stagescope.cli.main import run as command
from stagescope.watching import logs
from stagescope.watching.logs import PREFIX, Log, record, scalar
from tests.runs import samples
from tests.runs.test_export import watched
from tests.show.decode import Parts

STEP = np.unique(np.concatenate([np.round(np.geomspace(1, 3000, 100)), np.linspace(0, 3000, 40).round()])).astype(int)
CLOCK = np.log(STEP + 10.0)
FALLS = (100, 900)
RNG = np.random.default_rng(5)
NOISE = 0.01 * RNG.normal(size=len(STEP))
LOSS = 3.0 - sum(1 / (1 + np.exp(-(CLOCK - np.log(at + 10)) / 0.08)) for at in FALLS) + NOISE


def write(folder: Path, steps=STEP, walls=None, **curves) -> Path:
    """A log directory with these curves; __ in a name is a slash."""
    with SummaryWriter(str(folder)) as writer:
        for name, values in curves.items():
            for i, (step, value) in enumerate(zip(steps, values, strict=True)):
                writer.add_scalar(name.replace("__", "/"), value, int(step), walltime=None if walls is None else walls[i])
    return folder


def written(folder: Path, *events: Event, suffix: str = "1") -> Path:
    """An event file of these events."""
    folder.mkdir(exist_ok=True)
    (folder / f"{PREFIX}{suffix}").write_bytes(b"".join(map(record, events)))
    return folder


def point(tag: str, step: int, value: float, wall: float = 0.0) -> Event:
    event = Event(step=step, wall_time=wall)
    event.summary.value.add(tag=tag, simple_value=value)
    return event


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    noisy = LOSS + RNG.normal(size=len(STEP))
    return write(tmp_path_factory.mktemp("logs") / "planted", train__loss=noisy, eval__loss=LOSS, lr=np.full(len(STEP), 1e-3))


# in


def test_both_planted_transitions_are_found(planted):
    run = ss.from_tensorboard(planted)
    found = ss.stages(run)
    assert list(found.events) == ["transition 1", "transition 2"]
    for at, (low, high) in zip(FALLS, found.json()["intervals"].values(), strict=True):
        assert low <= at <= high
    np.testing.assert_array_equal(run.step, STEP)
    np.testing.assert_array_equal(run.series["loss"], LOSS.astype(np.float32))
    assert list(run.series) == ["step", "loss", "train_loss", "lr"]
    assert (run.clock, run.status, run.seed, run.type) == ("step", "finished", None, "tensorboard")


def test_a_curve_without_a_transition_has_none(tmp_path):
    found = ss.stages(ss.from_tensorboard(write(tmp_path / "log", loss=2.0 * (STEP + 30.0) ** -0.3 + NOISE)))
    assert [stage.name for stage in found] == ["no transition"]
    assert dict(found.events) == {}


def test_the_source_says_where_it_comes_from(planted):
    source = ss.from_tensorboard(planted).spec["source"]
    assert source["tags"] == {"eval/loss": "loss", "train/loss": "train_loss", "lr": "lr"}
    assert (source["kind"], source["run"], source["files"], source["loss"]) == ("tensorboard", ".", 1, "eval/loss")
    assert source["notes"] == [f"the loss is 'eval/loss', {len(STEP)} records; not taken: 'train/loss'"]


def test_the_commands(planted, tmp_path, capsys):
    out = tmp_path / "run"
    assert command(["import", str(planted), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0] == f"{len(STEP)} frames to step = 3000; 3 curves: loss, train_loss, lr"
    assert "note: the loss is 'eval/loss'" in said
    assert f"next: stagescope stages {out}" in said
    assert ss.verify(out) == []
    assert command(["stages", str(out), "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["events"]) == ["transition 1", "transition 2"]
    assert command(["report", str(out), "-o", str(tmp_path / "page.html"), "--quiet"]) == 0
    [shown] = Parts((tmp_path / "page.html").read_text()).data()["scenes"][0]["runs"]
    assert [stage["name"] for stage in shown["stages"]][1::2] == ["transition 1", "transition 2"]
    assert not any("could not be computed" in note for note in shown["notes"])
    capsys.readouterr()
    assert command(["import", str(planted), "--out", str(out)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert command(["import", str(planted), "--out", str(out), "--overwrite", "--json", "--loss", "train/loss"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["source"]["loss"] == "train/loss"
    assert found["source"]["tags"]["eval/loss"] == "eval_loss"


def test_tags_of_other_steps_are_aligned(tmp_path):
    folder = write(tmp_path / "log", steps=[0, 10, 20], train__loss=[3, 2, 1])
    write(folder, steps=[10, 15], eval__loss=[5, 4])
    run = ss.from_tensorboard(folder)
    np.testing.assert_array_equal(run.step, [0, 10, 15, 20])
    np.testing.assert_array_equal(run.series["train_loss"], [3, 2, np.nan, 1])
    np.testing.assert_array_equal(run.series["loss"], [np.nan, 5, 4, np.nan])
    assert run.spec["source"]["files"] == 2


@pytest.mark.parametrize("order", [("1", "2"), ("2", "1")])
def test_the_later_wall_time_wins_at_a_repeated_step(tmp_path, order):
    """Whatever the names of the files say."""
    first, second = order
    written(tmp_path / "log", *(point("loss", step, 1.0, wall=100 + step) for step in range(8)), suffix=first)
    written(tmp_path / "log", *(point("loss", step, 2.0, wall=200 + step) for step in range(4, 6)), suffix=second)
    run = ss.from_tensorboard(tmp_path / "log")
    np.testing.assert_array_equal(run.series["loss"], [1, 1, 1, 1, 2, 2, 1, 1])
    _, repeated, earlier = run.spec["source"]["notes"]
    assert repeated.startswith("2 of 10 points repeat a step")
    assert earlier.startswith("2 points are of an earlier start")


def test_a_plain_continuation_has_no_note(tmp_path):
    write(tmp_path / "log", steps=range(20), loss=range(20))
    write(tmp_path / "log", steps=range(20, 40), loss=range(20, 40))
    run = ss.from_tensorboard(tmp_path / "log")
    np.testing.assert_array_equal(run.series["loss"], np.arange(40))
    assert len(run.spec["source"]["notes"]) == 1


def test_several_runs_are_refused_by_name(tmp_path, planted):
    for name in ("a", "b/deep"):
        write(tmp_path / "logs" / name, steps=[0, 1], loss=[1.0, len(name)])
    with SummaryWriter(str(tmp_path / "logs" / "hparams")) as writer:
        writer.add_text("note", "no scalars here")
    with pytest.raises(ss.InputError, match=re.escape("holds 2 runs (a, b/deep); choose one with --run NAME")):
        ss.from_tensorboard(tmp_path / "logs")
    assert ss.from_tensorboard(tmp_path / "logs", run="b/deep").series["loss"][1] == 6
    with pytest.raises(ss.InputError, match="unknown run 'b/dep'; did you mean 'b/deep'"):
        ss.from_tensorboard(tmp_path / "logs", run="b/dep")
    with pytest.raises(ss.InputError, match="unknown run"):
        ss.from_tensorboard(tmp_path / "logs", run="../logs/a")


def test_the_only_run_with_scalars_needs_no_name(tmp_path):
    write(tmp_path / "logs" / "1700000000.5" / "run", steps=[0, 1], loss=[1.0, 0.5])
    with SummaryWriter(str(tmp_path / "logs")) as writer:
        writer.add_text("note", "no scalars here")
    assert ss.from_tensorboard(tmp_path / "logs").spec["source"]["run"] == "1700000000.5/run"


@pytest.mark.parametrize(
    ("tags", "taken"),
    [
        ({"train/loss": 100, "eval/loss": 50}, "eval/loss"),
        ({"train/loss": 100, "eval/loss": 4}, "train/loss"),
        ({"loss": 100, "train_loss": 100}, "loss"),
        ({"Loss/train": 100, "Loss/test": 100}, "Loss/test"),
        ({"trainLoss": 90, "valLoss": 90}, "valLoss"),
        ({"train/train_loss": 1, "train/loss": 100, "train/aux_loss": 100}, "train/loss"),
        ({"validation/loss": 3, "train/loss": 3}, "validation/loss"),
        ({"accuracy": 100, "gloss": 100, "aux_loss": 100}, None),
    ],
)
def test_the_obvious_loss(tmp_path, tags, taken):
    folder = written(tmp_path / "log", *(point(tag, step, 1.0) for tag, n in tags.items() for step in range(n)))
    run = ss.from_tensorboard(folder)
    assert run.spec["source"]["loss"] == taken
    assert ("loss" in run.series) == (taken is not None)
    assert repr(taken)[1:-1] in run.spec["source"]["notes"][0] if taken else "--loss TAG" in run.spec["source"]["notes"][0]


def test_the_loss_can_be_chosen(planted):
    assert ss.from_tensorboard(planted, loss="lr").series["loss"][0] == np.float32(1e-3)
    with pytest.raises(ss.InputError, match="unknown tag 'train/los'; did you mean 'train/loss'"):
        ss.from_tensorboard(planted, loss="train/los")


def test_tags_can_be_chosen(planted):
    assert list(ss.from_tensorboard(planted, tags="*/loss").series) == ["step", "loss", "train_loss"]
    with pytest.raises(ss.InputError, match="no scalars whose tags match 'test/"):
        ss.from_tensorboard(planted, tags="test/*")


def test_names_are_sanitised_and_never_collide(tmp_path):
    tags = ["a/b", "a b", "A.b", "t", "step", "speed", "loss_", "7/x", "потери", "../../etc", "a\nb\x1b[2J", "x" * 500, "type"]
    folder = written(tmp_path / "log", *(point(tag, 0, i) for i, tag in enumerate(["loss", *tags])))
    run = ss.from_tensorboard(folder)
    names = run.spec["source"]["tags"]
    assert list(names.values())[:11] == [
        *("loss", "a_b", "a_b_2", "a_b_3", "tag_t", "tag_step", "tag_speed", "tag_loss", "tag_7_x", "tag", "etc"),
    ]
    assert all(re.fullmatch(r"[a-z_][a-z0-9_]{0,63}", name) for name in names.values())
    for i, tag in enumerate(["loss", *tags]):
        key = tag if len(tag) < 100 else next(each for each in names if each.startswith(tag[:100]))
        assert run.series[names[key]][0] == i
    assert ss.load(run.save(tmp_path / "run").path).spec == run.spec


def test_hostile_tags_cannot_steer_a_terminal(tmp_path, capsys):
    folder = written(tmp_path / "log", *(point(f"\x1b]0;x\x07{i}\nloss", 0, 1.0) for i in range(3)))
    assert command(["import", str(folder), "--out", str(tmp_path / "run"), "--loss", "loss"]) == 2
    assert command(["import", str(folder), "--out", str(tmp_path / "run")]) == 0
    assert command(["info", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err
    assert len(printed.err.splitlines()) == 1


def test_hostile_tags_cannot_leave_their_place_on_a_page(tmp_path):
    tag = "</script><script>alert(1)</script>"
    run = ss.from_tensorboard(written(tmp_path / "log", *(point(tag, step, 1.0) for step in range(3))), loss=tag)
    text = ss.report(run, tmp_path / "page.html", progress=False).read_text()
    assert "<script>alert" not in text
    assert tag in json.dumps(Parts(text).data())


@pytest.mark.parametrize("wide", [False, True])
def test_scalars_in_tensors(tmp_path, wide):
    with SummaryWriter(str(tmp_path / "log")) as writer:
        for step in range(3):
            writer.add_scalar("loss", 0.1 * step, step, new_style=True, double_precision=wide)
    found = ss.from_tensorboard(tmp_path / "log").series["loss"]
    assert found.dtype == (np.float64 if wide else np.float32)
    np.testing.assert_array_equal(found, (0.1 * np.arange(3)).astype(found.dtype))


FORMS = {
    "float listed": ({"dtype": 1, "float_val": [1.5]}, 1.5),
    "float bytes": ({"dtype": 1, "tensor_content": struct.pack("<f", 1.5)}, 1.5),
    "double bytes": ({"dtype": 2, "tensor_content": struct.pack("<d", 0.1)}, 0.1),
    "int": ({"dtype": 3, "int_val": [-7]}, -7.0),
    "long": ({"dtype": 9, "int64_val": [2**40]}, 2.0**40),
    "half": ({"dtype": 19, "half_val": [0x3E00]}, 1.5),
    "bfloat": ({"dtype": 14, "half_val": [0x3FC0]}, 1.5),
    "bfloat bytes": ({"dtype": 14, "tensor_content": b"\xc0\x3f"}, 1.5),
    "text": ({"dtype": 7, "string_val": [b"1.5"]}, None),
    "nothing": ({"dtype": 1}, None),
    "two": ({"dtype": 1, "float_val": [1.5, 2.5]}, None),
    "odd bytes": ({"dtype": 1, "tensor_content": b"123"}, None),
}


@pytest.mark.parametrize("form", FORMS)
def test_types_of_tensors(form):
    given, expected = FORMS[form]
    value = Event().summary.value.add(tag="x")
    for name, content in given.items():
        getattr(value.tensor, name).extend(content) if isinstance(content, list) else setattr(value.tensor, name, content)
    found = scalar(value)
    assert found is None if expected is None else found is not None and found[0] == expected


def test_one_number_that_claims_a_shape_of_gigabytes_is_no_scalar():
    value = Event().summary.value.add(tag="bomb")
    value.tensor.dtype = 1
    value.tensor.float_val.append(1.0)
    value.tensor.tensor_shape.dim.add(size=2**40)
    assert scalar(value) is None


def test_everything_but_scalars_is_passed_over(tmp_path):
    with SummaryWriter(str(tmp_path / "log")) as writer:
        writer.add_histogram("weights", RNG.normal(size=100), 0)
        writer.add_image("picture", np.zeros((3, 4, 4), np.uint8), 0)
        writer.add_text("note", "hello", 0)
        writer.add_pr_curve("pr", np.array([0, 1]), np.array([0.2, 0.8]), 0)
        writer.add_scalar("loss", 1.0, 0)
    assert list(ss.from_tensorboard(tmp_path / "log").series) == ["step", "loss"]


def test_all_points_are_read(tmp_path):
    """TensorBoard's own reader keeps 10,000 of a tag unless told otherwise."""
    folder = written(tmp_path / "log", *(point("loss", step, step) for step in range(12_000)))
    assert ss.from_tensorboard(folder).frames == 12_000


# damage


def whole(folder: Path) -> bytes:
    return (folder / f"{PREFIX}1").read_bytes()


@pytest.mark.parametrize("cut", [1, 4, 5, 20, 30, 32])
def test_of_a_truncated_file_all_whole_records_are_taken(tmp_path, cut):
    folder = written(tmp_path / "log", *(point("loss", step, step) for step in range(10)))
    length = len(record(point("loss", 9, 9)))
    assert cut < length
    (folder / f"{PREFIX}1").write_bytes(whole(folder)[:-cut])
    run = ss.from_tensorboard(folder)
    np.testing.assert_array_equal(run.series["loss"], np.arange(9))
    assert run.spec["source"]["notes"][1:] == [f"{PREFIX}1: left out records cut off at the end: 1"]


def test_a_record_with_a_changed_byte_is_left_out_alone(tmp_path):
    folder = written(tmp_path / "log", *(point("loss", step, 1.0) for step in range(1, 11)))
    length, data = len(record(point("loss", 1, 1.0))), bytearray(whole(folder))
    data[4 * length + 20] ^= 1
    (folder / f"{PREFIX}1").write_bytes(data)
    run = ss.from_tensorboard(folder)
    np.testing.assert_array_equal(run.step, [1, 2, 3, 4, 6, 7, 8, 9, 10])
    assert run.spec["source"]["notes"][1:] == [f"{PREFIX}1: left out records with a wrong checksum: 1"]
    data[6 * length] ^= 1
    (folder / f"{PREFIX}1").write_bytes(data)
    run = ss.from_tensorboard(folder)
    assert run.step[-1] == 6
    assert run.spec["source"]["notes"][2] == f"{PREFIX}1: left out bytes behind a damaged size: {4 * length}"


def test_sizes_and_bytes_that_lie(tmp_path):
    """A record that claims 2^62 bytes, one that is no event, one of 17 MiB: memory is not taken, and the rest is read."""
    masked = logs.masked_sum()

    class Raw:
        def __init__(self, data: bytes) -> None:
            self.data = data

        def SerializeToString(self) -> bytes:
            return self.data

    claimed = struct.pack("<Q", 2**62)
    events = (Raw(b"\xff" * 40), Raw(bytes(17 * 2**20)), point("loss", 3, 1.0))
    data = b"".join(map(record, events)) + claimed + struct.pack("<I", masked(claimed)) + b"rest"
    (tmp_path / f"{PREFIX}1").write_bytes(data)
    run = ss.from_tensorboard(tmp_path)
    assert list(run.step) == [3]
    assert [note.partition("left out ")[2] for note in run.spec["source"]["notes"][1:]] == [
        "records that are no events: 1",
        "records above 16 MiB, which hold no scalars: 1",
        "records cut off at the end: 1",
    ]


@pytest.mark.parametrize("seed", range(40))
def test_mutated_files_do_no_harm(tmp_path, seed):
    """Changed, cut and doubled bytes: a run, or one of our errors."""
    rng = np.random.default_rng(seed)
    folder = written(tmp_path / "log", *(point(f"tag {i % 3}", i, i) for i in range(30)))
    data = bytearray(whole(folder))
    for _ in range(rng.integers(1, 5)):
        place = int(rng.integers(len(data)))
        data[place] = int(rng.integers(256))
        if rng.random() < 0.3:
            del data[place : place + int(rng.integers(60))]
    (folder / f"{PREFIX}1").write_bytes(data)
    try:
        found = ss.from_tensorboard(folder)
    except ss.InputError:
        return
    values = np.concatenate([values[np.isfinite(values)] for name, values in found.series.items() if name != "step"])
    assert set(values) <= set(range(30))


def test_steps_and_values_that_are_odd(tmp_path):
    events = [point("loss", -1, 9.0), point("loss", 0, np.nan), point("loss", 2**62, np.inf), point("x", -5, 1.0)]
    run = ss.from_tensorboard(written(tmp_path / "log", *events))
    assert list(run.step) == [0, 2**62]
    np.testing.assert_array_equal(run.series["loss"], [np.nan, np.inf])
    assert "left out 2 of 4 points, whose step is negative" in run.spec["source"]["notes"]
    assert len(ss.stages(run)) == 1


def test_too_many_tags_and_too_many_numbers_are_refused(tmp_path, monkeypatch):
    folder = written(tmp_path / "log", *(point(f"tag {i}", i, 1.0) for i in range(1001)))
    with pytest.raises(ss.InputError, match="more than 1,000 tags of scalars; choose some of them with --tags"):
        ss.from_tensorboard(folder)
    assert len(ss.from_tensorboard(folder, tags="tag 1*").series) == 1 + 1 + 10 + 100 + 1
    monkeypatch.setattr("stagescope.core.memory.MACHINE", 100_000)
    with pytest.raises(ss.InputError, match=r"the curves of this log would take .* \(112 x 112 numbers\)"):
        ss.from_tensorboard(folder, tags="tag 1*")
    monkeypatch.setattr(logs, "CHECKED", 64)
    monkeypatch.setattr("stagescope.core.memory.MACHINE", 2000)
    with pytest.raises(ss.InputError, match="the scalars of this log would take"):
        ss.from_tensorboard(folder, tags="tag 1*")


def test_links_are_not_followed_and_nobody_is_waited_for(tmp_path):
    outside = written(tmp_path / "outside", point("loss", 0, 1.0))
    (tmp_path / "log").mkdir()
    os.symlink(outside / f"{PREFIX}1", tmp_path / "log" / f"{PREFIX}2")
    os.symlink(outside, tmp_path / "log" / "folder")
    os.mkfifo(tmp_path / "log" / f"{PREFIX}3")
    with pytest.raises(ss.InputError, match="holds no event files"):
        ss.from_tensorboard(tmp_path / "log")


# out


@pytest.mark.parametrize("source", ["watched", "flow"])
def test_a_run_goes_out_and_comes_back(tmp_path, source):
    run = watched(20) if source == "watched" else samples.memory_run(20)
    found = ss.from_tensorboard(ss.to_tensorboard(run, tmp_path / "log"))
    np.testing.assert_array_equal(found.step, run.step if source == "watched" else np.arange(20))
    np.testing.assert_array_equal(found.series["loss"], run.series["loss"].astype(np.float32))
    names = found.spec["source"]["tags"]
    if source == "watched":
        np.testing.assert_array_equal(found.series[names["entropy/layer 1/head 3"]], run.series["entropy"][:, 1, 3])
        assert set(names) == {
            "loss",
            *(f"entropy/layer {i}/head {j}" for i in range(2) for j in range(4)),
            *(f"embedding_values/value {i}" for i in range(32)),
            *(f"type/type {i}" for i in range(33)),
        }
    else:
        np.testing.assert_array_equal(found.series[names["t"]], run.t.astype(np.float32))
        assert set(names) == {"t", "loss", "A"}


def test_tensorboard_itself_reads_it(tmp_path):
    run = watched(20)
    run = ss.from_arrays(step=run.step, loss=run.series["loss"], gain=np.where(np.arange(20) % 2, np.nan, 1e300))
    found = EventAccumulator(str(ss.to_tensorboard(run, tmp_path / "log")), size_guidance={"scalars": 0})
    found.Reload()
    assert set(found.Tags()["scalars"]) == {"gain", "loss"}
    assert [(each.step, each.value) for each in found.Scalars("loss")] == list(
        zip(run.step, run.series["loss"].tolist(), strict=True)
    )
    assert [(each.step, each.value) for each in found.Scalars("gain")] == [(step, np.inf) for step in run.step[::2]]


def test_folders_that_will_not_do(tmp_path):
    run = watched().save(tmp_path / "run")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("ten years")
    for place, said in (
        ("file", "is a file; choose a folder"),
        ("mine", "is not empty; choose another folder"),
        ("run/log", "is inside the run"),
        ("no/where", "is not a folder; make it first"),
    ):
        with pytest.raises(ss.InputError, match=said):
            ss.to_tensorboard(run, tmp_path / place, overwrite=True)
    ss.to_tensorboard(run, tmp_path / "log")
    with pytest.raises(ss.InputError, match="holds an exported run; choose another folder, or --overwrite"):
        ss.to_tensorboard(run, tmp_path / "log")
    ss.to_tensorboard(watched(5), tmp_path / "log", overwrite=True)
    assert ss.from_tensorboard(tmp_path / "log").frames == 5
    assert (tmp_path / "file").read_text() == "mine"


def test_without_the_package_the_remedy_is_named(tmp_path, monkeypatch):
    folder = written(tmp_path / "log", point("loss", 0, 1.0))

    for package in ("tensorboard", "google_crc32c"):
        monkeypatch.setitem(sys.modules, package, None)  # an import of it fails, as where it is not installed
    for call in (lambda: ss.from_tensorboard(folder), lambda: ss.to_tensorboard(watched(), tmp_path / "out")):
        with pytest.raises(ss.InputError, match=re.escape("pip install 'stagescope[tensorboard]'")):
            call()
    assert not (tmp_path / "out").exists()


def test_reading_loads_nothing_heavy():
    """Neither TensorFlow, which the package's own reader would load, nor torch, nor grpc."""
    code = "import sys; from stagescope.watching.logs import event_type; event_type();"
    code += "print([m for m in ('torch', 'tensorflow', 'grpc', 'tensorboard.compat.tensorflow_stub') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_log_in_memory():
    """Points that are not wanted take no room."""
    log = Log(lambda tag: tag == "a")
    log._add(point("a", 0, 1.0))
    log._add(point("b", 0, 1.0))
    assert (list(log.points), log.total) == (["a"], 1)
