"""The theorems of scan and snap about the modified decoder and the transition, compared with the corrected closed forms."""

from collections.abc import Callable

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime
from stagescope.detect.events import peak
from stagescope.papers.published import published
from stagescope.papers.scan_snap import forms
from stagescope.papers.scan_snap.evidence import ADAM, LIMITS, Evidence, not_moved, regime_of


def chi_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    fast = (evidence.ratio >= 100, f"eta_Y/eta_Z is {evidence.ratio:.3g}, but the identity needs 100 or more")
    return regime_of(
        (evidence.is_flow, "finite steps"),
        fast,
        (evidence.own_query, "classes share a query"),
        (evidence.own_target, "classes share a target"),
        (evidence.zero_start, "the start is not zero"),
        holds="flow from zero, eta_Y/eta_Z >= 100",
    )


def chi_identity(evidence: Evidence) -> Comparison:
    """r(t)/r(0) = chi(t) for winner and runner-up at 3 t0 or the end; the error is relative to chi - 1."""
    curves, tolerance, errors = evidence.curves, LIMITS.chi, []
    when = min(3 * evidence.t0, float(curves.time[-1]))
    if curves.time[-1] < evidence.t0:
        return Comparison(0.0, None, tolerance, None, f"the run ends before t0 = {evidence.t0:.4g}")
    for n in range(evidence.classes):
        own = np.flatnonzero(curves.distinct[n])
        ranked = own[np.argsort(-curves.attention[-1, n, own], kind="stable")][:2]
        if len(ranked) < 2 or np.isclose(*curves.table[n, ranked]):
            continue
        ratio = (curves.attention[:, n, ranked[0]] / curves.attention[:, n, ranked[1]]) ** 2 - 1
        chi = np.exp(2 * (curves.scores[:, n, ranked[0]] - curves.scores[0, n, ranked[0]]))
        measured, predicted = evidence.at(ratio / ratio[0], when), evidence.at(chi, when)
        errors.append(abs(measured - predicted) / abs(predicted - 1) if abs(predicted - 1) > LIMITS.motion else np.nan)
    if evidence.still or (errors and np.isnan(errors).any()):
        return not_moved(0.0, tolerance)
    if not errors:
        return Comparison(0.0, None, tolerance, None, "no class has two distinct tokens that differ in P(l|n)")
    error = float(np.mean(errors))
    reason = f"at t={when:.4g}, r(t)/r(0) differs from chi(t) by {error:.1%} of chi - 1"
    return Comparison(0.0, error, tolerance, error <= tolerance, reason)


def modified_regime(ratio: float) -> Callable[[Evidence], Regime]:
    """The flow with one weak common token in symmetric classes, and a decoder at least `ratio` times as fast as attention."""

    def regime(evidence: Evidence) -> Regime:
        if evidence.is_adam:
            return ADAM
        fast = f"eta_Y/eta_Z is {evidence.ratio:.3g}, below {ratio:g}"
        strong = f"the common token's share f_c^2 is {evidence.common_share:.2f}, above {LIMITS.weak_common}"
        return regime_of(
            (evidence.is_flow, "finite steps"),
            (evidence.commons == 1, f"there are {evidence.commons} common tokens, not one"),
            (evidence.symmetric, "classes are not symmetric"),
            (
                evidence.own_query or evidence.queries == 1,
                f"{evidence.queries} queries for {evidence.classes} classes; one query for each or one for all is needed",
            ),
            (evidence.own_target, "classes share a target"),
            (evidence.common_share <= LIMITS.weak_common, strong),
            (evidence.own_query or evidence.classes <= 5, f"{evidence.classes} classes share one query; at most 5 are allowed"),
            (evidence.zero_start, "the start is not zero"),
            (evidence.ratio >= ratio, fast),
            (evidence.classes > 1, "there is a single class"),
            holds=f"flow, one common token, symmetric classes, eta_Y/eta_Z >= {ratio:g}",
        )

    return regime


def theorem_1(evidence: Evidence) -> Comparison:
    time, gaps, tolerance = evidence.run.time, evidence.logit_gaps, LIMITS.logit
    late = time >= 0.05 * evidence.t0
    if not late.any():
        return Comparison(1.0, None, tolerance, None, f"the run ends before 5 % of t0 = {evidence.t0:.4g}")
    predicted = forms.logit_gap(time[late], evidence.outputs, evidence.classes, evidence.rates["Y"])
    ratios = gaps[late] / predicted
    worst = float(ratios[np.argmax(np.abs(ratios - 1))])
    span = f"{ratios.min():.3f} to {ratios.max():.3f}"
    reason = f"the own-minus-other logit is {span} times x(t) under the {evidence.decoder} decoder"
    return Comparison(1.0, worst, tolerance, abs(worst - 1) <= tolerance, reason)


def _no_growth(evidence: Evidence) -> str:
    """Why B(t0) cannot be compared; empty if it can."""
    if evidence.classes < 2 or not evidence.curves.common[0].any():
        return "B needs several classes and a common token"
    if not evidence.curves.time[-1] >= evidence.t0:
        return f"the run ends before t0 = {evidence.t0:.4g}"
    return "" if evidence.rates["Z"] > 0 else "attention is frozen"


