"""Evidence for the claims of scan and snap: a run, its class attention, and its companion runs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.special import stdtrit

from stagescope.claims.comparison import Comparison, Regime
from stagescope.detect.stage import Event
from stagescope.papers.scan_snap.forms import transition_time
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.loss import Pairing, PairwisePinv, PairwiseSampled
from stagescope.papers.scan_snap.observables import ClassAttention, class_attention, law_of
from stagescope.papers.scan_snap.stages import Averages, find
from stagescope.papers.scan_snap.study import GENERATOR, STUDY
from stagescope.params import Params
from stagescope.runs.run import Run

BATCHES = f"{LIMITS.replicas} descents as long as the run, for a run on batches"
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
    return undecided(f"no attention score moved by more than {LIMITS.rounding:g}", predicted, tolerance)


@dataclass(frozen=True)
class Evidence:
    """A run with its class attention, taken from a denser replay where the run is recorded coarsely."""

    run: Run
    curves: ClassAttention
    end_at_rates: Callable[[dict[str, float]], Params] | None = None
    """Where the flow from the same start ends at other rates; it raises `SolveFailed` if it breaks down. None without frames."""
    replicas: Callable[[], list[ClassAttention]] = list
    """Class attention of the same descent on other batches."""

    @classmethod
    def of(cls, run: Run) -> "Evidence":
        """The frames as they are, without companion runs."""
        return cls(run, class_attention(run))

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

    def spread(self, measure: Callable[[ClassAttention], np.ndarray | float]) -> tuple[np.ndarray, np.ndarray]:
        """A measure of the run and half the width of its 95 % interval: over other batches, or 0 where there are no batches.

        With batches, the measure is the mean over this run and its replicas.
        """
        own = np.asarray(measure(self.curves), dtype=float)
        others = self.replicas() if self.sampled else []
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
        return np.maximum(np.abs(1 - f[tokens] * self.curves.supports.sums(f * g) / pull), LIMITS.rounding)

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


# What the theorems of scan and snap assume: the regimes of their claims.


def _limit(evidence: Evidence) -> tuple[tuple[bool, str], ...]:
    """Conditions of all theorems: long contexts, zero start, equally frequent classes with a target each."""
    return (
        (not evidence.sampled, "contexts are sampled"),
        (evidence.zero_start, "the start is not zero"),
        (evidence.own_target, "classes share a target"),
        (evidence.even, "classes are not equally frequent"),
        (evidence.classes > 1, "there is a single class"),
    )


def trusted(base: Callable[[Evidence], Regime], compare: Callable[[Evidence], Comparison], tolerance: float) -> Any:
    """The regime `base`, where also what the theorem neglects is known in this run, and at most half of the tolerance."""

    def regime(evidence: Evidence) -> Regime:
        assumed = base(evidence)
        if not (assumed.applies and assumed.holds):
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


def chi_regime(evidence: Evidence) -> Regime:
    """Theorem 3 holds for any decoder that is learned from the same features."""
    if evidence.is_adam:
        return ADAM
    own = (evidence.own_query, "classes share a query")
    return regime_of(*_limit(evidence), own, holds="long contexts, zero start, one query and one target per class")


def modified_regime(evidence: Evidence) -> Regime:
    """The assumptions of lemma 3 and theorem 1."""
    if evidence.is_adam:
        return ADAM
    why = f"the decoder is the gradient's; assumption 2 would need {1 / evidence.classes:.2g} and has {evidence.overlap:.2g}"
    return regime_of(
        (evidence.modified, why), *_limit(evidence), holds="modified decoder, zero start, equally frequent classes, own targets"
    )


def single_common_regime(evidence: Evidence) -> Regime:
    """The assumptions of theorem 4: theorem 1's, and one common token in symmetric classes."""
    found = modified_regime(evidence)
    queries = f"{evidence.queries} queries for {evidence.classes} classes; one query for each or one for all is needed"
    more = regime_of(
        (evidence.commons == 1, f"there are {evidence.commons} common tokens, not one"),
        (evidence.symmetric, "classes are not symmetric"),
        (evidence.own_query or evidence.queries == 1, queries),
        (evidence.rates["Z"] > 0, "attention is frozen"),
        holds="one common token, symmetric classes",
    )
    if not found.applies or (found.holds and more.holds):
        return Regime(True, f"{found.sentence}, {more.sentence}") if found.applies else found
    return Regime(False, "; ".join(part.sentence for part in (found, more) if not part.holds))


