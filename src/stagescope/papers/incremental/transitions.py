"""Transitions and plateaus of a loss that descends a ladder of known levels l_0 > l_1 > ... > l_k [ISA:transitions].

For any clock and any loss: the levels are |R|^2/2 of the regression flow, or the losses of restricted classes.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from stagescope.detect.events import first_crossing
from stagescope.errors import InputError


@dataclass(frozen=True)
class PlateauThresholds:
    """When the loss rests on a level."""

    close: float = 0.15
    """Plateau j is accepted if its loss is within this share of the step l_{j-1} - l_j of level j. Set on runs of preset
    `ladder`, whose plateaus are shoulders; validation/incremental.py checks it on other seeds."""
    fewest: int = 3
    """Least number of frames between two transitions for a plateau to be seen."""
    window: float = 0.1
    """The drift of a plateau is its slope over this length of ln t, a tenth of a factor e."""
    side: int = 2
    """Least number of frames to each side of the plateau for that slope."""


PLATEAU = PlateauThresholds()


@dataclass(frozen=True)
class Plateau:
    """Where the loss is flattest on a logarithmic clock between transition j and the next; `accepted` if near level j.

    `drift` is dL/d ln t by a least-squares fit around it; one frame of a noisy curve does not give its slope.
    """

    j: int
    t: float
    loss: float
    level: float
    drift: float
    accepted: bool


def transitions(time: np.ndarray, loss: np.ndarray, levels: np.ndarray) -> tuple[float | None, ...]:
    """t_1 .. t_k: the first crossing of (l_{j-1} + l_j)/2, interpolated; None where the loss stays above it."""
    _check(time, loss, levels)
    return tuple(first_crossing(time, loss, (above + below) / 2, rising=False) for above, below in _steps(levels))


def plateaus(time: np.ndarray, loss: np.ndarray, levels: np.ndarray) -> tuple[Plateau | None, ...]:
    """Plateaus 1 .. k: least |dL/d ln t| between t_j and t_{j+1}, or the end; None without t_j or frames after it."""
    when = (*transitions(time, loss, levels), None)
    later = time > 0
    clock, curve = time[later], loss[later]
    slope = np.gradient(curve, np.log(clock)) if clock.size > 1 else np.zeros(clock.size)
    found: list[Plateau | None] = []
    for j, (above, below) in enumerate(_steps(levels), start=1):
        start, stop = when[j - 1], when[j]
        inside = np.flatnonzero((clock > start) & (clock < (np.inf if stop is None else stop))) if start is not None else ()
        if len(inside) < PLATEAU.fewest:
            found.append(None)
            continue
        i = int(inside[np.argmin(np.abs(slope[inside]))])
        near = bool(abs(curve[i] - below) <= PLATEAU.close * (above - below))
        found.append(Plateau(j, float(clock[i]), float(curve[i]), float(below), _drift(clock, curve, i), near))
    return tuple(found)


def _drift(clock: np.ndarray, curve: np.ndarray, i: int) -> float:
    """Least-squares slope of the curve in ln t around a frame."""
    logs, count, side = np.log(clock), len(clock), PLATEAU.side
    around = np.abs(logs - logs[i]) <= PLATEAU.window / 2
    around[max(0, min(i - side, count - 2 * side - 1)) : max(i + side, 2 * side) + 1] = True
    return float(np.polyfit(logs[around] - logs[i], curve[around], 1)[0])


def _steps(levels: np.ndarray) -> list[tuple[float, float]]:
    return list(pairwise(levels))


def no_ladder(levels: np.ndarray) -> str | None:
    """Why there is no ladder to descend, where a level is not below the one before; None where all decrease."""
    flat = np.flatnonzero(np.diff(levels) >= 0)
    if not flat.size:
        return None
    j = int(flat[0]) + 1
    sizes = f"level {j} ({levels[j]:.4g}) is not below level {j - 1} ({levels[j - 1]:.4g})"
    return f"levels do not decrease: {sizes}, so group {j} has no visible effect; raise its importance or change its feature"


def _check(time: np.ndarray, loss: np.ndarray, levels: np.ndarray) -> None:
    if len(levels) < 2:
        raise InputError(f"levels are {np.asarray(levels)}, but a ladder needs at least two")
    if (why := no_ladder(levels)) is not None:
        raise InputError(why)
    if len(time) != len(loss):
        raise InputError(f"{len(time)} times for {len(loss)} losses")
