"""What attention does by the statements of scan and snap, as claims that can be checked on a run: it scans, then it snaps."""

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from stagescope.claims.comparison import (
    Comparison,
    Regime,
    agreement,
    beyond_chance,
    narrowed,
    not_applicable,
    regime_of,
    undecided,
)
from stagescope.core.params import key
from stagescope.flow.dynamics import SolveFailed
from stagescope.papers.scan_snap import companion_options as options
from stagescope.papers.scan_snap.claims_theorems import claim
from stagescope.papers.scan_snap.evidence import (
    ADAM,
    BATCHES,
    Evidence,
    common_regime,
    distinct_regime,
    fast_decoder,
    modified_regime,
    not_moved,
    silent,
    theory,
)
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.loss import PairwiseResidual
from stagescope.papers.scan_snap.observables import ClassAttention

_scan = partial(claim, cost=BATCHES, elsewhere=options.one_query_each)
_frozen = partial(claim, cost=BATCHES, elsewhere=options.long_modified)


# What attention does while it scans: theorem 2 about the signs of scores, and the order among distinct tokens.


def _changes(curves: ClassAttention) -> np.ndarray:
    """Change of every score since the start (entries,)."""
    return curves.z[-1] - curves.z[0]


def _sign(evidence: Evidence, sign: float) -> Comparison:
    """Whether the scores of distinct tokens (1), or of common ones (-1), move this way only.

    At every frame without batches, by the end with batches.

    Changes and errors are in units of the largest change. Without batches there is no error. With batches there are two: the
    spread over other batches, and the bias of contexts of L tokens. A token that a context shows L P(l|n) times has
    f_l^2 / (L P(l|n)) of the pull as bias, against a growth of kappa f^2 of the winner.
    """
    if evidence.still:
        return not_moved(0.0, LIMITS.rounding)
    curves, unit = evidence.curves, "of the largest change of a score"
    which = curves.supports.common == (sign < 0)
    if evidence.sampled:
        mean, spread = evidence.spread(_changes)
        largest = float(np.max(np.abs(mean)))
        supports, length = curves.supports, evidence.run.spec["field"]["length"]
        top = supports.tops(np.where(supports.common, 0.0, supports.chance))
        kappa = evidence.leverage(-1, curves.winners)
        error = np.hypot(spread, largest * supports.chance / (top**2 * length * kappa)[supports.of])
        change, error, tolerance = mean / largest, error / largest, LIMITS.small
    else:
        moves = (curves.dz if evidence.is_flow else curves.z - curves.z[:1])[1:]
        largest = np.max((curves.fastest if evidence.is_flow else curves.farthest)[1:])
        change = sign * np.min(sign * moves, axis=0) / largest  # the most wrong of all frames
        error, tolerance = np.zeros_like(change), LIMITS.rounding
    wrong, error = -sign * change[which], error[which]
    holds = True if np.all(wrong + error <= tolerance) else False if np.any(wrong - error > tolerance) else None
    worst = int(np.argmax(wrong - error if holds is False else wrong + error))  # the token shown is the one that decides
    reversal = max(0.0, float(wrong[worst]))
    kind = "common" if sign < 0 else "distinct"
    reason = f"of {len(wrong)} scores of {kind} tokens the worst moves the wrong way by {reversal:.2g} {unit}"
    return Comparison(0.0, reversal, tolerance, holds, reason, measured_error=float(error[worst]), unit=unit)


_scan("SnS:theorem-2-distinct", distinct_regime)(partial(_sign, sign=1.0))
_scan("SnS:theorem-2-common", common_regime)(partial(_sign, sign=-1.0))


def _in_order(evidence: Evidence, rank: np.ndarray, comparable: Any, name: str) -> Comparison:
    """Of two distinct tokens of a class, that of lower rank must not grow more; judged against shuffled tokens.

    `comparable(a, b)` says which pairs of entries count.
    """
    if evidence.still:
        return not_moved("above chance", "above")
    supports, change = evidence.curves.supports, evidence.spread(_changes)[0]
    distinct = [low + np.flatnonzero(~supports.common[low:high]) for low, high in pairwise(supports.start)]
    pairs = [np.array(np.meshgrid(entries, entries, indexing="ij")).reshape(2, -1) for entries in distinct]
    low, high = np.concatenate(pairs, axis=1)
    differ = (rank[high] - rank[low] > 1e-12) & comparable(low, high)
    low, high = low[differ], high[differ]
    if not len(low):
        return undecided(f"no two distinct tokens of a class differ in {name}", "above chance", "above")
    tie = 1e-9 * float(np.max(np.abs(change)))

    def in_order(growth: np.ndarray) -> float:
        """The share of pairs that keep the order."""
        return int(np.count_nonzero(growth[high] - growth[low] >= -tie)) / len(low)

    def shuffled() -> np.ndarray:
        """Growth with the distinct tokens of each class shuffled."""
        growth = change.copy()
        for entries in distinct:
            growth[entries] = random.permutation(change[entries])
        return growth

    measured, random = in_order(change), key(evidence.run.seed or 0, "claims", "order")
    chance = [in_order(shuffled()) for _ in range(LIMITS.permutations)]
    reason = f"{measured:.1%} of {len(low)} pairs of distinct tokens keep the order of {name}"
    least = -np.inf if evidence.sampled else LIMITS.order  # batches and short contexts may swap any number of close pairs
    return beyond_chance(measured, np.array(chance), reason, least=least, unit="share of pairs")


