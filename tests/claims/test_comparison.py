"""A verdict needs a difference that exceeds its error; a pattern must be rarer than chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.claims.comparison import agreement, beyond_chance


@pytest.mark.parametrize(
    ("measured", "error", "holds"),
    [(1.02, 0.0, True), (1.02, 0.02, True), (1.02, 0.05, None), (1.2, 0.0, False), (1.2, 0.1, False), (1.2, 0.2, None)],
)
def test_agreement_is_decided_only_where_the_error_leaves_no_doubt(measured, error, holds):
    assert agreement(1.0, measured, 0.05, "because", measured_error=error).holds is holds


@given(st.floats(0, 3), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_error_never_decides_more(measured, first, second, tolerance):
    low, high = sorted((first, second))
    precise, coarse = (agreement(1.0, measured, tolerance, "because", measured_error=error).holds for error in (low, high))
    assert coarse is None or coarse is precise


def test_both_errors_count():
    one = agreement(1.0, 1.02, 0.05, "because", predicted_error=0.025, measured_error=0.025)
    assert one.holds is None
    assert (one.predicted_error, one.measured_error) == (0.025, 0.025)


def test_chance_confirms_one_pattern_in_a_hundred():
    random = np.random.default_rng(0)
    values = random.standard_normal((2000, 200))
    confirmed = np.mean([beyond_chance(row[0], row[1:], "because").holds is True for row in values])
    assert 0.002 < confirmed < 0.02


def test_a_pattern_far_above_chance_is_confirmed_and_one_below_its_median_is_violated():
    chance = np.linspace(-1, 1, 199)
    assert beyond_chance(3.0, chance, "because").holds is True
    assert beyond_chance(-0.1, chance, "because").holds is False
    assert beyond_chance(0.5, chance, "because").holds is None


def test_a_pattern_needs_its_least_size_too():
    chance = np.linspace(-1, 1, 199)
    assert beyond_chance(1.5, chance, "because", least=2.0).holds is False
    assert beyond_chance(2.1, chance, "because", least=2.0, measured_error=0.2).holds is None
    assert beyond_chance(1.9, chance, "because", least=2.0, measured_error=0.2).holds is None
    assert beyond_chance(1.7, chance, "because", least=2.0, measured_error=0.2).holds is False
    assert beyond_chance(2.3, chance, "because", least=2.0, measured_error=0.2).holds is True


def test_few_permutations_confirm_nothing():
    assert beyond_chance(5.0, np.zeros(50), "because").holds is None
