"""Stages and events: what they are, and how a curve's crossings and peaks are located."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Stage:
    """A stretch of a run; `stop` is None where the run ended inside it.

    `evidence` is a sentence for people; `facts` are the numbers and names it carries, for programs and tests. `track` is what
    goes through the stage where that is a part of the run, such as one row of attention; "" is the run itself.
    """

    name: str
    start: float
    stop: float | None
    evidence: str
    track: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        stop = "end" if self.stop is None else f"{self.stop:.4g}"
        return f"{self.name:<10} {self.start:>9.4g} .. {stop:<9} {self.evidence}"


@dataclass(frozen=True)
class Stages:
    """What a detector found. An event that was not reached is None, never a guess; `notes` say why."""

    status: str
    clock: str
    events: Mapping[str, float | None]
    stages: tuple[Stage, ...]
    notes: Mapping[str, str]

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages)

    def __len__(self) -> int:
        return len(self.stages)

    def __str__(self) -> str:
        events = ", ".join(f"{name} {'not reached' if when is None else f'{when:.5g}'}" for name, when in self.events.items())
        return "\n".join([f"events ({self.clock}): {events}", *map(str, self.stages)])

    def json(self) -> dict[str, Any]:
        rows = [
            {"name": s.name, "start": s.start, "stop": s.stop, "evidence": s.evidence, "track": s.track, "facts": dict(s.facts)}
            for s in self.stages
        ]
        body = {"status": self.status, "clock": self.clock, "events": dict(self.events), "stages": rows}
        return {**body, "notes": dict(self.notes)}


def first_crossing(time: np.ndarray, curve: np.ndarray, level: float, rising: bool, after: float = 0.0) -> float | None:
    """The first time from `after` on at which the curve passes the level, by linear interpolation; None if it never does."""
    sign = 1.0 if rising else -1.0
    above = sign * (curve - level) >= 0
    hits = np.flatnonzero(above & (time >= after))
    if not hits.size:
        return None
    i = int(hits[0])
    if i == 0 or (time[i - 1] < after and above[i - 1]):
        return float(max(time[i], after))
    rise = (level - curve[i - 1]) / (curve[i] - curve[i - 1])
    return float(max(after, time[i - 1] + rise * (time[i] - time[i - 1])))


def peak(time: np.ndarray, curve: np.ndarray) -> tuple[float, float] | None:
    """Time and height of the highest point, by the parabola through its neighbours; None if it is not passed."""
    i = int(np.argmax(curve))
    if i == len(curve) - 1 or curve[i] <= 0:
        return None
    if i == 0:
        return float(time[0]), float(curve[0])
    left, right = time[i - 1] - time[i], time[i + 1] - time[i]
    slope_left, slope_right = (curve[i - 1] - curve[i]) / left, (curve[i + 1] - curve[i]) / right
    bend = (slope_right - slope_left) / (right - left)
    if bend >= 0:  # a flat top: three equal values
        return float(time[i]), float(curve[i])
    shift = -(slope_left - bend * left) / (2 * bend)
    slope = slope_left - bend * left
    return float(time[i] + shift), float(curve[i] + slope * shift + bend * shift**2)
