"""Claims of focus and dilution at its critical points: rates, directions, second order, first moves of attention."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from stagescope.claims.claim import ClaimTable
from stagescope.claims.comparison import Comparison, Regime, agreement, narrowed, undecided
from stagescope.core.errors import StagescopeError
from stagescope.landscape.linearise import last_rise, linearise
from stagescope.papers.focus_dilution import family
from stagescope.papers.focus_dilution.companion_options import another_flow
from stagescope.papers.focus_dilution.evidence import Evidence, opening, redistributing, small_flow, visited
from stagescope.papers.focus_dilution.ladder import SaddleVisit
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.stages import first_move, passes
from stagescope.papers.focus_dilution.study import WORDS

claim = ClaimTable(WORDS.claims)
flow_claim = partial(claim, elsewhere=another_flow)

# The rate along the predicted leg, where a run leaves a critical point before it has settled there [FD:ladder].

RISE = LIMITS.growth**0.5
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
    rates = [_mean(path.time, path.rates["embedding"], end) for end in ends]
    if rates[0] is None:
        return None
    return LegRate(event, rates[0], max(abs(rate - rates[0]) for rate in rates if rate is not None))


def _mean(time: np.ndarray, rates: np.ndarray, end: float) -> float | None:
    """ln `RISE` over the time in which the integral of the rates up to `end` is as much; None where it is never."""
    until = np.append(time[time < end], end)
    local_rates = np.interp(until, time, rates)
    folds = np.concatenate([[0.0], np.cumsum(np.diff(until) * (local_rates[1:] + local_rates[:-1]) / 2)])
    begin = folds[-1] - math.log(RISE)
    return math.log(RISE) / (end - float(np.interp(begin, folds, until))) if begin > 0 else None


def along_leg(evidence: Evidence, r: int, rq: int, tolerance: float) -> Comparison | None:
    """The rate at which the run opens its next embedding direction against that along the predicted leg; None without one."""
    leg, curves = leg_rate(evidence, r, rq), evidence.curves
    if leg is None or evidence.openings.get(leg.event) is None:
        return None
    rise = last_rise(curves.time, curves.embedding_values[:, r], LIMITS.level / RISE, LIMITS.level)
    if rise is None:
        return None
    sentence = f"measured/predicted = {rise.rate / leg.rate:.3f} along the leg ({r},{rq}) predicted from the start"
    reason = f"{sentence}, over the last half-decade before {leg.event}"
    return agreement(leg.rate, rise.rate, tolerance * leg.rate, reason, predicted_error=leg.error, unit="1/t")


# Focus and dilution at its critical points: rates, directions and the linear prediction.

Compare = Callable[[Evidence], Comparison]


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
        visit, result = evidence.visit(r, rq), at_point(evidence)
        if not leg or visit is None or (result.holds is not None and not visit.out_of_regime):
            return result
        reason, along = visit.out_of_regime or result.reason, along_leg(evidence, r, rq, tolerance)
        return result if along is None else replace(along, reason=f"{along.reason}; at the point it is not decided: {reason}")

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
        base = opening(r, rq)(evidence)
        if base.holds or evidence.visit(r, rq) is None or leg_rate(evidence, r, rq) is None:
            return base
        return Regime(True, f"{base.sentence}; a direction opens along the predicted leg ({r},{rq})")

    return regime


flow_claim("FD:origin", visited(0, 0))(_rate(0, 0, LIMITS.origin, lambda e: family.condensation_rate(e.pi)))
flow_claim("FD:attention-rate", visited(1, 0))(_rate(1, 0, LIMITS.rate, lambda e: abs(e.rate)))
flow_claim("FD:embedding-rate", _opening_or_leg(1, 1))(_rate(1, 1, LIMITS.rate, leg=True))


def _turned(visit: SaddleVisit) -> float:
    """By how much the run's distance from the point lowers the cosine with a predicted direction.

    A singular vector turns by at most |B - B*| over the gap to the next singular value (Wedin).
    """
    return 1 - math.cos(min(visit.drift_over_gap, math.pi / 2))


@flow_claim("FD:embedding-direction", opening(1, 1))
def _directions(evidence: Evidence) -> Comparison:
    """Cosines of what opened at (1,1) with the predicted directions; their error: the run turns, and slower openings mix in."""
    visit = evidence.visit(1, 1)
    if visit is None or not visit.cosines or not visit.windows:
        return undecided("the opening predicted at (1,1) did not open in its stay", 1.0, LIMITS.direction)
    cosines = " and ".join(f"{cosine:.4f}" for cosine in visit.cosines)
    error = math.hypot(_turned(visit), 1 - visit.purity)
    reason = f"cosines with the predicted new column of W0 and row of W1: {cosines} at {visit.event}"
    return agreement(1.0, min(visit.cosines), LIMITS.direction, reason, predicted_error=error, unit="cosine")


@flow_claim("FD:linear-condensed", visited(1, 0))
def _linear(evidence: Evidence) -> Comparison:
    """Size and direction of what has grown out of (1,0) when the rise ends: by exp(J t) from the plateau, and measured.

    Where the run's distance from the point changes the growth by up to x e-folds, the size has an error of e^x - 1. The
    direction has that of a singular vector. Both must hold. The size may be off by what a rate off by its tolerance does.
    """
    visit, local, unit = evidence.visit(1, 0), evidence.linear, "of the prediction"
    if visit is None or local is None or visit.small.opening is None or visit.opened is None or not visit.windows:
        words = "nothing opens after the plateau (1,0), or it does not rise tenfold"
        return undecided(words, 1.0, LIMITS.escape_size, unit)
    last = visit.trajectory.frame(visit.opened)
    begun, ended = (float(visit.time[frame]) for frame in (visit.frame, last))
    folds = visit.small.opening.rate * (ended - begun)
    if folds < 1:
        words = f"the opening is {max(ended - begun, 0.0):.3g} after the plateau, {max(folds, 0.0):.2g} e-folds: too short"
        return undecided(words, 1.0, LIMITS.escape_size, unit)
    start, end = (visit.place.leaving(visit.trajectory.at(frame)) for frame in (visit.frame, last))
    predicted, measured = local.unstable(start, ended - begun), local.unstable(end)
    with np.errstate(all="ignore"):  # a prediction beyond the numbers gives none, which decides nothing
        cosine = float(predicted @ measured / np.linalg.norm(predicted) / np.linalg.norm(measured))
        ratio = float(np.linalg.norm(measured) / np.linalg.norm(predicted))
    error = math.expm1(min(visit.wandering(begun, ended), 10.0))
    tolerance = min(LIMITS.escape_size, math.expm1(LIMITS.rate * folds))
    reason = f"growing part {ended - begun:.3g} after the plateau: size measured/predicted {ratio:.3f}, cosine {cosine:.4f}"
    size = agreement(1.0, ratio, tolerance, reason, predicted_error=error, unit=unit)
    # The verdict on size and direction is false where one is, true where both are.
    doubt = _turned(visit)
    direction = agreement(1.0, cosine, LIMITS.direction, "", predicted_error=doubt)
    if size.holds is False or direction.holds is True:
        return size
    words = f"the cosine, with an error of {doubt:.2g}, is {'violated' if direction.holds is False else 'undecided'}"
    return replace(size, holds=direction.holds, reason=f"{size.reason}; {words} at a tolerance of {LIMITS.direction:g}")


# Focus and dilution at second order: attention that opens at (1,0) redistributes the embeddings.

MARKS = [times * LIMITS.mark for times in LIMITS.doublings]
"""Sizes of D at which what holds in the limit of a small D is read."""
NOT_MARKED = f"|D| does not rise through {MARKS[0]} to {MARKS[-1]}"
UNSTATED = "too large to state"


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


@flow_claim("FD:redistribution", redistributing)
def _redistribution_rate(evidence: Evidence) -> Comparison:
    """The slope of log D while it rises tenfold, at two sizes: their difference is the error, of the next order."""
    visit = evidence.visit(1, 0)
    if visit is None or visit.small.opening is None:
        return undecided("the run has no stay at (1,0), or nothing opens there", "-")
    size = np.abs(redistribution(evidence, visit))
    predicted = 2 * visit.small.opening.rate
    rises = [last_rise(evidence.time, size, low, LIMITS.growth * low) for low in (MARKS[0], 2 * MARKS[0])]
    if rises[0] is None or rises[1] is None:
        words = f"D does not rise from {MARKS[0]} to {20 * MARKS[0]:.2g}"
        return undecided(words, predicted, LIMITS.rate * predicted, "1/t")
    rate, error = rises[0].rate, 2 * abs(rises[1].rate - rises[0].rate)
    reason = f"slope of log D / 2c = {rate / predicted:.3f} while D rises from {MARKS[0]} to {10 * MARKS[0]}"
    errors = {"predicted_error": 2 * rate_error(visit), "measured_error": error, "unit": "1/t"}
    return agreement(predicted, rate, LIMITS.rate * predicted, reason, **errors)


@flow_claim("FD:second-order", redistributing)
def _second_order(evidence: Evidence) -> Comparison:
    """(2 c - J) w = F''[v, v]/2, v the growing attention: w moves the embeddings, and D with them.

    c, J and F'' are those of where the run is in the small model (1,0), which it may leave before it has settled at the point.
    D is what is left of the start, the second order and the next one; the ratio is that in the limit of a small D.
    """
    visit, unit = evidence.visit(1, 0), "of the prediction"
    not_decided = partial(undecided, predicted=1.0, tolerance=LIMITS.rate, unit=unit)
    if visit is None or visit.small.opening is None:
        return not_decided("the run has no stay at (1,0), or nothing opens there")
    spread, frames = _marked(evidence, visit)
    if not frames:
        return not_decided(NOT_MARKED)
    try:
        predicted = np.array([_driven(evidence, visit, frame) for frame in frames])
    except StagescopeError as error:
        return not_decided(f"there is no second order where the run is: {error}")
    if np.any(np.diff(np.abs(predicted), prepend=0.0) <= 0):
        return not_decided("the second order does not grow with D: what drives D is not attention")
    # By how much D lags behind the second order of where the run is, relative, because c, J and F'' change as it moves:
    # D' = J D + g a^2 with a' = c a gives D = p (1 - d(ln(p / a^2))/dt / (2 c - J) + ...) for p = g a^2 / (2 c - J); over a
    # rise of D the time is ln(rise) / (2 c), and 2 c - J is at least 2 c.
    rise, squares = np.log(np.abs(predicted[[0, -1]])), 2 * np.log(visit.amplitude[frames][[0, -1]])
    return _of_small(spread[frames], predicted, abs(float(np.diff(rise - squares)[0] / np.diff(rise)[0])))


def _marked(evidence: Evidence, visit: SaddleVisit) -> tuple[np.ndarray, list[int]]:
    """D in every frame, and the frames in which it first has each size of `MARKS`; none where they are not so many frames."""
    spread = redistribution(evidence, visit)
    frames = [int(np.argmax(np.abs(spread) >= mark)) for mark in MARKS]
    return spread, frames if np.max(np.abs(spread)) >= MARKS[-1] and len(set(frames)) == len(MARKS) else []


def _of_small(measured: np.ndarray, predicted: np.ndarray, error: float) -> Comparison:
    """D at `MARKS` against what predicts it, in the limit of a small D; `error` is that of the prediction, relative.

    measured = offset + ratio x predicted + bend x predicted^2 at four sizes. The ratio's own error is the difference to three
    sizes without the bend.
    """
    last = float(np.abs(predicted).max())
    x, y = predicted / last, measured / last
    limit, near = _slope(x, y, 2), _slope(x[:3], y[:3], 1)
    ratios, limit_text = ", ".join(map(_stated, measured / predicted)), _stated(limit, near)
    reason = f"D measured/predicted is {ratios} where D is {', '.join(f'{mark:g}' for mark in MARKS)}; {limit_text} in the limit"
    bend, unit = abs(limit - near), "of the prediction"
    result = agreement(1.0, limit, LIMITS.rate, reason, predicted_error=error, measured_error=bend, unit=unit)
    return Comparison(1.0, limit_text, LIMITS.rate, result.holds, reason, unit=unit) if limit_text == UNSTATED else result


@flow_claim("FD:displacement", redistributing)
def _displacement(evidence: Evidence) -> Comparison:
    """D against eta, the strength of attention along the condensed direction, at the factor of the plateau.

    The factor is 3/(2 dgamma) for equal rare tokens, free of persistence and scale. How far it has changed when D is
    read is the error of the prediction.
    """
    visit, unit = evidence.visit(1, 0), "of the prediction"
    not_decided = partial(undecided, predicted=1.0, tolerance=LIMITS.rate, unit=unit)
    if visit is None or visit.small.opening is None:
        return not_decided("the run has no stay at (1,0), or nothing opens there")
    spread, frames = _marked(evidence, visit)
    if not frames:
        return not_decided(NOT_MARKED)
    params, alpha = evidence.curves.params, visit.place.S[0]
    eta = np.abs(np.sum((alpha @ params["WQ"]) * (alpha @ params["WK"]), axis=-1))
    # Where c < 0 eta falls, and embeddings move as if it rose.
    factor, *later = (_factor(evidence, visit, frame) for frame in (visit.frame, *frames))
    predicted = factor * (eta[frames] - eta[0])
    if np.any(np.diff(np.abs(predicted), prepend=0.0) <= 0):
        return not_decided("eta does not grow with D: what drives D is not attention")
    compared = _of_small(spread[frames], predicted, float(np.abs(np.array(later) / factor - 1).max()))
    return replace(compared, reason=f"D/(eta - eta_0) = {factor:.4g} by gamma and beta of the plateau: {compared.reason}")


def _factor(evidence: Evidence, visit: SaddleVisit, frame: int) -> float:
    """D for each unit of eta, by gamma and beta of a frame [FD:displacement]."""
    params, alpha, chain = evidence.curves.params, visit.place.S[0], evidence.law.process
    gamma, beta = params["W0"][frame] @ alpha, alpha @ params["W1"][frame]
    change = family.displacement(evidence.pi, chain.transition, gamma, beta) * np.sign(gamma[evidence.curves.frequent])
    return float(_spread(evidence, change))


def _driven(evidence: Evidence, visit: SaddleVisit, frame: int) -> float:
    """D of w at a frame, linearised at the run's own point of the small model, which need not be critical."""
    place, params = visit.places.at(frame), visit.trajectory.at(frame)
    inside = replace(place, small=place.projected(params)).params
    w, gamma = linearise(evidence.law, inside).second_order(params), (inside["W0"] @ visit.place.S[0])[evidence.curves.frequent]
    return float(_spread(evidence, w["W0"] @ visit.place.S[0]) * np.sign(gamma))


