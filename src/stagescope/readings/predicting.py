"""What a training will do, before it: by its flow or the saddle path, and the start scale below which an event never comes."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from stagescope.core.errors import InputError, message, unknown
from stagescope.core.ids import type_id
from stagescope.core.params import Params
from stagescope.core.threads import one_blas_thread
from stagescope.flow.descent import Descent
from stagescope.flow.dynamics import TinyStart
from stagescope.flow.field import Field, Objective, as_field
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.flow.solver import Stopped
from stagescope.landscape.flow_prediction import FlowEvents, NotFollowed, flow_prediction
from stagescope.landscape.general_path import general_path
from stagescope.landscape.saddle_path import Predicted, SaddlePath
from stagescope.readings.paper import Kind
from stagescope.readings.rebuild import field_of, forked
from stagescope.readings.registry import kind_of
from stagescope.readings.study import Setup
from stagescope.runs.run import Run

UNTIL = 1e8
"""How far a path is followed; an event that comes later is not reached."""
SMALLEST, LARGEST = 1e-60, (2e-3, 1e-3, 1e-4)
"""Start scales between which a critical one is searched: from the largest of these at which the start is small enough."""
CLOSE = 1.02
"""A critical scale is known when an event comes at one scale and not at another that is this factor smaller."""


@one_blas_thread()
def saddle_path(
    what: Objective | Field,
    start: Params | None = None,
    *,
    scale: float | Mapping[str, float] = 1e-3,
    seed: int = 0,
    until: float = UNTIL,
    seen: float = np.inf,
) -> SaddlePath:
    """The saddle path of gradient flow from a start, or from the start that the model draws at `scale` with `seed`.

    No run is made. The start may be as small as 1e-60 and smaller. What cannot be predicted is in the notes of the path. A
    model whose paper knows its structure has a path of its own events; any other loss, of up to 500 parameters, has the
    events "escape k", at which its loss is halfway between two places of the path (`SaddlePath.crossings` reads a run so).
    Beside a run that ends at the time `seen`, a path may end at the first event after it: what follows takes the most time.

    Args:
        what: an objective.
        start: the parameters; default: the model draws them.
        scale: of this draw.
        seed: of this draw.
        until: where the path ends.
        seen: the end of a run beside which the path is shown.

    Returns:
        Legs, events with their times, and notes on what is not known.

    Examples:
        >>> path = ss.saddle_path(loss, scale=1e-6, until=200)
        >>> print(path.sequence[0], f"{path['E1'].t:.1f}")
        E1 83.1
    """
    begin = _start(what, start, scale, seed, until)
    kind = _kind(what)
    return (general_path if kind is None or kind.path is None else kind.path)(what, begin, until, seen)


@one_blas_thread()
def predict(
    what: Objective | Field,
    start: Params | None = None,
    *,
    until: float | None = None,
    scale: float | Mapping[str, float] = 1e-3,
    seed: int = 0,
    flow: GradientFlow = GradientFlow(),  # noqa: B008 (frozen)
    descent: Descent | None = None,
) -> SaddlePath:
    """When the events of a gradient flow come, up to an end time, or those of a descent, before its run.

    Where the paper of a model says how its flow is read and float64 follows it, the flow itself is the prediction: the times are
    exact, for any start, and it costs two flows without frames. Elsewhere it is the saddle path, whose times have the error of
    its theory, and a note says so. `saddle_path` always gives the latter, which says why an event comes.

    Steps of any optimiser are predicted where the paper of the model has a theory of them; `by` then names it.

    Args:
        what: an objective.
        start: the parameters; default: the model draws them.
        until: the end time of the flow; a descent ends after its steps.
        scale: of this draw.
        seed: of this draw.
        flow: its tolerances and rates.
        descent: steps in place of the flow.

    Returns:
        Events with their times and intervals, and the legs between them; `by` is "flow", "saddle path" or a paper's own model.

    Examples:
        >>> soon = ss.predict(loss, scale=1e-3, until=100)
        >>> soon.by, soon.sequence, f"{soon['E1'].t:.1f}"
        ('flow', ('E1',), '31.2')
    """
    if descent is not None:
        kind = _kind(what)
        if kind is None or kind.descent is None:
            raise InputError(f"no paper predicts steps of {type(what).__name__}; leave out `descent` and give `until`")
        if until is not None:
            raise InputError("a descent ends after its steps: give Descent(steps=...) instead of until")
        return kind.descent(what, _start(what, start, scale, seed, 1.0), descent)
    if until is None:
        raise InputError("a prediction needs the end time of the flow, `until`, or the steps of a `descent`")
    begin, events = _start(what, start, scale, seed, until), flow_events(what)
    if events is None:
        return saddle_path(what, begin, until=until)
    try:
        return flow_prediction(what, begin, until, flow, events)
    except (NotFollowed, TinyStart, Stopped) as error:
        reason = f"predicted along the saddle path, not by the flow: {message(error)}"
    try:
        path = saddle_path(what, begin, until=until)
    except InputError as error:
        raise InputError(f"{reason}; but {message(error)}") from None
    return replace(path, notes=(reason, *path.notes))


def flow_events(what: Objective | Field) -> FlowEvents | None:
    """How a flow of this objective is read before its run; None where no paper says how, or each step draws a batch."""
    kind = _kind(what)
    return None if kind is None or kind.flow is None or as_field(what).draw(0) is not None else kind.flow()


def _kind(objective: Objective | Field) -> Kind | None:
    return kind_of(type_id(type(objective).__module__, type(objective).__name__))


def _start(
    objective: Objective | Field, start: Params | None, scale: float | Mapping[str, float], seed: int, until: float
) -> dict[str, np.ndarray]:
    """The blocks of a start, those given or those that the model draws; refused where they do not fit the model."""
    if not 0 < until < np.inf:
        raise InputError(f"until is {until}, but a prediction needs an end time above 0")
    as_field(objective)  # refuses what is neither
    if start is None and not hasattr(objective, "model"):
        raise InputError(f"{type(objective).__name__} draws no start of its own; give one as `start`")
    begin = objective.model.init(seed, scale) if start is None else start  # type: ignore[union-attr]
    blocks, shapes = {name: np.asarray(block, dtype=float) for name, block in begin.items()}, objective.shapes
    if shapes and {name: block.shape for name, block in blocks.items()} != dict(shapes):
        blocks_of_start = ", ".join(f"{name} {block.shape}" for name, block in blocks.items())
        raise InputError(f"the start has the blocks {blocks_of_start}, but the model has {dict(shapes)}")
    if not all(np.all(np.isfinite(block)) for block in blocks.values()):
        raise InputError("the start has entries that are not finite")
    return blocks


def planned_path(plan: Setup) -> SaddlePath:
    """The saddle path of a run before it is made; an `InputError` where its motion is not the one that paths are about."""
    if not isinstance(plan.dynamics, GradientFlow) or not set(plan.dynamics.rates.values()) <= {1.0}:
        raise InputError("a saddle path is of a gradient flow whose blocks all move at rate 1, and this run is none")
    return saddle_path(plan.what, plan.params)


def predicted(run: Run, what: Objective | Field | None = None) -> SaddlePath:
    """The saddle path from the first frame of a run; an `InputError` where its motion is not the one that paths are about.

    It may end at the first event that comes clearly after the run. Paths are of gradient flows whose blocks all move at rate 1.
    Steps of a finite size, other rates and forks are refused.
    """
    dynamics = run.spec["dynamics"]
    rates = set() if dynamics is None else set(dynamics.get("rates", {}).values())
    if dynamics is None or run.frames == 0:
        raise InputError("the run has no law of motion or no frames, so it has no start to predict from")
    if (reason := forked(run)) is not None:
        raise InputError(f"{reason}; a saddle path is of one law from the start on")
    if dynamics["type"] != "GradientFlow":
        raise InputError("the run is not a gradient flow; saddle_path(loss, start) predicts the flow from its start")
    if not rates <= {1.0}:
        raise InputError("the blocks of the run move at different rates; a saddle path is of equal ones")
    if run.time[0] != 0:
        raise InputError(f"the first frame of the run is at t={run.time[0]:g}, and a saddle path begins at t=0")
    field = field_of(run.spec, what)
    return saddle_path(field.objective or field, run.at(0), seen=float(run.time[-1]))


def _small_enough(objective: Any, seed: int) -> float:
    """The largest scale from which there is a path; one that is followed for a moment shows it."""
    for scale in LARGEST[:-1]:
        try:
            saddle_path(objective, scale=scale, seed=seed, until=1e-3)
        except InputError:
            continue
        return scale
    return LARGEST[-1]


@dataclass(frozen=True)
class CriticalScale:
    """The start scale below which an event does not come, between `low` (it does not come) and `high` (it comes).

    Both are None where nothing changes between the scales that were tried. `note` says why, or what is not known between the two.

    Examples:
        >>> ss.CriticalScale("Q2", scale=1.0, low=0.9, high=1.1).json()
        {'event': 'Q2', 'scale': 1.0, 'low': 0.9, 'high': 1.1, 'note': ''}
    """

    event: str
    scale: float | None
    low: float | None
    high: float | None
    note: str = ""

    def __str__(self) -> str:
        if self.scale is None:
            return self.note
        note = f"; {self.note}" if self.note else ""
        return f"{self.event} does not come below the start scale {self.low:.3g}, and comes above {self.high:.3g}{note}"

    def json(self) -> dict[str, Any]:
        return asdict(self)


def critical_scale(what: Objective | Field, event: str, *, seed: int = 0, until: float = UNTIL) -> CriticalScale:
    """The start scale at which an event ceases to come, by bisection over saddle paths with the same draw.

    Between `low` and `high` the event is not decided; where it comes within 2 % of the scale at which it is absent, nothing is.

    Args:
        what: an objective.
        event: the name of an event of its saddle path.
        seed: of the draw of the start.
        until: the time by which the event must come.

    Returns:
        The scale, between two scales that were tried.

    Examples:
        >>> found = ss.critical_scale(loss, "E1", until=100)
        >>> found.event
        'E1'
    """

    @cache
    def predicted_at(scale: float) -> Predicted:
        path = saddle_path(what, scale=scale, seed=seed, until=until)
        if event not in path.events:
            raise unknown("event", event, path.events)
        return path.events[event]

    low, high = SMALLEST, _small_enough(what, seed)
    for scale in (high, low):
        if predicted_at(scale).t is None and not predicted_at(scale).absent:
            reason = f"whether {event} comes at scale {scale:.3g} is not known: {predicted_at(scale).reason}"
            return CriticalScale(event, None, None, None, reason)
    if predicted_at(high).t is None:
        return CriticalScale(event, None, None, None, f"{event} does not come at scale {high:g}: {predicted_at(high).reason}")
    if predicted_at(low).t is not None:
        return CriticalScale(event, None, None, None, f"{event} comes at every scale tried, down to {low:g}")
    below, high = _edge(lambda scale: predicted_at(scale).t is not None, low, high)
    note = "" if predicted_at(below).absent else f"between the two it is not known: {predicted_at(below).reason}"
    low = below if predicted_at(below).absent else _edge(lambda scale: not predicted_at(scale).absent, low, below)[0]
    return CriticalScale(event, float(np.sqrt(low * high)), low, high, note)


def _edge(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Two close scales between which something begins to hold, by bisection."""
    while high / low > CLOSE:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high
