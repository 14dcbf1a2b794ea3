"""Products of rows with matrices in stripes, and of active units alone, against those of NumPy."""

import numpy as np
import pytest

from stagescope.flow.lanes_kernel import LANES
from stagescope.papers.incremental.transformer_layers_kernel import (
    STRIPE,
    active_room,
    add_outer,
    add_outer_active,
    find_active,
    multiply,
    multiply_active,
)
from stagescope.papers.incremental.transformer_parts import Room, from_stripes, in_stripes

SIZES = [(1, 1, 16), (3, 5, 64), (7, 64, 80), (60, 50, 256)]
"""Rows, units, columns: fewer than a group of rows, one stripe, a stripe and its rest, those of the preset."""


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def stripes(matrix, stripe):
    return in_stripes(matrix, stripe, "b", Room("float32"))


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("stripe", [LANES, STRIPE])
@pytest.mark.parametrize("columns", [1, 16, 64, 80, 250])
def test_stripes_and_back(columns, stripe):
    matrix = drawn(5, columns)
    back = from_stripes(stripes(matrix, stripe), 5, stripe)
    np.testing.assert_array_equal(back[:, :columns], matrix)
    assert not back[:, columns:].any()


@pytest.mark.parametrize(("rows", "units", "columns"), SIZES)
def test_products_of_all_entries(rows, units, columns):
    a, b, out = drawn(rows, columns), drawn(columns, units, seed=1), np.empty((rows, units), np.float32)
    multiply(a, stripes(b, LANES), out)  # into any number of columns
    close(out, a @ b)
    before = drawn(units, columns, seed=2)
    sums = stripes(before, LANES)
    add_outer(out, a, sums)
    close(from_stripes(sums, units, LANES), before + out.T @ a)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("rows", "units", "columns"), SIZES)
def test_products_of_active_units(rows, units, columns, share):
    z, d = np.abs(drawn(rows, units)), drawn(rows, units, seed=1)
    z[np.random.default_rng(2).uniform(size=z.shape) >= share] = 0
    b, wide, out = drawn(units, columns, seed=3), drawn(rows, columns, seed=4), np.empty((rows, columns), np.float32)
    active = active_room(60, units)
    find_active(z, active)
    multiply_active(d, active, stripes(b, STRIPE), out)
    close(out, np.where(z > 0, d, 0) @ b)
    before = drawn(units, columns, seed=5)
    sums = stripes(before, STRIPE)
    add_outer_active(d, active, wide, sums)
    close(from_stripes(sums, units, STRIPE), before + np.where(z > 0, d, 0).T @ wide)


def test_a_unit_that_is_no_number_is_not_left_out():
    z, out = np.zeros((2, 3), np.float32), np.empty((2, 16), np.float32)
    z[1, 2] = np.nan
    active = active_room(2, 3)
    find_active(z, active)
    multiply_active(z, active, stripes(drawn(3, 16), STRIPE), out)
    assert not out[0].any()
    assert np.isnan(out[1]).all()
