"""Focus and dilution at its critical points: rates, directions and the linear prediction."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.papers.focus_dilution import forms
from stagescope.papers.focus_dilution.claims.along_leg import along_leg, leg_rate
from stagescope.papers.focus_dilution.evidence import Evidence, beside, opening, visited
from stagescope.papers.focus_dilution.ladder.visit import SaddleVisit

Compare = Callable[[Evidence], Comparison]


@dataclass(frozen=True)
class Tolerances:
    """How far measurement and prediction may be apart, beyond the error of the prediction. Relative, unless it says cosine."""

    origin: float = 0.05  # of mu0: the rise ends at .1, where the saturation, quadratic in it, has taken off a few per cent
    rate: float = 0.1  # of a rate over a tenfold rise: an opening of amplitude .05 to .1 moves it by its square and its coupling
    direction: float = 0.02  # of a cosine: 11 degrees
    linear: float = 0.3  # of the size that exp(Jt) predicts, at most: a rate off by a tenth over three e-folds
    folds: float = 1.0  # e-folds over which exp(Jt) is tried at least: in fewer, a false rate does not show


TOLERANCES = Tolerances()


def rate_error(visit: SaddleVisit) -> float:
    """How far the run's distance from the point moves its rate: the flow is linearised at the run, over the rise."""
    assert visit.small.opening is not None
    return 0.0 if visit.local_rate is None else abs(visit.local_rate - visit.small.opening.rate)


def _rate(r: int, rq: int, tolerance: float, closed: Callable[[Evidence], float] | None = None, *, leg: bool = False) -> Compare:
    """The rate of the opening against `closed`, its closed form, or the singular value of the small matrix at the point.

    How far a closed form is from the matrix is under test, and no part of the error. With `leg`, the rate along the predicted
    leg decides where the run has not settled at the point, or the point leaves the claim open.
    """

    def compare(evidence: Evidence) -> Comparison:
        visit, found = evidence.visit(r, rq), at_point(evidence)
        if not leg or visit is None or (found.holds is not None and not visit.out_of_regime):
            return found
        why, along = visit.out_of_regime or found.reason, along_leg(evidence, r, rq, tolerance)
        return found if along is None else replace(along, reason=f"{along.reason}; at the point it is not decided: {why}")

    def at_point(evidence: Evidence) -> Comparison:
        visit = evidence.visit(r, rq)
        if visit is None or visit.small.opening is None:
            return Comparison("-", None, None, None, f"nothing opens at ({r},{rq})")
        rate = visit.small.opening.rate
        predicted = rate if closed is None else closed(evidence)
        room = tolerance * predicted
        if visit.rise is None or visit.local_rate is None:
            return Comparison(predicted, None, room, None, "the opening does not rise tenfold in its stay", unit="1/t")
        off = visit.rise.rate / predicted
        reason = f"measured/predicted = {off:.3f} over a tenfold rise of the {visit.small.opening.block} mode"
        if closed is not None:
            reason += f"; the closed form holds for W0 along pi, at the point reached the matrix has rate {rate:.4g}"
        reason += f"; linearised at the run the rate is {visit.local_rate:.4g}"
        return agreement(predicted, visit.rise.rate, room, reason, predicted_error=rate_error(visit), unit="1/t")

    return compare


def _opening_or_leg(r: int, rq: int) -> Callable[[Evidence], Regime]:
    """The regime of a rate at (r, rq): something opens at the point, or along the leg that is predicted from the start."""

    def regime(evidence: Evidence) -> Regime:
        found = opening(r, rq)(evidence)
        if found.holds or evidence.visit(r, rq) is None or leg_rate(evidence, r, rq) is None:
            return found
        return Regime(True, f"{found.sentence}; a direction opens along the predicted leg ({r},{rq})")

    return regime


def _size(evidence: Evidence) -> float:
    return abs(evidence.rate)


def _turned(visit: SaddleVisit) -> float:
    """By how much the run's distance from the point lowers the cosine with a predicted direction.

    A singular vector turns by at most |B - B*| over the gap to the next singular value (Wedin).
    """
    return 1 - math.cos(min(visit.drift_over_gap, math.pi / 2))


def _directions(evidence: Evidence) -> Comparison:
    """Cosines of what opened at (1,1) with the predicted directions; their error: the run turns, and slower openings mix in."""
    visit = evidence.visit(1, 1)
    if visit is None or not visit.cosines or not visit.windows:
        return Comparison(1.0, None, TOLERANCES.direction, None, "the opening predicted at (1,1) did not open in its stay")
    shown = " and ".join(f"{cosine:.4f}" for cosine in visit.cosines)
    error = math.hypot(_turned(visit), 1 - visit.purity)
    reason = f"cosines with the predicted new column of W0 and row of W1: {shown} at {visit.event}"
    return agreement(1.0, min(visit.cosines), TOLERANCES.direction, reason, predicted_error=error, unit="cosine")


