"""Kernels as machine code for SUNDIALS: what they are called with, and the library that calls them."""

import ctypes
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from llvmlite import binding
from numba import types

SIGNATURE = types.int32(types.float64, types.voidptr, types.voidptr, types.CPointer(types.float64))
"""int f(double t, N_Vector y, N_Vector velocity, double *held)."""
entries = types.ExternalFunction("N_VGetArrayPointer", types.CPointer(types.float64)(types.voidptr))
"""The numbers of an N_Vector; `sundials` says where this function is."""
VERSION = 7


@cache
def sundials() -> ctypes.CDLL | None:
    """The library scikit-sundae is linked with, or None if it is another one than expected: then Python stays in between.

    Looking a name up in an extension module finds those of its libraries too, wherever the installation has put them. The
    module is not imported, because it imports SciPy, which takes longer than a small run.
    """
    try:
        library = ctypes.CDLL(str(_extension()))
        if not (_version(library) == VERSION and _takes_doubles(library)):
            return None
        provide(library, entries.symbol)
    except (ImportError, AttributeError, OSError):
        return None
    return library


def provide(library: ctypes.CDLL, name: str) -> None:
    """Let compiled code find a function of the library by its name."""
    binding.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)


def _extension() -> Path:
    """The file of scikit-sundae's module for CVODE."""
    package = find_spec("sksundae")
    places = (package and package.submodule_search_locations) or ()
    for place in (Path(folder, f"_cy_cvode{suffix}") for folder in places for suffix in EXTENSION_SUFFIXES):
        if place.is_file():
            return place
    raise ImportError("scikit-sundae has no compiled module for CVODE")


def _version(library: ctypes.CDLL) -> int:
    """The first number of the library's version; 0 where it does not answer."""
    major, minor, patch = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    label = ctypes.create_string_buffer(32)
    numbers = (ctypes.byref(number) for number in (major, minor, patch))
    return 0 if library.SUNDIALSGetVersionNumber(*numbers, label, len(label)) else major.value


def _takes_doubles(library: ctypes.CDLL) -> bool:
    """Whether the library's numbers are doubles: it may be built for others, and then a sum of doubles is none."""
    total, vector, numbers = library.N_VL1Norm_Serial, library.N_VMake_Serial, np.array([1.0, 2.0, 4.0, 0.0, 0.0, 0.0])
    total.restype, total.argtypes = ctypes.c_double, [ctypes.c_void_p]
    vector.restype, vector.argtypes = ctypes.c_void_p, [ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
    context = ctypes.c_void_p()
    library.SUNContext_Create(0, ctypes.byref(context))
    made = vector(3, numbers.ctypes.data, context)
    found = total(made)
    library.N_VDestroy(ctypes.c_void_p(made))
    library.SUNContext_Free(ctypes.byref(context))
    return found == 7.0
