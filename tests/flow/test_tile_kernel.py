"""Tiles of a product of matrices against NumPy's."""

import numpy as np
import pytest

from stagescope.flow.kernels import njit
from stagescope.flow.tile_kernel import COLUMNS, ROWS, add_tile


@njit(cache=True)
def _product(a, down, across, b, inner, out, stride, fresh):
    for j in range(0, stride, COLUMNS):
        add_tile(out, j, stride, fresh, a, 0, down, across, b, j, inner)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("fresh", [False, True])
def test_product(turned, fresh):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(ROWS, 5)), rng.normal(size=(5, 3 * COLUMNS))
    out = np.full((ROWS, 3 * COLUMNS), np.nan) if fresh else rng.normal(size=(ROWS, 3 * COLUMNS))
    expected = a @ b + (0.0 if fresh else out)
    flat, down, across = (a.T.ravel(), 1, ROWS) if turned else (a.ravel(), 5, 1)
    _product(flat, down, across, b.ravel(), 5, out.reshape(-1), out.shape[1], fresh)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-13)
