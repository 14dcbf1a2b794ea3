"""Gradient flow, integrated to tolerance by CVODE, with SciPy's integrators as the second opinion."""

import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from math import isfinite
from numbers import Real
from typing import Literal

import numpy as np
from pydantic import Field as Limits

from stagescope.dynamics import cvode
from stagescope.dynamics.dynamics import Dynamics, Point, SolveFailed, State, check_finite, least_rms
from stagescope.dynamics.record import LogSpaced, Record
from stagescope.errors import InputError
from stagescope.fields.field import Compiled, Field, FlatField
from stagescope.params import Layout
from stagescope.threads import hold

KRYLOV = 20
SHORTEST, LONGEST = 1e-100, 1e100
MAX_STEPS = 200_000
SCIPY = {"lsoda": "LSODA", "dop853": "DOP853", "radau": "Radau"}


class GradientFlow(Dynamics):
    """theta_b' = rate_b F_b(theta), clock t [flow:field].

    `auto` is CVODE: BDF with matrix-free GMRES, because these flows are stiff. `atol` is 1e-10 x max(rms of the initial
    parameters, 1e-3) unless given, and 1e-10 x the rms of the smallest block that is not 0 where the former is more than a
    thousandth of that block: errors would grow with it. The integrator restarts at fixed times, `segments` equal ones and as
    many halvings of the first: a multistep solver has no state to store, so these are the points a run can be continued from.
    """

    rtol: float = Limits(default=1e-10, gt=0, lt=1)
    atol: float | None = Limits(default=None, gt=0)
    method: Literal["auto", "cvode", "lsoda", "dop853", "radau"] = "auto"
    segments: int = Limits(default=16, ge=1)

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

    def settled(self, field: Field, layout: Layout, vector: np.ndarray) -> "GradientFlow":
        scale, least = float(np.sqrt(np.mean(np.square(vector)))), least_rms(field, layout, vector)
        if self.atol is not None:
            return self
        usual = 1e-10 * max(scale, 1e-3)
        return self.model_copy(update={"atol": usual if usual <= 1e-3 * least else 1e-10 * least})

    def start(self, field: Field, layout: Layout, vector: np.ndarray) -> State:
        if field.draw(0) is not None:
            raise InputError(
                "this loss draws a batch for every step, and a flow has none: use a Descent, or a loss without batches"
            )
        return {"theta": vector, "position": np.array(0.0)}

    def boundaries(self, until: float) -> np.ndarray:
        """Times at which the integrator restarts; part of the run's definition, never of the wall clock."""
        equal = until * np.arange(1, self.segments + 1) / self.segments
        equal[-1] = until  # not a rounding away from it
        halved = equal[0] * 0.5 ** np.arange(self.segments, 0, -1)
        return np.concatenate([halved, equal])

    def walk(self, field: Field, layout: Layout, state: State, targets: np.ndarray) -> Iterator[Point]:
        flat = field.flat(layout, self.block_rates(layout.names))
        theta, now = np.array(state["theta"]), float(state["position"])
        solve = _scipy if self.method in SCIPY else _cvode
        what = "field" if field.objective is None else "gradient"
        for end in self.boundaries(float(targets[-1])):
            if end <= now:
                continue
            inside = targets[(targets > now) & (targets < end)]
            for t, vector in solve(self, flat, theta, now, np.append(inside, end), what):
                if not isfinite(vector.dot(vector)):
                    check_finite(vector, f"t={t:g}")
                theta, now = vector, t
                if t < end:
                    yield Point(now, vector, frame=True, state=None)
            yield Point(now, theta, end in targets, state={"theta": theta, "position": np.array(now)})


def _guarded(flat: FlatField, what: str):  # noqa: ANN202 (a closure)
    """A right-hand side that ends the solve at the first value that is not finite."""

    def rhs(t: float, y: np.ndarray, out: np.ndarray) -> None:
        flat(y, out)
        if not isfinite(out.dot(out)):
            raise _diverged(t, _norm(y), what)

    return rhs


