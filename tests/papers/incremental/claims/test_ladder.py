"""The claims of incremental learning on staircases drawn by hand, where every verdict is known."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.papers.incremental.claims import HEAD_CLAIMS, departure, rungs
from stagescope.papers.incremental.evidence import Clock, Curve, Evidence, Task
from stagescope.papers.incremental.stages import Heads
from tests.readings.stand_in import StandIn

CLOCK = Clock(ss.Regime(True, "clock"), 0.15)


def synthetic(loss_at_plateau=0.5, apart=False, parts=None, nearest=1, owners=((1.0, 0.0), (0.0, 1.0))):
    """A staircase of levels 1, .5, 0 with t_1 = 10 and t_2 = 100, and its evidence, on a short run that is not read.

    Two heads attend to both groups alike, from t = 10 on to the first one, unless they are `apart`, and part at 95.
    """
    time = np.geomspace(0.1, 1000, 400)
    loss = np.where(time < 10, 1.0, np.where(time < 100, loss_at_plateau, 0.0)) + 0.01 * np.exp(-time)
    mass = np.full((400, 2, 2), 0.3)
    mass[time >= 8] = ((0.9, 0.1), (0.1, 0.9)) if apart else ((0.9, 0.1), (0.9, 0.1))
    mass[time >= 95] = ((0.9, 0.1), (0.1, 0.9))
    if parts is None:
        parts = np.where((time >= 100)[:, None, None], np.array(owners), 0.0)
        parts[:, 0, 0] = time >= 10
    heads = Heads(
        time, loss, np.array([1.0, 0.5, 0.0]), np.ones(400), np.zeros(400), mass, nearest=lambda frame: nearest, parts=parts
    )
    model = ss.RegressionHeads(positions=6, gains=(4.0, 2.0, 1.0), heads=3)
    run = ss.evolve(ss.MirrorFlow(model=model), model.init(1, 1e-5), ss.GradientFlow(), until=0.1, record=ss.LogSpaced(frames=3))
    return run, Evidence(run, heads, Task((2.0, 1.0), 2, predicts=True))


def judged(run, evidence):
    return {claim.tag.removeprefix("ISA:"): claim.judge(run, evidence) for claim in HEAD_CLAIMS}


@pytest.mark.parametrize(("gains", "heads"), [((2.0,), 1), ((2.0,), 2), ((2.0, 1.0), 1), ((2.0, 1.9), 2)])
@pytest.mark.parametrize("level", [1.0, 0.5, 0.0])
def test_every_comparison_of_a_staircase(gains, heads, level):
    """With few groups or heads, before, on and after the first step."""
    run, evidence = synthetic()
    k, seen = len(gains), evidence.heads
    parts = {"levels": np.array([1.0, 0.5, 0.0][: k + 1]), "mass": seen.mass[:, :heads, :k], "parts": seen.parts[:, :heads, :k]}
    seen = replace(seen, loss=np.maximum(seen.loss, level), **parts)
    row = judged(run, replace(evidence, heads=seen, task=Task(gains, heads, predicts=True)))
    assert (row["competition"].verdict == "not applicable") == (k == 1 or heads == 1)


def shares(first, second):
    """Features that are learned at two times, each by a head of its own."""
    time = np.geomspace(0.1, 1000, 400)
    return np.stack([time > first, time > second], axis=1)[:, None, :] * np.eye(2)


def test_claims_can_fail():
    right = judged(*synthetic())
    for name in ("plateaus", "competition", "cooperation", "order"):
        assert right[name].verdict == "confirmed", right[name].reason
    assert right["nearest"].verdict == "violated", "plateau 2 predicts as class 1"
    assert judged(*synthetic(loss_at_plateau=0.6))["plateaus"].verdict == "violated"
    assert judged(*synthetic(apart=True))["competition"].verdict == "violated", "one head is on group 2 on plateau 1"
    assert judged(*synthetic(apart=True))["cooperation"].verdict == "violated", "they parted before t_1"
    run, evidence = synthetic()
    below = replace(evidence, task=replace(evidence.task, gains=(2.0, 1.0), heads=1))
    assert judged(run, below)["head-limit"].verdict == "violated", "one head below level 1"


@pytest.mark.parametrize(("parameters", "verdict"), [(280, "confirmed"), (320, "inconclusive")])
def test_a_student_of_many_parameters_does_not_settle(parameters, verdict):
    """On 10,000 sampled tokens p parameters cost p/20,000 nats; the last step of .5 nats allows 3 % of itself, .015 nats."""
    run, evidence = synthetic()
    task = replace(evidence.task, of_student=parameters, targets=10_000)
    run = replace(run, study="incremental", config={"model": "content", "labels": "hard", "fresh": False, "steps": 40})
    row = judged(run, replace(evidence, run=run, task=task))
    for name in ("head-limit", "cooperation"):
        assert row[name].verdict == verdict, row[name].reason
        if verdict == "inconclusive":
            assert row[name].elsewhere.options == {"fresh": True, "steps": 80}


def test_what_the_flow_says_does_not_apply_to_other_runs():
    run, evidence = synthetic()
    row = judged(run, evidence)
    assert row["first"].verdict == row["clock"].verdict == "not applicable"


@pytest.mark.parametrize(
    ("owners", "verdict"),
    [
        (((1.0, 0.0), (0.0, 1.0)), "confirmed"),
        (((0.9, 0.0), (0.1, 0.9)), "confirmed"),
        (((1.0, 1.0), (0.0, 0.0)), "violated"),  # one head has both groups
        (((1.0, 0.5), (0.0, 0.5)), "inconclusive"),  # two heads share a group
    ],
)
def test_groups_are_divided_if_each_has_a_head_of_its_own(owners, verdict):
    row = judged(*synthetic(owners=owners))["cooperation"]
    assert row.verdict == verdict, row.reason


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_heads_have_no_names(order):
    """Permuted heads: the same verdicts and numbers."""
    run, evidence = synthetic()
    seen = evidence.heads
    other = replace(evidence, heads=replace(seen, mass=seen.mass[:, order], parts=seen.parts[:, order]))
    for name, row in judged(run, evidence).items():
        assert (row.verdict, row.measured) == (judged(run, other)[name].verdict, judged(run, other)[name].measured)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (10, 100, "confirmed"),
        (100, 10, "violated"),
        (10, 1e9, "inconclusive"),
        (1e9, 10, "inconclusive"),
        (50, 50, "inconclusive"),
    ],
)
def test_the_order_of_features(first, second, verdict):
    """A feature that is never learned has no place in the order; two learned at once have none either."""
    assert judged(*synthetic(parts=shares(first, second)))["order"].verdict == verdict


@pytest.mark.parametrize("share", [0.22, 0.45])
def test_less_than_half_of_a_feature_is_not_acquired(share):
    parts = shares(100, 10)
    parts[:, 1] *= share
    row = judged(*synthetic(parts=parts))["order"]
    assert (row.verdict, row.measured) == ("inconclusive", None)


@given(
    rate=st.floats(0.02, 1.0),
    power=st.sampled_from([0.5, 0.8, 1.0, 2.0]),
    noise=st.sampled_from([0.0, 0.003]),
    seed=st.integers(0, 99),
)
def test_a_loss_without_stages_confirms_no_plateau(rate, power, noise, seed):
    """exp(-(rate t)^power) crosses every level and slows down at none."""
    run, evidence = synthetic()
    loss = np.exp(-((rate * evidence.time) ** power)) + noise * np.random.default_rng(seed).standard_normal(400)
    row = judged(run, replace(evidence, heads=replace(evidence.heads, loss=loss, smooth=noise == 0)))
    assert {row[name].verdict for name in ("plateaus", "nearest", "competition")} == {"inconclusive"}


@pytest.mark.parametrize(
    ("span", "last", "loss", "error", "verdict"),
    [
        (2, 0.0, 0.57, 0.0, "confirmed"),  # 14 % above: on its way down
        (2, 0.0, 0.58, 0.0, "violated"),
        (2, 0.0, 0.49, 0.0, "confirmed"),
        (2, 0.0, 0.48, 0.0, "violated"),  # 4 % below: no member of the class
        (2, 0.0, 0.48, 0.03, "inconclusive"),  # unless the level is not known better
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
    bend = 1e-4 * np.log(time / 20) ** 3  # it is slowest at 20, by more than rounding
    fall = np.where(time < 10, 1.0, 0.55 - 0.04 * np.log(np.maximum(time, 10) / 10) - bend)
    noise = 0.002 * np.random.default_rng(0).standard_normal(2000)
    curve = {"time": time, "agreement": np.ones(2000), "contrast": np.zeros(2000), "mass": np.ones((2000, 2, 2)), "parts": None}
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


def clocked(end, model=(1.0, 10.0), its=(1.0, 10.0), heads=2):
    """A model with transitions at given times, seen up to an end, and a flow with its own."""
    run, evidence = synthetic()

    def stairs(until, at):
        time = np.geomspace(0.01, until, 4000)
        return time, 1.0 - 0.5 * sum((time >= t).astype(float) for t in at)

    time, loss = stairs(end, model)
    reading = StandIn(regression_flow=lambda until: Curve(*stairs(until, its), evidence.levels))
    task = replace(evidence.task, heads=heads)
    heads_seen = replace(evidence.heads, time=time, loss=loss)
    return judged_clock(run, replace(evidence, heads=heads_seen, task=task, reading=reading, clock=CLOCK))


def judged_clock(run, evidence):
    return next(claim for claim in HEAD_CLAIMS if claim.tag == "ISA:clock").judge(run, evidence)


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
    made = replace(evidence, heads=parts, task=task, reading=StandIn(regression_flow=lambda _: its), clock=CLOCK)
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
