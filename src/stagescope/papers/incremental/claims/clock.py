"""The clock of incremental learning: t_1 in closed form, and the model against the regression flow from the same logits."""

import numpy as np

from stagescope.claims.claim import Claim, Comparison, Regime
from stagescope.detect.stage import first_crossing
from stagescope.papers.incremental.claims.escape import flows
from stagescope.papers.incremental.evidence import Curve, Evidence

FIRST = 0.10
MANY, CROWDED = 40, 1.5
"""t_1 has its closed form from so many positions on and, exact law, up to this H/g_1: the form is of first order in it."""
LEFT = 0.1
"""The model has left the flow where their places on the ladder differ by this share of a rung."""
LONGER = 2.0
"""The flow beside a run is followed for so many times its length."""


def rungs(curve: Curve) -> np.ndarray:
    """Where on its own ladder a loss is: j on level j, linear between levels."""
    order = np.argsort(curve.levels)
    return np.interp(curve.loss, curve.levels[order], order.astype(float))


def departure(model: Curve, flow: Curve) -> float | None:
    """When the model's place on its ladder first differs from the flow's by a tenth of a rung; None if never [ISA:clock]."""
    inside = model.time <= flow.time[-1]
    gap = np.abs(rungs(model) - np.interp(model.time, flow.time, rungs(flow)))[inside]
    return first_crossing(model.time[inside], gap, LEFT, rising=True)


def _many_positions(evidence: Evidence) -> Regime:
    base, forms = flows(evidence), evidence.task.forms
    if not base.applies or forms is None:
        return base
    failed = [] if base.holds else [base.sentence]
    if forms.positions < MANY:
        failed.append(f"{forms.positions} positions are fewer than {MANY}")
    if not forms.mirror and forms.heads / forms.gains[0] > CROWDED:
        failed.append(f"H/g_1 = {forms.heads / forms.gains[0]:.2g} is above {CROWDED:g}")
    return Regime(not failed, "; ".join(failed) or f"{base.sentence}, {forms.positions} positions")


def _first(evidence: Evidence) -> Comparison:
    """P6."""
    forms, when = evidence.task.forms, evidence.times[0]
    if forms is None or when is None:
        return Comparison("-", None, FIRST, None, "t_1 was not reached")
    off = when / forms.first_time
    return Comparison(forms.first_time, when, FIRST, abs(off - 1) <= FIRST, f"t_1 over the form {off:.3f}")


def _clocked(evidence: Evidence) -> Regime:
    clock = evidence.clock
    if clock is None:
        return Regime(False, "speaks of models that the regression flow is the average of", applies=False)
    return Regime(clock.holds, clock.sentence)


def _clock(evidence: Evidence) -> Comparison:
    """t_j of the model over those of the flow; a transition that one of them misses bounds the ratio.

    Undecided where the flow has passed a transition by the end of the run and the model may still do so in time, and where
    only t_1 was seen of heads that are to part: t_1 is that of one head.
    """
    limit, make = evidence.clock.tolerance if evidence.clock else 0.0, evidence.beside.flow
    if make is None:
        return Comparison(1.0, None, limit, None, "there is no flow beside this run")
    end, flow = float(evidence.time[-1]), make(LONGER * float(evidence.time[-1]))
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
            shown.append(f"t_{j} below {mine / (LONGER * end):.3f}")
        elif j <= evidence.task.reachable:
            unseen.append((j, its is not None and its <= end))
    left = departure(model, flow)
    where = "the model does not leave the flow" if left is None else f"the model leaves the flow at {left:.4g}"
    if not ratios:
        return Comparison(1.0, None, limit, None, f"no transition of both was reached; {where}")
    worst = float(max(ratios, key=lambda ratio: abs(ratio - 1)))
    holds = not late and abs(worst - 1) <= limit
    reason = f"model over flow from the same logits: {', '.join(shown)}; {where}"
    if unseen:
        reason += f"; nothing is said of {' and '.join(f't_{j}' for j, _ in unseen)}"
    why = None
    if len(ratios) == 1 and evidence.task.reachable > 1 and not evidence.identical:
        why = "t_1 alone says nothing of parting heads"
    elif any(due for _, due in unseen):
        why = "the flow has come there, the run ends too early to tell"
    if holds and why:
        return Comparison(1.0, worst, limit, None, f"{reason}: {why}")
    return Comparison(1.0, worst, limit, holds, reason)


CLAIMS = (
    Claim(tag="ISA:first", statement="t_1 is the closed form's", regime=_many_positions, compare=_first, shown=("t1",)),
    Claim(
        tag="ISA:clock",
        statement="The regression flow from the same logits gives the model's times",
        regime=_clocked,
        compare=_clock,
        shown=("t*",),
    ),
)
