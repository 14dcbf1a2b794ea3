"""What the claims of focus and dilution need: a run's curves, its saddle visits, and companion runs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.claims.comparison import Comparison, Regime
from stagescope.landscape.linearise import Linearisation, linearise
from stagescope.landscape.saddle_path import SaddlePath
from stagescope.papers.focus_dilution.ladder import SaddleVisit, SmallPoint, Trajectory, saddle_visit, trajectory
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.observables import TokenCurves
from stagescope.papers.focus_dilution.stages import Stay, onset, opening_times, stays
from stagescope.papers.focus_dilution.study import FocusDilutionOptions
from stagescope.params import Params
from stagescope.runs.run import Run

DEFAULT_UNTIL = float(FocusDilutionOptions.model_fields["until"].default)
"""How long a flow of the study is by default."""
POPULATION_FLOW: dict[str, Any] = {
    "form": "population",
    "optimizer": "flow",
    "init_scale": 1e-3,
    **{f"init_scale_{block}": None for block in ("w0", "w1", "wq", "wk")},
    "length": None,
    "start": "stationary",
    "sequences": 8192,
    "batch": None,
    "steps": 8000,
    "lr": 0.1,
    "momentum": 0.9,
}
"""The options of a population flow from a small start, with those that only other forms and optimizers use at their defaults."""
Companion = Callable[[float, float], TokenCurves]
"""(factor, end time) -> curves of the flow from the same start times the factor."""
OtherLaw = Callable[[np.ndarray, float], TokenCurves]
"""(change of pi, end time) -> curves of the flow from the same start on the chain whose pi is changed."""
Predict = Callable[[], tuple[SaddlePath | None, str]]
"""The saddle path from the run's start, computed when first called, or why there is none."""


@dataclass(frozen=True)
class Evidence:
    """A run with its curves, at a resolution that does not depend on how it was recorded."""

    run: Run
    curves: TokenCurves
    companion: Companion | None = None
    other_law: OtherLaw | None = None
    predict: Predict | None = None

    @cached_property
    def law(self) -> TokenPopulation:
        """The loss of infinitely long contexts, for which the theory is made."""
        return TokenPopulation(model=self.curves.law.model, process=self.curves.law.process)

    @property
    def pi(self) -> np.ndarray:
        return self.curves.pi

    @cached_property
    def start(self) -> float:
        return initial_rms(self.run.at(0))

    @property
    def rate(self) -> float:
        """c, with its sign."""
        return self.curves.rate

    @cached_property
    def openings(self) -> dict[str, float | None]:
        """E1, E2, ..., Q1, Q2, ... by name."""
        return opening_times(self.curves.time, self.curves.embedding_values, self.curves.score_values)

    @cached_property
    def predicted(self) -> tuple[SaddlePath | None, str]:
        """The saddle path from the start, where the theory of the flow applies; otherwise why there is none."""
        failed = self.failures()
        if failed or self.predict is None:
            return None, "; ".join(failed) or "nothing is predicted beside another run"
        return self.predict()

    @cached_property
    def onset(self) -> float | None:
        """When sv_1(WQ WK^T) last passes ten times its start before E2."""
        end = float(self.curves.time[-1])
        return onset(self.curves.time, self.curves.key_values[:, 0], end if self.second is None else self.second)

    @property
    def second(self) -> float | None:
        """E2, None where it was not reached or does not exist."""
        return self.openings.get("E2")

    @cached_property
    def stays(self) -> tuple[Stay, ...]:
        return stays(self.curves.time, self.curves.embedding_values, self.curves.score_values)

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
        """The saddle visit of the first stay at a label; None where the run has no such stay."""
        found = next((stay for stay in self.stays if (stay.r, stay.rq) == (r, rq)), None)
        return None if found is None else self.at(found, known)

    @cached_property
    def linear(self) -> Linearisation | None:
        """The linearisation of the whole model at the point (1,0) that the run visits."""
        visit = self.visit(1, 0)
        return None if visit is None else linearise(self.law, visit.place.params)

    def failures(self) -> list[str]:
        """Why the theory of the flow from a small start does not apply to this run; empty where it does."""
        kinds = (
            (self.run.spec["dynamics"]["type"] == "GradientFlow", "not a gradient flow"),
            (set(self.run.spec["dynamics"]["rates"].values()) <= {1.0}, "block rates differ"),
            (isinstance(self.curves.law, TokenPopulation), "contexts are not infinitely long"),
            (self.start <= LIMITS.start, f"initial rms {self.start:.1e} is above {LIMITS.start:g}"),
            (np.ptp(self.pi) > LIMITS.equal, "the stationary law is uniform: mu0 = 0, and nothing grows at the origin"),
        )
        return [sentence for good, sentence in kinds if not good]


