"""Scan and snap on real text: statements of the paper as claims that can be checked on any corpus and query word.

Scores also fit the noise of their training windows. So every claim about types is judged on held-out windows, against the same
number with the next words of these windows, or the scores of types of equal frequency, in random order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, beyond_chance
from stagescope.detect.noise import TWO_SIDED
from stagescope.papers.scan_snap.claims import row_sums
from stagescope.papers.scan_snap.evidence import ADAM, regime_of
from stagescope.papers.scan_snap.text import nulls
from stagescope.papers.scan_snap.text.evidence import LATE, TextEvidence, entropy_error, late_entropy, late_motion
from stagescope.papers.scan_snap.text.observables import INTERVAL
from stagescope.papers.scan_snap.text.stages import FREEZE, SNAP, late_noise, left_at


@dataclass(frozen=True)
class Needs:
    """What a text must have for a claim to be tested."""

    types: int = 30  # with fewer types the standard error of a rank correlation is 0.2 or more


NEEDS = Needs()
_TOPICS = Regime(False, "the claim is about topical classes (--model topics)", applies=False)
_FULL = Regime(False, "the claim is about the full transformer (--model transformer)", applies=False)


def _topical(evidence: TextEvidence) -> Regime:
    """Gradient steps, and enough types whose distinctness is known on held-out windows."""
    if not evidence.has_topics:
        return _TOPICS
    process, types = evidence.topics.process, int(evidence.held.known.sum())
    few = f"{types} types are in {process.least} or more held-out windows; {NEEDS.types} are needed: lower --least"
    return regime_of(
        (not evidence.is_adam, ADAM.sentence),
        (types >= NEEDS.types, few),
        holds=f"{len(process.nexts)} topical classes, {types} types in held-out windows, gradient steps",
    )


def _gradient_regime(evidence: TextEvidence) -> Regime:
    if not evidence.has_topics:
        return _TOPICS
    return ADAM if evidence.is_adam else Regime(True, "gradient steps")


def _fewer_windows(evidence: TextEvidence) -> Mapping[str, Any] | None:
    """A lower --least with which enough types count, where there is one."""
    if not evidence.has_topics or evidence.is_adam:
        return None
    process = evidence.topics.process
    counts = np.sort(process.held_share * len(process.part("held-out")))[::-1]
    if len(counts) < NEEDS.types or counts[NEEDS.types - 1] < 2:
        return None
    return {"least": min(process.least, int(counts[NEEDS.types - 1]))}


def _judged(evidence: TextEvidence, found: tuple[float, np.ndarray], reason: str, unit: str | None = None) -> Comparison:
    """A number on held-out windows against chance; it speaks against the claim only where the scan is over."""
    measured, chance = found
    if not evidence.fitted:
        why = "the loss did not fall below that of the prior, so the model does not use the windows yet; take more --steps"
        return Comparison(None, measured, "above", None, why)
    if not np.isfinite(measured):
        return Comparison(None, None, "above", None, "all types are equally distinct, or no score moved")
    if evidence.unlearned is not None:
        return Comparison(None, measured, "above", None, f"{reason}; {evidence.unlearned}", unit=unit)
    made = beyond_chance(measured, chance, reason, measured_error=TWO_SIDED * float(np.std(chance)), unit=unit)
    if made.holds is False and not evidence.scanned:
        why = "undecided, because attention did not move most in the first third of the run; take more --steps"
        return replace(made, holds=None, reason=f"{made.reason}; {why}")
    return made


def _ranked(evidence: TextEvidence) -> Comparison:
    process, types = evidence.topics.process, int(evidence.held.known.sum())
    named = ", ".join(process.label(process.keys[i]) for i in np.argsort(-evidence.topics.growth)[:5])
    found = evidence.held.ranks
    what = "the rank correlation of z with KL(next | type || next) of held-out windows"
    return _judged(evidence, found, f"{what} is {found[0]:+.2f} over {types} types; largest z: {named}")


def _ranked_at_frequency(evidence: TextEvidence) -> Comparison:
    found = evidence.held.partial_ranks
    what = "at equal frequency the rank correlation of z with KL(next | type || next) of held-out windows"
    return _judged(evidence, found, f"{what} is {found[0]:+.2f} over {int(evidence.held.known.sum())} types")


def _attended(evidence: TextEvidence) -> Comparison:
    found = evidence.held.attended
    what = "the mean held-out distinctness of the types attended to grows by"
    return _judged(evidence, found, f"{what} {found[0]:+.3f} nats from the start to the end", unit="nats")


def _snap_regime(evidence: TextEvidence) -> Regime:
    decays = "the step size decays, and attention stops with the steps, which is no snap"
    return regime_of(
        (not evidence.decays, decays),
        (not evidence.is_adam, ADAM.sentence),
        holds=f"gradient steps at the constant rate {evidence.rate:g}",
    )


def _snaps(evidence: TextEvidence) -> Comparison:
    """The share of its way since the prior that attention goes while time triples to the end.

    It speaks against a snap only where attention goes as far as while time tripled before: such a way grows like log t or
    faster, and no longer run would end it.
    """
    motion, scan = evidence.curves.motion, evidence.scan
    if len(motion.variation) < LATE or not scan.size or evidence.peak is None:
        why = "attention did not move, or its motion did not pass a peak after the prior; take more --steps"
        return Comparison(SNAP.left, None, "at most", None, why)
    way, end = float(motion.left[scan].max()), float(motion.stop[-1])
    if way < SNAP.moved:
        return Comparison(SNAP.left, None, "at most", None, f"attention moved by {way:.3f} after the prior, hardly at all")
    before, share = (left_at(motion, scan, end / SNAP.longer**power) for power in (2, 1))
    error = late_noise(motion) / way
    reason = f"attention moved by {way:.3f} after the prior, {share:.0%} of it while time tripled to the end"
    if evidence.unlearned is not None:
        return Comparison(SNAP.left, share, "at most", None, f"{reason}; {evidence.unlearned}", measured_error=error)
    steady = share > before - share - 2 * error and evidence.peak < end / SNAP.longer**2
    holds = True if share + error <= SNAP.left else False if share - error > SNAP.left and steady else None
    if holds is None:
        reason += "; it still slows down, take more --steps"
    return Comparison(SNAP.left, share, "at most", holds, reason, measured_error=error)


def _rate_regime(evidence: TextEvidence) -> Regime:
    if evidence.has_topics:
        return _FULL
    back = "the step size decays, and sparsity belongs to the current rate, so entropy rises again"
    return regime_of((not evidence.decays, back), holds=f"constant rate {evidence.rate:g}, compared with half of it")


def _larger_sparser(evidence: TextEvidence) -> Comparison:
    here, error = late_entropy(evidence.curves), entropy_error(evidence.curves)
    if evidence.decays:  # a companion run would decide nothing
        curve = evidence.curves.entropy
        why = f"entropy goes {curve[0]:.3f} -> {curve.min():.3f} -> {here:.3f} nats"
        return Comparison("sparser", here, "sign", None, why, unit="nats")
    if evidence.unlearned is not None:
        return Comparison("sparser", here, "sign", None, evidence.unlearned, unit="nats")
    slower = evidence.at_rate(evidence.rate / 2)
    half, other = late_entropy(slower), entropy_error(slower)
    both = float(np.hypot(error, other))
    holds = True if here < half - both else False if here > half + both else None
    numbers = f"{here:.3f} nats at rate {evidence.rate:g} and {half:.3f} at half of it, with an error of {both:.3f}"
    reason = f"entropy of held-out attention is {numbers}, with the same seed and steps"
    return Comparison(half, here, "below", holds, reason, other, error, "nats")


def _freezing_regime(evidence: TextEvidence) -> Regime:
    return _FULL if evidence.has_topics else Regime(True, "decaying rate" if evidence.decays else "constant rate")


def _freezing(evidence: TextEvidence) -> Comparison:
    """Attention must not freeze at a constant rate; at a decaying one it must, where it does not at a constant one."""
    frozen = FREEZE.variation
    if evidence.unlearned is not None:
        return Comparison(frozen, None, "at least", None, evidence.unlearned)
    companion = evidence.constant() if evidence.decays else evidence.curves
    here, steady = late_motion(evidence.curves), late_motion(companion)
    if here is None or steady is None:
        why = f"the run has fewer than {LATE} intervals of {INTERVAL} steps; take more --steps"
        return Comparison(frozen, None, "at least", None, why)
    numbers = f"total variation per {INTERVAL} steps at the end is {steady:.3f} at the constant rate {evidence.rate:g}"
    if np.max(companion.motion.variation) < frozen:
        return Comparison(frozen, here, "at least", None, f"{numbers}; attention hardly moves, take a larger --lr")
    if not evidence.decays:
        state = "attention still moves" if steady >= frozen else "attention is frozen"
        reason = f"{numbers}, entropy is {late_entropy(evidence.curves):.3f} nats; {state}"
        return Comparison(frozen, steady, "at least", steady >= frozen, reason)
    holds = here < frozen <= steady
    return Comparison(frozen, here, "below", holds, f"{numbers} and {here:.3f} at the decaying rate")


_TYPES: dict[str, Any] = {
    "kind": "pattern",
    "null": (nulls.SHUFFLED, nulls.PERMUTED),
    "group": "types on text",
    "rules": 2,
    "elsewhere": _fewer_windows,
}
CLAIMS = (
    claim("SnS:lemma-1", "Row sums of Y and Z are conserved", _gradient_regime, row_sums, "start", "end", kind="identity"),
    claim(
        "SnS:text-held",
        "Scores rank types by how distinct they are in held-out text",
        _topical,
        _ranked,
        "end",
        rare=True,
        **_TYPES,
    ),
    claim(
        "SnS:text-frequency",
        "Scores rank types by how distinct they are in held-out text, at equal frequency",
        _topical,
        _ranked_at_frequency,
        "end",
        **_TYPES,
    ),
    claim(
        "SnS:text-mass",
        "Held-out attention moves to types that are distinct there",
        _topical,
        _attended,
        "prior",
        "end",
        rare=True,
        **_TYPES,
    ),
    claim(
        "SnS:text-snap",
        "Attention snaps at a constant rate: while time triples to the end, it goes at most an eighth of its way",
        _snap_regime,
        _snaps,
        "peak",
        "snap",
        kind="pattern",
        null=(nulls.SHUFFLED, nulls.CUT),
        rules=3,
        rare=True,
    ),
    claim(
        "SnS:text-rate",
        "A larger learning rate makes attention of the transformer sparser",
        _rate_regime,
        _larger_sparser,
        "end",
        kind="pattern",
        null=nulls.SHUFFLED_TRANSFORMER,
        rules=2,
    ),
    claim(
        "SnS:text-freezing",
        "Freezing of the full transformer needs a decaying rate",
        _freezing_regime,
        _freezing,
        "end",
        kind="pattern",
        null=nulls.SHUFFLED_TRANSFORMER,
        rules=2,
    ),
)
