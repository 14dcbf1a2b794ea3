"""The kernels' own exponential against NumPy's."""

import numpy as np
import pytest

from stagescope.fields.exp_kernel import exp_double, exp_single


@pytest.mark.parametrize("size", [1, 7, 999])
def test_double(size):
    x = np.random.default_rng(0).uniform(-700, 700, size)
    found = x.copy()
    exp_double(found, np.empty(size, np.int64))
    np.testing.assert_allclose(found, np.exp(x), rtol=1e-14)


@pytest.mark.parametrize("size", [1, 7, 999])
def test_single(size):
    x = np.random.default_rng(0).uniform(-87, 87, size).astype(np.float32)
    found = x.copy()
    exp_single(found, np.empty(size, np.float32))
    np.testing.assert_allclose(found, np.exp(x.astype(float)), rtol=3e-7)


def test_zero_is_one_to_the_last_bit():
    double, single = np.zeros(5), np.zeros(5, np.float32)
    exp_double(double, np.empty(5, np.int64))
    exp_single(single, np.empty(5, np.float32))
    assert (double == 1).all()
    assert (single == 1).all()
