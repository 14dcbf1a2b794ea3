"""Evidence for the claims of scan and snap: a run, its class attention, and its companion runs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from stagescope.claims.comparison import Comparison, Condition, Regime, narrowed, not_applicable, regime_of, undecided
from stagescope.detect.stage import Event
from stagescope.papers.scan_snap import forms
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.loss import Pairing, PairwisePinv, PairwiseSampled
from stagescope.papers.scan_snap.observables import ClassAttention, class_attention, law_of
from stagescope.papers.scan_snap.stages import Averages, find
from stagescope.readings.evidence import Evidence as BaseEvidence
from stagescope.runs.run import Run

if TYPE_CHECKING:
    from stagescope.papers.scan_snap.reading import ScanSnapReading


BATCHES = f"{LIMITS.replicas} descents as long as the run, for a run on batches"
"""The cost of a claim whose error is the spread over other batches; other runs have no such error."""


def silent(reason: str) -> Regime:
    """The theorem does not speak of this experiment, for this reason; it speaks of a companion run of the study."""
    return Regime(False, f"the theorem does not speak of this run: {reason}", applies=False, elsewhere=True)


ADAM = silent("Adam divides every entry of the gradient by its size")


def not_moved(predicted: float | str, tolerance: float | str) -> Comparison:
    """The comparison of a run whose attention never moved: it decides nothing."""
    return undecided(f"no attention score moved by more than {LIMITS.rounding:g}", predicted, tolerance)


@dataclass(frozen=True, eq=False)
class Evidence(BaseEvidence):
    """A run with its class attention, taken from a denser replay where the run is recorded coarsely."""

    curves: ClassAttention
    reading: "ScanSnapReading | None" = field(default=None, kw_only=True, repr=False)

    @classmethod
    def of(cls, run: Run) -> "Evidence":
        """The frames as they are, without companion runs."""
        return cls(run, class_attention(run))

    @cached_property
    def law(self) -> Pairing:
        return law_of(self.run)

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
        return {"Y": 1.0, "Z": 1.0, **self.dynamics["rates"]}

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
        return float(np.max(self.curves.farthest)) <= LIMITS.rounding

    @property
    def material(self) -> bool:
        """Whether attention has moved by an amount that a map of it shows."""
        return float(self.curves.moved[-1]) >= LIMITS.material

    @cached_property
    def events(self) -> dict[str, Event]:
        """The events on the class-averaged curves."""
        return find(Averages.of(self.curves))

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
        equal = np.allclose(laws, laws[:1], rtol=1e-9) and np.allclose(profiles, profiles[0], rtol=1e-9)
        return bool(self.even and equal)

    @cached_property
    def zero_start(self) -> bool:
        return not any(np.any(self.run.params[name][0]) for name in self.run.params)

    @cached_property
    def strengths(self) -> np.ndarray:
        """gamma as measured, f_n . Y (e_n - alpha_n), mean over classes (frames,)."""
        return np.mean(self.curves.supports.sums(self._features * self.curves.readout.pulls), axis=1)

    @cached_property
    def pull_rates(self) -> np.ndarray:
        """xi_n (frames, classes): g_l/f_l - f.g of the distinct tokens of a class, weighted by f_l^2; dz_l/dt ~ f_l^2 xi_n."""
        supports, f, g = self.curves.supports, self._features, self.curves.readout.pulls
        return supports.sums(f * g * ~supports.common) / supports.sums(f**2 * ~supports.common) - supports.sums(f * g)

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        """|eigenvalues| of E = F^T F - I at the start, ascending."""
        f = self.features(0)
        return np.sort(np.abs(np.linalg.eigvalsh(f @ f.T - np.eye(self.classes))))

    @cached_property
    def assumption_2(self) -> Condition:
        """Whether assumption 2 holds at the start in all three parts, and their numbers [SnS:assumption-2]."""
        least, largest = float(self.eigenvalues[0]), float(self.eigenvalues[-1])
        low, high, ratio = (6 / self.outputs) ** 0.5, 1 / self.classes, self.outputs / self.classes**2
        sentence = f"|eigenvalues| of F^T F - I are {least:.2g} to {largest:.2g} (wanted: {low:.2g} to {high:.2g})"
        return least >= low and largest < high and ratio > 1, f"assumption 2: {sentence}; M/K^2 is {ratio:.3g} (wanted: above 1)"

    @property
    def t0_prime(self) -> float:
        return forms.t0_prime(self.outputs, self.classes, self.rates["Y"])

    @property
    def t0(self) -> float:
        return forms.t0(self.outputs, self.classes, self.rates["Y"])

    @property
    def time(self) -> np.ndarray:
        return self.curves.time

    def features(self, frame: int) -> np.ndarray:
        """f_n at a frame, as a matrix (K, keys)."""
        supports = self.curves.supports
        return supports.dense(supports.features(self.curves.c[frame]))

    def at(self, curve: np.ndarray, time: float) -> float:
        return float(np.interp(time, self.curves.time, curve))

    @property
    def final_entropy(self) -> float:
        """Entropy on distinct tokens at the end, mean over classes, in nats."""
        return float(self.curves.mean(self.curves.entropy)[-1])

    def spread(self, measure: Callable[[ClassAttention], np.ndarray | float]) -> tuple[np.ndarray, np.ndarray]:
        """A measure of the run and half the width of its 95 % interval: over other batches, or 0 where there are no batches.

        With batches, the measure is the mean over this run and its replicas.
        """
        value = np.asarray(measure(self.curves), dtype=float)
        replicas = self.reading.replicas if self.sampled and self.reading is not None else []
        if not replicas:
            return value, np.zeros_like(value)
        values = np.stack([value, *(np.asarray(measure(replica), dtype=float) for replica in replicas)])
        factor = stdtrit(len(values) - 1, 0.975) / np.sqrt(len(values))
        return values.mean(axis=0), factor * values.std(axis=0, ddof=1)

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
        return np.maximum(np.abs(1 - f[tokens] * self.curves.supports.sums(f * g) / pull), LIMITS.rounding)

    def memory(self, time: float, tokens: np.ndarray) -> float:
        """The relative error of the motion of these tokens if the decoder is taken to be learned at the features of now.

        It was learned on the way here, while f_l changed; that change is 1/kappa times as large in the motion of the score.
        """
        frame = self.frame(time)
        f = self._features[[0, frame]][:, tokens]
        return float(np.max(np.abs(np.log(f[1] / f[0])) / self.leverage(frame, tokens)))

    @cached_property
    def drifts(self) -> np.ndarray:
        """|int Y . df|, mean over classes: how much of the logits the motion of attention made, which theorem 1 neglects."""
        directions = self.curves.readout.directions
        middle = (directions[1:] + directions[:-1]) / 2
        drift = np.cumsum(self.curves.supports.sums(np.diff(self._features, axis=0) * middle), axis=0)
        return np.concatenate([[0.0], np.mean(np.abs(drift), axis=1)])


# What the theorems of scan and snap assume: the regimes of their claims.


def _setting(evidence: Evidence) -> tuple[Condition, ...]:
    """What all theorems assume of the experiment."""
    return (
        (not evidence.sampled, "contexts are sampled, against assumption 1(b)"),
        (evidence.is_flow, "it takes finite steps, not gradient flow"),
        (evidence.zero_start, "the start is not zero"),
        (evidence.own_target, "classes share a target"),
        (evidence.even, "classes are not equally frequent"),
        (evidence.classes > 1, "there is a single class"),
        (evidence.rates["Z"] > 0 and evidence.rates["Y"] > 0, "a rate is zero"),
    )


def theory(evidence: Evidence, *conditions: Condition, holds: str) -> Regime:
    """In regime where the theorem speaks of the experiment; else not applicable, and says which assumption fails."""
    if evidence.is_adam:
        return ADAM
    regime = regime_of(*_setting(evidence), *conditions, holds=f"flow from zero, long contexts, a target per class; {holds}")
    return regime if regime.holds else silent(regime.sentence)


def trusted(base: Callable[[Evidence], Regime], compare: Callable[[Evidence], Comparison], tolerance: float) -> Any:
    """The regime `base`, where also what the theorem neglects is known in this run, and at most half of the tolerance."""

    def regime(evidence: Evidence) -> Regime:
        assumed = base(evidence)
        if not assumed.holds:
            return assumed
        compared = compare(evidence)
        neglected = compared.predicted_error
        if compared.measured is None or neglected is None:
            return Regime(False, compared.reason)
        error = f"the theorem neglects {neglected:.2g} {compared.unit or ''}".rstrip()
        if neglected > tolerance / 2:
            return Regime(False, f"{error}, more than half of the tolerance of {tolerance:g}")
        return Regime(True, f"{assumed.sentence}; {error}")

    return regime


def fast_decoder(evidence: Evidence) -> Condition:
    """Assumption 1(c), eta_Y >> eta_Z."""
    reason = (
        f"eta_Y/eta_Z is {evidence.ratio:.3g}; below {LIMITS.fast_decoder:g} assumption 1(c), eta_Y >> eta_Z, is wrong by half"
    )
    return evidence.ratio >= LIMITS.fast_decoder, reason


def signs(evidence: Evidence, *conditions: Condition, holds: str) -> Regime:
    """What theorem 2 assumes of the experiment. Its signs are put to the test in steps and on batches, too."""
    if evidence.is_adam:
        return ADAM
    regime = regime_of(
        (evidence.zero_start, "the start is not zero"),
        (evidence.own_target, "classes share a target"),
        (evidence.rates["Z"] > 0, "attention is frozen"),
        *conditions,
        holds=holds,
    )
    return regime if regime.holds else silent(regime.sentence)


def distinct_regime(evidence: Evidence) -> Regime:
    """With a query each the signs are tried at any rates, with one query where assumption 1(c) holds too."""
    if evidence.own_query:
        return signs(evidence, holds="one query and one target per class, zero start")
    if evidence.queries == 1 and evidence.symmetric:
        return signs(evidence, fast_decoder(evidence), holds="one query for symmetric classes, a fast decoder, zero start")
    shared = (False, "unequal classes share a query, and then a distinct token can fall late")
    return narrowed(signs(evidence, holds="zero start"), shared)


def common_regime(evidence: Evidence) -> Regime:
    """Theorem 2(b) has one common token; corollary 2 several and one query for all classes, or one for each as measured here."""
    count = evidence.commons
    if count == 0:
        return not_applicable("there are no common tokens")
    if count == 1:
        return signs(evidence, holds="a single common token")
    return signs(
        evidence,
        (evidence.symmetric, "several common tokens, and classes differ in more than the names of their distinct tokens"),
        (evidence.own_query or evidence.queries == 1, "several common tokens, and only some of the classes share a query"),
        holds=f"{count} common tokens, symmetric classes, zero start, {'a query each' if evidence.own_query else 'one query'}",
    )


def chi_regime(evidence: Evidence) -> Regime:
    """Theorem 3 holds for any decoder that is learned from the same features."""
    queries = (evidence.own_query, "classes share a query")
    return theory(evidence, queries, fast_decoder(evidence), holds="a query per class, a fast decoder")


def modified_regime(evidence: Evidence, *conditions: Condition, holds: str = "modified decoder") -> Regime:
    """The assumptions of lemma 3 and theorem 1. The gradient's decoder meets them where assumption 2 does."""
    usable, reason = evidence.assumption_2
    gradient = (evidence.modified or usable, f"the decoder is the gradient's, and {reason}")
    regime = theory(evidence, gradient, *conditions, holds=holds)
    if regime.holds and not evidence.modified:
        return Regime(False, "under the gradient lemma 3 leaves out the change of overlaps, which drives attention")
    return regime


def single_common_regime(evidence: Evidence, *conditions: Condition) -> Regime:
    """The assumptions of theorem 4: theorem 1's, and one common token in symmetric classes."""
    queries = f"{evidence.queries} queries for {evidence.classes} classes; one query for each or one for all is needed"
    return modified_regime(
        evidence,
        (evidence.commons == 1, f"there are {evidence.commons} common tokens, not one"),
        (evidence.symmetric, "classes are not symmetric"),
        (evidence.own_query or evidence.queries == 1, queries),
        fast_decoder(evidence),
        *conditions,
        holds="modified decoder, one common token, symmetric classes, a fast decoder",
    )
