"""Claims of focus and dilution at its critical points: rates, directions, second order, first moves of attention."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement, undecided
from stagescope.errors import StagescopeError
from stagescope.landscape.linearise import last_rise, linearise
from stagescope.papers.focus_dilution import family
from stagescope.papers.focus_dilution.companion_options import another_flow
from stagescope.papers.focus_dilution.evidence import Evidence, opening, small_flow, visited
from stagescope.papers.focus_dilution.ladder import SaddleVisit
from stagescope.papers.focus_dilution.stages import THRESHOLDS, first_move, passes

# The rate along the predicted leg, where a run leaves a critical point before it has settled there [FD:ladder].

RISE = 10**0.5
"""By which factor the next singular value of W0 grows up to its event while a rate is measured; below, a start of 1e-3 shows."""


@dataclass(frozen=True)
class LegRate:
    """The largest local rate along a predicted leg, averaged while the embedding direction that opens grows by `RISE`."""

    event: str
    rate: float
    error: float


def leg_rate(evidence: Evidence, r: int, rq: int) -> LegRate | None:
    """The rate along the predicted leg (r, rq); None where no path is predicted, or no embedding direction opens on it.

    The flow is linear in the stacked blocks, E' = N E, also for a pattern that has joined the path. So it grows by a factor
    while the integral of the largest local rate is the logarithm of this factor. The error is what the interval of the event
    does: it moves the stretch of the path over which the rate is averaged.
    """
    path = evidence.predicted[0]
    leg = None if path is None else path.leg(f"({r},{rq})")
    if path is None or leg is None or leg.opens != "embedding" or leg.t_out is None or not path.rates:
        return None
    event = f"E{r + 1}"
    ends = [end for end in (leg.t_out, path.events[event].low, path.events[event].high) if end is not None]
    found = [_mean(path.time, path.rates["embedding"], end) for end in ends]
    if found[0] is None:
        return None
    return LegRate(event, found[0], max(abs(rate - found[0]) for rate in found if rate is not None))


def _mean(time: np.ndarray, rates: np.ndarray, end: float) -> float | None:
    """ln `RISE` over the time in which the integral of the rates up to `end` is as much; None where it is never."""
    until = np.append(time[time < end], end)
    at = np.interp(until, time, rates)
    folds = np.concatenate([[0.0], np.cumsum(np.diff(until) * (at[1:] + at[:-1]) / 2)])
    left = folds[-1] - math.log(RISE)
    return math.log(RISE) / (end - float(np.interp(left, folds, until))) if left > 0 else None


def along_leg(evidence: Evidence, r: int, rq: int, tolerance: float) -> Comparison | None:
    """The rate at which the run opens its next embedding direction against that along the predicted leg; None without one."""
    found, curves = leg_rate(evidence, r, rq), evidence.curves
    if found is None or evidence.openings.get(found.event) is None:
        return None
    rise = last_rise(curves.time, curves.embedding_values[:, r], THRESHOLDS.level / RISE, THRESHOLDS.level)
    if rise is None:
        return None
    shown = f"measured/predicted = {rise.rate / found.rate:.3f} along the leg ({r},{rq}) predicted from the start"
    reason = f"{shown}, over the last half-decade before {found.event}"
    return agreement(found.rate, rise.rate, tolerance * found.rate, reason, predicted_error=found.error, unit="1/t")


# Focus and dilution at its critical points: rates, directions and the linear prediction.

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
            return undecided(f"nothing opens at ({r},{rq})", "-")
        rate = visit.small.opening.rate
        predicted = rate if closed is None else closed(evidence)
        room = tolerance * predicted
        if visit.rise is None or visit.local_rate is None:
            return undecided("the opening does not rise tenfold in its stay", predicted, room, "1/t")
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


def _turned(visit: SaddleVisit) -> float:
    """By how much the run's distance from the point lowers the cosine with a predicted direction.

    A singular vector turns by at most |B - B*| over the gap to the next singular value (Wedin).
    """
    return 1 - math.cos(min(visit.drift_over_gap, math.pi / 2))


def _directions(evidence: Evidence) -> Comparison:
    """Cosines of what opened at (1,1) with the predicted directions; their error: the run turns, and slower openings mix in."""
    visit = evidence.visit(1, 1)
    if visit is None or not visit.cosines or not visit.windows:
        return undecided("the opening predicted at (1,1) did not open in its stay", 1.0, TOLERANCES.direction)
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
        return undecided(words, 1.0, TOLERANCES.linear, unit)
    last = visit.trajectory.frame(visit.opened)
    begun, ended = (float(visit.time[frame]) for frame in (visit.frame, last))
    folds = visit.small.opening.rate * (ended - begun)
    if folds < TOLERANCES.folds:
        words = f"the opening is {max(ended - begun, 0.0):.3g} after the plateau, {max(folds, 0.0):.2g} e-folds: too short"
        return undecided(words, 1.0, TOLERANCES.linear, unit)
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


# Focus and dilution at second order: attention that opens at (1,0) redistributes the embeddings.

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
        return undecided("the run has no stay at (1,0), or nothing opens there", "-")
    moved = np.abs(redistribution(evidence, visit))
    predicted = 2 * visit.small.opening.rate
    rises = [last_rise(evidence.time, moved, low, 10 * low) for low in (MARKS[0], 2 * MARKS[0])]
    if rises[0] is None or rises[1] is None:
        words = f"D does not rise from {MARKS[0]} to {20 * MARKS[0]:.2g}"
        return undecided(words, predicted, TOLERANCES.rate * predicted, "1/t")
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
    not_decided = partial(undecided, predicted=1.0, tolerance=SECOND, unit=unit)
    if visit is None or visit.small.opening is None:
        return not_decided("the run has no stay at (1,0), or nothing opens there")
    moved = redistribution(evidence, visit)
    frames = [int(np.argmax(np.abs(moved) >= mark)) for mark in MARKS]
    if np.max(np.abs(moved)) < MARKS[-1] or len(set(frames)) < len(MARKS):
        return not_decided(f"|D| does not rise through {MARKS[0]} to {MARKS[-1]}")
    try:
        predicted = np.array([_driven(evidence, visit, frame) for frame in frames])
    except StagescopeError as error:
        return not_decided(f"there is no second order where the run is: {error}")
    if np.any(np.diff(np.abs(predicted), prepend=0.0) <= 0):
        return not_decided("the second order does not grow with D: what drives D is not attention")
    measured, last = moved[frames], float(np.abs(predicted).max())
    x, y = predicted / last, measured / last
    limit, near = _slope(x, y, 2), _slope(x[:3], y[:3], 1)
    shown, told = ", ".join(map(_stated, measured / predicted)), _stated(limit, near)
    reason = f"D measured/predicted is {shown} where D is {', '.join(f'{mark:g}' for mark in MARKS)}; {told} in the limit"
    # By how much D lags behind the second order of where the run is, relative, because c, J and F'' change as it moves:
    # D' = J D + g a^2 with a' = c a gives D = p (1 - d(ln(p / a^2))/dt / (2 c - J) + ...) for p = g a^2 / (2 c - J); over a
    # rise of D the time is ln(rise) / (2 c), and 2 c - J is at least 2 c.
    rise, squares = np.log(np.abs(predicted[[0, -1]])), 2 * np.log(visit.amplitude[frames][[0, -1]])
    lag, bend = abs(float(np.diff(rise - squares)[0] / np.diff(rise)[0])), abs(limit - near)
    found = agreement(1.0, limit, SECOND, reason, predicted_error=lag, measured_error=bend, unit=unit)
    return Comparison(1.0, told, SECOND, found.holds, reason, unit=unit) if told == UNSTATED else found


def _driven(evidence: Evidence, visit: SaddleVisit, frame: int) -> float:
    """D of w at a frame, linearised at the run's own point of the small model, which need not be critical."""
    at, params = visit.places.at(frame), visit.trajectory.at(frame)
    inside = replace(at, small=at.projected(params)).params
    w, gamma = linearise(evidence.law, inside).second_order(params), (inside["W0"] @ visit.place.S[0])[evidence.curves.frequent]
    return float(_spread(evidence, w["W0"] @ visit.place.S[0]) * np.sign(gamma))


