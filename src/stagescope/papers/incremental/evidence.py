"""What the claims of incremental learning read: the ladder that a run descends, its heads, its task, its companion runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from stagescope.detect.levels import Plateau, no_ladder, noise_near
from stagescope.errors import InputError
from stagescope.papers.incremental.stages import Heads
from stagescope.papers.incremental.task import NO_COMPANIONS, Clock, Companions, EqualHeads, Task
from stagescope.papers.rebuild import rebuilt
from stagescope.runs.run import Run


@dataclass(frozen=True)
class LadderThresholds:
    """The regime of the ladder of levels, and the tolerances of its claims."""

    sharp: float = 0.03
    """Tolerance in shares of a step for flows and gradient steps on single lags: an independent implementation had 2.1 %."""
    broad: float = 0.15
    """The same for Adam and for spans of lags, where plateaus are shoulders (science page, section 5)."""
    before: int = 5
    """Least number of frames before t_1: a coarser record fakes the first transition."""
    distinct: float = 1.3
    """Least ratio of an importance to the next: the smallest above 1 for which the paper shows plateaus (figure 4)."""
    alike_at_start: float = 0.8
    """Least agreement at the start for claims about competing heads: heads are more alike than apart. Chosen without a run."""


LADDER = LadderThresholds()


@dataclass(frozen=True)
class Evidence:
    """A run that descends a ladder of levels.

    `clock` is the regime of the regression flow from the same logits.
    """

    run: Run
    heads: Heads
    task: Task
    companions: Companions = NO_COMPANIONS
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
        if (why := no_ladder(self.levels)) is not None:
            raise InputError(why)
        return -np.diff(self.levels)

    @cached_property
    def times(self) -> tuple[float | None, ...]:
        """t_1 .. t_k."""
        _ = self.steps  # refuses levels that do not decrease
        return tuple(event.time for event in self.heads.crossings)

    @cached_property
    def reached(self) -> int:
        """The last j whose transition was passed."""
        return max((j for j, when in enumerate(self.times, start=1) if when is not None), default=0)

    @property
    def plateaus(self) -> tuple[Plateau | None, ...]:
        return self.heads.plateaus

    @property
    def tolerance(self) -> float:
        """In shares of a step."""
        return LADDER.sharp if self.gradient and self.task.span == 1 else LADDER.broad

    def rested(self, j: int) -> Plateau | None:
        """Plateau j if the run has left it or rests on it: the loss then moves by at most the tolerance in a doubling of t.

        One that was left must have been a plateau: the loss fell more slowly there than before and after.
        """
        found = self.plateaus[j - 1]
        if found is None or found.between is False:
            return None
        return found if found.between or self.fall(found) <= self.tolerance else None

    @cached_property
    def rests(self) -> tuple[Plateau, ...]:
        """The plateaus that the run rested on; none where the only one is the last of the ladder, where every loss ends."""
        _ = self.steps
        found = [plateau for j in range(1, self.reached + 1) if (plateau := self.rested(j)) is not None]
        stairs = any(plateau.between or plateau.j < len(self.times) for plateau in found)
        return tuple(found) if stairs else ()

    def no_rest(self) -> str:
        """Why `rests` is empty."""
        if self.reached == 0:
            return "t_1 was not reached"
        missing = [j for j, plateau in enumerate(self.plateaus[: self.reached], start=1) if plateau and plateau.between is False]
        if missing:
            return f"no plateau: the loss does not slow down after t_{missing[0]}; crossings of levels alone are no stages"
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
        sampled = 0.02 if self.run.type.endswith(("ContentLoss", "TransformerLoss")) else 0.0  # two standard errors of SAMPLES
        return float(np.hypot(np.max(np.abs(mass[near] - mass[frame]), initial=0.0), sampled))

    def fall(self, plateau: Plateau) -> float:
        """Change of the loss in a doubling of t at the drift of a plateau, in shares of its step."""
        return float(abs(plateau.drift) * np.log(2) / self.steps[plateau.j - 1])

    def frame(self, when: float) -> int:
        return int(np.argmin(np.abs(self.time - when)))

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
        return {name: float(self.run.spec["dynamics"]["rates"].get(name, 1.0)) for name in self.run.params}

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

    @cached_property
    def equal(self) -> EqualHeads | None:
        """The companion run from equal heads, to the end of the run."""
        return None if self.companions.equal is None else self.companions.equal(None)

    def failures(self, noisy: bool = True) -> dict[str, str]:
        """Assumptions of the ladder of levels that the run does not meet, each with a sentence; `noisy`: of sampling, too."""
        task = self.task
        ratios = [a / b for a, b in pairwise(task.gains)]
        before = self.time.size if not self.times or self.times[0] is None else int(np.sum(self.time < self.times[0]))
        error = f"the error of estimation from sampled tokens is about {task.noise:.2g} nats"
        kinds = {
            "disjoint": (task.disjoint, "groups of lags overlap"),
            "distinct": (
                min(ratios, default=np.inf) >= LADDER.distinct,
                f"an importance is less than {LADDER.distinct:g} times the next",
            ),
            "single lags": (task.span == 1 or not self.gradient, "under gradient steps heads divide the lags inside a span"),
            "sample": (
                not noisy or task.noise <= self.tolerance * self.steps.min(),
                f"{error}, more than {self.tolerance:.0%} of a step",
            ),
            "uniform": (
                task.uniform is None or task.uniform >= self.levels[1],
                "values under uniform attention alone predict better than class 1: attention need not move first",
            ),
            "heads": (
                task.span == 1 or task.heads >= len(task.gains),
                "fewer heads than groups of several lags: a head can serve lags of two groups, which no class does",
            ),
            "fit": (task.fitted, "the fit of a level did not reach its tolerance"),
            "frames": (before >= LADDER.before, f"{before} frames before t_1; at least {LADDER.before} are needed"),
        }
        return {name: sentence for name, (good, sentence) in kinds.items() if not good}

    def unlike(self, least: float) -> dict[str, str]:
        """The same for an agreement of heads at the start of at least `least`."""
        first = float(self.heads.alike[0])
        return {} if first >= least else {"alike": f"the agreement of heads at the start is {first:.2f}, below {least:g}"}

    def allowed(self, gap: float, j: int) -> float:
        """The largest distance from level j at which a loss counts as that of class j, in shares of step j, as `gap` is.

        Above the level it is the tolerance: the run may still be falling. No member of the class is below the level: there it
        is 3 % of the step, or the tolerance of the next step where that is less. The error of the level counts apart.
        """
        if gap >= 0:
            return self.tolerance
        after = self.tolerance * float(self.steps[j] / self.steps[j - 1]) if j < len(self.steps) else np.inf
        return min(self.tolerance, LADDER.sharp, after)

    @property
    def config(self) -> Mapping[str, Any] | None:
        """The options of the study that made the run."""
        return self.run.config if self.run.study == "incremental" else None


def _norms(blocks: list[np.ndarray]) -> np.ndarray:
    return np.sqrt(np.sum([np.sum(np.square(block.reshape(len(block), -1)), axis=1) for block in blocks], axis=0))
