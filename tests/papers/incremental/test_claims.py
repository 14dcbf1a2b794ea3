"""The claims of incremental learning: where they hold, where they fail, and what decides nothing."""

from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.claims.claim import Claim
from stagescope.claims.comparison import Regime
from stagescope.core.errors import StagescopeError
from stagescope.papers.incremental.claims import CLAIMS, HEAD_CLAIMS
from stagescope.papers.incremental.claims_escape import escapes
from stagescope.papers.incremental.observables import dense
from stagescope.papers.incremental.regression import RegressionForms, noises
from stagescope.readings.reading import reading
from stagescope.runs.run import Arrays
from tests.readings.judged import Judged
from validation.nulls.incremental import FROZEN, NULLS

LAWS = {"exact": ss.RegressionLoss, "mirror": ss.MirrorFlow}
UNTIL = {"exact": 6000.0, "mirror": 600.0}


def verdicts(run):
    return Judged(run, HEAD_CLAIMS, "ISA:")


def flow(law, *, heads=3, gains=(4.0, 2.0, 1.0), positions=6, sigma=1e-5, until=None, frames=600):
    model = ss.RegressionHeads(positions=positions, gains=gains, heads=heads)
    record = ss.LogSpaced(frames=frames, first=1e-2)
    moved = ss.GradientFlow(rtol=1e-12)
    return ss.evolve(LAWS[law](model=model), model.init(1, sigma), moved, until=until or UNTIL[law], record=record)


@pytest.mark.long
@pytest.mark.parametrize("law", LAWS)
def test_claims_on_the_flows(law):
    found = verdicts(flow(law))
    judged = ("plateaus", "order", "competition", "cooperation", "head-limit", "parting", "escape", "escape-law", "wkb")
    assert {name: found[name].verdict for name in judged} == dict.fromkeys(judged, "confirmed")
    assert {found[name].verdict for name in ("nearest", "stays")} == {"not applicable"}
    assert found["first"].verdict == "inconclusive", "6 positions are too few"
    assert (found["first"].predicted_error or 0.0) > 0.2 * found["first"].predicted
    assert found["parting"].measured / found["parting"].predicted == pytest.approx(1, abs=0.06)
    assert found["escape"].measured / found["escape"].predicted == pytest.approx(1, abs=0.06)
    assert all(row.kind is not None for row in found.values())


@pytest.mark.long
def test_a_coarse_record_is_read_as_well():
    """Frames a third of the time passed apart: the run is replayed, and verdicts and numbers are those of the fine one."""
    fine, coarse = verdicts(flow("mirror", until=200.0)), verdicts(flow("mirror", until=200.0, frames=30))
    assert {name: row.verdict for name, row in coarse.items()} == {name: row.verdict for name, row in fine.items()}
    assert coarse["parting"].measured == pytest.approx(fine["parting"].measured, rel=0.02)


def test_the_slope_is_a_limit_that_may_be_late():
    """Close gains, many heads: by the closed forms alone the mirror limit is not reached; WKB needs no limit."""
    run = flow("mirror", heads=5, gains=(1.96, 1.4, 1.0), positions=20, sigma=1e-4)
    found = verdicts(run)
    assert found["escape-law"].verdict == "inconclusive"
    forms = RegressionForms((1.96, 1.4, 1.0), 20, 5, mirror=True)
    assert forms.slope_between(noises(1e-4)) > 1.2 * forms.escape_slope
    assert escapes(reading(run).evidence).slope / forms.escape_slope == pytest.approx(1.40, abs=0.05)
    assert found["wkb"].verdict == "confirmed"
    assert found["cooperation"].verdict == "inconclusive", "5 heads on 3 groups"


@pytest.mark.long
def test_the_escape_law_is_decided_elsewhere():
    """A flow too far from the limit names settings at which it is reached, and is judged there."""
    chosen = {"heads": 4, "gains": (1.9, 1.4), "positions": 14, "init_scale": 1e-4, "until": 1500.0}
    run = ss.run_study("incremental", model="mirror", progress=False, **chosen)
    row = {row.tag: row for row in ss.check(run, elsewhere=True)}["ISA:escape-law"]
    assert row.verdict == "inconclusive"
    assert row.elsewhere.verdict.verdict == "confirmed", row.elsewhere.verdict.reason


