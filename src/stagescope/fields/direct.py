"""A Numba kernel as the function that SUNDIALS calls, with no Python in between."""

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]

from stagescope.fields.compiled import SIGNATURE, entries, sundials
from stagescope.fields.field import Compiled
from stagescope.fields.flat_kernel import square
from stagescope.kernels import cfunc

kernel: Any = None
"""Stands for the kernel in `_velocity`; each copy of that function has its own."""


def direct(kernel: Callable[[np.ndarray, np.ndarray, np.ndarray], float], size: int, held: np.ndarray) -> Compiled:
    """The field of `kernel(theta, out, held)`, compiled for solvers; the kernel writes the velocity and returns the loss.

    `size` is that of theta; `held` is all the kernel reads besides, and its work space. It is copied: each field has its own.
    """
    table = np.concatenate([[size, held.size], held, np.full(3, np.nan)])
    own = table[2:-3]

    def flat(vector: np.ndarray, out: np.ndarray) -> float:
        return kernel(vector if vector.flags.writeable else vector.copy(), out, own)  # one kind of argument: compiled once

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


def _velocity(t: Any, y: Any, out: Any, held: Any) -> int:
    size, room = int(held[0]), int(held[1])
    theta, found, table = carray(entries(y), size), carray(entries(out), size), carray(held, room + 5)
    table[room + 2] = kernel(theta, found, table[2 : room + 2])
    if np.isfinite(square(found)):
        return 0
    table[room + 3], table[room + 4] = t, np.sqrt(square(theta))
    return -1
