"""What the claims of focus and dilution need: a run's curves, its saddle visits, and companion runs."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.comparison import Condition, Regime, narrowed, regime_of
from stagescope.core.spec import build
from stagescope.landscape.linearise import Linearisation, linearise
from stagescope.landscape.saddle_path import SaddlePath
from stagescope.papers.focus_dilution.evidence_adam import StepsEvidence
from stagescope.papers.focus_dilution.family import plateau_amplitude
from stagescope.papers.focus_dilution.head_model import normalised
from stagescope.papers.focus_dilution.ladder import SaddleVisit, SmallPoint, Trajectory, saddle_visit, trajectory
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.observables import TokenCurves
from stagescope.papers.focus_dilution.stages import Stay, onset, openings_of, stays
from stagescope.readings.evidence import Evidence as BaseEvidence
from stagescope.readings.rebuild import last_motion


@dataclass(frozen=True, eq=False)
class Evidence(BaseEvidence):
    """A run with its curves, at a resolution that does not depend on how it was recorded."""

    curves: TokenCurves

    @property
    def time(self) -> np.ndarray:
        return self.curves.time

    @cached_property
    def law(self) -> TokenPopulation:
        """The loss of infinitely long contexts, for which the theory is made."""
        return TokenPopulation(model=self.curves.law.model, process=self.curves.law.process)

    @property
    def pi(self) -> np.ndarray:
        return self.curves.pi

    @property
    def rate(self) -> float:
        """c, with its sign."""
        return self.curves.rate

    @cached_property
    def steps(self) -> StepsEvidence:
        """What claims on normalised steps read."""
        return StepsEvidence(self)

    @cached_property
    def openings(self) -> dict[str, float | None]:
        """E1, E2, ..., Q1, Q2, ... by name."""
        return openings_of(self.curves)

    @cached_property
    def predicted(self) -> tuple[SaddlePath | None, str]:
        """The saddle path from the start, where the theory of the flow applies; otherwise why there is none."""
        base = small_flow(self)
        if not base.holds or self.reading is None:
            return None, "nothing is predicted beside another run" if base.holds else base.sentence
        return self.reading.prediction, self.reading.unpredicted

    @cached_property
    def onset(self) -> float | None:
        """When sv_1(WQ WK^T) last passes ten times its start before E2."""
        return onset(self.time, self.curves.key_values[:, 0], self.end if self.second is None else self.second)

    @property
    def second(self) -> float | None:
        """E2, None where it was not reached or does not exist."""
        return self.openings.get("E2")

    @cached_property
    def stays(self) -> tuple[Stay, ...]:
        return stays(self.time, self.curves.embedding_values, self.curves.score_values, self.curves.levels)

    @cached_property
    def trajectory(self) -> Trajectory:
        return trajectory(self.curves, self.law)

    @cached_property
    def _visits(self) -> dict[Stay, SaddleVisit]:
        return {}

    def at(self, stay: Stay, known: SmallPoint | None = None) -> SaddleVisit:
        """The saddle visit of a stay, found once; of a critical point that is known, where the run comes near that."""
        if stay not in self._visits:
            self._visits[stay] = saddle_visit(self.trajectory, self.law, stay, known)
        return self._visits[stay]

    def visit(self, r: int, rq: int, known: SmallPoint | None = None) -> SaddleVisit | None:
        """The saddle visit of the first stay at a label; None where the run has no such stay, or its steps are no flow's."""
        if self.normalised:
            return None
        first_stay = next((stay for stay in self.stays if (stay.r, stay.rq) == (r, rq)), None)
        return None if first_stay is None else self.at(first_stay, known)

    @cached_property
    def linear(self) -> Linearisation | None:
        """The linearisation of the whole model at the point (1,0) that the run visits."""
        visit = self.visit(1, 0)
        return None if visit is None else linearise(self.law, visit.place.params)

    @cached_property
    def normalised(self) -> bool:
        """Whether steps divide each entry by its own history, as Adam does: a system that no theorem on flows speaks of."""
        motion = last_motion(self.run.spec)
        return motion is not None and normalised(build(motion))

    @cached_property
    def start_size(self) -> float:
        """The largest singular value of W0 and W1 at the start, relative to the one that they have on the plateau (1,0)."""
        plateau = plateau_amplitude(self.pi)
        if np.ptp(self.pi) <= LIMITS.equal:
            return math.inf  # of a uniform law there is no plateau (1,0)
        return max(float(np.linalg.norm(self.start[name], 2)) for name in ("W0", "W1")) / plateau

    @cached_property
    def start_score(self) -> float:
        """The size of the attention scores that queries and keys of the start have where embeddings are on the plateau (1,0)."""
        model, lengths = self.law.model, [float(np.linalg.norm(self.start[name])) for name in ("WQ", "WK")]
        return model.scale * plateau_amplitude(self.pi) ** 2 * lengths[0] * lengths[1] / model.width

    @cached_property
    def small(self) -> tuple[Condition, ...]:
        """Of a small start, whatever moves it: near enough to the origin that its linear law holds, and attention flat."""
        size, score, limit = self.start_size, self.start_score, LIMITS.linear
        if size == math.inf:
            return ((False, "the stationary law is uniform: mu0 = 0, and nothing grows at the origin"),)
        return (
            (size <= limit, f"embeddings start at {size:.2g} of their size on the plateau, above {limit:g}"),
            (score <= limit, f"attention scores start at {score:.2g} on the plateau, above {limit:g}"),
        )

    @cached_property
    def assumptions(self) -> tuple[Condition, ...]:
        """Of the theory of the flow from a small start."""
        return (
            (self.is_flow, f"the theorem is about gradient flow, and this run takes steps ({self._optimizer})"),
            self.equal_rates,
            (isinstance(self.curves.law, TokenPopulation), "contexts are not infinitely long"),
            *self.small,
        )

    @property
    def _optimizer(self) -> str:
        """The optimiser by its name."""
        return str(last_motion(self.run.spec).get("optimizer", {}).get("type", "forked")).rpartition("/")[2]


