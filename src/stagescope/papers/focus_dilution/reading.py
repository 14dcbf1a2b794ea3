"""Read a run of focus and dilution: its stages, its claims, its ladder, and the runs beside it that they need."""

import math
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
from stagescope.papers.focus_dilution.stages import Visit, detect
from stagescope.papers.reading import Reading
from stagescope.papers.rebuild import ended, replay
from stagescope.runs.run import Run

LONGEST_FRAME, SHORTEST_FRAME, NEXT_FRAME = 1e-3, 1e-4, 0.03
"""Frames of a focus-dilution run are no further apart than 3 % of the time passed, within these shares of its length."""
FINE_PIECES, REPLAYS, MOST_FRAMES, MOST_ENTRIES = 2.0, 3, 6000, 4e7
"""It is replayed while a stretch between frames should be cut into more pieces than this, a few times, within memory."""


def _refined(run: Run) -> TokenCurves:
    """A run is replayed, which is exact, until little moves between two frames, be it a flow or a descent."""
    seen, curves = run, token_curves(run)
    for _ in range(REPLAYS):
        position = seen.step.astype(float) if "step" in seen.series else seen.t
        pieces = _pieces(position, curves)
        if np.max(pieces, initial=1) <= FINE_PIECES:
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
    """Into how many pieces to cut each stretch between frames, so that in each, short in time or log-time, little moves."""
    length, last = np.diff(position), position[-1]
    short = np.clip(NEXT_FRAME * position[1:], SHORTEST_FRAME * last, LONGEST_FRAME * last)
    pieces = np.maximum(1.0, np.maximum(curves.moves(), length / short))
    most = min(MOST_FRAMES, MOST_ENTRIES / curves.attention[0].size)
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
        """The small models (r, rq) are critical at equal rates only."""
        return set(self.run.spec["dynamics"]["rates"].values()) <= {1.0}

    def own_ladder(self) -> Ladder:
        rungs = [_rung(self.evidence, visit) for visit in self.evidence.visits]
        if not isinstance(self.law, TokenPopulation):
            rungs = [rung.noted("critical point and rates are those of infinitely long contexts") for rung in rungs]
        clock = self.run.clock
        return Ladder(self.run.status, clock, tuple(rung.timeless() if clock != "t" else rung for rung in rungs))


def _rung(evidence: Evidence, visit: Visit) -> Rung:
    """One rung; where it cannot be computed it says why, and the others stand."""
    try:
        return rung(evidence.at(visit))
    except StagescopeError as error:
        note = f"not computed: {error}"
        return Rung(visit.label, visit.start, residual=math.inf, distance=math.inf, loss=None, opening=None, rates=(), note=note)
