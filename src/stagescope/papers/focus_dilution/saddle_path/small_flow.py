"""The flow of a small model, one step of the solver at a time, and the linear laws beside it."""

import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO

import numpy as np

from stagescope.dynamics import cvode
from stagescope.dynamics.flow import KRYLOV
from stagescope.errors import StagescopeError
from stagescope.fields.field import Compiled
from stagescope.papers.focus_dilution.counts import TokenCounts
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenLoss, TokenPopulation
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.params import Layout, Params

TOLERANCES = 1e-9, 1e-14
"""Relative and absolute."""


class Stopped(StagescopeError):
    """The solver gave up on the flow of a small model."""


class SmallModel:
    """The same loss of the model of width r and key width rq, r at least 1; at rq = 0 its one query and key are zeros."""

    def __init__(self, loss: TokenLoss, r: int, rq: int) -> None:
        self.r, self.rq = r, rq
        model = TokenAttention(vocab=loss.model.vocab, width=r, key_width=max(rq, 1), scale=loss.model.scale)
        if isinstance(loss, TokenCounts):
            self.loss = loss.model_copy(update={"model": model})  # the contexts stay
        else:
            self.loss = TokenPopulation(model=model, process=loss.process)
        self.layout = Layout(tuple((name, model.shapes[name]) for name in BLOCKS))
        self.flat = self.loss.flat(self.layout, dict.fromkeys(BLOCKS, 1.0))

    def packed(self, small: Params) -> np.ndarray:
        none = {} if self.rq else {name: np.zeros((self.r, 1)) for name in ("WQ", "WK")}
        return self.layout.pack({**small, **none})

    def unpacked(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """The blocks of one vector, or of several along leading axes."""
        small = self.layout.unpack(vector)
        return small if self.rq else small | {name: small[name][..., :0] for name in ("WQ", "WK")}

    def velocity(self, vector: np.ndarray) -> tuple[np.ndarray, float]:
        """The velocity and the loss."""
        out = np.empty_like(vector)
        value = self.flat(vector, out)
        return out, float(self.loss.value(self.layout.unpack(vector)) if value is None else value)

    def steps(
        self, vector: np.ndarray, start: float, until: float, tolerances: tuple[float, float] = TOLERANCES
    ) -> Iterator[tuple[float, np.ndarray]]:
        """Times and points, one for each step that the solver takes."""
        for stream in ("ERROR", "WARNING"):  # SUNDIALS prints to stderr; a failure is reported once
            os.environ.setdefault(f"SUNLOGGER_{stream}_FILENAME", os.devnull)
        if isinstance(self.flat, Compiled) and cvode.functions() is not None:
            yield from self._directly(self.flat, vector, (start, until), tolerances)
        else:
            yield from self._through_python(vector, (start, until), tolerances)

    def _directly(
        self, flat: Compiled, vector: np.ndarray, span: tuple[float, float], tolerances: tuple[float, float]
    ) -> Iterator[tuple[float, np.ndarray]]:
        with cvode.Cvode(flat, vector, span, tolerances, KRYLOV) as solver:
            while solver.t < span[1]:
                flag = solver.one_step()
                if flag < 0:
                    raise Stopped(f"the solver stopped at t={solver.t:g} with flag {flag}")
                yield solver.t, solver.y.copy()

    def _through_python(
        self, vector: np.ndarray, span: tuple[float, float], tolerances: tuple[float, float]
    ) -> Iterator[tuple[float, np.ndarray]]:
        from sksundae.cvode import CVODE

        def rhs(t: float, y: np.ndarray, out: np.ndarray) -> None:
            self.flat(y, out)

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
    if np.linalg.norm(first) + np.linalg.norm(last) > np.linalg.norm(moved):
        return line
    return line + s * (1 - s) * ((1 - s) * first - s * last)
