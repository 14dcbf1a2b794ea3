"""Kernels as machine code for SUNDIALS: what they are called with, and the library that calls them."""

import ctypes
from functools import cache

from llvmlite import binding
from numba import types

SIGNATURE = types.int32(types.float64, types.voidptr, types.voidptr, types.CPointer(types.float64))
"""int f(double t, N_Vector y, N_Vector velocity, double *held)."""
entries = types.ExternalFunction("N_VGetArrayPointer", types.CPointer(types.float64)(types.voidptr))
"""The numbers of an N_Vector; `sundials` says where this function is."""
VERSION = "7."


@cache
def sundials() -> ctypes.CDLL | None:
    """The library scikit-sundae is linked with, or None if it is another one than expected: then Python stays in between.

    Looking a name up in an extension module finds those of its libraries too, wherever the installation has put them.
    """
    try:
        import sksundae._cy_cvode as extension

        config = extension.config
        if not config["SUNDIALS_VERSION"].startswith(VERSION) or config["SUNDIALS_FLOAT_TYPE"] != "double":
            return None
        library = ctypes.CDLL(extension.__file__)
        found = ctypes.cast(library.N_VGetArrayPointer, ctypes.c_void_p).value
    except (ImportError, AttributeError, KeyError, OSError):
        return None
    binding.add_symbol(entries.symbol, found)
    return library
