"""The claims of incremental learning: where they hold, where they fail, and what decides nothing."""

from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.detect.incremental_stages import Heads
from stagescope.errors import StagescopeError
from stagescope.theory import incremental
from stagescope.theory.claim import Claim, Regime
from stagescope.theory.incremental_clock import departure, rungs
from stagescope.theory.incremental_evidence import Curve, Evidence, Task

LAWS = {"exact": ss.RegressionLoss, "mirror": ss.MirrorFlow}
UNTIL = {"exact": 6000.0, "mirror": 600.0}


def verdicts(run):
    return {row.tag.removeprefix("ISA:"): row for row in ss.check(run)}


def flow(law, *, heads=3, gains=(4.0, 2.0, 1.0), positions=6, sigma=1e-5, until=None, frames=600):
    model = ss.RegressionHeads(positions=positions, gains=gains, heads=heads)
    record = ss.LogSpaced(frames=frames, first=1e-2)
    moved = ss.GradientFlow(rtol=1e-12)
    return ss.evolve(LAWS[law](model=model), model.init(1, sigma), moved, until=until or UNTIL[law], record=record)


@pytest.mark.parametrize("law", LAWS)
def test_claims_on_the_flows(law):
    found = verdicts(flow(law))
    judged = ("plateaus", "order", "competition", "cooperation", "head-limit", "parting", "escape", "escape-law", "wkb")
    assert {name: found[name].verdict for name in judged} == dict.fromkeys(judged, "confirmed")
    assert {found[name].verdict for name in ("nearest", "symmetric", "stays", "clock")} == {"not applicable"}
    assert found["first"].verdict == "inconclusive"
    assert "6 positions are fewer than 40" in found["first"].reason
    assert "reached only at t = infinity" in found["escape"].reason
    assert found["parting"].measured / found["parting"].predicted == pytest.approx(1, abs=0.06)
    assert found["escape"].measured / found["escape"].predicted == pytest.approx(1, abs=0.03)


def test_a_coarse_record_is_read_as_well():
    """Frames a third of the time passed apart: the run is replayed, and verdicts and numbers are those of the fine one."""
    fine, coarse = verdicts(flow("mirror", until=200.0)), verdicts(flow("mirror", until=200.0, frames=30))
    assert {name: row.verdict for name, row in coarse.items()} == {name: row.verdict for name, row in fine.items()}
    assert coarse["parting"].measured == pytest.approx(fine["parting"].measured, rel=0.02)


def test_the_slope_is_a_limit_that_may_be_late():
    """Close gains, many heads: the symmetric trajectory says that the mirror form is not reached; WKB needs no limit."""
    found = verdicts(flow("mirror", heads=5, gains=(1.96, 1.4, 1.0), positions=20, sigma=1e-4))
    assert found["escape-law"].verdict == "inconclusive"
    assert "which is reached later" in found["escape-law"].reason
    assert found["escape-law"].measured / found["escape-law"].predicted == pytest.approx(1.40, abs=0.03)
    assert found["wkb"].verdict == "confirmed"
    assert found["cooperation"].verdict == "inconclusive"
    assert "5 heads on 3 groups" in found["cooperation"].reason


@pytest.mark.parametrize("law", LAWS)
def test_first_transition_in_closed_form(law):
    found = verdicts(flow(law, heads=2, gains=(2.6, 1.3), positions=60, sigma=1e-4, until=80.0))
    assert found["first"].verdict == "confirmed"


@pytest.mark.parametrize("law", LAWS)
def test_equal_heads(law):
    found = verdicts(flow(law, sigma=0.0, until=100.0))
    assert {found[name].verdict for name in ("symmetric", "stays", "plateaus")} == {"confirmed"}
    assert {found[name].verdict for name in ("cooperation", "escape-law", "wkb", "parting")} == {"inconclusive"}
    early = verdicts(flow(law, sigma=0.0, until=5.0))
    assert early["stays"].verdict == "inconclusive"


