"""The statements of scan and snap as claims that can be checked on a run.

Its theorems are compared with the corrected closed forms, each with the error of what it neglects.
"""

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from stagescope.claims.claim import ClaimTable
from stagescope.claims.comparison import Comparison, Regime, agreement, beyond_chance, not_applicable, regime_of, undecided
from stagescope.detect.events import top
from stagescope.dynamics.dynamics import SolveFailed
from stagescope.papers.scan_snap import companion_options as options
from stagescope.papers.scan_snap import forms
from stagescope.papers.scan_snap.evidence import (
    ADAM,
    BATCHES,
    Evidence,
    chi_regime,
    modified_regime,
    not_moved,
    single_common_regime,
    transition_regime,
    trusted,
)
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.observables import ClassAttention
from stagescope.papers.scan_snap.study import WORDS
from stagescope.params import key

claim = ClaimTable(WORDS.claims)
_scan = partial(claim, cost=BATCHES, elsewhere=options.one_query_each)
_frozen = partial(claim, cost=BATCHES, elsewhere=options.long_modified)


def _theorem(tag: str, regime: Any, tolerance: float, elsewhere: Any = options.fast_modified) -> Any:
    """A claim where the error of what its theorem neglects is known and small beside the tolerance."""
    return lambda compare: claim(tag, trusted(regime, compare, tolerance), elsewhere=elsewhere)(compare)


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


_scan("SnS:theorem-2-distinct", _distinct_regime)(partial(_sign, wanted=1.0))
_scan("SnS:theorem-2-common", _common_regime)(partial(_sign, wanted=-1.0))


@_scan("SnS:order", _distinct_regime)
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
    curves, on = evidence.curves, evidence.curves.supports
    there = float(curves.mean(on.entropy(on.attention(companion["Z"][on.row, on.key]))))
    here, ratio = evidence.final_entropy, f"eta_Y/eta_Z = {evidence.ratio:.3g}"
    reason = f"entropy on distinct tokens is {here:.5f} nats at {ratio} and {there:.5f} at three times this ratio"
    rise = there - here
    error = 2**0.5 * LIMITS.solver * float(curves.mean(curves.entropy)[0])  # two flows
    holds = rise > 0 if abs(rise) - error > tolerance else None
    return Comparison("rise > 0", rise, tolerance, holds, reason, None, error, "nats")


# The theorems, and how well each can be trusted in a run.


@_theorem("SnS:theorem-3", chi_regime, LIMITS.small)
def chi_identity(evidence: Evidence) -> Comparison:
    """(r(t)/r(0) - 1) / (chi(t) - 1) of winner and runner-up, mean over classes, at t0 or where the run ends.

    The theorem takes the decoder to be learned at the features of now; in truth it was learned on the way here. So the pull
    on a token has a relative error of the size of the change of its f_l, and its growth one that is 1/kappa as large.
    """
    curves, when = evidence.curves, min(evidence.t0, evidence.end)
    now, parts, seconds, on = evidence.frame(when), [], curves.winners.copy(), curves.supports
    for n in range(evidence.classes):
        own = on.start[n] + np.flatnonzero(~on.common[on.start[n] : on.start[n + 1]])
        first, second = [*own[np.argsort(-curves.c[-1, own], kind="stable")][:2], -1, -1][:2]
        if second < 0 or np.isclose(on.chance[first], on.chance[second], rtol=1e-3):
            continue
        ratio = (curves.c[[0, now], first] / curves.c[[0, now], second]) ** 2 - 1
        chi = np.expm1(2 * (curves.z[now, first] - curves.z[0, first]))
        if abs(chi) <= LIMITS.rounding or abs(ratio[0]) <= LIMITS.rounding:
            return not_moved(1.0, LIMITS.small)
        parts.append((ratio[1] / ratio[0] - 1) / chi)
        seconds[n] = second
    if not parts:
        return undecided("no class has two distinct tokens that differ in P(l|n)", 1.0, LIMITS.small)
    mean = float(np.mean(parts))
    error = max(evidence.memory(when, curves.winners), evidence.memory(when, seconds))
    reason = f"at t={when:.4g}, r(t)/r(0) - 1 is {mean:.3f} times chi(t) - 1"
    return agreement(1.0, mean, LIMITS.small, reason, predicted_error=error, unit="of chi - 1")


