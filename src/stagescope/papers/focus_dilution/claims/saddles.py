"""Focus and dilution at its critical points: rates, directions, linear prediction, and what follows at second order."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, agreement
from stagescope.landscape.growth_fit import last_rise
from stagescope.papers.focus_dilution import forms
from stagescope.papers.focus_dilution.evidence import Evidence, beside, visited
from stagescope.papers.focus_dilution.family import slopes
from stagescope.papers.focus_dilution.ladder.visit import SaddleVisit
from stagescope.papers.focus_dilution.nulls import OTHER_LAW, OTHER_PERSISTENCE, WALK

Compare = Callable[[Evidence], Comparison]


@dataclass(frozen=True)
class Tolerances:
    """How far measurement and prediction may be apart, beyond the error of the prediction. Relative, unless it says cosine."""

    origin: float = 0.05  # of mu0: the rise ends at .1, where the saturation, quadratic in it, has taken off a few per cent
    rate: float = 0.1  # of a rate over a tenfold rise: an opening of amplitude .05 to .1 moves it by its square and its coupling
    direction: float = 0.02  # of a cosine: 11 degrees
    linear: float = 0.3  # of the size that exp(Jt) predicts: a rate off by a tenth over three e-folds
    second: float = 0.1  # of the second order, in the limit of a small opening


TOLERANCES = Tolerances()


def rate_error(visit: SaddleVisit) -> float:
    """How far the run's distance from the point moves its rate: the flow is linearised at the run, over the rise."""
    assert visit.small.opening is not None
    return 0.0 if visit.local_rate is None else abs(visit.local_rate - visit.small.opening.rate)


def _rate(r: int, rq: int, tolerance: float, closed: Callable[[Evidence], float] | None = None) -> Compare:
    """The rate of the opening against `closed`, its closed form, or the singular value of the small matrix at the point."""

    def compare(evidence: Evidence) -> Comparison:
        visit = evidence.visit(r, rq)
        if visit is None or visit.small.opening is None:
            return Comparison("-", None, None, None, f"nothing opens at ({r},{rq})")
        at_point = visit.small.opening.rate
        predicted = at_point if closed is None else closed(evidence)
        if visit.rise is None or visit.local_rate is None:
            return Comparison(
                predicted, None, tolerance * predicted, None, "the opening does not rise tenfold in its stay", unit="1/t"
            )
        off = visit.rise.rate / predicted
        reason = f"measured/predicted = {off:.3f} over a tenfold rise of the {visit.small.opening.block} mode"
        if closed is not None:
            reason += f"; the closed form holds for W0 along pi, at the point reached the matrix has rate {at_point:.4g}"
        reason += f"; linearised at the run the rate is {visit.local_rate:.4g}"
        error = math.hypot(rate_error(visit), at_point - predicted)
        return agreement(predicted, visit.rise.rate, tolerance * predicted, reason, predicted_error=error, unit="1/t")

    return compare


def _rate_along(evidence: Evidence) -> Comparison:
    """The rate of the opening at (1,1) against that of the flow linearised at the run, averaged over the rise.

    Few runs settle at (1,1): the rate there, in the reason, is the limit of those that do.
    """
    visit = evidence.visit(1, 1)
    if visit is None or visit.small.opening is None:
        return Comparison("-", None, None, None, "nothing opens at (1,1)")
    if visit.rise is None or visit.local_rate is None:
        return Comparison("-", None, None, None, "the opening does not rise tenfold in its stay", unit="1/t")
    predicted, at_point = visit.local_rate, visit.small.opening.rate
    reason = f"measured/predicted = {visit.rise.rate / predicted:.3f} over a tenfold rise of the {visit.small.opening.block} mode"
    reason += f"; at the point itself the rate is {at_point:.4g}, and measured/predicted {visit.rise.rate / at_point:.3f}"
    return agreement(predicted, visit.rise.rate, TOLERANCES.rate * predicted, reason, unit="1/t")


