"""The saddle path: the stages of a training and their times, predicted from the start without a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from stagescope.errors import unknown

Place = Literal["settled", "passed", "at infinity"]
"""Whether the path comes to rest at the critical point of a leg, leaves before that, or there is none at a finite place."""


@dataclass(frozen=True)
class Leg:
    """A stretch of the path with the same open directions, from the event `t_in` to the event `t_out`.

    `loss` is the loss at the end. `rates` are those of what opens there at the critical point, fastest first; they are empty
    where the path has not settled. `local_rate` is the fastest rate of what opens when the flow is linearised at the path
    itself, where what opens has grown to the size eta. The last leg has no `t_out`.
    """

    label: str
    t_in: float
    t_out: float | None
    loss: float
    state: Place
    opens: str | None
    rates: tuple[float, ...]
    local_rate: float | None

    def json(self) -> dict[str, Any]:
        names = ("label", "t_in", "t_out", "loss", "state", "local_rate")
        return {**{name: getattr(self, name) for name in names}, "rates": list(self.rates)}


@dataclass(frozen=True)
class Predicted:
    """When an event comes, with an interval. Without a time it is not reached, and `reason` says why.

    It does not come before `beyond` then, which is infinite where the path has come to its end: what grows from there on is
    too little.
    """

    t: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    beyond: float = 0.0

    @property
    def never(self) -> bool:
        return self.t is None and self.beyond == np.inf

    def json(self) -> dict[str, Any]:
        return {"t": self.t, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class SaddlePath:
    """Legs, events and notes: what is predicted for a start, and what is not.

    `eta` is the size from which on a direction belongs to the path. `time` and `sizes` follow the path: at each time
    the logarithms of the largest part outside it, one for each kind that can open. `rates` are the largest local rates of
    each kind at these times, `losses` the losses; both are empty where they were not kept.
    """

    legs: tuple[Leg, ...]
    events: Mapping[str, Predicted]
    notes: tuple[str, ...]
    eta: float
    time: np.ndarray
    sizes: Mapping[str, np.ndarray]
    rates: Mapping[str, np.ndarray] = field(default_factory=dict)
    losses: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __getitem__(self, event: str) -> Predicted:
        if event not in self.events:
            raise unknown("event", event, self.events)
        return self.events[event]

    @property
    def sequence(self) -> tuple[str, ...]:
        """The events that come, in their order."""
        times = {name: event.t for name, event in self.events.items() if event.t is not None}
        return tuple(sorted(times, key=lambda name: times[name]))

    def leg(self, label: str) -> Leg | None:
        """The first leg of that label."""
        return next((leg for leg in self.legs if leg.label == label), None)

    def json(self) -> dict[str, Any]:
        events = {name: event.json() for name, event in self.events.items()}
        return {"events": events, "legs": [leg.json() for leg in self.legs], "notes": list(self.notes)}

    def __str__(self) -> str:
        legs = "\n".join(f"{leg.label:<7} {_span(leg)}  loss {leg.loss:.4f}  {leg.state}" for leg in self.legs)
        events = "\n".join(f"{name:<4} {_when(self.events[name])}" for name in self.sequence)
        return "\n".join(part for part in (events, legs, *(f"note: {note}" for note in self.notes)) if part)


def _span(leg: Leg) -> str:
    return f"{leg.t_in:>9.5g} to {'end' if leg.t_out is None else f'{leg.t_out:.5g}':<9}"


def _when(event: Predicted) -> str:
    return f"{event.t:.6g} ({event.low:.6g} to {event.high:.6g})"
