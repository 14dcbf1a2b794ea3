"""Scan and snap on real text: statements of the paper as claims that can be checked on any corpus and query word."""

from dataclasses import dataclass, replace

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime
from stagescope.papers.scan_snap.claims import row_sums
from stagescope.papers.scan_snap.evidence import ADAM, regime_of
from stagescope.papers.scan_snap.text.evidence import (
    LATE,
    TextEvidence,
    highest,
    late_entropy,
    late_motion,
    late_rise,
    rank_correlation,
)
from stagescope.papers.scan_snap.text.observables import INTERVAL
from stagescope.papers.scan_snap.text.stages import FREEZE


@dataclass(frozen=True)
class Needs:
    """What a text must show for a claim to hold, and what it must have for the claim to be tested."""

    rank: float = 0.5  # rank correlation of scores with distinctness
    growth: float = 2.0  # growth of held-out attention on distinct types
    types: int = 30  # with fewer types the standard error of a rank correlation is 0.2 or more
    windows: int = 30  # with fewer held-out windows the error of a mass is 20 % or more
    distinct: int = 10  # the same for fewer distinct types
    doublings: int = 4  # a curve that reaches its level in so many more doublings of the steps, at its last pace, is undecided


NEEDS = Needs()
_TOPICS = Regime(False, "the claim is about topical classes (--model topics)", applies=False)
_FULL = Regime(False, "the claim is about the full transformer (--model transformer)", applies=False)


def _not_learned(predicted: str, measured: float | None = None, tolerance: str = "bound") -> Comparison:
    why = "the loss did not fall below that of the prior, so the model does not use the windows yet; take more --steps"
    return Comparison(predicted, measured, tolerance, None, why)


def _too_short(predicted: str) -> Comparison:
    why = f"the run has fewer than {LATE} intervals of {INTERVAL} steps; take more --steps"
    return Comparison(predicted, None, "bound", None, why)


def _topical(evidence: TextEvidence, *more: tuple[bool, str]) -> Regime:
    if not evidence.has_topics:
        return _TOPICS
    process = evidence.topics.process
    types, distinct = len(process.keys), int(process.distinct.sum())
    return regime_of(
        (not evidence.is_adam, ADAM.sentence),
        (types >= NEEDS.types, f"there are {types} types; ranks need {NEEDS.types}"),
        (distinct >= NEEDS.distinct, f"there are {distinct} distinct types; {NEEDS.distinct} are needed"),
        *more,
        holds=f"{len(process.nexts)} topical classes, {types} types, gradient steps",
    )


def _gradient_regime(evidence: TextEvidence) -> Regime:
    if not evidence.has_topics:
        return _TOPICS
    return ADAM if evidence.is_adam else Regime(True, "gradient steps")


def _held(evidence: TextEvidence) -> Regime:
    if not evidence.has_topics:
        return _TOPICS
    windows = len(evidence.topics.process.part("held-out"))
    few = f"there are {windows} held-out windows; {NEEDS.windows} are needed"
    start = float(evidence.topics.distinct_mass[0])
    full = f"distinct types have {start:.0%} of the attention at the start, so it cannot grow {NEEDS.growth:g} times"
    return _topical(evidence, (windows >= NEEDS.windows, few), (start < 1 / NEEDS.growth, full))


def _held_types(evidence: TextEvidence) -> Regime:
    if not evidence.has_topics:
        return _TOPICS
    types, least = int(np.isfinite(evidence.topics.process.held_distinctness).sum()), evidence.topics.process.least
    few = f"{types} types are in {least} or more held-out windows; {NEEDS.types} are needed"
    return _topical(evidence, (types >= NEEDS.types, few))


def _common_regime(evidence: TextEvidence) -> Regime:
    """Theorem 2 needs common tokens with the same law in all classes; a type that is also distinct is not such a token."""
    if not evidence.has_topics:
        return _TOPICS
    process = evidence.topics.process
    if not process.common.any():
        return Regime(False, "there are no common types", applies=False)
    both = np.flatnonzero(process.common & process.distinct)
    named = ", ".join(process.label(process.keys[i]) for i in both[:4])
    return _topical(evidence, (not both.size, f"{both.size} common types are also distinct ({named})"))


def _correlation(evidence: TextEvidence, given_frequency: bool = False) -> Comparison:
    curves = evidence.topics
    process, predicted = curves.process, f"> {NEEDS.rank}"
    if not evidence.learned:
        return _not_learned(predicted)
    found = rank_correlation(curves.growth, process.distinctness, process.share if given_frequency else None)
    if not np.isfinite(found):
        return Comparison(predicted, None, "bound", None, "all types are equally distinct, or no score moved")
    order = np.argsort(-curves.growth)
    named = ", ".join(process.label(process.keys[i]) for i in order[:5])
    at = " at equal frequency" if given_frequency else ""
    what = f"the rank correlation of z with KL(next | type || next){at}"
    reason = f"{what} is {found:+.2f} over {len(order)} types; largest z: {named}"
    if found <= NEEDS.rank < highest(found, len(order)):
        return Comparison(predicted, found, "bound", None, f"{reason}; this is within two standard errors of {NEEDS.rank}")
    return _at_rest(evidence, Comparison(predicted, found, "bound", found > NEEDS.rank, reason))


