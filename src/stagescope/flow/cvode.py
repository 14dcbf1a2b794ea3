"""CVODE as a C library, for fields that are machine code.

scikit-sundae wraps both vectors in new arrays at each of many thousand calls, which costs several times the kernel. What
is set here is what flow.py sets through scikit-sundae, which remains the way for every other field.
"""

import ctypes
from functools import cache
from itertools import repeat
from typing import Any

import numpy as np

from stagescope.flow.dynamics import FRAMES, Point
from stagescope.flow.field import Compiled

BDF, ONE_STEP = 2, 2
TOO_MUCH_WORK = -1
LOOK = 100
"""Steps after which the solver returns where no frame is reached: it can then restart there, or be stopped by Ctrl-C."""
PATIENCE = 250
"""Calls of the field between looks at Ctrl-C; and so many as `FRAMES`."""
_POINTER, _NUMBER, _INT = ctypes.c_void_p, ctypes.c_double, ctypes.c_int
_FUNCTIONS = {
    "SUNContext_Create": (_INT, _INT, _POINTER),
    "SUNContext_ClearErrHandlers": (_INT, _POINTER),
    "SUNContext_Free": (_INT, _POINTER),
    "N_VMake_Serial": (_POINTER, ctypes.c_int64, _POINTER, _POINTER),
    "N_VDestroy": (None, _POINTER),
    "SUNLinSol_SPGMR": (_POINTER, _POINTER, _INT, _INT, _POINTER),
    "SUNLinSolFree": (_INT, _POINTER),
    "CVodeCreate": (_POINTER, _INT, _POINTER),
    "CVodeInit": (_INT, _POINTER, _POINTER, _NUMBER, _POINTER),
    "CVodeSetUserData": (_INT, _POINTER, _POINTER),
    "CVodeSStolerances": (_INT, _POINTER, _NUMBER, _NUMBER),
    "CVodeSetLinearSolver": (_INT, _POINTER, _POINTER, _POINTER),
    "CVodeSetMaxNumSteps": (_INT, _POINTER, ctypes.c_long),
    "CVodeSetStopTime": (_INT, _POINTER, _NUMBER),
    "CVode": (_INT, _POINTER, _NUMBER, _POINTER, _POINTER, _INT),
    "CVodeFree": (None, _POINTER),
}
"""What each returns and takes. The first of N_VMake_Serial may be shorter in the library, which then reads its lower half."""


@cache
def functions() -> Any:
    """The functions of `_FUNCTIONS` by name, or None where the library cannot be called directly."""
    from stagescope.flow.compiled import provide, sundials

    library = sundials()
    if library is None:
        return None
    from stagescope.flow.cvode_kernel import CALLED

    try:
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        for name in CALLED:
            provide(library, name)
    except AttributeError:
        return None
    return library


def message(flag: int) -> str:
    """What a flag of the solver means; only a failure needs it, and pays for the import."""
    from sksundae._cy_cvode import CVMESSAGES

    return CVMESSAGES.get(flag, str(flag))


class Cvode:
    """One integration: BDF with matrix-free GMRES. Use it in a `with` statement, which frees what the library allocates.

    With `weights`, those of the squares in a speed, frames come with their loss and speed, and sums over vectors are those of
    `sums_kernel`. Without, all bits are those of version 0.1.
    """

    def __init__(
        self,
        field: Compiled,
        theta: np.ndarray,
        span: tuple[float, float],
        tolerances: tuple[float, float | None],
        krylov: int,
        weights: np.ndarray | None = None,
    ) -> None:
        self._c, self._field = functions(), field
        self.y, self._velocity = np.array(theta), np.empty_like(theta)
        self._time, self._end = np.array([span[0]]), span[1]
        self._time_address = self._time.ctypes.data
        self._weights = np.empty(0) if weights is None else weights
        self._context, self._memory = _POINTER(), _POINTER()
        self._c.SUNContext_Create(0, ctypes.byref(self._context))
        self._c.SUNContext_ClearErrHandlers(self._context)  # a failure is reported once, as the outcome
        self._vector, self._out = (self._c.N_VMake_Serial(a.size, a.ctypes.data, self._context) for a in (self.y, self._velocity))
        if weights is not None:
            from stagescope.flow.cvode_kernel import quicken

            quicken(self._c, self._vector)
        self._linear = self._c.SUNLinSol_SPGMR(self._vector, 0, krylov, self._context)  # without a preconditioner
        self._memory.value = self._c.CVodeCreate(BDF, self._context)
        try:
            self._set("CVodeInit", field.address(), span[0], self._vector)
            self._set("CVodeSetUserData", field.constants.ctypes.data)
            self._set("CVodeSStolerances", *tolerances)
            self._set("CVodeSetLinearSolver", self._linear, None)
            self._set("CVodeSetMaxNumSteps", LOOK)
            self._set("CVodeSetStopTime", span[1])
        except BaseException:
            self.free()
            raise

    def _set(self, name: str, *values: Any) -> None:
        flag = getattr(self._c, name)(self._memory, *values)
        if flag < 0:
            raise RuntimeError(f"{name} returned {flag}")

    @property
    def t(self) -> float:
        return float(self._time[0])

    @property
    def evaluations(self) -> int:
        """How often the field was called."""
        from stagescope.flow.cvode_kernel import evaluations

        return evaluations(self._memory.value)

    def travel(self, stops: np.ndarray, budget: float) -> tuple[int, list[Point]]:
        """Go on through the stops for a while, at most until the field was called `budget` times: a flag, and frames.

        A negative flag means failure, except `TOO_MUCH_WORK`: `LOOK` steps have reached no stop.
        """
        from stagescope.flow.cvode_kernel import travel

        stops = stops[:FRAMES]
        vectors, (losses, speeds) = np.empty((stops.size, self.y.size)), np.empty((2, stops.size))
        solver = self._memory.value, self._vector, self.y
        field = self._field.address(), self._out, self._velocity, self._field.constants, self._weights
        budget = min(budget, self.evaluations + PATIENCE)
        done, flag = travel(solver, field, stops, budget, self._time, vectors, losses, speeds)
        measured: Any = (losses[:done].tolist(), speeds[:done].tolist()) if self._weights.size else (repeat(None), repeat(None))
        return flag, list(map(Point, stops[:done].tolist(), vectors[:done].copy(), repeat(True), repeat(None), *measured))

    def one_step(self, towards: float | None = None) -> int:
        """One step of the solver's own choice, at most to the end of the span; a negative flag means failure.

        The first step of all is chosen for a frame at the time `towards`, and may be longer.
        """
        return self._c.CVode(self._memory, self._end if towards is None else towards, self._vector, self._time_address, ONE_STEP)

    def __enter__(self) -> "Cvode":
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def free(self) -> None:
        """Give back what the library allocated."""
        self._c.CVodeFree(ctypes.byref(self._memory))
        self._c.SUNLinSolFree(self._linear)
        for vector in (self._vector, self._out):
            self._c.N_VDestroy(vector)
        self._c.SUNContext_Free(ctypes.byref(self._context))
