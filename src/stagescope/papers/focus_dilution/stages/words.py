"""The stages of focus and dilution in words: when each began and ended, and the numbers that say so [FD:stages]."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stagescope.detect.stage import Stage

if TYPE_CHECKING:
    from stagescope.detect.extrema import Turn
    from stagescope.papers.focus_dilution.observables import TokenCurves
    from stagescope.papers.focus_dilution.stages import RowCycle, Visit

NAMED = 6
"""Rows named in a sentence."""


def stages_of(
    curves: "TokenCurves",
    events: Mapping[str, float | None],
    ladder: Sequence["Visit"],
    rows: Sequence["RowCycle"],
    later: Sequence[tuple[int, "Turn"]],
    sign: float,
) -> tuple[Stage, ...]:
    """Condensation, focus, dilution; then lifting and one cycle for every further direction, beside them single rows' turns."""
    opened = events["Q1"] if events["Q1"] is not None else events["onset"]
    found = [Stage("condensation", 0.0, opened, _condensed(curves, events["E1"], opened))]
    if opened is None:
        return tuple(found)
    found += _first_cycle(curves, events, rows, opened, sign)
    after = [*_openings(events, ladder), *(_turned(row, turn) for row, turn in later)]
    after.sort(key=lambda stage: stage.start)
    return tuple(stage for stage in found + after if stage.stop is None or stage.stop > stage.start)


def _condensed(curves: "TokenCurves", first: float | None, opened: float | None) -> str:
    if first is None:
        return "E1 not reached: no embedding direction has opened"
    time, values, keys = curves.time, curves.embedding_values, curves.key_values[:, 0]
    facts = []
    if values.shape[1] > 1:
        facts.append(f"sv_2/sv_1 {np.interp(first, time, values[:, 1] / np.maximum(values[:, 0], 1e-300)):.1e}")
    if keys[0] > 0:
        facts.append(f"sv_1(WQ WK^T) x {np.interp(first, time, keys) / keys[0]:.3f}")
    facts.append(f"stable rank {np.interp(_midway(curves, first, opened), time, curves.stable_rank):.3f} midway")
    return f"E1 at {first:.4g}: {', '.join(facts)}"


def _midway(curves: "TokenCurves", first: float, opened: float | None) -> float:
    """Between E1 and the opening of attention: on the plateau of stage I."""
    end = float(curves.time[-1]) if opened is None else opened
    return (first + max(first, end)) / 2


def _first_cycle(
    curves: "TokenCurves", events: Mapping[str, float | None], rows: Sequence["RowCycle"], opened: float, sign: float
) -> list[Stage]:
    name = "focus" if sign > 0 else "defocus"
    focused = [cycle for cycle in rows if cycle.focus is not None]
    if not focused:
        return [Stage(name, opened, events.get("E2"), "no row gained visibly")]
    peaks = [cycle.focus for cycle in focused if cycle.focus is not None]
    gains = _listed([f"row {cycle.row} {sign * cycle.gain:+.3f}" for cycle in focused])
    others = [str(cycle.row) for cycle in rows if cycle.focus is None]
    still = f"; no {name} in row{'s' if len(others) > 1 else ''} {_listed(others)}" if others else ""
    halves = [cycle.half for cycle in focused]
    whole = None if None in halves else max(half for half in halves if half is not None)
    return [
        Stage(name, min(opened, *peaks), max(peaks), f"attention on the frequent token: {gains}{still}"),
        Stage("dilution", max(peaks), whole, _diluted(curves, events, focused, opened)),
    ]


def _diluted(curves: "TokenCurves", events: Mapping[str, float | None], focused: Sequence["RowCycle"], opened: float) -> str:
    """How many rows lost half of their gain; how far their embeddings dipped and how flat their scores became before E2."""
    lost = [cycle for cycle in focused if cycle.half is not None]
    said = f"{len(lost)} of {len(focused)} rows lost half of their gain"
    first, second = events["E1"], events.get("E2")
    if not lost or first is None:
        return said
    time = curves.time
    until = float(time[-1]) if second is None else max(second, *(cycle.half or 0.0 for cycle in lost))
    midway = int(np.searchsorted(time, _midway(curves, first, opened)))
    inside = np.flatnonzero((time >= min(cycle.focus or 0.0 for cycle in lost)) & (time <= until))
    rows = [cycle.row for cycle in lost]
    if len(inside) < 2:
        return said
    dips = [_nearest(curves.params["W0"][inside, row]) / max(curves.norms[midway, row], 1e-300) for row in rows]
    flat = curves.probe_entropy[inside][:, rows].max(axis=0) / np.log(len(curves.pi))
    dipped, returned = _listed([f"{dip:.3f}" for dip in dips]), _listed([f"{share:.3f}" for share in flat])
    return f"{said}; their norms fall to {dipped} of stage I, their probe entropies return to {returned} log d"


def _nearest(path: np.ndarray) -> float:
    """How near a path of vectors (frames, width) comes to zero, straight between its frames: dips are narrower than frames."""
    start, step = path[:-1], np.diff(path, axis=0)
    square = np.maximum(np.sum(step**2, axis=1), np.finfo(float).tiny)
    share = np.clip(-np.sum(start * step, axis=1) / square, 0.0, 1.0)
    return float(np.min(np.linalg.norm(start + share[:, None] * step, axis=1)))


def _openings(events: Mapping[str, float | None], ladder: Sequence["Visit"]) -> list[Stage]:
    """Lifting at E2 and a cycle at every later E_k, each until the next."""
    number = {f"E{k}": k for k in range(2, 1 + sum(name[0] == "E" for name in events))}
    reached = sorted((when, k) for name, k in number.items() if (when := events[name]) is not None)
    found = []
    for place, (when, k) in enumerate(reached):
        stop = reached[place + 1][0] if place + 1 < len(reached) else None
        after = next((i for i, visit in enumerate(ladder) if visit.r >= k), None)
        step = f": (r,rq) {ladder[after - 1].label} -> {ladder[after].label}" if after else ""
        name = "lifting" if k == 2 else f"cycle {k}"
        found.append(Stage(name, when, stop, f"embedding direction {k} opens{step}"))
    return found


def _turned(row: int, turn: "Turn") -> Stage:
    name, still = "refocus" if turn.rising else "redilution", ", not turned yet" if turn.stop is None else ""
    return Stage(name, turn.start, turn.stop, f"row {row}: {turn.before:.3f} -> {turn.after:.3f}{still}")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
