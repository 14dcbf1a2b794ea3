"""The theorems of scan and snap, compared with the corrected closed forms; each with the error of what it neglects."""

from typing import Any

import numpy as np

from stagescope.claims.claim import Claim, claim
from stagescope.claims.comparison import Comparison, agreement, undecided
from stagescope.detect.events import top
from stagescope.papers.scan_snap import forms
from stagescope.papers.scan_snap.companion_options import fast_gradient, fast_modified
from stagescope.papers.scan_snap.evidence import (
    Evidence,
    chi_regime,
    modified_regime,
    not_moved,
    single_common_regime,
    transition_regime,
    trusted,
)
from stagescope.papers.scan_snap.limits import LIMITS


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
    found = float(np.mean(parts))
    error = max(evidence.memory(when, curves.winners), evidence.memory(when, seconds))
    reason = f"at t={when:.4g}, r(t)/r(0) - 1 is {found:.3f} times chi(t) - 1"
    return agreement(1.0, found, LIMITS.small, reason, predicted_error=error, unit="of chi - 1")


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


def transition(evidence: Evidence) -> Comparison:
    """When the winners grow fastest, over K ln M / eta_Y; predicted is when gamma of theorem 1 is largest.

    That is K ln M / eta_Y to leading order in ln M. Two errors are computed: features overlap, and then classes slow each
    other down by up to 1/(1 - s) under the gradient; and attention moves, while the pull on a winner falls as e^{4 z_ct} and
    the decoder remembers earlier features.
    """
    curves, tolerance = evidence.curves, LIMITS.transition
    steep = forms.steepest_time(evidence.outputs, evidence.classes, evidence.rates["Y"]) / evidence.t0
    found = top(curves.time, curves.mean(curves.dz[:, curves.winners]))
    if evidence.still or found.time is None or found.low is None or found.high is None:
        return undecided("the growth of the winning tokens has not passed its peak", steep, tolerance)
    now = evidence.frame(found.time)
    f = evidence.features(0)
    overlap = 0.0 if evidence.modified else float(np.max(f @ f.T - np.eye(evidence.classes)))
    fallen = np.abs(curves.z[now] - curves.z[0])[curves.supports.common]
    motion = evidence.memory(found.time, curves.winners) + 4 * float(np.max(fallen, initial=0.0))
    error, ratio = float(np.hypot(overlap / (1 - overlap), motion)), found.time / evidence.t0
    reason = (
        f"the winning tokens grow fastest at {ratio:.3f} times K ln M / eta_Y (t={found.time:.4g}), gamma at {steep:.3f} times it"
    )
    half = max(found.high - found.time, found.time - found.low) / evidence.t0
    return agreement(steep, ratio, tolerance, reason, predicted_error=error, measured_error=half, unit="of K ln M / eta_Y")


def _theorem(tag: str, statement: str, regime: Any, compare: Any, tolerance: float, *shown: str, **more: Any) -> Claim:
    """A claim where the error of what its theorem neglects is known and small beside the tolerance."""
    fields = {"kind": "prediction", "rules": 3, "elsewhere": fast_modified, **more}
    return claim(tag, statement, trusted(regime, compare, tolerance), compare, *shown, **fields)


_small, _growth, _whole = LIMITS.small, LIMITS.growth, ("start", "end")
_winner = "growth of the winner"
CLAIMS = (
    _theorem(
        "SnS:theorem-1",
        "Own-minus-other logit follows e^x + (M-1)x = M eta_Y t/K + 1",
        modified_regime,
        theorem_1,
        _small,
        *_whole,
    ),
    _theorem(
        "SnS:lemma-4", "dz/dt = (eta_Z gamma/K) f o (F (F^T F)^-1 u - f)", modified_regime, lemma_4, _growth, *_whole, rules=2
    ),
    _theorem(
        "SnS:theorem-3",
        "Winner over runner-up grows as chi: r(t) = r(0) chi(t)",
        chi_regime,
        chi_identity,
        _small,
        *_whole,
        group=_winner,
    ),
    _theorem("SnS:sandwich", "2 f^2 B <= ln chi <= 2 B", single_common_regime, sandwich, 2 * _growth, *_whole, group=_winner),
    _theorem(
        "SnS:theorem-4",
        "The common token's score is -B(t0), B = 1/4 ln(1 + 4 Gamma/C0)",
        single_common_regime,
        theorem_4,
        _growth,
        *_whole,
    ),
    _theorem(
        "SnS:transition",
        "Winning tokens grow fastest when gamma peaks, at .8 to 1.1 times K ln M / eta_Y",
        transition_regime,
        transition,
        LIMITS.transition,
        "peak",
        elsewhere=fast_gradient,
    ),
)
