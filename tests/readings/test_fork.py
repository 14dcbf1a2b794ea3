"""Forks: bitwise the run before, what is asked for after, resumable, and refused with a sentence where they make no sense."""

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.core.params import Layout
from stagescope.core.spec import build, digest
from stagescope.flow import evolve as evolving
from stagescope.flow.descent import GradientLoop, KernelLoop, loop_for
from stagescope.readings.rebuild import rebuilt
from stagescope.runs.manifest import read as read_manifest
from tests.landscape.laws import Linear


def valley(params):
    """Blocks that pull on each other, out of alphabetical order, one of them a number."""
    return 0.5 * (params["b"] ** 2).sum() + ((params["a"] - 1) ** 4).sum() + (params["c"] - 2) ** 2 * (params["b"] ** 2).sum()


VALLEY = ss.JaxObjective(valley)
"""Compiled once for all tests."""
START = {"c": np.array(0.1), "b": np.array([1.0, 2.0]), "a": np.array([1.5, 0.2])}
MOTIONS: dict[str, tuple[Any, float | None]] = {
    "flow": (ss.GradientFlow(), 1.0),
    "gd": (ss.Descent(lr=0.01, steps=40), None),
    "heavy-ball": (ss.Descent(optimizer=ss.HeavyBall(momentum=0.5), lr=0.01, steps=40), None),
    "adam": (ss.Descent(optimizer=ss.Adam(), lr=0.01, steps=40), None),
    "adamw": (ss.Descent(optimizer=ss.AdamW(weight_decay=0.3), lr=0.01, steps=40), None),
}
RECORDS = {"flow": ss.LogSpaced(frames=60)}
STUDIES: dict[str, tuple[str, dict[str, Any]]] = {
    "kernel flow": ("focus-dilution", {"until": 30.0, "frames": 60}),
    "kernel batches": (
        "focus-dilution",
        {"form": "sampled", "optimizer": "heavy-ball", "sequences": 64, "length": 20, "batch": 16, "steps": 40, "lr": 0.01},
    ),
    "batches": ("incremental", {"model": "regression-transformer", "steps": 40}),
    "batches, adam": ("scan-snap", {"optimizer": "adam", "length": 20, "batch": 16, "steps": 40}),
}


@cache
def of(kind):
    dynamics, until = MOTIONS[kind]
    return ss.evolve(VALLEY, START, dynamics, until=until, record=RECORDS.get(kind))


@cache
def of_study(kind):
    study, options = STUDIES[kind]
    return ss.run_study(study, **options, progress=False)


