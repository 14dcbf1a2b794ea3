"""CVODE as a C library, for fields that are machine code.

scikit-sundae wraps both vectors in new arrays at each of many thousand calls, which costs several times the kernel. What
is set here is what flow.py sets through scikit-sundae, which remains the way for every other field.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np

from stagescope.fields.field import Compiled

BDF, NORMAL, ONE_STEP, UNPRECONDITIONED = 2, 1, 2, 0
TOO_MUCH_WORK = -1
PATIENCE = 100
"""Steps between looks at Ctrl-C."""
_POINTER, _NUMBER, _INT = ctypes.c_void_p, ctypes.c_double, ctypes.c_int
_FUNCTIONS = {
    "SUNContext_Create": (_INT, _INT, _POINTER),
    "SUNContext_ClearErrHandlers": (_INT, _POINTER),
    "SUNContext_Free": (_INT, _POINTER),
    "N_VMake_Serial": (_POINTER, None, _POINTER, _POINTER),
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
"""What each returns and takes; None is the library's own kind of integer."""


@cache
def functions() -> Any:
    """The functions of `_FUNCTIONS` by name, or None where the library cannot be called directly."""
    from stagescope.fields.compiled import sundials

    library = sundials()
    if library is None:
        return None
    from sksundae._cy_cvode import config

    index = ctypes.c_int64 if config["SUNDIALS_INT_TYPE"] == "long int" else ctypes.c_int32
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name, None)
        if function is None:
            return None
        function.restype, function.argtypes = result, [argument or index for argument in arguments]
    return library


class Cvode:
    """One integration: BDF with matrix-free GMRES. Use it in a `with` statement, which frees what the library allocates."""

    def __init__(
        self,
        field: Compiled,
        theta: np.ndarray,
        span: tuple[float, float],
        tolerances: tuple[float, float | None],
        krylov: int,
    ) -> None:
        self._c, self._field = functions(), field
        self.y = np.array(theta)
        self._reached, self._end = _NUMBER(span[0]), span[1]
        self._at = ctypes.byref(self._reached)
        self._context, self._memory = _POINTER(), _POINTER()
        self._c.SUNContext_Create(0, ctypes.byref(self._context))
        self._c.SUNContext_ClearErrHandlers(self._context)  # a failure is reported once, as the outcome
        self._vector = self._c.N_VMake_Serial(self.y.size, self.y.ctypes.data, self._context)
        self._linear = self._c.SUNLinSol_SPGMR(self._vector, UNPRECONDITIONED, krylov, self._context)
        self._memory.value = self._c.CVodeCreate(BDF, self._context)
        try:
            self._set("CVodeInit", field.address(), span[0], self._vector)
            self._set("CVodeSetUserData", field.held.ctypes.data)
            self._set("CVodeSStolerances", *tolerances)
            self._set("CVodeSetLinearSolver", self._linear, None)
            self._set("CVodeSetMaxNumSteps", PATIENCE)
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
        return self._reached.value

    def step(self, stop: float, most: int) -> int:
        """Integrate to `stop` in at most `most` steps; a negative flag means failure."""
        flag = TOO_MUCH_WORK
        for _ in range(0, most, PATIENCE):
            flag = self._c.CVode(self._memory, stop, self._vector, self._at, NORMAL)
            if flag != TOO_MUCH_WORK:
                break
        return flag

    def one_step(self) -> int:
        """One step of the solver's own choice, at most to the end of the span; a negative flag means failure."""
        return self._c.CVode(self._memory, self._end, self._vector, self._at, ONE_STEP)

    def __enter__(self) -> "Cvode":
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def free(self) -> None:
        """Give back what the library allocated."""
        self._c.CVodeFree(ctypes.byref(self._memory))
        self._c.SUNLinSolFree(self._linear)
        self._c.N_VDestroy(self._vector)
        self._c.SUNContext_Free(ctypes.byref(self._context))
