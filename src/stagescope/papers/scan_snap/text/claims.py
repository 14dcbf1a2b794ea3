"""Scan and snap on real text: what the paper says of it, as claims that can be put to a run on any corpus and query word."""

from dataclasses import replace

import numpy as np

from stagescope.claims.claim import Claim, Comparison, Regime
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
from stagescope.papers.scan_snap.text.stages import FROZEN, still

RANK, MASS = 0.5, 2.0
"""Rank correlation and growth of attention from which the text is said to show what the paper describes."""
FEWEST_TYPES, FEWEST_WINDOWS, FEWEST_DISTINCT = 30, 30, 10
"""Fewer types have a rank correlation known only to about .2; fewer windows or distinct types, masses known to 20 % or worse."""
PACE = 4
"""Masses and scores drift on a logarithmic clock. One that gets there in this many more doublings of it, at the pace of the last
one, has not come to rest and decides nothing."""
_TOPICS = Regime(False, "a statement about topical classes (--model topics)", applies=False)
_FULL = Regime(False, "a statement about the full transformer (--model transformer)", applies=False)


_TOO_SHORT = f"fewer than {LATE} stretches of {INTERVAL} steps: take more --steps"
_MOVING = f"undecided until a run is {LATE} times as long as it takes to snap: take more --steps"
_UNLEARNED = "the loss never fell below that of the prior, so windows came to nothing yet: take more --steps"


def _topical(evidence: TextEvidence, *more: tuple[bool, str]) -> Regime:
    if not evidence.has_topics:
        return _TOPICS
    process = evidence.topics.process
    types, distinct = len(process.keys), int(process.distinct.sum())
    return regime_of(
        (not evidence.is_adam, "the paper speaks of gradient steps; Adam rescales every entry"),
        (types >= FEWEST_TYPES, f"{types} types are too few for ranks, {FEWEST_TYPES} are needed"),
        (distinct >= FEWEST_DISTINCT, f"{distinct} distinct types are too few for topics, {FEWEST_DISTINCT} are needed"),
        *more,
        holds=f"{len(process.nexts)} topical classes, {types} types, gradient steps",
    )


def _gradient_regime(evidence: TextEvidence) -> Regime:
    if not evidence.has_topics:
        return _TOPICS
    return ADAM if evidence.is_adam else Regime(True, "gradient steps")


def _held_regime(evidence: TextEvidence) -> Regime:
    if not evidence.has_topics:
        return _TOPICS
    windows = len(evidence.topics.process.part("held-out"))
    few = f"{windows} held-out windows are too few, {FEWEST_WINDOWS} are needed"
    start = float(evidence.topics.distinct_mass[0])
    full = f"distinct types have {start:.0%} of the attention at the start, which leaves no room to grow {MASS:g} times"
    return _topical(evidence, (windows >= FEWEST_WINDOWS, few), (start < 1 / MASS, full))


def _held_types_regime(evidence: TextEvidence) -> Regime:
    if not evidence.has_topics:
        return _TOPICS
    types, least = int(np.isfinite(evidence.topics.process.held_distinctness).sum()), evidence.topics.process.least
    few = f"{types} types are in {least} held-out windows, {FEWEST_TYPES} are needed"
    return _topical(evidence, (types >= FEWEST_TYPES, few))


def _common_regime(evidence: TextEvidence) -> Regime:
    """Theorem 2 needs common tokens that are alike in all classes; one that is distinct by the same rules is not."""
    if not evidence.has_topics:
        return _TOPICS
    process = evidence.topics.process
    if not process.common.any():
        return Regime(False, "there are no common types", applies=False)
    both = np.flatnonzero(process.common & process.distinct)
    named = ", ".join(process.label(process.keys[i]) for i in both[:4])
    return _topical(
        evidence, (not both.size, f"{both.size} common types tell the next words apart ({named}): they are no bystanders")
    )


def _correlation(evidence: TextEvidence, given_frequency: bool) -> Comparison:
    curves = evidence.topics
    process = curves.process
    if not evidence.learned:
        return Comparison(f"> {RANK}", None, "bound", None, _UNLEARNED)
    found = rank_correlation(curves.growth, process.distinctness, process.share if given_frequency else None)
    if not np.isfinite(found):
        return Comparison(f"> {RANK}", None, "bound", None, "all types are equally distinct, or no score moved: nothing to rank")
    order = np.argsort(-curves.growth)
    named = ", ".join(process.label(process.keys[i]) for i in order[:5])
    at = " at equal frequency" if given_frequency else ""
    reason = f"rank correlation of z with KL(next | type || next){at} {found:+.2f} over {len(order)} types; largest z: {named}"
    if found <= RANK < highest(found, len(order)):
        return Comparison(f"> {RANK}", found, "bound", None, f"{reason}; within two standard errors of {RANK}")
    return _at_rest(evidence, Comparison(f"> {RANK}", found, "bound", found > RANK, reason))


