"""Heads of rank above one: further directions open inside a head, exponentially, and plateaus are long between heads."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.papers.linear_icl import forms, nulls
from stagescope.papers.linear_icl.evidence import LIMITS, Evidence, all_drops, of_flow, separated, small_start, undecided

SMALL = 0.02
"""An opening is fitted while M_ii is below this share of its end: the push on it is then as good as constant."""


def _ranked(evidence: Evidence) -> Regime:
    found = of_flow(
        evidence,
        False,
        small_start(evidence, LIMITS.small),
        separated(evidence),
        all_drops(evidence),
        holds=f"heads of rank {evidence.model.rank} from {evidence.size:.2g} of their final value",
    )
    if found.applies and (evidence.model.rank == 1 or evidence.task.dim == 1):
        return Regime(False, "the claim is about heads of rank above one, and several directions", applies=False)
    return found


def opening_fits(evidence: Evidence) -> dict[int, tuple[float, float]]:
    """Measured and predicted rate of each direction that opens in a head that holds others, by direction.

    It is fitted over the last stretch on which v of the head is within 2 % of v_S and M_ii is small. What grows is (k_i + q_i)/2
    in rows of the head that hold nothing yet; a stretch of less than one e-fold of it is none.
    """
    values, owners, found = np.abs(np.asarray(evidence.curves.params["v"])), evidence.owners, {}
    for i in range(1, evidence.task.dim):
        held = [j for j in range(i) if owners[j] == owners[i]]
        if not held:
            continue
        wanted = forms.head_value(evidence.task, held)
        steady = np.abs(values[:, owners[i]] / wanted - 1) <= LIMITS.steady
        good = np.flatnonzero(steady & (np.abs(evidence.curves.learned[:, i]) < SMALL))
        if good.size < 5:
            continue
        stretch = good[np.flatnonzero(np.diff(good) > 1)[-1] + 1 :] if np.any(np.diff(good) > 1) else good
        rate = _growth(evidence, stretch, owners[i], held, i)
        if rate is not None:
            found[i] = rate, forms.opening_rate(evidence.task, held, i)
    return found


def _growth(evidence: Evidence, stretch: np.ndarray, head: int, held: list[int], direction: int) -> float | None:
    """The rate at which a direction opens in the rows of a head that hold nothing; None for less than an e-fold."""
    keys, queries = (np.asarray(evidence.curves.params[name])[stretch, head] for name in ("K", "Q"))
    rows = keys[:, :, held]
    grown = ((keys + evidence.signs[head] * queries) / 2)[:, :, direction]
    free = grown - np.einsum("trm,tmi,ti->tr", rows, np.linalg.pinv(rows), grown)
    size = np.linalg.norm(free, axis=1)
    if len(size) < 5 or not np.all(size > 0) or size[-1] < np.e * size[0]:
        return None
    return float(np.polyfit(evidence.curves.time[stretch], np.log(size), 1)[0])


def _rates(evidence: Evidence) -> Comparison:
    found = opening_fits(evidence)
    if not found:
        return undecided("no direction opens for an e-fold while v of its head is at rest", 1.0, LIMITS.rate)
    ratios = {i: seen / said for i, (seen, said) in found.items()}
    worst = max(ratios, key=lambda i: abs(ratios[i] - 1))
    parts = (f"direction {i + 1}: {seen:.4g} (v_S lambda^2 = {said:.4g})" for i, (seen, said) in found.items())
    return agreement(1.0, ratios[worst], LIMITS.rate, f"rates of keys and queries: {'; '.join(parts)}", unit="of v_S lambda_i^2")


def _new_heads(evidence: Evidence) -> list[int]:
    """Drops that need a new head, by number from 1: at multiples of the rank, while heads fill up one after the other."""
    rank, reach = evidence.model.rank or 1, evidence.model.reach
    return [m for m in range(1, reach + 1) if (m - 1) % rank == 0]


def _several_groups(evidence: Evidence) -> Regime:
    found = _ranked(evidence)
    if found.applies and (evidence.model.rank or 1) >= evidence.model.reach:
        return Regime(False, "one head holds all directions", applies=False)
    return found


def _plateaus(evidence: Evidence) -> Comparison:
    """The plateau before each new head against the longest inside the head before it."""
    times = np.array([when for when in evidence.times if when is not None])
    rank = evidence.model.rank or 1
    least, where = np.inf, 0
    for m in _new_heads(evidence)[1:]:
        if m > len(times):
            break
        inside = np.diff(times[m - 1 - rank : m - 1])
        ratio = float((times[m - 1] - times[m - 2]) / inside.max())
        least, where = (ratio, m - 1) if ratio < least else (least, where)
    if not np.isfinite(least):
        return undecided("no plateau at a multiple of the rank ended", 1.0)
    reason = f"plateau {where} lasts {least:.3g} times as long as the longest plateau inside the head before it"
    return Comparison(1.0, least, "above", least > 1, reason, unit="of the longest plateau inside a head")


CLAIMS = (
    claim(
        "LIN:rank",
        "A further direction of the same head opens at the rate v_S lambda_i^2",
        _ranked,
        _rates,
        "d1",
        "d*",
        kind="prediction",
        null=nulls.RANK_STRETCHED,
        rules=2,
    ),
    claim(
        "LIN:rank-plateaus",
        "Plateaus are long at multiples of the rank",
        _several_groups,
        _plateaus,
        "d1",
        "d*",
        kind="pattern",
        null=nulls.RANK_WARPED,
        rules=2,
    ),
)