def _at_rest(evidence: TextEvidence, found: Comparison) -> Comparison:
    """A claim that fails is undecided unless the run came to rest: what is missing may still come."""
    if found.holds is not False or evidence.at_rest:
        return found
    why = f"undecided, because the run is not {LATE} times as long as its time to snap; take more --steps"
    return replace(found, holds=None, reason=f"{found.reason}; {why}")


def _held_correlation(evidence: TextEvidence) -> Comparison:
    """Training fits the noise of its windows, and so types that are distinct only there; held-out windows do not reward this."""
    curves = evidence.topics
    there = np.isfinite(curves.process.held_distinctness)
    bound = 2 / np.sqrt(max(there.sum() - 1, 1))  # two standard errors of a rank correlation
    if not evidence.learned:
        return _not_learned(f"> {bound:.2f}")
    if there.sum() < 3:
        return Comparison(f"> {bound:.2f}", None, "bound", None, f"only {there.sum()} types are in enough held-out windows")
    found = rank_correlation(curves.growth[there], curves.process.held_distinctness[there])
    what = "the rank correlation of z with distinctness in held-out windows"
    reason = f"{what} is {found:+.2f} over {there.sum()} types; two standard errors are {bound:.2f}"
    holds = True if found > bound else False if found < 0 else None
    return _at_rest(evidence, Comparison(f"> {bound:.2f}", found, "bound", holds, reason))


def _commons_fall(evidence: TextEvidence) -> Comparison:
    curves = evidence.topics
    process, growth = curves.process, curves.growth
    if not evidence.learned:
        return _not_learned("0 rise", tolerance="exact")
    common = np.flatnonzero(process.common)
    risen = common[growth[common] >= 0]
    falling = bool(risen.size) and bool(np.all(growth[risen] <= -NEEDS.doublings * late_rise(curves.scores)[risen]))
    worst = risen[np.argsort(-growth[risen])][:4]
    named = ", ".join(f"{process.label(process.keys[i])} {growth[i]:+.2f} (KL {process.distinctness[i]:.2f})" for i in worst)
    mass = f"held-out attention on common types goes {curves.common_mass[0]:.3f} -> {curves.common_mass[-1]:.3f}"
    reason = f"{common.size - risen.size} of {common.size} common types end lower; {mass}"
    reason += f"; types that end higher: {named}" if named else ""
    if falling:
        return Comparison("0 rise", int(risen.size), "exact", None, f"{reason}; all of these still fall, take more --steps")
    return _at_rest(evidence, Comparison("0 rise", int(risen.size), "exact", not risen.size, reason))


def _mass_doubles(evidence: TextEvidence) -> Comparison:
    curves = evidence.topics
    mass, count, predicted = curves.distinct_mass, int(curves.process.distinct.sum()), f">= {NEEDS.growth}"
    if not evidence.learned:
        return _not_learned(predicted)
    if not mass[0]:
        return Comparison(predicted, None, "bound", None, f"none of the {count} distinct types is in a held-out window")
    factor = float(mass[-1] / mass[0])
    reason = f"held-out attention on {count} distinct types goes {mass[0]:.3f} -> {mass[-1]:.3f}, {factor:.2f} times"
    lacking, rise = NEEDS.growth * mass[0] - mass[-1], float(late_rise(mass))
    if 0 < lacking <= NEEDS.doublings * rise:
        why = f"it rises by {rise:.3f} per doubling of --steps, so {lacking / rise:.1f} more doublings may suffice"
        return Comparison(predicted, factor, "bound", None, f"{reason}; {why}")
    return _at_rest(evidence, Comparison(predicted, factor, "bound", factor >= NEEDS.growth, reason))


def _snap_regime(evidence: TextEvidence) -> Regime:
    decays = "the step size decays, and attention stops with the steps, which is no snap"
    return regime_of(
        (not evidence.decays, decays),
        (not evidence.is_adam, ADAM.sentence),
        holds=f"gradient steps at the constant rate {evidence.rate:g}",
    )


