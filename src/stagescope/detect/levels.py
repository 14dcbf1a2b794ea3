"""Transitions and plateaus of a loss that descends a ladder of known levels l_0 > l_1 > ... > l_k.

For any clock and any loss: the levels are |R|^2/2 of the regression flow, or the losses of restricted classes. Every loss that
falls far enough crosses the levels, also one without stages. A crossing is the end of a stage only if the loss rests before
the next one: its fall per unit of ln t then has a valley between the two.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from stagescope.core.errors import InputError
from stagescope.detect.events import crossing, first_crossing
from stagescope.detect.limits import LIMITS
from stagescope.detect.stage import Event


@dataclass(frozen=True)
class PlateauThresholds:
    """When the loss rests on a level."""

    close: float = 0.15
    """Plateau j is accepted if its loss is within this share of the step l_{j-1} - l_j of level j (science page, section 5)."""
    fewest: int = 3
    """Least number of frames between two transitions for a plateau to be seen: a slope and its error."""
    nearby: int = 10
    """Frames to each side of a crossing that the noise of the loss is estimated from."""
    errors: float = 5.0
    """Standard errors by which the fall must be slower on a plateau than on both sides. A valley is the least of some fifty
    independent slopes, at five bandwidths: 5 keeps the chance of one in pure noise below 1e-3."""

    bandwidths: tuple[float, ...] = (0.06, 0.1, 0.16, 0.25, 0.4)
    """Of the slope, in ln time: from half the narrowest transition to the widest; the second is that of a plateau's drift."""
    ratio: float = 1.3
    """Times by which the fall must be slower on a plateau than on both sides."""


PLATEAU = PlateauThresholds()


@dataclass(frozen=True)
class Plateau:
    """Where the loss is flattest on a logarithmic clock between transition j and the next; `accepted` if near level j.

    `drift` is dL/d ln t by a least-squares fit around it; one frame of a noisy curve does not give its slope. `between` is
    True where the loss falls more slowly there than before and after, False where it does not, and None where the run ends
    before the next transition.
    """

    j: int
    t: float
    loss: float
    level: float
    drift: float
    accepted: bool
    between: bool | None = None


def transitions(time: np.ndarray, loss: np.ndarray, levels: np.ndarray) -> tuple[float | None, ...]:
    """t_1 .. t_k: the first crossing of (l_{j-1} + l_j)/2, interpolated; None where the loss stays above it."""
    _check(time, loss, levels)
    return tuple(first_crossing(time, loss, (above + below) / 2, rising=False) for above, below in _steps(levels))


def crossings(time: np.ndarray, loss: np.ndarray, levels: np.ndarray, smooth: bool) -> tuple[Event, ...]:
    """The same as events with intervals.

    On a `smooth` curve, that of a flow, linear interpolation between frames errs by the square of their spacing: twice the
    spacing changes the crossing by three times the error, which is taken as the half-width. On any other the interval holds
    the two frames around the crossing and what the noise of the loss there can move it by.
    """
    _check(time, loss, levels)
    return tuple(_crossing(time, loss, (above + below) / 2, smooth) for above, below in _steps(levels))


def _crossing(time: np.ndarray, loss: np.ndarray, level: float, smooth: bool) -> Event:
    first_time = first_crossing(time, loss, level, rising=False)
    method = f"the loss first crosses {level:.4g}"
    if first_time is None or not smooth:
        error = 0.0 if first_time is None else 2 * noise_near(time, loss, first_time)
        return crossing(time, loss, level, rising=False, error=error, how=method)
    if loss[0] <= level:
        return Event.missing("at the start", method)
    i = int(np.searchsorted(time, first_time))
    coarse = np.array(sorted({0, *range(i % 2, len(time), 2), len(time) - 1}))
    first = first_crossing(time[coarse], loss[coarse], level, rising=False)
    shifted = np.array(sorted({0, *range(1 - i % 2, len(time), 2), len(time) - 1}))
    second = first_crossing(time[shifted], loss[shifted], level, rising=False)
    width = max(abs(estimate - first_time) for estimate in (first, second, first_time * (1 + 1e-9)) if estimate is not None)
    return Event(first_time, first_time - width, first_time + width, how=method)


def widened(event: Event, others: list[float | None]) -> Event:
    """An event whose interval also holds what other batches do to it: Student's 95 % interval from the spread of its times."""
    other_times = [time for time in others if time is not None]
    if event.time is None or event.low is None or event.high is None or not other_times:
        return event
    from scipy.stats import t as student

    half = float(student.ppf(0.975, len(other_times)) * np.std([event.time, *other_times], ddof=1))
    return replace(event, low=max(0.0, min(event.low, event.time - half)), high=max(event.high, event.time + half))


def noise_near(time: np.ndarray, loss: np.ndarray, when: float) -> float:
    """Standard deviation of the loss about its trend near a time, from second differences: 0 for a smooth curve."""
    i, side = int(np.searchsorted(time, when)), PLATEAU.nearby
    near = loss[max(0, i - side) : i + side + 1]
    if len(near) < 2 * PLATEAU.fewest:
        return 0.0
    return float(1.4826 * np.median(np.abs(np.diff(near, 2))) / np.sqrt(6))  # of white noise, d2 has variance 6


