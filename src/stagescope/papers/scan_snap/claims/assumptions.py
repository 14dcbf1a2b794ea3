"""What the theorems of scan and snap assume: the regimes of their claims."""

from collections.abc import Callable
from typing import Any

from stagescope.claims.comparison import Comparison, Regime
from stagescope.papers.scan_snap.evidence import ADAM, Evidence, regime_of


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
        found = base(evidence)
        if not (found.applies and found.holds):
            return found
        seen = compare(evidence)
        if seen.measured is None or seen.predicted_error is None:
            return Regime(False, seen.reason)
        error = f"the theorem neglects {seen.predicted_error:.2g} {seen.unit or ''}".rstrip()
        if seen.predicted_error > tolerance / 2:
            return Regime(False, f"{error}, more than half of the tolerance of {tolerance:g}")
        return Regime(True, f"{found.sentence}; {error}")

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
