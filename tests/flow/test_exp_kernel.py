"""The kernels' own exponential against NumPy's."""

import numpy as np
import pytest

from stagescope.flow.exp_kernel import exp_any, exp_double, exp_number, exp_single
from stagescope.flow.kernels import njit


@pytest.mark.parametrize("size", [1, 7, 999])
def test_double(size):
    x = np.random.default_rng(0).uniform(-700, 700, size)
    found = x.copy()
    exp_double(found)
    np.testing.assert_allclose(found, np.exp(x), rtol=1e-14)


@pytest.mark.parametrize("size", [1, 7, 999])
def test_single(size):
    x = np.random.default_rng(0).uniform(-87, 87, size).astype(np.float32)
    found = x.copy()
    exp_single(found)
    np.testing.assert_allclose(found, np.exp(x.astype(float)), rtol=3e-7)


def test_zero_is_one_to_the_last_bit():
    double, single = np.zeros(5), np.zeros(5, np.float32)
    exp_double(double)
    exp_single(single)
    assert (double == 1).all()
    assert (single == 1).all()


def test_any_is_the_one_of_its_precision():
    x = np.linspace(-80, 80, 33)
    double, single = (x.copy(), x.copy()), (x.astype(np.float32), x.astype(np.float32))
    exp_any(double[0])
    exp_double(double[1])
    exp_any(single[0])
    exp_single(single[1])
    np.testing.assert_array_equal(*double)
    np.testing.assert_array_equal(*single)


@njit(cache=False)
def _each(x):
    for j in range(x.size):
        x[j] = exp_number(x[j])


def test_number_by_number():
    x = np.random.default_rng(0).uniform(-87, 87, 999).astype(np.float32)
    single, double, nothing = x.copy(), x.astype(float), np.array([0.0, np.nan], np.float32)
    for found in (single, double, nothing):
        _each(found)
    np.testing.assert_allclose(single, np.exp(x.astype(float)), rtol=2e-7)
    np.testing.assert_allclose(double, np.exp(x.astype(float)), rtol=1e-15)
    assert nothing[0] == 1
    assert np.isnan(nothing[1])
