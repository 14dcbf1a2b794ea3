"""What a training in steps will do, before it: events of the head model from the start of the run [FDA:head].

The curves of the head model are read as those of a run are, by `detect`: events have the names and the rules of `stages`.
Predicted are E_k, Q_k, upI, focusI, dilutionI, returnI, and selfK of tokens other than the most frequent one.
"""

import re
from typing import cast

import numpy as np

from stagescope.core.errors import InputError
from stagescope.core.params import Params, root_mean_square
from stagescope.detect.stage import Event
from stagescope.flow.descent import Adam, Descent
from stagescope.flow.evolve import evolve
from stagescope.flow.record import AtTimes
from stagescope.landscape.saddle_path import Predicted, SaddlePath, plain_time
from stagescope.papers.focus_dilution.family import plateau_amplitude
from stagescope.papers.focus_dilution.head_model import HeadModel, normalised
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenLoss, TokenSampled
from stagescope.papers.focus_dilution.observables import TokenCurves
from stagescope.papers.focus_dilution.stages import detect, row_cycles

FRAMES = 1000
"""Of a run of the head model: curves of a published run then move by less than .03 between two."""
ROW_EVENTS = ("up", "focus", "dilution", "return", "self")
"""Kinds of events whose number names a row or a token."""


def predictable(curves: TokenCurves, descent: Descent) -> dict[str, Event]:
    """The events that are predicted: openings, first cycles of rows, and self-attention of tokens that are not most frequent."""
    stages = detect(curves, clock=descent.clock, normalised=normalised(descent))
    names = re.compile(rf"(E|Q|{'|'.join(ROW_EVENTS[:-1])}|self(?!{curves.frequent}$))\d+")
    return {name: event for name, event in stages.estimates.items() if names.fullmatch(name)}


def head_curves(law: TokenLoss, start: Params, descent: Descent, columns: int = 1, last: bool = False) -> TokenCurves:
    """Curves of the head model from a start of the whole model, as long as the descent; about .15 ms a step in long contexts.

    Several columns are the first ones of the start, or the `last` ones.
    """
    head = HeadModel(law=law, columns=min(columns, law.model.shapes["WQ"][1]))
    if last:
        start = {name: block[:, ::-1] if name in ("WQ", "WK") else block for name, block in start.items()}
    spaced = np.unique(np.rint(np.linspace(0, descent.steps, min(FRAMES, descent.steps) + 1)))
    begin = head.start(start, normalised(descent))
    run = evolve(head, begin, descent, record=AtTimes(at=tuple(spaced.tolist())), progress=False)
    if not run.done:
        raise InputError(f"the head model does not reach the end: {run.reason}")
    return TokenCurves(run.time, {name: run.params[name] for name in run.params}, cast("TokenLoss", head))


def why_not_spoken(law: TokenLoss, start: Params) -> str:
    """Why the theory does not speak of this start; empty where it does."""
    pi = law.process.stationary
    if np.ptp(pi) <= LIMITS.equal:
        return "the stationary law is uniform, so no direction condenses first, and the head model does not speak of it"
    size, sv = plateau_amplitude(pi), float(np.linalg.svd(np.asarray(start["W0"], dtype=float), compute_uv=False)[0])
    if LIMITS.start_multiple * sv >= size:
        return f"the embedding is open at the start (sv_1 {sv:.3g} of the {size:.3g} it goes to): too large a start"
    return ""


