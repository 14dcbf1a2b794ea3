"""The statements of scan and snap as claims that can be checked on a run.

Its theorems are compared with the corrected closed forms, each with the error of what it neglects.
"""

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from stagescope.claims.claim import ClaimTable
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
from stagescope.detect.events import top
from stagescope.dynamics.dynamics import SolveFailed
from stagescope.papers.scan_snap import companion_options as options
from stagescope.papers.scan_snap import forms
from stagescope.papers.scan_snap.evidence import (
    ADAM,
    BATCHES,
    Evidence,
    chi_regime,
    fast_decoder,
    modified_regime,
    not_moved,
    silent,
    single_common_regime,
    theory,
    trusted,
)
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.loss import PairwiseResidual
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


def _signs(evidence: Evidence, *more: tuple[bool, str], holds: str) -> Regime:
    """What theorem 2 assumes of the experiment. Its signs are put to the test in steps and on batches, too."""
    if evidence.is_adam:
        return ADAM
    regime = regime_of(
        (evidence.zero_start, "the start is not zero"),
        (evidence.own_target, "classes share a target"),
        (evidence.rates["Z"] > 0, "attention is frozen"),
        *more,
        holds=holds,
    )
    return regime if regime.holds else silent(regime.sentence)


def _distinct_regime(evidence: Evidence) -> Regime:
    """With a query each the signs are tried at any rates, with one query where assumption 1(c) holds too."""
    if evidence.own_query:
        return _signs(evidence, holds="one query and one target per class, zero start")
    if evidence.queries == 1 and evidence.symmetric:
        return _signs(evidence, fast_decoder(evidence), holds="one query for symmetric classes, a fast decoder, zero start")
    shared = (False, "unequal classes share a query, and then a distinct token can fall late")
    return narrowed(_signs(evidence, holds="zero start"), shared)


