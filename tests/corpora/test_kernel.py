"""Pairs of tokens at a distance, and sums over sliding windows."""

import numpy as np
import pytest

from stagescope.corpora.kernel import lagged_pairs, window_pairs


@pytest.mark.parametrize("lag", [0, 1, 7, 299, -1, -3])
def test_lagged_pairs_are_those_a_loop_counts(lag):
    stream = np.random.default_rng(0).integers(0, 6, 300).astype(np.uint16)
    expected = np.zeros((6, 6), dtype=int)
    for i, j in zip(stream, np.roll(stream, -lag), strict=True):
        expected[i, j] += 1
    assert np.array_equal(lagged_pairs(stream, lag, 6), expected)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_window_pairs_are_those_a_loop_counts(length):
    stream = np.random.default_rng(0).integers(0, 6, 300).astype(np.uint16)
    expected = np.zeros((6, 6), dtype=int)
    for t in range(length, len(stream)):
        for token in stream[t - length : t]:
            expected[token, stream[t]] += 1
    assert np.array_equal(window_pairs(stream, length, 6), expected)
