"""Transitions of any curve, with intervals: proposed by slope, decided by likelihood. Knows no paper.

A transition is a fast change between two slower stretches on the clock u = ln(time + last/300). The curve is a constant, a
slope in u and logistic steps; what is left is noise, correlated between records, Brownian in time and integrated Brownian in
u. Power laws, knees, relaxations, drifts and random walks are thereby noise or background, and have no transition.
"""

from dataclasses import dataclass, replace

import numpy as np

from stagescope.detect.noise_kernel import climb, deviance, natural, search
from stagescope.detect.stage import Transition
from stagescope.errors import InputError


@dataclass(frozen=True)
class Proposal:
    """A peak of the slope: where it is, at which bandwidth it was seen, and by how many standard errors it stands out."""

    centre: float
    bandwidth: float
    excess: float


@dataclass(frozen=True)
class Peaks:
    """What makes a peak of the slope a proposal. The likelihood decides later: these only keep the number of fits small."""

    bandwidths: tuple[float, ...] = (0.06, 0.1, 0.16, 0.25, 0.4)  # in ln time: half the narrowest to twice the widest transition
    errors: float = 2.5  # standard errors above the lowest slope on each side
    ratio: float = 1.3  # times the lowest slope on each side
    spreads: float = 1.5  # robust standard deviations from the median slope
    records: int = 5  # records that carry weight, or the slope is not evaluated
    apart: float = 0.12  # proposals nearer than this are one
    most: int = 8


PEAKS = Peaks()


def proposals(u: np.ndarray, curve: np.ndarray) -> list[Proposal]:
    """Peaks of |d curve/du|, those that stand out most first."""
    found = [peak for h in PEAKS.bandwidths for peak in _peaks(*local_slopes(u, curve, h), h)]
    kept: list[Proposal] = []
    for peak in sorted(found, key=lambda each: -each.excess):
        if all(abs(peak.centre - other.centre) > max(PEAKS.apart, min(peak.bandwidth, other.bandwidth)) for other in kept):
            kept.append(peak)
    return kept[: PEAKS.most]


