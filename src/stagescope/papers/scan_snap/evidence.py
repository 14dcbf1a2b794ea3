"""Evidence for the claims of scan and snap: a run, its class attention, and its companion runs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.comparison import Comparison, Regime
from stagescope.papers.scan_snap.forms import transition_time
from stagescope.papers.scan_snap.loss import Pairing, PairwisePinv
from stagescope.papers.scan_snap.observables import ClassAttention, class_attention, law_of
from stagescope.papers.scan_snap.sampled import PairwiseSampled
from stagescope.runs.run import Run


@dataclass(frozen=True)
class Limits:
    """Where the regimes of the claims end, and how closely the numbers must agree."""

    motion: float = 1e-9  # a smaller change of a score is rounding of the integrator
    sign: float = 1e-9  # a velocity this small, relative to the largest, is rounding of the right-hand side
    batch_noise: float = 0.05  # the same for steps on sampled batches, whose noise moves every token
    conserved: float = 1e-9  # drift of row sums relative to the largest parameter: rounding
    long_context: int = 64  # tokens from which a context counts as long; the gap to the limit falls like L^-1/2
    weak_common: float = 0.25  # share f_c^2 of the common tokens above which classes overlap and slow each other down
    many_outputs: int = 50  # outputs from which ln M counts as large in t0 = K ln M / eta_Y
    length_slope: float = 0.1  # absolute error of the slope -1/2; four lengths with 200 contexts each
    chi: float = 0.05  # relative error of r(t)/r(0) - 1
    logit: float = 0.05  # relative error of the own-minus-other logit
    growth: float = 0.15  # relative error of B(t0); the closed form itself is good to about 14 %
    entropy: float = 1e-3  # nats; a smaller difference of entropy decides nothing
    follows: float = 0.01  # nats; steps whose final entropy is this close to the flow's follow the flow
    scaling: float = 1e-6  # difference of Z between two flows that are equal by the scaling law


LIMITS = Limits()
ADAM = Regime(False, "the claim is about gradient steps; Adam rescales every entry", applies=False)


def regime_of(*conditions: tuple[bool, str], holds: str) -> Regime:
    """In regime if every condition holds; otherwise the sentence names the conditions that fail."""
    failed = [sentence for good, sentence in conditions if not good]
    return Regime(not failed, "; ".join(failed) if failed else holds)


def not_moved(predicted: float | str, tolerance: float | str) -> Comparison:
    """The comparison of a run whose attention never moved: it decides nothing."""
    return Comparison(predicted, None, tolerance, None, f"no attention score moved by more than {LIMITS.motion:g}")


@dataclass(frozen=True)
class Companions:
    """How to make companion runs: the same flow at other rates to another end time, or the flow instead of steps."""

    rates: Callable[[dict[str, float], float], Run]
    flow: Callable[[float], Run]


@dataclass(frozen=True)
class Evidence:
    """A run with its class attention, taken from a denser replay where the run is recorded coarsely."""

    run: Run
    curves: ClassAttention
    companions: Companions | None = None

    @classmethod
    def of(cls, run: Run, curves: ClassAttention | None = None, companions: Companions | None = None) -> "Evidence":
        return cls(run, curves or class_attention(run), companions)

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
    def decoder(self) -> str:
        return "modified" if self.modified else "gradient"

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
        """Whether no two classes share a query."""
        return self.queries == self.classes

    @cached_property
    def own_target(self) -> bool:
        """Whether no two classes share a target."""
        return len({item.target for item in self.law.process.classes}) == self.classes

    @cached_property
    def still(self) -> bool:
        """Whether scores changed only by the rounding of the integrator."""
        return float(np.max(np.abs(self.curves.scores - self.curves.scores[:1]))) <= LIMITS.motion

    @cached_property
    def commons(self) -> int:
        return int(self.curves.common.any(axis=0).sum())

    @cached_property
    def symmetric(self) -> bool:
        """Whether classes differ only in the names of their distinct tokens; a common token has the same P(l|n) in all."""
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
        """f_c^2 = sum of P(l|n)^2 over common tokens / sum over all tokens; the largest over classes."""
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

    @property
    def final_entropy(self) -> float:
        """Entropy on distinct tokens at the end, mean over classes, in nats."""
        return float(self.curves.mean(self.curves.entropy)[-1])

    @cached_property
    def logit_gaps(self) -> np.ndarray:
        """A class's own logit minus the mean logit of the other classes' targets, mean over classes, at the run's frames.

        With a single class, the mean is over the outputs that are never targets.
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
