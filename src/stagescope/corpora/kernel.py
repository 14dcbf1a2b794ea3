"""Numba kernels of a text: how often tokens follow each other, and what a sliding window holds before each token."""

import numpy as np

from stagescope.flow.kernels import njit


@njit(cache=True)
def lagged_pairs(stream: np.ndarray, lag: int, size: int) -> np.ndarray:
    """How often j is `lag` places after i (d, d); the end of the text is joined to its beginning, a lag may be negative."""
    pairs = np.zeros((size, size), dtype=np.int64)
    partner = lag % stream.size
    for t in range(stream.size):
        pairs[stream[t], stream[partner]] += 1
        partner += 1
        if partner == stream.size:
            partner = 0
    return pairs


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