@_scan("SnS:order", distinct_regime)
def _order(evidence: Evidence) -> Comparison:
    return _in_order(evidence, evidence.curves.supports.chance, lambda low, high: True, "P(l|n)")


def _started(evidence: Evidence, *conditions: tuple[bool, str], holds: str) -> Regime:
    """Of claims about scores that do not start at zero."""
    regime = regime_of(
        (bool(np.any(evidence.curves.z[0])), "all scores start at zero"),
        (not evidence.is_adam, "the run is Adam's"),
        *conditions,
        holds=f"scores start unequal; {holds}",
    )
    return regime if regime.holds else not_applicable(regime.sentence)


def _prior_regime(evidence: Evidence) -> Regime:
    return _started(
        evidence,
        (not np.any(evidence.run.params["Y"][0]), "the decoder does not start at zero"),
        (evidence.own_query and evidence.own_target, "classes share a query or a target"),
        holds="the decoder starts at zero; one query and one target per class",
    )


def _bias_regime(evidence: Evidence) -> Regime:
    return _started(evidence, (evidence.is_flow, "it takes finite steps, not gradient flow"), holds="gradient flow")


@claim("SnS:prior", _prior_regime, cost=BATCHES)
def _prior(evidence: Evidence) -> Comparison:
    """r(0) of two equally frequent tokens is e^{2 (z_l(0) - z_l'(0))} - 1: the one ahead grows more."""
    chance = evidence.curves.supports.chance
    return _in_order(
        evidence, evidence.curves.z[0], lambda low, high: np.isclose(chance[low], chance[high]), "z(0) at equal P(l|n)"
    )


@claim("SnS:bias", _bias_regime)
def _bias(evidence: Evidence) -> Comparison:
    """c at the end against a companion flow whose classes have c(0) for P(l|n) and whose scores start at zero."""
    try:
        companion = evidence.companion("without_start", evidence.end)
    except SolveFailed as failure:
        return undecided(f"the companion flow {failure}", 0.0, LIMITS.entropy)
    supports, first = evidence.curves.supports, evidence.curves.c[0]
    predicted = supports.attend(first, companion["Z"][supports.row, supports.key])
    distance = float(np.max(np.abs(predicted - evidence.curves.c[-1])))
    reason = f"attention at the end differs by {distance:.2g} from that of a flow with c(0) for P(l|n) and scores from zero"
    return agreement(0.0, distance, LIMITS.entropy, reason, unit="of all attention")


# What is left after the scan: attention almost frozen, on a fixed combination of several tokens.


def promised(evidence: Evidence) -> tuple[float, float]:
    """The share of the way to ten times this time that theorems 1 and 4 put behind attention, and its error [SnS:snap].

    The way ahead is extrapolated from the last factor of three in time; so is what the theory says of it.

    The way goes as B = 1/4 ln(1 + u) with u ~ x^2. The logit x is that of the run, and u = e^{-4 z_ct} - 1 at its end. So
    B ~ t^q, with q from the last factor of three in time, and the share is 10^-q. Two errors are computed: the theorems are
    used to leading order in 1/x, and the gradient's decoder adds to q.
    """
    curves, end = evidence.curves, evidence.end
    gaps = [evidence.at(evidence.logit_gaps, time) for time in (end / LIMITS.longer, end)]
    z = float(np.mean((curves.z[-1] - curves.z[0])[curves.supports.common]))
    if not min(gaps) > 0 or not z < 0:
        return 0.0, 0.0
    u = np.expm1(min(-4 * z, 700.0))  # beyond it the exponential overflows
    q = np.log(np.log1p(u) / np.log1p(u * (gaps[0] / gaps[1]) ** 2)) / np.log(LIMITS.longer)
    q = max(float(q), 0.0)
    steeper = q * (1 + 2 / gaps[1])
    if not evidence.modified:
        # d ln w / d ln t over the last factor of three in time, where it is positive. Under the gradient a row of Y is
        # sum_n f_ln A_n with A_n = int (e_n - alpha_n) dt. Then the pull on a distinct token, g_l - f_l f.g, is f_l f_c^2 times
        # sum over m != n of -A_m . (e_n - alpha_n): the probability that class n gives to the targets of other classes. It is w
        # times all that it gives wrongly, and w grows while other outputs are unlearned.
        before, now = (float(curves.readout.on_targets[evidence.frame(time)]) for time in (end / LIMITS.longer, end))
        steeper += max(float(np.log(now / before)) / np.log(LIMITS.longer), 0.0) if before > 0 else 0.0
    return 10.0**-q, 10.0**-q - 10.0**-steeper


