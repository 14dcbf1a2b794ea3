"""What attention does while it scans: theorem 2 about the signs of scores, and the order among distinct tokens."""

from itertools import pairwise

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, beyond_chance
from stagescope.keys import key
from stagescope.papers.scan_snap import nulls
from stagescope.papers.scan_snap.claims.beside import one_query_each, symmetric_commons
from stagescope.papers.scan_snap.evidence import ADAM, BATCHES, LIMITS, Evidence, not_moved, regime_of, undecided
from stagescope.papers.scan_snap.observables import ClassAttention
from stagescope.papers.scan_snap.supports import Supports

PERMUTATIONS = 999


def _distinct_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    return regime_of(
        (evidence.own_query, "classes share a query, and then a distinct token can fall late"),
        (evidence.own_target, "classes share a target"),
        (evidence.zero_start, "the start is not zero"),
        holds="one query and one target per class, zero start",
    )


def _common_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    if evidence.commons == 0:
        return Regime(False, "there are no common tokens", applies=False)
    several = evidence.commons > 1
    return regime_of(
        (evidence.own_target, "classes share a target"),
        (evidence.zero_start, "the start is not zero"),
        (not several or evidence.symmetric, "several common tokens and classes that are not symmetric"),
        (not several or evidence.own_query, "several common tokens and classes that share a query"),
        holds="a single common token" if not several else f"{evidence.commons} common tokens, symmetric classes, zero start",
    )


def _changes(curves: ClassAttention) -> np.ndarray:
    """Change of every score since the start (entries,)."""
    return curves.z[-1] - curves.z[0]


def _grown(evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """Change of every score since the start and its error, in units of the largest change (entries,).

    Without batches there is no error. With batches there are two: the spread over other batches, and the bias of contexts of
    L tokens. A token that a context shows L P(l|n) times has f_l^2 / (L P(l|n)) of the pull as bias, against a growth of
    kappa f^2 of the winner.
    """
    mean, error = evidence.spread(_changes)
    largest = float(np.max(np.abs(mean)))
    if evidence.sampled:
        on, length = evidence.curves.supports, evidence.run.spec["field"]["length"]
        top = on.tops(np.where(on.common, 0.0, on.chance))
        kappa = evidence.leverage(-1, evidence.curves.winners)
        error = np.hypot(error, largest * on.chance / (top**2 * length * kappa)[on.of])
    return mean / largest, error / largest


def _sign(evidence: Evidence, wanted: float, which: np.ndarray, what: str) -> Comparison:
    """Whether the scores of some tokens move one way only: at every frame without batches, by the end with batches."""
    if evidence.still:
        return not_moved(0.0, LIMITS.sign)
    curves = evidence.curves
    if evidence.sampled:
        change, error = _grown(evidence)
        tolerance = LIMITS.batch_sign
    else:
        moves = (curves.dz if evidence.is_flow else curves.z - curves.z[:1])[1:]
        largest = np.max((curves.fastest if evidence.is_flow else curves.farthest)[1:])
        change = wanted * np.min(wanted * moves, axis=0) / largest  # the most wrong of all frames
        error, tolerance = np.zeros_like(change), LIMITS.sign
    wrong, error = -wanted * change[which], error[which]
    holds = True if np.all(wrong + error <= tolerance) else False if np.any(wrong - error > tolerance) else None
    worst = int(np.argmax(wrong - error if holds is False else wrong + error))  # the token shown is the one that decides
    moved = max(0.0, float(wrong[worst]))
    reason = f"of {len(wrong)} {what} the worst moves the wrong way by {moved:.2g} of the largest change of a score"
    unit = "of the largest change of a score"
    return Comparison(0.0, moved, tolerance, holds, reason, measured_error=float(error[worst]), unit=unit)


def _distinct_grow(evidence: Evidence) -> Comparison:
    return _sign(evidence, 1.0, ~evidence.curves.supports.common, "scores of distinct tokens")


def _common_fall(evidence: Evidence) -> Comparison:
    return _sign(evidence, -1.0, evidence.curves.supports.common, "scores of common tokens")


def _order(evidence: Evidence) -> Comparison:
    """Of two distinct tokens of a class, the rarer one must not grow more; judged against shuffled tokens."""
    if evidence.still:
        return not_moved("above chance", "above")
    on = evidence.curves.supports
    owned = [low + np.flatnonzero(~on.common[low:high]) for low, high in pairwise(on.start)]
    rare, frequent = _pairs(on, owned)
    total = len(rare)
    if total == 0:
        return undecided("no two distinct tokens of a class differ in P(l|n)", "above chance", "above")
    change = evidence.spread(_changes)[0]
    tie = 1e-9 * float(np.max(np.abs(change)))

    def kept(growth: np.ndarray) -> float:
        return int(np.count_nonzero(growth[frequent] - growth[rare] >= -tie)) / total

    measured, random = kept(change), key(evidence.run.seed or 0, "claims", "order")
    chance = [kept(_shuffled(change, owned, random)) for _ in range(PERMUTATIONS)]
    reason = f"{measured:.1%} of {total} pairs of distinct tokens keep the order of P(l|n)"
    least = -np.inf if evidence.sampled else LIMITS.order  # batches and short contexts may swap any number of close pairs
    return beyond_chance(measured, np.array(chance), reason, least=least, unit="share of pairs")


def _pairs(on: Supports, owned: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of distinct tokens of a class, (rarer, more frequent), as entries; `owned` are the distinct ones of each class."""
    found = [np.array(np.meshgrid(own, own, indexing="ij")).reshape(2, -1) for own in owned]
    rare, frequent = np.concatenate(found, axis=1)
    keep = on.chance[frequent] - on.chance[rare] > 1e-12
    return rare[keep], frequent[keep]


def _shuffled(growth: np.ndarray, owned: list[np.ndarray], random: np.random.Generator) -> np.ndarray:
    """Growth with the distinct tokens of each class shuffled."""
    out = growth.copy()
    for own in owned:
        out[own] = random.permutation(growth[own])
    return out


CLAIMS = (
    claim(
        "SnS:theorem-2-distinct",
        "Scores of distinct tokens grow",
        _distinct_regime,
        _distinct_grow,
        "start",
        "end",
        kind="prediction",
        null=(nulls.PERMUTED, nulls.WALK),
        rules=2,
        cost=BATCHES,
        elsewhere=one_query_each,
    ),
    claim(
        "SnS:theorem-2-common",
        "Scores of common tokens fall",
        _common_regime,
        _common_fall,
        "start",
        "end",
        kind="prediction",
        null=(nulls.PERMUTED, nulls.WALK),
        rules=2,
        cost=BATCHES,
        elsewhere=symmetric_commons,
    ),
    claim(
        "SnS:order",
        "Distinct tokens are dropped in the order of their co-occurrence P(l|n)",
        _distinct_regime,
        _order,
        "end",
        kind="pattern",
        null=(nulls.PERMUTED, nulls.WALK),
        rules=2,
        cost=BATCHES,
        elsewhere=one_query_each,
    ),
)
