"""What a run is made of before it is made: a field, a dynamics and the frames to keep; and how a point becomes a frame."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stagescope.dynamics.dynamics import Dynamics, Point, SolveFailed, State
from stagescope.dynamics.record import Record, Stop
from stagescope.errors import InputError
from stagescope.fields.field import Field, FlatField
from stagescope.params import Layout
from stagescope.spec import Spec


@dataclass(frozen=True)
class Origin:
    """Where a run comes from, for its manifest: the study and its options, and the equations it touches."""

    study: str | None = None
    config: Mapping[str, Any] | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Journey:
    """A field, a dynamics, and where frames are kept: everything that decides the numbers of a run."""

    field: Field
    layout: Layout
    dynamics: Dynamics
    positions: np.ndarray
    stop: Stop | None
    record: Record | None
    until: float | None
    seed: int = 0
    origin: Origin = Origin()

    @property
    def spec(self) -> Spec:
        parts = {"dynamics": self.dynamics, "record": self.record, "stop": self.stop}
        described = {name: part.describe() if part is not None else None for name, part in parts.items()}
        blocks = {name: list(shape) for name, shape in self.layout.shapes}
        return {"field": self.field.describe(), "blocks": blocks, "until": self.until, **described}

    def axes(self) -> dict[str, tuple[str, ...]]:
        named, clock = self.field.axes, self.dynamics.clock
        axes: dict[str, tuple[str, ...]] = dict.fromkeys(self.series, (clock,))
        for name, shape in self.layout.shapes:
            inner = named.get(name) or tuple(f"{name}_{i}" for i in range(len(shape)))
            axes[name] = (clock, *inner)
        return axes

    def walk(self, state: State) -> Iterator[Point]:
        return self.dynamics.walk(self.field, self.layout, state, self.positions)

    @property
    def series(self) -> tuple[str, ...]:
        return (*self.dynamics.times(0), *(("loss",) if self.field.objective else ()), "speed")


class Frame(NamedTuple):
    """What is recorded of a point: the clock, loss and speed by name, and all parameters."""

    series: dict[str, float]
    vector: np.ndarray


class Camera:
    """Turns a point into a frame."""

    def __init__(self, journey: Journey) -> None:
        self._journey, self._objective = journey, journey.field.objective
        self._flats: dict[int, FlatField] = {}
        self._velocity = np.empty(journey.layout.size)
        self._weights = journey.field.weights(journey.layout)

    def _flat(self, position: float) -> FlatField:
        """The field with the rates in force at a position."""
        moved, journey = self._journey.dynamics.in_force(position), self._journey
        if id(moved) not in self._flats:
            self._flats[id(moved)] = journey.field.flat(journey.layout, moved.block_rates(journey.layout.names))
        return self._flats[id(moved)]

    def frame(self, point: Point) -> Frame:
        vector, loss, speed = point.vector, point.loss, point.speed
        if speed is None or not math.isfinite(speed):
            loss = self._flat(point.position)(vector, self._velocity)
            speed = math.sqrt(np.dot(self._weights * self._velocity, self._velocity))
        series = self._journey.dynamics.times(point.position)
        if self._objective is not None:
            series["loss"] = self._objective.value(self._journey.layout.unpack(vector)) if loss is None else loss
            if not math.isfinite(series["loss"]):
                if point.position == 0:
                    raise InputError(f"the loss is {series['loss']} at the initial parameters: change them, or mend the loss")
                where = f"step {series['step']}" if "step" in series else f"t={series['t']:g}"
                raise SolveFailed("diverged", f"diverged at {where}: the loss is {series['loss']}; lower the rates")
        series["speed"] = speed
        return Frame(series, vector)
