"""A prediction that is the flow itself: events at the solver's own steps, without a run, with the error of the solver.

It is exact where float64 follows the flow to its end: two flows, of which one has tolerances LOOSER times as wide, agree there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.core.errors import StagescopeError
from stagescope.core.params import Layout, Params
from stagescope.flow.field import FlatField, as_field
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.flow.solver import between, steps
from stagescope.landscape.limits import LIMITS
from stagescope.landscape.saddle_path import Leg, Predicted, SaddlePath, plain_time, unsure

LOOSER = 100.0
"""Ratio of the tolerances of the two flows: their difference is the error of the looser one to this share."""
RECORDS = 3e-4
"""How well a run is read, relatively: its loss may fall by 1 % of the whole between two records, where steps of 5 % take 5 % of
the time passed: a line between records is off by (1/5)^2 / 8 of that."""
PIECES = np.arange(1, 32) / 32
"""Points in a step that holds an event: a line in the logarithm between two is right to (1/32)^2 / 8 of its bend in the step."""


class NotFollowed(StagescopeError):
    """float64 does not follow this flow to its end."""


@dataclass(frozen=True)
class FlowSteps:
    """A flow at the steps of its solver, or at pieces of those that hold its events."""

    law: Any
    flat: FlatField
    layout: Layout
    time: np.ndarray
    vectors: np.ndarray

    @cached_property
    def params(self) -> dict[str, np.ndarray]:
        """Blocks (steps, ...)."""
        return self.layout.unpack(self.vectors)

    @cached_property
    def loss(self) -> np.ndarray:
        return np.array([self._loss(vector) for vector in self.vectors])

    def loss_at(self, time: float) -> float:
        """At the last step up to a time."""
        return self._loss(self.vectors[np.searchsorted(self.time, time, side="right") - 1])

    def _loss(self, vector: np.ndarray) -> float:
        value = self.flat(vector, np.empty_like(vector))
        return float(self.law.value(self.layout.unpack(vector)) if value is None else value)

    def velocity(self, step: int) -> np.ndarray:
        out = np.empty_like(self.vectors[step])
        self.flat(self.vectors[step], out)
        return out

    def refined(self, times: list[float]) -> "FlowSteps":
        """The steps that hold one of the times, in pieces, and both ends of the flow: nothing else decides when events come."""
        event_steps = np.unique(np.searchsorted(self.time, times))
        event_steps = event_steps[(event_steps > 0) & (event_steps < len(self.time))]
        nodes = np.unique(np.concatenate([[0, len(self.time) - 1], event_steps - 1, event_steps]))
        time, vectors = [self.time[nodes]], [self.vectors[nodes]]
        for i in event_steps.tolist():
            h, ends = float(self.time[i] - self.time[i - 1]), (self.vectors[i - 1], self.vectors[i])
            slopes = self.velocity(i - 1), self.velocity(i)
            time.append(self.time[i - 1] + h * PIECES)
            vectors.append(np.stack([between(share, h, ends, slopes) for share in PIECES]))
        order = np.argsort(np.concatenate(time), kind="stable")
        return FlowSteps(self.law, self.flat, self.layout, np.concatenate(time)[order], np.concatenate(vectors)[order])


@dataclass(frozen=True)
class FlowEvents:
    """How a paper reads a flow: when its events come, None where one does not; and the label of the leg after some events, with
    what opens where the next event ends it."""

    times: Callable[[FlowSteps], dict[str, float | None]]
    leg: Callable[[Any, list[str], str | None], tuple[str, str | None]]


def flow_prediction(law: Any, start: Params, until: float, flow: GradientFlow, events: FlowEvents) -> SaddlePath:
    """Events and legs of the flow from a start up to `until`; `NotFollowed` where two tolerances do not give the same."""
    field, layout = as_field(law), Layout.of(start)
    vector = layout.pack(start)
    flow = flow.settled(field, layout, vector)
    flat = field.flat(layout, flow.block_rates(layout.names))

    def followed(wider: float) -> tuple[FlowSteps, dict[str, float | None]]:
        assert flow.atol is not None
        walked = [(0.0, vector), *steps(flat, vector, (0.0, until), (flow.rtol * wider, flow.atol * wider))]
        time, vectors = zip(*walked, strict=True)
        coarse = FlowSteps(law, flat, layout, np.array(time), np.array(vectors))
        fine = coarse.refined([t for t in events.times(coarse).values() if t is not None])
        return fine, events.times(fine)

    (exact, times), (_, loose) = followed(1.0), followed(LOOSER)
    predicted = {name: _event(name, t, loose[name], until) for name, t in times.items()}
    comes = sorted((name for name, event in predicted.items() if event.t is not None), key=lambda name: times[name] or 0.0)
    ends = [0.0, *(times[name] or 0.0 for name in comes), until]
    legs = []
    for k, stop in enumerate(ends[1:]):
        label, opens = events.leg(law, comes[:k], comes[k] if k < len(comes) else None)
        t_out = stop if k < len(comes) else None
        legs.append(Leg(label, ends[k], t_out, exact.loss_at(stop), opens, None, lambda: (None, ())))
    return SaddlePath(tuple(legs), predicted, tuple(unsure(predicted)), 0.0, np.zeros(0), {}, by="flow")


def _event(name: str, exact: float | None, loose: float | None, until: float) -> Predicted:
    """An event from its times in both flows; one that does not come counts as one at the end."""
    first, second = (until if t is None else t for t in (exact, loose))
    if abs(first - second) > LIMITS.agree * first:  # not the same motion: rounding decides the event
        exactly, loosely = ("does not come" if t is None else f"comes at t={plain_time(t)}" for t in (exact, loose))
        raise NotFollowed(
            f"float64 does not follow the flow to t={until:g}: {name} {exactly}, and {loosely} at {LOOSER:g} times rtol"
        )
    if exact is None:
        return Predicted(None, reason=f"the flow ends at t={plain_time(until)}", beyond=until)
    if exact == 0:
        return Predicted(None, reason="it is there at the start")
    half = abs(first - second) + RECORDS * exact
    return Predicted(exact, exact - half, exact + half)