def _at_rest(evidence: TextEvidence, found: Comparison) -> Comparison:
    """What fails in a run that ended under way may still come: only rest decides against it."""
    if found.holds is not False or evidence.at_rest:
        return found
    return replace(found, holds=None, reason=f"{found.reason}; {_MOVING}")


def _held_correlation(evidence: TextEvidence) -> Comparison:
    """Training windows reward the chance in them, and with it types that are distinct only there; held-out ones do not."""
    curves = evidence.topics
    there = np.isfinite(curves.process.held_distinctness)
    bound = 2 / np.sqrt(max(there.sum() - 1, 1))  # two standard errors of a rank correlation
    if not evidence.learned or there.sum() < 3:
        return Comparison(
            f"> {bound:.2f}", None, "bound", None, _UNLEARNED if not evidence.learned else "hardly a type is held out"
        )
    found = rank_correlation(curves.growth[there], curves.process.held_distinctness[there])
    reason = (
        f"rank correlation of z with distinctness in held-out windows {found:+.2f} over {there.sum()} types, chance {bound:.2f}"
    )
    holds = True if found > bound else False if found < 0 else None
    return _at_rest(evidence, Comparison(f"> {bound:.2f}", found, "bound", holds, reason))


def _commons_fall(evidence: TextEvidence) -> Comparison:
    curves = evidence.topics
    process, growth = curves.process, curves.growth
    if not evidence.learned:
        return Comparison("0 rise", None, "exact", None, _UNLEARNED)
    common = np.flatnonzero(process.common)
    risen = common[growth[common] >= 0]
    falling = bool(risen.size) and bool(np.all(growth[risen] <= -PACE * late_rise(curves.scores)[risen]))
    worst = risen[np.argsort(-growth[risen])][:4]
    named = ", ".join(f"{process.label(process.keys[i])} {growth[i]:+.2f} (KL {process.distinctness[i]:.2f})" for i in worst)
    mass = f"held-out mass on common types {curves.common_mass[0]:.3f} -> {curves.common_mass[-1]:.3f}"
    reason = f"{common.size - risen.size} of {common.size} common types end lower; {mass}" + (
        f"; higher: {named}" if named else ""
    )
    if falling:
        return Comparison("0 rise", int(risen.size), "exact", None, f"{reason}; all of them still fall: take more --steps")
    return _at_rest(evidence, Comparison("0 rise", int(risen.size), "exact", not risen.size, reason))


def _mass_doubles(evidence: TextEvidence) -> Comparison:
    curves = evidence.topics
    mass, count = curves.distinct_mass, int(curves.process.distinct.sum())
    if not evidence.learned:
        return Comparison(f">= {MASS}", None, "bound", None, _UNLEARNED)
    if not mass[0]:
        return Comparison(f">= {MASS}", None, "bound", None, f"none of the {count} distinct types is in a held-out window")
    factor = float(mass[-1] / mass[0])
    reason = f"held-out mass on {count} distinct types {mass[0]:.3f} -> {mass[-1]:.3f}, {factor:.2f} times"
    lacking, rise = MASS * mass[0] - mass[-1], float(late_rise(mass))
    if 0 < lacking <= PACE * rise:
        why = f"rising by {rise:.3f} in a doubling of --steps, of which {lacking / rise:.1f} more may do"
        return Comparison(f">= {MASS}", factor, "bound", None, f"{reason}, {why}")
    return _at_rest(evidence, Comparison(f">= {MASS}", factor, "bound", factor >= MASS, reason))


def _snap_regime(evidence: TextEvidence) -> Regime:
    decays = "the step size decays: attention then stops with the steps, which is no snap"
    return regime_of(
        (not evidence.decays, decays),
        (not evidence.is_adam, "the paper speaks of gradient steps; Adam rescales every entry"),
        holds=f"gradient steps at the constant rate {evidence.rate:g}",
    )


def _snaps(evidence: TextEvidence) -> Comparison:
    late = late_motion(evidence.curves)
    if late is None or not evidence.scan.size:
        why = _TOO_SHORT if late is None else "the prior was not learned before the end: there was no scan yet, take more --steps"
        return Comparison(f"< {FROZEN}", late, "bound", None, why)
    moved = evidence.curves.motion.variation[evidence.scan]
    top, level = float(np.max(moved)), still(moved)
    reason = f"total variation per {INTERVAL} steps after the prior: {top:.3f} at most, {late:.3f} in the last tenth"
    if late >= level and top < FROZEN:
        return Comparison(f"< {level:.3g}", late, "bound", None, f"{reason}: attention hardly moved at any time")
    rise = float(late_rise(moved))
    # the one scan of topical classes may not have come to its peak; a transformer goes on hopping, ever more
    pace = abs(rise) if evidence.has_topics else -rise
    if 0 < late - level <= PACE * pace:
        why = f"changing by {rise:+.3f} in a doubling of --steps: take more of them"
        return Comparison(f"< {level:.3g}", late, "bound", None, f"{reason}, {why}")
    return Comparison(f"< {level:.3g}", late, "bound", late < level, reason)