@pytest.mark.parametrize("law", LAWS)
def test_first_transition_in_closed_form(law):
    found = verdicts(flow(law, heads=2, gains=(4.6, 2.3), positions=300, sigma=1e-4, until=200.0))
    assert found["first"].verdict == "confirmed"


@pytest.mark.parametrize("law", LAWS)
def test_equal_heads(law):
    found = verdicts(flow(law, sigma=0.0, until=100.0))
    assert {found[name].verdict for name in ("stays", "plateaus")} == {"confirmed"}
    assert {found[name].verdict for name in ("cooperation", "escape-law", "wkb", "parting")} == {"not applicable"}
    early = verdicts(flow(law, sigma=0.0, until=5.0))
    assert early["stays"].verdict == "inconclusive"


@pytest.mark.parametrize("heads", [1, 2])
def test_fewer_heads_than_groups(heads):
    found = verdicts(flow("exact", heads=heads, until=1500.0))
    assert found["head-limit"].verdict == found["plateaus"].verdict == "confirmed"


def test_a_run_that_ended_too_early_confirms_nothing():
    found = verdicts(flow("mirror", until=0.5))
    assert "confirmed" not in {row.verdict for row in found.values()}
    first = verdicts(flow("exact", until=20.0))
    late = ("cooperation", "head-limit", "escape-law", "wkb", "order")
    assert {first[name].verdict for name in late} == {"inconclusive"}
    failed = flow("exact", until=200.0)
    assert "confirmed" not in {row.verdict for row in verdicts(replace(failed, status="diverged")).values()}


@pytest.mark.long
def test_regression_transformer_keeps_the_flow_s_time():
    """d=8, N=8, H=3, batches of 128, lr .03, noise 1e-2: t_1, t_2, t_3 within 5 %."""
    run = ss.run_study("incremental", "regression-transformer", seed=21, init_seed=4, feature_seed=5, steps=2500, progress=False)
    found = verdicts(run)
    assert found["clock"].verdict == "confirmed"
    assert None not in ss.stages(run).events.values()
    assert found["order"].verdict == "confirmed"
    assert found["plateaus"].verdict == "inconclusive", "plateau 1 falls by more than the tolerance while it lasts"
    assert found["escape-law"].verdict == "not applicable"


SMALL = {"vocab": 5, "spans": (1, 1), "pad": 2, "sequences": 1500, "heads": 2, "importance_ratio": 1.8}


@pytest.mark.long
def test_heads_under_a_flow_part_at_the_landscape_s_rate():
    """The motion of equal heads under a flow is one head at rates H and 1/H: as two heads that start equal move."""
    features = ss.RandomFeatures(kind="gram-schmidt", seed=4)
    chain = ss.LaggedChain(vocab=5, groups=((1,), (2,)), importances=(2.0, 1.0), features=features)
    model = ss.PositionalHeads(vocab=5, heads=2, context=3, targets=1)
    loss, moved = ss.HeadsLoss(model=model, process=chain, sequences=300, labels="soft"), ss.GradientFlow(rtol=1e-9)
    run = ss.evolve(loss, model.init(0, 1e-3), moved, until=3000, record=ss.LogSpaced(frames=120))
    start = {name: np.repeat(np.mean(run.params[name][0], axis=0, keepdims=True), 2, axis=0) for name in run.params}
    both = ss.evolve(loss, start, moved, until=3000, record=ss.AtTimes(at=tuple(reading(run).dense.t[1:].tolist())))
    equal = reading(run).equal_heads(None)
    np.testing.assert_allclose(equal.loss, both.series["loss"], atol=1e-8)
    for name in run.params:
        np.testing.assert_allclose(equal.params[name], both.params[name], atol=1e-7)
    found = verdicts(run)["parting"]
    assert found.verdict == "confirmed"
    assert found.measured == pytest.approx(found.predicted, rel=0.02)