def _size(evidence: Evidence) -> float:
    return abs(evidence.rate)


def _directions(r: int, rq: int) -> Compare:
    """Cosines of what opened with the predicted directions.

    The error of the prediction: a singular vector turns by |B - B*| over the gap to the next singular value (Wedin), and slower
    openings mix in.
    """

    def compare(evidence: Evidence) -> Comparison:
        visit = evidence.visit(r, rq)
        if visit is None or not visit.cosines or not visit.windows:
            return Comparison(
                1.0, None, TOLERANCES.direction, None, f"the opening predicted at ({r},{rq}) did not open in its stay"
            )
        low = min(visit.cosines)
        shown = " and ".join(f"{cosine:.4f}" for cosine in visit.cosines)
        turned = 1 - math.cos(min(visit.drift_over_gap, math.pi / 2))
        error = math.hypot(turned, 1 - visit.purity)
        reason = f"cosines with the predicted new column of W0 and row of W1: {shown} at {visit.event}"
        return agreement(1.0, low, TOLERANCES.direction, reason, predicted_error=error, unit="cosine")

    return compare


def _vanishing(r: int, rq: int, which: int) -> Compare:
    """GM (0) or GP (1) at the critical point of the small model; zero is up to the residual of a search, 1e-10."""
    tolerance = 1e-10

    def compare(evidence: Evidence) -> Comparison:
        visit = evidence.visit(r, rq)
        if visit is None:
            return Comparison(0.0, None, tolerance, None, f"the run has no stay at ({r},{rq})")
        size = float(np.abs(slopes(evidence.law, visit.small.point.params)[which]).max())
        reason = f"largest entry of {('dL/dM', 'dL/dPhi')[which]} {size:.1e}, residual |F| {visit.small.point.residual:.1e}"
        return Comparison(0.0, size, tolerance, size <= tolerance, reason)

    return compare


def _linear(r: int, rq: int) -> Compare:
    """The size of the growing part at the end of the rise: predicted by exp(J t) from the plateau, against the run's.

    A rate that the run's distance from the point moves by e changes the size by a factor e^(e t): the error of the prediction.
    """

    def compare(evidence: Evidence) -> Comparison:
        visit, label, unit = evidence.visit(r, rq), (r, rq), "of the prediction"
        opened = None if visit is None else visit.opened
        if visit is None or opened is None or opened <= visit.time[visit.frame]:
            return Comparison(1.0, None, TOLERANCES.linear, None, f"nothing opens after the plateau ({r},{rq})", unit=unit)
        last, local = visit.trajectory.frame(opened), evidence.linear[label]
        ahead = float(visit.time[last] - visit.time[visit.frame])
        predicted = local.unstable(visit.trajectory.at(visit.frame), ahead)
        measured = local.unstable(visit.trajectory.at(last))
        cosine = float(predicted @ measured / np.linalg.norm(predicted) / np.linalg.norm(measured))
        ratio = float(np.linalg.norm(measured) / np.linalg.norm(predicted))
        error = min(math.expm1(min(rate_error(visit) * ahead, 50.0)), 1e6)
        reason = f"growing part at {ahead:.3g} after the plateau: cosine {cosine:.4f}, size measured/predicted {ratio:.3f}"
        found = agreement(1.0, ratio, TOLERANCES.linear, reason, predicted_error=error, unit=unit)
        turned = 1 - cosine > TOLERANCES.direction
        return replace(found, holds=False if found.holds else found.holds) if turned else found

    return compare


def redistribution(evidence: Evidence, visit: SaddleVisit) -> np.ndarray:
    """D = (1 - pi_f) gamma_f - pi_f sum_{i != f} gamma_i with gamma = W0 alpha, f the frequent token, less its start.

    The sign of gamma is such that the frequent token's entry is positive on the plateau. Condensation moves W0 along pi, which
    does not change D, so its start is its value on the plateau before attention moves it [FD:redistribution].
    """
    gamma = evidence.curves.params["W0"] @ visit.place.S[0]
    gamma = gamma * np.sign(gamma[visit.frame, evidence.curves.frequent])
    return _spread(evidence, gamma) - _spread(evidence, gamma[0])