def _snap_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    if evidence.commons == 0:
        return not_applicable("there are no common tokens")
    (share, error), level = promised(evidence), LIMITS.snap_behind
    sentence = f"by theorems 1 and 4, attention has gone {share:.0%} (error {error:.0%}) of its way to ten times this time"
    return regime_of((share - error >= level, f"{sentence}; {level:.0%} are not certain"), holds=sentence)


@_frozen("SnS:snap", _snap_regime)
def _snap(evidence: Evidence) -> Comparison:
    """The share of the way that attention has gone by the end; it must have moved, and passed the peak of its speed."""
    level, unit = LIMITS.snap_behind, "of the way to ten times this time"
    if not evidence.material:
        return undecided(f"only {evidence.curves.moved[-1]:.2g} of all attention has moved", f">= {level:g}", "bound")
    share, error = map(float, evidence.spread(lambda curves: curves.behind[-1]))
    holds = True if share - error >= level else False if share + error < level else None
    since_when = evidence.events["snap"].time
    if holds and since_when is None:
        return undecided("attention was not frozen without interruption", f">= {level:g}", "bound")
    clock = evidence.curves.clock
    since = "" if since_when is None else f"; more than {level:.0%} since {clock}={since_when:.4g}"
    reason = f"attention has gone {share:.1%} of the way that it will have gone by {clock}={10 * evidence.end:.4g}{since}"
    return Comparison(f">= {level:g}", share, "bound", holds, reason, promised(evidence)[1], error, unit)


def _settled_regime(evidence: Evidence) -> Regime:
    """A decade of time after attention has slowed down, and after it has moved as much as may still move."""
    if evidence.is_adam:
        return ADAM
    if not evidence.rates["Z"] > 0:
        return silent("attention is frozen")
    early = evidence.end / 10
    moved_share = evidence.at(evidence.curves.moved, early)
    slow = evidence.events["slow"].time
    return regime_of(
        (slow is not None and slow <= early, "the run does not last a decade of time after attention has slowed down"),
        (moved_share >= LIMITS.small, f"only {moved_share:.2g} of all attention had moved a decade before the end"),
        holds=f"{moved_share:.2g} of all attention had moved a decade of time before the end",
    )


def _last_decade(curves: ClassAttention) -> float:
    """Share of the attention on distinct tokens that changed places in the last decade of time, mean over classes."""
    supports, early = curves.supports, int(np.argmin(np.abs(curves.time - curves.time[-1] / 10)))
    attention = curves.c[[early, -1]] * ~supports.common
    before, after = attention / supports.sums(attention)[:, supports.of]
    return float(supports.sums(np.abs(after - before)) @ curves.prior) / 2


@_frozen("SnS:fixed", _settled_regime)
def _fixed(evidence: Evidence) -> Comparison:
    measured, error = map(float, evidence.spread(_last_decade))
    reason = f"in the last decade of time {measured:.2%} of the attention on distinct tokens changed places"
    return agreement(0.0, measured, LIMITS.small, reason, measured_error=error, unit="of the attention on distinct tokens")


def _several_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    if not np.any(evidence.curves.distinct.sum(axis=1) > 1):
        return not_applicable("every class has one distinct token only")
    slow = evidence.events["slow"].time
    return regime_of(
        (slow is not None, "attention has not slowed down yet, so its end is not known"),
        (evidence.material, f"only {evidence.curves.moved[-1]:.2g} of all attention has moved"),
        holds="attention has moved and slowed down; classes have several distinct tokens",
    )