@pytest.mark.parametrize(("heads", "gains"), [(3, (2.0, 2.0, 1.0)), (1, (2.0, 1.0)), (2, (2.0,))])
def test_nothing_leaves_plateau_one(heads, gains):
    """Equal gains, one head, or one group."""
    assert verdicts(flow("mirror", heads=heads, gains=gains, until=5.0, frames=50))["wkb"].verdict == "not applicable"


def test_small_logits_keep_the_clock():
    chosen = {"scale": 0.25, "rate_values": 5.0, "rate_attention": 5.0, "steps": 2200, "init_seed": 3, "feature_seed": 1}
    found = verdicts(ss.run_study("incremental", "gd-ladder", progress=False, **SMALL, **chosen))
    assert found["clock"].verdict == "confirmed", found["clock"].reason
    judged = ("order", "nearest", "competition", "head-limit")
    assert {name: found[name].verdict for name in judged} == dict.fromkeys(judged, "confirmed")
    assert found["plateaus"].verdict != "violated", found["plateaus"].reason
    assert found["cooperation"].verdict == "confirmed", found["cooperation"].reason


@pytest.mark.long
def test_strong_logits_are_outside_the_clock():
    chosen = {"rate_values": 2.0, "rate_attention": 2.0, "steps": 1000, "init_scale": 1e-4, "scale": 1.5, "init_seed": 3}
    run = ss.run_study("incremental", "gd-ladder", progress=False, **SMALL, **chosen)
    found = verdicts(run)
    assert found["clock"].verdict == "inconclusive"
    assert not reading(run).evidence.clock.regime.holds
    assert found["parting"].verdict == "confirmed", found["parting"].reason


def test_equal_heads_of_the_model_stay():
    chosen = {"rate_values": 2.0, "rate_attention": 1.0, "steps": 400, "init_scale": 0.0}
    found = verdicts(ss.run_study("incremental", "gd-ladder", progress=False, **SMALL, **chosen))
    assert found["stays"].verdict == "confirmed"
    assert found["clock"].verdict == "inconclusive", "block rates differ"


OUTSIDE = {
    "single lags": ("heads divide the lags inside a span", {"spans": (2, 2), "optimizer": "gd"}),
    "distinct": ("less than 1.3 times the next", {"importance_ratio": 1.1}),
    "sample": ("the error of estimation", {"sequences": 40, "labels": "hard"}),
    "disjoint": ("groups of lags overlap", {"spans": (3, 3), "stride": 2, "optimizer": "adam"}),
}


@pytest.mark.parametrize("kind", OUTSIDE)
def test_outside_the_ladder(kind):
    run = ss.run_study("incremental", "gd-ladder", progress=False, **{**SMALL, "steps": 60, **OUTSIDE[kind][1]})
    assert verdicts(run)["plateaus"].verdict == "inconclusive"
    assert OUTSIDE[kind][0] in "; ".join(why for holds, why in reading(run).evidence.assumptions() if not holds)


def test_heads_that_begin_apart():
    """Only claims about competing heads and about parting need them alike."""
    chosen = {**SMALL, "steps": 200, "rate_values": 2.0, "rate_attention": 2.0, "init_scale": 2.0}
    run = ss.run_study("incremental", "gd-ladder", progress=False, **chosen)
    found, evidence = verdicts(run), reading(run).evidence
    assert {found[name].verdict for name in ("competition", "cooperation", "parting")} == {"inconclusive"}
    assert all(holds for holds, _ in evidence.assumptions())
    assert not evidence.alike(0.8)[0]


