"""A motion that changes on the way: one dynamics to a recorded frame of a run, another one from there."""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
from pydantic import Field as Limits
from pydantic import SerializeAsAny, model_validator

from stagescope.core.params import Layout
from stagescope.flow.descent import Descent, handed_over
from stagescope.flow.dynamics import Dynamics, Point, State
from stagescope.flow.field import Field
from stagescope.flow.record import Record


class Forked(Dynamics):
    """`before` from the start to the position `at`, then `after`; an optimiser keeps its memory unless its type changes.

    `ends` is the position at which the run that was forked ends, because the restarts of a flow depend on it: up to `at` every
    bit is that of this run. `parent` is the digest of its spec. Positions are those of both parts: times of a flow, or steps.
    """

    before: SerializeAsAny[Dynamics]
    after: SerializeAsAny[Dynamics]
    at: float = Limits(ge=0)
    ends: float = Limits(gt=0)
    parent: str = ""

    @model_validator(mode="after")
    def _same_axis(self) -> "Forked":
        if isinstance(self.after, Forked):
            raise ValueError("after is a fork itself; let before be one")
        if isinstance(self.after, Descent) != isinstance(self.before.in_force(self.at), Descent):
            raise ValueError("a flow has no steps and a descent has no times: before and after must both be one or the other")
        return self

    def in_force(self, position: float) -> Dynamics:
        return (self.before if position <= self.at else self.after).in_force(position)

    @property
    def steps(self) -> int | None:
        """Of a descent, the steps of both parts."""
        return getattr(self.after, "steps", None)

    def waiting(self, frames: int) -> int:
        return max(self.before.waiting(frames), self.after.waiting(frames))

    def shortened(self, steps: int) -> "Forked":
        """The same steps, so many of them."""
        assert isinstance(self.after, Descent)
        return self.model_copy(update={"after": self.after.shortened(steps)})

    @property
    def clock(self) -> str:
        return "t" if self.before.clock == self.after.clock == "t" else "step"

    @property
    def usual_record(self) -> Record:
        return self.after.usual_record

    def positions(self, record: Record | None, until: float | None) -> np.ndarray:
        return self.after.positions(record, until)

    def times(self, position: float) -> dict[str, float]:
        """Flow time goes on from where it was: each step adds its own."""
        clocks = dict((self.before if position <= self.at else self.after).times(position))
        if self.clock == "step":
            clocks.pop("t", None)
        elif position > self.at and "step" in clocks:
            clocks["t"] += self.before.times(self.at)["t"] - self.after.times(self.at)["t"]
        return clocks

    def pushed(self, field: Field, layout: Layout, vector: np.ndarray) -> np.ndarray:
        """The parameters that the second part begins with."""
        return vector

    def start(self, field: Field, layout: Layout, vector: np.ndarray) -> State:
        first = self.before.start(field, layout, vector)
        return self._turned(field, layout, first) if self.at == 0 else first

    def _turned(self, field: Field, layout: Layout, state: State) -> State:
        """A state of the first part at `at`, as one of the second."""
        pushed = {**state, "theta": self.pushed(field, layout, np.asarray(state["theta"]))}
        last = self.before.in_force(self.at)
        if isinstance(last, Descent) and isinstance(self.after, Descent):
            return handed_over(last, self.after, field, layout, pushed)
        return pushed

    def walk(self, field: Field, layout: Layout, state: State, targets: np.ndarray) -> Iterator[Point]:
        """The point at `at` is seen as the first part left it; its state is that of the second part."""
        switch = targets.dtype.type(self.at)
        if targets[-1] < switch:
            yield from self.before.walk(field, layout, state, targets)
            return
        if state["position"] < switch:
            first = np.unique(np.append(targets[targets < switch], [switch, targets.dtype.type(self.ends)]))
            with closing(self.before.walk(field, layout, state, first)) as points:  # pyright: ignore[reportArgumentType]
                for point in points:
                    if point.position == switch:
                        first_state = point.state or {"theta": point.vector, "position": np.array(switch)}
                        state = self._turned(field, layout, first_state)
                        yield point._replace(frame=bool(switch in targets), state=state)
                        break
                    yield point
        yield from self.after.walk(field, layout, state, targets)