def _predicted_growth(evidence: Evidence, when: float) -> float:
    """B at a time. Gamma keeps the prior 1/K where each class has its own query."""
    drive = forms.driving(when, evidence.outputs, evidence.classes, evidence.rates["Y"], evidence.rates["Z"])
    p = float(evidence.curves.table[0][evidence.curves.common[0]][0])
    squares = float(np.sum(evidence.curves.table[0] ** 2))
    drive = drive * forms.small_vocabulary(p**2 / squares, evidence.outputs)
    start = forms.start_constant(p, squares, evidence.classes)
    return float(forms.growth(drive / (evidence.classes if evidence.own_query else 1), start))


def theorem_4(evidence: Evidence) -> Comparison:
    curves, tolerance = evidence.curves, LIMITS.growth
    missing = _no_growth(evidence)
    if missing:
        return Comparison(1.0, None, tolerance, None, missing)
    scores = np.mean(curves.scores[:, curves.common], axis=1)
    factor = evidence.at(scores, evidence.t0) / -_predicted_growth(evidence, evidence.t0)
    reason = f"z_ct(t0) is {factor:.3f} times the corrected -B(t0) under the {evidence.decoder} decoder"
    return Comparison(1.0, factor, tolerance, abs(factor - 1) <= tolerance, reason)


def sandwich(evidence: Evidence) -> Comparison:
    """2 f_l(0)^2 B <= ln chi_l <= 2 B at t0 and at the end; B/K where all classes share one query."""
    curves = evidence.curves
    missing = _no_growth(evidence)
    if missing:
        return Comparison("inside", None, "bounds", None, missing)
    growth = 2 * (evidence.winner(curves.scores) - evidence.winner(curves.scores)[:1])
    f2 = evidence.winner(curves.attention)[0] ** 2 / np.sum(curves.table**2, axis=1)
    share, inside, shown = 1 if evidence.own_query else evidence.classes, True, ""
    for when in (float(curves.time[-1]), evidence.t0):
        bound = 2 * _predicted_growth(evidence, when) / share
        chi = np.array([evidence.at(growth[:, n], when) for n in range(evidence.classes)])
        held = bool(np.all(chi >= f2 * bound) and np.all(chi <= bound))
        if not shown or not held:  # the numbers shown are those that decide
            shown = f"at t={when:.4g}, ln chi is {chi.mean():.4f}, the bounds are [{(f2 * bound).mean():.4f}, {bound:.4f}]"
        inside &= held
    reason = f"{shown} under the {evidence.decoder} decoder"
    return Comparison("inside", "inside" if inside else "outside", "bounds", inside, reason)


def transition_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    share = f"the common token's share f_c^2 is {evidence.common_share:.2f}, above {LIMITS.weak_common}: such classes are slower"
    return regime_of(
        (evidence.is_flow and not evidence.modified, "the run is not the gradient flow"),
        (evidence.commons == 1, f"there are {evidence.commons} common tokens, not one"),
        (evidence.symmetric, "classes are not symmetric"),
        (evidence.own_query and evidence.own_target, "classes share a query or a target"),
        (evidence.zero_start, "the start is not zero"),
        (evidence.outputs >= LIMITS.many_outputs, f"M is {evidence.outputs}, below {LIMITS.many_outputs}, so ln M is not large"),
        (evidence.common_share <= LIMITS.weak_common, share),
        (evidence.ratio >= 30, f"eta_Y/eta_Z is {evidence.ratio:.3g}, below 30"),
        holds="gradient flow, one weak common token, eta_Y/eta_Z >= 30",
    )


def transition(evidence: Evidence) -> Comparison:
    low, high = published("stagescope.papers.scan_snap")["transition_ratio"].value
    top = peak(evidence.curves.time, evidence.curves.mean(evidence.winner(evidence.curves.velocity)))
    if top is None:
        return Comparison(1.0, None, f"[{low}, {high}]", None, "the growth of the winning tokens has not passed its peak")
    ratio = top[0] / evidence.t0
    reason = f"the winning tokens grow fastest at t={top[0]:.4g}, {ratio:.3f} times K ln M / eta_Y"
    return Comparison(1.0, ratio, f"[{low}, {high}]", low <= ratio <= high, reason)


CLAIMS = (
    claim("SnS:theorem-3", "Winner over runner-up grows as chi: r(t) = r(0) chi(t)", chi_regime, chi_identity, "start", "end"),
    claim("SnS:sandwich", "2 f^2 B <= ln chi <= 2 B", modified_regime(30), sandwich, "start", "end"),
    claim(
        "SnS:theorem-1",
        "Own-minus-other logit follows e^x + (M-1)x = M eta_Y t/K + 1",
        modified_regime(10),
        theorem_1,
        "start",
        "end",
    ),
    claim(
        "SnS:theorem-4",
        "The common token's score is -B(t0), B = 1/4 ln(1 + 4 Gamma/C0)",
        modified_regime(10),
        theorem_4,
        "start",
        "end",
    ),
    claim("SnS:transition", "The transition is at K ln M / eta_Y", transition_regime, transition, "peak"),
)
