"""Claims on what was predicted from the start: confirmed on a flow, and not where the prediction is of something else."""

from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.landscape.saddle_path import Predicted
from stagescope.papers.focus_dilution import claims
from stagescope.papers.focus_dilution.claims_cycle import room
from stagescope.papers.focus_dilution.claims_saddles import along_leg, leg_rate
from stagescope.papers.focus_dilution.observables import TokenCurves
from stagescope.readings.reading import reading
from tests.readings.stand_in import StandIn

CLAIMS = {claim.tag.removeprefix("FD:"): claim for claim in claims.CLAIMS}


@pytest.fixture(scope="module")
def run():
    """ref, to shortly after Q2, with about 400 frames after the refinement."""
    return ss.run_study("focus-dilution", "ref", until=320.0, progress=False)


@pytest.fixture(scope="module")
def evidence(run):
    return reading(run).evidence


@pytest.fixture(scope="module")
def path(evidence):
    return evidence.predicted[0]


def judged(tag, evidence, path=None):
    changed = evidence if path is None else replace(evidence, reading=StandIn(prediction=path, unpredicted=""))
    return CLAIMS[tag].judge(evidence.run, changed)


def moved(path, factor=1.0, **events):
    """The path with all times multiplied, and some events replaced."""
    times = {
        name: event if event.t is None else Predicted(factor * event.t, factor * event.low, factor * event.high)
        for name, event in path.events.items()
    }
    return replace(path, events=times | events)


@pytest.mark.long
def test_a_flow_does_what_was_predicted_and_what_lies_behind_its_end_is_open(evidence):
    sequence, times = (judged(tag, evidence) for tag in ("predicted-sequence", "predicted-times"))
    assert (sequence.verdict, times.verdict) == ("confirmed", "confirmed")
    assert sequence.predicted == sequence.measured == "E1 Q1 E2 Q2"
    assert "not reached yet, predicted after the end: E3" in sequence.reason
    assert times.measured / times.predicted == pytest.approx(1, abs=2e-3)


def test_events_in_another_order_violate_the_sequence(evidence, path):
    swapped = moved(path, E2=path["Q2"], Q2=path["E2"])
    row = judged("predicted-sequence", evidence, swapped)
    assert row.verdict == "violated"
    assert "E2 came before Q2" in row.reason


def test_intervals_that_overlap_leave_the_order_open(evidence, path):
    e2, q2 = (replace(path[name], low=150.0, high=300.0) for name in ("E2", "Q2"))
    assert (
        judged("predicted-sequence", evidence, moved(path, E2=replace(e2, t=q2.t), Q2=replace(q2, t=e2.t))).verdict
        == "inconclusive"
    )


@pytest.mark.parametrize("beyond", [np.inf, 1e4])
def test_an_event_that_should_not_have_come_violates_the_sequence(evidence, path, beyond):
    row = judged("predicted-sequence", evidence, moved(path, Q2=Predicted(None, reason="-", beyond=beyond)))
    assert row.verdict == "violated"
    assert "Q2 came" in row.reason


def test_a_path_that_stops_before_an_event_says_nothing_of_it(evidence, path):
    assert (
        judged("predicted-sequence", evidence, moved(path, Q2=Predicted(None, reason="-", beyond=200.0))).verdict == "confirmed"
    )


def test_an_event_that_did_not_come_violates_both(evidence, path):
    early = moved(path, E3=Predicted(250.0, 249.0, 251.0))
    assert judged("predicted-sequence", evidence, early).verdict == "violated"
    row = judged("predicted-times", evidence, early)
    assert row.verdict == "violated"
    assert "E3, predicted at 250, has not come by 320" in row.reason


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_times_that_are_off_by_a_tenth_are_violated(evidence, path, factor):
    assert judged("predicted-times", evidence, moved(path, factor)).verdict == "violated"


def test_a_wide_interval_leaves_times_open(evidence, path):
    wide = replace(path["Q1"], low=0.9 * path["Q1"].t, high=1.1 * path["Q1"].t)
    assert judged("predicted-times", evidence, moved(path, Q1=wide)).verdict == "inconclusive"


def test_the_tolerance_falls_with_the_start():
    assert room(1e-3) == pytest.approx(0.05)
    assert room(1e-4) == pytest.approx(0.01, rel=0.01)
    assert room(1e-8) == 0.01


def test_a_short_run_and_a_large_start_are_out_of_regime(evidence):
    curves = evidence.curves
    first = curves.time <= 100
    cut = TokenCurves(curves.time[first], {name: block[first] for name, block in curves.params.items()}, curves.law)
    row = judged("predicted-sequence", replace(evidence, curves=cut))
    assert not row.in_regime
    assert "a sequence needs 3" in row.reason
    large = ss.run_study("focus-dilution", "ref", init_scale=2e-3, until=5.0, progress=False)
    assert "directions open together" in judged("predicted-times", reading(large).evidence).regime


def test_growth_that_is_finite_decides_the_critical_scale(evidence, path):
    """The path is cut: it ends above the floor with E2 and what follows never coming."""
    never = {
        name: Predicted(None, reason="nothing grows faster than 0", beyond=np.inf, absent=True) for name in ("E2", "Q2", "E3")
    }
    stopped = replace(moved(path, **never), legs=path.legs[:3])
    assert not judged("critical-scale", evidence).in_regime
    row = judged("critical-scale", evidence, stopped)
    assert row.verdict == "violated"
    assert "E2, Q2 came" in row.reason
    curves = evidence.curves
    before = curves.time <= 170
    quiet = TokenCurves(curves.time[before], {name: block[before] for name, block in curves.params.items()}, curves.law)
    row = judged("critical-scale", replace(evidence, curves=quiet, reading=StandIn(prediction=stopped, unpredicted="")))
    assert row.verdict == "confirmed"


def test_the_leg_decides_where_the_run_has_not_settled(evidence, path):
    row = judged("embedding-rate", evidence)
    assert row.verdict == "confirmed"
    assert "along the leg (1,1)" in row.reason
    assert leg_rate(evidence, 1, 1).rate == pytest.approx(0.0356, abs=3e-4)
    assert row.measured / row.predicted == pytest.approx(0.978, abs=0.01)


@pytest.mark.parametrize("factor", [1.4, 1 / 1.4])
def test_a_rate_that_is_false_is_not_confirmed_along_the_leg(evidence, path, factor):
    """The null of stretched time, on the side of the prediction."""
    other = replace(path, rates={kind: factor * rates for kind, rates in path.rates.items()})
    assert along_leg(replace(evidence, reading=StandIn(prediction=other, unpredicted="")), 1, 1, 0.1).holds is False


def test_no_leg_without_a_path_or_an_opening(evidence, path):
    assert leg_rate(replace(evidence, reading=StandIn(prediction=None, unpredicted="-")), 1, 1) is None
    assert leg_rate(evidence, 1, 0) is None  # attention opens there
    assert leg_rate(evidence, 3, 2) is None
