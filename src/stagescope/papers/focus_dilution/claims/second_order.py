"""Focus and dilution at second order: attention that opens at (1,0) redistributes the embeddings."""

from dataclasses import replace

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, agreement
from stagescope.errors import StagescopeError
from stagescope.landscape.linearise import last_rise, linearise
from stagescope.papers.focus_dilution.claims.saddles import ONLY_C, TOLERANCES, rate_error
from stagescope.papers.focus_dilution.evidence import Evidence, beside, visited
from stagescope.papers.focus_dilution.ladder.visit import SaddleVisit
from stagescope.papers.focus_dilution.steered import EXAGGERATED, WALK

MARKS = (0.0005, 0.001, 0.002, 0.004)
"""Sizes of D at which what holds in the limit of a small D is read."""
SECOND = 0.1
"""Tolerance of the second order, relative, in the limit of a small opening."""
STATED, UNSTATED = 1000.0, "too large to state"
"""The largest ratio of measurement and prediction that is printed, and what is printed for others."""


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
    """(2 c - J) w = F''[v, v]/2, v the growing attention: w moves the embeddings, and D with them.

    c, J and F'' are those of where the run is in the small model (1,0), which it may leave before it has settled at the point.
    D is what is left of the start, the second order and the next one: measured = offset + ratio x predicted + bend x predicted^2
    at four sizes. The ratio is that in the limit of a small D; its error is the difference to three sizes without the bend.
    """
    visit, unit = evidence.visit(1, 0), "of the prediction"
    if visit is None or visit.small.opening is None:
        return Comparison(1.0, None, SECOND, None, "the run has no stay at (1,0), or nothing opens there", unit=unit)
    moved = redistribution(evidence, visit)
    frames = [int(np.argmax(np.abs(moved) >= mark)) for mark in MARKS]
    if np.max(np.abs(moved)) < MARKS[-1] or len(set(frames)) < len(MARKS):
        return Comparison(1.0, None, SECOND, None, f"|D| does not rise through {MARKS[0]} to {MARKS[-1]}", unit=unit)
    try:
        predicted = np.array([_driven(evidence, visit, frame) for frame in frames])
    except StagescopeError as error:
        return Comparison(1.0, None, SECOND, None, f"there is no second order where the run is: {error}", unit=unit)
    if np.any(np.diff(np.abs(predicted), prepend=0.0) <= 0):
        return Comparison(
            1.0, None, SECOND, None, "the second order does not grow with D: what drives D is not attention", unit=unit
        )
    measured, last = moved[frames], float(np.abs(predicted).max())
    x, y = predicted / last, measured / last
    limit, near = _slope(x, y, 2), _slope(x[:3], y[:3], 1)
    shown, told = ", ".join(map(_stated, measured / predicted)), _stated(limit, near)
    reason = f"D measured/predicted is {shown} where D is {', '.join(f'{mark:g}' for mark in MARKS)}; {told} in the limit"
    lag, bend = _lag(predicted, visit.amplitude[frames]), abs(limit - near)
    found = agreement(1.0, limit, SECOND, reason, predicted_error=lag, measured_error=bend, unit=unit)
    return Comparison(1.0, told, SECOND, found.holds, reason, unit=unit) if told == UNSTATED else found


def _driven(evidence: Evidence, visit: SaddleVisit, frame: int) -> float:
    """D of w at a frame, linearised at the run's own point of the small model, which need not be critical."""
    at, params = visit.places.at(frame), visit.trajectory.at(frame)
    inside = replace(at, small=at.projected(params)).params
    w, gamma = linearise(evidence.law, inside).second_order(params), (inside["W0"] @ visit.place.S[0])[evidence.curves.frequent]
    return float(_spread(evidence, w["W0"] @ visit.place.S[0]) * np.sign(gamma))


def _lag(predicted: np.ndarray, amplitude: np.ndarray) -> float:
    """By how much D lags behind the second order of where the run is, relative, because c, J and F'' change as it moves.

    D' = J D + g a^2 with a' = c a gives D = p (1 - d(ln(p / a^2))/dt / (2 c - J) + ...) for p = g a^2 / (2 c - J); over a rise
    of D the time is ln(rise) / (2 c), and 2 c - J is at least 2 c.
    """
    rise, squares = np.log(np.abs(predicted[[0, -1]])), 2 * np.log(amplitude[[0, -1]])
    return abs(float(np.diff(rise - squares)[0] / np.diff(rise)[0]))


def _stated(*ratios: float) -> str:
    """The first ratio; words where one of them is so large that it says only that next to nothing was predicted."""
    return f"{ratios[0]:.3f}" if max(map(abs, ratios)) <= STATED else UNSTATED


def _slope(x: np.ndarray, y: np.ndarray, degree: int) -> float:
    """The linear coefficient of a polynomial fit; points that lie too near to each other give one of no size."""
    return float(np.linalg.lstsq(np.vander(x, degree + 1), y, rcond=None)[0][degree - 1])


CLAIMS = (
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
        null=(EXAGGERATED, WALK),
        group="redistribution",
        rules=3,
        elsewhere=beside,
    ),
)
