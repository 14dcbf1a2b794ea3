"""What decides whether a claim applies to a run, and the companion runs that claims compare it with."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stagescope.detect.levels import transitions
from stagescope.papers.incremental.forms import RegressionForms


@dataclass(frozen=True)
class Task:
    """What decides whether a claim applies to a run.

    `gains` are the importances beta_i, or the g_i of a flow. `span` is the largest number of lags in a group. `parameters` is
    the number of parameters of the best class, `targets` the number of sampled tokens they are estimated from (None: the true
    law, or new data at every step). `forms` are the closed forms of a regression flow. `predicts` is False where there are no
    tokens. `errors` (k+1,) are the errors of the levels above the last, in nats; empty where levels are exact. `uniform` is
    the best loss of uniform attention above the last level, where it can be below level 1.
    """

    gains: tuple[float, ...]
    heads: int
    span: int = 1
    disjoint: bool = True
    parameters: int = 0
    targets: int | None = None
    fitted: bool = True
    predicts: bool = False
    forms: RegressionForms | None = None
    errors: tuple[float, ...] = ()
    uniform: float | None = None

    @property
    def reachable(self) -> int:
        """min(H, k)."""
        return min(self.heads, len(self.gains))

    @property
    def noise(self) -> float:
        """Held-out loss due to estimation from sampled tokens, in nats: parameters/(2 targets), for many targets."""
        return 0.0 if self.targets is None else self.parameters / (2 * self.targets)


@dataclass(frozen=True)
class EqualHeads:
    """The companion run from equal heads, each the mean of the run's heads at the start; `params` list all heads."""

    time: np.ndarray
    loss: np.ndarray
    params: dict[str, np.ndarray]

    def at(self, when: float) -> dict[str, np.ndarray]:
        """The parameters at the frame nearest to a time."""
        frame = int(np.argmin(np.abs(self.time - when)))
        return {name: block[frame] for name, block in self.params.items()}


@dataclass(frozen=True)
class Curve:
    """A loss over the run's clock, with its own levels."""

    time: np.ndarray
    loss: np.ndarray
    levels: np.ndarray

    @property
    def times(self) -> tuple[float | None, ...]:
        return transitions(self.time, self.loss, self.levels)


@dataclass(frozen=True)
class Companions:
    """How to make the companion runs of a run; None where there is no such run.

    `equal(until)`: from equal heads. `scaled(sigma, until)`: the same flow from the same draw at another initial noise.
    `flow(until)`: the regression flow from the same logits, on the clock of the run.
    """

    equal: Callable[[float | None], EqualHeads] | None = None
    scaled: Callable[[float, float], Curve] | None = None
    flow: Callable[[float], Curve] | None = None


NO_COMPANIONS = Companions()


@dataclass(frozen=True)
class Clock:
    """Whether a regression flow predicts the times of a run: `holds` in the regime of `sentence`, to `tolerance`.

    `error` is that of the predicted times, relative to them.
    """

    holds: bool
    sentence: str
    tolerance: float
    error: float = 0.0