def local_slopes(u: np.ndarray, curve: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Local-linear slopes and their standard errors with Gaussian weights, on a grid of spacing h/3."""
    grid = np.arange(u[0], u[-1] + h / 6, h / 3)
    weight = np.exp(-0.5 * ((grid[:, None] - u[None, :]) / h) ** 2)
    enough = (weight > 0.1).sum(axis=1) >= PEAKS.records
    grid, weight = grid[enough], weight[enough]
    total = weight.sum(axis=1)
    off = u[None, :] - (weight @ u / total)[:, None]
    moment = (weight * off**2).sum(axis=1)
    slope = (weight * off * curve[None, :]).sum(axis=1) / moment
    rest = curve[None, :] - (weight @ curve / total)[:, None] - slope[:, None] * off
    size = total**2 / (weight**2).sum(axis=1)
    variance = (weight * rest**2).sum(axis=1) / total * size / np.maximum(size - 2, 1)
    return grid, slope, np.sqrt(variance * (weight**2 * off**2).sum(axis=1)) / moment


def _peaks(at: np.ndarray, slope: np.ndarray, error: np.ndarray, h: float) -> list[Proposal]:
    if len(at) < PEAKS.records:
        return []
    middle = np.median(slope)
    spread = 1.4826 * np.median(np.abs(slope - middle))  # the factor makes it a standard deviation for normal slopes
    found = []
    for sign in (1.0, -1.0):
        d = sign * slope
        tops = np.flatnonzero((d[1:-1] >= d[:-2]) & (d[1:-1] > d[2:]) & (d[1:-1] > 0)) + 1
        for i in tops:
            sides = (_lowest(d, int(i), -1), _lowest(d, int(i), 1))
            excess = min((d[i] - d[j]) / max(np.hypot(error[i], error[j]), 1e-300) for j in sides)
            clear = all(d[i] >= PEAKS.ratio * d[j] for j in sides) and abs(slope[i] - middle) >= PEAKS.spreads * spread
            if excess >= PEAKS.errors and clear:
                found.append(Proposal(float(at[i]), h, float(excess)))
    return found


def _lowest(d: np.ndarray, top: int, step: int) -> int:
    """The lowest place from a peak outwards, before the curve is higher than the peak."""
    low = j = top
    while 0 <= j + step < len(d) and d[j + step] <= d[top]:
        j += step
        low = j if d[j] < d[low] else low
    return low


@dataclass(frozen=True)
class Rules:
    """When a logistic step is a transition."""

    gain: float = 20.0  # twice the gain in ln likelihood: three free numbers chosen among some hundred places
    share: float = 0.05  # least amplitude, of the curve's range
    widest: float = 1.6 / 3.53  # from 15 % to 85 % takes 3.53 w; an exponential relaxation takes 2.45 in ln time
    narrowest: float = 0.01
    records: int = 5  # on each side, beyond twice the width
    apart: float = 0.12  # steps nearer than this, or than 1.5 times the sum of their widths, are one
    drop: float = 3.84  # twice the fall of the profile likelihood at the ends of a 95 % interval
    fewest: int = 15  # records; fewer carry no transition


RULES = Rules()


def transitions(time: np.ndarray, curve: np.ndarray, rules: Rules = RULES) -> tuple[Transition, ...]:
    """The transitions of a curve in order of time; records that are not finite are left out.

    Args:
        time: of each record.
        curve: one number a record.
        rules: what counts as a transition.

    Examples:
        >>> time = np.geomspace(1, 1000, 200)
        >>> [round(each.t) for each in ss.transitions(time, 1 / (1 + (time / 30) ** 12))]
        [30]
    """
    time, curve = np.asarray(time, dtype=float), np.asarray(curve, dtype=float)
    if time.shape != curve.shape or time.ndim != 1 or np.any(np.diff(time) <= 0) or (time.size and time[0] < 0):
        raise InputError(f"expected rising times >= 0, one for each value; got shapes {time.shape} and {curve.shape}")
    finite = np.isfinite(curve)
    time, curve = time[finite], curve[finite]
    if len(time) < rules.fewest or np.ptp(curve) <= 1e-12 * np.max(np.abs(curve)):
        return ()
    data = Data.of(time, curve, rules)
    fit = _backward(data, _merged(data, _forward(data)))
    found = (_transition(data, fit, j) for j in range(fit.steps))
    return tuple(sorted((each for each in found if each is not None), key=lambda each: each.t))


@dataclass(frozen=True)
class Fit:
    """Noise (atanh rho, ln Brownian, ln bend), centres and ln widths of logistic steps, and -2 ln likelihood."""

    noise: np.ndarray
    centres: np.ndarray
    widths: np.ndarray
    deviance: float = np.inf

    @property
    def steps(self) -> int:
        return len(self.centres)

    def with_step(self, centre: float, width: float) -> "Fit":
        return replace(self, centres=np.append(self.centres, centre), widths=np.append(self.widths, np.log(width)))

    def without(self, j: int) -> "Fit":
        return replace(self, centres=np.delete(self.centres, j), widths=np.delete(self.widths, j))


@dataclass(frozen=True)
class Data:
    """A curve on the clock u, in units of its standard deviation."""

    last: float
    u: np.ndarray
    curve: np.ndarray
    scale: float
    ds: np.ndarray
    du: np.ndarray
    rules: Rules

    @classmethod
    def of(cls, time: np.ndarray, curve: np.ndarray, rules: Rules) -> "Data":
        last, scale = float(time[-1]), float(np.std(curve))
        u = np.log(time + last / 300)
        ds, du = (np.diff(each, prepend=each[0]) for each in (time / last, u))
        return cls(last, u, (curve - curve[0]) / scale, scale, ds, du, rules)

    def fitted(self, fit: Fit, rounds: int = 3, held: int = -1) -> Fit:
        """Steps and noise in turn until nothing is gained; the centre of step `held` stays."""
        value, noise = np.inf, fit.noise
        centres, widths = fit.centres.copy(), fit.widths.copy()
        bounds = np.array([self.u[0], self.u[-1], np.log(self.rules.narrowest), np.log(1.3 * self.rules.widest)])
        for turn in range(rounds):
            before = value
            if len(centres):
                climb(self.curve, self.u, self.ds, self.du, natural(noise), centres, widths, bounds, 12, held)
            wide = turn == 0 and held < 0
            noise, value = search(self.curve, self.u, self.ds, self.du, noise, centres, np.exp(widths), wide)
            if before - value < 0.05:
                break
        return Fit(noise, centres, widths, value)

    def heights(self, fit: Fit) -> np.ndarray:
        """Fitted heights of the steps."""
        work, found = np.empty((len(self.u), fit.steps + 3)), np.zeros(fit.steps + 2)
        deviance(self.curve, self.u, self.ds, self.du, natural(fit.noise), fit.centres, np.exp(fit.widths), work, found)
        return found[2:]


def _forward(data: Data) -> Fit:
    """Add the proposal that gains most, with the noise fitted anew, while it gains enough."""
    left = proposals(data.u, data.curve)
    fit = data.fitted(Fit(np.array([0.0, -12.0, -12.0]), np.empty(0), np.empty(0)))
    while left:
        starts = [(fit.with_step(seed.centre, factor * seed.bandwidth), seed) for seed in left for factor in (0.25, 0.7)]
        best, seed = min(((data.fitted(start, 1), seed) for start, seed in starts), key=lambda each: each[0].deviance)
        best = data.fitted(best)
        if fit.deviance - best.deviance < data.rules.gain:
            break
        fit = best
        left.remove(seed)
    return fit


def _merged(data: Data, fit: Fit) -> Fit:
    """Steps too near to each other to be two become one: the smaller goes, the other is fitted anew."""
    while fit.steps > 1:
        order = np.argsort(fit.centres)
        width = np.exp(fit.widths[order])
        least = np.maximum(data.rules.apart, 1.5 * (width[1:] + width[:-1]))
        ratio = np.diff(fit.centres[order]) / least
        i = int(np.argmin(ratio))
        if ratio[i] >= 1:
            break
        pair = order[i : i + 2]
        heights = np.abs(data.heights(fit)[pair])
        fit = data.fitted(fit.without(int(pair[np.argmin(heights)])))
    return fit


def _backward(data: Data, fit: Fit) -> Fit:
    """Drop the step that is missed least, with the noise fitted anew, while it is missed too little."""
    while fit.steps:
        tries = (data.fitted(fit.without(j), 1) for j in range(fit.steps))
        less = data.fitted(min(tries, key=lambda each: each.deviance))
        if less.deviance - fit.deviance >= data.rules.gain:
            break
        fit = less
    return fit


def _transition(data: Data, fit: Fit, j: int) -> Transition | None:
    rules, centre, width = data.rules, float(fit.centres[j]), float(np.exp(fit.widths[j]))
    height = float(data.heights(fit)[j])
    sides = ((data.u < centre - 2 * width).sum(), (data.u > centre + 2 * width).sum())
    if abs(height) < rules.share * np.ptp(data.curve) or width >= rules.widest or min(sides) < rules.records:
        return None
    low, high = (_end(data, fit, j, side) for side in (-1, 1))
    first, second = _split(data, fit, j)
    ends = (min(low, first), centre, max(high, second))
    low, middle, high = (float(np.exp(u) - data.last / 300) for u in ends)
    return Transition(middle, max(low, 0.0), min(high, data.last), width, height * data.scale)


def _split(data: Data, fit: Fit, j: int) -> tuple[float, float]:
    """Two nearby steps in place of one, where that is more likely: the transition lies between them."""
    centre, width = fit.centres[j], np.exp(fit.widths[j])
    pair = fit.without(j).with_step(centre - width, width / 2).with_step(centre + width, width / 2)
    pair = data.fitted(pair)
    if fit.deviance - pair.deviance < 3 * data.rules.drop:  # three more free numbers
        return centre, centre
    found = np.sort(pair.centres[-2:])
    return float(max(found[0], centre - 3 * width)), float(min(found[1], centre + 3 * width))


def _end(data: Data, fit: Fit, j: int, side: int) -> float:
    """Where the profile likelihood of a centre has fallen to that of the end of its interval."""
    inner, outer, start = 0.0, 0.25 * float(np.exp(fit.widths[j])), fit
    for _ in range(12):
        moved = _moved(data, start, j, fit.centres[j] + side * outer)
        if moved.deviance - fit.deviance > data.rules.drop:
            break
        inner, outer, start = outer, 1.7 * outer, moved
    for _ in range(6):
        middle = 0.5 * (inner + outer)
        over = _moved(data, start, j, fit.centres[j] + side * middle).deviance - fit.deviance > data.rules.drop
        inner, outer = (inner, middle) if over else (middle, outer)
    return float(fit.centres[j] + side * outer)


def _moved(data: Data, fit: Fit, j: int, centre: float) -> Fit:
    """The best fit with one centre held elsewhere."""
    centres = fit.centres.copy()
    centres[j] = centre
    return data.fitted(replace(fit, centres=centres), 1, j)
