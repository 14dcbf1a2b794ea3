"""Graded matrices: exact growth, and patterns that differ by hundreds of decades."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from stagescope.landscape.graded import Graded


def law(rng, rows, columns):
    return 0.3 * rng.normal(size=(rows, columns))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 4), st.integers(1, 5), st.integers(1, 6), st.floats(0.0, 12.0))
def test_growth_is_the_exponential(seed, rows, columns, width, h):
    rng = np.random.default_rng(seed)
    b, x = law(rng, rows, columns), rng.normal(size=(rows + columns, width))
    n = np.block([[np.zeros((rows, rows)), b], [b.T, np.zeros((columns, columns))]])
    found = Graded.of(x).grown(b, h, float(np.linalg.norm(b)))
    assert np.allclose(found.matrix, expm(h * n) @ x, rtol=0, atol=1e-11 * np.linalg.norm(expm(h * n) @ x))
    assert np.allclose(found.left @ found.left.T, np.eye(len(found.logs)), atol=1e-11)
    assert np.all(np.diff(found.logs) <= 0)


def test_each_pattern_keeps_its_own_rate_over_thousands_of_e_folds():
    rng = np.random.default_rng(0)
    b = law(rng, 3, 4)
    rates = np.linalg.svd(b, compute_uv=False)
    found = Graded.of(1e-60 * rng.normal(size=(7, 7))).grown(b, 5000.0, float(np.linalg.norm(b)))
    expected = np.sort([*rates, 0.0, *-rates])[::-1]
    assert np.allclose(found.logs / 5000, expected, atol=0.04)
    assert found.top > 1000


def test_a_small_row_beside_a_large_one_is_kept():
    found = Graded.of(np.array([[1.0, 1.0], [1e-100, -1e-100]]))
    assert np.allclose(found.logs, np.log([2**0.5, 2**0.5 * 1e-100]))
    x, column, rest = found.split()
    assert np.allclose(np.abs(x), 0.5**0.5)
    assert np.allclose(np.abs(column), [2**0.5, 0.0])
    assert np.allclose(rest.logs, np.log(2**0.5 * 1e-100))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000))
def test_a_split_loses_nothing(seed):
    matrix = np.random.default_rng(seed).normal(size=(5, 4))
    x, column, rest = Graded.of(matrix).split()
    assert np.allclose(np.outer(column, x) + rest.matrix, matrix, atol=1e-12)
    assert np.allclose(rest.matrix @ x, 0, atol=1e-12)


def test_a_matrix_of_zeros_has_no_pattern():
    found = Graded.of(np.zeros((3, 2)))
    assert found.top == -np.inf
    assert found.grown(np.ones((1, 2)), 1.0, 2.0) is found
