"""The saddle path: the stages of a training and their times, predicted from the start without a run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from stagescope.core.errors import unknown
from stagescope.detect.events import first_crossing

ORDER, BAR, SOLVER = 1.5, 2.5, 1e-4
"""The error in eta falls about with this power; half of an interval in units of the difference between eta and eta / 2; the
relative error of a time by the solver and the products."""
Place = Literal["settled", "passed", "at infinity"]
"""Whether the path comes to rest at the critical point of a leg, leaves before that, or there is none at a finite place."""
AtRest = tuple[Place | None, tuple[float, ...]]
"""The state of a leg, None where it was not asked for, and the rates at its critical point."""


def plain_time(t: float, digits: int = 4) -> str:
    """A time in a sentence: rounded, and below a million without an exponent."""
    return f"{float(f'{t:.{digits}g}'):g}"


@dataclass(frozen=True)
class Leg:
    """A stretch of the path with the same open directions, from the event `t_in` to the event `t_out`.

    `loss` is the loss at the end; of a general path, that of the critical or slow point of the leg. `rates` are those of what
    opens there at the critical point, fastest first; they are empty where the path has not settled. `local_rate` is the
    fastest rate of what opens when the flow is linearised at the path itself, where what opens has grown to the size eta. The
    last leg has no `t_out`. State and rates come from `at_rest`, which is called when they are first used: it may take a search.

    Examples:
        >>> path = ss.saddle_path(loss, scale=1e-3, until=100)
        >>> path.legs[0].label, path.legs[0].opens
        ('(0,0)', 'embedding')
    """

    label: str
    t_in: float
    t_out: float | None
    loss: float
    opens: str | None
    local_rate: float | None
    at_rest: Callable[[], AtRest]

    @cached_property
    def _at_rest(self) -> AtRest:
        return self.at_rest()

    @property
    def state(self) -> Place | None:
        return self._at_rest[0]

    @property
    def rates(self) -> tuple[float, ...]:
        return self._at_rest[1]

    def json(self) -> dict[str, Any]:
        names = ("label", "t_in", "t_out", "loss", "state", "local_rate")
        return {**{name: getattr(self, name) for name in names}, "rates": list(self.rates)}


@dataclass(frozen=True)
class Predicted:
    """When an event comes, with an interval. Without a time it is not reached, and `reason` says why.

    It does not come before `beyond` then, as far as the theory reaches. `absent` says that the path has come to its end and
    nothing on it leads to the event; otherwise it is not known whether the event comes later.

    Examples:
        >>> path = ss.saddle_path(loss, scale=1e-3, until=100)
        >>> print(f"{path['E1'].t:.1f}")
        31.2
        >>> ss.Predicted(None, reason="the path ends before").t is None
        True
    """

    t: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    beyond: float = 0.0
    absent: bool = False

    def json(self) -> dict[str, Any]:
        return {"t": self.t, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class SaddlePath:
    """Legs, events and notes: what is predicted for a start, and what is not.

    `eta` is the size from which on a direction belongs to the path. `time` and `sizes` follow the path: at each time
    the logarithms of the largest part outside it, one for each kind that can open. `levels` are the losses whose crossing is
    an event, by its name; events that are read in another way have none. `rates` are the largest local rates of each kind at
    these times, `losses` the losses; both are empty where they were not kept. `by` says what predicts: the saddle path, the flow
    itself, or a model of the paper. `of_rows` are kinds of events whose number names a row: they come in any order.
    `clock` is the unit of all times: `t`, or `step` where there is no flow time.

    Examples:
        >>> path = ss.saddle_path(loss, scale=1e-3, until=100)
        >>> path.sequence, [leg.label for leg in path.legs]
        (('E1',), ['(0,0)', '(1,0)'])
    """

    legs: tuple[Leg, ...]
    events: Mapping[str, Predicted]
    notes: tuple[str, ...]
    eta: float
    time: np.ndarray
    sizes: Mapping[str, np.ndarray]
    levels: Mapping[str, float] = field(default_factory=dict)
    rates: Mapping[str, np.ndarray] = field(default_factory=dict)
    losses: np.ndarray = field(default_factory=lambda: np.zeros(0))
    by: str = "saddle path"
    of_rows: tuple[str, ...] = ()
    clock: str = "t"

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", in_order(self.events, self.of_rows))

    def crossings(self, time: np.ndarray, loss: np.ndarray) -> dict[str, float | None]:
        """The same events of a run, from its loss over time: when it first falls below the levels of this path."""
        return {name: first_crossing(time, loss, level, rising=False) for name, level in self.levels.items()}

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
        legs = "\n".join(
            f"{leg.label:<7} {leg.t_in:>9.5g} to {'end' if leg.t_out is None else f'{leg.t_out:.5g}':<9}"
            f"  loss {leg.loss:.4f}  {leg.state or ''}"
            for leg in self.legs
        )
        comes = [(name, self.events[name]) for name in self.sequence]
        events = "\n".join(f"{name:<4} {event.t:.6g} ({event.low:.6g} to {event.high:.6g})" for name, event in comes)
        return "\n".join(part for part in (events, legs, *(f"note: {note}" for note in self.notes)) if part)


def of_two_sizes(
    coarse: float | None,
    fine: float | None,
    reason: str,
    end: float = 0.0,
    *,
    absent: bool = False,
    order: float = ORDER,
    error: float = SOLVER,
) -> Predicted:
    """An event from its times with eta and with half of it: extrapolated, with a multiple of the difference as interval.

    `reason` says why it does not come where it does not, `absent` that nothing leads to it, and `end` up to when this is known.
    `error` is a relative error of the time that both have in common.
    """
    if fine is None and coarse is None:
        return Predicted(None, reason=reason, beyond=end, absent=absent)
    if fine is None or coarse is None:
        which, time = "eta, not with half of it" if fine is None else "half of eta, not with eta", coarse or fine or 0.0
        return Predicted(None, reason=f"not decided: it comes at t={plain_time(time)} with {which}", beyond=time)
    gap = coarse - fine
    t = fine - gap / (2**order - 1)
    half = BAR * abs(gap) + error * t
    return Predicted(t, t - half, t + half)


def in_order(events: Mapping[str, Predicted], of_rows: tuple[str, ...] = ()) -> dict[str, Predicted]:
    """Events, listed by number, with no time or end of an interval before that of an earlier number of the same kind.

    E1 comes before E2 by definition. Extrapolated times of two that come almost together can cross; the later number then has
    the time of the earlier one.
    """
    last: dict[str, tuple[float, float, float]] = {}
    ordered = dict(events)
    for name, event in events.items():
        kind = name.rstrip("0123456789")
        if kind not in of_rows and event.t is not None and event.low is not None and event.high is not None:
            interval = (event.t, event.low, event.high)
            t, low, high = last[kind] = tuple(map(max, interval, last.get(kind, interval)))  # type: ignore[assignment]
            ordered[name] = replace(event, t=t, low=low, high=high)
    return ordered


def unsure(events: Mapping[str, Predicted]) -> list[str]:
    """One sentence for each reason why events are not predicted, and for each order that is not sure."""
    reasons = dict.fromkeys(event.reason for event in events.values() if event.reason)
    names = {reason: [name for name, event in events.items() if event.reason == reason] for reason in reasons}
    sentences = [f"{', '.join(listed)} not reached: {reason}" for reason, listed in names.items()]
    order = sorted((event.t, name) for name, event in events.items() if event.t is not None)
    for (_, first), (_, second) in pairwise(order):
        if (events[first].high or 0.0) > (events[second].low or 0.0):
            sentences.append(f"the intervals of {first} and {second} overlap, so their order is not sure")
    return sentences
