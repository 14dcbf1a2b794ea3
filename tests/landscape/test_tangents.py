"""Small deviations with their logarithms: nothing is lost, however small they are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stagescope.landscape.general_walk import Eigen, Tangents


def of(*pairs):
    return Tangents(np.array([log for log, _ in pairs]), np.array([unit for _, unit in pairs], dtype=float))


def test_a_deviation_of_1e_200_has_its_size():
    found = Tangents.of(1e-200 * np.array([3.0, 4.0]))
    assert np.isclose(found.top, np.log(5) - 200 * np.log(10))
    assert np.allclose(found.units, [[0.6, 0.8]])
    assert Tangents.of(np.zeros(3)).logs.size == 0


def test_growth_beyond_the_range_of_numbers():
    law = Eigen.of(np.diag([2.0, -1.0]))
    found = of((-1000.0, [0.6, 0.8])).carried(law, 1000.0)
    assert np.isclose(found.top, 1000 + np.log(0.6))
    assert np.allclose(np.abs(found.units), [[1, 0]])


@given(st.integers(0, 10_000), st.floats(0.01, 3))
def test_two_steps_are_one(seed, h):
    rng = np.random.default_rng(seed)
    matrix, vector = rng.normal(size=(4, 4)), rng.normal(size=4)
    law = Eigen.of(matrix + matrix.T)
    once, twice = Tangents.of(vector).carried(law, 2 * h), Tangents.of(vector).carried(law, h).carried(law, h)
    assert np.allclose(once.logs, twice.logs)
    assert np.allclose(once.total, twice.total, rtol=1e-6, atol=1e-9 * np.linalg.norm(once.total))


def test_close_parts_are_summed_and_small_ones_kept_apart():
    merged = of((0.0, [1, 0, 0]), (-1.0, [0, 1, 0]), (-90.0, [0, 0, 1])).within(np.eye(3))
    assert len(merged.logs) == 2
    assert np.allclose(np.exp(merged.logs[0]) * merged.units[0], [1, np.exp(-1), 0])
    assert np.isclose(merged.logs[1], -90)


def test_couplings_that_are_rounding_are_zeros_of_symmetry():
    assert of((0.0, [1, 1e-12])).within(np.array([[0.0], [1.0]])).logs.size == 0


def test_equal_rates_are_one_cluster():
    assert [len(each) for each in Eigen.of(np.diag([1.0, 1.0 + 1e-9, 3.0, -1.0, 0.0])).clusters(1e-6)] == [2, 1]
