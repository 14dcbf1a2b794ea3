"""The stages of focus and dilution: when each began and ended, the numbers behind it, and a sentence with them [FD:stages]."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.detect.events import BRIEF
from stagescope.detect.stage import Stage

if TYPE_CHECKING:
    from stagescope.detect.events import Turn
    from stagescope.papers.focus_dilution.observables import TokenCurves
    from stagescope.papers.focus_dilution.stages import RowCycle, Stay

Events = Mapping[str, float | None]


def stages_of(
    curves: "TokenCurves",
    events: Events,
    ladder: Sequence["Stay"],
    rows: Sequence["RowCycle"],
    later: Sequence[tuple[int, "Turn"]],
    sign: float,
) -> tuple[Stage, ...]:
    """Condensation, focus, dilution, of the run and of each row; then lifting, one cycle for every further direction, turns.

    The stages of the run come first, those of rows after them; each has the row as its track.
    """
    opened = events["Q1"] if events["Q1"] is not None else events["onset"]
    found = [_condensation(curves, events["E1"], opened)]
    if opened is None:
        return tuple(found)
    found += _first_cycle(curves, events, rows, opened, sign)
    after = [*_openings(events, ladder), *(_turned(row, turn) for row, turn in later)]
    after.sort(key=lambda stage: stage.start)
    whole = [stage for stage in found + after if stage.stop is None or stage.stop > stage.start]
    return tuple(sorted(whole, key=lambda stage: stage.track))


def _condensation(curves: "TokenCurves", first: float | None, opened: float | None) -> Stage:
    """Facts: at E1 sv_2/sv_1 of W0 and the growth of sv_1(WQ WK^T); the stable rank of W0 midway on the plateau."""
    if first is None:
        return Stage("condensation", 0.0, opened, "E1 not reached: no embedding direction has opened", facts={"E1": None})
    time, values, keys = curves.time, curves.embedding_values, curves.key_values[:, 0]
    facts: dict[str, Any] = {"E1": first}
    parts = []
    if values.shape[1] > 1:
        ratio = float(np.interp(first, time, values[:, 1] / np.maximum(values[:, 0], 1e-300)))
        facts["second_over_first"] = ratio
        parts.append(f"sv_2/sv_1 of W0 {ratio:.1e}")
    if keys[0] > 0:
        facts["attention_growth"] = float(np.interp(first, time, keys) / keys[0])
        parts.append(f"sv_1(WQ WK^T) {facts['attention_growth']:.3f} of its start")
    facts["stable_rank"] = float(np.interp(_midway(curves, first, opened), time, curves.stable_rank))
    parts.append(f"stable rank {facts['stable_rank']:.3f} midway")
    return Stage("condensation", 0.0, opened, f"E1 at {first:.4g}: {', '.join(parts)}", facts=facts)


def _midway(curves: "TokenCurves", first: float, opened: float | None) -> float:
    """The middle between E1 and the opening of attention, on the plateau of stage I."""
    end = float(curves.time[-1]) if opened is None else opened
    return (first + max(first, end)) / 2


def _first_cycle(curves: "TokenCurves", events: Events, rows: Sequence["RowCycle"], opened: float, sign: float) -> list[Stage]:
    """Focus and dilution of the run where its rows agree, otherwise one stage that says so; then those of each row."""
    name = "focus" if sign > 0 else "defocus"
    focused = [cycle for cycle in rows if cycle.focus is not None]
    gains = {str(cycle.row): sign * cycle.gain for cycle in focused}
    others = [cycle.row for cycle in rows if cycle.focus is None]
    facts = {"gains": gains, "rows_without": others}
    if not focused:
        return [Stage(name, opened, events.get("E2"), f"no row has a {name}", facts=facts)]
    peaks = [cycle.focus for cycle in focused if cycle.focus is not None]
    listed = _listed([f"row {row} {gain:+.3f}" for row, gain in gains.items()])
    without = f"; no {name} in row{'s' if len(others) > 1 else ''} {_listed([str(row) for row in others])}" if others else ""
    moved = f"gain of attention on the frequent token: {listed}{without}"
    own = [stage for cycle in focused for stage in _row_stages(cycle, name, opened, sign)]
    halves = [cycle.half for cycle in focused]
    whole = None if None in halves else max(half for half in halves if half is not None)
    sentence, diluted = _diluted(curves, events, focused, opened)
    begun = min((half for half in halves if half is not None), default=np.inf)
    if max(peaks) - begun > BRIEF * max(peaks):
        first, last = (cycle.row for cycle in (min(focused, key=_half), max(focused, key=lambda each: each.focus or 0.0)))
        order = f"row {first} is diluted at {begun:.4g}, before row {last} has its {name} at {max(peaks):.4g}"
        words = f"rows differ: {order}; {moved}; {sentence}"
        return [Stage("rows differ", min(opened, *peaks), whole, words, facts={**facts, **diluted}), *own]
    return [
        Stage(name, min(opened, *peaks), max(peaks), moved, facts=facts),
        Stage("dilution", max(peaks), whole, sentence, facts=diluted),
        *own,
    ]


def _half(cycle: "RowCycle") -> float:
    return np.inf if cycle.half is None else cycle.half


def _row_stages(cycle: "RowCycle", name: str, opened: float, sign: float) -> list[Stage]:
    """Focus and dilution of one row, until it has lost half of its gain."""
    assert cycle.focus is not None
    track, facts = f"row {cycle.row}", {"row": cycle.row, "gain": sign * cycle.gain}
    back = "keeps more than half of its gain" if cycle.half is None else "loses half of its gain"
    return [
        Stage(name, min(opened, cycle.focus), cycle.focus, f"row {cycle.row} gains {sign * cycle.gain:+.3f}", track, facts),
        Stage("dilution", cycle.focus, cycle.half, f"row {cycle.row} {back}", track, {**facts, "back_at_base": cycle.complete}),
    ]


def _diluted(curves: "TokenCurves", events: Events, focused: Sequence["RowCycle"], opened: float) -> tuple[str, dict[str, Any]]:
    """Rows that lost half of their gain; smallest norms of their embeddings and largest entropies of their scores before E2."""
    lost = [cycle for cycle in focused if cycle.half is not None]
    facts: dict[str, Any] = {"rows_diluted": len(lost), "rows_focused": len(focused)}
    sentence = f"{len(lost)} of {len(focused)} rows lost half of their gain"
    first, second = events["E1"], events.get("E2")
    if not lost or first is None:
        return sentence, facts
    time = curves.time
    until = float(time[-1]) if second is None else max(second, *(cycle.half or 0.0 for cycle in lost))
    midway = int(np.searchsorted(time, _midway(curves, first, opened)))
    inside = np.flatnonzero((time >= min(cycle.focus or 0.0 for cycle in lost)) & (time <= until))
    rows = [cycle.row for cycle in lost]
    if len(inside) < 2:
        return sentence, facts
    dips = [_nearest(curves.params["W0"][inside, row]) / max(float(curves.norms[midway, row]), 1e-300) for row in rows]
    flat = (curves.probe_entropy[inside][:, rows].max(axis=0) / np.log(len(curves.pi))).tolist()
    facts["norm_dips"] = {str(row): dip for row, dip in zip(rows, dips, strict=True)}
    facts["probe_entropies"] = {str(row): share for row, share in zip(rows, flat, strict=True)}
    dipped, returned = (_listed([f"{value:.3f}" for value in values]) for values in (dips, flat))
    return f"{sentence}; smallest norms {dipped} of stage I, largest entropies of softmax(Phi) {returned} log d", facts


def _nearest(path: np.ndarray) -> float:
    """The smallest distance of a path of vectors (frames, width) from zero, straight between frames: dips are narrow."""
    start, step = path[:-1], np.diff(path, axis=0)
    square = np.maximum(np.sum(step**2, axis=1), np.finfo(float).tiny)
    share = np.clip(-np.sum(start * step, axis=1) / square, 0.0, 1.0)
    return float(np.min(np.linalg.norm(start + share[:, None] * step, axis=1)))


def _openings(events: Events, ladder: Sequence["Stay"]) -> list[Stage]:
    """Lifting at E2 and a cycle at every later E_k, each until the next. Facts: k, and the labels (r,rq) before and after."""
    number = {f"E{k}": k for k in range(2, 1 + sum(name[0] == "E" for name in events))}
    reached = sorted((when, k) for name, k in number.items() if (when := events[name]) is not None)
    found = []
    for place, (when, k) in enumerate(reached):
        stop = reached[place + 1][0] if place + 1 < len(reached) else None
        after = next((i for i, stay in enumerate(ladder) if stay.r >= k), None)
        facts: dict[str, Any] = {"direction": k}
        sentence = f"embedding direction {k} opens"
        if after:
            facts |= {"label_before": ladder[after - 1].label, "label_after": ladder[after].label}
            sentence += f": (r,rq) goes from {facts['label_before']} to {facts['label_after']}"
        found.append(Stage("lifting" if k == 2 else f"cycle {k}", when, stop, sentence, facts=facts))
    return found


def _turned(row: int, turn: "Turn") -> Stage:
    name, still = "refocus" if turn.rising else "redilution", ", not turned yet" if turn.stop is None else ""
    facts = {"row": row, "before": turn.before, "after": turn.after, "turned": turn.stop is not None}
    return Stage(name, turn.start, turn.stop, f"row {row}: {turn.before:.3f} -> {turn.after:.3f}{still}", f"row {row}", facts)


def _listed(names: Sequence[str], most: int = 6) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