@_theorem("SnS:theorem-1", modified_regime, LIMITS.small)
def theorem_1(evidence: Evidence) -> Comparison:
    """Own-minus-other logit over x(t), the worst from .05 to 3 t0; the error is what the motion of attention added to it."""
    time, tolerance = evidence.curves.time, LIMITS.small
    seen = (time >= 0.05 * evidence.t0) & (time <= 3 * evidence.t0)
    if not seen.any():
        return undecided(f"no frame is between .05 and 3 times t0 = {evidence.t0:.4g}", 1.0, tolerance)
    predicted = forms.logit_gap(time[seen], evidence.outputs, evidence.classes, evidence.rates["Y"])
    ratios, error = evidence.logit_gaps[seen] / predicted, float(np.max(evidence.drifts[seen] / predicted))
    worst = float(ratios[np.argmax(np.abs(ratios - 1))])
    reason = f"the own-minus-other logit is {ratios.min():.3f} to {ratios.max():.3f} times x(t)"
    reason += f"; moving attention made up to {error:.1%} of it"
    return agreement(1.0, worst, tolerance, reason, predicted_error=error, unit="of x(t)")


@_theorem("SnS:lemma-4", modified_regime, LIMITS.growth)
def lemma_4(evidence: Evidence) -> Comparison:
    """|dz/dt - lemma| / |lemma| at t0 or the end; the error is what a decoder learned at the first features would change."""
    curves = evidence.curves
    now = evidence.frame(min(evidence.t0, evidence.end))
    when, query = float(curves.time[now]), evidence.law.rows["query"]
    then, f = evidence.features(0), evidence.features(now)
    strength = float(forms.gamma(when, evidence.outputs, evidence.classes, evidence.rates["Y"]))
    facts = (strength, evidence.outputs, query, evidence.rates["Z"])
    lemma = forms.attention_velocity(f, *facts)[query]
    earlier = forms.attention_velocity(f, *facts, learned=then)[query]
    size = float(np.linalg.norm(lemma))
    if size <= LIMITS.rounding * evidence.rates["Z"] or evidence.still:
        return not_moved(0.0, LIMITS.growth)
    moving = np.zeros((int(query.max()) + 1, curves.supports.keys))
    moving[curves.supports.row, curves.supports.key] = curves.dz[now]
    apart = float(np.linalg.norm(moving[query] - lemma)) / size
    error = float(np.linalg.norm(earlier - lemma)) / size
    reason = (
        f"at t={when:.4g}, dz/dt differs from the lemma by {apart:.2%}; with a decoder from the start it differs by {error:.2%}"
    )
    return agreement(0.0, apart, LIMITS.growth, reason, predicted_error=error, unit="of |dz/dt|")


def _no_growth(evidence: Evidence) -> str:
    """Why B(t0) cannot be compared; empty if it can."""
    if evidence.classes < 2 or evidence.commons != 1 or not evidence.curves.common.any(axis=1).all():
        return "B needs several classes that share one common token"
    if not evidence.end >= evidence.t0:
        return f"the run ends before t0 = {evidence.t0:.4g}"
    return "" if evidence.rates["Z"] > 0 else "attention is frozen"


def _predicted_growth(evidence: Evidence, when: float) -> tuple[float, float]:
    """B at a time, and its relative error. Gamma keeps the prior 1/K where each class has its own query.

    Theorem 4 takes the norm of attention and 1 + (K-1) f_c^2 to be those of the start. Their relative changes until now are
    measured, and so is the memory of the decoder for earlier features. They grow from zero, so half of them is the error of
    an integral. Gamma has twice the error of the logit.
    """
    curves, classes = evidence.curves, evidence.classes
    drive = float(forms.driving(when, evidence.outputs, classes, evidence.rates["Y"], evidence.rates["Z"]))
    p = float(curves.table[0][curves.common[0]][0])
    squares = float(np.sum(curves.table[0] ** 2))
    share = p**2 / squares
    drive *= forms.small_vocabulary(share, evidence.outputs) / (classes if evidence.own_query else 1)
    u = 4 * drive / forms.start_constant(p, squares, classes)
    now = evidence.frame(when)
    own = slice(0, curves.supports.start[1])
    grown = curves.supports.chance[own] * np.exp(curves.z[now, own] - curves.z[0, own])
    norm = float(np.sum(grown**2))
    weight = float(grown[curves.supports.common[own]][0] ** 2) / norm
    change = 2 * abs(np.log(norm / squares)) + (classes - 1) * abs(weight - share) / (1 + (classes - 1) * share)
    change += evidence.memory(when, curves.supports.argtops(curves.supports.common))
    gaps = np.interp(when, evidence.curves.time, evidence.drifts / np.maximum(evidence.logit_gaps, 1e-300))
    error = (change / 2 + 2 * float(gaps)) * u / ((1 + u) * np.log1p(u))
    return 0.25 * float(np.log1p(u)), error


