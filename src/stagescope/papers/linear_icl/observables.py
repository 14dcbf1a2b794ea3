"""What a run of linear attention shows: its map M, the share of every head in each direction, and when directions are learned."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

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

    @property
    def conserved(self) -> np.ndarray:
        """v_h^2 - |block|^2 at every frame (frames, blocks, H)."""
        return self.model.conserved(self.params)


def plateau(time: np.ndarray, loss: np.ndarray, begin: float, end: float) -> int | None:
    """The frame between two times at which the loss changes least per unit of ln t; None where fewer than three frames are."""
    inside = np.flatnonzero((time > begin) & (time < end) & (time > 0))
    if inside.size < 3:
        return None
    slope = np.abs(np.gradient(loss[inside], np.log(time[inside])))
    return int(inside[int(np.argmin(slope))])
