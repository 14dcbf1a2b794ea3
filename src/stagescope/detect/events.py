"""How events are located on curves: crossings and peaks, as plain numbers and as estimates with an interval."""

import numpy as np

from stagescope.detect.stage import Event


def first_crossing(time: np.ndarray, curve: np.ndarray, level: float, rising: bool, after: float = 0.0) -> float | None:
    """The first time from `after` on at which the curve passes the level, by linear interpolation; None if it never does."""
    sign = 1.0 if rising else -1.0
    above = sign * (curve - level) >= 0
    hits = np.flatnonzero(above & (time >= after))
    if not hits.size:
        return None
    i = int(hits[0])
    if i == 0 or (time[i - 1] < after and above[i - 1]):
        return float(max(time[i], after))
    rise = (level - curve[i - 1]) / (curve[i] - curve[i - 1])
    return float(max(after, time[i - 1] + rise * (time[i] - time[i - 1])))


def peak(time: np.ndarray, curve: np.ndarray) -> tuple[float, float] | None:
    """Time and height of the highest point, by the parabola through its neighbours; None if it is not passed."""
    i = int(np.argmax(curve))
    if i == len(curve) - 1 or curve[i] <= 0:
        return None
    if i == 0:
        return float(time[0]), float(curve[0])
    left, right = time[i - 1] - time[i], time[i + 1] - time[i]
    slope_left, slope_right = (curve[i - 1] - curve[i]) / left, (curve[i + 1] - curve[i]) / right
    bend = (slope_right - slope_left) / (right - left)
    if bend >= 0:  # a flat top: three equal values
        return float(time[i]), float(curve[i])
    shift = -(slope_left - bend * left) / (2 * bend)
    slope = slope_left - bend * left
    return float(time[i] + shift), float(curve[i] + slope * shift + bend * shift**2)


def crossing(
    time: np.ndarray,
    curve: np.ndarray,
    level: float,
    rising: bool,
    *,
    error: float | np.ndarray = 0.0,
    after: float = 0.0,
    how: str = "",
) -> Event:
    """The first crossing as an event.

    Its interval holds the two records around it, and every time at which a curve within `error` of this one may first
    have crossed. A curve that has passed the level at its first record was there at the start.
    """
    sign = 1.0 if rising else -1.0
    when = first_crossing(time, curve, level, rising, after)
    if when is None:
        return Event.missing(how=how)
    if sign * (curve[0] - level) >= 0 and after <= time[0]:
        return Event.missing("at the start", how)
    low, high = around(time, when)
    early = first_crossing(time, curve + sign * error, level, rising, after)
    late = first_crossing(time, curve - sign * error, level, rising, after)
    return Event(when, min(low, when if early is None else early), max(high, float(time[-1]) if late is None else late), how=how)


def top(time: np.ndarray, curve: np.ndarray, *, error: float = 0.0, how: str = "") -> Event:
    """The peak as an event: its interval holds the neighbouring records, and those that `error` cannot tell from the top."""
    found = peak(time, curve)
    if found is None:
        return Event.missing(how=how)
    i = int(np.argmax(curve))
    if i == 0:
        return Event.missing("at the start", how)
    alike = np.flatnonzero(curve >= curve[i] - 2 * error)
    first, last = min(i - 1, int(alike[0])), max(i + 1, int(alike[-1]))
    return Event(found[0], float(time[max(first, 0)]), float(time[min(last, len(time) - 1)]), how=how)


def around(time: np.ndarray, when: float) -> tuple[float, float]:
    """The two records around a time."""
    i = int(np.clip(np.searchsorted(time, when), 1, max(1, len(time) - 1)))
    return float(time[i - 1]), float(time[min(i, len(time) - 1)])