def _linear(evidence: Evidence) -> Comparison:
    """Size and direction of what has grown out of (1,0) when the rise ends: by exp(J t) from the plateau, and measured.

    Where the run's distance from the point changes the growth by up to x e-folds, the size has an error of e^x - 1. The
    direction has that of a singular vector. Both must hold. The size may be off by what a rate off by its tolerance does.
    """
    visit, local, unit = evidence.visit(1, 0), evidence.linear, "of the prediction"
    if visit is None or local is None or visit.small.opening is None or visit.opened is None or not visit.windows:
        words = "nothing opens after the plateau (1,0), or it does not rise tenfold"
        return Comparison(1.0, None, TOLERANCES.linear, None, words, unit=unit)
    last = visit.trajectory.frame(visit.opened)
    begun, ended = (float(visit.time[frame]) for frame in (visit.frame, last))
    folds = visit.small.opening.rate * (ended - begun)
    if folds < TOLERANCES.folds:
        words = f"the opening is {max(ended - begun, 0.0):.3g} after the plateau, {max(folds, 0.0):.2g} e-folds: too short"
        return Comparison(1.0, None, TOLERANCES.linear, None, words, unit=unit)
    start, end = (visit.place.leaving(visit.trajectory.at(frame)) for frame in (visit.frame, last))
    predicted, measured = local.unstable(start, ended - begun), local.unstable(end)
    with np.errstate(all="ignore"):  # a prediction beyond the numbers gives none, which decides nothing
        cosine = float(predicted @ measured / np.linalg.norm(predicted) / np.linalg.norm(measured))
        ratio = float(np.linalg.norm(measured) / np.linalg.norm(predicted))
    error = math.expm1(min(visit.wandering(begun, ended), 10.0))
    tolerance = min(TOLERANCES.linear, math.expm1(TOLERANCES.rate * folds))
    reason = f"growing part {ended - begun:.3g} after the plateau: size measured/predicted {ratio:.3f}, cosine {cosine:.4f}"
    size = agreement(1.0, ratio, tolerance, reason, predicted_error=error, unit=unit)
    # The verdict on size and direction is false where one is, true where both are.
    doubt = _turned(visit)
    direction = agreement(1.0, cosine, TOLERANCES.direction, "", predicted_error=doubt)
    if size.holds is False or direction.holds is True:
        return size
    words = f"the cosine, with an error of {doubt:.2g}, is {'violated' if direction.holds is False else 'undecided'}"
    return replace(size, holds=direction.holds, reason=f"{size.reason}; {words} at a tolerance of {TOLERANCES.direction:g}")


CLAIMS = (
    claim(
        "FD:origin",
        "At the origin one mode grows at rate mu0 = |pi| |pi - 1/d|",
        visited(0, 0),
        _rate(0, 0, TOLERANCES.origin, lambda e: forms.condensation_rate(e.pi)),
        "start",
        "E1",
        kind="prediction",
        group="origin",
        rules=3,
        elsewhere=beside,
    ),
    claim(
        "FD:attention-rate",
        "At (1,0) attention opens at rate |c|",
        visited(1, 0),
        _rate(1, 0, TOLERANCES.rate, _size),
        "E1",
        "Q1",
        kind="prediction",
        group="rate at (1,0)",
        rules=3,
        elsewhere=beside,
    ),
    claim(
        "FD:linear-condensed",
        "From the plateau (1,0), exp(Jt) predicts the escape",
        visited(1, 0),
        _linear,
        "E1",
        "Q1",
        kind="prediction",
        group="rate at (1,0)",
        rules=3,
        elsewhere=beside,
    ),
    claim(
        "FD:embedding-rate",
        "At (1,1) an embedding direction opens at rate sv_1(B); before a run has settled there, at that along the leg",
        _opening_or_leg(1, 1),
        _rate(1, 1, TOLERANCES.rate, leg=True),
        "Q1",
        "E2",
        kind="prediction",
        group="rate at (1,1)",
        rules=4,
        elsewhere=beside,
    ),
    claim(
        "FD:embedding-direction",
        "At (1,1) an embedding direction opens along the singular vectors of B",
        opening(1, 1),
        _directions,
        "Q1",
        "E2",
        kind="prediction",
        group="direction at (1,1)",
        rules=3,
        elsewhere=beside,
    ),
)
