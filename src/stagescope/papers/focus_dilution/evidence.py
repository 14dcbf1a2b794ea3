"""What the claims of focus and dilution look at: a run's curves, its passages of critical points, and runs beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.claim import Regime
from stagescope.landscape.ladder import NEAR
from stagescope.landscape.linearise import Linearisation, linearise
from stagescope.papers.focus_dilution import forms
from stagescope.papers.focus_dilution.ladder import passage, seen
from stagescope.papers.focus_dilution.ladder.passage import Passage, Seen
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.observables import TokenCurves
from stagescope.papers.focus_dilution.stages import Visit, passes, visits
from stagescope.runs.run import Run

SMALL_START = 3e-3
"""Largest rms of the initial parameters for which the run begins at the origin in the sense of the linearisation."""
UNIFORM = 1e-12
"""Stationary probabilities closer than this are equal."""
Beside = Callable[[float, float], TokenCurves]
"""The flow from the same start times a factor, to another end."""


@dataclass(frozen=True)
class Evidence:
    """A run with its curves, at a resolution that does not depend on how it was recorded."""

    run: Run
    curves: TokenCurves
    beside: Beside | None = None

    @cached_property
    def law(self) -> TokenPopulation:
        """The loss of infinitely long contexts, of which the theory speaks."""
        return TokenPopulation(model=self.curves.law.model, process=self.curves.law.process)

    @property
    def pi(self) -> np.ndarray:
        return self.curves.pi

    @cached_property
    def start(self) -> float:
        blocks = [self.run.params[name][0].ravel() for name in self.run.params]
        return float(np.sqrt(np.mean(np.concatenate(blocks) ** 2)))

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
    def visits(self) -> tuple[Visit, ...]:
        return visits(self.curves.time, self.curves.embedding_values, self.curves.score_values)

    @cached_property
    def seen(self) -> Seen:
        return seen(self.curves, self.law)

    @cached_property
    def _passages(self) -> dict[Visit, Passage]:
        return {}

    def at(self, visit: Visit) -> Passage:
        """How the run passes the critical point of a visit's label."""
        if visit not in self._passages:
            self._passages[visit] = passage(self.seen, self.law, visit)
        return self._passages[visit]

    def passage(self, r: int, rq: int) -> Passage | None:
        """The first passage of a label, None where the run never has it."""
        found = next((visit for visit in self.visits if (visit.r, visit.rq) == (r, rq)), None)
        return None if found is None else self.at(found)

    @cached_property
    def linear(self) -> dict[tuple[int, int], Linearisation]:
        """Linearisations of the whole model at the points (1,0) and (1,1) the run passes."""
        found = {(r, rq): self.passage(r, rq) for r, rq in ((1, 0), (1, 1))}
        return {label: linearise(self.law, p.place.params) for label, p in found.items() if p is not None}

    def failures(self) -> list[str]:
        """Why the theory of the flow from a small start does not speak of this run; empty where it does."""
        kinds = (
            (self.run.spec["dynamics"]["type"] == "GradientFlow", "not a gradient flow"),
            (set(self.run.spec["dynamics"]["rates"].values()) <= {1.0}, "block rates differ"),
            (isinstance(self.curves.law, TokenPopulation), "contexts are not infinitely long"),
            (self.start <= SMALL_START, f"initial rms {self.start:.1e} is above {SMALL_START:g}"),
            (np.ptp(self.pi) > UNIFORM, "the stationary law is uniform: mu0 = 0, and nothing grows at the origin"),
        )
        return [sentence for good, sentence in kinds if not good]


def small_flow(evidence: Evidence) -> Regime:
    failed = evidence.failures()
    return Regime(not failed, "; ".join(failed) or "flow from a small start")


def passing(r: int, rq: int) -> Callable[[Evidence], Regime]:
    """The regime of a critical point (r, rq): the run passes it and is near it."""

    def regime(evidence: Evidence) -> Regime:
        failed, passage = evidence.failures(), evidence.passage(r, rq)
        if passage is None:
            failed.append(f"the run never has (r, rq) = ({r},{rq})")
        elif not passage.small.of_its_label:
            failed.append(f"no critical point ({r},{rq}) was found: the search ended at |F| = {passage.small.point.residual:.1e}")
        elif passage.distance > NEAR:
            failed.append(f"relative distance {passage.distance:.2f} from ({r},{rq}) is above {NEAR}")
        return Regime(not failed, "; ".join(failed) or f"relative distance {_distance(passage)} from ({r},{rq})")

    return regime


def _distance(passage: Passage | None) -> str:
    return "-" if passage is None else f"{passage.distance:.3f}"


def following(r: int, rq: int, directions: bool = False) -> Callable[[Evidence], Regime]:
    """The regime of what opens at (r, rq): over the whole rise the run, and its linearisation, are within .3 of the point's.

    Both distances are relative and decided from where the run is, never from how fast it grows. For a direction, the point
    must predict one alone.
    """

    def regime(evidence: Evidence) -> Regime:
        at = passing(r, rq)(evidence)
        passage = evidence.passage(r, rq)
        if not at.holds or passage is None:
            return at
        why = passage.astray or (passage.mixed if directions else "")
        return Regime(False, why) if why else at

    return regime