def transition_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    return regime_of(
        *_limit(evidence),
        (evidence.is_flow, "finite steps"),
        (evidence.own_query, "classes share a query"),
        (evidence.rates["Z"] > 0, "attention is frozen"),
        holds="flow from zero, one query and one target per class",
    )


# Options of the study with which a claim is decided, where a run is out of its regime.

FLOW = ("optimizer", "steps", "lr", "momentum", "length", "batch", "record", "frames", "columns", "init_scale", "method", "rtol")
"""Options at their defaults make the flow from zero."""
_RAMP: dict[str, Any] = {"umin": 0.1, "umax": 1.0}
_WEAK_COMMON = {"num_common": 1, "common_p": 0.5, **_RAMP}


def _companion_options(
    evidence: Evidence, times: float, least: dict[str, int], ratio: float | None = None, **wanted: Any
) -> dict[str, Any] | None:
    """The flow from zero to `times` K ln M / eta_Y, on classes of the generator like those of the run, each with its own query.

    One class has no common token, so there are two at least. `least` are smallest counts. With a `ratio` of the rates there are
    many outputs: those of the run, at least 1000, and twice the tokens of the classes. Only options that the run does not have
    are given; None if it has them all, and for a run of no study.
    """
    config, fields = evidence.run.config, STUDY.options.model_fields
    if config is None or evidence.run.study != STUDY.name:
        return None
    like = {} if config.get("classes") is not None else config
    options = {name: fields[name].default for name in FLOW}
    options |= {name: like.get(name, fields[name].default) for name in GENERATOR}
    options |= {name: config.get(name) or 1.0 for name in ("rate_y", "rate_z")}
    options |= {"classes": None, "num_last": min(LIMITS.classes, max(2, options["num_last"]))}
    options |= {"num_next_per_last": 1, "num_common_per_last": 0, **wanted}
    options |= {name: max(count, options[name]) for name, count in least.items()}
    outputs = evidence.outputs
    if ratio is not None:
        tokens = options["num_common"] + options["num_last"] * (options["num_unique"] + 2)
        outputs = max(1000, outputs, 2 * tokens)
        options |= {"rate_y": ratio * options["rate_z"], "vocab": outputs}
    end = times * transition_time(outputs, options["num_last"], options["rate_y"])
    options["until"] = float(f"{end:.3g}")
    return {name: value for name, value in options.items() if config.get(name) != value} or None


one_query_each = partial(_companion_options, times=30, least={"num_common": 1})
"""Theorem 2: one query per class; the generator makes symmetric classes."""
fast_modified = partial(_companion_options, times=4, least={"num_unique": 5}, ratio=300, decoder="pinv", **_WEAK_COMMON)
"""Theorems 1, 3, 4 and lemma 4: one common token, a modified decoder that is fast, to a few transition times."""
fast_gradient = partial(_companion_options, times=4, least={"num_unique": 10}, ratio=100, decoder="gradient", **_WEAK_COMMON)
"""The transition: one weak common token, ten distinct ones, many outputs, a fast decoder."""
_LONG: dict[str, Any] = {"times": 300, "least": {"num_common": 2, "num_unique": 5}, "decoder": "pinv", "common_p": 1.0, **_RAMP}
long_modified = partial(_companion_options, ratio=1.0, **_LONG)
"""Snap, fixed combination, several tokens: the modified decoder at equal rates, to 300 transition times."""
slow_attention = partial(_companion_options, ratio=10.0, **_LONG)
"""Sparsity: the same with a decoder ten times as fast as attention."""
