"""Numba kernel of a text: what a sliding window holds before each token."""

import numpy as np
from numba import njit


@njit(cache=True)
def window_pairs(stream: np.ndarray, length: int, size: int) -> np.ndarray:
    """Sum over all windows of counts (d) x next token (d): the window slides, so each costs one row, not `length` pairs."""
    counts = np.zeros(size, dtype=np.int64)
    pairs = np.zeros((size, size), dtype=np.int64)
    for t in range(stream.size - 1):
        counts[stream[t]] += 1
        if t >= length:
            counts[stream[t - length]] -= 1
        if t >= length - 1:
            row = pairs[stream[t + 1]]
            for j in range(size):
                row[j] += counts[j]
    return pairs.T