def initial_rms(start: Params) -> float:
    """The root mean square of the initial parameters."""
    return float(np.sqrt(np.mean(np.concatenate([np.ravel(block) for block in start.values()]) ** 2)))


def undecided(reason: str, predicted: float | str, tolerance: float | str | None = None, unit: str | None = None) -> Comparison:
    """A comparison that this run cannot make."""
    return Comparison(predicted, None, tolerance, None, reason, unit=unit)


def unless(failed: list[str], holds: str) -> Regime:
    """In regime where nothing failed; otherwise the sentence says what did."""
    return Regime(not failed, "; ".join(failed) or holds)


def small_flow(evidence: Evidence) -> Regime:
    return unless(evidence.failures(), "flow from a small start")


def visited(r: int, rq: int) -> Callable[[Evidence], Regime]:
    """The regime of what a critical point (r, rq) predicts: a flow from a small start that stays at its label.

    How near the run comes is no part of it: the error of the prediction says what the distance does to it.
    """

    def regime(evidence: Evidence) -> Regime:
        failed, visit = evidence.failures(), evidence.visit(r, rq)
        if visit is None:
            failed.append(f"the run has no stay at (r, rq) = ({r},{rq})")
        elif not visit.small.of_its_label:
            failed.append(f"no critical point ({r},{rq}) was found: the search ended at |F| = {visit.small.point.residual:.1e}")
        near = "-" if visit is None else f"{visit.distance:.3f}"
        return unless(failed, f"relative distance {near} from ({r},{rq})")

    return regime


def opening(r: int, rq: int) -> Callable[[Evidence], Regime]:
    """The regime of what opens at a critical point (r, rq): a visit of it, and a direction that grows there."""

    def regime(evidence: Evidence) -> Regime:
        found, visit = visited(r, rq)(evidence), evidence.visit(r, rq)
        if not found.holds or visit is None or visit.small.opening is not None:
            return found
        return Regime(False, f"nothing opens at ({r},{rq})")

    return regime


def reaching_second(evidence: Evidence) -> Regime:
    """A flow from a small start that lasts until E2."""
    failed = evidence.failures()
    if evidence.second is None:
        return unless([*failed, "E2 was not reached"], "")
    if evidence.second <= float(evidence.curves.time[0]):
        failed.append("two embedding directions are open at the start")
    return unless(failed, f"flow from a small start, E2 at {evidence.second:.4g}")


def beside(evidence: Evidence) -> dict[str, Any] | None:
    """Options with which a claim out of regime is decided: the flow of the population loss from 1e-3, or a longer one.

    The longer one has at least the default length: a short run, or steps without a flow time, say little about it.
    """
    config = evidence.run.config
    if config is None or np.ptp(evidence.pi) <= LIMITS.equal:
        return None
    end = float(evidence.curves.time[-1]) if evidence.run.clock == "t" else 0.0
    longer = {"until": max(DEFAULT_UNTIL, float(f"{LIMITS.companion_length * end:.4g}"))}
    wanted = POPULATION_FLOW | longer if evidence.failures() else longer if evidence.second is None else {}
    return {name: value for name, value in wanted.items() if config.get(name) != value} or None
