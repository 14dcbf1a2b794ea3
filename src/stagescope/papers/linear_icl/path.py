"""The saddle path of linear attention: every drop from the start, by the cascade; of merged heads by their one curve."""

import numpy as np

from stagescope.errors import InputError
from stagescope.landscape.saddle_path import SOLVER, AtRest, Leg, Predicted, SaddlePath, unsure
from stagescope.papers.linear_icl import forms, merged
from stagescope.papers.linear_icl.blow_up import SilentHead
from stagescope.papers.linear_icl.cascade import Drop, cascade
from stagescope.papers.linear_icl.evidence import LIMITS
from stagescope.papers.linear_icl.loss import LinearLoss
from stagescope.papers.linear_icl.process import RegressionTask
from stagescope.papers.linear_icl.sampled import LinearSampled
from stagescope.params import Params

FIRST, MERGED = 0.01, 5e-3
"""Half of the interval of the first drop, and of the drop of merged heads, relatively; of later drops it is `LIMITS.later`."""


def linear_path(law: LinearLoss, start: Params, until: float, seen: float = np.inf) -> SaddlePath:
    """Events d1, d2, ...: the loss is halfway between two levels, as for runs [LIN:stages]. All of them, whatever was `seen`."""
    if isinstance(law, LinearSampled):
        raise InputError("this loss draws a batch for every step, so it has no flow to predict; leave out --batch")
    scale = float(np.sqrt(np.mean(np.concatenate([np.ravel(block) for block in start.values()]) ** 2)))
    most = LIMITS.spread * LIMITS.first * forms.start_unit(law.task, law.model.merged)
    if not 0 < scale <= most:
        raise InputError(f"the start has rms {scale:.3g}; a path begins near the origin, above 0 and up to {most:.2g} here")
    return _of_merged(law, start, until) if law.model.merged else _of_separate(law, start, until, scale)


def _of_merged(law: LinearLoss, start: Params, until: float) -> SaddlePath:
    task = law.task
    when, levels = merged.drop_time(task, start), forms.levels(task)
    event = _event(when, MERGED, until)
    rate = merged.growth_rate(task)
    legs = [Leg("plateau 0", 0.0, event.t, float(levels[0]), "all directions", rate, lambda: ("settled", (rate,)))]
    if event.t is not None:
        legs.append(Leg(f"plateau {task.dim}", event.t, None, float(levels[-1]), None, None, _settled))
    middle = float(levels[0] + levels[-1]) / 2
    return SaddlePath(tuple(legs), {"d1": event}, tuple(unsure({"d1": event})), 0.0, np.zeros(0), {}, {"d1": middle})


def _of_separate(law: LinearLoss, start: Params, until: float, scale: float) -> SaddlePath:
    task, reach, levels = law.task, law.model.reach, forms.levels(law.task)
    found = cascade(task, SilentHead.all_of(start), law.model.rank or 1)
    room = f"{law.model.heads} heads of rank {law.model.rank} hold {reach} directions"
    events: dict[str, Predicted] = {}
    for m in range(task.dim):
        if m < len(found):
            events[f"d{m + 1}"] = _event(found[m].time, LIMITS.later if m else FIRST, until)
        else:
            events[f"d{m + 1}"] = Predicted(None, reason=room if m >= reach else "no head can grow", beyond=until, absent=True)
    middles = {f"d{m + 1}": float(levels[m] + levels[m + 1]) / 2 for m in range(task.dim)}
    notes = (*unsure(events), *_doubts(task, found, scale, law.model.rank or 1))
    return SaddlePath(tuple(_legs(events, levels)), events, notes, 0.0, np.zeros(0), {}, middles)


def _event(when: float, error: float, until: float) -> Predicted:
    if not when <= until:
        return Predicted(None, reason=f"it does not come by t={until:g}", beyond=until)
    half = (error + SOLVER) * when
    return Predicted(when, when - half, when + half)


def _legs(events: dict[str, Predicted], levels: np.ndarray) -> list[Leg]:
    """Plateaus between drops. None is left at a linear rate: a silent head blows up at a finite time."""
    times = [0.0, *(event.t for event in events.values() if event.t is not None)]
    return [
        Leg(
            f"plateau {m}",
            begin,
            times[m + 1] if m + 1 < len(times) else None,
            float(levels[m]),
            f"direction {m + 1}" if m + 1 < len(times) else None,
            None,
            _settled,
        )
        for m, begin in enumerate(times)
    ]


def _settled() -> AtRest:
    """A plateau at a fixed point that has no linear rate."""
    return "settled", ()


def _doubts(task: RegressionTask, found: list[Drop], scale: float, rank: int) -> list[str]:
    """Where the intervals of later drops are not to be believed."""
    said = []
    if close := [f"d{m + 1}" for m, drop in enumerate(found) if drop.ratio < LIMITS.apart]:
        said.append(f"two heads are close to each other at {', '.join(close)}: drops after it may be off by a fifth or more")
    share = forms.worst_purity(task, scale, len(found))
    if share > LIMITS.purity:
        said.append(f"eigenvalues are not separated at this scale (purity {share:.2g}): directions may come in another order")
    if rank > 1:
        said.append("times of directions that open inside a head are estimates: their intervals were not tried")
    return said
