"""What a training in steps will do, before it: events of the head model from the start of the run [FDA:head].

Row I is the attention of query type I on the most frequent token, of law pi. Events have the names of `stages`:

E_k, Q_k      the k-th singular value of W0 or Phi passes .1, or three times the largest at the start where that is more
upI           row I passes pi + (1 - pi)/2: a total focus
focusI        row I is largest; of a row that is up, between up and dilution
dilutionI     row I has lost half of its largest gain so far
returnI       row I is then back at pi
selfK         token K, not the most frequent one, gives itself more than half of its attention
"""

from dataclasses import dataclass
from typing import cast

import numpy as np

from stagescope.detect.events import first_crossing
from stagescope.dynamics.descent import Adam, Descent
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.record import AtTimes
from stagescope.errors import InputError
from stagescope.landscape.saddle_path import Predicted, SaddlePath, plain_time
from stagescope.papers.focus_dilution.family import plateau_amplitude
from stagescope.papers.focus_dilution.head_model import HeadModel, normalised
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenLoss
from stagescope.papers.focus_dilution.observables import TokenCurves
from stagescope.papers.focus_dilution.stages import openings_of
from stagescope.params import Params, root_mean_square

FRAMES = 1000
"""Of a run of the head model: curves of a published run then move by less than .03 between two."""
ROW_EVENTS = ("up", "focus", "dilution", "return", "self")
"""Kinds of events whose number names a row or a token."""


@dataclass(frozen=True)
class FocusedRow:
    """The first cycle of one row on the most frequent token, None where not reached; `height` is its largest attention."""

    row: int
    up: float | None
    peak: float | None
    height: float
    down: float | None
    back: float | None


def focused_rows(curves: TokenCurves) -> tuple[FocusedRow, ...]:
    """Focus and dilution of every row, the most frequent token's own included [FDA:total]."""
    base = float(curves.pi[curves.frequent])
    rows = curves.on_frequent
    return tuple(_focused_row(curves.time, rows[:, row], row, base) for row in range(rows.shape[1]))


def _focused_row(time: np.ndarray, attention: np.ndarray, row: int, base: float) -> FocusedRow:
    gain = attention - base
    most = np.maximum.accumulate(gain)
    up = first_crossing(time, gain, LIMITS.total * (1 - base), rising=True)
    since = LIMITS.gain if up is None else LIMITS.total * (1 - base)
    lost = np.flatnonzero((most > since) & (gain < most / 2))
    stop = int(lost[0]) if lost.size else len(time)
    top = int(np.argmax(gain[:stop]))
    if most[stop - 1] <= LIMITS.gain or top == len(time) - 1:  # no focus, or one that still rises
        return FocusedRow(row, up, None, float(attention[top]), None, None)
    down = None if not lost.size else first_crossing(time[top:], gain[top:], float(gain[top]) / 2, rising=False)
    back = None if down is None else first_crossing(time[top:], gain[top:], 0.0, rising=False)
    return FocusedRow(row, up, float(time[top]), float(attention[top]), down, back)


def cycle_events(curves: TokenCurves) -> dict[str, float | None]:
    """Every event of the list above by name."""
    time, events = curves.time, openings_of(curves)
    for found in focused_rows(curves):
        events[f"up{found.row}"] = found.up
        if found.row != curves.frequent:
            named = {"focus": found.peak, "dilution": found.down, "return": found.back}
            events |= {f"{kind}{found.row}": when for kind, when in named.items()}
    for token in range(len(curves.pi)):
        if token != curves.frequent:
            events[f"self{token}"] = first_crossing(time, curves.attention[:, token, token], LIMITS.total, rising=True)
    return events


def head_curves(law: TokenLoss, start: Params, descent: Descent, columns: int = 1) -> TokenCurves:
    """Curves of the head model from a start of the whole model, as long as the descent; about .15 ms a step in long contexts."""
    head = HeadModel(law=law, columns=min(columns, law.model.shapes["WQ"][1]))
    spaced = np.unique(np.rint(np.linspace(0, descent.steps, min(FRAMES, descent.steps) + 1)))
    begin = head.start(start, normalised(descent))
    run = evolve(head, begin, descent, record=AtTimes(at=tuple(spaced.tolist())), progress=False)
    if not run.done:
        raise InputError(f"the head model does not reach the end: {run.reason}")
    return TokenCurves(run.time, {name: run.params[name] for name in run.params}, cast("TokenLoss", head))


