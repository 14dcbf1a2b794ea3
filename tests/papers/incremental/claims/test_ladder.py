"""The claims of incremental learning on staircases drawn by hand, where every verdict is known."""

from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.incremental import claims as incremental
from stagescope.papers.incremental.claims.clock import departure, rungs
from stagescope.papers.incremental.evidence import Clock, Companions, Curve, Evidence, Task
from stagescope.papers.incremental.stages import Heads


def synthetic(loss_at_plateau=0.5, agreement=1.0, learned=None, nearest=1):
    """A staircase of levels 1, .5, 0 with t_1 = 10 and t_2 = 100, and its evidence, on a short run that is not read."""
    time = np.geomspace(0.1, 1000, 400)
    loss = np.where(time < 10, 1.0, np.where(time < 100, loss_at_plateau, 0.0)) + 0.01 * np.exp(-time)
    mass = np.zeros((400, 2, 2))
    mass[:, :, 0] = 1.0
    mass[time >= 100, 1] = (0.0, 1.0)
    alike = np.where(time < 95, agreement, 0.1)
    contrast = np.where(time < 95, 0.0, 0.5)
    heads = Heads(time, loss, np.array([1.0, 0.5, 0.0]), alike, contrast, mass, nearest=lambda frame: nearest)
    model = ss.RegressionHeads(positions=6, gains=(4.0, 2.0, 1.0), heads=3)
    run = ss.evolve(ss.MirrorFlow(model=model), model.init(1, 1e-5), ss.GradientFlow(), until=0.1, record=ss.LogSpaced(frames=3))
    return run, Evidence(run, heads, Task((2.0, 1.0), 2, predicts=True), learned)


def judged(run, evidence):
    return {claim.tag.removeprefix("ISA:"): claim.judge(run, evidence) for claim in incremental.HEAD_CLAIMS}


@pytest.mark.parametrize(("gains", "heads"), [((2.0,), 1), ((2.0,), 2), ((2.0, 1.0), 1), ((2.0, 1.9), 2)])
@pytest.mark.parametrize("level", [1.0, 0.5, 0.0])
def test_every_comparison_of_a_staircase(gains, heads, level):
    """With few groups or heads, before, on and after the first step."""
    run, evidence = synthetic()
    k = len(gains)
    parts = {"levels": np.array([1.0, 0.5, 0.0][: k + 1]), "mass": evidence.heads.mass[:, :heads, :k]}
    seen = replace(evidence.heads, loss=np.maximum(evidence.heads.loss, level), **parts)
    row = judged(run, replace(evidence, heads=seen, task=Task(gains, heads, predicts=True)))
    assert (row["competition"].verdict == "not applicable") == (k == 1 or heads == 1)


def test_claims_can_fail():
    right = judged(*synthetic())
    stuck = synthetic()
    alike = replace(stuck[1].heads, agreement=np.ones(400))
    assert judged(stuck[0], replace(stuck[1], heads=alike))["cooperation"].verdict == "violated"
    assert right["plateaus"].verdict == right["competition"].verdict == right["cooperation"].verdict == "confirmed"
    assert judged(*synthetic(loss_at_plateau=0.6))["plateaus"].verdict == "violated"
    assert judged(*synthetic(agreement=0.7))["competition"].verdict == "inconclusive", "heads were not alike at the start"
    assert judged(*synthetic(agreement=0.9))["competition"].verdict == "violated", "alike at the start, never on one group"
    assert right["nearest"].verdict == "violated", "plateau 2 predicts as class 1"
    time = np.geomspace(0.1, 1000, 400)
    for first, second, verdict in ((10, 100, "confirmed"), (100, 10, "violated"), (10, 1e9, "inconclusive")):
        shares = np.stack([time > first, time > second], axis=1).astype(float)
        assert judged(*synthetic(learned=shares))["order"].verdict == verdict
    assert right["order"].verdict == "inconclusive"
    run, evidence = synthetic()
    below = replace(evidence, task=replace(evidence.task, gains=(2.0, 1.0), heads=1))
    assert judged(run, below)["head-limit"].verdict == "violated", "one head below level 1"


@pytest.mark.parametrize(
    ("span", "last", "loss", "error", "verdict"),
    [
        (2, 0.0, 0.57, 0.0, "confirmed"),  # 14 % above: on its way down
        (2, 0.0, 0.58, 0.0, "violated"),
        (2, 0.0, 0.49, 0.0, "confirmed"),
        (2, 0.0, 0.48, 0.0, "violated"),  # 4 % below: no member of the class
        (2, 0.0, 0.48, 0.03, "confirmed"),  # unless the level is not known better
        (2, 0.45, 0.49, 0.0, "violated"),  # a fifth of the next step
        (1, 0.45, 0.497, 0.0, "violated"),
        (1, 0.45, 0.499, 0.0, "confirmed"),
    ],
)
def test_below_its_level_no_plateau_is_the_best_of_its_class(span, last, loss, error, verdict):
    run, evidence = synthetic(loss_at_plateau=loss)
    levels = np.array([1.0, 0.5, last])
    heads = replace(evidence.heads, levels=levels, loss=np.maximum(evidence.heads.loss, last))
    task = replace(evidence.task, span=span, errors=(0.0, error, 0.0))
    row = judged(run, (Stepped if span == 2 else Evidence)(run, heads, task))["plateaus"]
    assert row.verdict == verdict, row.reason


class Stepped(Evidence):
    """Adam's steps, for which spans are promised to 15 %."""

    @property
    def gradient(self):
        return False