@pytest.mark.parametrize("heads", [1, 2])
def test_fewer_heads_than_groups(heads):
    found = verdicts(flow("exact", heads=heads, until=1500.0))
    assert found["head-limit"].verdict == found["plateaus"].verdict == "confirmed"
    assert f"= min({heads}, 3)" in found["head-limit"].reason


def test_a_run_that_ended_too_early_confirms_nothing():
    found = verdicts(flow("mirror", until=0.5))
    assert "confirmed" not in {row.verdict for row in found.values()}
    first = verdicts(flow("exact", until=20.0))
    late = ("cooperation", "head-limit", "escape-law", "wkb", "order")
    assert {first[name].verdict for name in late} == {"inconclusive"}
    failed = flow("exact", until=200.0)
    assert "confirmed" not in {row.verdict for row in verdicts(replace(failed, status="diverged")).values()}


def test_regression_transformer_keeps_the_flow_s_time():
    """d=8, N=8, H=3, batches of 128, lr .03, noise 1e-2: t_1, t_2, t_3 within 5 %."""
    run = ss.run_study("incremental", "regression-transformer", seed=21, init_seed=4, feature_seed=5, steps=2500, progress=False)
    found = verdicts(run)
    assert found["clock"].verdict == "confirmed"
    assert all(f"t_{j} " in found["clock"].reason for j in (1, 2, 3))
    assert found["plateaus"].verdict == found["order"].verdict == "confirmed"
    assert found["escape-law"].verdict == "not applicable"


SMALL = {"vocab": 5, "spans": (1, 1), "pad": 2, "sequences": 1500, "heads": 2, "importance_ratio": 1.8}


def test_small_logits_keep_the_clock():
    chosen = {"scale": 0.35, "rate_values": 5.0, "rate_attention": 5.0, "steps": 1500, "init_seed": 3, "feature_seed": 1}
    found = verdicts(ss.run_study("incremental", "gd-ladder", progress=False, **SMALL, **chosen))
    assert found["clock"].verdict == "confirmed", found["clock"].reason
    assert "small-logit clock" in found["clock"].regime
    judged = ("plateaus", "order", "nearest", "competition", "head-limit")
    assert {name: found[name].verdict for name in judged} == dict.fromkeys(judged, "confirmed")
    assert found["cooperation"].verdict in ("confirmed", "inconclusive"), "heads need not be one-hot for the loss to be zero"


def test_strong_logits_are_outside_the_clock():
    chosen = {"rate_values": 2.0, "rate_attention": 2.0, "steps": 1000, "init_scale": 1e-4, "scale": 1.5, "init_seed": 3}
    found = verdicts(ss.run_study("incremental", "gd-ladder", progress=False, **SMALL, **chosen))
    assert found["clock"].verdict == "inconclusive"
    assert "outside the small-logit clock" in found["clock"].reason
    assert found["parting"].verdict == "confirmed", found["parting"].reason


def test_equal_heads_of_the_model_move_as_one():
    chosen = {"rate_values": 2.0, "rate_attention": 1.0, "steps": 400, "init_scale": 0.0}
    found = verdicts(ss.run_study("incremental", "gd-ladder", progress=False, **SMALL, **chosen))
    assert found["symmetric"].verdict == found["stays"].verdict == "confirmed"
    assert found["symmetric"].measured < 1e-12
    assert found["clock"].verdict == "inconclusive", "block rates differ"


OUTSIDE = {
    "spans": ({"spans": (2, 2), "optimizer": "gd"}, "divide the lags"),
    "close": ({"importance_ratio": 1.1}, "less than 1.3 times the next"),
    "few": ({"sequences": 40, "labels": "hard"}, "estimating from drawn tokens"),
    "overlap": ({"spans": (3, 3), "stride": 2, "optimizer": "adam"}, "groups of lags overlap"),
    "start": ({"init_scale": 1.0}, "only at the start"),
}


