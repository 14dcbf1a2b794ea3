"""What CVODE does in compiled code: sums over its vectors, and the way from frame to frame with loss and speed at each.

Its own sums, which take numbers one by one, are a fifth of the time of a small flow.
"""

import ctypes
import math
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types  # pyright: ignore[reportPrivateImportUsage]
from numba.extending import intrinsic

from stagescope.flow.compiled import entries, provide
from stagescope.flow.flat_kernel import FAST
from stagescope.flow.kernels import cfunc, njit

_length = types.ExternalFunction("N_VGetLength", types.int32(types.voidptr))
_OPERATIONS = 40
"""The table of a vector's operations is longer, and has these sums among the first."""
_Pointers = ctypes.POINTER(ctypes.c_void_p)


@njit(cache=True, fastmath=FAST)
def dot(x, y):
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@njit(cache=True, fastmath=FAST)
def weighted_rms(x, weights):
    """Products, no powers: what Numba makes of a power depends on what the process compiled before, down to the last bit."""
    total = 0.0
    for i in range(x.size):
        part = x[i] * weights[i]
        total += part * part
    return np.sqrt(total / x.size)


def _dot(x, y):
    size = _length(x)
    return dot(carray(entries(x), size), carray(entries(y), size))


def _weighted_rms(x, weights):
    size = _length(x)
    return weighted_rms(carray(entries(x), size), carray(entries(weights), size))


@cache
def _compiled(library: Any) -> dict[int, Any]:
    """The functions, by the addresses of those they replace."""
    provide(library, _length.symbol)
    signature = types.float64(types.voidptr, types.voidptr)
    operations = {"N_VDotProd_Serial": cfunc(signature)(_dot), "N_VWrmsNorm_Serial": cfunc(signature)(_weighted_rms)}
    return {ctypes.cast(library[name], ctypes.c_void_p).value or 0: function for name, function in operations.items()}


def quicken(library: Any, vector: int) -> None:
    """Let a serial vector, and all that are made like it, use these sums.

    A vector is a pointer to its numbers and one to the table of its operations, in which the library's own are looked for.
    """
    table = ctypes.cast(ctypes.cast(vector, _Pointers)[1], _Pointers)
    replacements = _compiled(library)
    for place in range(_OPERATIONS):
        if table[place] in replacements:
            table[place] = replacements[table[place]].address


CALLED = ("CVode", "CVodeGetNumRhsEvals", "CVodeGetNumLinRhsEvals")
"""Functions of SUNDIALS that are called here; `cvode.functions` says where they are. A pointer is an integer."""
_step = types.ExternalFunction(CALLED[0], types.int32(types.intp, types.float64, types.intp, types.intp, types.int32))
_evaluations = types.ExternalFunction(CALLED[1], types.int32(types.intp, types.intp))
_of_products = types.ExternalFunction(CALLED[2], types.int32(types.intp, types.intp))
_NORMAL = 1


@intrinsic
def _velocity(typing, function, t, y, out, constants):
    """Call the field, a C function of `compiled.SIGNATURE`, by its address."""

    def call(context, builder, signature, args):
        pointer, number = ir.IntType(8).as_pointer(), ir.DoubleType()
        kind = ir.FunctionType(ir.IntType(32), [number, pointer, pointer, number.as_pointer()])
        goals = (kind.as_pointer(), pointer, pointer, number.as_pointer())
        callee, y, out, user_data = (builder.inttoptr(args[i], goal) for i, goal in zip((0, 2, 3, 4), goals, strict=True))
        return builder.call(callee, [args[1], y, out, user_data])

    return types.int32(types.intp, types.float64, types.intp, types.intp, types.intp), call


@njit(cache=True)
def evaluations(memory):
    """How often the solver has called the field, for its own equations and for products with the Jacobian."""
    counters = np.zeros(2, np.int64)
    _evaluations(memory, counters.ctypes.data)
    _of_products(memory, counters.ctypes.data + counters.itemsize)
    return counters[0] + counters[1]


@njit(cache=True)
def travel(solver, field, stops, budget, now, vectors, losses, speeds):
    """Visit stops until the solver has called the field `budget` times: how many stops were reached, and the last flag.

    `solver` are the addresses of its memory and its vector, and the vector's numbers. `field` are the addresses of the function
    and of a vector for velocities, its numbers, what the function is called with, and the weights of the squares in a speed;
    these are empty where loss and speed are not asked for. Both are NaN where anything is not finite.
    """
    memory, vector, y = solver
    function, out, velocity, constants, weights = field
    flag = 0
    for i in range(stops.size):
        flag = _step(memory, stops[i], vector, now.ctypes.data, _NORMAL)
        if flag < 0:
            return i, flag
        for j in range(y.size):
            vectors[i, j] = y[j]
        if weights.size:
            losses[i] = speeds[i] = math.nan
            failed = _velocity(function, stops[i], vector, out, constants.ctypes.data)  # pyright: ignore[reportCallIssue]
            if not failed:
                total, size = 0.0, 0.0
                for j in range(y.size):
                    total += weights[j] * velocity[j] * velocity[j]
                    size += y[j] * y[j]
                if math.isfinite(size):
                    losses[i], speeds[i] = constants[-3], math.sqrt(total)
        if evaluations(memory) >= budget:
            return i + 1, flag
    return stops.size, flag
