"""The reading of a run of linear attention: frames where its curves move, and companion runs."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from stagescope.detect.stage import Stages
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.errors import StagescopeError
from stagescope.papers.linear_icl.evidence import Evidence
from stagescope.papers.linear_icl.limits import LIMITS
from stagescope.papers.linear_icl.loss import LinearLoss
from stagescope.papers.linear_icl.setup import expected_drops, flow_frames
from stagescope.papers.reading import Reading
from stagescope.papers.rebuild import ended, forked
from stagescope.params import Params
from stagescope.readings.replay import Replay
from stagescope.runs.run import Run


def refined(run: Run, law: LinearLoss, replay: Callable[[np.ndarray], Run | None]) -> Run:
    """The run itself, or a replay of a flow with more frames where its loss or its map moves between two."""
    if run.clock != "t" or "step" in run.series or run.frames < 2 or forked(run) is not None:
        return run
    frames = run
    for _ in range(LIMITS.replays):
        curves = Evidence(run, frames, law)
        # how far the curves go between two frames, in units of what they may
        falls = np.abs(np.diff(curves.loss)) / (LIMITS.near * float(curves.levels[0]))
        grown = np.abs(np.diff(np.log(np.abs(curves.learned) + LIMITS.floor), axis=0)).max(axis=1) / LIMITS.growth
        pieces = np.ceil(np.maximum(falls, grown)).astype(int)
        cut = np.flatnonzero(pieces > 1)
        if not cut.size or len(curves.time) + pieces[cut].sum() > LIMITS.most_frames:
            break
        more = [np.linspace(curves.time[i], curves.time[i + 1], min(int(pieces[i]), 50) + 1) for i in cut]
        wanted = np.unique(np.concatenate([curves.time, *more]))
        again = replay(wanted)
        if again is None:
            return run
        frames = again
    return frames


class LinearReading(Reading):
    """Curves with frames where they move, the plateaus and drops, and companion runs from other starts."""

    @cached_property
    def curves(self) -> Evidence:
        def seeded(seeds: tuple[int, ...]) -> list[Evidence]:
            return [flow for flow in self.companions(self.from_seed, seeds) if not isinstance(flow, StagescopeError)]

        frames = refined(self.run, self.law, self.replay)
        return Evidence(self.run, frames, self.law, lambda factor: self.companion(self.from_scaled, factor), seeded)

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
        run = ended(evolve(law, start, GradientFlow(rtol=1e-11), until=end, record=record, progress=False))
        return Evidence(run, refined(run, law, Replay(run, law.field()).refined), law)