@pytest.mark.parametrize("kind", OUTSIDE)
def test_outside_the_ladder(kind):
    changes, words = OUTSIDE[kind]
    found = verdicts(ss.run_study("incremental", "gd-ladder", progress=False, **{**SMALL, "steps": 60, **changes}))
    assert found["plateaus"].verdict == "inconclusive"
    assert words in found["plateaus"].regime


def synthetic(loss_at_plateau=0.5, agreement=1.0, learned=None, nearest=1):
    """A staircase of levels 1, .5, 0 with t_1 = 10 and t_2 = 100, and its evidence, on a run of nothing."""
    time = np.geomspace(0.1, 1000, 400)
    loss = np.where(time < 10, 1.0, np.where(time < 100, loss_at_plateau, 0.0)) + 0.01 * np.exp(-time)
    mass = np.zeros((400, 2, 2))
    mass[:, :, 0] = 1.0
    mass[time >= 100, 1] = (0.0, 1.0)
    alike = np.where(time < 95, agreement, 0.1)
    contrast = np.where(time < 95, 0.0, 0.5)
    heads = Heads(time, loss, np.array([1.0, 0.5, 0.0]), alike, contrast, mass, nearest=lambda frame: nearest)
    run = flow("mirror", until=0.1, frames=3)
    return run, Evidence(run, heads, Task((2.0, 1.0), 2, predicts=True), learned)


def judged(run, evidence):
    return {claim.tag.removeprefix("ISA:"): claim.judge(run, evidence) for claim in incremental.HEAD_CLAIMS}


def test_claims_can_fail():
    right = judged(*synthetic())
    stuck = synthetic()
    alike = replace(stuck[1].heads, agreement=np.ones(400))
    assert judged(stuck[0], replace(stuck[1], heads=alike))["cooperation"].verdict == "violated"
    assert right["plateaus"].verdict == right["competition"].verdict == right["cooperation"].verdict == "confirmed"
    assert judged(*synthetic(loss_at_plateau=0.6))["plateaus"].verdict == "violated"
    apart = judged(*synthetic(agreement=0.9))
    assert apart["competition"].verdict == "inconclusive", "heads were not alike at the start"
    assert right["nearest"].verdict == "violated", "plateau 2 predicts as class 1"
    time = np.geomspace(0.1, 1000, 400)
    for first, second, verdict in ((10, 100, "confirmed"), (100, 10, "violated"), (10, 1e9, "inconclusive")):
        shares = np.stack([time > first, time > second], axis=1).astype(float)
        assert judged(*synthetic(learned=shares))["order"].verdict == verdict
    assert right["order"].verdict == "inconclusive"
    run, evidence = synthetic()
    below = replace(evidence, task=replace(evidence.task, gains=(2.0, 1.0), heads=1))
    assert judged(run, below)["head-limit"].verdict == "violated", "one head below level 1"


def test_a_failure_is_that_row_s_alone():
    def broken(_):
        raise StagescopeError("the run beside this one diverged")

    row = Claim("ISA:wkb", "words", lambda _: Regime(True, "always"), broken).judge(flow("mirror", until=0.1, frames=3), None)
    assert row.verdict == "inconclusive"
    assert "diverged" in row.reason


def test_departure():
    time, levels = np.linspace(0, 10, 101), np.array([4.0, 1.0, 0.0])
    flow_curve = Curve(time, np.interp(time, [2, 3, 7, 8], [4, 1, 1, 0]), levels)
    late = Curve(time, np.interp(time, [2, 3, 8, 9], [8, 2, 2, 0]), 2 * levels)
    np.testing.assert_allclose(rungs(flow_curve)[[0, 50, 100]], [0, 1, 2])
    assert departure(flow_curve, flow_curve) is None
    assert departure(late, flow_curve) == pytest.approx(7.1)
