"""Critical points: known ones with known kinds, orbits, searches that fail, and large models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.landscape import derivatives
from stagescope.landscape.critical import slow_frames
from tests.landscape.laws import VALUES, Linear, product_loss, product_start


@pytest.fixture(scope="module")
def run():
    return ss.evolve(product_loss(), product_start(), ss.GradientFlow(), until=100.0, record=ss.Uniform(frames=1500))


def test_a_linear_network_passes_one_saddle_for_every_mode(run):
    """k modes learnt: loss sum_{i >= k} s_i^2/2, rates s_k, s_k+1, ... each with multiplicity 3 - k."""
    points = ss.critical_points(run, product_loss())
    assert [point.kind for point in points] == ["saddle", "saddle", "saddle", "minimum"]
    for k, point in enumerate(points):
        assert point.found
        assert point.residual <= 1e-10
        assert point.distance < 0.02
        assert point.loss == pytest.approx(sum(v**2 for v in VALUES[k:]) / 2, abs=1e-9)
        expected = [v for v in VALUES[k:] for _ in range(3 - k)]
        np.testing.assert_allclose(point.rates[: point.index], expected, atol=1e-8)
        assert point.flat == [0, 5, 8, 9][k]


@given(st.integers(0, 500), st.floats(1e-6, 0.05))
def test_points_are_found_from_beside_an_orbit(seed, size):
    """One mode learnt is an orbit under rotations and rescalings; from any point beside it the search ends on it."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    target = np.diag([2.0, 0.0, 0.0])
    point = {"A": np.sqrt(target) @ turn, "B": turn.T @ np.sqrt(target)}
    start = {name: block + size * rng.normal(size=(3, 3)) for name, block in point.items()}
    found = ss.critical_point(product_loss(), start)
    assert found.residual <= 1e-10
    assert found.distance < 20 * size
    assert found.loss == pytest.approx((1.0 + 0.09) / 2, abs=1e-9)


def test_where_there_is_none_it_says_so():
    """x^3 + x has the slope 3 x^2 + 1, which is never zero."""
    found = ss.critical_point(ss.JaxObjective(lambda p: (p["x"] ** 3 + p["x"]).sum()), {"x": np.full(1, 1.0)})
    assert not found.found
    assert found.kind == "not critical"


@pytest.mark.parametrize(("matrix", "kind"), [([-1.0, -2.0], "sink"), ([1.0, -2.0], "saddle"), ([1.0, 2.0], "source")])
def test_kinds_without_an_objective(matrix, kind):
    found = ss.critical_point(Linear(np.diag(matrix)), {"x": np.array([0.3, -0.2])})
    assert found.kind == kind
    assert found.loss is None
    np.testing.assert_allclose(found.params["x"], 0, atol=1e-9)


def test_large_models_agree_with_small(monkeypatch, run):
    start = run.at(int(np.argmin(np.abs(run.t - 6.3))))
    dense = ss.critical_point(product_loss(), start)
    monkeypatch.setattr(derivatives, "DENSE", 5)
    sparse = ss.critical_point(product_loss(), start)
    assert sparse.residual <= 1e-10
    assert sparse.loss == pytest.approx(dense.loss, abs=1e-9)
    np.testing.assert_allclose(sparse.rates[:4], dense.rates[:4], atol=1e-6)
    assert sparse.flat is None


def test_slow_frames():
    speed = np.array([1.0, 0.1, 1.0, 0.9, 1.0, 0.01, 0.5, 0.001])
    assert slow_frames(speed) == [1, 5, 7]
    assert slow_frames(np.array([0.1, 1.0, 2.0])) == [0]
    assert len(slow_frames(np.array([1.0, 1e-11, 1e-14, 3e-12, 1e-14]))) == 1, "rounding is not a plateau"


def test_the_order_of_blocks_does_not_matter():
    model = ss.TokenAttention(vocab=3, width=2, scale=1.0)
    loss = ss.population_loss(model, ss.LazyChain(pi=(0.5, 0.3, 0.2), persistence=0.4))
    params = model.init(0, 0.5)
    turned = {name: params[name] for name in ("WK", "W1", "W0", "WQ")}
    assert ss.spectrum(loss, turned).speed == pytest.approx(ss.spectrum(loss, params).speed, rel=1e-12)
    with pytest.raises(ss.InputError, match="parameter blocks"):
        ss.spectrum(loss, {"W0": params["W0"]})
