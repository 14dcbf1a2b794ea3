"""What the claims of incremental learning look at: the ladder a run descends, its heads, its task, and runs beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from stagescope.claims.claim import Regime
from stagescope.errors import InputError
from stagescope.papers.incremental.forms import RegressionForms, wkb_times
from stagescope.papers.incremental.stages import Heads
from stagescope.papers.incremental.transitions import Plateau, no_ladder, plateaus, transitions
from stagescope.papers.rebuild import rebuilt
from stagescope.runs.run import Run

SHARP, BROAD = 0.03, 0.15
"""Tolerances in shares of a step of the ladder: gradient steps and flows on single lags; Adam, or spans of lags."""
BEFORE = 5
"""Frames before t_1, at least: fewer fake the first transition."""
DISTINCT = 1.3
"""Each importance must be at least so many times the next: closer groups are learned together."""
ALIKE_AT_FIRST = 0.8
"""Claims about competing heads speak of heads that start more alike than apart: a plain limit, chosen without any run."""

SIGMAS = (1e-5, 1e-8, 1e-11)
"""Initial noises at which the escape is timed; the first calibrates WKB. Below 1e-11 rounding decides."""


@dataclass(frozen=True)
class Task:
    """What decides whether a claim speaks of a run.

    `gains` are the importances beta_i, or the g_i of a flow; `span` the most lags in a group; `parameters` is how many numbers
    the best class has, `targets` how many drawn tokens they are estimated from (None: the true law, or data without end).
    `forms` are the closed forms where the run is of the regression flow, `predicts` is False where there are no tokens.
    `errors` (k+1,) are those of the levels above the last, in nats; empty where levels are exact.
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

    @property
    def reachable(self) -> int:
        """min(H, k)."""
        return min(self.heads, len(self.gains))

    @property
    def noise(self) -> float:
        """Held-out loss that estimating from drawn tokens costs: parameters/(2 targets) nats, where there are many."""
        return 0.0 if self.targets is None else self.parameters / (2 * self.targets)


@dataclass(frozen=True)
class Equal:
    """The motion from equal heads, each the mean of the run's at the start, with all heads listed: time, loss, params."""

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
class Beside:
    """How to make runs that differ from the one at hand; None where there is no such run.

    `equal(until)`: from equal heads. `scaled(sigma, until)`: the same flow from the same draw at another initial noise.
    `flow(until)`: the regression flow in place of the model, from the same logits, on the run's clock.
    """

    equal: Callable[[float | None], Equal] | None = None
    scaled: Callable[[float, float], Curve] | None = None
    flow: Callable[[float], Curve] | None = None


@dataclass(frozen=True)
class Clock:
    """The promise of a flow beside a run: `holds` inside the regime that `sentence` names, times to `tolerance`."""

    holds: bool
    sentence: str
    tolerance: float


@dataclass(frozen=True)
class Escapes:
    """t_2 at the noises SIGMAS of one draw, what the symmetric trajectory foretells from the first, and the measured slope."""

    when: np.ndarray
    foretold: np.ndarray
    slope: float


