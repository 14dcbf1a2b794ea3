"""Events of focus and dilution on a text as estimates: the spacing of records, and the noise of batches in the run's curves."""

import numpy as np

from stagescope.detect.events import Turn, around, crossing
from stagescope.detect.noise import TWO_SIDED, delay, flutter
from stagescope.detect.stage import Event

HOW = "interval from the spacing of records and the noise of batches in this run"


def noise(time: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """The 95 % half-width of each value of a curve, from how records differ from their neighbours."""
    return TWO_SIDED * flutter(time, curve)


def opening(time: np.ndarray, values: np.ndarray, level: float, when: float | None) -> Event:
    """When a singular value passes a level; it grows exponentially, so noise is gathered in its logarithm."""
    if when is None:
        return Event.missing(how=HOW)
    wide = delay(time, np.log(np.maximum(values, 1e-300)), float(np.log(level)), when)
    low, high = around(time, when)
    return Event(when, min(low, when - wide), min(max(high, when + wide), float(time[-1])), how=HOW)


def turned(turn: Turn | None) -> Event:
    """When a rise or a fall ends."""
    if turn is None or turn.stop is None:
        return Event.missing(how=HOW)
    return Event(turn.stop, min(turn.low, turn.stop), max(turn.high, turn.stop), how=HOW)


def halved(time: np.ndarray, curve: np.ndarray, level: float, after: float | None) -> Event:
    """When a row has fallen to a level after its top."""
    if after is None:
        return Event.missing(how=HOW)
    return crossing(time, curve, level, False, error=noise(time, curve), after=after, how=HOW)


def before(first: Event, second: Event) -> bool | None:
    """Whether one event comes before another; None where their intervals overlap, or one has no time."""
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return None
    return True if first.high < second.low else False if second.high < first.low else None