def _stated(*ratios: float) -> str:
    """The first ratio; words where one of them is so large that it says only that next to nothing was predicted."""
    return f"{ratios[0]:.3f}" if max(map(abs, ratios)) <= 1000 else UNSTATED


def _slope(x: np.ndarray, y: np.ndarray, degree: int) -> float:
    """The linear coefficient of a polynomial fit; points that lie too near to each other give one of no size."""
    return float(np.linalg.lstsq(np.vander(x, degree + 1), y, rcond=None)[0][degree - 1])


# Focus and dilution on the way to (1,0): what the linear law at the origin leaves out, and how fast the run approaches.


def _from_origin(evidence: Evidence) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """mu t, x and exp(Jt) x(0), J that of the origin, of some frames up to the one in which |exp(Jt) x(0)| passes .1.

    J = mu0 (l w^T) between W0 and W1: p = l^T W0 and q = W1 w move as p' = mu0 q, q' = mu0 p, and nothing else does.
    """
    (left, right), params = family.condensation_directions(evidence.pi), evidence.curves.params
    folds = family.condensation_rate(evidence.pi) * (evidence.time - evidence.time[0])
    folds = folds[folds < 300]  # cosh of more overflows
    p, q = left @ params["W0"][0], params["W1"][0] @ right
    even, odd = np.cosh(folds)[:, None], np.sinh(folds)[:, None]
    modes = even * p + odd * q, even * q + odd * p
    still = sum(float(np.sum(block[0] ** 2)) for block in params.values()) - p @ p - q @ q
    near = still + sum(np.sum(part**2, axis=1) for part in modes) <= LIMITS.level**2
    count = len(folds) if near.all() else int(np.argmin(near))
    few = np.unique(np.searchsorted(folds[:count], np.linspace(0, folds[count - 1], 4 * LIMITS.samples))) if count else []
    few = np.asarray(few, dtype=int)
    linear = {name: np.repeat(block[:1], len(few), axis=0) for name, block in params.items()}
    linear["W0"] += left[:, None] * (modes[0][few] - p)[:, None, :]
    linear["W1"] += (modes[1][few] - q)[:, :, None] * right
    return folds[few], {name: block[few] for name, block in params.items()}, linear


