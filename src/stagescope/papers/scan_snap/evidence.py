"""What the claims of scan and snap look at: a run, its class attention, and runs beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.claim import Regime
from stagescope.papers.scan_snap.forms import transition_time
from stagescope.papers.scan_snap.loss import Pairing, PairwisePinv
from stagescope.papers.scan_snap.observables import ClassAttention, class_attention, law_of
from stagescope.papers.scan_snap.sampled import PairwiseSampled
from stagescope.runs.run import Run

WEAK = 0.25
"""Share f_c^2 of a common token up to which t0 is a fair transition time; beyond it classes overlap and slow each other."""


MOVED = 1e-9
"""Changes of scores below this are rounding of the integrator, not motion."""
STILL = "attention never moved (by more than 1e-9)"
ADAM = Regime(False, "the paper speaks of gradient steps; Adam rescales every entry", applies=False)


def regime_of(*conditions: tuple[bool, str], holds: str) -> Regime:
    """In regime if every condition holds; the sentence names those that do not."""
    failed = [sentence for good, sentence in conditions if not good]
    return Regime(not failed, "; ".join(failed) if failed else holds)


@dataclass(frozen=True)
class Beside:
    """How to make runs that differ from the one at hand: other rates to another end, or the flow in its place."""

    rates: Callable[[dict[str, float], float], Run]
    flow: Callable[[float], Run]


@dataclass(frozen=True)
class Evidence:
    """A run with its class attention (of a denser replay where the run is coarse)."""

    run: Run
    curves: ClassAttention
    beside: Beside | None = None

    @classmethod
    def of(cls, run: Run, curves: ClassAttention | None = None, beside: Beside | None = None) -> "Evidence":
        return cls(run, curves or class_attention(run), beside)

    @cached_property
    def law(self) -> Pairing:
        return law_of(self.run)

    @property
    def is_flow(self) -> bool:
        return self.run.spec["dynamics"]["type"] == "GradientFlow"

    @property
    def is_adam(self) -> bool:
        return self.run.clock == "step"

    @property
    def modified(self) -> bool:
        return isinstance(self.law, PairwisePinv)

    @property
    def sampled(self) -> bool:
        return isinstance(self.law, PairwiseSampled)

    @cached_property
    def rates(self) -> dict[str, float]:
        return {"Y": 1.0, "Z": 1.0, **self.run.spec["dynamics"]["rates"]}

    @property
    def ratio(self) -> float:
        return self.rates["Y"] / self.rates["Z"] if self.rates["Z"] else np.inf

    @property
    def outputs(self) -> int:
        return self.law.process.vocab

    @property
    def classes(self) -> int:
        return len(self.law.process.classes)

    @cached_property
    def queries(self) -> int:
        return len({item.query for item in self.law.process.classes})

    @property
    def own_query(self) -> bool:
        """Every class has a query of its own."""
        return self.queries == self.classes

    @cached_property
    def own_target(self) -> bool:
        """Every class has a target of its own."""
        return len({item.target for item in self.law.process.classes}) == self.classes

    @cached_property
    def still(self) -> bool:
        """Scores changed by no more than the rounding of an integrator."""
        return float(np.max(np.abs(self.curves.scores - self.curves.scores[:1]))) <= MOVED

    @cached_property
    def commons(self) -> int:
        return int(self.curves.common.any(axis=0).sum())

    @cached_property
    def symmetric(self) -> bool:
        """Classes are alike but for the names of their distinct tokens; common tokens have one P(l|n)."""
        shared = self.curves.common.any(axis=0)
        laws = np.where(self.curves.common, self.curves.table, np.nan)[:, shared]
        profiles = np.sort(np.where(self.curves.distinct, self.curves.table, 0.0), axis=1)
        even = np.allclose(self.curves.prior, self.curves.prior[0])
        return bool(even and np.allclose(laws, laws[:1], rtol=1e-9) and np.allclose(profiles, profiles[0], rtol=1e-9))

    @cached_property
    def zero_start(self) -> bool:
        return not any(np.any(self.run.params[name][0]) for name in self.run.params)

    @cached_property
    def common_share(self) -> float:
        """f_c^2 = p_c^2 / sum_l P(l|n)^2 of the common tokens together, the largest over classes."""
        table = self.curves.table
        return float(np.max(np.sum((table * self.curves.common) ** 2, axis=1) / np.sum(table**2, axis=1)))

    @property
    def t0(self) -> float:
        return transition_time(self.outputs, self.classes, self.rates["Y"])

    @cached_property
    def winners(self) -> np.ndarray:
        """The distinct token of each class with most attention at the end (K,), as columns."""
        return np.argmax(np.where(self.curves.distinct, self.curves.attention[-1], 0.0), axis=1)

    def winner(self, quantity: np.ndarray) -> np.ndarray:
        """A quantity (frames, classes, keys) at each class's winner (frames, classes)."""
        return quantity[:, np.arange(self.classes), self.winners]

    def at(self, curve: np.ndarray, when: float) -> float:
        return float(np.interp(when, self.curves.time, curve))

    @cached_property
    def logit_gaps(self) -> np.ndarray:
        """A class's own logit minus the mean logit of the other classes' targets, mean over classes, at the run's frames.

        With a single class the others are the outputs that are never targets.
        """
        attention = class_attention(self.run).attention
        f = attention / np.linalg.norm(attention, axis=2, keepdims=True)
        logits = np.einsum("tnl,tlj->tnj", f, self.run.params["Y"])
        target = self.law.rows["target"]
        weights = np.zeros(logits.shape[1:])
        weights[:, target if len(np.unique(target)) > 1 else slice(None)] = 1.0
        weights[np.arange(self.classes), target] = 0.0
        others = np.sum(logits * weights, axis=2) / weights.sum(axis=1)
        return np.mean(logits[:, np.arange(self.classes), target] - others, axis=1)