def plateaus(time: np.ndarray, loss: np.ndarray, levels: np.ndarray) -> tuple[Plateau | None, ...]:
    """Plateaus 1 .. k: least |dL/d ln t| between t_j and t_{j+1}, or the end; None without t_j or frames after it."""
    drop_times = (*transitions(time, loss, levels), None)
    later = time > 0
    clock, curve = time[later], loss[later]
    slope = np.gradient(curve, np.log(clock)) if clock.size > 1 else np.zeros(clock.size)
    by_level: list[Plateau | None] = []
    for j, (above, below) in enumerate(_steps(levels), start=1):
        start, stop = drop_times[j - 1], drop_times[j]
        inside = np.flatnonzero((clock > start) & (clock < (np.inf if stop is None else stop))) if start is not None else ()
        if len(inside) < PLATEAU.fewest:
            by_level.append(None)
            continue
        i = int(inside[np.argmin(np.abs(slope[inside]))])
        near = bool(abs(curve[i] - below) <= PLATEAU.close * (above - below))
        rests = None if stop is None else valley(clock, curve, drop_times, j)
        # Least-squares slope of the curve in ln t around a frame.
        logs, count, side = np.log(clock), len(clock), LIMITS.records // 2
        around = np.abs(logs - logs[i]) <= PLATEAU.bandwidths[1] / 2
        around[max(0, min(i - side, count - 2 * side - 1)) : max(i + side, 2 * side) + 1] = True
        by_level.append(
            Plateau(
                j,
                float(clock[i]),
                float(curve[i]),
                float(below),
                float(np.polyfit(logs[around] - logs[i], curve[around], 1)[0]),
                near,
                rests,
            )
        )
    return tuple(by_level)


def valley(time: np.ndarray, loss: np.ndarray, when: tuple[float | None, ...], j: int) -> bool:
    """Whether -dL/d ln t is lower somewhere between t_j and t_{j+1} than on both sides, at one bandwidth of the detector.

    Lower by the ratio that makes a peak of the paper-free detector, and by several standard errors. The sides reach to the
    middle of the transition before t_j and of the one after t_{j+1}. The fall of an exponential, exp(-t), has one peak only.
    """
    logs = np.log(time)
    ends = [None if t is None else float(np.log(t)) for t in when]
    start, stop = ends[j - 1], ends[j]
    if start is None or stop is None:
        return False
    first = ends[j - 2] if j > 1 else None
    last = ends[j + 1] if j + 1 < len(ends) else None
    reach = (logs >= (-np.inf if first is None else first)) & (logs <= (np.inf if last is None else last))
    for h in PLATEAU.bandwidths:
        if np.ptp(logs[reach]) < 3 * h:
            break
        grid, slope, error = local_slopes(logs[reach], loss[reach], h)
        inside = np.flatnonzero((grid > start) & (grid < stop))
        if not inside.size:
            continue
        low = int(inside[np.argmin(-slope[inside])])
        if all(_steeper(-slope, error, low, side) for side in (slice(None, low), slice(low + 1, None))):
            return True
    return False


def local_slopes(u: np.ndarray, curve: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Local-linear slopes and their standard errors with Gaussian weights, on a grid of spacing h/3."""
    grid = np.arange(u[0], u[-1] + h / 6, h / 3)
    weight = np.exp(-0.5 * ((grid[:, None] - u[None, :]) / h) ** 2)
    enough = (weight > 0.1).sum(axis=1) >= LIMITS.records  # that carry weight
    grid, weight = grid[enough], weight[enough]
    total = weight.sum(axis=1)
    off = u[None, :] - (weight @ u / total)[:, None]
    moment = (weight * off**2).sum(axis=1)
    slope = (weight * off * curve[None, :]).sum(axis=1) / moment
    residual = curve[None, :] - (weight @ curve / total)[:, None] - slope[:, None] * off
    size = total**2 / (weight**2).sum(axis=1)
    variance = (weight * residual**2).sum(axis=1) / total * size / np.maximum(size - 2, 1)
    return grid, slope, np.sqrt(variance * (weight**2 * off**2).sum(axis=1)) / moment


def _steeper(fall: np.ndarray, error: np.ndarray, low: int, side: slice) -> bool:
    if not fall[side].size:
        return False
    top = int(np.argmax(fall[side])) + (side.start or 0)
    height = fall[top] - fall[low]
    return bool(
        fall[top] >= PLATEAU.ratio * fall[low] and height >= PLATEAU.errors * np.hypot(error[top], error[low]) and height > 0
    )


def _steps(levels: np.ndarray) -> list[tuple[float, float]]:
    return list(pairwise(levels))


def no_ladder(levels: np.ndarray) -> str | None:
    """Why there is no ladder to descend, where a level is not below the one before; None where all decrease."""
    flat = np.flatnonzero(np.diff(levels) >= 0)
    if not flat.size:
        return None
    j = int(flat[0]) + 1
    sizes = f"level {j} ({levels[j]:.4g}) is not below level {j - 1} ({levels[j - 1]:.4g})"
    return f"levels do not decrease: {sizes}, so step {j} cannot be seen in the loss"


def _check(time: np.ndarray, loss: np.ndarray, levels: np.ndarray) -> None:
    if len(levels) < 2:
        raise InputError(f"levels are {np.asarray(levels)}, but a ladder needs at least two")
    if (reason := no_ladder(levels)) is not None:
        raise InputError(reason)
    if len(time) != len(loss):
        raise InputError(f"{len(time)} times for {len(loss)} losses")
