"""Evidence is what the claims of a paper read of a run, and their way to companion runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.claims.comparison import Condition
from stagescope.core.errors import InputError
from stagescope.core.params import Params, root_mean_square
from stagescope.runs.run import Run

if TYPE_CHECKING:
    from stagescope.readings.reading import Reading


@dataclass(frozen=True, eq=False)
class Evidence:
    """A run as the claims of its paper read it; a paper adds its curves and observables.

    `reading` is the reading that makes companion runs. Evidence of frames alone has none, such as that of a companion run.
    """

    run: Run
    reading: "Reading | None" = field(default=None, kw_only=True, repr=False)

    def companion(self, name: str, *arguments: Any) -> Any:
        """What the method `name` of the reading gives, such as a run from another start; made once. See `Reading.companion`."""
        reading = self._with_companions
        return reading.companion(getattr(reading, name), *arguments)

    def companions(self, name: str, values: Iterable[Any]) -> list[Any]:
        """The same for each of several values, those that could not be made left out."""
        reading = self._with_companions
        return reading.companions(getattr(reading, name), values)

    @property
    def _with_companions(self) -> "Reading":
        if self.reading is None:
            raise InputError("evidence of frames alone has no companion runs; take `ss.reading(run).evidence`")
        return self.reading

    @property
    def time(self) -> np.ndarray:
        """The clock of the curves that claims read."""
        return self.run.time

    @property
    def end(self) -> float:
        return float(self.time[-1])

    def frame(self, time: float) -> int:
        """The frame nearest to a time."""
        return int(np.argmin(np.abs(self.time - time)))

    @property
    def dynamics(self) -> Mapping[str, Any]:
        """How the run moves, as its spec says it."""
        return self.run.spec["dynamics"]

    @property
    def is_flow(self) -> bool:
        return self.dynamics["type"] == "GradientFlow"

    @property
    def equal_rates(self) -> Condition:
        """Whether all blocks move at their own rate, as a condition of a claim."""
        return set(self.dynamics.get("rates", {}).values()) <= {1.0}, "block rates differ"

    @cached_property
    def start(self) -> Params:
        return self.run.at(0)

    @cached_property
    def scale(self) -> float:
        """The root mean square of the initial parameters."""
        return root_mean_square(self.start)

    def changed(self, options: Mapping[str, Any]) -> dict[str, Any] | None:
        """Those of some options of the study that the run does not have; None where it has them all, or is of no study."""
        config = self.run.config
        if config is None:
            return None
        return {name: value for name, value in options.items() if config.get(name) != value} or None
