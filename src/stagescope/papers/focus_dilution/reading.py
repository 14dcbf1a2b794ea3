"""Read a run of focus and dilution: its stages, its ladder, and the companion runs that its claims need."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.detect.stage import Stages
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import AtTimes, Uniform
from stagescope.errors import StagescopeError
from stagescope.landscape.ladder import Ladder, Rung
from stagescope.papers.focus_dilution.evidence import Evidence
from stagescope.papers.focus_dilution.forms import attention_rate
from stagescope.papers.focus_dilution.ladder import rung
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.observables import TokenCurves, token_curves
from stagescope.papers.focus_dilution.stages import Stay, detect
from stagescope.papers.reading import Reading
from stagescope.papers.rebuild import ended, replay
from stagescope.runs.run import Run


@dataclass(frozen=True)
class Refinement:
    """The refinement grid: how near the frames of a run must be for its stages and saddle visits."""

    next: float = 0.03  # frames are at most this share of the time passed apart, because events are spaced in log-time
    longest: float = 1e-3  # and at most this share of the run's length
    shortest: float = 1e-4  # but need not be nearer than this share
    pieces: float = 2.0  # a run is replayed while some stretch between frames should be cut into more pieces than this
    replays: int = 3  # at most so often
    most_frames: int = 6000  # at most so many frames
    most_entries: float = 4e7  # and at most so many numbers of attention in all frames, .3 GB


REFINEMENT = Refinement()


def _refined(run: Run) -> TokenCurves:
    """Curves of a run, replayed (which is exact) until little moves between two frames; works for flows and descents."""
    seen, curves = run, token_curves(run)
    for _ in range(REFINEMENT.replays):
        position = seen.step.astype(float) if "step" in seen.series else seen.t
        pieces = _pieces(position, curves)
        if np.max(pieces, initial=1) <= REFINEMENT.pieces:
            break
        stretches = zip(position[:-1], position[1:], np.ceil(pieces).astype(int), strict=True)
        wanted = np.concatenate([np.linspace(a, b, n + 1) for a, b, n in stretches])
        wanted = np.unique(np.rint(wanted) if "step" in seen.series else wanted)
        if len(wanted) == len(position):
            break
        seen = replay(run, AtTimes(at=tuple(wanted.tolist())))
        curves = token_curves(seen)
    return curves


def _pieces(position: np.ndarray, curves: TokenCurves) -> np.ndarray:
    """Into how many pieces to cut each stretch between frames, so that each is short and little moves in it."""
    length, last = np.diff(position), position[-1]
    short = np.clip(REFINEMENT.next * position[1:], REFINEMENT.shortest * last, REFINEMENT.longest * last)
    pieces = np.maximum(1.0, np.maximum(curves.moves(), length / short))
    most = min(REFINEMENT.most_frames, REFINEMENT.most_entries / curves.attention[0].size)
    return np.maximum(1.0, pieces * min(1.0, most / max(1.0, float(pieces.sum()))))


class FocusDilutionReading(Reading):
    """Curves at a fine resolution, the stages of rows and embeddings, and the ladder of small models (r, rq)."""

    @cached_property
    def curves(self) -> TokenCurves:
        return _refined(self.run)

    @cached_property
    def stages(self) -> Stages:
        curves, run = self.curves, self.run
        law = curves.law
        sign = float(np.sign(attention_rate(curves.pi, law.process.transition, law.model.scale)))
        tolerance = float(run.spec["dynamics"].get("rtol", 0.0))
        return detect(curves, sign, tolerance=tolerance, clock=run.clock, status=run.status)

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence(self.run, self.curves, lambda factor, until: self.companion(self.from_scaled, factor, until))

    def from_scaled(self, factor: float, until: float) -> TokenCurves:
        """Curves of the flow from the same start times a factor."""
        start = {name: factor * block for name, block in self.run.at(0).items()}
        made = evolve(self.field, start, GradientFlow(), until=until, record=Uniform(frames=1000), progress=False)
        return _refined(ended(made, f"the flow from a start scaled by {factor:g}"))

    @property
    def has_own_ladder(self) -> bool:
        """Critical points of the small models (r, rq) are those of the flow only where all blocks have the same rate."""
        return set(self.run.spec["dynamics"]["rates"].values()) <= {1.0}

    def own_ladder(self) -> Ladder:
        rungs = [_rung(self.evidence, stay) for stay in self.evidence.stays]
        if not isinstance(self.law, TokenPopulation):
            rungs = [rung.noted("critical point and rates are those of infinitely long contexts") for rung in rungs]
        clock = self.run.clock
        return Ladder(self.run.status, clock, tuple(rung.timeless() if clock != "t" else rung for rung in rungs))


def _rung(evidence: Evidence, stay: Stay) -> Rung:
    """One rung; where it cannot be computed its note says why, and the other rungs are not affected."""
    try:
        return rung(evidence.at(stay))
    except StagescopeError as error:
        note = f"not computed: {error}"
        return Rung(stay.label, stay.start, residual=math.inf, distance=math.inf, loss=None, opening=None, rates=(), note=note)