def _stated(*ratios: float) -> str:
    """The first ratio; words where one of them is so large that it says only that next to nothing was predicted."""
    return f"{ratios[0]:.3f}" if max(map(abs, ratios)) <= STATED else UNSTATED


def _slope(x: np.ndarray, y: np.ndarray, degree: int) -> float:
    """The linear coefficient of a polynomial fit; points that lie too near to each other give one of no size."""
    return float(np.linalg.lstsq(np.vander(x, degree + 1), y, rcond=None)[0][degree - 1])


# Focus and dilution: along which directions embeddings condense and attention opens, and with which sign.


@dataclass(frozen=True)
class FirstTolerances:
    """How far the first moves may be from what is predicted."""

    cosine: float = 0.01  # W0 along pi, W1 along pi - 1/d, Phi along pi pi^T: 8 degrees
    frozen: float = 0.05  # relative change of sv_1(WQ WK^T) by E1
    seen: float = 0.03  # size of Phi at which its direction is read, and a third of it
    smallest: float = 1e-6  # move of attention that has a sign, far above the error of a flow (1e-10)


FIRST = FirstTolerances()


def _condensation_direction(evidence: Evidence) -> Comparison:
    """Cosines at E1; what is left of the start, of norm eps sqrt(d) against .1, tilts them by half its square."""
    when = evidence.openings["E1"]
    if when is None:
        return undecided("E1 was not reached", 1.0, FIRST.cosine, "cosine")
    frame = min(int(np.searchsorted(evidence.time, when)), len(evidence.time) - 1)
    left, right = family.condensation_directions(evidence.curves.pi)
    u = np.linalg.svd(evidence.curves.params["W0"][frame])[0][:, 0]
    w = np.linalg.svd(evidence.curves.params["W1"][frame])[2][0]
    least = float(min(abs(u @ left), abs(w @ right)))
    reason = f"|cos| of W0 with pi {abs(u @ left):.4f}, of W1 with pi - 1/d {abs(w @ right):.4f} at E1"
    error = (evidence.scale * len(evidence.pi) ** 0.5 / 0.1) ** 2 / 2
    return agreement(1.0, least, FIRST.cosine, reason, predicted_error=error, unit="cosine")