def _common_regime(evidence: Evidence) -> Regime:
    """Theorem 2(b) has one common token; corollary 2 several and one query for all classes, or one for each as measured here."""
    count = evidence.commons
    if count == 0:
        return not_applicable("there are no common tokens")
    if count == 1:
        return _signs(evidence, holds="a single common token")
    return _signs(
        evidence,
        (evidence.symmetric, "several common tokens, and classes differ in more than the names of their distinct tokens"),
        (evidence.own_query or evidence.queries == 1, "several common tokens, and only some of the classes share a query"),
        holds=f"{count} common tokens, symmetric classes, zero start, {'a query each' if evidence.own_query else 'one query'}",
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


def _in_order(evidence: Evidence, rank: np.ndarray, comparable: Any, what: str) -> Comparison:
    """Of two distinct tokens of a class, that of lower rank must not grow more; judged against shuffled tokens.

    `comparable(a, b)` says which pairs of entries count.
    """
    if evidence.still:
        return not_moved("above chance", "above")
    on, change = evidence.curves.supports, evidence.spread(_changes)[0]
    owned = [low + np.flatnonzero(~on.common[low:high]) for low, high in pairwise(on.start)]
    pairs = [np.array(np.meshgrid(own, own, indexing="ij")).reshape(2, -1) for own in owned]
    low, high = np.concatenate(pairs, axis=1)
    differ = (rank[high] - rank[low] > 1e-12) & comparable(low, high)
    low, high = low[differ], high[differ]
    if not len(low):
        return undecided(f"no two distinct tokens of a class differ in {what}", "above chance", "above")
    tie = 1e-9 * float(np.max(np.abs(change)))

    def in_order(growth: np.ndarray) -> float:
        """The share of pairs that keep the order."""
        return int(np.count_nonzero(growth[high] - growth[low] >= -tie)) / len(low)

    def shuffled() -> np.ndarray:
        """Growth with the distinct tokens of each class shuffled."""
        growth = change.copy()
        for own in owned:
            growth[own] = random.permutation(change[own])
        return growth

    measured, random = in_order(change), key(evidence.run.seed or 0, "claims", "order")
    chance = [in_order(shuffled()) for _ in range(LIMITS.permutations)]
    reason = f"{measured:.1%} of {len(low)} pairs of distinct tokens keep the order of {what}"
    least = -np.inf if evidence.sampled else LIMITS.order  # batches and short contexts may swap any number of close pairs
    return beyond_chance(measured, np.array(chance), reason, least=least, unit="share of pairs")


@_scan("SnS:order", _distinct_regime)
def _order(evidence: Evidence) -> Comparison:
    return _in_order(evidence, evidence.curves.supports.chance, lambda low, high: True, "P(l|n)")


def _started(evidence: Evidence, *more: tuple[bool, str], holds: str) -> Regime:
    """Of claims about scores that do not start at zero."""
    conditions = (
        (bool(np.any(evidence.curves.z[0])), "all scores start at zero"),
        (not evidence.is_adam, "the run is Adam's"),
        *more,
    )
    regime = regime_of(*conditions, holds=f"scores start unequal; {holds}")
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
    on, first = evidence.curves.supports, evidence.curves.c[0]
    there = on.attend(first, companion["Z"][on.row, on.key])
    apart = float(np.max(np.abs(there - evidence.curves.c[-1])))
    reason = f"attention at the end differs by {apart:.2g} from that of a flow with c(0) for P(l|n) and scores from zero"
    return agreement(0.0, apart, LIMITS.entropy, reason, unit="of all attention")


def _monotone_regime(evidence: Evidence) -> Regime:
    common = _common_regime(evidence)
    regime = theory(evidence, (evidence.own_query, "classes share a query"), holds="a query per class, common tokens fall")
    return silent(common.sentence) if regime.holds and not common.holds else regime


@claim("SnS:monotone", _monotone_regime, elsewhere=options.one_query_each)
def _monotone(evidence: Evidence) -> Comparison:
    """z and f of the distinct token that leads each class at the start: their largest fall between frames, over their rise."""
    if evidence.still:
        return not_moved(0.0, LIMITS.solver)
    curves, on = evidence.curves, evidence.curves.supports
    start = np.where(on.common, -1.0, curves.c[0])
    leads = on.argtops(start)
    ties = on.sums(np.isclose(start, start[leads][on.of], rtol=1e-9)) > 1
    leads = leads[~ties]
    if not leads.size:
        return undecided("no class has one distinct token ahead of all others", 0.0, LIMITS.solver)
    f = on.features(curves.c)
    falls = [-np.diff(curve[:, leads], axis=0).min() / np.ptp(curve[:, leads], axis=0).max() for curve in (curves.z, f)]
    worst = max(0.0, *map(float, falls))
    reason = f"z and f of {leads.size} leading tokens fall between two frames by at most {worst:.2g} of their change"
    return Comparison(0.0, worst, LIMITS.solver, worst <= LIMITS.solver, reason, unit="of the change")


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
    if not evidence.rates["Z"] > 0:
        return silent("attention is frozen")
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
    """(r(t)/r(0) - 1) / (chi(t) - 1) of winner and runner-up, mean over classes, at t0' or where the run ends.

    The theorem takes the decoder to be learned at the features of now; in truth it was learned on the way here. So the pull
    on a token has a relative error of the size of the change of its f_l, and its growth one that is 1/kappa as large.
    """
    curves, when = evidence.curves, min(evidence.t0_prime, evidence.end)
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


def _stage(evidence: Evidence, begin: float, end: float) -> np.ndarray:
    """Which frames lie between two times."""
    return (evidence.curves.time >= begin) & (evidence.curves.time <= end)


def _drift(evidence: Evidence, frames: np.ndarray) -> float:
    """The share of the logit that moving attention made, the largest at these frames: lemma 6 neglects it."""
    x = forms.logit_gap(evidence.curves.time[frames], evidence.outputs, evidence.classes, evidence.rates["Y"])
    return float(np.max(evidence.drifts[frames] / x))


@_theorem("SnS:lemma-6", modified_regime, LIMITS.small)
def lemma_6(evidence: Evidence) -> Comparison:
    """Own-minus-other logit over x(t), the worst from .05 to 3 t0'; the error is what the motion of attention added to it."""
    frames = _stage(evidence, 0.05 * evidence.t0_prime, 3 * evidence.t0_prime)
    if not frames.any():
        return undecided(f"no frame is between .05 and 3 times t0' = {evidence.t0_prime:.4g}", 1.0, LIMITS.small)
    predicted = forms.logit_gap(evidence.curves.time[frames], evidence.outputs, evidence.classes, evidence.rates["Y"])
    ratios, error = evidence.logit_gaps[frames] / predicted, _drift(evidence, frames)
    worst = float(ratios[np.argmax(np.abs(ratios - 1))])
    reason = f"the own-minus-other logit is {ratios.min():.3f} to {ratios.max():.3f} times x(t)"
    reason += f"; moving attention made up to {error:.1%} of it"
    return agreement(1.0, worst, LIMITS.small, reason, predicted_error=error, unit="of x(t)")


@_theorem("SnS:gamma", modified_regime, LIMITS.growth)
def gamma(evidence: Evidence) -> Comparison:
    """gamma as measured over its two laws: eta_Y t/K from t0'/20 to t0'/3, and K ln(M eta_Y t/K)/(eta_Y t) from t0 on.

    The first law leaves out e^x beside M, which is computed, and moving attention. The second is an order of magnitude.
    """
    tolerance, classes, outputs = LIMITS.growth, evidence.classes, evidence.outputs
    first = _stage(evidence, evidence.t0_prime / 20, evidence.t0_prime / 3)
    if not first.any():
        return undecided(f"no frame is between t0'/20 and t0'/3 = {evidence.t0_prime / 3:.4g}", 1.0, tolerance)
    steps = evidence.rates["Y"] * evidence.curves.time / classes
    ratios = evidence.strengths[first] / steps[first]
    exact = forms.gamma(evidence.curves.time[first], outputs, classes, evidence.rates["Y"]) / steps[first]
    error = float(np.hypot(np.max(np.abs(exact - 1)), 2 * _drift(evidence, first)))
    worst, reason = (
        float(ratios[np.argmax(np.abs(ratios - 1))]),
        f"to t0'/3 gamma is {ratios.min():.3f} to {ratios.max():.3f} times eta_Y t/K",
    )
    late, holds = _stage(evidence, evidence.t0, np.inf), True
    if late.any():
        second = evidence.strengths[late] * steps[late] / np.log(outputs * steps[late])
        holds = bool(np.all(np.abs(np.log(second)) <= np.log(LIMITS.order_one)))
        reason += f"; from t0 on {second.min():.3f} to {second.max():.3f} times K ln(M eta_Y t/K)/(eta_Y t)"
    compared = agreement(1.0, worst, tolerance, reason, predicted_error=error, unit="of eta_Y t/K")
    return compared if holds else replace(compared, holds=False)


@_theorem("SnS:corollary-1", modified_regime, LIMITS.growth)
def corollary_1(evidence: Evidence) -> Comparison:
    """d ln(wrong probability)/d ln t over the last factor of three in time; at x >> 1 it is -1 - eps (x - 2) by lemma 6."""
    tolerance, begin = LIMITS.growth, evidence.end / LIMITS.longer
    if begin < evidence.t0:
        return undecided(f"a third of the run is before t0 = {evidence.t0:.4g}", -1.0, tolerance)
    logs = [
        np.log(np.interp(np.log(when), np.log(evidence.curves.time[1:]), evidence.curves.readout.wrong[1:]))
        for when in (begin, evidence.end)
    ]
    slope = float(logs[1] - logs[0]) / np.log(LIMITS.longer)
    x = float(forms.logit_gap(begin, evidence.outputs, evidence.classes, evidence.rates["Y"]))
    error = (evidence.outputs - 1) * np.exp(-x) * abs(x - 2)
    reason = f"the probability of wrong outputs falls as t^{slope:.3f} while time triples, to {np.exp(logs[1]):.2g}"
    return agreement(-1.0, slope, tolerance, reason, predicted_error=float(error), unit="of the exponent")


def _single_class(evidence: Evidence) -> Regime:
    if evidence.classes > 1 or evidence.is_flow or evidence.is_adam:
        return not_applicable("lemma 7 is about gradient steps of a single class")
    return regime_of(
        (evidence.dynamics.get("optimizer", {}).get("type", "").endswith("GD"), "the steps have momentum"),
        (not evidence.sampled, "contexts are sampled"),
        (evidence.zero_start, "the start is not zero"),
        (evidence.still, "attention moves"),
        holds="gradient steps of one class, attention at rest, long contexts, zero start",
    )


@claim("SnS:lemma-7", _single_class)
def _lemma_7(evidence: Evidence) -> Comparison:
    """(h* - h) / (2 eta_Y/M) at every step, which must be 0 to 1; h* is that of the run, h the root of lemma 6."""
    outputs, rate = evidence.outputs, evidence.rates["Y"]
    ahead = evidence.logit_gaps - forms.logit_gap(evidence.run.series["t"], outputs, 1, rate)
    share = ahead / (2 * rate * evidence.dynamics["lr"])
    worst = float(share[np.argmax(np.abs(share - 0.5))])
    holds = 0 - LIMITS.rounding <= worst <= 1 + LIMITS.rounding
    reason = f"steps are ahead of their flow by {share.min():.3g} to {share.max():.3g} times the bound"
    return Comparison("[0, 1]", worst, LIMITS.rounding, holds, reason, unit="of 2 eta_Y/M")


def _eq_9(evidence: Evidence) -> tuple[float, int, np.ndarray, np.ndarray]:
    """t0' or the end, its frame, and the pulls g_n of theorem 1 there: with the decoder of now, and with that of the start."""
    now = evidence.frame(min(evidence.t0_prime, evidence.end))
    when, f = float(evidence.curves.time[now]), evidence.features(now)
    strength = float(forms.gamma(when, evidence.outputs, evidence.classes, evidence.rates["Y"]))
    earlier = forms.decoder_pull(f, strength, evidence.outputs, evidence.features(0))
    return when, now, forms.decoder_pull(f, strength, evidence.outputs), earlier


def _vectors(when: float, what: str, measured: np.ndarray, law: np.ndarray, earlier: np.ndarray) -> Comparison:
    """The distance of a measured array from the theorem's; the error is what a decoder learned at the first features changes."""
    size = float(np.linalg.norm(law)) or 1.0
    apart, error = (float(np.linalg.norm(other - law)) / size for other in (measured, earlier))
    reason = (
        f"at t={when:.4g}, {what} differs from the law by {apart:.2%}; with a decoder from the start it differs by {error:.2%}"
    )
    return agreement(0.0, apart, LIMITS.growth, reason, predicted_error=error, unit=f"of |{what}|")


@_theorem("SnS:theorem-1", modified_regime, LIMITS.growth)
def theorem_1(evidence: Evidence) -> Comparison:
    """|g - gamma (iota f - sum beta f')| / |g| at t0' or the end, on the tokens of each class."""
    when, now, law, earlier = _eq_9(evidence)
    on, g = evidence.curves.supports, evidence.curves.readout.pulls[now]
    return _vectors(when, "g", g, law[on.key, on.of], earlier[on.key, on.of])


@claim("SnS:xi", modified_regime, elsewhere=options.fast_modified)
def _xi(evidence: Evidence) -> Comparison:
    """The least xi_n of all classes and frames, in units of the largest."""
    if evidence.commons == 0:
        return undecided("no token is common, so xi is zero", "> 0", LIMITS.solver)
    xi = evidence.pull_rates[1:]
    largest = float(np.max(np.abs(xi), initial=0.0))
    if largest <= LIMITS.rounding:
        return undecided("the decoder has not moved", "> 0", LIMITS.solver)
    least = float(np.min(xi)) / largest
    return Comparison(
        "> 0",
        least,
        LIMITS.solver,
        least > -LIMITS.solver,
        f"the least xi_n of all times is {least:.2g} of the largest",
        unit="of the largest xi",
    )


@_theorem("SnS:lemma-4", modified_regime, LIMITS.growth)
def lemma_4(evidence: Evidence) -> Comparison:
    """|dz/dt - lemma| / |lemma| at t0' or the end."""
    curves, query = evidence.curves, evidence.law.rows["query"]
    when, now, *pulls = _eq_9(evidence)
    law, earlier = (forms.attention_velocity(evidence.features(now), g, query, evidence.rates["Z"])[query] for g in pulls)
    if float(np.linalg.norm(law)) <= LIMITS.rounding * evidence.rates["Z"] or evidence.still:
        return not_moved(0.0, LIMITS.growth)
    moving = np.zeros((int(query.max()) + 1, curves.supports.keys))
    moving[curves.supports.row, curves.supports.key] = curves.dz[now]
    return _vectors(when, "dz/dt", moving[query], law, earlier)


def _rate_regime(evidence: Evidence) -> Regime:
    if evidence.commons == 0:
        return not_applicable("there are no common tokens")
    common = _common_regime(evidence)
    queries = (evidence.own_query or evidence.queries == 1, "only some of the classes share a query")
    return theory(
        evidence, (common.holds, common.sentence), queries, fast_decoder(evidence), holds="as theorem 2, a fast decoder"
    )


@_theorem("SnS:rates", _rate_regime, LIMITS.growth)
def rates(evidence: Evidence) -> Comparison:
    """dz/dt at t0' or the end against xi_n f_l^2 for distinct tokens and -(xi_n S_n) f_l^2 for common ones, xi_n fitted.

    S_n makes the sum of dz over a row zero [SnS:lemma-1]: the distinct sum of f^2 over the common one. With equal common
    tokens this is theorem 2 with eq. 98 and 100, with unequal ones corollary 2 with eq. 107. Neglected is the memory of the
    decoder: how far from this form dz/dt is if it was learned at the first features.
    """
    if evidence.still:
        return not_moved(0.0, LIMITS.growth)
    curves, on = evidence.curves, evidence.curves.supports
    when, now, _, pulls = _eq_9(evidence)
    squares = on.features(curves.c[now]) ** 2
    shape = np.where(on.common, -squares * (on.sums(squares * ~on.common) / on.sums(squares * on.common))[on.of], squares)
    rows = int(on.row.max()) + 1
    shapes = np.zeros((len(on), rows, on.keys))
    shapes[on.of, on.row, on.key] = shape
    moving = np.zeros((rows, on.keys))
    moving[on.row, on.key] = curves.dz[now]
    earlier = forms.attention_velocity(evidence.features(now), pulls, evidence.law.rows["query"], evidence.rates["Z"])
    (apart, xi), (error, _) = (_misfit(shapes, velocity) for velocity in (moving, earlier[:rows]))
    reason = f"at t={when:.4g}, dz/dt differs by {apart:.2%} from xi_n f_l^2"
    compared = agreement(0.0, apart, LIMITS.growth, reason, predicted_error=error, unit="of |dz/dt|")
    return compared if np.all(xi > 0) else replace(compared, holds=False, reason=f"{reason}, and a xi_n is not positive")


def _misfit(shapes: np.ndarray, velocity: np.ndarray) -> tuple[float, np.ndarray]:
    """The relative distance of a velocity from the nearest sum of shapes, and the weights of these."""
    flat = shapes.reshape(len(shapes), -1).T
    weights = np.linalg.lstsq(flat, velocity.ravel(), rcond=None)[0]
    return float(np.linalg.norm(flat @ weights - velocity.ravel()) / np.linalg.norm(velocity)), weights


def _short(evidence: Evidence) -> str:
    return f"the run ends before t0' = {evidence.t0_prime:.4g}"


def _growth_per_gap(evidence: Evidence) -> float:
    """u / x^2 of theorem 4, e^{-4 z_ct} = 1 + u = 1 + 4 Gamma/C0. Gamma keeps the prior 1/K where classes have own queries."""
    curves, classes = evidence.curves, evidence.classes
    drive = float(forms.driving(evidence.end, evidence.outputs, classes, evidence.rates["Y"], evidence.rates["Z"]))
    drive /= float(forms.logit_gap(evidence.end, evidence.outputs, classes, evidence.rates["Y"])) ** 2
    p = float(curves.table[0][curves.common[0]][0])
    squares = float(np.sum(curves.table[0] ** 2))
    drive *= forms.small_vocabulary(p**2 / squares, evidence.outputs) / (classes if evidence.own_query else 1)
    return 4 * drive / forms.start_constant(p, squares, classes)


def _neglected(evidence: Evidence, when: float) -> float:
    """The relative error of u at a time, of which theorem 4 takes its constants from the start.

    Those are the norm of attention and 1 + (K-1) f_c^2. Their relative changes until now are measured, and so is the memory of
    the decoder for earlier features. They grow from zero, so half of them is the error of an integral. Gamma has twice the
    error of the logit.
    """
    curves, classes, now = evidence.curves, evidence.classes, evidence.frame(when)
    p, squares = float(curves.table[0][curves.common[0]][0]), float(np.sum(curves.table[0] ** 2))
    share, own = p**2 / squares, slice(0, curves.supports.start[1])
    grown = curves.supports.chance[own] * np.exp(curves.z[now, own] - curves.z[0, own])
    norm = float(np.sum(grown**2))
    weight = float(grown[curves.supports.common[own]][0] ** 2) / norm
    change = 2 * abs(np.log(norm / squares)) + (classes - 1) * abs(weight - share) / (1 + (classes - 1) * share)
    change += evidence.memory(when, curves.supports.argtops(curves.supports.common))
    gaps = np.interp(when, evidence.curves.time, evidence.drifts / np.maximum(evidence.logit_gaps, 1e-300))
    return float(change / 2 + 2 * gaps)


def _predicted_growth(evidence: Evidence, when: float) -> tuple[float, float]:
    """B at a time, and its relative error."""
    x = float(forms.logit_gap(when, evidence.outputs, evidence.classes, evidence.rates["Y"]))
    u = _growth_per_gap(evidence) * x**2
    return 0.25 * float(np.log1p(u)), _neglected(evidence, when) * u / ((1 + u) * np.log1p(u))


def _gap_law(evidence: Evidence, frames: np.ndarray, law: np.ndarray, name: str) -> Comparison:
    """The logit that the fall of the common token shows, x = sqrt(u / (u/x^2)), over a law of eq. 14; the worst frame."""
    tolerance = LIMITS.first_laws + LIMITS.small
    if not frames.any():
        return undecided("no frame is in this phase", 1.0, tolerance)
    if evidence.still:
        return not_moved(1.0, tolerance)
    z = np.mean(evidence.curves.z[:, evidence.curves.supports.common], axis=1)[frames]
    ratios = law / np.sqrt(np.maximum(np.expm1(-4 * z), 1e-300) / _growth_per_gap(evidence))
    error = max(_neglected(evidence, float(evidence.curves.time[k])) for k in np.flatnonzero(frames)[[0, -1]]) / 2
    worst = float(ratios[np.argmax(np.abs(np.log(ratios)))])
    reason = f"{name} is {ratios.min():.3f} to {ratios.max():.3f} times the x that the common token's fall shows"
    return agreement(1.0, worst, tolerance, reason, predicted_error=error, unit="of x")


def _law_regime(evidence: Evidence) -> Regime:
    few = (evidence.outputs >= LIMITS.outputs, f"M is {evidence.outputs}; theorem 1 begins at {LIMITS.outputs}")
    return single_common_regime(evidence, few)


@_theorem("SnS:theorem-4-early", _law_regime, LIMITS.first_laws + LIMITS.small)
def early_law(evidence: Evidence) -> Comparison:
    """x = eta_Y t / K from t0'/20 to t0', so that 4 Gamma ~ t^2."""
    frames = _stage(evidence, evidence.t0_prime / 20, evidence.t0_prime)
    return _gap_law(evidence, frames, evidence.rates["Y"] * evidence.curves.time[frames] / evidence.classes, "eta_Y t/K")


@_theorem("SnS:theorem-4-late", _law_regime, LIMITS.first_laws + LIMITS.small)
def late_law(evidence: Evidence) -> Comparison:
    """x = ln(M eta_Y t / K) from t0 on, so that 4 Gamma ~ ln^2."""
    frames = _stage(evidence, evidence.t0, np.inf)
    steps = evidence.outputs * evidence.rates["Y"] * evidence.curves.time[frames] / evidence.classes
    return _gap_law(evidence, frames, np.log(steps), "ln(M eta_Y t/K)")


@_theorem("SnS:theorem-4", single_common_regime, LIMITS.growth)
def theorem_4(evidence: Evidence) -> Comparison:
    curves, tolerance = evidence.curves, LIMITS.growth
    if not evidence.end >= evidence.t0_prime:
        return undecided(_short(evidence), 1.0, tolerance)
    scores = np.mean(curves.z[:, curves.supports.common], axis=1)
    growth, error = _predicted_growth(evidence, evidence.t0_prime)
    factor = evidence.at(scores, evidence.t0_prime) / -growth
    reason = f"z_ct(t0') is {factor:.3f} times the corrected -B(t0') = {-growth:.3g}, which neglects {error:.1%}"
    return agreement(1.0, factor, tolerance, reason, predicted_error=error, unit="of B(t0')")


@_theorem("SnS:sandwich", single_common_regime, 2 * LIMITS.growth)
def sandwich(evidence: Evidence) -> Comparison:
    """f_l(0)^2 <= ln chi_l / (2 B) <= 1 at t0' for the winner of every class, to 10 %; B/K where all classes share one query."""
    curves = evidence.curves
    if not evidence.end >= evidence.t0_prime:
        return undecided(_short(evidence), "inside", LIMITS.growth)
    if evidence.still:
        return not_moved("inside", LIMITS.growth)
    grown = (curves.z - curves.z[:1])[:, curves.winners]
    lower = curves.c[0, curves.winners] ** 2 / curves.supports.sums(curves.c[0] ** 2)
    growth, error = _predicted_growth(evidence, evidence.t0_prime)
    error = float(np.hypot(error, chi_identity(evidence).predicted_error or 0.0))  # the bounds are those of theorem 3
    growth /= 1 if evidence.own_query else evidence.classes
    share = np.array([evidence.at(grown[:, n], evidence.t0_prime) for n in range(evidence.classes)]) / growth
    room = np.minimum(share - lower, 1 - share) / np.maximum(np.abs(share), LIMITS.rounding)
    holds = True if np.all(room >= error - LIMITS.growth) else False if np.any(room < -error - LIMITS.growth) else None
    reason = f"at t0', ln chi / 2B is {share.min():.3f} to {share.max():.3f}; the bounds are {lower.max():.3f} and 1"
    bounds = f"[{lower.max():.3g}, 1]"
    return Comparison(bounds, float(share.mean()), LIMITS.growth, holds, reason, error, 0.0, "of 2 B")


@_theorem("SnS:transition", chi_regime, LIMITS.transition, options.fast_gradient)
def transition(evidence: Evidence) -> Comparison:
    """When the winners grow fastest, over t0' = K ln M / eta_Y; predicted is when gamma of theorem 1 is largest.

    That is K ln M / eta_Y to leading order in ln M. Two errors are computed: features overlap, and then classes slow each
    other down by up to 1/(1 - s) under the gradient; and attention moves, while the pull on a winner falls as e^{4 z_ct} and
    the decoder remembers earlier features.
    """
    curves, tolerance = evidence.curves, LIMITS.transition
    steep = forms.steepest_time(evidence.outputs, evidence.classes, evidence.rates["Y"]) / evidence.t0_prime
    peak = top(curves.time, curves.mean(curves.dz[:, curves.winners]))
    if evidence.still or peak.time is None or peak.low is None or peak.high is None:
        return undecided("the growth of the winning tokens has not passed its peak", steep, tolerance)
    now = evidence.frame(peak.time)
    f = evidence.features(0)
    overlap = 0.0 if evidence.modified else float(np.max(f @ f.T - np.eye(evidence.classes)))
    fallen = np.abs(curves.z[now] - curves.z[0])[curves.supports.common]
    motion = evidence.memory(peak.time, curves.winners) + 4 * float(np.max(fallen, initial=0.0))
    error, ratio = float(np.hypot(overlap / (1 - overlap), motion)), peak.time / evidence.t0_prime
    reason = (
        f"the winning tokens grow fastest at {ratio:.3f} times K ln M / eta_Y (t={peak.time:.4g}), gamma at {steep:.3f} times it"
    )
    half = max(peak.high - peak.time, peak.time - peak.low) / evidence.t0_prime
    return agreement(steep, ratio, tolerance, reason, predicted_error=error, measured_error=half, unit="of K ln M / eta_Y")


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
    on, change = evidence.curves.supports, _changes(evidence.curves)
    across, largest = on.common & ~on.local, float(np.max(np.abs(change)))
    gain = (change - companion["Z"][on.row, on.key])[across]
    rise, lower = float(np.max(change[on.local])) / largest, float(np.max(-gain, initial=-1.0)) / largest
    worst = max(rise, lower)
    reason = f"of {np.count_nonzero(on.local)} scores of tokens common to classes of their query the largest change is {rise:.2g}"
    if gain.size:
        reason += f"; of {gain.size} common across queries only the least gain over no connection is {-lower:.2g}"
    holds = True if worst < -tolerance else False if worst > tolerance or (gain.size and lower >= -tolerance) else None
    return Comparison("< 0", worst, tolerance, holds, f"{reason} of the largest change", unit="of the largest change of a score")


RESIDUAL_CLAIMS = tuple(row for row in claim.claims if row.tag == "SnS:residual")
CLAIMS = tuple(row for row in claim.claims if row not in RESIDUAL_CLAIMS)
