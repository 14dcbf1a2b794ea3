"""Stages of a loss while it runs, without knowing any level: transitions, and the shoulders between them [ISA:shoulders].

Only earlier frames are used: the result for a frame does not change when more frames come.
"""

from dataclasses import dataclass

import numpy as np

from stagescope.errors import InputError


@dataclass(frozen=True)
class Thresholds:
    """What counts as a transition of a loss."""

    window: float = 0.1  # the speed of a loss is its mean fall over this stretch of ln step
    change: float = 1.5  # a transition begins at this many times the least speed since the last, and ends as far below its peak
    faint: float = 0.01  # speeds below this share of the initial loss per unit of ln step count as rest
    small: float = 0.03  # a fall below this share of all that the loss has fallen is noise, such as that of minibatches


THRESHOLDS = Thresholds()


@dataclass(frozen=True)
class Transition:
    """Frames of one fall of the loss: the shoulder before it, its fastest moment, and when it is known to be over.

    `over` is None while it is under way; `peak` is then the fastest moment so far.
    """

    shoulder: int
    peak: int
    over: int | None


def speeds(step: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """|L(s e^-w) - L(s)| / w at every frame, L interpolated in ln s; zero where there is no such past."""
    if len(step) != len(loss) or np.any(np.diff(step) <= 0) or (len(step) and step[0] < 0):
        raise InputError(f"expected rising steps >= 0, one per loss; got {len(step)} steps for {len(loss)} losses")
    later = step > 0
    clock, curve = np.log(step[later]), loss[later]
    found = np.zeros(len(step))
    if clock.size:
        past = clock - THRESHOLDS.window
        fall = np.abs(np.interp(past, clock, curve) - curve) / THRESHOLDS.window
        found[later] = np.where(past >= clock[0], fall, 0.0)
    return found


def transitions_so_far(step: np.ndarray, loss: np.ndarray) -> tuple[Transition, ...]:
    """The transitions of a loss [ISA:shoulders]: maxima of its speed that stand out by the factor `change` on both sides."""
    found: list[Transition] = []
    faint = THRESHOLDS.faint * abs(float(loss[0])) if len(loss) else 0.0
    falling, low, high, lowest, highest = False, 0, 0, faint, faint

    def falls(now: int) -> bool:
        return bool(loss[low] - loss[now] > THRESHOLDS.small * (loss[0] - loss[now]))

    for i, measured in enumerate(speeds(step, loss).tolist()):
        speed = max(measured, faint)
        if falling and speed >= highest:
            high, highest = i, speed
        elif falling and speed <= highest / THRESHOLDS.change:
            if falls(i):
                found.append(Transition(low, high, i))
            falling, low, lowest = False, i, speed
        elif not falling and speed <= lowest:
            low, lowest = i, speed
        elif not falling and speed >= THRESHOLDS.change * lowest:
            falling, high, highest = True, i, speed
    if falling and falls(len(step) - 1):
        found.append(Transition(low, high, None))
    return tuple(found)
