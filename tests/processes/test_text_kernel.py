"""Sums over sliding windows."""

import numpy as np
import pytest

from stagescope.processes.text_kernel import window_pairs


@pytest.mark.parametrize("length", [1, 2, 5])
def test_window_pairs_are_those_a_loop_counts(length):
    stream = np.random.default_rng(0).integers(0, 6, 300).astype(np.uint16)
    expected = np.zeros((6, 6), dtype=int)
    for t in range(length, len(stream)):
        for token in stream[t - length : t]:
            expected[token, stream[t]] += 1
    assert np.array_equal(window_pairs(stream, length, 6), expected)