def small_flow(evidence: Evidence, *more: Condition, holds: str = "flow from a small start") -> Regime:
    """A flow from a small start under more conditions; what the theory of flows says does not apply to Adam and its like."""
    if evidence.normalised:
        reason = (
            f"the theorem is about gradient flow; {evidence._optimizer} divides gradients by their size, which is another system"
        )
        return Regime(False, reason, applies=False, elsewhere=True)
    return regime_of(*evidence.assumptions, *more, holds=holds)


def visited(r: int, rq: int) -> Callable[[Evidence], Regime]:
    """The regime of what a critical point (r, rq) predicts: a flow from a small start that stays at its label.

    How near the run comes is no part of it: the error of the prediction says what the distance does to it.
    """

    def regime(evidence: Evidence) -> Regime:
        visit = evidence.visit(r, rq)
        if visit is None or evidence.normalised:
            return small_flow(evidence, (False, f"the run has no stay at (r, rq) = ({r},{rq})"))
        reason = f"no critical point ({r},{rq}) was found: the search ended at |F| = {visit.small.point.residual:.1e}"
        return small_flow(
            evidence, (visit.small.of_its_label, reason), holds=f"relative distance {visit.distance:.3f} from ({r},{rq})"
        )

    return regime


def redistributing(evidence: Evidence) -> Regime:
    """A visit of (1,0) from a start whose square, its part in embeddings at second order, is below the least D that is read."""
    size = evidence.start_size
    reason = f"embeddings start at {size:.2g} of their size on the plateau, whose square is above {LIMITS.mark:g}"
    return narrowed(visited(1, 0)(evidence), (size**2 <= LIMITS.mark, reason))


def opening(r: int, rq: int) -> Callable[[Evidence], Regime]:
    """The regime of what opens at a critical point (r, rq): a visit of it, and a direction that grows there."""

    def regime(evidence: Evidence) -> Regime:
        visit = evidence.visit(r, rq)
        opens = visit is not None and visit.small.opening is not None
        return narrowed(visited(r, rq)(evidence), (opens, f"nothing opens at ({r},{rq})"))

    return regime


def reaching_second(evidence: Evidence) -> Regime:
    """A flow from a small start that lasts until E2."""
    if evidence.second is None:
        return small_flow(evidence, (False, "E2 was not reached"))
    one = evidence.second > float(evidence.time[0]), "two embedding directions are open at the start"
    return small_flow(evidence, one, holds=f"flow from a small start, E2 at {evidence.second:.4g}")