def _frozen(evidence: Evidence) -> Comparison:
    when, top, unit = evidence.openings["E1"], evidence.curves.key_values[:, 0], "share of the start"
    if when is None or top[0] <= 0:
        words = "E1 was not reached" if when is None else "WQ or WK starts at zero"
        return undecided(words, 1.0, FIRST.frozen, unit)
    ratio = float(np.interp(when, evidence.time, top) / top[0])
    return agreement(1.0, ratio, FIRST.frozen, f"sv_1(WQ WK^T) at E1 is {ratio:.4f} of its start", unit=unit)


def _focus_direction(evidence: Evidence) -> Comparison:
    """cos(Phi, pi pi^T) in the limit of a small Phi: by a line through its values where sv_1(Phi) passes .01 and .03.

    The error is the difference between those two.
    """
    sign, curves = float(np.sign(evidence.rate)), evidence.curves
    found = []
    for size in (FIRST.seen / 3, FIRST.seen):
        when = passes(curves.time, curves.score_values[:, :1], size)[0]
        if when is None or (evidence.second is not None and when > evidence.second):
            return undecided(f"sv_1(Phi) stays below {size:.2g} before E2", sign, FIRST.cosine, "cosine")
        frame = min(int(np.searchsorted(curves.time, when)), len(curves.time) - 1)
        phi = curves.law.model.scores({name: block[frame] for name, block in curves.params.items()})
        target = np.outer(evidence.pi, evidence.pi)
        found.append(float(np.sum(phi * target) / np.linalg.norm(phi) / np.linalg.norm(target)))
    word, limit = "focus" if sign > 0 else "defocus", 1.5 * found[0] - 0.5 * found[1]
    reason = f"c = {evidence.rate:.4g} predicts {word}; cos(Phi, pi pi^T) = {found[1]:+.4f} when sv_1(Phi) is {FIRST.seen}"
    return agreement(sign, limit, FIRST.cosine, reason, measured_error=abs(found[1] - found[0]), unit="cosine")


