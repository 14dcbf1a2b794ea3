"""Rows of attention: focus and dilution of each in the first cycle, and their turns after it [FD:stages]."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stagescope.detect.events import Turn, first_crossing, peak, turns
from stagescope.detect.noise import averaged, flutter


@dataclass(frozen=True)
class Thresholds:
    """When something is an event. Fixed before the chains and seeds on which the claims are calibrated were drawn."""

    level: float = 0.1  # a singular value above this is an open direction; saturated ones are of order 1
    onset: float = 10.0  # attention has begun to grow when sv_1(WQ WK^T) passes this multiple of its start
    gain: float = 0.005  # a row has a focus when its attention on the frequent token gains more than this
    solver_errors: float = 5.0  # and more than this multiple of the solver's relative tolerance
    turn: float = 0.03  # a rise or fall of a row after E2 counts from this size on
    records: float = 3.3  # standard deviations that the highest of about a thousand noisy records stays below in the mean


THRESHOLDS = Thresholds()


@dataclass(frozen=True)
class RowCycle:
    """Focus and dilution of one query row in the first cycle; times are None where not reached."""

    row: int
    gain: float
    focus: float | None
    half: float | None
    complete: float | None


def row_cycles(
    time: np.ndarray,
    attention: np.ndarray,
    base: float,
    window: tuple[float, float],
    sign: float,
    frequent: int,
    least: float = THRESHOLDS.gain,
    noisy: bool = False,
) -> list[RowCycle]:
    """First-cycle focus and dilution of every row but the frequent token's own, from its attention on that token.

    A focus is a maximum inside the window (E1, E2) by more than `least`; a row that has not turned by then has none. Where
    steps see batches, it must also stand above the noise between records.
    """
    inside = np.flatnonzero((time >= window[0]) & (time <= window[1]))
    found = []
    for row in range(attention.shape[1]):
        if row == frequent:
            continue
        moved = sign * (attention[:, row] - base)
        last = _first_fall(time, moved, inside) if noisy else len(inside)
        top = int(inside[np.argmax(moved[inside[:last]])]) if inside.size else 0
        gain = float(moved[top]) if inside.size else 0.0
        floor = max(least, THRESHOLDS.records * float(flutter(time, attention[:, row])[top])) if noisy else least
        turned = inside.size > 0 and inside[0] < top < len(time) - 1 and gain > floor
        refined = peak(time[top - 1 : top + 2], moved[top - 1 : top + 2]) if turned else None
        if refined is None:
            found.append(RowCycle(row, gain, None, None, None))
            continue
        half, back = (first_crossing(time, moved, level, rising=False, after=refined[0]) for level in (gain / 2, 0.0))
        found.append(RowCycle(row, gain, refined[0], half, back))
    return found


def _first_fall(time: np.ndarray, moved: np.ndarray, inside: np.ndarray) -> int:
    """How many of the records lie before a gain above the noise is first lost by half: noise may later exceed it again."""
    floor = np.maximum(THRESHOLDS.gain, THRESHOLDS.records * flutter(time, moved))[inside]
    most = np.maximum.accumulate(np.where(moved[inside] > floor, moved[inside], 0.0))
    fallen = np.flatnonzero((most > 0) & (moved[inside] < most / 2))
    return int(fallen[0]) if fallen.size else len(inside)


def row_turns(
    time: np.ndarray,
    attention: np.ndarray,
    first: float | None,
    second: float | None,
    sign: float,
    frequent: int,
    noisy: bool = False,
) -> Iterator[tuple[int, Turn]]:
    """Rises and falls of every row after E2 (`second`), by row; where steps see batches, those of its local mean.

    A return that began before E2 belongs to the first cycle, except in the frequent token's own row, which has none in it.
    """
    if first is None or second is None:
        return
    since = max(0, int(np.searchsorted(time, first)) - 1)
    for row in range(attention.shape[1]):
        curve, error = averaged(time, attention[:, row]) if noisy else (attention[:, row], None)
        kept = np.arange(len(time)) >= since if error is None else time >= max(time[since], second)
        if not kept.any():
            continue
        seen = None if error is None else error[kept]
        for turn in turns(time[kept], curve[kept], THRESHOLDS.turn, THRESHOLDS.gain, seen):
            begun = turn.start < second
            if (turn.stop is not None and turn.stop <= second) or (begun and row != frequent and turn.rising == (sign < 0)):
                continue
            at = float(np.interp(second, time, curve))
            later = replace(turn, start=second, before=at) if begun else turn
            if abs(later.after - later.before) > THRESHOLDS.turn:
                yield row, later


def named_turns(later: list[tuple[int, Turn]]) -> dict[str, tuple[int, Turn]]:
    """Turns by event name: refocusI, redilutionI, and refocusI.2 and so on where a row has more than one."""
    named: dict[str, tuple[int, Turn]] = {}
    for row, turn in later:
        stem = f"{'refocus' if turn.rising else 'redilution'}{row}"
        before = sum(name.partition(".")[0] == stem for name in named)
        named[stem if before == 0 else f"{stem}.{before + 1}"] = (row, turn)
    return named
