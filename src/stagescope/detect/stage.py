"""Stages and events: what they are. An event is an estimate: a time with an interval, or a state that says why it has none."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from stagescope.core.markup import block, folded, note, number, table, title

State = Literal["reached", "not reached", "at the start", "unreliable", "not counted"]
BROKEN = ("diverged", "failed")
"""Statuses of a run whose numbers broke down: its events are not to be believed."""


_WORDS = {"at the start": "there at the start", "unreliable": "not reliable"}


def span_text(low: float, high: float, between: str = ", ") -> str:
    """The ends of an interval, with as many digits as tell them apart: 5 to 9."""
    digits = next((digits for digits in range(5, 9) if f"{low:.{digits}g}" != f"{high:.{digits}g}"), 9)
    return f"{low:.{digits}g}{between}{high:.{digits}g}"


@dataclass(frozen=True)
class Event:
    """When something happened. `time` is None in every state but "reached".

    `low` and `high` are the ends of its 95 % interval: from the spacing of records and the solver's tolerance for a flow,
    from the noise of the run for a descent; None where they are not known. `how` says how it was found.

    Examples:
        >>> ss.Event(13.7, low=13.6, high=13.8).interval
        (13.6, 13.8)
        >>> ss.Event.missing("not reached").time is None
        True
    """

    time: float | None
    low: float | None = None
    high: float | None = None
    state: State = "reached"
    how: str = ""

    @classmethod
    def missing(cls, state: State = "not reached", how: str = "") -> "Event":
        return cls(None, state=state, how=how)

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def words(self) -> str:
        """The state as people say it."""
        return _WORDS.get(self.state, self.state)

    def __str__(self) -> str:
        if self.time is None:
            return self.words
        return f"{self.time:.5g}" + ("" if self.interval is None else f" [{span_text(*self.interval)}]")


@dataclass(frozen=True)
class Transition:
    """One fast change of a curve.

    `t` is when half of it is over, `low` to `high` its 95 % interval. It lasts from `start` to `stop`, and `amplitude` is the
    change of the curve from the plateau before to that after. `kind` is `jump` (between two records), `sigmoid`, `ramp` or
    `spike`: that recovers, and `t` is its top. `origin` is where the clock of the search begins.

    Examples:
        >>> time = np.geomspace(1, 1000, 200)
        >>> found = ss.transitions(time, 1 / (1 + (time / 30) ** 12))
        >>> print(len(found), f"{found[0].t:.0f}")
        1 30
    """

    t: float
    low: float
    high: float
    start: float
    stop: float
    amplitude: float
    kind: str = "sigmoid"
    origin: float = 0.0


@dataclass(frozen=True)
class Stage:
    """A stretch of a run; `stop` is None where the run ended inside it.

    `evidence` is a sentence for people; `facts` are the numbers and names it carries, for programs and tests. `track` is what
    goes through the stage where that is a part of the run, such as one row of attention; "" is the run itself. A page shows
    tracks that are `aside`, of which there may be many, in a timeline and not above its plots.

    Examples:
        >>> [(stage.name, round(stage.start)) for stage in ss.stages(snap)]
        [('uniform', 0), ('scan', 4), ('snapped', 189)]
    """

    name: str
    start: float
    stop: float | None
    evidence: str
    track: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    aside: bool = False

    @property
    def label(self) -> str:
        """The name, with the part of the run that goes through it where that is not in the name: `focus, row 1`."""
        return self.name if not self.track or self.name.startswith(self.track) else f"{self.name}, {self.track}"

    def __str__(self) -> str:
        stop = "end" if self.stop is None else f"{self.stop:.4g}"
        return f"{self.name:<10} {self.start:>9.4g} .. {stop:<9} {self.evidence}"


@dataclass(frozen=True)
class Stages:
    """What a detector found. An event that was not reached is None, never a guess; `notes` say why.

    `estimates` are the events with their intervals and states. `transitions` are the fast changes of named curves that need
    no paper: (name of the curve, transition).

    Examples:
        >>> found = ss.stages(snap)
        >>> print(f"{found.events['peak']:.2f}", found.estimates["peak"].state)
        7.68 reached
    """

    status: str
    clock: str
    events: Mapping[str, float | None]
    stages: tuple[Stage, ...]
    notes: Mapping[str, str] = field(default_factory=dict)
    estimates: Mapping[str, Event] = field(default_factory=dict)
    transitions: tuple[tuple[str, Transition], ...] = ()

    def __post_init__(self) -> None:
        estimates = {
            name: self.estimates.get(name) or (Event.missing() if time is None else Event(time))
            for name, time in self.events.items()
        }
        if self.status in BROKEN:
            reason = f"the run {self.status}"
            estimates = {
                name: Event.missing("unreliable", reason) if event.time is not None else event
                for name, event in estimates.items()
            }
            object.__setattr__(
                self, "notes", {**self.notes, **{n: reason for n, event in estimates.items() if event.state == "unreliable"}}
            )
            begin = min((stage.start for stage in self.stages), default=0.0)
            object.__setattr__(self, "stages", (Stage("whole run", begin, None, f"{reason}: no stage of it can be believed"),))
        object.__setattr__(self, "estimates", estimates)
        object.__setattr__(self, "events", {name: event.time for name, event in estimates.items()})

    @classmethod
    def of(
        cls, status: str, clock: str, estimates: Mapping[str, Event], stages: tuple[Stage, ...], notes: Mapping[str, str]
    ) -> "Stages":
        """Stages whose events have intervals and states."""
        return cls(status, clock, {name: event.time for name, event in estimates.items()}, stages, notes, estimates)

    def read_at(self, records: np.ndarray) -> "Stages":
        """The same where nothing is known between records: no interval is narrower than the records around its event."""
        wider = {}
        for name, event in self.estimates.items():
            if event.time is not None:
                place = int(np.searchsorted(records, event.time))
                low, high = float(records[max(place - 1, 0)]), float(records[min(place, len(records) - 1)])
                event = replace(event, low=min(low, *(event.interval or (low,))), high=max(high, *(event.interval or (high,))))
            wider[name] = event
        return replace(self, estimates=wider)

    @property
    def intervals(self) -> dict[str, tuple[float, float] | None]:
        return {name: event.interval for name, event in self.estimates.items()}

    @property
    def states(self) -> dict[str, State]:
        return {name: event.state for name, event in self.estimates.items()}

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages)

    def __len__(self) -> int:
        return len(self.stages)

    def __str__(self) -> str:
        events = ", ".join(f"{name} {event}" for name, event in self.estimates.items())
        first = [self.notes["replay"]] if "replay" in self.notes else []
        return "\n".join([*first, f"events ({self.clock}): {events}", *map(str, self.stages)])

    def _repr_html_(self) -> str:
        """What a notebook shows: stages, events that were reached, and the names of those that were not."""
        stages = [(s.label, number(s.start), number(s.stop, "end"), s.evidence) for s in self.stages if not s.aside]
        located = {name: event for name, event in self.estimates.items() if event.time is not None}
        events = [(n, number(e.time, digits=5), span_text(*e.interval, " to ") if e.interval else "") for n, e in located.items()]
        missing_events = [f"{name} ({event.words})" for name, event in self.estimates.items() if event.time is None]
        return block(
            title("Stages", "" if self.status == "finished" else f"of a run that is {self.status}"),
            note(self.notes["replay"]) if "replay" in self.notes else "",
            table(("stage", f"from {self.clock}", "to", "evidence"), stages),
            folded(f"{len(events)} events", table(("event", self.clock, "95 % interval"), events)) if events else "",
            note(f"Without a time: {', '.join(missing_events)}") if missing_events else "",
        )

    def json(self) -> dict[str, Any]:
        rows = [
            {"name": s.name, "start": s.start, "stop": s.stop, "evidence": s.evidence, "track": s.track, "facts": dict(s.facts)}
            for s in self.stages
        ]
        return {
            "status": self.status,
            "clock": self.clock,
            "events": dict(self.events),
            "intervals": {name: None if ends is None else list(ends) for name, ends in self.intervals.items()},
            "states": self.states,
            "stages": rows,
            "transitions": [{"curve": curve, **asdict(transition)} for curve, transition in self.transitions],
            "notes": dict(self.notes),
        }