def _spread(evidence: Evidence, gamma: np.ndarray) -> np.ndarray:
    frequent = evidence.curves.frequent
    share = float(evidence.pi[frequent])
    return gamma[..., frequent] - share * gamma.sum(axis=-1)


MARKS = (0.0005, 0.001, 0.002, 0.004)
"""Sizes of D at which what holds in the limit of a small D is read."""


def _redistribution_rate(evidence: Evidence) -> Comparison:
    """The slope of log D while it rises tenfold, at two sizes: their difference is the error, of the next order."""
    visit = evidence.visit(1, 0)
    if visit is None or visit.small.opening is None:
        return Comparison("-", None, None, None, "the run has no stay at (1,0), or nothing opens there")
    moved = np.abs(redistribution(evidence, visit))
    predicted = 2 * visit.small.opening.rate
    rises = [last_rise(evidence.curves.time, moved, low, 10 * low) for low in (MARKS[0], 2 * MARKS[0])]
    if rises[0] is None or rises[1] is None:
        words = f"D does not rise from {MARKS[0]} to {20 * MARKS[0]:.2g}"
        return Comparison(predicted, None, TOLERANCES.rate * predicted, None, words, unit="1/t")
    rate, error = rises[0].rate, 2 * abs(rises[1].rate - rises[0].rate)
    reason = f"slope of log D / 2c = {rate / predicted:.3f} while D rises from {MARKS[0]} to {10 * MARKS[0]}"
    errors = {"predicted_error": 2 * rate_error(visit), "measured_error": error, "unit": "1/t"}
    return agreement(predicted, rate, TOLERANCES.rate * predicted, reason, **errors)


def _second_order(evidence: Evidence) -> Comparison:
    """(2 c - J) w = F''[v, v]/2 at (1,0), v the growing attention: w moves the embeddings, and D with them.

    D is what is left of the start, the second order and the next one: measured = offset + ratio x predicted + bend x predicted^2
    at four sizes. The ratio is that in the limit of a small D; its error is the difference to three sizes without the bend.
    """
    visit, unit = evidence.visit(1, 0), "of the prediction"
    if visit is None:
        return Comparison(1.0, None, TOLERANCES.second, None, "the run has no stay at (1,0)", unit=unit)
    moved = redistribution(evidence, visit)
    sign = np.sign((evidence.curves.params["W0"][visit.frame] @ visit.place.S[0])[evidence.curves.frequent])
    frames = [int(np.argmax(np.abs(moved) >= mark)) for mark in MARKS]
    if np.max(np.abs(moved)) < MARKS[-1] or len(set(frames)) < len(MARKS):
        return Comparison(1.0, None, TOLERANCES.second, None, f"|D| does not rise through {MARKS[0]} to {MARKS[-1]}", unit=unit)
    drives = [evidence.linear[(1, 0)].second_order(visit.trajectory.at(frame)) for frame in frames]
    predicted = np.array([float(_spread(evidence, sign * (w["W0"] @ visit.place.S[0]))) for w in drives])
    measured = moved[frames]
    limit, near = float(np.polyfit(predicted, measured, 2)[1]), float(np.polyfit(predicted[:3], measured[:3], 1)[0])
    shown = ", ".join(f"{ratio:.3f}" for ratio in measured / predicted)
    reason = f"D measured/predicted is {shown} where D is {', '.join(f'{mark:g}' for mark in MARKS)}; {limit:.3f} in the limit"
    return agreement(1.0, limit, TOLERANCES.second, reason, measured_error=abs(limit - near), unit=unit)


