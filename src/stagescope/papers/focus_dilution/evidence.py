"""What the claims of focus and dilution need: a run's curves, its saddle visits, and companion runs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.comparison import Regime
from stagescope.landscape.ladder import NEAR
from stagescope.landscape.linearise import Linearisation, linearise
from stagescope.papers.focus_dilution import forms
from stagescope.papers.focus_dilution.ladder import saddle_visit, trajectory
from stagescope.papers.focus_dilution.ladder.visit import SaddleVisit, Trajectory
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.observables import TokenCurves
from stagescope.papers.focus_dilution.stages import Stay, passes, stays
from stagescope.runs.run import Run

SMALL_START = 3e-3
"""Largest rms of the initial parameters at which the linearisation at the origin describes the first growth."""
Companion = Callable[[float, float], TokenCurves]
"""(factor, end time) -> curves of the flow from the same start times the factor."""


@dataclass(frozen=True)
class Evidence:
    """A run with its curves, at a resolution that does not depend on how it was recorded."""

    run: Run
    curves: TokenCurves
    companion: Companion | None = None

    @cached_property
    def law(self) -> TokenPopulation:
        """The loss of infinitely long contexts, for which the theory is made."""
        return TokenPopulation(model=self.curves.law.model, process=self.curves.law.process)

    @property
    def pi(self) -> np.ndarray:
        return self.curves.pi

    @cached_property
    def start(self) -> float:
        return initial_rms(self.run)

    @cached_property
    def rate(self) -> float:
        """c, with its sign."""
        return forms.attention_rate(self.pi, self.law.process.transition, self.law.model.scale)

    @cached_property
    def embeddings(self) -> list[float | None]:
        """E1, E2, ..."""
        return passes(self.curves.time, self.curves.embedding_values)

    @cached_property
    def attentions(self) -> list[float | None]:
        """Q1, Q2, ..."""
        return passes(self.curves.time, self.curves.score_values)

    @property
    def second(self) -> float | None:
        """E2, None where it was not reached or does not exist."""
        return self.embeddings[1] if len(self.embeddings) > 1 else None

    @cached_property
    def stays(self) -> tuple[Stay, ...]:
        return stays(self.curves.time, self.curves.embedding_values, self.curves.score_values)

    @cached_property
    def trajectory(self) -> Trajectory:
        return trajectory(self.curves, self.law)

    @cached_property
    def _visits(self) -> dict[Stay, SaddleVisit]:
        return {}

    def at(self, stay: Stay) -> SaddleVisit:
        """The saddle visit of a stay, found once."""
        if stay not in self._visits:
            self._visits[stay] = saddle_visit(self.trajectory, self.law, stay)
        return self._visits[stay]

    def visit(self, r: int, rq: int) -> SaddleVisit | None:
        """The saddle visit of the first stay at a label; None where the run has no such stay."""
        found = next((stay for stay in self.stays if (stay.r, stay.rq) == (r, rq)), None)
        return None if found is None else self.at(found)

    @cached_property
    def linear(self) -> dict[tuple[int, int], Linearisation]:
        """Linearisations of the whole model at the points (1,0) and (1,1) that the run visits."""
        found = {(r, rq): self.visit(r, rq) for r, rq in ((1, 0), (1, 1))}
        return {label: linearise(self.law, p.place.params) for label, p in found.items() if p is not None}

    def failures(self) -> list[str]:
        """Why the theory of the flow from a small start does not apply to this run; empty where it does."""
        kinds = (
            (self.run.spec["dynamics"]["type"] == "GradientFlow", "not a gradient flow"),
            (set(self.run.spec["dynamics"]["rates"].values()) <= {1.0}, "block rates differ"),
            (isinstance(self.curves.law, TokenPopulation), "contexts are not infinitely long"),
            (self.start <= SMALL_START, f"initial rms {self.start:.1e} is above {SMALL_START:g}"),
            (np.ptp(self.pi) > 1e-12, "the stationary law is uniform: mu0 = 0, and nothing grows at the origin"),
        )
        return [sentence for good, sentence in kinds if not good]


def initial_rms(run: Run) -> float:
    """The root mean square of the initial parameters."""
    return float(np.sqrt(np.mean(np.concatenate([run.params[name][0].ravel() for name in run.params]) ** 2)))


def small_flow(evidence: Evidence) -> Regime:
    failed = evidence.failures()
    return Regime(not failed, "; ".join(failed) or "flow from a small start")


def passing(r: int, rq: int) -> Callable[[Evidence], Regime]:
    """The regime of a critical point (r, rq): the run visits it and comes near."""

    def regime(evidence: Evidence) -> Regime:
        failed, visit = evidence.failures(), evidence.visit(r, rq)
        if visit is None:
            failed.append(f"the run has no stay at (r, rq) = ({r},{rq})")
        elif not visit.small.of_its_label:
            failed.append(f"no critical point ({r},{rq}) was found: the search ended at |F| = {visit.small.point.residual:.1e}")
        elif visit.distance > NEAR:
            failed.append(f"relative distance {visit.distance:.2f} from ({r},{rq}) is above {NEAR}")
        near = "-" if visit is None else f"{visit.distance:.3f}"
        return Regime(not failed, "; ".join(failed) or f"relative distance {near} from ({r},{rq})")

    return regime


def following(r: int, rq: int, directions: bool = False) -> Callable[[Evidence], Regime]:
    """The regime of what opens at (r, rq): over the whole rise the run and its linearisation are within .3 of the point's.

    Both distances are relative. They depend on where the run is, never on how fast it grows. For `directions`, the point must
    predict a single one.
    """

    def regime(evidence: Evidence) -> Regime:
        at = passing(r, rq)(evidence)
        visit = evidence.visit(r, rq)
        if not at.holds or visit is None:
            return at
        why = visit.out_of_regime or (visit.no_single_direction if directions else "")
        return Regime(False, why) if why else at

    return regime
