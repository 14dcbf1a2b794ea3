"""Gradient flow, integrated to tolerance by CVODE, with SciPy's integrators as the second opinion."""

from collections.abc import Iterator
from numbers import Real
from typing import Any, Literal

import numpy as np
from pydantic import Field as Limits

from stagescope.core.errors import InputError
from stagescope.core.params import Layout
from stagescope.flow.dynamics import Dynamics, Point, State, least_rms
from stagescope.flow.field import Field
from stagescope.flow.record import LogSpaced, Record
from stagescope.flow.solver import Solver

SHORTEST = 1e-100
LONGEST = 1 / SHORTEST
WORK, FEWEST = 4e9, 2_000
"""Multiplications between two restarts, a second or two, and the fewest evaluations that this may be. A restart costs 100."""
MOST = 10 * FEWEST
STUCK = 100 * MOST
"""Evaluations of the field without a frame after which a flow is given up."""
WAITING = 2**25
"""Numbers in the frames between two restarts, 256 MB: they wait in memory for a state to go on from."""


class GradientFlow(Dynamics):
    """theta_b' = rate_b F_b(theta), clock t [flow:field].

    `auto` is CVODE: BDF with matrix-free GMRES, because these flows are stiff. `atol` is 1e-10 x max(rms of the initial
    parameters, 1e-3) unless given, and 1e-10 x the rms of the smallest block that is not 0 where the former is more than a
    thousandth of that block: errors would grow with it.

    A multistep solver has no state to store, so a run can only be continued from where the integrator restarts. It does so once
    it has evaluated the field `restart_evaluations` times, or after `restart_frames` frames: counts, which are the same each
    time, never the wall clock. Short flows have no restart at all. Unless given, both follow from the number of parameters n:
    an evaluation is taken for n^1.5 multiplications, those of square matrices. With `segments` the restarts are at fixed times
    instead, as in version 0.1: as many equal pieces, and as many halvings of the first.

    Args:
        rates: a factor of the velocity for each block; 1 where it is not named.
        rtol: relative tolerance of the solver.
        atol: absolute tolerance of the solver.
        method: the solver; "auto" is "cvode".
        segments: restarts at fixed times, as in version 0.1.
        restart_evaluations: evaluations of the field between two restarts.
        restart_frames: frames between two restarts.

    Examples:
        >>> flow = ss.evolve(well, {"x": np.full(1, 0.1)}, ss.GradientFlow(), until=20)
        >>> print(flow.status, flow.params["x"][-1].round(4))
        finished [1.]
    """

    rtol: float = Limits(default=1e-10, gt=0, lt=1)
    atol: float | None = Limits(default=None, gt=0)
    method: Literal["auto", "cvode", "lsoda", "dop853", "radau"] = "auto"
    segments: int | None = Limits(default=None, ge=1)
    restart_evaluations: int | None = Limits(default=None, ge=1)
    restart_frames: int | None = Limits(default=None, ge=1)

    @property
    def clock(self) -> str:
        return "t"

    @property
    def usual_record(self) -> Record:
        return LogSpaced()

    def positions(self, record: Record | None, until: float | None) -> np.ndarray:
        if not isinstance(until, Real) or not SHORTEST <= until <= LONGEST:
            raise InputError(f"until is {until!r}, but a flow needs an end time > 0, between {SHORTEST:g} and {LONGEST:g}")
        return (record or self.usual_record).times(float(until))

    def times(self, position: float) -> dict[str, float]:
        return {"t": position}

    def waiting(self, frames: int) -> int:
        return -(-frames // self.segments) if self.segments else min(frames, self.restart_frames or frames)

    def settled(self, field: Field, layout: Layout, vector: np.ndarray) -> "GradientFlow":
        scale, least = float(np.sqrt(np.mean(np.square(vector)))), least_rms(field, layout, vector)
        usual = 1e-10 * max(scale, 1e-3)
        tolerances: dict[str, Any] = {"atol": usual if usual <= 1e-3 * least else 1e-10 * least}
        if self.segments is None:
            tolerances["restart_evaluations"] = int(min(max(FEWEST, WORK / vector.size**1.5), MOST))
            tolerances["restart_frames"] = max(1, WAITING // vector.size)
        return self.model_copy(update={name: value for name, value in tolerances.items() if getattr(self, name) is None})

    def start(self, field: Field, layout: Layout, vector: np.ndarray) -> State:
        if field.draw(0) is not None:
            raise InputError(
                "this loss draws a batch for every step, and a flow has none: use a Descent, or a loss without batches"
            )
        return {"theta": vector, "position": np.array(0.0)}

    def boundaries(self, until: float) -> np.ndarray:
        """Times at which the integrator restarts whatever it has done; part of the run's definition."""
        if self.segments is None:
            return np.array([until])
        equal = until * np.arange(1, self.segments + 1) / self.segments
        equal[-1] = until  # not a rounding away from it
        halved = equal[0] * 0.5 ** np.arange(self.segments, 0, -1)
        return np.concatenate([halved, equal])

    def walk(self, field: Field, layout: Layout, state: State, targets: np.ndarray) -> Iterator[Point]:
        theta, now, idle = np.array(state["theta"]), float(state["position"]), int(state.get("idle", 0))
        solver = Solver(
            flat=field.flat(layout, self.block_rates(layout.names)),
            method=self.method,
            tolerances=(self.rtol, self.atol),
            noun="field" if field.objective is None else "gradient",
            enough=self.restart_evaluations if self.segments is None else None,
            weights=field.weights(layout) if self.segments is None else None,
            first_stop=float(state.get("first_stop", 0.0)),
        )
        for end in self.boundaries(float(targets[-1])):
            while now < end:
                stops = np.append(targets[(targets > now) & (targets < end)], end)[: self.restart_frames]
                for point in solver.points(theta, (now, end), stops):
                    now, theta, idle = point.position, point.vector, 0 if point.frame else idle + 1
                    if point.frame and (now < end or end in targets):
                        yield point
                if idle * (self.restart_evaluations or 0) > STUCK:
                    stuck = f"no frame in {STUCK:,} evaluations of the {solver.noun}; record more frames"
                    raise solver.stopped(now, theta, stuck)
                state = {"theta": theta, "position": np.array(now), "idle": np.array(idle)}
                yield Point(now, theta, frame=False, state=state)
