"""Evidence for the claims of scan and snap: a run, its class attention, and its companion runs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from stagescope.claims.comparison import Comparison, Regime
from stagescope.papers.scan_snap.forms import transition_time
from stagescope.papers.scan_snap.loss import Pairing, PairwisePinv
from stagescope.papers.scan_snap.observables import ClassAttention, class_attention, law_of
from stagescope.papers.scan_snap.sampled import PairwiseSampled
from stagescope.papers.scan_snap.stages import LEVELS
from stagescope.params import Params
from stagescope.runs.run import Run


@dataclass(frozen=True)
class Limits:
    """How closely numbers must agree. How far a prediction can be trusted is computed for each run, not a limit."""

    motion: float = 1e-9  # a smaller change of a score is rounding of the integrator
    sign: float = 1e-9  # a velocity this small, relative to the largest, is rounding of the right-hand side
    batch_sign: float = 0.05  # the same for steps on batches, of the largest change: what one batch in twenty does
    conserved: float = 1e-9  # drift of row sums relative to the largest parameter: rounding
    conserved_single: float = 1e-5  # the same of steps in float32, which round to 6e-8: about 100 roundings
    length_slope: float = 0.1  # absolute error of the slope -1/2; three lengths with 200 contexts each
    relative: float = 0.05  # closed forms in their limit, and steps against their flow: 5 % of the number predicted
    growth: float = 0.1  # B(t0): 10 %, because it is integrated from two such numbers
    order: float = 0.95  # share of pairs of distinct tokens that must keep the order of P(l|n)
    transition: float = 0.25  # of K ln M / eta_Y: the paper gives an order of magnitude, and a quarter is well below it
    decade: float = 0.05  # share of attention that may move in a decade of time where a combination is almost fixed
    half: float = 0.5  # share of the entropy at the start; beyond it attention is closer to one token than to the start
    entropy: float = 1e-5  # nats; ten times the error of the entropy of a flow
    scaling: float = 1e-6  # difference of Z between two flows that are equal by the scaling law


LIMITS = Limits()
REPLICAS = 8
"""Descents on other batches: their spread is known to 25 %, and Student's factor for 95 % is 2.4."""
BATCHES = f"{REPLICAS} descents as long as the run, for a run on batches"
"""The cost of a claim whose error is the spread over other batches; other runs have no such error."""
ADAM = Regime(False, "the claim is about gradient steps; Adam rescales every entry", applies=False)


def regime_of(*conditions: tuple[bool, str], holds: str) -> Regime:
    """In regime if every condition holds; otherwise the sentence names the conditions that fail."""
    failed = [sentence for good, sentence in conditions if not good]
    return Regime(not failed, "; ".join(failed) if failed else holds)


def undecided(reason: str, predicted: float | str = "", tolerance: float | str = "") -> Comparison:
    """A comparison that this run cannot make."""
    return Comparison(predicted, None, tolerance, None, reason)


def not_moved(predicted: float | str, tolerance: float | str) -> Comparison:
    """The comparison of a run whose attention never moved: it decides nothing."""
    return undecided(f"no attention score moved by more than {LIMITS.motion:g}", predicted, tolerance)


