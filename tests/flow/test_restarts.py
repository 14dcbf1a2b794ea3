"""Restarts of a flow: few, at counts that are part of the spec, and a run goes on from each of them bit for bit."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.params import Layout
from stagescope.core.spec import build
from stagescope.flow import cvode
from stagescope.flow import evolve as evolving
from stagescope.flow import gradient_flow as flow
from stagescope.flow.fork import Forked

CHAIN = ss.LazyChain(pi=(0.5, 0.3, 0.2), persistence=0.6)
MODEL = ss.TokenAttention(vocab=3, width=5, scale=4.0)
LOSS, START = ss.population_loss(MODEL, CHAIN), MODEL.init(0, 1e-2)
LAYOUT, UNTIL = Layout.of(START), 200.0
OF_0_1 = {"type": "GradientFlow", "rates": {}, "rtol": 1e-10, "atol": 1e-12, "method": "auto", "segments": 3}
FLOWS = {
    "by evaluations": ss.GradientFlow(restart_evaluations=200),
    "by frames": ss.GradientFlow(restart_frames=4),
    "by both": ss.GradientFlow(restart_evaluations=300, restart_frames=9),
    "lsoda": ss.GradientFlow(restart_evaluations=300, method="lsoda"),
    "at times": build(OF_0_1),
}


def walked(dynamics, targets, state=None):
    vector = LAYOUT.pack(START)
    settled = dynamics.settled(LOSS.field(), LAYOUT, vector)
    return list(settled.walk(LOSS.field(), LAYOUT, state or settled.start(LOSS.field(), LAYOUT, vector), targets))


def states(points):
    return [point.position for point in points if point.state is not None]


def same(one, other):
    assert one.status == other.status == "finished"
    for name, values in {**one.series, **one.params}.items():
        np.testing.assert_array_equal(values, {**other.series, **other.params}[name], err_msg=name)


@pytest.mark.parametrize(
    ("name", "frames"), [(name, frames) for name in FLOWS for frames in (3, 30) if (name, frames) != ("by frames", 3)]
)
def test_every_restart_continues_bit_for_bit(name, frames):
    targets = np.linspace(0.0, UNTIL, frames)
    points = walked(FLOWS[name], targets)
    assert [point.position for point in points if point.frame] == targets[1:].tolist()
    assert len(states(points)) > 2
    for i, point in enumerate(points[:-1]):
        if point.state is not None:
            for a, b in zip(walked(FLOWS[name], targets, point.state), points[i + 1 :], strict=True):
                assert (a.position, a.frame, a.loss, a.speed) == (b.position, b.frame, b.loss, b.speed)
                np.testing.assert_array_equal(a.vector, b.vector)


@pytest.mark.parametrize("commits", [2, 4])
@pytest.mark.parametrize("name", ["by evaluations", "at times"])
def test_a_run_that_is_killed_ends_as_the_whole_one(name, commits, tmp_path, monkeypatch):
    """In memory, in a folder, or resumed from any commit: the spec alone decides the bytes."""
    monkeypatch.setattr(evolving, "FIRST_COMMIT", 0.0)
    monkeypatch.setattr(evolving, "NEXT_COMMIT", 0.0)
    how = {"until": UNTIL, "record": ss.Uniform(frames=30), "progress": False}
    whole = ss.evolve(LOSS, START, FLOWS[name], **how)
    same(whole, ss.evolve(LOSS, START, FLOWS[name], out=tmp_path / "whole", **how))
    seen, commit = [], evolving.Writer.commit

    def killed(writer, state, event="checkpoint", **facts):
        commit(writer, state, event, **facts)
        seen.append(event)
        if len(seen) == commits:
            raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(evolving.Writer, "commit", killed)
        with pytest.raises(SystemExit):
            ss.evolve(LOSS, START, FLOWS[name], out=tmp_path / "run", **how)
    assert ss.load(tmp_path / "run").frames < whole.frames
    same(whole, ss.resume(tmp_path / "run", progress=False))


def test_a_short_flow_has_no_restart():
    points = walked(ss.GradientFlow(), np.linspace(0.0, UNTIL, 30))
    assert states(points) == [UNTIL]


def test_restarts_of_version_0_1_are_at_its_times():
    """Equal pieces, and halvings of the first; what a stored spec does not name stays unset."""
    old = build(OF_0_1)
    assert old.settled(LOSS.field(), LAYOUT, LAYOUT.pack(START)) == old
    points = walked(old, np.linspace(0.0, UNTIL, 30))
    third = UNTIL / 3
    assert states(points) == pytest.approx([third / 8, third / 4, third / 2, third, 2 * third, UNTIL], rel=1e-15)
    assert all(point.loss is None for point in points)


@pytest.mark.parametrize(
    ("size", "evaluations", "frames"), [(1, 20_000, 2**25), (192, 20_000, 174_762), (10_000, 4_000, 3_355), (10**6, 2_000, 33)]
)
def test_restarts_follow_from_the_number_of_parameters(size, evaluations, frames):
    bowl = ss.JaxObjective(lambda p: (p["x"] ** 2).sum()).field()
    vector = np.ones(size)
    settled = ss.GradientFlow().settled(bowl, Layout.of({"x": vector}), vector)
    assert (settled.restart_evaluations, settled.restart_frames) == (evaluations, frames)
    assert build(settled.describe()) == settled
    assert [settled.waiting(kept) for kept in (10, 10**9)] == [10, frames]
    assert ss.GradientFlow(segments=16).waiting(1000) == 63


def test_how_often_python_looks_changes_no_number(monkeypatch):
    """Frames and calls between two looks at Ctrl-C are no part of a run; restarts fall between and on frames."""
    targets = np.linspace(0.0, UNTIL, 25)
    found = []
    for patience, frames in ((1, 1), (250, 64), (10**6, 5)):
        monkeypatch.setattr(cvode, "PATIENCE", patience)
        monkeypatch.setattr(cvode, "FRAMES", frames)
        found.append(walked(FLOWS["by evaluations"], targets))
    for points in found[1:]:
        for a, b in zip(points, found[0], strict=True):
            assert (a.position, a.frame, a.loss, a.speed) == (b.position, b.frame, b.loss, b.speed)
            np.testing.assert_array_equal(a.vector, b.vector)


@pytest.mark.parametrize("name", ["by evaluations", "by frames"])
def test_the_public_interface_restarts_at_the_same_points(name, monkeypatch):
    for frames in (3, 30):
        targets = np.linspace(0.0, UNTIL, frames)
        direct = walked(FLOWS[name], targets)
        with monkeypatch.context() as patch:
            patch.setattr(cvode, "functions", lambda: None)
            other = walked(FLOWS[name], targets)
        for a, b in zip(direct, other, strict=True):  # sums are taken in another order, so the last digits are others
            assert (a.frame, a.state is None) == (b.frame, b.state is None)
            assert a.position == pytest.approx(b.position, rel=0 if a.frame else 1e-2)
            np.testing.assert_allclose(a.vector, b.vector, atol=1e-8 if a.frame else 1e-2)


def test_loss_and_speed_of_the_loop_are_those_of_the_field():
    run = ss.evolve(LOSS, START, ss.GradientFlow(rates={"W1": 2.0}), until=UNTIL, record=ss.Uniform(frames=30))
    flat, velocity = LOSS.field().flat(LAYOUT, dict.fromkeys(LAYOUT.names, 1.0) | {"W1": 2.0}), np.empty(LAYOUT.size)
    for i in range(run.frames):
        assert run.series["loss"][i] == pytest.approx(flat(LAYOUT.pack(run.at(i)), velocity), rel=1e-14)
        assert run.series["speed"][i] == pytest.approx(np.linalg.norm(velocity), rel=1e-13)


@pytest.mark.parametrize("method", ["cvode", "lsoda"])
def test_a_flow_that_reaches_no_frame_is_given_up(method, monkeypatch):
    monkeypatch.setattr(flow, "STUCK", 1000)
    dynamics = ss.GradientFlow(restart_evaluations=300, method=method)
    run = ss.evolve(LOSS, START, dynamics, until=1e3, record=ss.Uniform(frames=2))
    assert run.status == "failed"
    assert "no frame in 1,000 evaluations of the gradient; record more frames" in run.reason


def test_a_fork_repeats_the_restarts_of_its_run():
    run = ss.evolve(LOSS, START, FLOWS["by evaluations"], until=UNTIL, record=ss.Uniform(frames=30))
    fork = ss.fork(run, at="frame=20", changes={"rates": {"W1": 2.0}})  # a warning, were the frames before it others
    np.testing.assert_array_equal(fork.params["W0"][:21], run.params["W0"][:21])
    assert np.abs(fork.params["W0"][-1] - run.params["W0"][-1]).max() > 1e-6


def test_frames_are_those_of_a_run_and_silence_no_warning_of_the_reader():
    run = ss.evolve(LOSS, START, FLOWS["by both"], until=UNTIL, record=ss.Uniform(frames=30))
    seen = list(evolving.frames(LOSS, START, FLOWS["by both"], until=UNTIL, record=ss.Uniform(frames=30)))
    assert [clock["t"] for clock, _ in seen] == run.t.tolist()
    np.testing.assert_array_equal([vector for _, vector in seen], [LAYOUT.pack(run.at(i)) for i in range(run.frames)])
    for _ in evolving.frames(LOSS, START, ss.GradientFlow(), until=1.0):
        assert np.geterr()["over"] != "ignore"


def test_a_fork_keeps_as_many_frames_as_either_part():
    few, many = ss.GradientFlow(restart_frames=3), ss.GradientFlow(restart_frames=9)
    assert [Forked(at=1.0, ends=2.0, before=a, after=b).waiting(100) for a, b in ((few, many), (many, few))] == [9, 9]
