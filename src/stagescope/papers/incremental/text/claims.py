"""Incremental learning on a text: are lags learned one by one, in the order of their importance measured on the text?

The paper is about chains whose groups of lags have features of their own. These claims apply its statements to text, which
the paper does not cover: a verdict holds for one run of a student on one text.
"""

from itertools import combinations

import numpy as np
from scipy.stats import rankdata

from stagescope.claims.claim import ClaimTable
from stagescope.claims.comparison import Comparison, Regime, agreement, beyond_chance, not_applicable, regime_of, undecided
from stagescope.core.params import key
from stagescope.detect.noise import TWO_SIDED, flutter
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.study import WORDS
from stagescope.papers.incremental.text.stages import TextEvidence

claim = ClaimTable(WORDS.claims)


def _regime(evidence: TextEvidence) -> Regime:
    """One lag is clearly the most important, and the run has frames before it was acquired."""
    information, added = evidence.information, evidence.information.added
    second = max(np.delete(added, information.first - 1), default=0.0)
    first = evidence.acquired[0][1] if evidence.acquired else np.inf
    before = int(np.sum(evidence.heads.time < first))
    importance = added[information.first - 1]
    return regime_of(
        (importance >= LIMITS.distinct * second, f"the first lag has less than {LIMITS.distinct:g} times the next"),
        (before >= LIMITS.before, f"{before} frames before t1; at least {LIMITS.before} are needed"),
        (importance > 3 * information.errors[information.first - 1], "no lag has information about the next token"),
        holds=f"lag {information.first} has {information.alone.max():.3g} nats, the next one adds {second:.3g}",
    )


def _several(evidence: TextEvidence) -> Regime:
    """The same for at least two heads that start alike."""
    if evidence.count == 1:
        return not_applicable("there is one head")
    base, cosine = _regime(evidence), float(evidence.heads.agreement[0])
    if cosine < LIMITS.together:
        return Regime(False, f"the agreement of heads at the start is {cosine:.2f}, below {LIMITS.together:g}")
    return base


@claim("ISA:text-order", _regime)
def _order(evidence: TextEvidence) -> Comparison:
    """Attention on lags has the order of the information that they add on held-out text, more than lags in random order have.

    Of two acquired lags whose importances differ by more than their error, none came before a more important one.
    """
    lags, added = [lag for lag, _ in evidence.acquired], evidence.held_information.added
    correlation = _correlation(evidence.attention, added)
    reason = f"the rank correlation of attention on lags with the information they add to held-out text is {correlation:+.2f}"
    if not lags or evidence.useless is not None:
        return Comparison(None, correlation, "above", None, f"{reason}; {evidence.useless or evidence.listing}")
    wrong = next((pair for pair in combinations(lags, 2) if evidence.information.above(pair[1], pair[0])), None)
    unacquired, above = (lag for lag in evidence.information.order if lag not in lags), evidence.information.above
    skipped = next((lag for lag in unacquired if any(above(lag, acquired_lag) for acquired_lag in lags)), None)
    if wrong is not None or skipped is not None:
        violation = f"lag {wrong[1]} is more important than lag {wrong[0]} but came later" if wrong else ""
        violation = violation or f"lag {skipped} is more important than lag {lags[-1]} but was not acquired"
        return Comparison("in order", " ".join(map(str, lags)), "order", False, f"{evidence.listing}; {violation}")
    orders = (key(0, "lags", i).permutation(added) for i in range(LIMITS.orders))
    chance = np.array([_correlation(evidence.attention, order) for order in orders])
    return beyond_chance(correlation, chance, f"{evidence.listing}; {reason}")


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's."""
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


@claim("ISA:text-competition", _several)
def _competition(evidence: TextEvidence) -> Comparison:
    """All heads attend most to the first lag of held-out text at t1; by chance each head would choose for itself."""
    if not evidence.acquired or evidence.useless is not None:
        return undecided(evidence.useless or evidence.listing, LIMITS.alike_cosine, "at least")
    (lag, time), first_lag = evidence.acquired[0], evidence.held_information.first
    frame = evidence.heads.frame(time)
    agree, tops, mass = float(evidence.heads.agreement[frame]), evidence.heads.tops(frame), evidence.heads.mass[frame]
    reason = f"{evidence.listing}; at t1 the agreement of heads is {agree:.3f}, their top lags are {' '.join(map(str, tops))}"
    if agree < LIMITS.alike_cosine or set(tops) != {lag} or lag != first_lag:
        return Comparison(LIMITS.alike_cosine, agree, "at least", False, f"{reason}; the most informative lag is {first_lag}")
    chance = [
        np.mean([row[key(0, "heads", i, h).integers(len(row))] for h, row in enumerate(mass)]) for i in range(LIMITS.orders)
    ]
    share = float(mass[:, first_lag - 1].mean())
    return beyond_chance(share, np.array(chance), f"{reason}; they give {share:.2f} of their attention to lag {first_lag}")


@claim("ISA:text-level", _regime)
def _level(evidence: TextEvidence) -> Comparison:
    """Between t1 and t2 the loss is flattest, on a logarithmic clock, near the best loss with the first lag alone."""
    limit, unit = LIMITS.broad, "share of the step"
    if not evidence.acquired or evidence.useless is not None:
        return undecided(evidence.useless or evidence.listing, 0.0, limit, unit)
    start = evidence.acquired[0][1]
    stop = evidence.acquired[1][1] if len(evidence.acquired) > 1 else evidence.heads.time[-1]
    inside = np.flatnonzero((evidence.heads.time > start) & (evidence.heads.time < stop))
    if len(inside) < 3:
        return undecided(f"fewer than three frames between t1 and t2: {evidence.listing}", 0.0, limit)
    if len(evidence.acquired) == 1 and not (evidence.long and evidence.loss_settled):
        return undecided(f"no second lag yet, and the loss has not settled: {evidence.listing}; take more --steps", 0.0, limit)
    clock, loss = evidence.heads.time[inside], evidence.heads.loss[inside]
    index = int(np.argmin(np.abs(np.gradient(loss, np.log(clock)))))
    above, below = evidence.levels
    gap = float((loss[index] - below) / (above - below))
    flattest = f"the loss is flattest at {evidence.run.clock} = {clock[index]:.4g}, at {loss[index]:.4g}"
    levels = f"level {below:.4g} with lag {evidence.information.first} alone, {above:.4g} with no lag"
    error = TWO_SIDED * float(flutter(evidence.heads.time, evidence.heads.loss)[inside[index]]) / float(above - below)
    return agreement(0.0, gap, limit, f"{flattest}; {levels} ({gap:+.0%} of the step)", measured_error=error, unit=unit)


@claim("ISA:text-parting", _several)
def _parting(evidence: TextEvidence) -> Comparison:
    """At t2 one head has left the first lag, and all others still attend most to it."""
    if len(evidence.acquired) < 2 or evidence.useless is not None:
        return undecided(evidence.useless or f"no second lag: {evidence.listing}", "one head", "exact")
    first, (second, time) = evidence.acquired[0][0], evidence.acquired[1]
    tops = evidence.heads.tops(evidence.heads.frame(time))
    departed = sum(lag != first for lag in tops)
    reason = f"{evidence.listing}; at t2 the top lags of the heads are {' '.join(map(str, tops))}"
    return Comparison("one head", f"{departed} of {len(tops)}", "exact", departed == 1 and second in tops, reason)


TEXT_CLAIMS = claim.claims