def _sign(evidence: Evidence) -> Comparison:
    moved, c = first_move(evidence.curves), evidence.rate
    if moved is None or abs(moved) < FIRST.smallest:
        return undecided("attention does not move in this run", float(np.sign(c)), "sign")
    word = "towards" if moved > 0 else "away from"
    reason = f"c = {c:+.3g}; the mean attention on the frequent token first moves by {moved:+.2g}, {word} it"
    return Comparison(float(np.sign(c)), moved, "sign", c * moved > 0, reason, 0.0, FIRST.smallest, "attention")


def _signed(evidence: Evidence) -> Regime:
    """A flow from a small start whose c is not zero to rounding."""
    base = small_flow(evidence)
    nothing = abs(evidence.rate) <= 1e-12
    return Regime(False, "c is zero: attention has nothing to learn at (1,0)") if base.holds and nothing else base


_prediction = partial(claim, kind="prediction", elsewhere=another_flow)
SADDLE_CLAIMS = (
    _prediction(
        "FD:origin",
        "At the origin one mode grows at rate mu0 = |pi| |pi - 1/d|",
        visited(0, 0),
        _rate(0, 0, TOLERANCES.origin, lambda e: family.condensation_rate(e.pi)),
        "start",
        "E1",
        group="origin",
        rules=3,
    ),
    _prediction(
        "FD:attention-rate",
        "At (1,0) attention opens at rate |c|",
        visited(1, 0),
        _rate(1, 0, TOLERANCES.rate, lambda e: abs(e.rate)),
        "E1",
        "Q1",
        group="rate at (1,0)",
        rules=3,
    ),
    _prediction(
        "FD:linear-condensed",
        "From the plateau (1,0), exp(Jt) predicts the escape",
        visited(1, 0),
        _linear,
        "E1",
        "Q1",
        group="rate at (1,0)",
        rules=3,
    ),
    _prediction(
        "FD:embedding-rate",
        "At (1,1) an embedding direction opens at rate sv_1(B); before a run has settled there, at that along the leg",
        _opening_or_leg(1, 1),
        _rate(1, 1, TOLERANCES.rate, leg=True),
        "Q1",
        "E2",
        group="rate at (1,1)",
        rules=4,
    ),
    _prediction(
        "FD:embedding-direction",
        "At (1,1) an embedding direction opens along the singular vectors of B",
        opening(1, 1),
        _directions,
        "Q1",
        "E2",
        group="direction at (1,1)",
        rules=3,
    ),
    _prediction(
        "FD:redistribution",
        "Embeddings redistribute at twice the rate of attention",
        visited(1, 0),
        _redistribution_rate,
        "E1",
        "Q1",
        group="redistribution",
        rules=2,
    ),
    _prediction(
        "FD:second-order",
        "Second order predicts sign and size of the redistribution",
        visited(1, 0),
        _second_order,
        "E1",
        "Q1",
        group="redistribution",
        rules=3,
    ),
    _prediction(
        "FD:directions",
        "Embeddings condense: W0 along pi, W1 along pi - 1/d",
        small_flow,
        _condensation_direction,
        "E1",
        group="origin",
        rules=2,
    ),
    _prediction(
        "FD:frozen",
        "Attention is frozen while embeddings condense",
        small_flow,
        _frozen,
        "start",
        "E1",
        group="origin",
        rules=2,
    ),
    _prediction(
        "FD:focus",
        "Attention opens along sign(c) pi pi^T: focus or defocus",
        _signed,
        _focus_direction,
        "Q1",
        group="first move of attention",
        rules=2,
    ),
    _prediction(
        "FD:sign",
        "The sign of c decides between focus and defocus",
        _signed,
        _sign,
        "Q1",
        "focus*",
        group="first move of attention",
        rules=3,
    ),
)
