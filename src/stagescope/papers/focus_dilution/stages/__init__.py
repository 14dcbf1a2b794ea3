"""The stages of focus and dilution [FD:stages]. Row I is the attention of query type I on the most frequent token.

E_k, Q_k          the k-th singular value of W0 or of Phi passes .1: an embedding or attention direction opens
onset             sv_1(WQ WK^T) last passes ten times its initial value before E2; weakly driven chains have an onset but no Q1
focusI            row I is largest between E1 and E2 (smallest where attention first moves away)
dilutionI         after its focus, row I has lost half of its gain; complete when it is back at its base
refocusI          after E2: the top of a rise of row I by more than .03
redilutionI       after E2: the bottom of such a fall; the frequent token's own row can have one, it has none in the first cycle
refocusI.2, ...   the second and later ones of a row
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stagescope.detect.events import first_crossing, peak
from stagescope.detect.extrema import BRIEF, Turn, turns
from stagescope.detect.stage import Stages
from stagescope.papers.focus_dilution.stages.describe import stages_of

if TYPE_CHECKING:
    from stagescope.papers.focus_dilution.observables import TokenCurves


@dataclass(frozen=True)
class Thresholds:
    """When something is an event. Chosen on the presets `ref` and `paper`, then confirmed on other chains and seeds."""

    level: float = 0.1  # a singular value above this is an open direction; saturated ones are of order 1
    onset: float = 10.0  # attention has begun to grow when sv_1(WQ WK^T) passes this multiple of its start
    gain: float = 0.005  # a row has a focus when its attention on the frequent token gains more than this
    solver_errors: float = 5.0  # and more than this multiple of the solver's relative tolerance
    turn: float = 0.03  # a rise or fall of a row after E2 counts from this size on


THRESHOLDS = Thresholds()


@dataclass(frozen=True)
class Stay:
    """A stay with r open embedding and rq open attention directions; `stop` is None where the run ended in it."""

    r: int
    rq: int
    start: float
    stop: float | None

    @property
    def label(self) -> str:
        return f"({self.r},{self.rq})"

    @property
    def brief(self) -> bool:
        """Whether it lasted less than a hundredth of the time passed."""
        return self.stop is not None and self.stop - self.start < BRIEF * self.stop


@dataclass(frozen=True)
class RowCycle:
    """Focus and dilution of one query row in the first cycle; times are None where not reached."""

    row: int
    gain: float
    focus: float | None
    half: float | None
    complete: float | None


def passes(time: np.ndarray, values: np.ndarray, level: float = THRESHOLDS.level) -> list[float | None]:
    """When each singular value first passes a level, interpolated in its logarithm, because it grows exponentially."""
    logs = np.log(np.maximum(values, 1e-300))
    return [first_crossing(time, logs[:, k], float(np.log(level)), rising=True) for k in range(values.shape[1])]


def stays(time: np.ndarray, embedding_values: np.ndarray, score_values: np.ndarray) -> tuple[Stay, ...]:
    """The ladder (r, rq): r = #{sv_k(W0) > .1}, rq = #{sv_k(Phi) > .1} over time [FD:stages].

    A change is where the logarithm of a singular value crosses the level, so changes are the events E_k and Q_k. A brief stay
    between two stays at one label is flicker and left out. Brief is relative to the time passed, not to frames.
    """
    changes = sorted([*_changes(time, embedding_values, "r"), *_changes(time, score_values, "rq")])
    count = {"r": int(np.sum(embedding_values[0] > THRESHOLDS.level)), "rq": int(np.sum(score_values[0] > THRESHOLDS.level))}
    found, since = [], float(time[0])
    for when, step, kind in changes:
        found.append(Stay(**count, start=since, stop=when))
        count[kind] += step
        since = when
    return _joined([*found, Stay(**count, start=since, stop=None)])


def _changes(time: np.ndarray, values: np.ndarray, kind: str) -> list[tuple[float, int, str]]:
    """Every crossing of the level, upwards (+1) or downwards (-1)."""
    height = np.log(np.maximum(values, 1e-300) / THRESHOLDS.level)
    frames, columns = np.nonzero((height[:-1] > 0) != (height[1:] > 0))
    before, after = height[frames, columns], height[frames + 1, columns]
    when = time[frames] + before / (before - after) * (time[frames + 1] - time[frames])
    return [(float(t), 1 if up else -1, kind) for t, up in zip(when, after > 0, strict=True)]


def _joined(found: list[Stay]) -> tuple[Stay, ...]:
    """Stays without flicker: the shortest is joined to its neighbours first. Two changes at one time have no stay between."""
    found = [stay for stay in found if stay.stop != stay.start]
    while True:
        inner = range(1, len(found) - 1)
        flicker = [i for i in inner if found[i].brief and found[i - 1].label == found[i + 1].label]
        if not flicker:
            return tuple(found)
        i = min(flicker, key=lambda i: (found[i].stop or 0.0) - found[i].start)
        found[i - 1 : i + 2] = [replace(found[i - 1], stop=found[i + 1].stop)]


def row_cycles(
    time: np.ndarray,
    attention: np.ndarray,
    base: float,
    window: tuple[float, float],
    sign: float,
    frequent: int,
    least: float = THRESHOLDS.gain,
) -> list[RowCycle]:
    """First-cycle focus and dilution of every row but the frequent token's own, from its attention on that token.

    A focus is a maximum inside the window (E1, E2) by more than `least`; a row that has not turned by then has none.
    """
    inside = np.flatnonzero((time >= window[0]) & (time <= window[1]))
    found = []
    for row in range(attention.shape[1]):
        if row == frequent:
            continue
        moved = sign * (attention[:, row] - base)
        top = int(inside[np.argmax(moved[inside])]) if inside.size else 0
        gain = float(moved[top]) if inside.size else 0.0
        turned = inside.size > 0 and inside[0] < top < len(time) - 1 and gain > least
        refined = peak(time[top - 1 : top + 2], moved[top - 1 : top + 2]) if turned else None
        if refined is None:
            found.append(RowCycle(row, gain, None, None, None))
            continue
        half, back = (first_crossing(time, moved, level, rising=False, after=refined[0]) for level in (gain / 2, 0.0))
        found.append(RowCycle(row, gain, refined[0], half, back))
    return found


def row_turns(
    time: np.ndarray, attention: np.ndarray, first: float | None, second: float | None, sign: float, frequent: int
) -> Iterator[tuple[int, Turn]]:
    """Rises and falls of every row after E2 (`second`), by row.

    A return that began before E2 belongs to the first cycle, except in the frequent token's own row, which has none in it.
    """
    if first is None or second is None:
        return
    since = max(0, int(np.searchsorted(time, first)) - 1)
    for row in range(attention.shape[1]):
        for turn in turns(time[since:], attention[since:, row], THRESHOLDS.turn, THRESHOLDS.gain):
            begun = turn.start < second
            if (turn.stop is not None and turn.stop <= second) or (begun and row != frequent and turn.rising == (sign < 0)):
                continue
            at = float(np.interp(second, time, attention[:, row]))
            kept = replace(turn, start=second, before=at) if begun else turn
            if abs(kept.after - kept.before) > THRESHOLDS.turn:
                yield row, kept


def detect(curves: "TokenCurves", sign: float, *, tolerance: float, clock: str, status: str) -> Stages:
    """Stages of a run; `sign` is that of the attention rate c, `tolerance` the relative error of the solver."""
    time, end = curves.time, float(curves.time[-1])
    events: dict[str, float | None] = {}
    for letter, values in (("E", curves.embedding_values), ("Q", curves.score_values)):
        events |= {f"{letter}{k + 1}": when for k, when in enumerate(passes(time, values))}
    first, second = events["E1"], events.get("E2")
    events["onset"] = _onset(time, curves.key_values[:, 0], end if second is None else second)
    base, on_frequent = float(curves.pi[curves.frequent]), curves.attention[:, :, curves.frequent]
    least = max(THRESHOLDS.gain, THRESHOLDS.solver_errors * tolerance)
    window = (np.inf if first is None else first, end if second is None else second)
    rows = row_cycles(time, on_frequent, base, window, sign, curves.frequent, least)
    for cycle in rows:
        events[f"focus{cycle.row}"], events[f"dilution{cycle.row}"] = cycle.focus, cycle.half
    later = list(row_turns(time, on_frequent, first, second, sign, curves.frequent))
    named = _named(later)
    events |= {f"{kind}{row}": None for row in range(len(curves.pi)) for kind in ("refocus", "redilution")}
    events |= {name: turn.stop for name, (_, turn) in named.items()}
    by = f"by {clock}={end:.4g}"
    notes = {**_opening_notes(curves, by), **_row_notes(rows, least, second, by), **_turn_notes(curves, named, second, by)}
    missing = {name: notes[name] for name, when in events.items() if when is None}
    ladder = stays(time, curves.embedding_values, curves.score_values)
    return Stages(status, clock, events, stages_of(curves, events, ladder, rows, later, sign), missing)


def first_move(curves: "TokenCurves") -> float | None:
    """How far attention first moves, measured: above 0 it focuses on the frequent token, below 0 it moves away.

    This is the largest change of the mean attention on that token (queries weighted by pi), from the middle of the plateau of
    stage I until E2 or the end. There d(uq.uk)/dt has the sign of c whatever the start was [FD:attention-rate], so a run that
    ends long before attention opens shows it too. None where there is no such plateau.
    """
    time, end = curves.time, float(curves.time[-1])
    opened = passes(time, curves.embedding_values)
    first, second = opened[0], opened[1] if len(opened) > 1 else None
    stop = end if second is None else second
    if first is None:
        return None
    seen = passes(time, curves.score_values)[0]
    midway = (first + min(stop, stop if seen is None else max(first, seen))) / 2
    inside = (time > midway) & (time <= stop)
    if not inside.any():
        return None
    mean = curves.attention[:, :, curves.frequent] @ curves.pi
    moved = mean[inside] - np.interp(midway, time, mean)
    return float(moved[np.argmax(np.abs(moved))])


def _named(later: list[tuple[int, Turn]]) -> dict[str, tuple[int, Turn]]:
    """Turns by event name: refocusI, redilutionI, and refocusI.2 and so on where a row has more than one."""
    named: dict[str, tuple[int, Turn]] = {}
    for row, turn in later:
        stem = f"{'refocus' if turn.rising else 'redilution'}{row}"
        before = sum(name.partition(".")[0] == stem for name in named)
        named[stem if before == 0 else f"{stem}.{before + 1}"] = (row, turn)
    return named


def _onset(time: np.ndarray, top: np.ndarray, before: float) -> float | None:
    """The last upward crossing of ten times the initial value."""
    level = THRESHOLDS.onset * top[0]
    up = np.flatnonzero((top[:-1] < level) & (top[1:] >= level) & (time[1:] <= before))
    if not up.size:
        return None
    i = int(up[-1])
    share = np.log(level / top[i]) / np.log(top[i + 1] / top[i]) if top[i] > 0 else 1.0
    return float(time[i] + share * (time[i + 1] - time[i]))


def _opening_notes(curves: "TokenCurves", by: str) -> dict[str, str]:
    notes = {"onset": "attention never grew tenfold before the second embedding direction opened"}
    for letter, values in (("E", curves.embedding_values), ("Q", curves.score_values)):
        for k, most in enumerate(values.max(axis=0)):
            notes[f"{letter}{k + 1}"] = f"its singular value reached {most:.2e} {by}, below {THRESHOLDS.level}"
    return notes


def _row_notes(rows: list[RowCycle], least: float, second: float | None, by: str) -> dict[str, str]:
    notes = {}
    for cycle in rows:
        name = str(cycle.row)
        no_focus = f"no focus: the gain {cycle.gain:.2e} of row {name} is not above {least:g}"
        if cycle.gain > least:
            no_focus = f"row {name} was still moving {by if second is None else 'when the second embedding direction opened'}"
        notes[f"focus{name}"] = no_focus
        kept = f"row {name} kept more than half of its gain {cycle.gain:.3f} {by}"
        notes[f"dilution{name}"] = no_focus if cycle.focus is None else kept
    return notes


def _turn_notes(curves: "TokenCurves", named: dict[str, tuple[int, Turn]], second: float | None, by: str) -> dict[str, str]:
    why = (
        "no second embedding direction opened" if second is None else f"no such turn by more than {THRESHOLDS.turn} after E2 {by}"
    )
    notes = {f"{kind}{row}": why for row in range(len(curves.pi)) for kind in ("refocus", "redilution")}
    for name, (_, turn) in named.items():
        notes[name] = f"in progress: the row moved from {turn.before:.3f} to {turn.after:.3f} {by} and has not turned"
    return notes