def _norms(frames: Mapping[str, np.ndarray]) -> np.ndarray:
    """The norm of all parameters in every frame."""
    return np.sqrt(sum(np.sum(block**2, axis=(1, 2)) for block in frames.values()))


def _from_small(evidence: Evidence) -> Regime:
    """A flow from so small a start that it grows e-fold before |exp(Jt) x(0)| passes .1."""
    folds, *_ = _from_origin(evidence)
    long = folds.size > 0 and folds[-1] >= 1
    words = f"|exp(Jt) x(0)| passes {LIMITS.level} within an e-fold of the start, or the run ends before it has grown e-fold"
    return narrowed(small_flow(evidence), (long, words))


@flow_claim("FD:linear-bound", _from_small)
def _linear_bound(evidence: Evidence) -> Comparison:
    """The largest |x - exp(Jt) x(0)| / (eps^2 e^(2 mu t)) while |exp(Jt) x(0)| <= r/2 = .1, at most C = 4 L/mu.

    The lemma needs |F - J x| <= L |x|^2 on the way alone, so L is the largest ratio there.
    """
    folds, params, linear = _from_origin(evidence)
    if len(folds) < 2:
        return undecided(f"the start is not below {LIMITS.level}", "-", "at most")
    mu, (left, right) = family.condensation_rate(evidence.pi), family.condensation_directions(evidence.pi)
    grads = [evidence.law.grad({name: block[frame] for name, block in params.items()}) for frame in range(len(folds))]
    beyond = {name: -np.array([grad[name] for grad in grads]) for name in params}  # F - J x
    beyond["W0"] -= mu * left[:, None] * (params["W1"] @ right)[:, None, :]
    beyond["W1"] -= mu * (left @ params["W0"])[:, :, None] * right
    eps = float(_norms(linear)[0])
    bound = 4 * float(np.max(_norms(beyond) / _norms(params) ** 2)) / mu
    left_out = _norms({name: block - linear[name] for name, block in params.items()})
    largest = float(np.max(left_out / (eps**2 * np.exp(2 * folds))))
    reason = f"over {folds[-1]:.3g} e-folds from eps = {eps:.2g} at most {largest:.3g}, and C = 4 L/mu = {bound:.3g}"
    return Comparison(bound, largest, "at most", largest <= bound, reason)