@_theorem("SnS:theorem-4", single_common_regime, LIMITS.growth)
def theorem_4(evidence: Evidence) -> Comparison:
    curves, tolerance = evidence.curves, LIMITS.growth
    missing = _no_growth(evidence)
    if missing:
        return undecided(missing, 1.0, tolerance)
    scores = np.mean(curves.z[:, curves.supports.common], axis=1)
    growth, error = _predicted_growth(evidence, evidence.t0)
    factor = evidence.at(scores, evidence.t0) / -growth
    reason = f"z_ct(t0) is {factor:.3f} times the corrected -B(t0) = {-growth:.3g}, which neglects {error:.1%}"
    return agreement(1.0, factor, tolerance, reason, predicted_error=error, unit="of B(t0)")


@_theorem("SnS:sandwich", single_common_regime, 2 * LIMITS.growth)
def sandwich(evidence: Evidence) -> Comparison:
    """f_l(0)^2 <= ln chi_l / (2 B) <= 1 at t0 for the winner of every class, to 10 %; B/K where all classes share one query."""
    curves = evidence.curves
    missing = _no_growth(evidence)
    if missing:
        return undecided(missing, "inside", LIMITS.growth)
    if evidence.still:
        return not_moved("inside", LIMITS.growth)
    grown = (curves.z - curves.z[:1])[:, curves.winners]
    lower = curves.c[0, curves.winners] ** 2 / curves.supports.sums(curves.c[0] ** 2)
    growth, error = _predicted_growth(evidence, evidence.t0)
    error = float(np.hypot(error, chi_identity(evidence).predicted_error or 0.0))  # the bounds are those of theorem 3
    growth /= 1 if evidence.own_query else evidence.classes
    share = np.array([evidence.at(grown[:, n], evidence.t0) for n in range(evidence.classes)]) / growth
    room = np.minimum(share - lower, 1 - share) / np.maximum(np.abs(share), LIMITS.rounding)
    holds = True if np.all(room >= error - LIMITS.growth) else False if np.any(room < -error - LIMITS.growth) else None
    reason = f"at t0, ln chi / 2B is {share.min():.3f} to {share.max():.3f}; the bounds are {lower.max():.3f} and 1"
    bounds = f"[{lower.max():.3g}, 1]"
    return Comparison(bounds, float(share.mean()), LIMITS.growth, holds, reason, error, 0.0, "of 2 B")


@_theorem("SnS:transition", transition_regime, LIMITS.transition, options.fast_gradient)
def transition(evidence: Evidence) -> Comparison:
    """When the winners grow fastest, over K ln M / eta_Y; predicted is when gamma of theorem 1 is largest.

    That is K ln M / eta_Y to leading order in ln M. Two errors are computed: features overlap, and then classes slow each
    other down by up to 1/(1 - s) under the gradient; and attention moves, while the pull on a winner falls as e^{4 z_ct} and
    the decoder remembers earlier features.
    """
    curves, tolerance = evidence.curves, LIMITS.transition
    steep = forms.steepest_time(evidence.outputs, evidence.classes, evidence.rates["Y"]) / evidence.t0
    peak = top(curves.time, curves.mean(curves.dz[:, curves.winners]))
    if evidence.still or peak.time is None or peak.low is None or peak.high is None:
        return undecided("the growth of the winning tokens has not passed its peak", steep, tolerance)
    now = evidence.frame(peak.time)
    f = evidence.features(0)
    overlap = 0.0 if evidence.modified else float(np.max(f @ f.T - np.eye(evidence.classes)))
    fallen = np.abs(curves.z[now] - curves.z[0])[curves.supports.common]
    motion = evidence.memory(peak.time, curves.winners) + 4 * float(np.max(fallen, initial=0.0))
    error, ratio = float(np.hypot(overlap / (1 - overlap), motion)), peak.time / evidence.t0
    reason = (
        f"the winning tokens grow fastest at {ratio:.3f} times K ln M / eta_Y (t={peak.time:.4g}), gamma at {steep:.3f} times it"
    )
    half = max(peak.high - peak.time, peak.time - peak.low) / evidence.t0
    return agreement(steep, ratio, tolerance, reason, predicted_error=error, measured_error=half, unit="of K ln M / eta_Y")


CLAIMS = claim.claims
