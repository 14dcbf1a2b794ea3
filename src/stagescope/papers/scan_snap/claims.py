"""The statements of scan and snap as claims that can be checked on a run. Its theorems are in `claims_theorems`."""

from functools import partial
from itertools import pairwise

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement, beyond_chance, not_applicable, regime_of, undecided
from stagescope.dynamics.dynamics import SolveFailed
from stagescope.papers.scan_snap import claims_theorems
from stagescope.papers.scan_snap.companion_options import long_modified, one_query_each, slow_attention
from stagescope.papers.scan_snap.evidence import ADAM, BATCHES, Evidence, not_moved
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.observables import ClassAttention
from stagescope.params import key

# What attention does while it scans: theorem 2 about the signs of scores, and the order among distinct tokens.


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
        return not_applicable("there are no common tokens")
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


def _sign(evidence: Evidence, wanted: float) -> Comparison:
    """Whether the scores of distinct tokens (1), or of common ones (-1), move this way only.

    At every frame without batches, by the end with batches.

    Changes and errors are in units of the largest change. Without batches there is no error. With batches there are two: the
    spread over other batches, and the bias of contexts of L tokens. A token that a context shows L P(l|n) times has
    f_l^2 / (L P(l|n)) of the pull as bias, against a growth of kappa f^2 of the winner.
    """
    if evidence.still:
        return not_moved(0.0, LIMITS.rounding)
    curves, unit = evidence.curves, "of the largest change of a score"
    which = curves.supports.common == (wanted < 0)
    if evidence.sampled:
        mean, spread = evidence.spread(_changes)
        largest = float(np.max(np.abs(mean)))
        on, length = curves.supports, evidence.run.spec["field"]["length"]
        top = on.tops(np.where(on.common, 0.0, on.chance))
        kappa = evidence.leverage(-1, curves.winners)
        error = np.hypot(spread, largest * on.chance / (top**2 * length * kappa)[on.of])
        change, error, tolerance = mean / largest, error / largest, LIMITS.small
    else:
        moves = (curves.dz if evidence.is_flow else curves.z - curves.z[:1])[1:]
        largest = np.max((curves.fastest if evidence.is_flow else curves.farthest)[1:])
        change = wanted * np.min(wanted * moves, axis=0) / largest  # the most wrong of all frames
        error, tolerance = np.zeros_like(change), LIMITS.rounding
    wrong, error = -wanted * change[which], error[which]
    holds = True if np.all(wrong + error <= tolerance) else False if np.any(wrong - error > tolerance) else None
    worst = int(np.argmax(wrong - error if holds is False else wrong + error))  # the token shown is the one that decides
    moved = max(0.0, float(wrong[worst]))
    kind = "common" if wanted < 0 else "distinct"
    reason = f"of {len(wrong)} scores of {kind} tokens the worst moves the wrong way by {moved:.2g} {unit}"
    return Comparison(0.0, moved, tolerance, holds, reason, measured_error=float(error[worst]), unit=unit)


def _order(evidence: Evidence) -> Comparison:
    """Of two distinct tokens of a class, the rarer one must not grow more; judged against shuffled tokens."""
    if evidence.still:
        return not_moved("above chance", "above")
    on, change = evidence.curves.supports, evidence.spread(_changes)[0]
    owned = [low + np.flatnonzero(~on.common[low:high]) for low, high in pairwise(on.start)]
    pairs = [np.array(np.meshgrid(own, own, indexing="ij")).reshape(2, -1) for own in owned]
    rare, frequent = np.concatenate(pairs, axis=1)
    differ = on.chance[frequent] - on.chance[rare] > 1e-12
    rare, frequent = rare[differ], frequent[differ]
    if not len(rare):
        return undecided("no two distinct tokens of a class differ in P(l|n)", "above chance", "above")
    tie = 1e-9 * float(np.max(np.abs(change)))

    def in_order(growth: np.ndarray) -> float:
        """The share of pairs that keep the order of P(l|n)."""
        return int(np.count_nonzero(growth[frequent] - growth[rare] >= -tie)) / len(rare)

    def shuffled() -> np.ndarray:
        """Growth with the distinct tokens of each class shuffled."""
        growth = change.copy()
        for own in owned:
            growth[own] = random.permutation(change[own])
        return growth

    measured, random = in_order(change), key(evidence.run.seed or 0, "claims", "order")
    chance = [in_order(shuffled()) for _ in range(LIMITS.permutations)]
    reason = f"{measured:.1%} of {len(rare)} pairs of distinct tokens keep the order of P(l|n)"
    least = -np.inf if evidence.sampled else LIMITS.order  # batches and short contexts may swap any number of close pairs
    return beyond_chance(measured, np.array(chance), reason, least=least, unit="share of pairs")


# What is left after the scan: attention almost frozen, on a fixed combination of several tokens.


def promised(evidence: Evidence) -> tuple[float, float]:
    """The share of the way to ten times this time that theorems 1 and 4 put behind attention, and its error [SnS:snap].

    The way ahead is extrapolated from the last factor of three in time; so is what the theory says of it.

    The way goes as B = 1/4 ln(1 + u) with u ~ x^2. The logit x is that of the run, and u = e^{-4 z_ct} - 1 at its end. So
    B ~ t^q, with q from the last factor of three in time, and the share is 10^-q. Two errors are computed: the theorems are
    used to leading order in 1/x, and the gradient's decoder adds to q.
    """
    curves, end = evidence.curves, evidence.end
    gaps = [evidence.at(evidence.logit_gaps, when) for when in (end / LIMITS.longer, end)]
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
        before, now = (float(curves.readout.on_targets[evidence.frame(when)]) for when in (end / LIMITS.longer, end))
        steeper += max(float(np.log(now / before)) / np.log(LIMITS.longer), 0.0) if before > 0 else 0.0
    return 10.0**-q, 10.0**-q - 10.0**-steeper