@flow_claim("FD:approach", visited(1, 0))
def _approach(evidence: Evidence) -> Comparison:
    """The rate at which the logits z of the mean context fall e-fold towards log pi, against exp(-K t) from where they begin.

    Read from |z| = .05, .1 and .2 on, the ratio of the two has an error of order |z|. Two neighbours give a limit without it, and
    the difference of the two limits is the error of the measurement. What attention, which has begun to open, adds to z' over
    the first fall is the error of the prediction.
    """
    first = evidence.openings["E1"]
    gap = _logits(evidence.pi, evidence.curves.params["W0"], evidence.curves.params["W1"]) - _centred(np.log(evidence.pi))
    after = math.inf if first is None else first
    sizes = [times * LIMITS.linear for times in LIMITS.doublings[:3]]
    falls = [_fall(evidence.time, np.linalg.norm(gap, axis=1), after, high) for high in sizes]
    matrix = family.approach_matrix(evidence.pi)
    rates = [(fall.rate, _falling(matrix, gap[fall.begin])) for fall in falls if fall is not None]
    if falls[0] is None or len(rates) < len(sizes):
        return undecided(f"the logits do not fall e-fold from {LIMITS.linear} of log pi", "-", unit="1/t")
    ratios, predicted = [measured / expected for measured, expected in rates], rates[0][1]
    limit, before = (2 * near - far for near, far in pairwise(ratios))
    listed, closed = " ".join(f"{x:.4f}" for x in ratios), family.approach_rate(float(evidence.pi.max()), len(evidence.pi))
    heights = ", ".join(f"{x:g}" for x in sizes)
    reason = f"measured/predicted = {listed} while |z| falls e-fold from {heights}; {limit:.4f} in the limit"
    reason += f"; with equal rare tokens the rate is {closed:.4g}"
    added, error = abs(_added(evidence, falls[0], gap)), abs(limit - before) * predicted
    tolerance = LIMITS.rate * predicted
    return agreement(predicted, limit * predicted, tolerance, reason, predicted_error=added, measured_error=error, unit="1/t")


