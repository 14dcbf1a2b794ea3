"""What the claims of incremental learning read: the ladder that a run descends, its task, and its companion runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from stagescope.claims.comparison import Condition, Regime, regime_of
from stagescope.core.errors import InputError
from stagescope.core.spec import build
from stagescope.detect.levels import Plateau, no_ladder, noise_near, transitions
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.regression import (
    Regression,
    RegressionForms,
    RegressionSampled,
)
from stagescope.papers.incremental.stages import Heads
from stagescope.papers.incremental.students import HeadsLoss
from stagescope.readings.evidence import Evidence as BaseEvidence
from stagescope.readings.rebuild import rebuilt
from stagescope.runs.run import Run


@dataclass(frozen=True)
class Task:
    """What decides whether a claim applies to a run.

    `gains` are the importances beta_i, or the g_i of a flow. `span` is the largest number of lags in a group. `parameters` is
    the number of parameters of the best class, `of_student` that of the student, `targets` the number of sampled tokens they are
    estimated from (None: the true law, or new data at every step). `forms` are the closed forms of a regression flow. `predicts`
    is False where there are no tokens. `errors` (k+1,) are the errors of the levels above the last, in nats; empty where levels
    are exact. `uniform` is the best loss of uniform attention above the last level, where it can be below level 1.
    """

    gains: tuple[float, ...]
    heads: int
    span: int = 1
    disjoint: bool = True
    parameters: int = 0
    of_student: int = 0
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

    @property
    def own_noise(self) -> float:
        """The same for all parameters of the student: how far above its best class it ends."""
        return 0.0 if self.targets is None else self.of_student / (2 * self.targets)


@dataclass(frozen=True)
class EqualHeads:
    """The companion run from equal heads, each the mean of the run's heads at the start; `params` list all heads."""

    time: np.ndarray
    loss: np.ndarray
    params: dict[str, np.ndarray]

    def at(self, time: float) -> dict[str, np.ndarray]:
        """The parameters at the frame nearest to a time."""
        frame = int(np.argmin(np.abs(self.time - time)))
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
class Clock:
    """The regime in which a regression flow predicts the times of a run, to `tolerance`.

    `error` is that of the predicted times, relative to them.
    """

    regime: Regime
    tolerance: float
    error: float = 0.0


