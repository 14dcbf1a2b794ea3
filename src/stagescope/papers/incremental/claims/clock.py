"""Times of incremental learning: t_1 in closed form, and the model against the regression flow from the same logits."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.detect.events import first_crossing
from stagescope.papers.incremental import nulls
from stagescope.papers.incremental.claims import elsewhere
from stagescope.papers.incremental.claims.escape import flows
from stagescope.papers.incremental.evidence import Evidence
from stagescope.papers.incremental.task import Curve


@dataclass(frozen=True)
class TimeThresholds:
    """The regime of the closed form of t_1, and how a run is compared with a flow."""

    first: float = 0.10
    """Relative tolerance of t_1 (science page, section 3). Its form is used where what it leaves out is at most half of that."""
    departure: float = 0.1
    """The model has left the flow when their positions on the ladder differ by this share of a rung."""
    longer: float = 2.0
    """The flow is followed for this multiple of the length of the run."""


TIMES = TimeThresholds()
OF_FLOW = "times that of the flow"


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
    """The closed form is a limit of many positions; what it leaves out is its error."""
    base, forms = flows(evidence), evidence.task.forms
    if forms is None:
        return Regime(False, base.sentence)
    if not base.holds:
        return base
    left = forms.first_error / forms.first_time
    sentence = f"{forms.positions} positions, H/g_1 = {forms.heads / forms.gains[0]:.2g}: the form leaves out {left:.0%} of t_1"
    if left > TIMES.first / 2:
        return Regime(False, f"{sentence}, more than half of the tolerance")
    return Regime(True, f"{base.sentence}, {sentence}")


def _first(evidence: Evidence) -> Comparison:
    """P6: t_1 against its closed form."""
    forms, event, limit = evidence.task.forms, evidence.heads.crossings[0], TIMES.first
    if forms is None or event.time is None or event.low is None:
        return Comparison("-", None, limit, None, "t_1 was not reached" if forms else "there is no closed form", unit="t")
    reason = f"t_1 measured/predicted {event.time / forms.first_time:.3f}"
    errors: Any = {"predicted_error": forms.first_error, "measured_error": event.time - event.low}
    return agreement(forms.first_time, event.time, limit * forms.first_time, reason, **errors, unit="t")


def _clocked(evidence: Evidence) -> Regime:
    clock = evidence.clock
    if clock is None:
        return Regime(False, "this run is not the one whose average is the regression flow: single lags, one target, gradients")
    return Regime(clock.holds, clock.sentence)


def _clock(evidence: Evidence) -> Comparison:
    """t_j of the model over those of the flow; a transition that only one of them has bounds the ratio.

    Undecided where the flow has passed a transition by the end of the run and the model may still do so within the tolerance,
    and where only t_1 was reached by heads that can part: t_1 is the time of one head.
    """
    limit, make = evidence.clock.tolerance if evidence.clock else 0.0, evidence.companions.flow
    if make is None:
        return Comparison(1.0, None, limit, None, "this run has no flow to compare with", unit=OF_FLOW)
    end, flow = float(evidence.time[-1]), make(TIMES.longer * float(evidence.time[-1]))
    model = Curve(evidence.time, evidence.heads.loss, evidence.levels)
    ratios, errors, late, shown, unseen = [], [], False, [], []
    for j, its in enumerate(flow.times, start=1):
        mine, half = evidence.heads.mean_crossing(j)
        if mine is not None and its is not None:
            ratios.append(mine / its)
            errors.append(half / its)
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
        return Comparison(1.0, None, limit, None, f"model and flow have no transition in common; {where}", unit=OF_FLOW)
    at = int(np.argmax(np.abs(np.array(ratios) - 1)))
    worst, error = float(ratios[at]), float(errors[at])
    wide = evidence.clock.error if evidence.clock else 0.0
    judged = agreement(1.0, worst, limit, "", predicted_error=wide, measured_error=error).holds
    holds = False if late else judged
    reason = f"model over flow from the same logits: {', '.join(shown)}; {where}"
    if unseen:
        reason += f"; not compared: {', '.join(f't_{j}' for j, _ in unseen)}"
    why = None
    if len(ratios) == 1 and evidence.task.reachable > 1 and not evidence.identical:
        why = "t_1 alone does not test heads that part"
    elif any(due for _, due in unseen):
        why = "the flow has reached it, but the run ends too early"
    if holds and why:
        return Comparison(1.0, worst, limit, None, f"{reason}: {why}", predicted_error=wide, measured_error=error, unit=OF_FLOW)
    return Comparison(1.0, worst, limit, holds, reason, predicted_error=wide, measured_error=error, unit=OF_FLOW)


CLAIMS = (
    claim(
        "ISA:first",
        "t_1 is that of the closed form",
        _many_positions,
        _first,
        "t1",
        kind="prediction",
        null=(nulls.STRETCHED_WIDE,),
        rules=2,
        elsewhere=elsewhere.many_positions,
    ),
    claim(
        "ISA:clock",
        "The regression flow from the same logits gives the times of the model",
        _clocked,
        _clock,
        "t*",
        kind="prediction",
        null=(nulls.STRETCHED_STUDENT,),
        rules=2,
        elsewhere=elsewhere.small_logits,
        cost="a flow, twice as long as the run",
    ),
)
