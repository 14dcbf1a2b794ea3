"""Linearisation: exact on linear laws, known second order, escape times, and a gradient flow near a saddle."""

import numpy as np
import pytest
from scipy.linalg import expm

import stagescope as ss
from stagescope.landscape import linearise
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


@pytest.fixture
def large(monkeypatch):
    """Makes every model too large for its Jacobian to be formed."""
    return lambda: monkeypatch.setattr(linearise, "LARGEST_DENSE", 1)


@pytest.mark.parametrize("gradient", [True, False])
def test_products_alone_give_the_same_answers(large, gradient):
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(60, 60)) / 8
    law = Linear(matrix)
    if gradient:
        matrix = matrix + matrix.T
        law = ss.JaxObjective(lambda p, a: -0.5 * p["x"] @ a @ p["x"], data=matrix)
    zero, start = {"x": np.zeros(60)}, {"x": rng.normal(size=60)}

    def answers():
        local = ss.linearise(law, zero)
        ahead = local.predict(start, 2.0)["x"]
        return ahead, local.unstable(start, 3.0), local.rates[:3].real, local.escape_time(start, 1e4)

    whole = answers()
    large()
    for one, other in zip(whole, answers(), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-8)
    with pytest.raises(ss.InputError, match="not formed"):
        _ = ss.linearise(law, zero).jacobian


def test_a_large_model_is_linearised_by_products():
    """6000 parameters, of which one grows; the Jacobian would have 36 million entries."""

    def loss(params):
        x = params["x"]
        return 0.5 * (x**2).sum() - x[0] ** 2 + 0.5 * x[1] * x[0] ** 2

    local = ss.linearise(ss.JaxObjective(loss), {"x": np.zeros(6000)})
    start = np.zeros(6000)
    start[:3] = 1e-3, 0.0, 0.4
    assert local.rates == pytest.approx([1.0])
    assert local.escape_time({"x": start}, 0.1) == pytest.approx(np.log(100))
    ahead = local.predict({"x": start}, 1.5)["x"]
    np.testing.assert_allclose(ahead[:3], [1e-3 * np.exp(1.5), 0.0, 0.4 * np.exp(-1.5)], rtol=1e-10)
    assert local.second_order({"x": start})["x"][1] == pytest.approx(-0.5 * 1e-6 / 3)


def test_a_jacobian_without_a_full_set_of_eigenvectors():
    """Two equal growing rates that share one eigenvector, coupled to one that decays: e^(t/2) (1, t; 0, 1)."""
    matrix = np.array([[0.5, 1.0, 0.3], [0.0, 0.5, 0.7], [0.0, 0.0, -1.0]])
    local = ss.linearise(Linear(matrix), {"x": np.zeros(3)})
    start = np.array([0.1, -0.2, 0.4])
    for t in (0.0, 2.0):
        rest = expm(t * matrix) @ start - local.unstable({"x": start}, t)
        np.testing.assert_allclose(matrix @ rest, -rest, atol=1e-12, err_msg="what does not grow decays at rate 1")


def test_escape_of_slow_modes_among_fast_and_flat_ones():
    """Rates that differ by a million overflow long before the slow one escapes, unless logarithms are taken."""
    local = ss.linearise(Linear(np.diag([1e-3, 0.0, 0.0, -900.0])), {"x": np.zeros(4)})
    assert local.escape_time({"x": np.array([1e-9, 0.5, 0.0, 0.1])}, 1.0) == pytest.approx(np.log(1e9) / 1e-3)
    assert local.escape_time({"x": np.array([0.0, 0.5, 0.1, 0.1])}, 1.0) is None
    both = ss.linearise(Linear(np.diag([5.0, 1e-5])), {"x": np.zeros(2)})
    assert both.escape_time({"x": np.array([0.0, 1e-3])}, 1.0) == pytest.approx(np.log(1e3) / 1e-5)
    assert both.escape_time({"x": np.array([1e-300, 1e-3])}, 1.0) == pytest.approx(np.log(1e300) / 5, rel=1e-6)
    assert np.all(both.unstable({"x": np.array([1.0, 0.0])}, 1e4) == [np.inf, 0.0])
    with pytest.raises(ss.InputError, match="size is inf"):
        local.escape_time({"x": np.ones(4)}, np.inf)


