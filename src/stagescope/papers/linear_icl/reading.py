"""The reading of a run of linear attention: frames where its curves move, and companion runs."""

from functools import cached_property

import numpy as np

from stagescope.detect.stage import Stages
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import AtTimes
from stagescope.errors import StagescopeError
from stagescope.papers.linear_icl.evidence import Evidence
from stagescope.papers.linear_icl.loss import LinearLoss
from stagescope.papers.linear_icl.setup import expected_drops, flow_frames
from stagescope.papers.reading import Reading
from stagescope.papers.rebuild import ended, forked, replay
from stagescope.params import Params
from stagescope.runs.run import Run

MOVE = 0.01
"""Between two frames a loss may fall by this share of the whole; a run that falls faster is replayed with more frames there."""
GROWTH, FLOOR = 0.4, 1e-4
"""Between two frames ln(M_ii + FLOOR of its end) may change by this: openings are seen while they are small."""
REPLAYS, MOST_FRAMES = 3, 8000
SAME_LOSS, SAME_PLACE = 1e-3, 0.05
"""Largest difference between a run and its replay at a frame, of the loss at the start and of the largest parameters: a run that
differs by more was not made by its law, and is read as it is."""


def refined(run: Run, law: LinearLoss) -> Run:
    """The run itself, or a replay of a flow, which is exact, with more frames where its loss or its map moves between two."""
    if run.clock != "t" or "step" in run.series or run.frames < 2 or forked(run) is not None:
        return run
    frames = run
    for _ in range(REPLAYS):
        curves = Evidence(run, frames, law)
        # how far the curves go between two frames, in units of what they may
        falls = np.abs(np.diff(curves.loss)) / (MOVE * float(curves.levels[0]))
        grown = np.abs(np.diff(np.log(np.abs(curves.learned) + FLOOR), axis=0)).max(axis=1) / GROWTH
        pieces = np.ceil(np.maximum(falls, grown)).astype(int)
        cut = np.flatnonzero(pieces > 1)
        if not cut.size or len(curves.time) + pieces[cut].sum() > MOST_FRAMES:
            break
        more = [np.linspace(curves.time[i], curves.time[i + 1], min(int(pieces[i]), 50) + 1) for i in cut]
        wanted = np.unique(np.concatenate([curves.time, *more]))
        frames = replay(run, AtTimes(at=tuple(wanted[wanted > 0].tolist())))
        if not _same(run, frames):
            return run
    return frames


def _same(run: Run, again: Run) -> bool:
    """Whether a replay has the losses and the parameters of the run at the run's own frames."""
    places = np.searchsorted(again.t, run.t)
    difference = np.abs(np.asarray(again.series["loss"])[places] - np.asarray(run.series["loss"]))
    if np.max(difference) > SAME_LOSS * float(run.series["loss"][0]):
        return False
    far = [np.max(np.abs(again.params[name][places] - run.params[name])) for name in run.params]
    return max(far) <= SAME_PLACE * max(float(np.max(np.abs(run.params[name]))) for name in run.params)


class LinearReading(Reading):
    """Curves with frames where they move, the plateaus and drops, and companion runs from other starts."""

    @cached_property
    def curves(self) -> Evidence:
        def seeded(seeds: tuple[int, ...]) -> list[Evidence]:
            return [flow for flow in self.companions(self.from_seed, seeds) if not isinstance(flow, StagescopeError)]

        frames = refined(self.run, self.law)
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
        return Evidence(run, refined(run, law), law)