def _third(evidence: Evidence) -> Comparison:
    """Reported, never judged: no critical point is near the run between (1,1) and (2,2), and (2,2) is often far."""
    found = _rate(2, 2, TOLERANCES.rate)(evidence)
    visit = evidence.visit(2, 2)
    cosines = () if visit is None else visit.cosines
    shown = ", cosines " + " ".join(f"{cosine:.3f}" for cosine in cosines) if cosines else ""
    return replace(found, holds=None, reason=f"reported, not judged: {found.reason}{shown}")


ONLY_C, ONLY_PI = (OTHER_PERSISTENCE, WALK), (OTHER_LAW, WALK)
CLAIMS = (
    claim(
        "FD:origin",
        "At the origin one mode grows at rate mu0 = |pi| |pi - 1/d|",
        visited(0, 0),
        _rate(0, 0, TOLERANCES.origin, lambda e: forms.condensation_rate(e.pi)),
        "start",
        "E1",
        kind="prediction",
        null=ONLY_PI,
        group="origin",
        rules=2,
        elsewhere=beside,
    ),
    claim(
        "FD:condensed",
        "At (1,0) dL/dM = 0: only attention can open",
        visited(1, 0),
        _vanishing(1, 0, 0),
        "E1",
        "Q1",
        kind="identity",
        rules=2,
    ),
    claim(
        "FD:attention-rate",
        "At (1,0) attention opens at rate |c|",
        visited(1, 0),
        _rate(1, 0, TOLERANCES.rate, _size),
        "E1",
        "Q1",
        kind="prediction",
        null=ONLY_C,
        group="rate at (1,0)",
        rules=2,
        elsewhere=beside,
    ),
    claim(
        "FD:linear-condensed",
        "From the plateau (1,0), exp(Jt) predicts the escape",
        visited(1, 0),
        _linear(1, 0),
        "E1",
        "Q1",
        kind="prediction",
        null=ONLY_C,
        group="rate at (1,0)",
        rules=2,
        elsewhere=beside,
    ),
    claim(
        "FD:redistribution",
        "Embeddings redistribute at twice the rate of attention",
        visited(1, 0),
        _redistribution_rate,
        "E1",
        "Q1",
        kind="prediction",
        null=ONLY_C,
        group="redistribution",
        rules=2,
        elsewhere=beside,
    ),
    claim(
        "FD:second-order",
        "Second order predicts sign and size of the redistribution",
        visited(1, 0),
        _second_order,
        "E1",
        "Q1",
        kind="prediction",
        null=ONLY_PI,
        group="redistribution",
        rules=2,
        elsewhere=beside,
    ),
    claim(
        "FD:focused",
        "At (1,1) dL/dPhi = 0: only embeddings can open",
        visited(1, 1),
        _vanishing(1, 1, 1),
        "Q1",
        "E2",
        kind="identity",
        rules=2,
    ),
    claim(
        "FD:embedding-rate",
        "From (1,1) an embedding direction opens at rate sv_1(B), B of the small model where the run is",
        visited(1, 1),
        _rate_along,
        "Q1",
        "E2",
        kind="prediction",
        null=ONLY_C,
        group="rate at (1,1)",
        rules=2,
        elsewhere=beside,
    ),
    claim(
        "FD:embedding-direction",
        "At (1,1) an embedding direction opens along the singular vectors of B",
        visited(1, 1),
        _directions(1, 1),
        "Q1",
        "E2",
        kind="prediction",
        null=(OTHER_LAW, WALK),
        group="direction at (1,1)",
        rules=2,
        rare=True,
        elsewhere=beside,
    ),
    claim(
        "FD:linear-focused",
        "From the plateau (1,1), exp(Jt) predicts the escape",
        visited(1, 1),
        _linear(1, 1),
        "Q1",
        "E2",
        kind="prediction",
        null=ONLY_C,
        group="rate at (1,1)",
        rules=2,
        elsewhere=beside,
    ),
    claim(
        "FD:third",
        "At (2,2) the third embedding direction opens at rate sv_1(B)",
        visited(2, 2),
        _third,
        "Q2",
        "E3",
        kind="prediction",
        null=ONLY_C,
        rules=2,
        rare=True,
    ),
)