class Quadratic(ss.Field):
    """x' = A x + forces of products: y_k' gets f_ij x_i x_j."""

    def __init__(self, matrix, forces):
        self.matrix, self.forces = np.array(matrix), np.array(forces)

    def law(self, params, data):
        from jax import numpy as jnp

        x = params["x"]
        return {"x": data[0] @ x + jnp.einsum("kij,i,j->k", data[1], x, x)}

    @property
    def data(self):
        return self.matrix, self.forces

    def describe(self):
        return {"type": "own", "name": "quadratic"}


def test_second_order_of_several_rates():
    """Parts of rates l and m drive at l + m: y = sum f_ij x_i x_j / (l_i + l_j - rate of y), also for turning modes."""
    rng = np.random.default_rng(1)
    forces = np.zeros((3, 3, 3))
    forces[2, :2, :2] = rng.normal(size=(2, 2))
    x, rates = np.array([0.02, -0.03]), np.array([0.7, 0.25])
    local = ss.linearise(Quadratic(np.diag([*rates, -0.4]), forces), {"x": np.zeros(3)})
    expected = sum(forces[2, i, j] * x[i] * x[j] / (rates[i] + rates[j] + 0.4) for i in range(2) for j in range(2))
    assert local.second_order({"x": np.array([*x, 0.0])})["x"][2] == pytest.approx(expected, rel=1e-9)
    turning = np.array([[0.3, -2.0, 0.0], [2.0, 0.3, 0.0], [0.0, 0.0, -0.4]])
    law, start = Quadratic(turning, forces), np.array([1e-4, 2e-4, 0.0])
    first = ss.linearise(law, {"x": np.zeros(3)}).second_order({"x": start})["x"]
    start[2] = first[2]
    run = ss.evolve(law, {"x": start}, ss.GradientFlow(atol=1e-16), until=3.0)
    moved = ss.linearise(law, {"x": np.zeros(3)}).second_order({"x": run.at(-1)["x"] * [1, 1, 0]})["x"]
    assert run.at(-1)["x"][2] == pytest.approx(moved[2], rel=1e-4), "w follows v from then on"


@pytest.mark.long
def test_second_order_of_a_gradient_flow_by_least_squares_and_products(large):
    """Two ways to solve (rate I - J) w = forcing, with one block that moves faster."""
    rng, found = np.random.default_rng(5), []
    point, near = ({name: size * rng.normal(size=(3, 3)) for name in ("A", "B")} for size in (0.5, 0.51))
    for _ in range(2):
        w = ss.linearise(product_loss(), point, rates={"A": 4.0}).second_order(near)
        found.append(np.concatenate([w[name].ravel() for name in ("A", "B")]))
        large()
    assert np.abs(found[0]).max() > 0.01
    np.testing.assert_allclose(found[1], found[0], atol=1e-8 * np.abs(found[0]).max())


def test_resonance_is_said():
    """2 lambda is itself a rate: if it is driven, w grows as t e^(2 lambda t); if not, the least w is given."""
    forces = np.zeros((2, 2, 2))
    forces[1, 0, 0] = 1.0
    with pytest.raises(ss.StagescopeError, match="resonance: the driven rate 1"):
        ss.linearise(Quadratic(np.diag([0.5, 1.0]), forces), {"x": np.zeros(2)}).second_order({"x": np.array([0.1, 0.0])})
    w = ss.linearise(Quadratic(np.diag([0.5, 1.0]), 0 * forces), {"x": np.zeros(2)}).second_order({"x": np.array([0.1, 0.0])})
    np.testing.assert_allclose(w["x"], 0.0, atol=1e-15)
