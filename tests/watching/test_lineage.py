"""Kinship and paths of samples: exact cases, and properties on random walks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.watching.lineage import (
    detours,
    distances,
    families,
    fit,
    kinship,
    mean_distances,
    median_detours,
    misplaced,
)


def walk(seed: int, count: int = 8, entries: int = 1024, move: float = 0.1) -> np.ndarray:
    """A random walk from a random start."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=entries) + np.cumsum(move * rng.normal(size=(count, entries)), axis=0)


def test_kinship_of_a_change_is_the_ratio_of_deviations():
    rng = np.random.default_rng(0)
    start, change = rng.normal(size=(2, 100_000))
    kin = kinship([np.stack([start, start + 3 * change])])
    assert kin.correlation[0, 1] == pytest.approx(1 / np.sqrt(10), abs=0.01)
    assert kin.expected[0, 1] == pytest.approx(1 / np.sqrt(10), abs=0.01)
    assert kin.related[0, 1]


def test_a_constant_tensor_says_nothing():
    rows = np.concatenate([np.zeros((1, 512)), walk(1, 3, 512)])
    kin = kinship([rows])
    assert not kin.judged[0].any()
    assert families(kin) == [[0, 1, 2, 3]]


def test_few_entries_cannot_be_judged():
    assert families(kinship([np.random.default_rng(0).normal(size=(4, 100))])) == [[0, 1, 2, 3]]


@given(st.integers(0, 2**16), st.integers(1, 7))
def test_two_starts_are_two_families(seed, since):
    rows = np.concatenate([walk(seed, since), walk(seed + 1, 8 - since)])
    expected = [list(range(since)), list(range(since, 8))]
    assert families(kinship([rows])) == sorted(expected, key=lambda each: (-len(each), each))


def test_a_start_that_grew_beyond_all_measure_cannot_be_judged():
    """The first rows are tiny and of another start than the last: nothing of them would be left in any case."""
    rows = np.concatenate([1e-3 * walk(1, 3), 100 * walk(2, 3)])
    assert families(kinship([rows])) == [[0, 1, 2, 3, 4, 5]]


@given(st.integers(0, 2**16))
def test_distances_are_those_of_the_rows(seed):
    rows = 1e3 + 1e-2 * walk(seed, 5, 64)
    expected = np.linalg.norm(rows[:, None] - rows[None], axis=-1)
    np.testing.assert_allclose(distances(rows), expected, rtol=1e-6, atol=1e-8)


def test_detours_in_closed_form():
    line = np.arange(5.0)[:, None]
    np.testing.assert_allclose(detours(distances(line)), 1.0)
    corner = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(detours(distances(corner)), np.sqrt(2))
    there_and_back = np.array([[0.0], [1.0], [0.0]])
    assert np.isnan(detours(distances(there_and_back))).all()
    assert median_detours([there_and_back]) == 1.0


def test_the_detour_of_a_random_walk_is_the_root_of_two():
    np.testing.assert_allclose(median_detours([walk(n, 12, 4096) for n in range(5)]), np.sqrt(2), rtol=0.05)


def test_what_does_not_fit_costs_more():
    distance = distances(np.array([[0.0], [1.0], [9.0], [3.0], [4.0]]))
    assert fit(distance, 2) == 8 + 6 - 2
    assert fit(distance, 1) == 1 + 8 - 9
    assert fit(distance, 0) == 1
    assert fit(distance, 1, without=[2]) == 1 + 2 - 3


@given(st.integers(0, 2**16))
def test_a_random_walk_is_in_order(seed):
    assert misplaced(mean_distances([walk(seed)])) == []


@given(st.integers(0, 2**16), st.permutations(range(1, 7)))
def test_two_that_are_exchanged_are_found(seed, inner):
    first, second = sorted(inner[:2])
    order = list(range(8))
    order[first], order[second] = second, first
    found = misplaced(mean_distances([walk(seed)[order]]))
    assert [each.place for each in found] == [first, second]
    assert all(each.shorter > 0.1 for each in found)


@given(st.integers(0, 2**16), st.integers(1, 4))
def test_one_that_was_put_elsewhere_is_found(seed, place):
    order = list(range(8))
    order.insert(place + 2, order.pop(place))
    found = misplaced(mean_distances([walk(seed)[order]]))
    assert place + 2 in [each.place for each in found]


def test_noise_around_a_point_has_no_order():
    for seed in range(40):
        rows = np.random.default_rng(seed).normal(size=(10, 64))
        assert misplaced(mean_distances([rows])) == []


def test_three_are_too_few_for_an_order():
    assert misplaced(distances(np.array([[0.0], [2.0], [1.0]]))) == []
