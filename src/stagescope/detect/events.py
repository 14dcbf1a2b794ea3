"""How events are located on curves: crossings and peaks with an interval, and rises and falls when small ones are joined."""

import math
from dataclasses import dataclass
from itertools import pairwise

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
    first_time = first_crossing(time, curve, level, rising, after)
    if first_time is None:
        return Event.missing(how=how)
    if sign * (curve[0] - level) >= 0 and after <= time[0]:
        return Event.missing("at the start", how)
    low, high = around(time, first_time)
    early = first_crossing(time, curve + sign * error, level, rising, after)
    late = first_crossing(time, curve - sign * error, level, rising, after)
    return Event(
        first_time,
        min(low, first_time if early is None else early),
        max(high, float(time[-1]) if late is None else late),
        how=how,
    )


def top(time: np.ndarray, curve: np.ndarray, *, error: float = 0.0, how: str = "") -> Event:
    """The peak as an event: its interval holds the neighbouring records, and those that `error` cannot tell from the top."""
    at_peak = peak(time, curve)
    if at_peak is None:
        return Event.missing(how=how)
    i = int(np.argmax(curve))
    if i == 0:
        return Event.missing("at the start", how)
    level_places = np.flatnonzero(curve >= curve[i] - 2 * error)
    first, last = min(i - 1, int(level_places[0])), max(i + 1, int(level_places[-1]))
    return Event(at_peak[0], float(time[max(first, 0)]), float(time[min(last, len(time) - 1)]), how=how)


def around(time: np.ndarray, when: float) -> tuple[float, float]:
    """The two records around a time."""
    i = int(np.clip(np.searchsorted(time, when), 1, max(1, len(time) - 1)))
    return float(time[i - 1]), float(time[min(i, len(time) - 1)])


BRIEF = 0.01
"""A stretch shorter than this share of the time that has passed is a flicker; frames and the run's length do not matter."""


SURE = 1.5
"""Two extremes of a noisy curve differ if their difference exceeds its 95 % half-width this many times: a level of 1 %
instead of 5 % (Student's t with six degrees of freedom, 3.71 against 2.45), because the highest of several windows is taken."""


@dataclass(frozen=True)
class Turn:
    """A rise or a fall between two extremes of a curve; `stop` is None where the run ended in it.

    `low` and `high` are the times around the stop whose values cannot be told from the extreme.
    """

    start: float
    stop: float | None
    before: float
    after: float
    low: float = -np.inf
    high: float = np.inf

    @property
    def rising(self) -> bool:
        return self.after > self.before


def turns(time: np.ndarray, curve: np.ndarray, least: float, back: float, error: np.ndarray | None = None) -> list[Turn]:
    """A curve as alternating rises and falls by more than `least`, and by more than its noise.

    Its extremes have a prominence above `least` (those of a curve's two ends are counted as well). The last rise or fall
    is over only if the curve has come back from its end by more than `back`: what has not turned has no stop. `error` is the
    95 % half-width of each value of a noisy curve; a value whose error is infinite is not looked at.
    """
    if error is not None:
        measured = np.isfinite(error)
        time, curve, error = time[measured], curve[measured], error[measured]
    noise = np.zeros(len(curve)) if error is None else SURE * error
    ends = _extremes(curve, noise, least)
    while (i := _briefest(time, ends)) is not None:
        del ends[i : i + 2 if 0 < i < len(ends) - 2 else i + 1]
        ends = [ends[k] for k in _extremes(curve[ends], noise[ends], least)]
    turning_points = []
    for i, j in pairwise(ends):
        over = j != ends[-1] or abs(curve[-1] - curve[j]) > max(back, np.hypot(noise[-1], noise[j]))
        (start, before), (stop, after) = (_refined(time, curve, place, least) for place in (i, j))
        turning_points.append(Turn(start, stop if over else None, before, after, *_alike(time, curve, j, noise[j])))
    return turning_points


def _extremes(curve: np.ndarray, noise: np.ndarray, least: float) -> list[int]:
    """Frames of alternating maxima and minima that differ by more than `least` and their noise, both ends included."""
    places, top, bottom, rising = [], 0, 0, None
    for i, value in enumerate(curve.tolist()):
        top = i if value > curve[top] else top
        bottom = i if value < curve[bottom] else bottom
        if rising is not False and curve[top] - value > max(least, math.hypot(noise[top], noise[i])):
            places.append(top)
            rising, bottom = False, i
        elif rising is not True and value - curve[bottom] > max(least, math.hypot(noise[bottom], noise[i])):
            places.append(bottom)
            rising, top = True, i
    return places if rising is None else [*places, top if rising else bottom]


def _alike(time: np.ndarray, curve: np.ndarray, at: int, noise: float) -> tuple[float, float]:
    """The stretch around an extreme in which the curve stays within its noise, at least to the neighbouring records."""
    differing = np.flatnonzero(np.abs(curve - curve[at]) > noise)
    before, after = differing[differing < at], differing[differing > at]
    first, last = int(before[-1]) if before.size else 0, int(after[0]) if after.size else len(time) - 1
    return float(time[max(0, min(first, at - 1))]), float(time[min(len(time) - 1, max(last, at + 1))])


def _briefest(time: np.ndarray, ends: list[int]) -> int | None:
    """The extreme at which the shortest of the brief stretches begins."""
    brief = [(time[j] - time[i], n) for n, (i, j) in enumerate(pairwise(ends)) if time[j] - time[i] < BRIEF * time[j]]
    return min(brief)[1] if brief else None


def _refined(time: np.ndarray, curve: np.ndarray, at: int, least: float) -> tuple[float, float]:
    """Time and height of an extreme by the parabola through its neighbours, where the curve is smooth enough to have one."""
    if 0 < at < len(time) - 1:
        around = slice(at - 1, at + 2)
        sides = curve[around] - curve[at]
        sign = -1.0 if sides[0] + sides[2] > 0 else 1.0
        smooth = sides[0] * sides[2] >= 0 and np.max(np.abs(sides)) < least
        vertex = peak(time[around], 1.0 + sign * sides) if smooth else None
        if vertex is not None:
            return vertex[0], float(curve[at] + sign * (vertex[1] - 1.0))
    return float(time[at]), float(curve[at])