def head_prediction(law: TokenLoss, start: Params, descent: Descent) -> SaddlePath:
    """Events of a descent from its start, by `LIMITS.columns` columns of queries and keys.

    Which columns of the start stand for all is a choice, so two are made, the first and the last ones. A time is the mean of
    both, and its interval holds both, 2 % wider: nine of ten events came inside under Adam on chains that were drawn for this;
    a note says where steps are others. What one choice alone reaches depends on the choice, and is not predicted. Plain gradient
    steps align no columns, so all are kept: that is the run itself.
    """
    if reason := why_not_spoken(law, start):
        raise InputError(reason)
    keys = law.model.shapes["WQ"][1]
    exact = keys <= LIMITS.columns or not normalised(descent)
    choices = [head_curves(law, start, descent, keys if exact else LIMITS.columns, last) for last in (False, True)[: 2 - exact]]
    last, frequent = float(choices[0].time[-1]), choices[0].frequent
    predictions = [predictable(curves, descent) for curves in choices]
    share = 0.0 if exact else LIMITS.predicted_times
    events = {name: _event([choice[name] for choice in predictions], share, last) for name in predictions[0]}
    unsure = [
        name for name, event in events.items() if event.t is None and any(choice[name].time is not None for choice in predictions)
    ]
    rows = row_cycles(choices[0])
    heights = ", ".join(f"row {cycle.row} {cycle.height:.4g}" for cycle in rows)
    focused = (
        rows_named([row for row in range(len(rows)) if events[f"up{row}"].t is not None]) if normalised(descent) else "not read"
    )
    notes = [
        f"this is the run itself, which takes as long: all columns of queries and keys are kept ({keys})"
        if exact
        else f"predicted by the head model with {LIMITS.columns} of {keys} columns of queries and keys, chosen in two ways",
        f"total focus on token {frequent}: {focused}; attention on it in the first cycle: {heights}",
    ]
    if unsure:
        notes.append(
            f"not predicted: {', '.join(unsure)}; which columns are kept decides whether they come by {plain_time(last)}"
        )
    if isinstance(law, TokenSampled):
        notes.append(f"contexts are the {law.sequences:,} sequences that the run draws; with other --sequences times differ")
    notes += [] if exact else _beyond_intervals(start, descent)
    source = "run itself" if exact else "head model"
    return SaddlePath((), events, tuple(notes), 0.0, choices[0].time, {}, by=source, of_rows=ROW_EVENTS, clock=descent.clock)


def _beyond_intervals(start: Params, descent: Descent) -> list[str]:
    """Why events may come outside their intervals, which were measured under Adam from starts of many steps."""
    optimizer, sigma = descent.optimizer, root_mean_square({"W0": np.asarray(start["W0"], dtype=float)})
    if not isinstance(optimizer, Adam) or optimizer.eps >= LIMITS.small_eps:
        steps = f"eps {optimizer.eps:g}" if isinstance(optimizer, Adam) else type(optimizer).__name__
        return [f"intervals were measured under Adam with eps below {LIMITS.small_eps:g}, not under {steps}"]
    if sigma < LIMITS.steps_of_start * descent.lr:
        sentence = f"the start {sigma:.1e} is passed in {sigma / descent.lr:.2g} steps of {descent.lr:.1e}"
        return [f"{sentence}; intervals were measured where that takes {LIMITS.steps_of_start:g} steps or more"]
    return []


def rows_named(rows: list[int]) -> str:
    """Such as "row 1" or "rows 1, 2"."""
    return "no row" if not rows else f"row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows))}"


def _event(events: list[Event], share: float, last: float) -> Predicted:
    """The mean over choices of columns; one choice alone has the interval of its records."""
    if events[0].state == "at the start":
        return Predicted(None, reason="it is there at the start")
    times = [event.time for event in events if event.time is not None]
    if len(times) < len(events):
        reason = "which columns are kept decides whether it comes" if times else "the head model does not reach it"
        return Predicted(None, reason=f"{reason} by {plain_time(last)}", beyond=min([last, *times]))
    low, high = (events[0].low, events[0].high) if len(events) == 1 else (min(times) * (1 - share), max(times) * (1 + share))
    return Predicted(float(np.mean(times)), low, high)


def excess_loss(curves: TokenCurves, time: float, losses: np.ndarray) -> float:
    """(L - H(pi)) / (log d - H(pi)) at a time: 1 before anything is learned, 0 once the unigram law is."""
    entropy = float(-np.sum(curves.pi * np.log(curves.pi)))
    return (float(np.interp(time, curves.time, losses)) - entropy) / (np.log(len(curves.pi)) - entropy)