def why_not_spoken(law: TokenLoss, start: Params, descent: Descent) -> str:
    """Why the theory does not speak of these steps from this start; empty where it does."""
    head, pi = HeadModel(law=law), law.process.stationary
    if np.ptp(pi) <= LIMITS.equal:
        return "the stationary law is uniform, so no direction condenses first, and the head model does not speak of it"
    size, sv = plateau_amplitude(pi), float(np.linalg.svd(np.asarray(start["W0"], dtype=float), compute_uv=False)[0])
    if LIMITS.start_multiple * sv >= size:
        return f"the embedding is open at the start (sv_1 {sv:.3g} of the {size:.3g} it goes to): too large a start"
    left, _, ratio = head.condensing
    if normalised(descent) and not (ratio < LIMITS.one_direction and np.all(left > 0)):
        signs = "all of one sign" if np.all(left > 0) else "of mixed signs"
        return (
            f"G = -dL/dM at the origin has sv_2/sv_1 {ratio:.2f} and rows {signs}: several embedding directions condense at "
            f"once, and the head model is of one (below {LIMITS.one_direction:g}, of one sign)"
        )
    return ""


def head_prediction(law: TokenLoss, start: Params, descent: Descent) -> SaddlePath:
    """Events of a descent from its start: rows by one column of heads, E_k, Q_k and selfK by `LIMITS.columns` of them.

    Intervals are those within which nine of ten events came under Adam on chains that were drawn for this; a note says where the
    steps are others. An event of one kind that comes after Q2 of the several columns has the wider interval of later cycles.
    """
    if why := why_not_spoken(law, start, descent):
        raise InputError(why)
    one, several = (head_curves(law, start, descent, columns) for columns in (1, LIMITS.columns))
    later = cycle_events(several)
    times = {**later, **{name: when for name, when in cycle_events(one).items() if name[0] not in "EQs"}}
    events = {name: _event(name, when, later.get("Q2"), float(one.time[-1])) for name, when in times.items()}
    rows = [found.row for found in focused_rows(one) if found.up is not None]
    heights = ", ".join(f"row {found.row} {found.height:.4g}" for found in focused_rows(one))
    notes = (
        f"predicted by the head model: 1 column of queries and keys for rows, {several.law.model.key_width} for E, Q and self",
        f"total focus on token {one.frequent}: {_listed(rows)}; largest attention on it: {heights}",
        *_beyond_intervals(start, descent),
    )
    return SaddlePath((), events, notes, 0.0, one.time, {}, by="head model", of_rows=ROW_EVENTS, clock=descent.clock)


def _beyond_intervals(start: Params, descent: Descent) -> list[str]:
    """Why events may come outside their intervals, which were measured under Adam from starts of many steps."""
    optimizer, sigma = descent.optimizer, root_mean_square({"W0": np.asarray(start["W0"], dtype=float)})
    if not isinstance(optimizer, Adam) or optimizer.eps >= LIMITS.small_eps:
        how = f"eps {optimizer.eps:g}" if isinstance(optimizer, Adam) else type(optimizer).__name__
        few = "under gradient descent 28 of 53 events came inside"
        return [f"intervals were measured under Adam with eps below {LIMITS.small_eps:g}, not under {how}; {few}"]
    if sigma < LIMITS.steps_of_start * descent.lr:
        why = f"the start {sigma:.1e} is passed in {sigma / descent.lr:.2g} steps of {descent.lr:.1e}"
        return [f"{why}; intervals were measured where that takes {LIMITS.steps_of_start:g} steps or more"]
    return []


def _listed(rows: list[int]) -> str:
    return "no row" if not rows else f"row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows))}"


def _event(name: str, when: float | None, second: float | None, last: float) -> Predicted:
    if when is None:
        return Predicted(None, reason=f"the head model does not reach it by {plain_time(last)}", beyond=last)
    if when == 0:
        return Predicted(None, reason="it is there at the start")
    kind = name.rstrip("0123456789")
    after = second is not None and when > second
    share = LIMITS.later_times if after else dict(LIMITS.head_times).get(kind, LIMITS.later_times)
    return Predicted(when, when * (1 - share), when * (1 + share))


def excess_loss(curves: TokenCurves, when: float, losses: np.ndarray) -> float:
    """(L - H(pi)) / (log d - H(pi)) at a time: 1 before anything is learned, 0 once the unigram law is."""
    entropy = float(-np.sum(curves.pi * np.log(curves.pi)))
    return (float(np.interp(when, curves.time, losses)) - entropy) / (np.log(len(curves.pi)) - entropy)
