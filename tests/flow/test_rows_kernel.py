"""Sums of listed rows, in the order of the list and in no other."""

import numpy as np
import pytest

from stagescope.flow.kernels import njit
from stagescope.flow.tile_kernel import BYTES, sum_rows

FIRST, LAST, STRIDE, P, Q = 2, 10, 57, 3, 1


@njit(cache=True)
def _sums(out, table, rows, first, last):
    """One sum begins with what is there, the other does not and takes four rows at a time."""
    sum_rows(out, P, table, Q, STRIDE, rows, first, last, 3, 0, 1)
    sum_rows(out, P + 40, table, Q, STRIDE, rows, first, last, 1, 1, 0)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("last", [LAST, FIRST])
def test_sums_are_those_of_a_loop_and_nothing_else_is_written(kind, last):
    rng = np.random.default_rng(0)
    table, out = rng.normal(size=(9, STRIDE)).astype(kind), rng.normal(size=90).astype(kind)
    rows, lanes = rng.integers(0, 8, size=12).astype(np.uint32), BYTES // kind(0).itemsize
    expected, flat = out.copy(), table.ravel()
    kept, fresh = slice(P, P + 3 * lanes), slice(P + 40, P + 40 + lanes)
    for i in range(FIRST, last):
        expected[kept] += flat[rows[i] * STRIDE + Q :][: 3 * lanes]
    expected[fresh] = 0
    for i in range(FIRST, last, 4):
        a, b, c, d = (flat[rows[i + k] * STRIDE + Q :][:lanes] for k in range(4))
        expected[fresh] += (a + b) + (c + d)
    _sums(out, flat, rows, FIRST, last)
    np.testing.assert_array_equal(out, expected)
