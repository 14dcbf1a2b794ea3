"""What the start of linear attention predicts: the drops by the cascade, with intervals as measured, and those of a flow."""

import numpy as np

from stagescope.core.errors import InputError
from stagescope.core.params import Params, root_mean_square
from stagescope.detect.events import first_crossing
from stagescope.landscape.flow_prediction import FlowEvents, FlowSteps
from stagescope.landscape.saddle_path import SOLVER, AtRest, Leg, Predicted, SaddlePath, in_order, unsure
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.cascade import Drop, SilentHead, cascade
from stagescope.papers.linear_icl.limits import LIMITS
from stagescope.papers.linear_icl.loss import LinearLoss, LinearSampled
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask
from stagescope.readings.published import published


def regime(task: RegressionTask, scale: float, drops: list[Drop], m: int) -> str:
    """Which row of the measured errors drop m (from 0) belongs to: how it opens, and whether heads and directions are apart."""
    if m == 0:
        return "first" if scale <= LIMITS.small * forms.start_unit(task, False) else "first, large start"
    opens = "inside a head" if drops[m].blow_up is None else "by another head"
    together = any(drop.ratio < LIMITS.separate for drop in drops[: m + 1])
    mixed = forms.purity(task, scale, m + 1) > LIMITS.purity
    return f"{opens}{', two heads close' * together}{', directions mixed' * mixed}"


def _error(name: str, task: RegressionTask, model: LinearAttention) -> float | str:
    """The error that 95 % of drops of a regime stay within, relatively; a sentence where it was never measured."""
    table = published("stagescope.papers.linear_icl")["path_errors"].value
    sizes = {"directions": task.dim, "rank": model.rank or 0, "heads": model.heads}
    beyond = [f"{sizes[size]} {size}, beyond {largest}" for size, largest in table["largest"].items() if sizes[size] > largest]
    error, drops = table["regimes"].get(name, (None, 0))
    if not beyond and error is not None:
        return error
    reason = beyond[0] if beyond else f"{drops} drops {name}, too few for their 95 % quantile"
    return f"the theory was not tried enough here ({reason}); leave out --path to predict by the flow"


def linear_path(law: LinearLoss, start: Params, until: float, seen: float = np.inf) -> SaddlePath:
    """Events d1, d2, ...: the loss is halfway between two levels, as for runs [LIN:stages]. All of them, whatever was `seen`."""
    if isinstance(law, LinearSampled):
        raise InputError("this loss draws a batch for every step, so it has no flow to predict; leave out --batch")
    scale, task, model = root_mean_square(start), law.task, law.model
    largest = LIMITS.spread * LIMITS.first * forms.start_unit(task, model.merged)
    if not 0 < scale <= largest:
        raise InputError(f"the start has rms {scale:.3g}; a path begins near the origin, above 0 and up to {largest:.2g} here")
    levels = forms.levels(task)
    if model.merged:
        rate, ends = forms.merged_rate(task), levels[[0, -1]]
        event = _event(forms.merged_drop_time(task, start), _error("merged", task, model), until)
        legs = [Leg("plateau 0", 0.0, event.t, float(ends[0]), "all directions", rate, lambda: ("settled", (rate,)))]
        if event.t is not None:
            legs.append(Leg(f"plateau {task.dim}", event.t, None, float(ends[1]), None, None, _settled))
        return _path(legs, {"d1": event}, ends)
    drops = cascade(task, SilentHead.all_of(start), model.rank or 1)
    room = f"{model.heads} heads of rank {model.rank} hold {model.reach} directions"
    events: dict[str, Predicted] = {}
    error: float | str = 0.0
    for m in range(task.dim):
        if m < len(drops):  # what follows a drop that is refused is refused for the same reason
            error = error if isinstance(error, str) else _error(regime(task, scale, drops, m), task, model)
            events[f"d{m + 1}"] = _event(drops[m].time, error, until)
        else:
            reason = room if m >= model.reach else "no head can grow"
            events[f"d{m + 1}"] = Predicted(None, reason=reason, beyond=until, absent=True)
    events = in_order(events)
    # no plateau is left at a linear rate: a silent head blows up at a finite time
    times = [0.0, *(event.t for event in events.values() if event.t is not None)]
    legs = []
    for m, begin in enumerate(times):
        end, opens = (times[m + 1], f"direction {m + 1}") if m + 1 < len(times) else (None, None)
        legs.append(Leg(f"plateau {m}", begin, end, float(levels[m]), opens, None, _settled))
    return _path(legs, events, levels)


def _path(legs: list[Leg], events: dict[str, Predicted], levels: np.ndarray) -> SaddlePath:
    middles = (levels[:-1] + levels[1:]) / 2
    halves = dict(zip(events, middles.tolist(), strict=True))
    return SaddlePath(tuple(legs), events, tuple(unsure(events)), 0.0, np.zeros(0), {}, halves)


def _event(time: float, error: float | str, until: float) -> Predicted:
    if isinstance(error, str):
        return Predicted(None, reason=error)
    if not time <= until:
        return Predicted(None, reason=f"it does not come by t={until:g}", beyond=until)
    half = (error + SOLVER) * time
    return Predicted(time, time - half, time + half)


def _settled() -> AtRest:
    """A plateau at a fixed point that has no linear rate."""
    return "settled", ()


def _flow_times(steps: FlowSteps) -> dict[str, float | None]:
    levels = forms.levels_of(steps.law.task, steps.law.model)
    middles = enumerate(((levels[:-1] + levels[1:]) / 2).tolist(), start=1)
    return {f"d{m}": first_crossing(steps.time, steps.loss, middle, rising=False) for m, middle in middles}


def _flow_leg(law: LinearLoss, passed: list[str], coming: str | None) -> tuple[str, str | None]:
    if law.model.merged:
        return f"plateau {law.task.dim if passed else 0}", coming and "all directions"
    return f"plateau {len(passed)}", coming and f"direction {len(passed) + 1}"


LINEAR_FLOW = FlowEvents(_flow_times, _flow_leg)