@_frozen("SnS:several", _several_regime)
def _several(evidence: Evidence) -> Comparison:
    """The loss of entropy, and what another decade of time like the last one would add as its error."""

    def lost(curves: ClassAttention) -> float:
        """Share of the entropy on distinct tokens that is lost since the start: 1 if one token takes all."""
        entropy = curves.mean(curves.entropy)
        return float(1 - entropy[-1] / entropy[0])

    level, (measured, noise) = LIMITS.half, map(float, evidence.spread(lost))
    entropy = evidence.curves.mean(evidence.curves.entropy)
    last = abs(evidence.at(entropy, evidence.end / 10) - entropy[-1]) / entropy[0]
    error = float(np.hypot(noise, last))
    used = float(np.exp(entropy[-1]))
    holds = True if measured + error < level else False if measured - error > level else None
    reason = f"attention ends on {used:.2f} distinct tokens of a class, of {np.exp(entropy[0]):.2f} at the start (exp of entropy)"
    return Comparison(f"< {level:g}", measured, "bound", holds, reason, None, error, "of the entropy at the start")


# How sparse attention ends, with the ratio of the rates.


def _sparsity_regime(evidence: Evidence) -> Regime:
    regime = modified_regime(evidence, fast_decoder(evidence), holds="modified decoder, faster than attention")
    return narrowed(
        regime,
        (evidence.run.frames >= 2, "there is one frame"),
        (evidence.events["slow"].time is not None, "attention has not slowed down yet, so its sparsity is not final"),
        (evidence.material, f"only {evidence.curves.moved[-1]:.2g} of all attention has moved"),
    )


@claim("SnS:sparsity", _sparsity_regime, elsewhere=options.slow_attention)
def _sparsity(evidence: Evidence) -> Comparison:
    """Theorem 4: Gamma ~ eta_Z x^2 / eta_Y, so at a larger eta_Y/eta_Z attention has moved less by the same time.

    It is compared with a companion flow.
    """
    tolerance = LIMITS.entropy
    if evidence.still:
        return undecided("attention has not moved", "rise > 0", tolerance)
    try:
        companion = evidence.companion("at_rates", {**evidence.rates, "Y": 3 * evidence.rates["Y"]}, evidence.end)
    except SolveFailed as failure:
        return undecided(f"the companion flow {failure}", "rise > 0", tolerance)
    curves, supports = evidence.curves, evidence.curves.supports
    companion_entropy = float(curves.mean(supports.entropy(supports.attention(companion["Z"][supports.row, supports.key]))))
    entropy, ratio = evidence.final_entropy, f"eta_Y/eta_Z = {evidence.ratio:.3g}"
    reason = f"entropy on distinct tokens is {entropy:.5f} nats at {ratio} and {companion_entropy:.5f} at three times this ratio"
    rise = companion_entropy - entropy
    error = 2**0.5 * LIMITS.solver * float(curves.mean(curves.entropy)[0])  # two flows
    holds = rise > 0 if abs(rise) - error > tolerance else None
    return Comparison("rise > 0", rise, tolerance, holds, reason, None, error, "nats")


# What section 7 says of a residual connection.


def _residual_regime(evidence: Evidence) -> Regime:
    if not isinstance(evidence.law, PairwiseResidual) or not np.any(evidence.curves.supports.local):
        return not_applicable("there is no residual connection, or no token is common to two classes of a query")
    return theory(evidence, holds="residual connection")


@claim("SnS:residual", _residual_regime)
def _residual(evidence: Evidence) -> Comparison:
    """The worst of two changes at the end, over the largest: the rise of a token common to classes of one query, and how much
    lower a token ends that is common across queries only, which a companion flow without the connection takes to be common.
    """
    tolerance = LIMITS.solver
    if evidence.still:
        return not_moved(0.0, tolerance)
    try:
        companion = evidence.companion("without_residual", evidence.end)
    except SolveFailed as failure:
        return undecided(f"the companion flow {failure}", 0.0, tolerance)
    supports, change = evidence.curves.supports, _changes(evidence.curves)
    local, largest = supports.local, float(np.max(np.abs(change)))
    gain = (change - companion["Z"][supports.row, supports.key])[supports.common & ~local]
    rise, lower = float(np.max(change[local])) / largest, float(np.max(-gain, initial=-1.0)) / largest
    worst = max(rise, lower)
    reason = f"of {np.count_nonzero(local)} scores of tokens common to classes of their query the largest change is {rise:.2g}"
    if gain.size:
        reason += f"; of {gain.size} common across queries only the least gain over no connection is {-lower:.2g}"
    holds = True if worst < -tolerance else False if worst > tolerance or (gain.size and lower >= -tolerance) else None
    return Comparison("< 0", worst, tolerance, holds, f"{reason} of the largest change", unit="of the largest change of a score")


RESIDUAL_CLAIMS = tuple(row for row in claim.claims if row.tag == "SnS:residual")
CLAIMS = tuple(row for row in claim.claims if row not in RESIDUAL_CLAIMS)
