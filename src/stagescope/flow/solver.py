"""Integration from one restart to the next, or step by step: by CVODE, or by SciPy's integrators as the second opinion."""

import os
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from math import inf, isfinite, sqrt
from typing import Any, TypeGuard

import numpy as np

from stagescope.core.errors import StagescopeError
from stagescope.core.threads import hold
from stagescope.flow import cvode
from stagescope.flow.dynamics import Point, SolveFailed, check_finite
from stagescope.flow.field import Compiled, FlatField

KRYLOV = 20
MAX_STEPS = 200_000
"""Steps without a frame, of one integration by CVODE."""
TOLERANCES = 1e-9, 1e-14
"""Relative and absolute, of single steps."""
SCIPY = {"lsoda": "LSODA", "dop853": "DOP853", "radau": "Radau"}


class Stopped(StagescopeError):
    """The solver gave up."""


@dataclass(frozen=True)
class Solver:
    """A field and how it is integrated; every solver of this file gives the same points to within the tolerances."""

    flat: FlatField
    method: str
    tolerances: tuple[float, float | None]
    noun: str
    """How messages call the field."""
    enough: int | None
    """Evaluations of the field after which an integration ends, at a stop or between two; None: at the last stop only."""
    weights: np.ndarray | None
    """Of the squares in a speed; None where loss and speed are not asked for."""
    first_stop: float = 0.0
    """The stop for which CVODE, called directly, chooses the first step of all, where it comes after the first of the stops."""

    def points(self, theta: np.ndarray, span: tuple[float, float], stops: np.ndarray) -> Iterator[Point]:
        """The flow at the stops, as frames. The last point is where to restart, and no frame if it is between stops."""
        # a frame a few roundings after a restart: no integrator can take so small a step, and nothing moves in it
        near = sum(1 for stop in stops.tolist() if stop - span[0] <= 1e-13 * abs(stop))
        yield from (Point(stop, theta, frame=True, state=None) for stop in stops[:near].tolist())
        if near == len(stops):
            return
        solve = _scipy if self.method in SCIPY else _directly if _called_directly(self.flat) else _through_python
        for point in solve(self, theta, span, stops[near:]):
            if point.speed is None or not isfinite(point.speed):  # else all parameters are finite
                check_finite(point.vector, f"t={point.position:g}")
            yield point

    def diverged(self, t: float, norm: float) -> SolveFailed:
        return SolveFailed("diverged", f"diverged at t={t:g}: the {self.noun} is not finite at |theta|={norm:.3g}")

    def stopped(self, t: float, y: np.ndarray, message: object) -> SolveFailed:
        name = self.method if self.method in SCIPY else "CVODE"
        return SolveFailed("failed", f"{name} stopped at t={t:g}, |theta|={_norm(y):.3g}: {message}")


def _called_directly(flat: FlatField) -> TypeGuard[Compiled]:
    """Whether CVODE calls the field without Python in between; before either way, what it would print is turned off."""
    for stream in ("ERROR", "WARNING"):  # SUNDIALS prints to stderr; its message is in the result as well
        os.environ.setdefault(f"SUNLOGGER_{stream}_FILENAME", os.devnull)
    return isinstance(flat, Compiled) and cvode.functions() is not None


def _norm(vector: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(vector))


class _Guarded:
    """A right-hand side that ends the solve at the first value that is not finite, and counts."""

    def __init__(self, solver: Solver) -> None:
        self._solver, self.count = solver, 0

    def __call__(self, t: float, y: np.ndarray, out: np.ndarray) -> None:
        self.count += 1
        self._solver.flat(y, out)
        if not isfinite(out.dot(out)):
            raise self._solver.diverged(t, _norm(y))


def _directly(solver: Solver, theta: np.ndarray, span: tuple[float, float], stops: np.ndarray) -> Iterator[Point]:
    """With no Python between solver and kernel: a third of the time."""
    field, enough, done, looks, flag = solver.flat, solver.enough or inf, 0, 0, 0
    assert isinstance(field, Compiled)
    with cvode.Cvode(field, theta, span, solver.tolerances, KRYLOV, solver.weights) as way:
        if span[0] == 0 and solver.first_stop > stops[0] and (flag := way.one_step(solver.first_stop)) < 0:
            raise solver.stopped(way.t, way.y, cvode.message(flag))
        while done < len(stops) and way.evaluations < enough:
            flag, frames = way.travel(stops[done:], enough)
            yield from frames
            done, looks = done + len(frames), 0 if frames else looks + 1
            if flag < 0 and (flag != cvode.TOO_MUCH_WORK or looks * cvode.LOOK >= MAX_STEPS):
                t, norm = field.constants[-2:]
                raise solver.diverged(t, norm) if isfinite(t) else solver.stopped(way.t, way.y, cvode.message(flag))
        if done < len(stops) and flag == cvode.TOO_MUCH_WORK:
            yield Point(way.t, way.y.copy(), frame=False, state=None)