def _centred(logits: np.ndarray) -> np.ndarray:
    return logits - logits.mean(axis=-1, keepdims=True)


def _logits(pi: np.ndarray, w0: np.ndarray, w1: np.ndarray) -> np.ndarray:
    """Of the mean context pi W0 W1, less their mean, in every frame."""
    return _centred(((pi @ w0)[..., None, :] @ w1)[..., 0, :])


@dataclass(frozen=True)
class Fall:
    """A size falls e-fold from frame `begin` to frame `end`, at a mean rate."""

    begin: int
    end: int
    rate: float


def _fall(time: np.ndarray, size: np.ndarray, after: float, high: float) -> Fall | None:
    """From the first frame in which a size is at most `high`; None where it does not fall so far."""
    later = np.flatnonzero((time >= after) & (size <= high))
    if not later.size:
        return None
    begin = int(later[0])
    below = np.flatnonzero(size[begin:] <= size[begin] / math.e)
    if not below.size:
        return None
    end = begin + int(below[0])
    folds = np.log(size[begin] / size[end - 1 : end + 1])
    return Fall(begin, end, 1 / float(np.interp(1.0, folds, time[end - 1 : end + 1]) - time[begin]))


def _falling(matrix: np.ndarray, start: np.ndarray) -> float:
    """The mean rate at which |exp(-K t) start| falls e-fold; by eigenvectors it would fail where tokens are equal."""
    from scipy.linalg import expm
    from scipy.optimize import brentq

    size = np.linalg.norm(start)
    slowest = float(np.sort(np.real(np.linalg.eigvals(matrix)))[1])  # the least is that of the constant, which is no logit

    def left(t: float) -> float:
        return math.log(np.linalg.norm(expm(-t * matrix) @ start) / size) + 1

    return 1 / float(brentq(left, 0.0, 10 / slowest))  # type: ignore[arg-type]