def test_a_noisy_descent_does_not_rest():
    """Past t_1 the loss goes on falling by 5 % of the step with every doubling; single frames do not."""
    _, evidence = synthetic()
    time = np.geomspace(0.1, 40, 2000)
    fall = np.where(time < 10, 1.0, 0.55 - 0.04 * np.log(np.maximum(time, 10) / 10))
    noise = 0.002 * np.random.default_rng(0).standard_normal(2000)
    curve = {"time": time, "agreement": np.ones(2000), "contrast": np.zeros(2000), "mass": np.ones((2000, 2, 2))}
    for extra in (0.0, noise):
        falling = replace(evidence, heads=replace(evidence.heads, loss=fall + extra, **curve))
        assert falling.rested(1) is None
        assert falling.plateaus[0].drift == pytest.approx(-0.04, rel=0.5)
    still = replace(evidence, heads=replace(evidence.heads, loss=np.where(time < 10, 1.0, 0.5) + noise, **curve))
    assert still.rested(1) is not None


@pytest.mark.parametrize(("fall", "verdict"), [(0.0, "violated"), (0.02, "violated"), (0.06, "inconclusive")])
def test_a_plateau_left_too_early_is_not_judged(fall, verdict):
    """It is 5 % of the step above its level or more when left; falling by 6 % a doubling it had not settled, by 2 % it had."""
    run, evidence = synthetic()
    time = evidence.time
    slope = 0.5 * fall * np.log(100 / np.maximum(time, 10)) / np.log(2)
    loss = np.where(time < 10, 1.0, np.where(time < 100, 0.525 + slope, 0.0))
    row = judged(run, replace(evidence, heads=replace(evidence.heads, loss=loss)))["plateaus"]
    assert row.verdict == verdict, row.reason


def test_a_plateau_passed_below_its_level_is_violated_however_it_falls():
    run, evidence = synthetic()
    time = evidence.time
    loss = np.where(time < 10, 1.0, np.where(time < 100, 0.4 - 0.04 * np.log(np.maximum(time, 10) / 10), 0.0))
    row = judged(run, replace(evidence, heads=replace(evidence.heads, loss=loss)))["plateaus"]
    assert row.verdict == "violated", row.reason


def test_a_share_below_a_fifth_is_not_acquired():
    row = judged(*synthetic(learned=np.full((400, 2), 0.15)))["order"]
    assert (row.verdict, row.measured) == ("inconclusive", None)


def clocked(end, model=(1.0, 10.0), its=(1.0, 10.0), heads=2):
    """A model with transitions at given times, seen up to an end, and a flow with its own."""
    run, evidence = synthetic()

    def stairs(until, at):
        time = np.geomspace(0.01, until, 4000)
        return time, 1.0 - 0.5 * sum((time >= t).astype(float) for t in at)

    time, loss = stairs(end, model)
    made = Companions(flow=lambda until: Curve(*stairs(until, its), evidence.levels))
    task = replace(evidence.task, heads=heads)
    heads_seen = replace(evidence.heads, time=time, loss=loss)
    return judged_clock(run, replace(evidence, heads=heads_seen, task=task, companions=made, clock=Clock(True, "clock", 0.15)))


def judged_clock(run, evidence):
    return next(claim for claim in incremental.HEAD_CLAIMS if claim.tag == "ISA:clock").judge(run, evidence)


@pytest.mark.parametrize(
    ("changes", "verdict", "measured"),
    [
        ({"end": 20.0}, "confirmed", 1.0),
        ({"end": 5.0}, "inconclusive", 1.0),  # t_1 alone
        ({"end": 5.0, "heads": 1}, "confirmed", 1.0),
        ({"end": 10.5, "model": (1.0, 11.0)}, "inconclusive", 1.0),  # the model may still reach t_2 in time
        ({"end": 30.0, "model": (1.0, 40.0)}, "violated", 1.0),  # t_2 is at least 3 times too late
        ({"end": 5.0, "model": (1.3, 10.0)}, "violated", 1.3),
    ],
)
def test_the_clock_needs_what_the_flow_has_reached(changes, verdict, measured):
    row = clocked(**changes)
    assert row.verdict == verdict, row.reason
    assert row.measured == pytest.approx(measured, abs=0.005)


def test_a_third_transition_that_is_due_leaves_the_clock_open():
    """The flow passed t_3 just before the end: the model may still do so in time."""
    run, evidence = synthetic()
    levels, time = np.array([1.0, 0.6, 0.3, 0.0]), np.geomspace(0.01, 105.0, 4000)
    flow_time = np.geomspace(0.01, 210.0, 4000)
    its = Curve(flow_time, np.interp(flow_time, [0.9, 1.1, 9, 11, 99, 101], [1, 0.6, 0.6, 0.3, 0.3, 0]), levels)
    loss = np.interp(time, [0.9, 1.1, 9, 11], [1, 0.6, 0.6, 0.3])
    parts = replace(evidence.heads, time=time, loss=loss, levels=levels)
    task = Task((4.0, 2.0, 1.0), 3, predicts=True)
    made = replace(evidence, heads=parts, task=task, companions=Companions(flow=lambda _: its), clock=Clock(True, "clock", 0.15))
    row = judged_clock(run, made)
    assert row.verdict == "inconclusive"
    assert row.measured == pytest.approx(1.0, abs=0.01)


def test_departure():
    time, levels = np.linspace(0, 10, 101), np.array([4.0, 1.0, 0.0])
    flow_curve = Curve(time, np.interp(time, [2, 3, 7, 8], [4, 1, 1, 0]), levels)
    late = Curve(time, np.interp(time, [2, 3, 8, 9], [8, 2, 2, 0]), 2 * levels)
    np.testing.assert_allclose(rungs(flow_curve)[[0, 50, 100]], [0, 1, 2])
    assert departure(flow_curve, flow_curve) is None
    assert departure(late, flow_curve) == pytest.approx(7.1)
