"""Times of incremental learning: t_1 in closed form, and the model against the regression flow from the same logits."""

from dataclasses import dataclass

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime
from stagescope.detect.events import first_crossing
from stagescope.papers.incremental.claims.escape import flows
from stagescope.papers.incremental.evidence import Curve, Evidence


@dataclass(frozen=True)
class TimeThresholds:
    """The regime of the closed form of t_1, and how a run is compared with a flow."""

    first: float = 0.10
    """Relative tolerance of t_1."""
    positions: int = 40
    """Least number of positions for the closed form of t_1, a limit of many positions; chosen with flows of 6 to 40."""
    crowded: float = 1.5
    """Largest H/g_1 for it under the exact law: the form is of first order in H/g_1."""
    departure: float = 0.1
    """The model has left the flow when their positions on the ladder differ by this share of a rung."""
    longer: float = 2.0
    """The flow is followed for this multiple of the length of the run."""


TIMES = TimeThresholds()


def rungs(curve: Curve) -> np.ndarray:
    """The position of a loss on its own ladder: j on level j, linear between levels."""
    order = np.argsort(curve.levels)
    return np.interp(curve.loss, curve.levels[order], order.astype(float))


def departure(model: Curve, flow: Curve) -> float | None:
    """When the positions of model and flow on their ladders first differ by a tenth of a rung; None if never [ISA:clock]."""
    inside = model.time <= flow.time[-1]
    gap = np.abs(rungs(model) - np.interp(model.time, flow.time, rungs(flow)))[inside]
    return first_crossing(model.time[inside], gap, TIMES.departure, rising=True)


def _many_positions(evidence: Evidence) -> Regime:
    base, forms = flows(evidence), evidence.task.forms
    if not base.applies or forms is None:
        return base
    failed = [] if base.holds else [base.sentence]
    if forms.positions < TIMES.positions:
        failed.append(f"{forms.positions} positions are fewer than {TIMES.positions}")
    if not forms.mirror and forms.heads / forms.gains[0] > TIMES.crowded:
        failed.append(f"H/g_1 = {forms.heads / forms.gains[0]:.2g} is above {TIMES.crowded:g}")
    return Regime(not failed, "; ".join(failed) or f"{base.sentence}, {forms.positions} positions")


def _first(evidence: Evidence) -> Comparison:
    """P6: t_1 against its closed form."""
    forms, when, limit = evidence.task.forms, evidence.times[0], TIMES.first
    if forms is None or when is None:
        return Comparison("-", None, limit, None, "t_1 was not reached")
    ratio = when / forms.first_time
    return Comparison(forms.first_time, when, limit, abs(ratio - 1) <= limit, f"t_1 measured/predicted {ratio:.3f}")


def _clocked(evidence: Evidence) -> Regime:
    clock = evidence.clock
    if clock is None:
        return Regime(False, "the regression flow is not the average of this model", applies=False)
    return Regime(clock.holds, clock.sentence)


def _clock(evidence: Evidence) -> Comparison:
    """t_j of the model over those of the flow; a transition that only one of them has bounds the ratio.

    Undecided where the flow has passed a transition by the end of the run and the model may still do so within the tolerance,
    and where only t_1 was reached by heads that can part: t_1 is the time of one head.
    """
    limit, make = evidence.clock.tolerance if evidence.clock else 0.0, evidence.companions.flow
    if make is None:
        return Comparison(1.0, None, limit, None, "this run has no flow to compare with")
    end, flow = float(evidence.time[-1]), make(TIMES.longer * float(evidence.time[-1]))
    model = Curve(evidence.time, evidence.heads.loss, evidence.levels)
    ratios, late, shown, unseen = [], False, [], []
    for j, (mine, its) in enumerate(zip(model.times, flow.times, strict=True), start=1):
        if mine is not None and its is not None:
            ratios.append(mine / its)
            shown.append(f"t_{j} {mine / its:.3f}")
        elif its is not None and end > (1 + limit) * its:
            late = True
            shown.append(f"t_{j} above {end / its:.3f}")
        elif mine is not None:
            late = True
            shown.append(f"t_{j} below {mine / (TIMES.longer * end):.3f}")
        elif j <= evidence.task.reachable:
            unseen.append((j, its is not None and its <= end))
    left = departure(model, flow)
    where = "the model does not leave the flow" if left is None else f"the model leaves the flow at {left:.4g}"
    if not ratios:
        return Comparison(1.0, None, limit, None, f"model and flow have no transition in common; {where}")
    worst = float(max(ratios, key=lambda ratio: abs(ratio - 1)))
    holds = not late and abs(worst - 1) <= limit
    reason = f"model over flow from the same logits: {', '.join(shown)}; {where}"
    if unseen:
        reason += f"; not compared: {', '.join(f't_{j}' for j, _ in unseen)}"
    why = None
    if len(ratios) == 1 and evidence.task.reachable > 1 and not evidence.identical:
        why = "t_1 alone does not test heads that part"
    elif any(due for _, due in unseen):
        why = "the flow has reached it, but the run ends too early"
    if holds and why:
        return Comparison(1.0, worst, limit, None, f"{reason}: {why}")
    return Comparison(1.0, worst, limit, holds, reason)


CLAIMS = (
    claim("ISA:first", "t_1 is that of the closed form", _many_positions, _first, "t1"),
    claim("ISA:clock", "The regression flow from the same logits gives the times of the model", _clocked, _clock, "t*"),
)