TINY = {"vocab": 4, "sequences": 40, "steps": 30}
KINDS = {
    "heads": ("ladder", TINY | {"optimizer": "gd", "rate_values": 3.0, "rate_attention": 3.0, "labels": "soft"}),
    "content": ("published", TINY | {"batch": 40, "watched": 10, "steps": 10}),
    "transformer": (
        "published-transformer",
        TINY | {"batch": 20, "watched": 10, "width": 8, "mlp": 0, "dropout": 0.0, "steps": 4},
    ),
    "regression": ("ode-exact", {"positions": 5, "until": 100.0, "init_scale": 0.1}),
    "mirror": ("published-flow", {"positions": 5, "until": 50.0, "init_scale": 0.1}),
    "regression-transformer": ("regression-transformer", {"steps": 60}),
}
FLOWING = ("regression", "mirror", "regression-transformer")


FEW = [(kind, *few) for kind in KINDS for few in ((1, 2), (2, 1)) if (kind, *few) != ("transformer", 2, 1)]
"""One transformer is enough: it takes seconds to compile."""


@pytest.mark.long
@pytest.mark.parametrize(("kind", "groups", "heads"), FEW)
def test_few_groups_or_heads_of_every_kind(kind, groups, heads):
    """Comparisons are made out of regime too, and never fail."""
    preset, options = KINDS[kind]
    few = {"gains": (3.0, 1.5)[:groups]} if kind in FLOWING else {"spans": (2, 2)[:groups]}
    found = verdicts(ss.run_study("incremental", preset, progress=False, heads=heads, **few, **options))
    for name in ("competition", "cooperation", "parting", "escape", "escape-law", "wkb"):
        assert found[name].verdict == "not applicable"


def test_a_failure_leaves_one_row_undecided():
    def broken(_):
        raise StagescopeError("the companion run diverged")

    row = Claim(tag="ISA:wkb", statement="words", regime=lambda _: Regime(True, "always"), compare=broken).judge(
        flow("mirror", until=0.1, frames=3), None
    )
    assert row.verdict == "inconclusive"
    assert "diverged" in row.reason


OF_CLAIM = NULLS["incremental"]


@pytest.mark.long
@pytest.mark.parametrize("name", {null.name: None for nulls in OF_CLAIM.values() for null in nulls})
def test_nulls_confirm_nothing_that_is_false_there(name):
    """One seed of each; `python -m validation calibration` draws thirty. Numbers violate the claims, in their regimes."""
    null = next(null for nulls in OF_CLAIM.values() for null in nulls if null.name == name)
    run, about = null.make(7), [claim for claim in CLAIMS if null in OF_CLAIM[claim.tag]]
    stopping = set(about) - set(HEAD_CLAIMS)
    rows = [
        row for row in (ss.check(run) if stopping else reading(run).judge(about)) if row.tag in {claim.tag for claim in about}
    ]
    wanted = {"inconclusive"} if null is FROZEN else {"violated"}
    assert {row.verdict for row in rows} == wanted, [row.reason for row in rows]


def test_every_claim_has_a_kind_and_a_null_that_violates_it():
    assert set(OF_CLAIM) == {claim.tag for claim in CLAIMS}
    assert all(claim.kind and set(OF_CLAIM[claim.tag]) - {FROZEN} for claim in CLAIMS)


@pytest.mark.parametrize("sigma", [1e-3, 1e-6, 2e-8, 1e-8, 1e-10])
def test_the_noises_beside_a_run_are_far_from_its_own(sigma):
    own, middle, far = noises(sigma)
    assert own == sigma
    assert abs(np.log10(far / own)) >= 3
    assert middle == pytest.approx(np.sqrt(own * far))
    assert far >= 1e-11


def test_a_run_that_its_law_does_not_make_is_read_as_it_is():
    """A replay of fewer frames would undo what is shown."""
    run = flow("mirror", until=100.0, frames=200)
    assert dense(run) is not run
    slow = replace(run, series=Arrays.of({**run.series, "t": 3 * run.t}), memo={})
    assert dense(slow) is slow
    before, after = (reading(each).evidence.times for each in (run, slow))
    np.testing.assert_allclose(after[:2], 3 * np.array(before[:2]), rtol=0.01)
