"""Growth rates of a run: the slope of a log amplitude over a rise between two sizes, whatever the spacing of the frames."""

from dataclasses import dataclass

import numpy as np

FEWEST = 5
"""Frames a rate is fitted on, at least; and the rise they span is at least a factor e."""


@dataclass(frozen=True)
class Rise:
    """An amplitude that rises from one size to another between two times, at `rate` by a log-linear fit."""

    rate: float
    start: float
    stop: float

    def times(self, count: int) -> np.ndarray:
        """Equally spaced times over the rise."""
        return np.linspace(self.start, self.stop, count)


def last_rise(time: np.ndarray, amplitude: np.ndarray, low: float, high: float) -> Rise | None:
    """The last rise from `low` until the amplitude first reaches `high`; None if there is none, or too few frames show it."""
    reached = np.flatnonzero(amplitude >= high)
    below = np.flatnonzero(amplitude[: reached[0]] <= low) if reached.size else reached
    if not below.size or reached[0] - below[-1] + 1 < FEWEST or high < np.e * low:
        return None
    first, last = int(below[-1]), int(reached[0])
    logs = np.log(np.maximum(amplitude[first : last + 1], np.finfo(float).tiny))
    clock = time[first : last + 1]
    start = float(np.interp(np.log(low), logs[:2], clock[:2]))
    stop = float(np.interp(np.log(high), logs[-2:], clock[-2:]))
    grid = np.linspace(start, stop, 200)  # equally spaced, so that no stretch counts more than another
    return Rise(float(np.polyfit(grid, np.interp(grid, clock, logs), 1)[0]), start, stop)