def _rate_regime(evidence: TextEvidence) -> Regime:
    if evidence.has_topics:
        return _FULL
    back = "the step size decays, and sparsity is that of the current rate: entropy comes back"
    return regime_of((not evidence.decays, back), holds=f"constant rate {evidence.rate:g}, compared with half of it")


def _larger_sparser(evidence: TextEvidence) -> Comparison:
    here = late_entropy(evidence.curves)
    if evidence.decays:  # a run beside it would decide nothing
        first = evidence.curves.entropy[0]
        return Comparison(
            "sparser", here, "sign", None, f"entropy {first:.3f} -> {evidence.curves.entropy.min():.3f} -> {here:.3f}"
        )
    if not evidence.learned:
        return Comparison("sparser", here, "sign", None, _UNLEARNED)
    half = late_entropy(evidence.at_rate(evidence.rate / 2))
    reason = f"entropy of held-out attention {here:.3f} at rate {evidence.rate:g}, {half:.3f} at half of it, same seed and steps"
    return Comparison(f"< {half:.4g}", here, "sign", here < half, reason)


def _freezing_regime(evidence: TextEvidence) -> Regime:
    return _FULL if evidence.has_topics else Regime(True, "decaying rate" if evidence.decays else "constant rate")


def _freezing(evidence: TextEvidence) -> Comparison:
    """A constant rate must not freeze; a decaying one must, where the same run at a constant rate does not."""
    if not evidence.learned:
        return Comparison(f">= {FROZEN}", None, "bound", None, _UNLEARNED)
    beside = evidence.constant() if evidence.decays else evidence.curves
    here, steady = late_motion(evidence.curves), late_motion(beside)
    if here is None or steady is None:
        return Comparison(f">= {FROZEN}", None, "bound", None, _TOO_SHORT)
    said = f"total variation per {INTERVAL} steps at the end: {steady:.3f} at the constant rate {evidence.rate:g}"
    if np.max(beside.motion.variation) < FROZEN:
        return Comparison(f">= {FROZEN}", here, "bound", None, f"{said}: attention hardly moves at any time, take a larger --lr")
    if not evidence.decays:
        entropy = late_entropy(evidence.curves)
        state = "it still hops" if steady >= FROZEN else "it is frozen"
        return Comparison(f">= {FROZEN}", steady, "bound", steady >= FROZEN, f"{said}, entropy {entropy:.3f}: {state}")
    holds = here < FROZEN <= steady
    return Comparison(f"< {FROZEN}", here, "bound", holds, f"{said}, {here:.3f} with decay")


CLAIMS = (
    Claim(
        tag="SnS:lemma-1",
        statement="Row sums of Y and Z are conserved",
        regime=_gradient_regime,
        compare=row_sums,
        shown=("start", "end"),
    ),
    Claim(
        tag="SnS:text-distinct",
        statement="Scores rank types by how distinct they are (rank correlation above .5)",
        regime=_topical,
        compare=lambda e: _correlation(e, given_frequency=False),
        shown=("end",),
    ),
    Claim(
        tag="SnS:text-frequency",
        statement="Scores rank types by how distinct they are, at equal frequency",
        regime=_topical,
        compare=lambda e: _correlation(e, given_frequency=True),
        shown=("end",),
    ),
    Claim(
        tag="SnS:text-held",
        statement="Scores rank types by how distinct they are in held-out text",
        regime=_held_types_regime,
        compare=_held_correlation,
        shown=("end",),
    ),
    Claim(
        tag="SnS:text-common",
        statement="All common types end with less score than they began",
        regime=_common_regime,
        compare=_commons_fall,
        shown=("prior", "end"),
    ),
    Claim(
        tag="SnS:text-mass",
        statement="Attention on distinct types of held-out text at least doubles",
        regime=_held_regime,
        compare=_mass_doubles,
        shown=("prior", "end"),
    ),
    Claim(
        tag="SnS:text-snap",
        statement="Attention snaps at a constant rate: it moves, then freezes",
        regime=_snap_regime,
        compare=_snaps,
        shown=("peak", "snap"),
    ),
    Claim(
        tag="SnS:text-rate",
        statement="A larger learning rate makes attention of the transformer sparser",
        regime=_rate_regime,
        compare=_larger_sparser,
        shown=("end",),
    ),
    Claim(
        tag="SnS:text-freezing",
        statement="Freezing of the full transformer needs a decaying rate",
        regime=_freezing_regime,
        compare=_freezing,
        shown=("end",),
    ),
)