def _through_python(solver: Solver, theta: np.ndarray, span: tuple[float, float], stops: np.ndarray) -> Iterator[Point]:
    guarded, enough, done, looks = _Guarded(solver), solver.enough or inf, 0, 0
    look = min(cvode.LOOK, MAX_STEPS) if solver.enough else MAX_STEPS
    way = _sundae(guarded, solver.tolerances, look)
    way.init_step(span[0], theta)
    while done < len(stops) and guarded.count < enough:
        stop = float(stops[done])
        with np.errstate(over="ignore", invalid="ignore"), redirect_stdout(StringIO()):  # a failure is reported once
            answer = way.step(stop, tstop=span[1])
        done, looks = (done + 1, 0) if answer.success else (done, looks + 1)
        if answer.success:
            yield Point(stop, np.array(answer.y), frame=True, state=None)
        elif answer.status != cvode.TOO_MUCH_WORK or looks * look >= MAX_STEPS:
            raise solver.stopped(answer.t, answer.y, answer.message)
        elif guarded.count >= enough:
            yield Point(float(answer.t), np.array(answer.y), frame=False, state=None)


def _sundae(rhs: Callable[..., Any], tolerances: tuple[float, float | None], limit: int) -> Any:
    """CVODE as scikit-sundae wraps it, with at most so many steps at a time."""
    from sksundae.cvode import CVODE

    rtol, atol = tolerances
    return CVODE(rhs, method="BDF", linsolver="gmres", krylov_dim=KRYLOV, rtol=rtol, atol=atol, max_num_steps=limit)


def _scipy(solver: Solver, theta: np.ndarray, span: tuple[float, float], stops: np.ndarray) -> Iterator[Point]:
    from scipy import integrate

    hold()  # SciPy brings a BLAS of its own
    guarded, enough, done = _Guarded(solver), solver.enough or inf, 0

    def rhs(t: float, y: np.ndarray) -> np.ndarray:
        out = np.empty_like(y)
        guarded(t, np.ascontiguousarray(y), out)
        return out

    rtol, atol = solver.tolerances
    way = getattr(integrate, SCIPY[solver.method])(rhs, span[0], theta, span[1], rtol=rtol, atol=atol)
    while done < len(stops) and (way.t >= stops[done] or guarded.count < enough):
        stop = float(stops[done])
        if way.t >= stop:
            yield Point(stop, np.array(way.y if stop == way.t else way.dense_output()(stop)), frame=True, state=None)
            done += 1
            continue
        with np.errstate(over="ignore", invalid="ignore"):  # a blow-up is reported once, as the outcome
            message = way.step()
        if way.status == "failed":
            raise solver.stopped(way.t, way.y, message)
    if done < len(stops):
        yield Point(float(way.t), np.array(way.y), frame=False, state=None)


def steps(
    flat: FlatField, vector: np.ndarray, span: tuple[float, float], tolerances: tuple[float, float] = TOLERANCES
) -> Iterator[tuple[float, np.ndarray]]:
    """Times and points, one for each step that the solver takes: for walks that look at the flow as it goes."""
    if _called_directly(flat):
        with cvode.Cvode(flat, vector, span, tolerances, KRYLOV) as solver:
            while solver.t < span[1]:
                flag = solver.one_step()
                if flag < 0:
                    raise Stopped(f"the solver stopped at t={solver.t:g} with flag {flag}")
                yield solver.t, solver.y.copy()
        return
    (t, until), solver = span, _sundae(lambda t, y, out: flat(y, out), tolerances, 10_000)
    solver.init_step(t, vector)
    while t < until:
        with np.errstate(over="ignore", invalid="ignore"), redirect_stdout(StringIO()):
            answer = solver.step(until, method="onestep", tstop=until)
        if not answer.success:
            raise Stopped(f"the solver stopped at t={answer.t:g}: {answer.message}")
        t = float(answer.t)
        yield t, np.array(answer.y)


def between(share: float, h: float, ends: tuple[np.ndarray, np.ndarray], velocities: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The cubic through both ends of a step with their velocities, or a line where these are the solver's errors.

    In a long step of a stiff flow a velocity is mostly that of errors which have died out since.
    """
    (y0, y1), s = ends, share
    change = y1 - y0
    first, last = (h * velocity - change for velocity in velocities)
    line = y0 + s * change
    if sqrt(first @ first) + sqrt(last @ last) > sqrt(change @ change):
        return line
    return line + s * (1 - s) * ((1 - s) * first - s * last)
