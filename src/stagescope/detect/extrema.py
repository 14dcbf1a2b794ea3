"""Rises and falls of a curve: what is left of its ups and downs when small and brief ones are joined."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from stagescope.detect.events import peak

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
        known = np.isfinite(error)
        time, curve, error = time[known], curve[known], error[known]
    noise = np.zeros(len(curve)) if error is None else SURE * error
    ends = _extremes(curve, noise, least)
    while (i := _briefest(time, ends)) is not None:
        del ends[i : i + 2 if 0 < i < len(ends) - 2 else i + 1]
        ends = [ends[k] for k in _extremes(curve[ends], noise[ends], least)]
    found = []
    for i, j in pairwise(ends):
        over = j != ends[-1] or abs(curve[-1] - curve[j]) > max(back, np.hypot(noise[-1], noise[j]))
        (start, before), (stop, after) = (_refined(time, curve, at, least) for at in (i, j))
        found.append(Turn(start, stop if over else None, before, after, *_alike(time, curve, j, noise[j])))
    return found


def _extremes(curve: np.ndarray, noise: np.ndarray, least: float) -> list[int]:
    """Frames of alternating maxima and minima that differ by more than `least` and their noise, both ends included."""
    found, top, bottom, rising = [], 0, 0, None
    for i, value in enumerate(curve.tolist()):
        top = i if value > curve[top] else top
        bottom = i if value < curve[bottom] else bottom
        if rising is not False and curve[top] - value > max(least, math.hypot(noise[top], noise[i])):
            found.append(top)
            rising, bottom = False, i
        elif rising is not True and value - curve[bottom] > max(least, math.hypot(noise[bottom], noise[i])):
            found.append(bottom)
            rising, top = True, i
    return found if rising is None else [*found, top if rising else bottom]


def _alike(time: np.ndarray, curve: np.ndarray, at: int, noise: float) -> tuple[float, float]:
    """The stretch around an extreme in which the curve stays within its noise, at least to the neighbouring records."""
    apart = np.flatnonzero(np.abs(curve - curve[at]) > noise)
    before, after = apart[apart < at], apart[apart > at]
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
        found = peak(time[around], 1.0 + sign * sides) if smooth else None
        if found is not None:
            return found[0], float(curve[at] + sign * (found[1] - 1.0))
    return float(time[at]), float(curve[at])