def forked(run, what=None, **options):
    """A fork and what was said."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        made = ss.fork(run, what, **{"progress": False, **options})
    return made, [str(each.message) for each in heard]


def arrays(run):
    return {**run.series, **run.params}


def same(one, other, frames=slice(None)):
    names = set(one.series) & set(other.series) | set(one.params)
    return all(arrays(one)[name][frames].tobytes() == arrays(other)[name][frames].tobytes() for name in names)


@pytest.mark.long
@pytest.mark.parametrize("kind", MOTIONS)
def test_up_to_the_frame_every_bit_is_that_of_the_run_and_frozen_blocks_stay(kind):
    run = of(kind)
    made, said = forked(run, VALLEY, at="frame=17", freeze=("b",))
    assert (made.status, made.frames, said) == ("finished", run.frames, [])
    assert same(run, made, slice(0, 18))
    assert np.array_equal(made.time, run.time)
    assert np.all(made.params["b"][17:] == made.params["b"][17])
    assert np.any(run.params["b"][18] != run.params["b"][17])
    assert np.all(np.diff(made.params["a"][17:, 0]) != 0)
    assert made.series["speed"][18] < run.series["speed"][18]


@pytest.mark.long
@pytest.mark.parametrize("kind", STUDIES)
def test_kernels_and_batches_too(kind):
    run = of_study(kind)
    block = list(run.params)[-1]
    made, said = forked(run, at="frame=25", freeze=(block,))
    assert made.done
    assert said == []
    assert same(run, made, slice(0, 26))
    assert np.all(made.params[block][25:] == made.params[block][25])
    assert not same(run, made)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["heavy-ball", "adam"])
def test_a_fork_that_changes_nothing_changes_nothing(kind):
    """An optimiser has its memory, and a longer run goes on where the run ended."""
    run = of(kind)
    assert same(run, forked(run, VALLEY, at="step=20")[0])
    longer, _ = forked(run, VALLEY, at="step=40", steps=55)
    assert same(longer, ss.evolve(VALLEY, START, run_dynamics(run).shortened(55)))


def run_dynamics(run):
    return build(run.spec["dynamics"])


def test_a_flow_goes_on_to_another_end_with_the_same_kind_of_frames():
    run = of("flow")
    made, _ = forked(run, VALLEY, at="frame=40", until=3.0)
    assert same(run, made, slice(0, 41))
    assert made.t[-1] == 3.0
    assert set(made.t[41:]) <= set(ss.LogSpaced(frames=60).times(3.0))
    again = ss.replay(made, ss.Uniform(frames=31), VALLEY)
    np.testing.assert_allclose(again.params["a"][-1], made.params["a"][-1], rtol=1e-7)
    chosen = ss.evolve(VALLEY, START, ss.GradientFlow(), until=1, record=ss.AtTimes(at=(0.2, 0.9)))
    shorter, _ = forked(chosen, VALLEY, at=0.2, until=0.5)
    assert shorter.t.tolist() == [0.0, 0.2, 0.5]


@pytest.mark.long
def test_time_goes_on_where_it_was_when_the_step_size_changes():
    made, _ = forked(of("heavy-ball"), VALLEY, at="step=20", changes={"lr": "0.002", "momentum": 0.75})
    assert np.allclose(np.diff(made.t[:21]), 0.01 / 0.5)
    assert np.allclose(np.diff(made.t[20:]), 0.002 / 0.25)
    halved, _ = forked(of("gd"), VALLEY, at="step=20", changes={"half_life": 10})
    assert np.allclose(np.diff(halved.t[20:]), 0.01 * 0.5 ** (np.arange(20) / 10))
    given, _ = forked(halved, VALLEY, at="step=30", changes={"lr": 0.5})
    assert np.allclose(np.diff(given.t[30:]), 0.5 * 0.5 ** (np.arange(10) / 10))


@pytest.mark.long
def test_memory_is_handed_from_a_kernel_to_the_definition():
    """Clipping is not in the kernel; a limit that is never reached must not change a thing but rounding."""
    run = of_study("kernel batches")
    made, _ = forked(run, at="step=20", changes={"clip": 1e9})
    law, layout = rebuilt(run.spec["field"]).field(), Layout.of(run.at(0))
    loops = [type(loop_for(build(made.spec["dynamics"][part]), law, layout)) for part in ("before", "after")]
    assert loops[0] is KernelLoop
    assert loops[1] is not KernelLoop
    for name in run.params:
        np.testing.assert_allclose(made.params[name], run.params[name], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("study", ["batches", "own"])
def test_another_optimiser_begins_with_no_memory(study):
    """The first step of Adam is then lr long in every entry, however many steps were taken before."""
    run = of("gd") if study == "own" else of_study("batches")
    made, said = forked(run, VALLEY if study == "own" else None, at="step=20", changes={"optimizer": "adam", "lr": 1e-3})
    assert "memory is empty at the fork" in " ".join(said)
    assert made.clock == "step"
    assert "t" not in made.series
    assert same(run, made, slice(0, 21))
    for name in made.params:
        moved = np.abs(made.params[name][21] - made.params[name][20])
        length = 1e-3 * run.spec["dynamics"]["rates"].get(name, 1.0)
        assert np.all((moved == 0) | (np.abs(moved - length) < 1e-5))
    if study == "batches":
        law, layout = rebuilt(run.spec["field"]).field(), Layout.of(run.at(0))
        assert isinstance(loop_for(build(made.spec["dynamics"]["after"]), law, layout), GradientLoop)


@pytest.fixture
def stop_after(monkeypatch):
    """Commit as often as possible, and press Ctrl-C after so many points of the walk."""
    walk = evolving.Journey.walk

    def arm(points):
        def cut(journey, state):
            for i, point in enumerate(walk(journey, state)):
                if i == points:
                    raise KeyboardInterrupt
                yield point

        monkeypatch.setattr(evolving.Journey, "walk", walk if points is None else cut)

    monkeypatch.setattr(evolving, "FIRST_COMMIT", 0.0)
    monkeypatch.setattr(evolving, "NEXT_COMMIT", 0.0)
    return arm


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "points"), [("kernel flow", 12), ("kernel flow", 45), ("kernel batches", 12), ("kernel batches", 25), ("adam", 25)]
)
def test_an_interrupted_fork_resumes_bit_for_bit(tmp_path, stop_after, kind, points):
    """The fork is at frame 20, which both kinds reach after point 12 and before point 25."""
    run, what = (of(kind), VALLEY) if kind in MOTIONS else (of_study(kind), None)
    options: dict[str, Any] = {"at": "frame=20", "freeze": (list(run.params)[-1],)}
    flow: dict[str, Any] = {"changes": {"rtol": 1e-9, "restart_frames": 5}, "until": 35.0, "perturb": 1e-3}
    options |= flow if kind == "kernel flow" else {"changes": {"lr": 0.02}, "steps": 50}
    whole, _ = forked(run, what, **options)
    stop_after(points)
    with pytest.raises(ss.Interrupted):
        forked(run, what, out=tmp_path / "fork", **options)
    early = ss.load(tmp_path / "fork")
    assert (early.frames > 21) == (points > 12)
    stop_after(None)
    found = ss.resume(tmp_path / "fork", what)
    assert found.done
    assert same(found, whole)
    manifest = read_manifest(tmp_path / "fork")
    assert manifest.spec["dynamics"]["parent"] == digest(run.spec)
    assert manifest.study is None
    assert ss.verify(tmp_path / "fork") == []


@pytest.mark.long
def test_a_fork_of_a_fork():
    run = of("adam")
    first, _ = forked(run, VALLEY, at="step=20", freeze=("b",))
    second, _ = forked(first, VALLEY, at="step=30", changes={"rates": {"b": 1.0}})
    assert same(first, second, slice(0, 31))
    assert np.any(second.params["b"][31] != second.params["b"][30])
    early, _ = forked(first, VALLEY, at="step=10", changes={"lr": 0.02})
    assert early.spec["dynamics"]["before"]["type"] == "Descent"
    assert same(run, early, slice(0, 11))
    assert np.any(early.params["b"][-1] != early.params["b"][20])


@pytest.mark.long
def test_between_two_frames_it_is_the_first_and_that_is_said():
    run = of("flow")
    made, said = forked(run, VALLEY, at=f"t={(run.t[30] + run.t[31]) / 2}")
    assert made.spec["dynamics"]["at"] == run.t[30]
    assert len(said) == 1
    assert "(frame 30)" in said[0]
    assert forked(run, VALLEY, at=f"{run.t[30]:.12g}")[1] == []
    assert forked(run, VALLEY, at="frame=0", freeze=("b",))[0].params["b"].std(axis=0).tolist() == [0, 0]


@pytest.mark.long
def test_a_diverged_run_is_forked_before_it_breaks():
    run = ss.evolve(VALLEY, START, ss.Descent(lr=0.25, steps=40))
    assert run.status == "diverged"
    made, _ = forked(run, VALLEY, at="step=2", changes={"lr": 1e-3})
    assert made.done
    assert same(run, made, slice(0, 3))
    with pytest.raises(InputError, match=r"step=30 is not between 0 and the end: the last frame .*diverged"):
        ss.fork(run, VALLEY, at="step=30")


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("flow", {"at": "t=7"}, r"t=7 is not between 0 and the end.*--until"),
        ("flow", {"at": "t=-1"}, "not between 0 and the end"),
        ("flow", {"at": "noon"}, "write t=120, step=4000 or frame=17"),
        ("flow", {"at": "t=nan"}, "write t=120"),
        ("flow", {"at": "frame=60"}, "frames 0 to 59"),
        ("flow", {"at": "step=3"}, "a flow has no steps"),
        ("flow", {"at": "frame=59"}, "give a later end with --until"),
        ("flow", {"at": "frame=9", "steps": 3}, "this run is a flow; give --until"),
        ("flow", {"at": "frame=9", "changes": {"lr": 0.1}}, "lr has no effect on a flow; what can change is atol, method"),
        ("flow", {"at": "frame=9", "changes": {"rtol": 2}}, "rtol: must be less than 1, got 2"),
        ("flow", {"at": "frame=9", "freeze": ("B",)}, "unknown parameter block to freeze 'B'"),
        ("flow", {"at": "frame=9", "freeze": ("a", "b", "c")}, "nothing moves with a, b, c frozen"),
        ("flow", {"at": "frame=9", "perturb": 0.0}, "a length other than 0"),
        ("flow", {"at": "frame=9", "perturb": 1e-3, "along": 6}, "choose 1 to 5"),
        ("adam", {"at": "t=3"}, "it has no flow time"),
        ("adam", {"at": "step=9", "until": 2.0}, "give --steps"),
        ("adam", {"at": "step=9", "steps": 9}, "give a later end with --steps"),
        ("adam", {"at": "step=9", "changes": {"momentum": 0.5}}, "momentum has no effect on adam; what can change is b1, b2"),
        ("adam", {"at": "step=9", "changes": {"optimizer": "adm"}}, "unknown optimizer of a fork 'adm'; did you mean 'adam'"),
        ("gd", {"at": "step=9", "changes": {"half_life": 0.01}}, "half_life is 0.01, too short for a fork at step 9"),
        ("adam", {"at": "step=9", "changes": {"steps": 9}}, "steps is the end of a fork.*give --steps"),
        ("adam", {"at": "step=9", "changes": {"lrr": 1}}, "unknown option of a fork 'lrr'; did you mean 'lr'"),
        ("adam", {"at": "step=9", "changes": {"rates.B": 1}}, "unknown parameter block in rates 'B'"),
    ],
)
def test_what_makes_no_sense_is_refused(kind, options, said):
    with pytest.raises(InputError, match=said):
        ss.fork(of(kind), VALLEY, **options)


def test_runs_that_cannot_be_forked(tmp_path):
    recorded = ss.from_arrays(t=np.arange(5.0), loss=np.ones(5))
    with pytest.raises(InputError, match="no law of motion"):
        ss.fork(recorded, at="t=2")
    run = of("gd").save(tmp_path / "run")
    with pytest.raises(InputError, match="is the run that is forked"):
        ss.fork(tmp_path / "run", VALLEY, at="step=3", out=tmp_path / "run", overwrite=True)
    with pytest.raises(InputError, match="first frame of this run is not its start"):
        ss.fork(run.only(np.arange(5, 20)), VALLEY, at="step=9")
    study = ss.run_study("focus-dilution", until=5.0, frames=12, progress=False)
    with pytest.raises(InputError, match=r"persistence belongs to the loss.*`stagescope run focus-dilution --persistence"):
        ss.fork(study, at="frame=3", changes={"persistence": 0.4})
    turning = Linear(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    turns = ss.evolve(turning, {"x": np.array([1.0, 0.0])}, ss.GradientFlow(), until=1)
    with pytest.raises(InputError, match="no gradient"):
        ss.fork(turns, turning, at="frame=3", perturb=1e-3)


@pytest.mark.long
@pytest.mark.parametrize(
    ("study", "options", "how"),
    [
        ("focus-dilution", {"until": 40.0, "frames": 60}, {"at": "frame=30", "freeze": ("WQ", "WK")}),
        ("scan-snap", {"until": 50.0, "frames": 60}, {"at": "frame=30", "changes": {"rates": {"Y": 2.0}}}),
        ("incremental", {"model": "regression", "until": 50.0}, {"at": "frame=100", "freeze": ("a",)}),
    ],
)
def test_a_fork_is_read_like_any_run_but_no_claim_is_about_it(study, options, how):
    run = ss.run_study(study, **options, progress=False)
    made, _ = forked(run, **how)
    assert "this run is a fork" in ss.stages(made).notes["fork"]
    rows = ss.check(made).verdicts
    assert rows
    assert {row.verdict for row in rows} == {"inconclusive"}
    assert all(row.reason.startswith("out of regime: this run is a fork: its motion was changed at t = ") for row in rows)
    if study == "incremental":
        assert all(rung.t is None or rung.t > made.spec["dynamics"]["at"] for rung in ss.saddle_ladder(made))
