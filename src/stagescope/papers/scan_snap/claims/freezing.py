"""What is left after the scan: attention almost frozen, on a combination of several tokens, sparser or not with the rates."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.papers.scan_snap import nulls
from stagescope.papers.scan_snap.claims.beside import long_modified, slow_attention
from stagescope.papers.scan_snap.claims.identities import flow_regime
from stagescope.papers.scan_snap.evidence import ADAM, LIMITS, Evidence, regime_of, undecided
from stagescope.papers.scan_snap.observables import ClassAttention
from stagescope.papers.scan_snap.stages import LEVELS, Averages, find

SLOW_ATTENTION = 2.0
"""Theorem 3 is wrong by about this times eta_Z/eta_Y (70, 20, 2 % at eta_Y/eta_Z = 1, 10, 100: independent implementation)."""


def predicted_exponent(evidence: Evidence) -> float:
    """d ln B / d ln t at the end, from theorems 1 and 4: (2 / x) u / ((1 + u) ln(1 + u)), u = e^{-4 z_ct} - 1 [SnS:snap].

    B = 1/4 ln(1 + u) with u ~ x^2, and the logit x grows by one while time grows by e. x and z_ct are those of the run.
    """
    curves = evidence.curves
    x, z = float(evidence.logit_gaps[-1]), float(np.mean(curves.scores[-1][curves.common] - curves.scores[0][curves.common]))
    if not x > 0 or not z < 0:
        return np.inf
    u = np.expm1(min(-4 * z, 700.0))  # beyond it the exponential overflows
    return 2 / x * u / ((1 + u) * np.log1p(u))


def _snap_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    if evidence.commons == 0:
        return Regime(False, "there are no common tokens", applies=False)
    share, level = 10.0 ** -predicted_exponent(evidence), LEVELS.snap_behind
    said = f"theorems 1 and 4 have {share:.1%} of the way up to ten times this time behind attention"
    return regime_of((share + _leading(evidence) >= level, f"{said}, less than {level:.0%}: not frozen yet"), holds=said)


def _leading(evidence: Evidence) -> float:
    """Error of the share that theorems 1 and 4 give, which is known to leading order in 1/x."""
    return 2 * (1 - LEVELS.snap_behind) / max(float(evidence.logit_gaps[-1]), 1.0)


def _behind(curves: ClassAttention) -> float:
    return float(curves.behind[-1])


def _snap(evidence: Evidence) -> Comparison:
    """The share of the way that lies behind at the end; attention must have moved, and passed the peak of its speed."""
    level, unit = LEVELS.snap_behind, "of the way up to ten times this time"
    if not evidence.material:
        return undecided(f"only {evidence.curves.moved[-1]:.2g} of all attention has moved", f">= {level:g}", "bound")
    share, error = (float(each) for each in evidence.spread(_behind))
    theory = _leading(evidence)
    holds = True if share - error >= level else False if share + error < level - theory else None
    event = find(Averages.of(evidence.curves))["snap"]
    if holds and event.time is None:
        return undecided("attention was not frozen without interruption", f">= {level:g}", "bound")
    since = "" if event.time is None else f"; it has been above {level:.0%} since {evidence.curves.clock}={event.time:.4g}"
    reason = f"{share:.1%} of the way that attention goes up to ten times the end lie behind{since}"
    return Comparison(f">= {level:g}", share, "bound", holds, reason, theory, error, unit)


def _settled_regime(evidence: Evidence) -> Regime:
    """A decade of time after attention has slowed down, and after it has moved as much as may still move."""
    if evidence.is_adam:
        return ADAM
    early = evidence.end / 10
    moved = evidence.at(evidence.curves.moved, early)
    slow = find(Averages.of(evidence.curves))["slow"]
    return regime_of(
        (slow.time is not None and slow.time <= early, "the run does not last a decade of time after attention has slowed down"),
        (moved >= LIMITS.decade, f"only {moved:.2g} of all attention had moved a decade before the end"),
        holds=f"{moved:.2g} of all attention had moved a decade of time before the end",
    )


def _shares(attention: np.ndarray, distinct: np.ndarray) -> np.ndarray:
    own = attention * distinct
    return own / own.sum(axis=-1, keepdims=True)


def _last_decade(curves: ClassAttention) -> float:
    """Share of the attention on distinct tokens that changed places in the last decade of time, mean over classes."""
    early = int(np.argmin(np.abs(curves.time - curves.time[-1] / 10)))
    now, then = (_shares(curves.attention[frame], curves.distinct) for frame in (-1, early))
    return float(np.abs(now - then).sum(axis=1) @ curves.prior) / 2


def _fixed(evidence: Evidence) -> Comparison:
    measured, error = (float(each) for each in evidence.spread(_last_decade))
    reason = f"in the last decade of time {measured:.2%} of the attention on distinct tokens changed places"
    return agreement(0.0, measured, LIMITS.decade, reason, measured_error=error, unit="of the attention on distinct tokens")


def _several_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    if not np.any(evidence.curves.distinct.sum(axis=1) > 1):
        return Regime(False, "every class has one distinct token only", applies=False)
    slow = find(Averages.of(evidence.curves))["slow"]
    return regime_of(
        (slow.time is not None, "attention has not slowed down yet, so its end is not known"),
        (evidence.material, f"only {evidence.curves.moved[-1]:.2g} of all attention has moved"),
        holds="attention has moved and slowed down; classes have several distinct tokens",
    )


def _lost(curves: ClassAttention) -> float:
    """Share of the entropy on distinct tokens that is lost since the start: 0 at the start, 1 if one token takes all."""
    entropy = curves.mean(curves.entropy)
    return float(1 - entropy[-1] / entropy[0])


def _several(evidence: Evidence) -> Comparison:
    """The loss of entropy, and what another decade of time like the last one would add as its error."""
    curves, level = evidence.curves, LIMITS.half
    measured, noise = (float(each) for each in evidence.spread(_lost))
    entropy = curves.mean(curves.entropy)
    last = abs(evidence.at(entropy, evidence.end / 10) - entropy[-1]) / entropy[0]
    error = float(np.hypot(noise, last))
    left = float(np.exp(entropy[-1]))
    holds = True if measured + error < level else False if measured - error > level else None
    reason = f"attention ends on {left:.2f} distinct tokens of a class, of {np.exp(entropy[0]):.2f} at the start (exp of entropy)"
    return Comparison(f"< {level:g}", measured, "bound", holds, reason, None, error, "of the entropy at the start")


def _sparsity_regime(evidence: Evidence) -> Regime:
    found = flow_regime(evidence)
    if not found.applies or not found.holds:
        return found
    slow = find(Averages.of(evidence.curves))["slow"]
    return regime_of(
        (evidence.modified, "the decoder is the gradient's; its entropy is U-shaped over eta_Y/eta_Z"),
        (slow.time is not None, "attention has not slowed down yet, so its sparsity is not final"),
        (evidence.material, f"only {evidence.curves.moved[-1]:.2g} of all attention has moved"),
        (SLOW_ATTENTION / evidence.ratio <= 0.5, f"eta_Y/eta_Z is {evidence.ratio:.3g}, so theorem 3 is wrong by half or more"),
        holds="modified decoder, faster than attention; attention has moved and slowed down",
    )


def _sparsity(evidence: Evidence) -> Comparison:
    """Theorem 4: Gamma ~ eta_Z x^2 / eta_Y, so at a larger eta_Y/eta_Z attention has moved less by the same time."""
    tolerance = LIMITS.entropy
    if evidence.still or evidence.companions is None:
        return undecided("attention has not moved", "rise > 0", tolerance)
    faster = {**evidence.rates, "Y": 3 * evidence.rates["Y"]}
    companion = evidence.companions.rates(faster, evidence.end)
    if not companion.done:
        return undecided(f"the companion flow {companion.reason}", "rise > 0", tolerance)
    here, there = evidence.final_entropy, Evidence.of(companion).final_entropy
    ratio = f"eta_Y/eta_Z = {evidence.ratio:.3g}"
    reason = f"entropy on distinct tokens is {here:.5f} nats at {ratio} and {there:.5f} at three times this ratio"
    rise = there - here
    holds = rise > 0 if abs(rise) > tolerance else None
    error = SLOW_ATTENTION / evidence.ratio * abs(rise)
    return Comparison("rise > 0", rise, tolerance, holds, reason, error, LEVELS.solver, "nats")


def _finite_step_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    if evidence.is_flow or evidence.companions is None:
        return Regime(False, "the claim is about steps", applies=False)
    if evidence.sampled:
        length = evidence.run.spec["field"]["length"]
        why = f"contexts of {length} tokens end sparser as well; leave out --length to see the steps alone"
        return Regime(False, why, applies=False)
    return regime_of(
        (evidence.material, "attention has not moved"),
        holds="gradient steps, compared with the flow from the same start for the same effective time",
    )


def _finite_step(evidence: Evidence) -> Comparison:
    assert evidence.companions is not None
    tolerance, flow = LIMITS.relative, evidence.companions.flow(float(evidence.run.time[-1]))
    if not flow.done:
        return undecided(f"the companion flow {flow.reason}", "> 0", tolerance)
    here, there = evidence.final_entropy, Evidence.of(flow).final_entropy
    lost = float(evidence.curves.mean(evidence.curves.entropy)[0]) - there
    if lost <= LIMITS.entropy:
        return undecided("the flow does not get sparser", "> 0", tolerance)
    more = (there - here) / lost
    reason = f"entropy is {here:.4f} nats after {int(evidence.run.step[-1])} steps and {there:.4f} in the flow"
    holds = more > 0 if abs(more) > tolerance else None
    return Comparison("> 0", more, tolerance, holds, reason, LEVELS.solver / lost, 0.0, "of the entropy that the flow loses")


CLAIMS = (
    claim(
        "SnS:snap",
        "Attention snaps: three quarters of its way, up to ten times the time, lie behind",
        _snap_regime,
        _snap,
        "peak",
        "end",
        kind="pattern",
        group="motion at the end",
        null=(nulls.FROZEN, nulls.CUT, nulls.WALK),
        rules=2,
        elsewhere=long_modified,
    ),
    claim(
        "SnS:fixed",
        "The combination of distinct tokens stays almost fixed",
        _settled_regime,
        _fixed,
        "slow",
        "end",
        kind="pattern",
        group="motion at the end",
        null=(nulls.FROZEN, nulls.CUT, nulls.WALK),
        elsewhere=long_modified,
    ),
    claim(
        "SnS:several",
        "Attention ends on several distinct tokens, not on one winner",
        _several_regime,
        _several,
        "slow",
        "end",
        kind="pattern",
        null=nulls.SHARPENED,
        elsewhere=long_modified,
    ),
    claim(
        "SnS:sparsity",
        "A larger eta_Y/eta_Z ends less sparse",
        _sparsity_regime,
        _sparsity,
        "end",
        kind="pattern",
        null=(nulls.EXCHANGEABLE, nulls.FROZEN),
        rules=2,
        elsewhere=slow_attention,
    ),
    claim(
        "SnS:finite-step",
        "Larger rates end sparser: an effect of finite steps",
        _finite_step_regime,
        _finite_step,
        "end",
        kind="pattern",
        null=nulls.SMALL_STEPS,
        rules=2,
    ),
)
