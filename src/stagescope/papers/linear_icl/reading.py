"""The reading of a run of linear attention: its curves where they move, its stages, and companion runs for its claims."""

from functools import cached_property

import numpy as np

from stagescope.detect.stage import Stages
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import AtTimes
from stagescope.errors import StagescopeError
from stagescope.papers.linear_icl.evidence import Evidence
from stagescope.papers.linear_icl.loss import LinearLoss
from stagescope.papers.linear_icl.observables import LinearCurves
from stagescope.papers.linear_icl.setup import expected_drops, flow_frames
from stagescope.papers.linear_icl.stages import detect
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


def refined(run: Run, law: LinearLoss) -> LinearCurves:
    """Curves of a run; a flow is replayed, which is exact, with more frames where its loss or its map moves between two."""
    curves = LinearCurves.of(run, law)
    if run.clock != "t" or "step" in run.series or run.frames < 2 or forked(run) is not None:
        return curves
    for _ in range(REPLAYS):
        pieces = np.ceil(_moves(curves)).astype(int)
        cut = np.flatnonzero(pieces > 1)
        if not cut.size or len(curves.time) + pieces[cut].sum() > MOST_FRAMES:
            break
        more = [np.linspace(curves.time[i], curves.time[i + 1], min(int(pieces[i]), 50) + 1) for i in cut]
        wanted = np.unique(np.concatenate([curves.time, *more]))
        again = replay(run, AtTimes(at=tuple(wanted[wanted > 0].tolist())))
        if not _same(run, again):
            return LinearCurves.of(run, law)
        curves = LinearCurves.of(again, law)
    return curves


def _moves(curves: LinearCurves) -> np.ndarray:
    """How far the curves go between two frames, in units of what they may."""
    falls = np.abs(np.diff(curves.loss)) / (MOVE * float(curves.levels[0]))
    grown = np.abs(np.diff(np.log(np.abs(curves.learned) + FLOOR), axis=0)).max(axis=1) / GROWTH
    return np.maximum(falls, grown)


def _same(run: Run, again: Run) -> bool:
    """Whether a replay has the losses and the parameters of the run at the run's own frames."""
    places = np.searchsorted(again.t, run.t)
    apart = np.abs(np.asarray(again.series["loss"])[places] - np.asarray(run.series["loss"]))
    if np.max(apart) > SAME_LOSS * float(run.series["loss"][0]):
        return False
    far = [np.max(np.abs(again.params[name][places] - run.params[name])) for name in run.params]
    return max(far) <= SAME_PLACE * max(float(np.max(np.abs(run.params[name]))) for name in run.params)


class LinearReading(Reading):
    """Curves with frames where they move, the plateaus and drops, and companion runs from other starts."""

    @cached_property
    def curves(self) -> LinearCurves:
        return refined(self.run, self.law)

    @cached_property
    def stages(self) -> Stages:
        return detect(self.curves, clock=self.run.clock, status=self.run.status)

    @cached_property
    def evidence(self) -> Evidence:
        def seeded(seeds: tuple[int, ...]) -> list[Evidence]:
            found = self.companions(self.from_seed, seeds)
            return [each for each in found if not isinstance(each, StagescopeError)]

        return Evidence(self.run, self.curves, lambda factor: self.companion(self.from_scaled, factor), seeded)

    def from_scaled(self, factor: float) -> Evidence:
        """The flow from the same start times a factor, to a fifth after its first drop is predicted."""
        start = {name: factor * np.asarray(block) for name, block in self.run.at(0).items()}
        first = min(expected_drops(self.law.task, self.law.model, start)[0])
        return self._flow(start, 1.2 * first)

    def from_seed(self, seed: int) -> Evidence:
        """The flow from another start of the same size; seeds do not meet those of other runs of the study."""
        size = self.evidence.scale
        start = self.law.model.init(10_000 + 100 * (self.run.seed or 0) + seed, size)
        return self._flow(start, None)

    def _flow(self, start: Params, until: float | None) -> Evidence:
        law = self.law
        end, record = flow_frames(law.task, law.model, start, until)
        made = ended(evolve(law, start, GradientFlow(rtol=1e-11), until=end, record=record, progress=False))
        return Evidence(made, refined(made, law))
