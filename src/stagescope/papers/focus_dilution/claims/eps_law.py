"""Focus and dilution: how times depend on the initial scale."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.claims.over_runs import OverRuns
from stagescope.papers.focus_dilution.evidence import Evidence, beside, opening, reaching_second
from stagescope.papers.focus_dilution.ladder import saddle_visit
from stagescope.papers.focus_dilution.ladder.visit import SaddleVisit

DELAY = 0.1
"""Tolerance of a delay, as a share of ln 10 / rate: rates are claimed to a tenth."""


def _scaled(evidence: Evidence) -> Regime:
    """A flow from a small start that stays at (0,0), (1,0) and (1,1) and reaches E2."""
    for regime in (opening(0, 0), opening(1, 0), opening(1, 1), reaching_second):
        if not (found := regime(evidence)).holds:
            return found
    return Regime(True, f"initial rms {evidence.start:.1e}; stays at (0,0), (1,0) and (1,1)")


LABELS, LEGS = ((0, 0), (1, 0), (1, 1)), ("E1", "Q1-E1", "E2-Q1")


def _legs(evidence: Evidence) -> np.ndarray | None:
    """E1, Q1 - E1 and E2 - Q1; None where one of them was not reached."""
    times = (evidence.embeddings[0], evidence.attentions[0], evidence.second)
    if None in times:
        return None
    first, opened, second = (float(t) for t in times if t is not None)
    return np.array([first, opened - first, second - opened])


def _eps_law(evidence: Evidence) -> Comparison:
    """The delay of each leg from eps/10 to eps/100 over ln 10 / rate, and how it differs from that between eps and eps/10.

    The law is one of the limit of small starts. The difference between two decades is the error of the measurement; what the
    run's distance from the points still does to their rates at eps/100 is the error of the prediction.
    """
    unit = "of the prediction"
    visits = {label: evidence.visit(*label) for label in LABELS}
    rates = [visit.small.opening.rate for visit in visits.values() if visit is not None and visit.small.opening is not None]
    legs = _legs(evidence)
    if legs is None or evidence.second is None or evidence.companion is None or len(rates) < 3:
        return Comparison(1.0, None, DELAY, None, "E2 was not reached, or nothing opens at one of the saddles", unit=unit)
    per_decade, found, smaller = np.log(10.0) / np.array(rates), [legs], evidence
    for decades in (1, 2):
        until = float(1.2 * evidence.second + 1.5 * decades * per_decade.sum())
        smaller = Evidence(evidence.run, evidence.companion(10.0**-decades, until))
        if (legs := _legs(smaller)) is None:
            words = f"from a start {10**decades} times smaller: E2 was not reached"
            return Comparison(1.0, None, DELAY, None, words, unit=unit)
        found.append(legs)
    early, late = (found[1] - found[0]) / per_decade, (found[2] - found[1]) / per_decade
    doubts = np.array([abs(distance_shift(_again(smaller, label, visit))) for label, visit in visits.items()])
    worst = int(np.argmax(np.abs(late - 1)))
    shown = ", ".join(f"{name} {ratio:.3f}" for name, ratio in zip(LEGS, late, strict=True))
    errors = {"predicted_error": float(doubts.max()), "measured_error": float(np.abs(late - early).max())}
    reason = f"delay per decade of eps over ln 10/rate: {shown}"
    over = _over_starts(evidence.start, found, per_decade)
    return agreement(1.0, float(late[worst]), DELAY, reason, **errors, unit=unit, over_runs=over)


def _over_starts(start: float, found: list[np.ndarray], per_decade: np.ndarray) -> OverRuns:
    """E2 of the three runs over the size of their starts; predicted from that of the smallest start."""
    decades = np.arange(len(found))
    predicted = found[-1].sum() - (decades[-1] - decades) * per_decade.sum()
    at, legs = start * 10.0**-decades, [each.sum() for each in found]
    return OverRuns(tuple(at), tuple(legs), tuple(predicted), "initial rms", "E2 (t)", log_x=True)


def _again(smaller: Evidence, label: tuple[int, int], visit: SaddleVisit | None) -> SaddleVisit | None:
    """The visit of the first stay at a label from a smaller start, of the same critical point where it comes near that."""
    stay = next((stay for stay in smaller.stays if (stay.r, stay.rq) == label), None)
    known = None if visit is None else visit.small
    return None if stay is None else saddle_visit(smaller.trajectory, smaller.law, stay, known)


def distance_shift(visit: SaddleVisit | None) -> float:
    """The relative change of the rate at a point because the run is not at it; 1 where there is no such point."""
    if visit is None or visit.small.opening is None or visit.local_rate is None:
        return 1.0
    return visit.local_rate / visit.small.opening.rate - 1


CLAIMS = (
    claim(
        "FD:eps-law",
        "A tenfold smaller start delays each event by ln 10 over its rate",
        _scaled,
        _eps_law,
        "E1",
        "E2",
        kind="prediction",
        rules=3,
        elsewhere=beside,
        cost="2 flows from starts 10 and 100 times smaller, each about twice as long as this one",
    ),
)
