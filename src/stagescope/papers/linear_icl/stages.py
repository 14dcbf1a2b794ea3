"""Curves of a run of linear attention, and its stages: plateaus, and the drops between them [LIN:stages].

d_m   the loss is halfway between l_{m-1} and l_m; merged heads have one drop, d1, halfway between l_0 and l_D
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.detect.events import crossing
from stagescope.detect.stage import Event, Stage, Stages
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.loss import LinearLoss
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask
from stagescope.params import Params
from stagescope.runs.run import Run


@dataclass(frozen=True)
class LinearCurves:
    """The frames of a run, or of a replay of it with more frames."""

    time: np.ndarray
    loss: np.ndarray
    params: Params
    law: LinearLoss

    @classmethod
    def of(cls, run: Run, law: LinearLoss) -> "LinearCurves":
        return cls(run.time, np.asarray(run.series["loss"]), {name: run.params[name] for name in run.params}, law)

    @property
    def model(self) -> LinearAttention:
        return self.law.model

    @property
    def task(self) -> RegressionTask:
        return self.law.task

    @cached_property
    def whole(self) -> np.ndarray:
        """M (frames, D, D)."""
        return self.model.whole(self.params)

    @cached_property
    def shares(self) -> np.ndarray:
        """v_h (U_h)_ii over M_ii of a learned direction (frames, H, D): who holds what."""
        return np.einsum("thii->thi", self.model.maps(self.params)) / forms.final_map(self.task)

    @cached_property
    def learned(self) -> np.ndarray:
        """M_ii over its final value (frames, D)."""
        return np.einsum("tii->ti", self.whole) / forms.final_map(self.task)

    @cached_property
    def levels(self) -> np.ndarray:
        """The losses between which the run falls: l_0 .. l_reach, of merged heads l_0 and l_D."""
        found = forms.levels(self.task)
        return found[[0, -1]] if self.model.merged else found[: self.model.reach + 1]

    def owner(self, direction: int) -> int:
        """The head with the largest share of a direction at the end."""
        return int(np.argmax(np.abs(self.shares[-1, :, direction])))


def plateau(time: np.ndarray, loss: np.ndarray, begin: float, end: float) -> int | None:
    """The frame between two times at which the loss changes least per unit of ln t; None where fewer than three frames are."""
    inside = np.flatnonzero((time > begin) & (time < end) & (time > 0))
    if inside.size < 3:
        return None
    slope = np.abs(np.gradient(loss[inside], np.log(time[inside])))
    return int(inside[int(np.argmin(slope))])


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
