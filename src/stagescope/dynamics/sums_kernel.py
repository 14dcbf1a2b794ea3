"""Sums over the vectors of SUNDIALS, several numbers at a time. Its own, one by one, are a fifth of the time of a small flow."""

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numba import carray, types  # pyright: ignore[reportPrivateImportUsage]

from stagescope.fields.compiled import entries, provide
from stagescope.fields.flat_kernel import FAST
from stagescope.kernels import cfunc, njit

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
    found = {"N_VDotProd_Serial": cfunc(signature)(_dot), "N_VWrmsNorm_Serial": cfunc(signature)(_weighted_rms)}
    return {ctypes.cast(library[name], ctypes.c_void_p).value or 0: function for name, function in found.items()}


def quicken(library: Any, vector: int) -> None:
    """Let a serial vector, and all that are made like it, use these sums.

    A vector is a pointer to its numbers and one to the table of its operations, in which the library's own are looked for.
    """
    table = ctypes.cast(ctypes.cast(vector, _Pointers)[1], _Pointers)
    own = _compiled(library)
    for place in range(_OPERATIONS):
        if table[place] in own:
            table[place] = own[table[place]].address
