"""Theorems 1 to 4 of scan and snap with their lemmas and corollaries, as claims that can be checked on a run.

They are compared with the corrected closed forms, each with the error of what it neglects.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from stagescope.claims.claim import ClaimTable
from stagescope.claims.comparison import Comparison, Regime, agreement, not_applicable, regime_of, undecided
from stagescope.detect.events import top
from stagescope.papers.scan_snap import companion_options as options
from stagescope.papers.scan_snap import forms
from stagescope.papers.scan_snap.evidence import (
    Evidence,
    chi_regime,
    common_regime,
    fast_decoder,
    modified_regime,
    not_moved,
    silent,
    single_common_regime,
    theory,
    trusted,
)
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.study import WORDS

claim = ClaimTable(WORDS.claims)


def _theorem(tag: str, regime: Any, tolerance: float, elsewhere: Any = options.fast_modified) -> Any:
    """A claim where the error of what its theorem neglects is known and small beside the tolerance."""
    return lambda compare: claim(tag, trusted(regime, compare, tolerance), elsewhere=elsewhere)(compare)


@_theorem("SnS:theorem-3", chi_regime, LIMITS.small)
def chi_identity(evidence: Evidence) -> Comparison:
    """(r(t)/r(0) - 1) / (chi(t) - 1) of winner and runner-up, mean over classes, at t0' or where the run ends.

    The theorem takes the decoder to be learned at the features of now; in truth it was learned on the way here. So the pull
    on a token has a relative error of the size of the change of its f_l, and its growth one that is 1/kappa as large.
    """
    curves, time = evidence.curves, min(evidence.t0_prime, evidence.end)
    now, parts, seconds, supports = evidence.frame(time), [], curves.winners.copy(), curves.supports
    for n in range(evidence.classes):
        entries = supports.start[n] + np.flatnonzero(~supports.common[supports.start[n] : supports.start[n + 1]])
        first, second = [*entries[np.argsort(-curves.c[-1, entries], kind="stable")][:2], -1, -1][:2]
        if second < 0 or np.isclose(supports.chance[first], supports.chance[second], rtol=1e-3):
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
    error = max(evidence.memory(time, curves.winners), evidence.memory(time, seconds))
    reason = f"at t={time:.4g}, r(t)/r(0) - 1 is {mean:.3f} times chi(t) - 1"
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
    worst = float(ratios[np.argmax(np.abs(ratios - 1))])
    reason = f"to t0'/3 gamma is {ratios.min():.3f} to {ratios.max():.3f} times eta_Y t/K"
    late, holds = _stage(evidence, evidence.t0, np.inf), True
    if late.any():
        second = evidence.strengths[late] * steps[late] / np.log(outputs * steps[late])
        holds = bool(np.all(np.abs(np.log(second)) <= np.log(LIMITS.order_one)))
        reason += f"; from t0 on {second.min():.3f} to {second.max():.3f} times K ln(M eta_Y t/K)/(eta_Y t)"
    compared = agreement(1.0, worst, tolerance, reason, predicted_error=error, unit="of eta_Y t/K")
    return compared if holds else replace(compared, holds=False)


@_theorem("SnS:corollary-1", modified_regime, LIMITS.growth, options.late_modified)
def corollary_1(evidence: Evidence) -> Comparison:
    """d ln(wrong probability)/d ln t over the last factor of three in time; at x >> 1 it is -1 - eps (x - 2) by lemma 6."""
    tolerance, begin = LIMITS.growth, evidence.end / LIMITS.longer
    if begin < evidence.t0:
        return undecided(f"a third of the run is before t0 = {evidence.t0:.4g}", -1.0, tolerance)
    logs = [
        np.log(np.interp(np.log(time), np.log(evidence.curves.time[1:]), evidence.curves.readout.wrong[1:]))
        for time in (begin, evidence.end)
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
    time, f = float(evidence.curves.time[now]), evidence.features(now)
    strength = float(forms.gamma(time, evidence.outputs, evidence.classes, evidence.rates["Y"]))
    earlier = forms.decoder_pull(f, strength, evidence.outputs, evidence.features(0))
    return time, now, forms.decoder_pull(f, strength, evidence.outputs), earlier


def _vectors(time: float, name: str, measured: np.ndarray, law: np.ndarray, earlier: np.ndarray) -> Comparison:
    """The distance of a measured array from the theorem's; the error is what a decoder learned at the first features changes."""
    size = float(np.linalg.norm(law)) or 1.0
    distance, error = (float(np.linalg.norm(vector - law)) / size for vector in (measured, earlier))
    reason = (
        f"at t={time:.4g}, {name} differs from the law by {distance:.2%}; with a decoder from the start it differs by {error:.2%}"
    )
    return agreement(0.0, distance, LIMITS.growth, reason, predicted_error=error, unit=f"of |{name}|")


@_theorem("SnS:theorem-1", modified_regime, LIMITS.growth)
def theorem_1(evidence: Evidence) -> Comparison:
    """|g - gamma (iota f - sum beta f')| / |g| at t0' or the end, on the tokens of each class."""
    time, now, law, earlier = _eq_9(evidence)
    supports, g = evidence.curves.supports, evidence.curves.readout.pulls[now]
    return _vectors(time, "g", g, law[supports.key, supports.of], earlier[supports.key, supports.of])


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
    time, now, *pulls = _eq_9(evidence)
    law, earlier = (forms.attention_velocity(evidence.features(now), g, query, evidence.rates["Z"])[query] for g in pulls)
    if float(np.linalg.norm(law)) <= LIMITS.rounding * evidence.rates["Z"] or evidence.still:
        return not_moved(0.0, LIMITS.growth)
    moving = np.zeros((int(query.max()) + 1, curves.supports.keys))
    moving[curves.supports.row, curves.supports.key] = curves.dz[now]
    return _vectors(time, "dz/dt", moving[query], law, earlier)


