"""What attention does while it scans: theorem 2 about the signs of scores, and the order among distinct tokens."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, beyond_chance
from stagescope.keys import key
from stagescope.papers.scan_snap import nulls
from stagescope.papers.scan_snap.claims.beside import one_query_each, symmetric_commons
from stagescope.papers.scan_snap.evidence import ADAM, BATCHES, LIMITS, Evidence, not_moved, regime_of, undecided
from stagescope.papers.scan_snap.observables import ClassAttention

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
    """Change of every score since the start (classes, keys)."""
    return curves.scores[-1] - curves.scores[0]


def _grown(evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """Change of every score since the start and its error, in units of the largest change (classes, keys).

    Without batches there is no error. With batches there are two: the spread over other batches, and the bias of contexts of
    L tokens. A token that a context shows L P(l|n) times has f_l^2 / (L P(l|n)) of the pull as bias, against a growth of
    kappa f^2 of the winner.
    """
    mean, error = evidence.spread(_changes)
    largest = float(np.max(np.abs(mean)))
    if evidence.sampled:
        table, length = evidence.curves.table, evidence.run.spec["field"]["length"]
        top = np.max(np.where(evidence.curves.distinct, table, 0.0), axis=1)
        kappa = evidence.leverage(-1, evidence.winners)
        error = np.hypot(error, largest * table / (top**2 * length * kappa)[:, None])
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
        moves = (curves.velocity if evidence.is_flow else curves.scores - curves.scores[:1])[1:]
        change = wanted * np.min(wanted * moves, axis=0) / np.max(np.abs(moves))  # the most wrong of all frames
        error, tolerance = np.zeros_like(change), LIMITS.sign
    wrong, error = -wanted * change[which], error[which]
    holds = True if np.all(wrong + error <= tolerance) else False if np.any(wrong - error > tolerance) else None
    worst = int(np.argmax(wrong - error if holds is False else wrong + error))  # the token shown is the one that decides
    moved = max(0.0, float(wrong[worst]))
    reason = f"of {len(wrong)} {what} the worst moves the wrong way by {moved:.2g} of the largest change of a score"
    unit = "of the largest change of a score"
    return Comparison(0.0, moved, tolerance, holds, reason, measured_error=float(error[worst]), unit=unit)


def _distinct_grow(evidence: Evidence) -> Comparison:
    return _sign(evidence, 1.0, evidence.curves.distinct, "scores of distinct tokens")


def _common_fall(evidence: Evidence) -> Comparison:
    return _sign(evidence, -1.0, evidence.curves.common, "scores of common tokens")


def _order(evidence: Evidence) -> Comparison:
    """Of two distinct tokens of a class, the rarer one must not grow more; judged against shuffled tokens."""
    if evidence.still:
        return not_moved("above chance", "above")
    curves = evidence.curves
    pairs = [_pairs(curves, n) for n in range(evidence.classes)]
    total = sum(len(rare) for rare, _ in pairs)
    if total == 0:
        return undecided("no two distinct tokens of a class differ in P(l|n)", "above chance", "above")
    change = evidence.spread(_changes)[0]
    measured = _kept(change, pairs, total)
    random = key(evidence.run.seed or 0, "claims", "order")
    chance = [_kept(_shuffled(change, curves.distinct, random), pairs, total) for _ in range(PERMUTATIONS)]
    reason = f"{measured:.1%} of {total} pairs of distinct tokens keep the order of P(l|n)"
    least = -np.inf if evidence.sampled else LIMITS.order  # batches and short contexts may swap any number of close pairs
    return beyond_chance(measured, np.array(chance), reason, least=least, unit="share of pairs")


def _pairs(curves: ClassAttention, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of distinct tokens of a class, (rarer, more frequent), as flat places of (classes, keys)."""
    own = np.flatnonzero(curves.distinct[n])
    rare, frequent = np.meshgrid(own, own, indexing="ij")
    keep = curves.table[n, frequent] - curves.table[n, rare] > 1e-12
    width = curves.table.shape[1]
    return n * width + rare[keep], n * width + frequent[keep]


def _kept(growth: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray]], total: int) -> float:
    flat, tie = growth.ravel(), 1e-9 * float(np.max(np.abs(growth)))
    return sum(int(np.sum(flat[frequent] - flat[rare] >= -tie)) for rare, frequent in pairs) / total


def _shuffled(growth: np.ndarray, distinct: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Growth with the distinct tokens of each class shuffled."""
    out = growth.copy()
    for n, own in enumerate(distinct):
        out[n, own] = random.permutation(growth[n, own])
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
