"""How far a model is from named strategies."""

import numpy as np
import pytest

from stagescope.core.errors import InputError
from stagescope.processes.strategies import Strategies


def laws(seed, shape=(6, 4, 3)):
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), size=shape[:-1])


def test_a_model_that_is_a_strategy_has_no_distance_from_it():
    first, second = laws(0), laws(1)
    found = Strategies({"first": first, "second": second})
    assert found.divergences(np.log(first))[0] == pytest.approx(0, abs=1e-14)
    assert found.nearest(np.log(second)) == (1, True)
    assert found.names == ("first", "second")


def test_it_is_the_mean_of_the_divergences_written_out():
    p, q = laws(0), laws(1)
    expected = np.mean(np.sum(p * np.log(p / q), axis=-1))
    assert Strategies({"p": p}).divergences(np.log(q))[0] == pytest.approx(expected, rel=1e-12)
    weights = np.full((6, 4), 1 / 24)
    assert Strategies({"p": p}, weights).divergences(np.log(q))[0] == pytest.approx(expected, rel=1e-12)


def test_an_impossible_token_counts_nothing():
    p = np.zeros((2, 1, 2))
    p[..., 0] = 1.0
    assert Strategies({"sure": p}).divergences(np.log(np.full((2, 1, 2), 0.5)))[0] == pytest.approx(np.log(2))


def test_two_strategies_that_a_sample_cannot_tell_apart():
    p = laws(0)
    q = p + 0.01 * (laws(1) - p)
    assert Strategies({"p": p, "q": q}).nearest(np.log((p + q) / 2))[1] is False


def test_laws_of_different_shapes_are_refused():
    with pytest.raises(InputError, match="shapes"):
        Strategies({"p": laws(0), "q": laws(0, (5, 4, 3))})
