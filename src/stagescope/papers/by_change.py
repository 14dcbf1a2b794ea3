"""Frames where much changes: pilots of a run decide when its frames are, before the run begins."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.record import AtTimes, LogSpaced, Uniform
from stagescope.errors import InputError
from stagescope.fields.field import as_field
from stagescope.papers.paper import Kind
from stagescope.runs.run import Run
from stagescope.views.change import SOURCES, change_of
from stagescope.views.view import Matrices, View

if TYPE_CHECKING:
    from stagescope.papers.study import Setup

PILOT = 4
"""Frames of a pilot for each frame of the run, so that short changes are seen."""


def frames_by_change(plan: "Setup", kinds: Sequence[Kind], frames: int, progress: bool | None = None) -> "Setup":
    """The plan with fixed times for its frames: equal changes of attention (`views.change`) lie between them.

    A first pilot makes the same run with five times as many frames, most of them equally spaced, the others at equal ratios. A
    second one has four times as many, at the times that the first found: it sees what is quick. Its times are written into the
    spec as `AtTimes`, so a run that is resumed or made again has the same frames. A pilot must move as the run will, so steps
    that draw their data are refused.
    """
    if as_field(plan.what).draw(0) is not None:
        how = "use --record log or uniform, or a loss that draws nothing"
        raise InputError(f"--record by-change needs a motion without chance, and every step here draws its data anew; {how}")
    end = plan.until if plan.until is not None else float(getattr(plan.dynamics, "steps", 0))
    dense = np.union1d(Uniform(frames=PILOT * frames).times(end), LogSpaced(frames=frames).times(end))
    record = _at(plan, dense)
    for count in (PILOT * frames, frames):
        pilot = evolve(plan.what, plan.params, plan.dynamics, until=plan.until, record=record, progress=progress)
        change = change_of(pilot, list(_moving(pilot, _kind(plan, kinds))))
        if change is None:
            raise InputError("--record by-change finds no change: nothing moves in this run; use --record uniform")
        record = _at(plan, change.times(pilot.time, count))
    return replace(plan, record=record)


def _at(plan: "Setup", times: np.ndarray) -> AtTimes:
    """These times after the start; whole ones where the clock counts steps."""
    times = times if plan.until is not None else np.unique(np.rint(times))
    return AtTimes(at=tuple(times[times > 0].tolist()))


def _kind(plan: "Setup", kinds: Sequence[Kind]) -> Kind | None:
    name = f"{type(plan.what).__module__}:{type(plan.what).__name__}"
    return next((kind for kind in kinds if name in kind.fields), None)


def _moving(pilot: Run, kind: Kind | None) -> Iterable[View]:
    """Views of the pilot up to the first that shows attention or predictions: nothing else is looked at."""
    slots = [slot for found in SOURCES.values() for slot in found]
    for make in () if kind is None else kind.views(kind.read(pilot)):
        view = make()
        if isinstance(view, Matrices) and view.slot in slots:
            yield view
            return
