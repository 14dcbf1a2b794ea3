"""Random numbers of dropout against the same hash in whole numbers of Python."""

import numpy as np
import pytest

from stagescope.papers.incremental.transformer_rows_kernel import draw_numbers


def expected(key, row, width):
    """SplitMix64 of (key, row), then a mixer of 32 bits for each step: low halves for the first half of the width."""
    z = (key + (row + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    z ^= z >> 31
    words = []
    for j in range((width + 1) // 2):
        w = (z + j * 0x9E3779B9) % 2**32
        w = (w ^ w >> 16) * 0x21F0AAAD % 2**32
        w = (w ^ w >> 15 ^ z >> 32) * 0xD35A2D97 % 2**32
        words.append(w ^ w >> 15)
    return [*(w % 2**16 for w in words), *(w >> 16 for w in words)][:width]


@pytest.mark.parametrize("width", [1, 2, 17, 48, 255])
def test_numbers_are_the_hash_of_key_and_row(width):
    numbers = np.zeros((3, width + 5), np.uint16)
    draw_numbers(np.uint64(2**64 - 3), 40, width, numbers)
    assert numbers[:, :width].tolist() == [expected(2**64 - 3, row, width) for row in (40, 41, 42)]
    assert not numbers[:, width:].any()