@dataclass(frozen=True, eq=False)
class Evidence(BaseEvidence):
    """A run that descends a ladder of levels.

    `clock` is the regime of the regression flow from the same logits.
    """

    heads: Heads
    task: Task
    clock: Clock | None = None

    @property
    def time(self) -> np.ndarray:
        return self.heads.time

    @property
    def learned(self) -> np.ndarray | None:
        """The learned share of each feature (frames, k)."""
        return None if self.heads.parts is None else self.heads.parts.sum(axis=1)

    @property
    def levels(self) -> np.ndarray:
        return self.heads.levels

    @cached_property
    def steps(self) -> np.ndarray:
        """Heights l_{j-1} - l_j (k,), all positive; an error where levels do not decrease."""
        if (reason := no_ladder(self.levels)) is not None:
            raise InputError(reason)
        return -np.diff(self.levels)

    @cached_property
    def times(self) -> tuple[float | None, ...]:
        """t_1 .. t_k."""
        _ = self.steps  # refuses levels that do not decrease
        return tuple(event.time for event in self.heads.crossings)

    @cached_property
    def reached(self) -> int:
        """The last j whose transition was passed."""
        return max((j for j, time in enumerate(self.times, start=1) if time is not None), default=0)

    @property
    def plateaus(self) -> tuple[Plateau | None, ...]:
        return self.heads.plateaus

    @property
    def tolerance(self) -> float:
        """In shares of a step."""
        return LIMITS.sharp if self.gradient and self.task.span == 1 else LIMITS.broad

    def rested(self, j: int) -> Plateau | None:
        """Plateau j if the run has left it or rests on it: the loss then moves by at most the tolerance in a doubling of t.

        One that was left must have been a plateau: the loss fell more slowly there than before and after.
        """
        plateau = self.plateaus[j - 1]
        if plateau is None or plateau.between is False:
            return None
        return plateau if plateau.between or self.fall(plateau) <= self.tolerance else None

    @cached_property
    def rests(self) -> tuple[Plateau, ...]:
        """The plateaus that the run rested on; none where the only one is the last of the ladder, where every loss ends."""
        _ = self.steps
        rests = [plateau for j in range(1, self.reached + 1) if (plateau := self.rested(j)) is not None]
        stairs = any(plateau.between or plateau.j < len(self.times) for plateau in rests)
        return tuple(rests) if stairs else ()

    def no_rest(self) -> str:
        """Why `rests` is empty."""
        if self.reached == 0:
            return "t_1 was not reached"
        unslowed = [j for j, plateau in enumerate(self.plateaus[: self.reached], start=1) if plateau and plateau.between is False]
        if unslowed:
            return f"no plateau: the loss does not slow down after t_{unslowed[0]}; crossings of levels alone are no stages"
        return f"t_{self.reached} was passed, but the run rests on no plateau"

    def gap(self, plateau: Plateau) -> tuple[float, float]:
        """Where the loss would end on a plateau less its level, and the error, in shares of the step.

        A loss that approaches its limit like 1/t or faster, as both laws of the flow do, ends at most |dL/d ln t| lower.
        """
        step = float(self.steps[plateau.j - 1])
        level = self.task.errors[plateau.j] if self.task.errors else 0.0
        noise = 2 * noise_near(self.time, self.heads.loss, plateau.t)
        low = abs(plateau.drift) / 2
        return float(plateau.loss - low - plateau.level) / step, float(np.sqrt(low**2 + level**2 + noise**2)) / step

    def change(self, frame: int, mass: np.ndarray) -> float:
        """The largest change of shares (frames, H, k) to the frames a tenth of ln t away, and their sampling error."""
        time = self.time
        near = np.abs(np.log(np.maximum(time, 1e-300)) - np.log(max(time[frame], 1e-300))) <= 0.1
        # two standard errors of attention over LIMITS.attended sequences
        sampled = 0.02 if self.run.type.endswith(("ContentLoss", "TransformerLoss")) else 0.0
        return float(np.hypot(np.max(np.abs(mass[near] - mass[frame]), initial=0.0), sampled))

    def fall(self, plateau: Plateau) -> float:
        """Change of the loss in a doubling of t at the drift of a plateau, in shares of its step."""
        return float(abs(plateau.drift) * np.log(2) / self.steps[plateau.j - 1])

    @property
    def gradient(self) -> bool:
        """Whether steps are gradients: a flow, gradient descent or heavy ball, without clipping."""
        return self.run.clock == "t"

    @cached_property
    def law(self) -> Any:
        """The objective or the field of the run, rebuilt from its spec."""
        return rebuilt(self.run.spec["field"])

    @cached_property
    def rates(self) -> dict[str, float]:
        return {name: float(self.dynamics["rates"].get(name, 1.0)) for name in self.run.params}

    @cached_property
    def sigma(self) -> float:
        """Root mean square of the initial logits; nan for a model without logits."""
        logits = np.asarray(self.run.params["a"][0]) if "a" in self.run.params else np.array([np.nan])
        return float(np.sqrt(np.mean(np.square(logits))))

    @cached_property
    def identical(self) -> bool:
        """Whether all heads start exactly alike, block by block."""
        first = (np.asarray(self.run.params[name][0]) for name in self.run.params)
        return "a" in self.run.params and all(np.array_equal(block, np.broadcast_to(block[:1], block.shape)) for block in first)

    @cached_property
    def size(self) -> np.ndarray:
        """|theta| (frames,)."""
        return _norms([np.asarray(self.run.params[name]) for name in self.run.params])

    @cached_property
    def spread(self) -> np.ndarray:
        """|theta_h - their mean| over all heads and blocks, relative to |theta| (frames,)."""
        blocks = (np.asarray(self.run.params[name]) for name in self.run.params)
        return _norms([block - block.mean(axis=1, keepdims=True) for block in blocks]) / np.maximum(self.size, 1e-300)

    @property
    def reduces(self) -> bool:
        """Whether the model with equal heads is one with one head that moves on a flow time: a companion run from equal heads."""
        return isinstance(self.law, Regression) or (self.gradient and isinstance(self.law, HeadsLoss | RegressionSampled))

    def assumptions(self, noisy: bool = True) -> tuple[Condition, ...]:
        """Of the ladder of levels; `noisy`: of sampling, too."""
        task = self.task
        ratios = [a / b for a, b in pairwise(task.gains)]
        before = self.time.size if not self.times or self.times[0] is None else int(np.sum(self.time < self.times[0]))
        error = f"the error of estimation from sampled tokens is about {task.noise:.2g} nats"
        return (
            (task.disjoint, "groups of lags overlap"),
            (
                min(ratios, default=np.inf) >= LIMITS.distinct,
                f"an importance is less than {LIMITS.distinct:g} times the next",
            ),
            (task.span == 1 or not self.gradient, "under gradient steps heads divide the lags inside a span"),
            (
                not noisy or task.noise <= self.tolerance * self.steps.min(),
                f"{error}, more than {self.tolerance:.0%} of a step",
            ),
            (
                task.uniform is None or task.uniform >= self.levels[1],
                "values under uniform attention alone predict better than class 1: attention need not move first",
            ),
            (
                task.span == 1 or task.heads >= len(task.gains),
                "fewer heads than groups of several lags: a head can serve lags of two groups, which no class does",
            ),
            (task.fitted, "the fit of a level did not reach its tolerance"),
            (before >= LIMITS.before, f"{before} frames before t_1; at least {LIMITS.before} are needed"),
        )

    def settles(self) -> Condition:
        """A student that can end on its last plateau: one with many parameters stays above it on sampled tokens."""
        noise, step = self.task.own_noise, float(self.steps[self.task.reachable - 1])
        sentence = f"{self.task.of_student} parameters on {self.task.targets} sampled tokens end about {noise:.2g} nats above"
        return noise <= self.tolerance * step, f"{sentence} the last level, more than {self.tolerance:.0%} of its step"

    def alike(self, least: float) -> Condition:
        """An agreement of heads at the start of at least `least`."""
        first = float(self.heads.alike[0])
        return first >= least, f"the agreement of heads at the start is {first:.2f}, below {least:g}"

    def allowed(self, gap: float, j: int) -> float:
        """The largest distance from level j at which a loss counts as that of class j, in shares of step j, as `gap` is.

        Above the level it is the tolerance: the run may still be falling. No member of the class is below the level: there it
        is 3 % of the step, or the tolerance of the next step where that is less. The error of the level counts apart.
        """
        if gap >= 0:
            return self.tolerance
        after = self.tolerance * float(self.steps[j] / self.steps[j - 1]) if j < len(self.steps) else np.inf
        return min(self.tolerance, LIMITS.sharp, after)

    @property
    def config(self) -> Mapping[str, Any] | None:
        """The options of the study that made the run."""
        return self.run.config if self.run.study == "incremental" else None


