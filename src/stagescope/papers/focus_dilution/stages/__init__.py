"""The stages of focus and dilution [FD:stages]. Row I is the attention of query type I on the most frequent token.

E_k, Q_k          the k-th singular value of W0 or of Phi passes .1: an embedding or attention direction opens
onset             sv_1(WQ WK^T) last passes ten times its initial value before E2; weakly driven chains have an onset but no Q1
focusI            row I is largest between E1 and E2 (smallest where attention first moves away), above the noise
dilutionI         after its focus, row I has lost half of its gain; complete when it is back at its base
refocusI          after E2: the top of a rise of row I by more than .03 and the noise
redilutionI       after E2: the bottom of such a fall; the frequent token's own row can have one, it has none in the first cycle
refocusI.2, ...   the second and later ones of a row
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stagescope.detect.events import BRIEF, first_crossing
from stagescope.detect.stage import Stages
from stagescope.papers.focus_dilution.stages.describe import stages_of
from stagescope.papers.focus_dilution.stages.intervals import EXACT, Draws, estimates
from stagescope.papers.focus_dilution.stages.notes import missing_notes
from stagescope.papers.focus_dilution.stages.rows import THRESHOLDS, named_turns, row_cycles, row_turns
from stagescope.papers.focus_dilution.stages.rows import RowCycle as RowCycle

if TYPE_CHECKING:
    from stagescope.papers.focus_dilution.observables import TokenCurves


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


def detect(curves: "TokenCurves", sign: float, *, tolerance: float, clock: str, status: str, draws: Draws = EXACT) -> Stages:
    """Stages of a run; `sign` is that of the attention rate c, `tolerance` the relative error of the solver.

    `draws` says how far other draws of the data would move its events.
    """
    time, end = curves.time, float(curves.time[-1])
    times: dict[str, float | None] = {}
    for letter, values in (("E", curves.embedding_values), ("Q", curves.score_values)):
        times |= {f"{letter}{k + 1}": when for k, when in enumerate(passes(time, values))}
    first, second = times["E1"], times.get("E2")
    begun = {name for name, when in times.items() if when == time[0]}
    times["onset"] = onset(time, curves.key_values[:, 0], end if second is None else second)
    base, on_frequent = float(curves.pi[curves.frequent]), curves.on_frequent
    least = max(THRESHOLDS.gain, THRESHOLDS.solver_errors * tolerance)
    window = (np.inf if first is None else first, end if second is None else second)
    rows = row_cycles(time, on_frequent, base, window, sign, curves.frequent, least, draws.batches)
    for cycle in rows:
        times[f"focus{cycle.row}"], times[f"dilution{cycle.row}"] = cycle.focus, cycle.half
    lifted = None if "E2" in begun else second  # a start with two open directions has no first cycle to repeat
    later = list(row_turns(time, on_frequent, first, lifted, sign, curves.frequent, draws.batches))
    named = named_turns(later)
    times |= {f"{kind}{row}": None for row in range(len(curves.pi)) for kind in ("refocus", "redilution")}
    times |= {name: turn.stop for name, (_, turn) in named.items()}
    found = estimates(curves, times, begun, rows, named, draws)
    notes = missing_notes(curves, rows, named, least, lifted, f"by {clock}={end:.4g}")
    missing = {name: notes[name] if at.state == "not reached" else at.how for name, at in found.items() if at.time is None}
    ladder = stays(time, curves.embedding_values, curves.score_values)
    events = {name: at.time for name, at in found.items()}
    return Stages.of(status, clock, found, stages_of(curves, events, ladder, rows, later, sign), missing)


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
    mean = curves.on_frequent @ curves.pi
    moved = mean[inside] - np.interp(midway, time, mean)
    return float(moved[np.argmax(np.abs(moved))])


def onset(time: np.ndarray, top: np.ndarray, before: float) -> float | None:
    """The last upward crossing of ten times the initial value."""
    level = THRESHOLDS.onset * top[0]
    up = np.flatnonzero((top[:-1] < level) & (top[1:] >= level) & (time[1:] <= before))
    if not up.size:
        return None
    i = int(up[-1])
    share = np.log(level / top[i]) / np.log(top[i + 1] / top[i]) if top[i] > 0 else 1.0
    return float(time[i] + share * (time[i + 1] - time[i]))