def _snap_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    if evidence.commons == 0:
        return not_applicable("there are no common tokens")
    (share, error), level = promised(evidence), LIMITS.snap_behind
    said = f"by theorems 1 and 4, attention has gone {share:.0%} (error {error:.0%}) of its way to ten times this time"
    return regime_of((share - error >= level, f"{said}; {level:.0%} are not certain"), holds=said)


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
    early = evidence.end / 10
    moved = evidence.at(evidence.curves.moved, early)
    slow = evidence.events["slow"].time
    return regime_of(
        (slow is not None and slow <= early, "the run does not last a decade of time after attention has slowed down"),
        (moved >= LIMITS.small, f"only {moved:.2g} of all attention had moved a decade before the end"),
        holds=f"{moved:.2g} of all attention had moved a decade of time before the end",
    )


def _last_decade(curves: ClassAttention) -> float:
    """Share of the attention on distinct tokens that changed places in the last decade of time, mean over classes."""
    on, early = curves.supports, int(np.argmin(np.abs(curves.time - curves.time[-1] / 10)))
    own = curves.c[[early, -1]] * ~on.common
    before, after = own / on.sums(own)[:, on.of]
    return float(on.sums(np.abs(after - before)) @ curves.prior) / 2


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
    left = float(np.exp(entropy[-1]))
    holds = True if measured + error < level else False if measured - error > level else None
    reason = f"attention ends on {left:.2f} distinct tokens of a class, of {np.exp(entropy[0]):.2f} at the start (exp of entropy)"
    return Comparison(f"< {level:g}", measured, "bound", holds, reason, None, error, "of the entropy at the start")


# How sparse attention ends, with the ratio of the rates.


def _sparsity_regime(evidence: Evidence) -> Regime:
    if not evidence.is_flow or evidence.run.frames < 2:
        return not_applicable("the claim is about the flow")
    if not (evidence.rates["Y"] > 0 and evidence.rates["Z"] > 0):
        return Regime(False, "a rate is zero")
    return regime_of(
        (evidence.modified, "the decoder is the gradient's; its entropy is U-shaped over eta_Y/eta_Z"),
        (evidence.events["slow"].time is not None, "attention has not slowed down yet, so its sparsity is not final"),
        (evidence.material, f"only {evidence.curves.moved[-1]:.2g} of all attention has moved"),
        (
            LIMITS.slow_attention / evidence.ratio <= LIMITS.half,
            f"eta_Y/eta_Z is {evidence.ratio:.3g}, so theorem 3 is wrong by half or more",
        ),
        holds="modified decoder, faster than attention; attention has moved and slowed down",
    )


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
    curves, on = evidence.curves, evidence.curves.supports
    there = float(curves.mean(on.entropy(on.attention(companion["Z"][on.row, on.key]))))
    here, ratio = evidence.final_entropy, f"eta_Y/eta_Z = {evidence.ratio:.3g}"
    reason = f"entropy on distinct tokens is {here:.5f} nats at {ratio} and {there:.5f} at three times this ratio"
    rise = there - here
    error = 2**0.5 * LIMITS.solver * float(curves.mean(curves.entropy)[0])  # two flows
    holds = rise > 0 if abs(rise) - error > tolerance else None
    return Comparison("rise > 0", rise, tolerance, holds, reason, None, error, "nats")


_scan = partial(claim, rules=2, cost=BATCHES, elsewhere=one_query_each)
_frozen = partial(claim, kind="pattern", cost=BATCHES, elsewhere=long_modified)
_at_end = partial(_frozen, group="motion at the end")
CLAIMS = (
    _scan(
        "SnS:theorem-2-distinct",
        "Scores of distinct tokens grow",
        _distinct_regime,
        partial(_sign, wanted=1.0),
        "start",
        "end",
        kind="prediction",
    ),
    _scan(
        "SnS:theorem-2-common",
        "Scores of common tokens fall",
        _common_regime,
        partial(_sign, wanted=-1.0),
        "start",
        "end",
        kind="prediction",
    ),
    _scan(
        "SnS:order",
        "Distinct tokens are dropped in the order of their co-occurrence P(l|n)",
        _distinct_regime,
        _order,
        "end",
        kind="pattern",
    ),
    *claims_theorems.CLAIMS,
    _at_end(
        "SnS:snap",
        "Attention snaps: it has gone three quarters of the way that it goes in ten times the time",
        _snap_regime,
        _snap,
        "peak",
        "end",
        rules=3,
    ),
    _at_end("SnS:fixed", "The combination of distinct tokens stays almost fixed", _settled_regime, _fixed, "slow", "end"),
    _frozen(
        "SnS:several",
        "Attention ends on several distinct tokens, not on one winner",
        _several_regime,
        _several,
        "slow",
        "end",
    ),
    _frozen(
        "SnS:sparsity",
        "A larger eta_Y/eta_Z ends less sparse",
        _sparsity_regime,
        _sparsity,
        "end",
        rules=3,
        cost="1 flow, as long as the run",
        elsewhere=slow_attention,
    ),
)
