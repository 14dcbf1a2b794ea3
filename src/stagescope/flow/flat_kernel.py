"""Pieces of Numba kernels that work on places in a flat array."""

import numpy as np

from stagescope.flow.kernels import njit

FAST = {"contract", "reassoc"}


@njit(cache=True, fastmath=FAST)
def softmax(size, a, p):
    """Of the entries from p on, in place; returns log sum exp."""
    top = -np.inf
    for j in range(size):
        top = max(top, a[p + j])
    total = 0.0
    for j in range(size):
        a[p + j] = np.exp(a[p + j] - top)
        total += a[p + j]
    for j in range(size):
        a[p + j] /= total
    return top + np.log(total)


@njit(cache=True, fastmath=FAST)
def square(a):
    """|a|^2."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * a[i]
    return total