def _snaps(evidence: TextEvidence) -> Comparison:
    late = late_motion(evidence.curves)
    if late is None:
        return _too_short(f"< {FREEZE.variation}")
    if not evidence.scan.size:
        why = "the prior was not learned before the end, so there is no scan yet; take more --steps"
        return Comparison(f"< {FREEZE.variation}", late, "bound", None, why)
    moved = evidence.curves.motion.variation[evidence.scan]
    top, level = float(np.max(moved)), FREEZE.level(moved)
    reason = f"total variation per {INTERVAL} steps after the prior is {top:.3f} at most and {late:.3f} in the last tenth"
    if late >= level and top < FREEZE.variation:
        return Comparison(f"< {level:.3g}", late, "bound", None, f"{reason}; attention hardly moved at any time")
    rise = float(late_rise(moved))
    # topical classes have one scan, whose peak may still come; in the transformer motion that rises goes on rising
    pace = abs(rise) if evidence.has_topics else -rise
    if 0 < late - level <= NEEDS.doublings * pace:
        why = f"it changes by {rise:+.3f} per doubling of --steps; take more steps"
        return Comparison(f"< {level:.3g}", late, "bound", None, f"{reason}; {why}")
    return Comparison(f"< {level:.3g}", late, "bound", late < level, reason)


def _rate_regime(evidence: TextEvidence) -> Regime:
    if evidence.has_topics:
        return _FULL
    back = "the step size decays, and sparsity belongs to the current rate, so entropy rises again"
    return regime_of((not evidence.decays, back), holds=f"constant rate {evidence.rate:g}, compared with half of it")


def _larger_sparser(evidence: TextEvidence) -> Comparison:
    here = late_entropy(evidence.curves)
    if evidence.decays:  # a companion run would decide nothing
        curve = evidence.curves.entropy
        why = f"entropy goes {curve[0]:.3f} -> {curve.min():.3f} -> {here:.3f} nats"
        return Comparison("sparser", here, "sign", None, why)
    if not evidence.learned:
        return _not_learned("sparser", here, "sign")
    half = late_entropy(evidence.at_rate(evidence.rate / 2))
    numbers = f"{here:.3f} nats at rate {evidence.rate:g} and {half:.3f} at half of it"
    reason = f"entropy of held-out attention is {numbers}, with the same seed and steps"
    return Comparison(f"< {half:.4g}", here, "sign", here < half, reason)


def _freezing_regime(evidence: TextEvidence) -> Regime:
    return _FULL if evidence.has_topics else Regime(True, "decaying rate" if evidence.decays else "constant rate")


def _freezing(evidence: TextEvidence) -> Comparison:
    """Attention must not freeze at a constant rate; at a decaying one it must, where it does not at a constant one."""
    frozen = FREEZE.variation
    if not evidence.learned:
        return _not_learned(f">= {frozen}")
    companion = evidence.constant() if evidence.decays else evidence.curves
    here, steady = late_motion(evidence.curves), late_motion(companion)
    if here is None or steady is None:
        return _too_short(f">= {frozen}")
    numbers = f"total variation per {INTERVAL} steps at the end is {steady:.3f} at the constant rate {evidence.rate:g}"
    if np.max(companion.motion.variation) < frozen:
        return Comparison(f">= {frozen}", here, "bound", None, f"{numbers}; attention hardly moves, take a larger --lr")
    if not evidence.decays:
        state = "attention still moves" if steady >= frozen else "attention is frozen"
        reason = f"{numbers}, entropy is {late_entropy(evidence.curves):.3f} nats; {state}"
        return Comparison(f">= {frozen}", steady, "bound", steady >= frozen, reason)
    holds = here < frozen <= steady
    return Comparison(f"< {frozen}", here, "bound", holds, f"{numbers} and {here:.3f} at the decaying rate")


CLAIMS = (
    claim("SnS:lemma-1", "Row sums of Y and Z are conserved", _gradient_regime, row_sums, "start", "end"),
    claim(
        "SnS:text-distinct",
        "Scores rank types by how distinct they are (rank correlation above 0.5)",
        _topical,
        _correlation,
        "end",
    ),
    claim(
        "SnS:text-frequency",
        "Scores rank types by how distinct they are, at equal frequency",
        _topical,
        lambda e: _correlation(e, given_frequency=True),
        "end",
    ),
    claim("SnS:text-held", "Scores rank types by how distinct they are in held-out text", _held_types, _held_correlation, "end"),
    claim(
        "SnS:text-common", "All common types end with less score than they began", _common_regime, _commons_fall, "prior", "end"
    ),
    claim("SnS:text-mass", "Attention on distinct types of held-out text at least doubles", _held, _mass_doubles, "prior", "end"),
    claim("SnS:text-snap", "Attention snaps at a constant rate: it moves, then freezes", _snap_regime, _snaps, "peak", "snap"),
    claim(
        "SnS:text-rate", "A larger learning rate makes attention of the transformer sparser", _rate_regime, _larger_sparser, "end"
    ),
    claim("SnS:text-freezing", "Freezing of the full transformer needs a decaying rate", _freezing_regime, _freezing, "end"),
)
