"""Linearisation: exact on linear laws, known second order, escape times, and a gradient flow near a saddle."""

import numpy as np
import pytest
from scipy.linalg import expm

import stagescope as ss
from tests.landscape.laws import Forced, Linear, product_loss


def test_prediction_is_the_matrix_exponential():
    matrix = np.array([[0.5, -2.0, 0.0], [2.0, 0.5, 0.3], [0.0, 0.0, -1.0]])
    local = ss.linearise(Linear(matrix), {"x": np.zeros(3)})
    start = np.array([0.1, -0.2, 0.4])
    np.testing.assert_allclose(local.predict({"x": start}, 1.7)["x"], expm(1.7 * matrix) @ start, atol=1e-12)
    growing = local.unstable({"x": start}, 1.7)
    rest = expm(1.7 * matrix) @ start - growing
    assert np.abs(matrix @ rest + rest).max() < 1e-10, "what does not grow decays at rate 1"


def test_escape_time_is_the_logarithm():
    local = ss.linearise(Linear(np.diag([0.5, -1.0])), {"x": np.zeros(2)})
    assert local.escape_time({"x": np.array([1e-3, 0.7])}, 0.1) == pytest.approx(np.log(100) / 0.5)
    assert local.escape_time({"x": np.array([0.2, 0.0])}, 0.1) == 0.0
    assert local.escape_time({"x": np.array([0.0, 0.3])}, 0.1) is None
    with pytest.raises(ss.InputError, match="size is 0"):
        local.escape_time({"x": np.ones(2)}, 0)


def test_second_order_of_a_forced_mode():
    rate, decay, force, x = 0.7, 0.4, 1.3, 0.02
    local = ss.linearise(Forced(rate, decay, force), {"x": np.zeros(1), "y": np.zeros(1)})
    w = local.second_order({"x": np.array([x]), "y": np.zeros(1)})
    assert w["y"][0] == pytest.approx(force * x**2 / (2 * rate + decay))
    assert w["x"][0] == pytest.approx(0.0, abs=1e-15)
    with pytest.raises(ss.InputError, match="nothing grows"):
        local.second_order({"x": np.zeros(1), "y": np.ones(1)})


def test_a_flow_near_a_saddle_follows_its_linearisation():
    loss, zero = product_loss(), {name: np.zeros((3, 3)) for name in ("A", "B")}
    rng = np.random.default_rng(3)
    start = {name: 1e-5 * rng.normal(size=(3, 3)) for name in zero}
    run = ss.evolve(loss, start, ss.GradientFlow(), until=1.0, record=ss.Uniform(frames=4))
    foreseen = ss.linearise(loss, zero).predict(start, 1.0)
    for name in zero:
        np.testing.assert_allclose(run.params[name][-1], foreseen[name], atol=1e-9)


def test_rates_of_blocks_are_kept():
    local = ss.linearise(product_loss(), {"A": np.zeros((3, 3)), "B": np.zeros((3, 3))}, rates={"A": 4.0})
    assert local.rates[0] == pytest.approx(4.0), "sqrt(4 x 1) times the largest value 2"


def test_too_large():
    with pytest.raises(ss.InputError, match="limit is 5000"):
        ss.linearise(ss.JaxObjective(lambda p: (p["x"] ** 2).sum()), {"x": np.zeros(5001)})