def _norms(blocks: list[np.ndarray]) -> np.ndarray:
    return np.sqrt(np.sum([np.sum(np.square(block.reshape(len(block), -1)), axis=1) for block in blocks], axis=0))


def not_averaged(run: Run) -> str:
    """Why the regression flow is not the average of a run, condition by condition."""
    law: Any = rebuilt(run.spec["field"])
    positional = isinstance(rebuilt(run.spec["field"]), HeadsLoss | RegressionSampled | Regression)
    process = getattr(law, "process", None)
    reasons = [
        "" if positional else "attention depends on the tokens",
        "" if run.clock == "t" else "steps are not gradients: an adaptive rule, or clipping",
    ]
    if process is not None:
        reasons += [
            f"{law.model.targets} targets" if law.model.targets > 1 else "",
            "groups of several lags" if any(len(group) > 1 for group in process.groups) else "",
            "" if process.disjoint else "groups of lags overlap",
        ]
    return f"the regression flow is not the average of this run: {', '.join(filter(None, reasons)) or 'it is one itself'}"


def clock(run: Run) -> Clock | None:
    """Whether the regression flow predicts the times of this run; None where there is no such flow [ISA:clock]."""
    law, dynamics = rebuilt(run.spec["field"]), build(run.spec["dynamics"])
    if not isinstance(law, HeadsLoss | RegressionSampled) or run.clock != "t":
        return None
    kinds = [
        (set(dynamics.block_rates(tuple(run.params)).values()) == {1.0}, "the rates of the blocks differ"),
        (not np.any(run.params["V"][0]), "values do not start at zero"),
    ]
    if isinstance(law, RegressionSampled):
        return Clock(regime_of(*kinds, holds="squared loss of sampled contexts"), LIMITS.sampled)
    if law.model.targets > 1 or any(len(group) > 1 for group in law.process.groups) or not law.process.disjoint:
        return None
    # root mean square of the true logits for uniform tokens: sqrt(sum_i |beta_i A_i|^2)/d
    matrices, root = law.process.matrices, np.sqrt(law.process.vocab)
    size = float(np.linalg.norm(matrices)) / law.process.vocab
    # largest cosine between two features, or between one and a matrix of equal rows or columns
    unit = matrices / np.linalg.norm(matrices, axis=(1, 2), keepdims=True)
    overlaps = np.abs(np.einsum("iyx,jyx->ij", unit, unit) - np.eye(len(unit)))
    means = [np.linalg.norm(unit.sum(axis=axis), axis=1) / root for axis in (1, 2)]
    skew = float(max(overlaps.max(), *(mean.max() for mean in means)))
    kinds += [
        (
            size**2 <= LIMITS.broad / 2,
            f"the root mean square of the true logits is {size:.2f}; its square, the error of the clock, is too large",
        ),
        (
            skew <= LIMITS.exact,
            f"features are not centred and orthogonal: the largest cosine is {skew:.2g}, above {LIMITS.exact:g}",
        ),
    ]
    return Clock(regime_of(*kinds, holds=f"small true logits, root mean square {size:.2f}"), LIMITS.broad, size**2)
