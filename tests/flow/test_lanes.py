"""Sixteen numbers side by side, and products made of them, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagescope.flow.kernels import njit
from stagescope.flow.lanes_kernel import (
    LANES,
    add_product,
    exponential,
    larger,
    largest,
    load,
    load_as,
    multiply_add,
    padded,
    plus,
    prefetch,
    reaching,
    spread,
    spread_from,
    store,
    times,
    total,
)


@njit(cache=False)
def _all(x, y, out):
    a, b = load(x, 3), load(y, 1)
    store(out, 0, multiply_add(a, spread_from(y, 2), b))
    store(out, LANES, plus(larger(a, b), spread(out.dtype.type(2))))
    return total(a), largest(plus(a, b))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_lanes(kind):
    draw = np.random.default_rng(0)
    x, y, out = draw.normal(size=(4, 5)).astype(kind), draw.normal(size=20).astype(kind), np.zeros(2 * LANES + 1, kind)
    sums = _all(x, y, out)
    a, b, close = x.ravel()[3:19], y[1:17], {"rtol": 4 * np.finfo(kind).eps}
    np.testing.assert_allclose(out[:LANES], a * y[2] + b, **close)
    np.testing.assert_allclose(out[LANES:-1], np.maximum(a, b) + 2, **close)
    np.testing.assert_allclose(sums, (a.sum(), (a + b).max()), rtol=20 * np.finfo(kind).eps)
    assert out[-1] == 0


@njit(cache=False)
def _reached(numbers, out):
    prefetch(numbers, 2)
    store(out, 1, reaching(numbers, 2, 40000, out.dtype.type(1.5)))


def test_numbers_that_reach_a_threshold():
    numbers, out = np.random.default_rng(0).integers(2**16, size=20, dtype=np.uint16), np.zeros(18, np.float32)
    numbers[3:5] = 40000, 39999
    _reached(numbers, out)
    np.testing.assert_array_equal(out[1:-1], np.where(numbers[2:18] >= 40000, 1.5, 0))


@njit(cache=False)
def _powers(counts, x, out):
    store(out, 0, times(load_as(counts, 2, out.dtype.type(0)), exponential(load(x, 1))))


def test_exponentials_of_lanes_times_counts():
    draw, out = np.random.default_rng(0), np.zeros(LANES + 1, np.float32)
    counts, x = draw.integers(9, size=LANES + 2, dtype=np.int32), np.linspace(-87, 87, LANES + 1).astype(np.float32)
    _powers(counts, x, out)
    np.testing.assert_allclose(out[:-1], counts[2:] * np.exp(x[1:].astype(float)), rtol=4e-7)
    assert out[-1] == 0


def test_padded():
    assert [padded(width) for width in (1, 16, 17, 32)] == [16, 16, 32, 32]


@settings(max_examples=20)
@given(seed=st.integers(0, 99), rows=st.integers(1, 9), lanes=st.integers(1, 3), outer=st.integers(0, 3), inner=st.integers(0, 5))
def test_products(seed, rows, lanes, outer, inner):
    draw, columns = np.random.default_rng(seed), lanes * LANES
    a, b, c = (
        draw.normal(size=(outer, rows, inner)),
        draw.normal(size=(outer * inner + 1, columns)),
        draw.normal(size=(rows, columns)),
    )
    expected = np.einsum("oik,okc->ic", a, b[1:].reshape(outer, inner, columns))
    sizes, place = (rows, columns, outer, inner), np.uint64
    left = a, place(0), place(inner), place(rows * inner), place(1)
    for fresh in (False, True):
        out = c.copy()
        add_product(sizes, left, (b, place(columns), place(columns)), (out, place(0), place(columns)), fresh)
        np.testing.assert_allclose(out, expected + (0 if fresh else c), atol=1e-12)
