"""The reading of a run of linear attention: frames where its curves move, and companion runs."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from stagescope.core.params import Params
from stagescope.detect.stage import Stages
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.papers.linear_icl.evidence import Evidence
from stagescope.papers.linear_icl.limits import LIMITS
from stagescope.papers.linear_icl.loss import LinearLoss
from stagescope.papers.linear_icl.setup import expected_drops, flow_frames
from stagescope.readings.reading import Reading
from stagescope.readings.rebuild import companion_run, forked
from stagescope.readings.replay import Replay, read_refined
from stagescope.runs.run import Run


def refined(
    run: Run, law: LinearLoss, replay: Callable[[np.ndarray], Run | None], reading: "LinearReading | None" = None
) -> Evidence:
    """The evidence of a run, or of a replay of a flow with more frames where its loss or its map moves between two."""

    def read(frames: Run) -> Evidence:
        return Evidence(run, frames, law, reading=reading)

    if run.clock != "t" or "step" in run.series or run.frames < 2 or forked(run) is not None:
        return read(run)
    return read_refined(run, replay, read, _pieces)


def _pieces(time: np.ndarray, curves: Evidence) -> np.ndarray:
    """Into how many pieces to cut each stretch between frames: how far the curves go in it, in units of what they may."""
    falls = np.abs(np.diff(curves.loss)) / (LIMITS.near * float(curves.levels[0]))
    grown = np.abs(np.diff(np.log(np.abs(curves.learned) + LIMITS.floor), axis=0)).max(axis=1) / LIMITS.growth
    pieces = np.ceil(np.maximum(falls, grown)).astype(int)
    too_many = len(time) + pieces[pieces > 1].sum() > LIMITS.most_frames
    return np.ones_like(pieces) if too_many else np.minimum(pieces, 50)


class LinearReading(Reading):
    """Curves with frames where they move, the plateaus and drops, and companion runs from other starts."""

    @cached_property
    def curves(self) -> Evidence:
        return refined(self.run, self.law, self.replay, self)

    @cached_property
    def evidence(self) -> Evidence:
        return self.curves

    @cached_property
    def stages(self) -> Stages:
        return self.curves.stages(self.run.status)

    def from_scaled(self, factor: float) -> Evidence:
        """The flow from the same start times a factor, to a fifth after its first drop is predicted."""
        start = {name: factor * np.asarray(block) for name, block in self.run.at(0).items()}
        return self._flow(start, 1.2 * min(expected_drops(self.law.task, self.law.model, start)[0]))

    def from_seed(self, seed: int) -> Evidence:
        """The flow from another start of the same size; seeds do not meet those of other runs of the study."""
        return self._flow(self.law.model.init(10_000 + 100 * (self.run.seed or 0) + seed, self.curves.scale))

    def _flow(self, start: Params, until: float | None = None) -> Evidence:
        law = self.law
        end, record = flow_frames(law.task, law.model, start, until)
        run = companion_run(law, start, GradientFlow(rtol=1e-11), until=end, record=record)
        return refined(run, law, Replay(run, law.field()).refined)