def _added(evidence: Evidence, fall: Fall, gap: np.ndarray) -> float:
    """What attention adds to the rate over a fall: z' of the run, less that of its W0 and W1 with the attention pi."""
    frames, added = np.unique(np.linspace(fall.begin, fall.end, LIMITS.samples).astype(int)), []
    for frame in frames:
        params = {name: block[frame] for name, block in evidence.curves.params.items()}
        flat = params | {name: np.zeros_like(params[name]) for name in ("WQ", "WK")}
        moves = []
        for point in (params, flat):
            grad = evidence.law.grad(point)
            moves.append(-_centred(evidence.pi @ (grad["W0"] @ params["W1"] + params["W0"] @ grad["W1"])))
        added.append(float(gap[frame] @ (moves[0] - moves[1]) / (gap[frame] @ gap[frame])))
    return float(np.mean(added))


# Focus and dilution: along which directions embeddings condense and attention opens, and with which sign.


@flow_claim("FD:directions", small_flow)
def _condensation_direction(evidence: Evidence) -> Comparison:
    """Cosines at E1; what is left of the start, of norm eps sqrt(d) against .1, tilts them by half its square."""
    time = evidence.openings["E1"]
    if time is None:
        return undecided("E1 was not reached", 1.0, LIMITS.first_direction, "cosine")
    frame = min(int(np.searchsorted(evidence.time, time)), len(evidence.time) - 1)
    left, right = family.condensation_directions(evidence.curves.pi)
    u = np.linalg.svd(evidence.curves.params["W0"][frame])[0][:, 0]
    w = np.linalg.svd(evidence.curves.params["W1"][frame])[2][0]
    least = float(min(abs(u @ left), abs(w @ right)))
    reason = f"|cos| of W0 with pi {abs(u @ left):.4f}, of W1 with pi - 1/d {abs(w @ right):.4f} at E1"
    error = (evidence.scale * len(evidence.pi) ** 0.5 / 0.1) ** 2 / 2
    return agreement(1.0, least, LIMITS.first_direction, reason, predicted_error=error, unit="cosine")


