"""Where a curve may have a transition: peaks of its slope in ln time, at several bandwidths."""

from dataclasses import dataclass

import numpy as np


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


def proposals(u: np.ndarray, curve: np.ndarray, rules: Peaks = PEAKS) -> list[Proposal]:
    """Peaks of |d curve/du|, those that stand out most first."""
    found = [peak for h in rules.bandwidths for peak in _peaks(*local_slopes(u, curve, h, rules.records), h, rules)]
    kept: list[Proposal] = []
    for peak in sorted(found, key=lambda each: -each.excess):
        if all(abs(peak.centre - other.centre) > max(rules.apart, min(peak.bandwidth, other.bandwidth)) for other in kept):
            kept.append(peak)
    return kept[: rules.most]


def local_slopes(u: np.ndarray, curve: np.ndarray, h: float, records: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Local-linear slopes and their standard errors with Gaussian weights, on a grid of spacing h/3."""
    grid = np.arange(u[0], u[-1] + h / 6, h / 3)
    weight = np.exp(-0.5 * ((grid[:, None] - u[None, :]) / h) ** 2)
    enough = (weight > 0.1).sum(axis=1) >= records
    grid, weight = grid[enough], weight[enough]
    total = weight.sum(axis=1)
    off = u[None, :] - (weight @ u / total)[:, None]
    moment = (weight * off**2).sum(axis=1)
    slope = (weight * off * curve[None, :]).sum(axis=1) / moment
    rest = curve[None, :] - (weight @ curve / total)[:, None] - slope[:, None] * off
    size = total**2 / (weight**2).sum(axis=1)
    variance = (weight * rest**2).sum(axis=1) / total * size / np.maximum(size - 2, 1)
    return grid, slope, np.sqrt(variance * (weight**2 * off**2).sum(axis=1)) / moment


def _peaks(at: np.ndarray, slope: np.ndarray, error: np.ndarray, h: float, rules: Peaks) -> list[Proposal]:
    if len(at) < rules.records:
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
            clear = all(d[i] >= rules.ratio * d[j] for j in sides) and abs(slope[i] - middle) >= rules.spreads * spread
            if excess >= rules.errors and clear:
                found.append(Proposal(float(at[i]), h, float(excess)))
    return found


def _lowest(d: np.ndarray, top: int, step: int) -> int:
    """The lowest place from a peak outwards, before the curve is higher than the peak."""
    low = j = top
    while 0 <= j + step < len(d) and d[j + step] <= d[top]:
        j += step
        low = j if d[j] < d[low] else low
    return low
