"""The stages of linear attention: plateaus, and the drops between them [LIN:stages].

d_m   the loss is halfway between l_{m-1} and l_m; merged heads have one drop, d1, halfway between l_0 and l_D
"""

import numpy as np

from stagescope.detect.events import crossing
from stagescope.detect.stage import Event, Stage, Stages
from stagescope.papers.linear_icl.observables import LinearCurves, plateau

SOLVER = 1e-8
"""Error of the loss of a flow, relative to tr Lambda."""


def drops(curves: LinearCurves) -> dict[str, Event]:
    """d1, d2, ...: as many as the heads can hold directions."""
    levels, error = curves.levels, SOLVER * float(curves.levels[0])
    middles = (levels[:-1] + levels[1:]) / 2
    found = {}
    for m, middle in enumerate(middles, start=1):
        found[f"d{m}"] = crossing(curves.time, curves.loss, float(middle), rising=False, error=error, how="half of a loss step")
    return found


def detect(curves: LinearCurves, *, clock: str, status: str) -> Stages:
    """Plateau m from d_m to d_{m+1}."""
    events, notes = drops(curves), {}
    for name, event in events.items():
        if event.time is None:
            notes[name] = f"the loss ended at {curves.loss[-1]:.4g}"
    if not curves.model.merged:
        for m in range(curves.model.reach + 1, curves.task.dim + 1):
            events[f"d{m}"] = Event.missing("not counted")
            notes[f"d{m}"] = f"{curves.model.heads} heads of rank {curves.model.rank} hold {curves.model.reach} directions"
    return Stages.of(status, clock, events, tuple(_stages(curves, events)), notes)


def _stages(curves: LinearCurves, events: dict[str, Event]) -> list[Stage]:
    times = [float(curves.time[0])]
    for name in (f"d{m}" for m in range(1, len(curves.levels))):
        when = events[name].time
        if when is None:
            break
        times.append(when)
    return [_stage(curves, m, times) for m in range(len(times))]


def _stage(curves: LinearCurves, m: int, times: list[float]) -> Stage:
    stop = times[m + 1] if m + 1 < len(times) else None
    frame = plateau(curves.time, curves.loss, times[m], float(curves.time[-1]) if stop is None else stop)
    level = float(curves.levels[m])
    loss = level if frame is None else float(curves.loss[frame])
    components = (0, curves.task.dim)[m] if curves.model.merged else m
    diagonal = np.round(curves.learned[-1 if frame is None else frame], 4).tolist()
    said = f"loss {loss:.6g} where it falls least, level {level:.6g}"
    facts = {"loss": loss, "level": level, "components": components, "learned": diagonal}
    return Stage(f"plateau {components}", times[m], stop, said, facts=facts)
