"""What claims on normalised steps need: what a run in steps shows, and the head model from the same start [FDA:head]."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.core.params import root_mean_square
from stagescope.core.spec import build
from stagescope.flow.descent import Adam, Descent, HeavyBall
from stagescope.papers.focus_dilution.head_model import HeadModel
from stagescope.papers.focus_dilution.head_prediction import head_curves
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenLoss, TokenPopulation
from stagescope.papers.focus_dilution.model import LazyChain
from stagescope.papers.focus_dilution.observables import TokenCurves
from stagescope.papers.focus_dilution.stages import RowCycle, row_cycles

if TYPE_CHECKING:
    from stagescope.papers.focus_dilution.evidence import Evidence


@dataclass(frozen=True, eq=False)
class StepsEvidence:
    """What a run in steps shows, beside the head model from the same start."""

    evidence: "Evidence"

    @property
    def curves(self) -> TokenCurves:
        return self.evidence.curves

    @property
    def law(self) -> TokenLoss:
        return self.curves.law

    @cached_property
    def descent(self) -> Descent | None:
        """The steps of the run, as many as it has; None where it is no descent."""
        run = self.evidence.run
        moving = build(run.spec["dynamics"])
        return moving.shortened(int(run.step[-1])) if isinstance(moving, Descent) and int(run.step[-1]) > 0 else None

    @property
    def adam(self) -> Adam | None:
        """The optimiser where it divides each entry by the size of its own history."""
        optimizer = None if self.descent is None else self.descent.optimizer
        return optimizer if isinstance(optimizer, Adam) else None

    @cached_property
    def losses(self) -> np.ndarray:
        """The loss at the times of the curves."""
        run = self.evidence.run
        return np.interp(self.curves.time, run.time, run.series["loss"])

    @cached_property
    def rows(self) -> list[RowCycle]:
        """The first cycle of every row, as `stages` reads it."""
        return row_cycles(self.curves, noisy=getattr(self.law, "batch", None) is not None)

    @cached_property
    def ups(self) -> dict[int, float]:
        """When rows had a total focus, by row."""
        return {cycle.row: cycle.up for cycle in self.rows if cycle.up is not None}

    @cached_property
    def rare(self) -> list[int]:
        return [row for row in range(len(self.curves.pi)) if row != self.curves.frequent]

    @cached_property
    def origin(self) -> HeadModel:
        return HeadModel(law=self.law)

    @cached_property
    def whole(self) -> HeadModel:
        """The head model with all columns, which is the whole model, in long contexts."""
        law = TokenPopulation(model=self.law.model, process=self.law.process)
        return HeadModel(law=law, columns=law.model.shapes["WQ"][1])

    def head(self, **change: Any) -> TokenCurves:
        """The head model from the start of the run with a change, made once: see `_head`."""
        reading = self.evidence.reading
        return self._head(change) if reading is None else reading.companion(self._head, change)

    def _head(self, change: dict[str, Any]) -> TokenCurves:
        """`columns`, `last` ones; `steps`; `factor` of the start, `seed` of another; `independent` tokens; `eps`, `momentum`.

        The path leads from the optimiser of the run to gradient descent with its momentum.
        """
        law, start, descent = self.law, self.evidence.start, self.descent
        assert descent is not None
        if change.get("independent"):
            law = with_independent_tokens(law)
        if "seed" in change:
            scales = {name: root_mean_square({name: block}) for name, block in start.items()}
            start = law.model.init(change["seed"], scales)
        start = {name: change.get("factor", 1.0) * block for name, block in start.items()}
        if "eps" in change:
            update = {"optimizer": descent.optimizer.model_copy(update={"eps": change["eps"]})}
            descent = descent.model_copy(update={**update, "lr": path_rate(descent, change["eps"])})
        if change.get("momentum"):  # what remains of Adam where eps is large: lr / eps times the mean gradient
            decay = self.adam.b1 if self.adam is not None else 0.0
            ball = HeavyBall(momentum=decay)
            descent = descent.model_copy(update={"optimizer": ball, "lr": LIMITS.path_rate * (1 - decay)})
        descent = descent.shortened(change.get("steps", descent.steps))
        return head_curves(law, start, descent, change.get("columns", 1), change.get("last", False))

    @cached_property
    def fivefold(self) -> int | None:
        """The first frame at which sv_1(W0) is five times that of the start: condensed, and not yet bent by p."""
        values = self.curves.embedding_values[:, 0]
        above = np.flatnonzero(values >= LIMITS.condensation * values[0])
        return int(above[0]) if above.size else None

    def frame(self, when: float) -> int:
        return int(np.argmin(np.abs(self.curves.time - when)))


def with_independent_tokens(law: TokenLoss) -> TokenLoss:
    """The loss on tokens that are each drawn from pi, whatever came before: there is nothing to attend to."""
    chain = LazyChain(pi=tuple(law.process.stationary.tolist()), persistence=0.0)
    fields = {name: getattr(law, name) for name in type(law).model_fields}  # a copy of the object would keep its contexts
    return type(law)(**{**fields, "process": chain})


def path_rate(descent: Descent, eps: float) -> float:
    """The step size on the path from Adam to gradient descent: that of the run, and .05 eps, so that lr / eps goes to .05."""
    return descent.lr + LIMITS.path_rate * eps
