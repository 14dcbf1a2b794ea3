"""How sparse attention ends: with the ratio of the rates, and with finite steps. Both are compared with a companion flow."""

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime
from stagescope.dynamics.dynamics import SolveFailed
from stagescope.papers.scan_snap import nulls
from stagescope.papers.scan_snap.claims.beside import slow_attention
from stagescope.papers.scan_snap.claims.identities import flow_regime
from stagescope.papers.scan_snap.evidence import ADAM, LIMITS, Evidence, regime_of, undecided
from stagescope.papers.scan_snap.stages import LEVELS, Averages, find

SLOW_ATTENTION = 2.0
"""Theorem 3 is wrong by about this times eta_Z/eta_Y (70, 20, 2 % at eta_Y/eta_Z = 1, 10, 100: independent implementation)."""


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
    try:
        companion = evidence.companions.rates(faster, evidence.end)
    except SolveFailed as failure:
        return undecided(f"the companion flow {failure}", "rise > 0", tolerance)
    here, there = evidence.final_entropy, evidence.entropy_at(companion)
    ratio = f"eta_Y/eta_Z = {evidence.ratio:.3g}"
    reason = f"entropy on distinct tokens is {here:.5f} nats at {ratio} and {there:.5f} at three times this ratio"
    rise = there - here
    error = 2**0.5 * LEVELS.solver * float(evidence.curves.mean(evidence.curves.entropy)[0])  # two flows
    holds = rise > 0 if abs(rise) - error > tolerance else None
    return Comparison("rise > 0", rise, tolerance, holds, reason, None, error, "nats")


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
    tolerance = LIMITS.relative
    try:
        flow = evidence.companions.flow(float(evidence.run.time[-1]))
    except SolveFailed as failure:
        return undecided(f"the companion flow {failure}", "> 0", tolerance)
    here, there = evidence.final_entropy, evidence.entropy_at(flow)
    lost = float(evidence.curves.mean(evidence.curves.entropy)[0]) - there
    if lost <= LIMITS.entropy:
        return undecided("the flow does not get sparser", "> 0", tolerance)
    more = (there - here) / lost
    reason = f"entropy is {here:.4f} nats after {int(evidence.run.step[-1])} steps and {there:.4f} in the flow"
    error = LEVELS.solver * float(evidence.curves.mean(evidence.curves.entropy)[0]) / lost
    holds = more > 0 if abs(more) - error > tolerance else None
    return Comparison("> 0", more, tolerance, holds, reason, error, 0.0, "of the entropy that the flow loses")


CLAIMS = (
    claim(
        "SnS:sparsity",
        "A larger eta_Y/eta_Z ends less sparse",
        _sparsity_regime,
        _sparsity,
        "end",
        kind="pattern",
        null=(nulls.MISSTATED, nulls.EXCHANGEABLE),
        rules=3,
        cost="1 flow, as long as the run",
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
        rules=3,
        rare=True,
        cost="1 flow, as long as the run",
    ),
)