def _rate_regime(evidence: Evidence) -> Regime:
    if evidence.commons == 0:
        return not_applicable("there are no common tokens")
    common = common_regime(evidence)
    if not common.holds:
        return common
    queries = (evidence.own_query or evidence.queries == 1, "only some of the classes share a query")
    return theory(evidence, queries, fast_decoder(evidence), holds="as theorem 2, a fast decoder")


@_theorem("SnS:rates", _rate_regime, LIMITS.growth)
def rates(evidence: Evidence) -> Comparison:
    """dz/dt at t0' or the end against xi_n f_l^2 for distinct tokens and -(xi_n S_n) f_l^2 for common ones, xi_n fitted.

    S_n makes the sum of dz over a row zero [SnS:lemma-1]: the distinct sum of f^2 over the common one. With equal common
    tokens this is theorem 2 with eq. 98 and 100, with unequal ones corollary 2 with eq. 107. Neglected is the memory of the
    decoder: how far from this form dz/dt is if it was learned at the first features.
    """
    if evidence.still:
        return not_moved(0.0, LIMITS.growth)
    curves, supports = evidence.curves, evidence.curves.supports
    time, now, _, pulls = _eq_9(evidence)
    common, squares = supports.common, supports.features(curves.c[now]) ** 2
    shape = np.where(
        common, -squares * (supports.sums(squares * ~common) / supports.sums(squares * common))[supports.of], squares
    )
    rows = int(supports.row.max()) + 1
    shapes = np.zeros((len(supports), rows, supports.keys))
    shapes[supports.of, supports.row, supports.key] = shape
    moving = np.zeros((rows, supports.keys))
    moving[supports.row, supports.key] = curves.dz[now]
    earlier = forms.attention_velocity(evidence.features(now), pulls, evidence.law.rows["query"], evidence.rates["Z"])
    (distance, xi), (error, _) = (_misfit(shapes, velocity) for velocity in (moving, earlier[:rows]))
    reason = f"at t={time:.4g}, dz/dt differs by {distance:.2%} from xi_n f_l^2"
    compared = agreement(0.0, distance, LIMITS.growth, reason, predicted_error=error, unit="of |dz/dt|")
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


def _neglected(evidence: Evidence, time: float) -> float:
    """The relative error of u at a time, of which theorem 4 takes its constants from the start.

    Those are the norm of attention and 1 + (K-1) f_c^2. Their relative changes until now are measured, and so is the memory of
    the decoder for earlier features. They grow from zero, so half of them is the error of an integral. Gamma has twice the
    error of the logit.
    """
    curves, classes, now = evidence.curves, evidence.classes, evidence.frame(time)
    p, squares = float(curves.table[0][curves.common[0]][0]), float(np.sum(curves.table[0] ** 2))
    share, first_class = p**2 / squares, slice(0, curves.supports.start[1])
    grown = curves.supports.chance[first_class] * np.exp(curves.z[now, first_class] - curves.z[0, first_class])
    norm = float(np.sum(grown**2))
    weight = float(grown[curves.supports.common[first_class]][0] ** 2) / norm
    change = 2 * abs(np.log(norm / squares)) + (classes - 1) * abs(weight - share) / (1 + (classes - 1) * share)
    change += evidence.memory(time, curves.supports.argtops(curves.supports.common))
    gaps = np.interp(time, evidence.curves.time, evidence.drifts / np.maximum(evidence.logit_gaps, 1e-300))
    return float(change / 2 + 2 * gaps)


def _predicted_growth(evidence: Evidence, time: float) -> tuple[float, float]:
    """B at a time, and its relative error."""
    x = float(forms.logit_gap(time, evidence.outputs, evidence.classes, evidence.rates["Y"]))
    u = _growth_per_gap(evidence) * x**2
    return 0.25 * float(np.log1p(u)), _neglected(evidence, time) * u / ((1 + u) * np.log1p(u))


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


def _monotone_regime(evidence: Evidence) -> Regime:
    common = common_regime(evidence)
    regime = theory(evidence, (evidence.own_query, "classes share a query"), holds="a query per class, common tokens fall")
    return silent(common.sentence) if regime.holds and not common.holds else regime


@claim("SnS:monotone", _monotone_regime, elsewhere=options.one_query_each)
def _monotone(evidence: Evidence) -> Comparison:
    """z and f of the distinct token that leads each class at the start: their largest fall between frames, over their rise."""
    if evidence.still:
        return not_moved(0.0, LIMITS.solver)
    curves, supports = evidence.curves, evidence.curves.supports
    start = np.where(supports.common, -1.0, curves.c[0])
    leads = supports.argtops(start)
    ties = supports.sums(np.isclose(start, start[leads][supports.of], rtol=1e-9)) > 1
    leads = leads[~ties]
    if not leads.size:
        return undecided("no class has one distinct token ahead of all others", 0.0, LIMITS.solver)
    f = supports.features(curves.c)
    falls = [-np.diff(curve[:, leads], axis=0).min() / np.ptp(curve[:, leads], axis=0).max() for curve in (curves.z, f)]
    worst = max(0.0, *map(float, falls))
    reason = f"z and f of {leads.size} leading tokens fall between two frames by at most {worst:.2g} of their change"
    return Comparison(0.0, worst, LIMITS.solver, worst <= LIMITS.solver, reason, unit="of the change")