@dataclass(frozen=True)
class Companions:
    """How to make companion runs: the flow at other rates to another end time, the flow instead of steps, other batches.

    Of a flow there is the end only; one that breaks down raises `SolveFailed`.
    """

    rates: Callable[[dict[str, float], float], Params]
    flow: Callable[[float], Params]
    replicas: Callable[[], list[ClassAttention]]


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
        return float(np.max(self.curves.farthest)) <= LIMITS.motion

    @property
    def material(self) -> bool:
        """Whether attention has moved by an amount that a map of it shows."""
        return float(self.curves.moved[-1]) >= LEVELS.material

    @cached_property
    def commons(self) -> int:
        return int(self.curves.common.any(axis=0).sum())

    @cached_property
    def even(self) -> bool:
        """Whether all classes are equally frequent."""
        return bool(np.allclose(self.curves.prior, self.curves.prior[0]))

    @cached_property
    def symmetric(self) -> bool:
        """Whether classes differ only in the names of their distinct tokens; a common token has the same P(l|n) in all."""
        shared = self.curves.common.any(axis=0)
        laws = np.where(self.curves.common, self.curves.table, np.nan)[:, shared]
        profiles = np.sort(np.where(self.curves.distinct, self.curves.table, 0.0), axis=1)
        alike = np.allclose(laws, laws[:1], rtol=1e-9) and np.allclose(profiles, profiles[0], rtol=1e-9)
        return bool(self.even and alike)

    @cached_property
    def zero_start(self) -> bool:
        return not any(np.any(self.run.params[name][0]) for name in self.run.params)

    @cached_property
    def overlap(self) -> float:
        """The largest |eigenvalue| of F^T F - I at the start; the paper assumes that it is below 1/K [SnS:assumption-2]."""
        f = self.features(0)
        return float(np.max(np.abs(np.linalg.eigvalsh(f @ f.T - np.eye(self.classes)))))

    @property
    def t0(self) -> float:
        return transition_time(self.outputs, self.classes, self.rates["Y"])

    @property
    def end(self) -> float:
        return float(self.curves.time[-1])

    def features(self, frame: int) -> np.ndarray:
        """f_n at a frame, as a matrix (K, keys)."""
        on = self.curves.supports
        return on.dense(on.features(self.curves.c[frame]))

    def at(self, curve: np.ndarray, when: float) -> float:
        return float(np.interp(when, self.curves.time, curve))

    def frame(self, when: float) -> int:
        """The frame of `curves` nearest to a time."""
        return int(np.argmin(np.abs(self.curves.time - when)))

    @property
    def final_entropy(self) -> float:
        """Entropy on distinct tokens at the end, mean over classes, in nats."""
        return float(self.curves.mean(self.curves.entropy)[-1])

    def entropy_at(self, params: Params) -> float:
        """Entropy on distinct tokens at some parameters, mean over classes, in nats."""
        on = self.curves.supports
        return float(self.curves.mean(on.entropy(on.attention(params["Z"][on.row, on.key]))))

    def spread(self, measure: Callable[[ClassAttention], np.ndarray | float]) -> tuple[np.ndarray, np.ndarray]:
        """A measure of the run and half the width of its 95 % interval: over other batches, or 0 where there are no batches.

        With batches, the measure is the mean over this run and its replicas.
        """
        own = np.asarray(measure(self.curves), dtype=float)
        others = self.companions.replicas() if self.sampled and self.companions is not None else []
        if not others:
            return own, np.zeros_like(own)
        found = np.stack([own, *(np.asarray(measure(each), dtype=float) for each in others)])
        factor = stdtrit(len(found) - 1, 0.975) / np.sqrt(len(found))
        return found.mean(axis=0), factor * found.std(axis=0, ddof=1)

    @cached_property
    def _features(self) -> np.ndarray:
        """f_n at all frames (frames, entries)."""
        return self.curves.supports.features(self.curves.c)

    @cached_property
    def logit_gaps(self) -> np.ndarray:
        """A class's own logit minus the mean logit of the other classes' targets, mean over classes."""
        return np.mean(self.curves.supports.sums(self._features * self.curves.readout.directions), axis=1)

    def leverage(self, frame: int, tokens: np.ndarray) -> np.ndarray:
        """kappa = |1 - f_l (f.g) / g_l| for one token l of each class, given as entries, at a frame (K,).

        The score of a token moves as f_l (g_l - f_l f.g), g = Y (e - alpha). Where common tokens are weak the two pulls nearly
        cancel, and a small error of f or g is a large one, 1/kappa times as large, of this motion.
        """
        f, g = self._features[frame], self.curves.readout.pulls[frame]
        pull = np.where(g[tokens] == 0, np.inf, g[tokens])
        return np.maximum(np.abs(1 - f[tokens] * self.curves.supports.sums(f * g) / pull), LIMITS.motion)

    def memory(self, when: float, tokens: np.ndarray) -> float:
        """The relative error of the motion of these tokens if the decoder is taken to be learned at the features of now.

        It was learned on the way here, while f_l changed; that change is 1/kappa times as large in the motion of the score.
        """
        frame = self.frame(when)
        f = self._features[[0, frame]][:, tokens]
        return float(np.max(np.abs(np.log(f[1] / f[0])) / self.leverage(frame, tokens)))

    @cached_property
    def drifts(self) -> np.ndarray:
        """|int Y . df|, mean over classes: how much of the logits the motion of attention made, which theorem 1 neglects."""
        directions = self.curves.readout.directions
        middle = (directions[1:] + directions[:-1]) / 2
        made = np.cumsum(self.curves.supports.sums(np.diff(self._features, axis=0) * middle), axis=0)
        return np.concatenate([[0.0], np.mean(np.abs(made), axis=1)])