def _norm(vector: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(vector))


def _diverged(t: float, norm: float, what: str) -> SolveFailed:
    return SolveFailed("diverged", f"diverged at t={t:g}: the {what} is not finite at |theta|={norm:.3g}")


def _stopped(solver: str, t: float, y: np.ndarray, message: object) -> SolveFailed:
    return SolveFailed("failed", f"{solver} stopped at t={t:g}, |theta|={_norm(y):.3g}: {message}")


def _at_once(start: float, stop: float) -> bool:
    """A frame a few roundings after a restart: no integrator can take so small a step, and nothing moves in it."""
    return bool(stop - start <= 1e-13 * abs(stop))


def _cvode(flow: GradientFlow, flat: FlatField, theta: np.ndarray, start: float, stops: np.ndarray, what: str) -> Iterator:
    for stream in ("ERROR", "WARNING"):  # SUNDIALS prints to stderr; its message is in the result as well
        os.environ.setdefault(f"SUNLOGGER_{stream}_FILENAME", os.devnull)
    if isinstance(flat, Compiled) and cvode.functions() is not None:
        return _directly(flow, flat, theta, start, stops, what)
    return _through_python(flow, flat, theta, start, stops, what)


def _directly(flow: GradientFlow, field: Compiled, theta: np.ndarray, start: float, stops: np.ndarray, what: str) -> Iterator:
    """With no Python between solver and kernel: a third of the time."""
    from sksundae._cy_cvode import CVMESSAGES

    with cvode.Cvode(field, theta, (start, stops[-1]), (flow.rtol, flow.atol), KRYLOV) as solver:
        for stop in stops.tolist():
            if _at_once(start, stop):
                yield stop, theta
                continue
            flag = solver.step(stop, MAX_STEPS)
            if flag < 0:
                t, norm = field.held[-2:]
                raise (
                    _diverged(t, norm, what) if isfinite(t) else _stopped("CVODE", solver.t, solver.y, CVMESSAGES.get(flag, flag))
                )
            yield stop, solver.y.copy()


def _through_python(
    flow: GradientFlow, flat: FlatField, theta: np.ndarray, start: float, stops: np.ndarray, what: str
) -> Iterator:
    from sksundae.cvode import CVODE

    solver = CVODE(
        _guarded(flat, what),
        method="BDF",
        linsolver="gmres",
        krylov_dim=KRYLOV,
        rtol=flow.rtol,
        atol=flow.atol,
        max_num_steps=MAX_STEPS,
    )
    solver.init_step(start, theta)
    for stop in stops.tolist():
        if _at_once(start, stop):
            yield stop, theta
            continue
        with np.errstate(over="ignore", invalid="ignore"), redirect_stdout(StringIO()):  # a failure is reported once
            found = solver.step(stop, tstop=stops[-1])
        if not found.success:
            raise _stopped("CVODE", found.t, found.y, found.message)
        yield stop, np.array(found.y)


def _scipy(flow: GradientFlow, flat: FlatField, theta: np.ndarray, start: float, stops: np.ndarray, what: str) -> Iterator:
    from scipy import integrate

    hold()  # SciPy brings a BLAS of its own
    guarded = _guarded(flat, what)

    def rhs(t: float, y: np.ndarray) -> np.ndarray:
        out = np.empty_like(y)
        guarded(t, np.ascontiguousarray(y), out)
        return out

    kind = getattr(integrate, SCIPY[flow.method])
    solver = kind(rhs, start, theta, float(stops[-1]), rtol=flow.rtol, atol=flow.atol)
    for stop in stops:
        if _at_once(start, stop):
            yield float(stop), theta
            continue
        while solver.t < stop:
            with np.errstate(over="ignore", invalid="ignore"):  # a blow-up is reported once, as the outcome
                message = solver.step()
            if solver.status == "failed":
                raise _stopped(flow.method, solver.t, solver.y, message)
        yield float(stop), np.array(solver.y if stop == solver.t else solver.dense_output()(stop))