@flow_claim("FD:frozen", small_flow)
def _frozen(evidence: Evidence) -> Comparison:
    time, top, unit = evidence.openings["E1"], evidence.curves.key_values[:, 0], "share of the start"
    if time is None or top[0] <= 0:
        words = "E1 was not reached" if time is None else "WQ or WK starts at zero"
        return undecided(words, 1.0, LIMITS.origin, unit)
    ratio = float(np.interp(time, evidence.time, top) / top[0])
    return agreement(1.0, ratio, LIMITS.origin, f"sv_1(WQ WK^T) at E1 is {ratio:.4f} of its start", unit=unit)


def _signed(evidence: Evidence) -> Regime:
    """A flow from a small start whose c is not zero to rounding."""
    base = small_flow(evidence)
    nothing = abs(evidence.rate) <= LIMITS.equal
    return Regime(False, "c is zero: attention has nothing to learn at (1,0)") if base.holds and nothing else base


@flow_claim("FD:focus", _signed)
def _focus_direction(evidence: Evidence) -> Comparison:
    """cos(Phi, pi pi^T) in the limit of a small Phi: by a line through its values where sv_1(Phi) passes .01 and .03.

    The error is the difference between those two.
    """
    sign, curves = evidence.curves.sign, evidence.curves
    cosines = []
    for size in (LIMITS.turn / 3, LIMITS.turn):
        time = passes(curves.time, curves.score_values[:, :1], size)[0]
        if time is None or (evidence.second is not None and time > evidence.second):
            return undecided(f"sv_1(Phi) stays below {size:.2g} before E2", sign, LIMITS.first_direction, "cosine")
        frame = min(int(np.searchsorted(curves.time, time)), len(curves.time) - 1)
        phi = curves.law.model.scores({name: block[frame] for name, block in curves.params.items()})
        target = np.outer(evidence.pi, evidence.pi)
        cosines.append(float(np.sum(phi * target) / np.linalg.norm(phi) / np.linalg.norm(target)))
    word, limit = "focus" if sign > 0 else "defocus", 1.5 * cosines[0] - 0.5 * cosines[1]
    reason = f"c = {evidence.rate:.4g} predicts {word}; cos(Phi, pi pi^T) = {cosines[1]:+.4f} when sv_1(Phi) is {LIMITS.turn}"
    return agreement(sign, limit, LIMITS.first_direction, reason, measured_error=abs(cosines[1] - cosines[0]), unit="cosine")


@flow_claim("FD:sign", _signed)
def _sign(evidence: Evidence) -> Comparison:
    change, c, sign = first_move(evidence.curves), evidence.rate, evidence.curves.sign
    if change is None or abs(change) < LIMITS.flow_noise:
        return undecided("attention does not move in this run", sign, "sign")
    word = "towards" if change > 0 else "away from"
    reason = f"c = {c:+.3g}; the mean attention on the frequent token first moves by {change:+.2g}, {word} it"
    return Comparison(sign, change, "sign", c * change > 0, reason, 0.0, LIMITS.flow_noise, "attention")
