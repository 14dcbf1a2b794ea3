"""What the claims of in-context chains read: curves, events, rates, closed forms and companion runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.detect.levels import Plateau as Rest
from stagescope.detect.levels import no_ladder, plateaus
from stagescope.detect.stage import Event
from stagescope.papers.markov_icl.finite import FiniteExact, FiniteLoss
from stagescope.papers.markov_icl.forms import Plateau, chi_squares, lag_gains, two_step
from stagescope.papers.markov_icl.loss import LinearPopulation
from stagescope.papers.markov_icl.model import LinearMatch
from stagescope.papers.markov_icl.observables import MatchCurves
from stagescope.papers.markov_icl.stages import half_steps, layer_events
from stagescope.papers.markov_icl.windows import SoftmaxPopulation, TwoHeadPopulation
from stagescope.runs.run import Run


@dataclass(frozen=True)
class Evidence:
    """A run of one of the models. `t2_of(changes)` is t_2 of the same run with some options changed."""

    run: Run
    curves: MatchCurves
    others: Callable[[list[dict[str, Any]]], list[Any]] = field(default=lambda _: [])

    @property
    def law(self) -> Any:
        return self.curves.law

    @property
    def model(self) -> str:
        """R, S, S3, F or T."""
        kinds = {LinearPopulation: "R", SoftmaxPopulation: "S", TwoHeadPopulation: "S3"}
        found = next((name for kind, name in kinds.items() if isinstance(self.law, kind)), None)
        return found or ("F" if isinstance(self.law.model, LinearMatch) else "T")

    @property
    def exact(self) -> bool:
        """Whether the recorded loss is the population's."""
        return not isinstance(self.law, FiniteLoss) or isinstance(self.law, FiniteExact)

    @property
    def flow(self) -> bool:
        """Whether the run is a gradient flow, whose times closed forms give."""
        return "step" not in self.run.series

    @property
    def doubly(self) -> bool:
        return bool(self.law.process.doubly_stochastic)

    @property
    def lags(self) -> int:
        return int(self.law.model.lags)

    @cached_property
    def ratio(self) -> float:
        """rho: the rate of the lags over that of the match."""
        rates = self.run.spec["dynamics"].get("rates", {})
        return float(rates.get("v", 1.0) / rates.get("W", 1.0))

    @cached_property
    def rate(self) -> float:
        """The rate of the match: the clock of the closed forms has it at one."""
        return float(self.run.spec["dynamics"].get("rates", {}).get("W", 1.0))

    @cached_property
    def start(self) -> dict[str, np.ndarray]:
        return self.curves.at(0)

    @property
    def from_zero(self) -> bool:
        """Whether the match begins at zero."""
        return bool(np.all(self.start["W"] == 0))

    @cached_property
    def events(self) -> Mapping[str, Event]:
        return half_steps(self.curves, self.flow) | layer_events(self.curves)

    def time(self, name: str) -> tuple[float | None, float]:
        """When an event was, and half of its interval."""
        event = self.events.get(name, Event.missing())
        half = 0.0 if event.interval is None else (event.interval[1] - event.interval[0]) / 2
        return event.time, half

    @cached_property
    def rest(self) -> Rest | None:
        """The plateau between t_1 and t_2: where the loss falls least in a unit of ln t."""
        names, losses = self.curves.levels.names, self.curves.levels.losses
        if "unigram" not in names or no_ladder(losses) is not None:
            return None
        return plateaus(self.curves.time, self.curves.loss, losses)[names.index("unigram") - 1]

    @cached_property
    def plateau(self) -> Plateau:
        """The closed forms of the unigram plateau of R."""
        return Plateau(self.law, self.start["v"])

    @cached_property
    def gains(self) -> np.ndarray:
        """g_d of R, c_d of S."""
        return (lag_gains if self.model == "R" else chi_squares)(self.law.process, self.lags)

    @property
    def two_step(self) -> float:
        return two_step(self.gains, self.start["v"], self.ratio) / self.rate

    @property
    def plateau_time(self) -> float:
        return self.plateau.time(self.ratio) / self.rate