@dataclass(frozen=True)
class Evidence:
    """A run that descends a ladder of levels; `learned` (frames, k) is how much of each feature it has, where that is known.

    `clock` says whether the regression flow beside it should be followed.
    """

    run: Run
    heads: Heads
    task: Task
    learned: np.ndarray | None = None
    beside: Beside = Beside()
    clock: Clock | None = None

    @property
    def time(self) -> np.ndarray:
        return self.heads.time

    @property
    def levels(self) -> np.ndarray:
        return self.heads.levels

    @cached_property
    def steps(self) -> np.ndarray:
        """Heights l_{j-1} - l_j (k,), all positive: without a ladder no claim can be measured in them."""
        if (why := no_ladder(self.levels)) is not None:
            raise InputError(why)
        return -np.diff(self.levels)

    @cached_property
    def times(self) -> tuple[float | None, ...]:
        """t_1 .. t_k."""
        return transitions(self.time, self.heads.loss, self.levels)

    @cached_property
    def reached(self) -> int:
        """The last j whose transition was passed."""
        return max((j for j, when in enumerate(self.times, start=1) if when is not None), default=0)

    @cached_property
    def plateaus(self) -> tuple[Plateau | None, ...]:
        return plateaus(self.time, self.heads.loss, self.levels)

    @property
    def tolerance(self) -> float:
        """In shares of a step."""
        return SHARP if self.gradient and self.task.span == 1 else BROAD

    def rested(self, j: int) -> Plateau | None:
        """Plateau j if the run has left it, or rests there: at its drift the loss stays within tolerance for a doubling of t."""
        found = self.plateaus[j - 1]
        if found is None or (j < len(self.times) and self.times[j] is not None):
            return found
        return found if self.fall(found) <= self.tolerance else None

    def fall(self, plateau: Plateau) -> float:
        """What the loss moves in a doubling of t at the drift of a plateau, in shares of its step."""
        return float(abs(plateau.drift) * np.log(2) / self.steps[plateau.j - 1])

    def frame(self, when: float) -> int:
        return int(np.argmin(np.abs(self.time - when)))

    @property
    def gradient(self) -> bool:
        """Whether steps are gradients: a flow, gradient descent or heavy ball, without clipping."""
        return self.run.clock == "t"

    @cached_property
    def law(self):  # noqa: ANN201 (an objective or a field)
        return rebuilt(self.run.spec["field"])

    @cached_property
    def rates(self) -> dict[str, float]:
        return {name: float(self.run.spec["dynamics"]["rates"].get(name, 1.0)) for name in self.run.params}

    @cached_property
    def sigma(self) -> float:
        """The initial differences of the logits, as a root mean square over all but each head's mean."""
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

    @cached_property
    def equal(self) -> Equal | None:
        """The motion from equal heads to the end of the run."""
        return None if self.beside.equal is None else self.beside.equal(None)

    @cached_property
    def escapes(self) -> Escapes | None:
        """Escapes from plateau 1 by flows beside the run, long enough for twice the form's slope; None where one is missing."""
        forms, scaled, equal = self.task.forms, self.beside.scaled, self.beside.equal
        if forms is None or scaled is None or equal is None or self.identical:
            return None
        until = float((2 * forms.escape_slope * np.log(1 / SIGMAS[-1]) + np.sqrt(20 * forms.first_time)) ** 2)
        found = [scaled(sigma, until).times[1] for sigma in SIGMAS]
        if None in found:
            return None
        when, same = np.array([float(t) for t in found if t is not None]), equal(until)
        mass = self.law.model.attention(same.params)[:, 0, self.law.model.at[1]]
        foretold = wkb_times(same.time, forms.rate(mass), (SIGMAS[0], float(when[0])), np.array(SIGMAS))
        return Escapes(when, foretold, float(np.polyfit(-np.log(SIGMAS), np.sqrt(when), 1)[0]))

    def failures(self, noisy: bool = True) -> list[str]:
        """Why the ladder of levels is not promised to this run; empty where it is."""
        task = self.task
        ratios = [a / b for a, b in pairwise(task.gains)]
        before = self.time.size if not self.times or self.times[0] is None else int(np.sum(self.time < self.times[0]))
        kinds = (
            (task.disjoint, "groups of lags overlap"),
            (min(ratios, default=np.inf) >= DISTINCT, f"an importance is less than {DISTINCT:g} times the next"),
            (task.span == 1 or not self.gradient, "under gradient steps heads divide the lags inside a span among themselves"),
            (
                not noisy or task.noise <= self.tolerance * self.steps.min(),
                f"estimating from drawn tokens costs about {task.noise:.2g} nats, more than {self.tolerance:.0%} of a step",
            ),
            (task.fitted, "a level was not fitted to its tolerance"),
            (before >= BEFORE, f"{before} frames before t_1; at least {BEFORE} are needed"),
        )
        return [sentence for good, sentence in kinds if not good]

    def unlike(self, least: float) -> list[str]:
        """That heads start less alike than a claim needs; empty where they do not."""
        first = float(self.heads.agreement[0])
        return [] if first >= least else [f"heads agree to {first:.2f} only at the start, below {least:g}"]

    def allowed(self, gap: float, j: int) -> float:
        """How far from level j a loss may be and still be that of class j; in shares of step j, as `gap` is.

        Above the level it is the tolerance: the run is on its way down. Below it nothing in the class can be: there it is 3 %
        of the step, or the tolerance of the next step where that is less, and at least the error of the level itself.
        """
        if gap >= 0:
            return self.tolerance
        own, error = float(self.steps[j - 1]), self.task.errors[j] if self.task.errors else 0.0
        after = self.tolerance * float(self.steps[j]) if j < len(self.steps) else np.inf
        return min(self.tolerance, max(min(SHARP * own, after), error) / own)


def _norms(blocks: list[np.ndarray]) -> np.ndarray:
    return np.sqrt(np.sum([np.sum(np.square(block.reshape(len(block), -1)), axis=1) for block in blocks], axis=0))


def on_the_ladder(evidence: Evidence) -> Regime:
    """The regime of the staircase of levels."""
    failed = evidence.failures()
    words = "single lags" if evidence.task.span == 1 else f"spans of up to {evidence.task.span} lags"
    return Regime(not failed, "; ".join(failed) or f"distinct importances, {words}")


def several_heads(evidence: Evidence) -> Regime:
    """The same, of two heads or more that begin alike, on two groups or more."""
    if evidence.task.heads == 1:
        return Regime(False, "there is one head", applies=False)
    if len(evidence.task.gains) == 1:
        return Regime(False, "there is one group: nothing to compete for or to share out", applies=False)
    base, apart = on_the_ladder(evidence), evidence.unlike(ALIKE_AT_FIRST)
    if apart:
        return Regime(False, "; ".join(apart if base.holds else [base.sentence, *apart]))
    return Regime(base.holds, f"{base.sentence}, heads alike at the start" if base.holds else base.sentence)
