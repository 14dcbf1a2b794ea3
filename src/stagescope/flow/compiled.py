"""Kernels as machine code for SUNDIALS: the library that calls them, and a Numba kernel as the function that it calls.

No Python is in between.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import binding
from numba import (
    carray,  # pyright: ignore[reportPrivateImportUsage]
    types,
)

from stagescope.flow.field import Compiled
from stagescope.flow.flat_kernel import square
from stagescope.flow.kernels import cfunc

SIGNATURE = types.int32(types.float64, types.voidptr, types.voidptr, types.CPointer(types.float64))
"""int f(double t, N_Vector y, N_Vector velocity, double *constants)."""
entries = types.ExternalFunction("N_VGetArrayPointer", types.CPointer(types.float64)(types.voidptr))
"""The numbers of an N_Vector; `sundials` says where this function is."""
VERSION = 7


@cache
def sundials() -> ctypes.CDLL | None:
    """The library scikit-sundae is linked with, or None if it is another one than expected: then Python stays in between.

    Looking a name up in an extension module finds those of its libraries too, wherever the installation has put them. The
    module is not imported, because it imports SciPy, which takes longer than a small run.
    """
    package = find_spec("sksundae")
    folders = (package and package.submodule_search_locations) or ()
    places = (Path(folder, f"_cy_cvode{suffix}") for folder in folders for suffix in EXTENSION_SUFFIXES)
    extension = next((place for place in places if place.is_file()), None)
    if extension is None:
        return None
    try:
        library = ctypes.CDLL(str(extension))
        major, minor, patch = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        label = ctypes.create_string_buffer(32)
        silent = library.SUNDIALSGetVersionNumber(*map(ctypes.byref, (major, minor, patch)), label, len(label))
        if silent or major.value != VERSION or not _takes_doubles(library):
            return None
        provide(library, entries.symbol)
    except (AttributeError, OSError):
        return None
    return library


def provide(library: ctypes.CDLL, name: str) -> None:
    """Let compiled code find a function of the library by its name."""
    binding.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)


def _takes_doubles(library: ctypes.CDLL) -> bool:
    """Whether the library's numbers are doubles: it may be built for others, and then a sum of doubles is none."""
    total, vector, numbers = library.N_VL1Norm_Serial, library.N_VMake_Serial, np.array([1.0, 2.0, 4.0, 0.0, 0.0, 0.0])
    total.restype, total.argtypes = ctypes.c_double, [ctypes.c_void_p]
    vector.restype, vector.argtypes = ctypes.c_void_p, [ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
    context = ctypes.c_void_p()
    library.SUNContext_Create(0, ctypes.byref(context))
    pointer = vector(3, numbers.ctypes.data, context)
    total_size = total(pointer)
    library.N_VDestroy(ctypes.c_void_p(pointer))
    library.SUNContext_Free(ctypes.byref(context))
    return total_size == 7.0


kernel: Any = None
"""Stands for the kernel in `_velocity`; each copy of that function has its own."""


def direct(kernel: Callable[[np.ndarray, np.ndarray, np.ndarray], float], size: int, constants: np.ndarray) -> Compiled:
    """The field of `kernel(theta, out, constants)`, compiled for solvers; the kernel writes the velocity and returns the loss.

    `size` is that of theta; `constants` are all the kernel reads besides, and its work space. Each field copies them.
    """
    table = np.concatenate([[size, constants.size], constants, np.full(3, np.nan)])
    room = table[2:-3]

    def flat(vector: np.ndarray, out: np.ndarray) -> float:
        return kernel(vector if vector.flags.writeable else vector.copy(), out, room)  # one kind of argument: compiled once

    return Compiled(flat, lambda: _for_sundials(kernel).address, table)


@cache
def _for_sundials(kernel: Any) -> Any:
    """`_velocity` of one kernel: compiled, or read from the cache, at the first call, and kept.

    The kernel is a global of its copy of the function: Numba would not find a closure in its cache again.
    """
    if sundials() is None:
        raise RuntimeError("SUNDIALS cannot be called directly here, so nothing can call this")
    name = f"{kernel.__module__}.{kernel.__name__}"
    copy = FunctionType(_velocity.__code__, {**globals(), "kernel": kernel}, "velocity")
    copy.__qualname__ = f"velocity of {name}"
    return cfunc(SIGNATURE)(copy)


def _velocity(t: Any, y: Any, out: Any, constants: Any) -> int:
    size, room = int(constants[0]), int(constants[1])
    theta, velocity, table = carray(entries(y), size), carray(entries(out), size), carray(constants, room + 5)
    table[room + 2] = kernel(theta, velocity, table[2 : room + 2])
    if np.isfinite(square(velocity)):
        return 0
    table[room + 3], table[room + 4] = t, np.sqrt(square(theta))
    return -1
