"""A flow one step of the solver at a time, for walks that look at the flow as it goes."""

import math
import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO

import numpy as np

from stagescope.dynamics import cvode
from stagescope.dynamics.solver import KRYLOV
from stagescope.errors import StagescopeError
from stagescope.fields.field import Compiled, FlatField

TOLERANCES = 1e-9, 1e-14
"""Relative and absolute."""


class Stopped(StagescopeError):
    """The solver gave up."""


def steps(
    flat: FlatField, vector: np.ndarray, span: tuple[float, float], tolerances: tuple[float, float] = TOLERANCES
) -> Iterator[tuple[float, np.ndarray]]:
    """Times and points, one for each step that the solver takes."""
    for stream in ("ERROR", "WARNING"):  # SUNDIALS prints to stderr; a failure is reported once
        os.environ.setdefault(f"SUNLOGGER_{stream}_FILENAME", os.devnull)
    if isinstance(flat, Compiled) and cvode.functions() is not None:
        yield from _directly(flat, vector, span, tolerances)
    else:
        yield from _through_python(flat, vector, span, tolerances)


def _directly(
    flat: Compiled, vector: np.ndarray, span: tuple[float, float], tolerances: tuple[float, float]
) -> Iterator[tuple[float, np.ndarray]]:
    with cvode.Cvode(flat, vector, span, tolerances, KRYLOV) as solver:
        while solver.t < span[1]:
            flag = solver.one_step()
            if flag < 0:
                raise Stopped(f"the solver stopped at t={solver.t:g} with flag {flag}")
            yield solver.t, solver.y.copy()


def _through_python(
    flat: FlatField, vector: np.ndarray, span: tuple[float, float], tolerances: tuple[float, float]
) -> Iterator[tuple[float, np.ndarray]]:
    from sksundae.cvode import CVODE

    def rhs(t: float, y: np.ndarray, out: np.ndarray) -> None:
        flat(y, out)

    (t, until), (rtol, atol) = span, tolerances
    solver = CVODE(rhs, method="BDF", linsolver="gmres", krylov_dim=KRYLOV, rtol=rtol, atol=atol, max_num_steps=10_000)
    solver.init_step(t, vector)
    while t < until:
        with np.errstate(over="ignore", invalid="ignore"), redirect_stdout(StringIO()):
            found = solver.step(until, method="onestep", tstop=until)
        if not found.success:
            raise Stopped(f"the solver stopped at t={found.t:g}: {found.message}")
        t = float(found.t)
        yield t, np.array(found.y)


def between(share: float, h: float, ends: tuple[np.ndarray, np.ndarray], velocities: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The cubic through both ends of a step with their velocities, or a line where these are the solver's errors.

    In a long step of a stiff flow a velocity is mostly that of errors which have died out since.
    """
    (y0, y1), s = ends, share
    moved = y1 - y0
    first, last = (h * velocity - moved for velocity in velocities)
    line = y0 + s * moved
    if math.sqrt(first @ first) + math.sqrt(last @ last) > math.sqrt(moved @ moved):
        return line
    return line + s * (1 - s) * ((1 - s) * first - s * last)
