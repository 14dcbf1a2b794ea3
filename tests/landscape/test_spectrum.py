"""Spectra: known Hessians, dense against Lanczos, laws that are no gradient, block rates, and the merged column."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.landscape import derivatives
from stagescope.landscape import spectrum as spectra
from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.spectrum import dense_eigen
from tests.landscape.laws import Linear, wide_point


def quadratic(seed=0, size=6):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(size, size))
    a = a + a.T
    half = size // 2

    def loss(params, a):
        from jax import numpy as jnp

        z = jnp.concatenate([params["x"], params["y"]])
        return 0.5 * z @ a @ z

    return a, ss.JaxObjective(loss, data=a), {"x": rng.normal(size=half), "y": rng.normal(size=size - half)}


def test_quadratic_has_its_matrix():
    a, loss, params = quadratic()
    found = ss.spectrum(loss, params)
    np.testing.assert_allclose(found.curvatures, np.linalg.eigvalsh(a), atol=1e-12)
    first = np.concatenate([found.directions[0][name] for name in ("x", "y")])
    np.testing.assert_allclose(a @ first, found.curvatures[0] * first, atol=1e-10)
    assert found.speed == pytest.approx(np.linalg.norm(a @ np.concatenate([params["x"], params["y"]])))
    assert found.complete


@pytest.mark.long
@pytest.mark.parametrize("rates", [{"x": 3.0}, {"x": 0.0, "y": 2.0}])
def test_block_rates_scale_the_rows_of_the_jacobian(rates):
    a, loss, params = quadratic()
    weights = np.repeat([rates.get("x", 1.0), rates.get("y", 1.0)], 3)
    found = ss.spectrum(loss, params, rates=rates)
    jacobian = -weights[:, None] * a
    np.testing.assert_allclose(np.sort(found.rates), np.sort(np.linalg.eigvals(jacobian).real), atol=1e-10)
    first = np.concatenate([found.directions[0][name] for name in ("x", "y")])
    np.testing.assert_allclose(jacobian @ first, found.rates[0] * first, atol=1e-10)


def test_a_law_that_is_no_gradient_may_turn():
    matrix = np.array([[0.5, -2.0, 0.0], [2.0, 0.5, 0.0], [0.0, 0.0, -1.0]])
    found = ss.spectrum(Linear(matrix), {"x": np.ones(3)})
    np.testing.assert_allclose(found.rates.real, [0.5, 0.5, -1.0], atol=1e-12)
    assert sorted(found.rates.imag)[0] == pytest.approx(-2.0)


@pytest.mark.long
@pytest.mark.parametrize("rates", [None, {"Y": 10.0, "Z": 1.0}])
def test_lanczos_agrees_with_dense(monkeypatch, rates):
    process = ss.SequenceClasses.synthetic(2, 2, 4, 5)
    model = ss.PairwiseAttention.merged(process)
    loss = ss.population_loss(model, process)
    rng = np.random.default_rng(1)
    params = {name: rng.normal(size=block.shape) for name, block in model.init().items()}
    dense = ss.spectrum(loss, params, fastest=4, rates=rates)
    monkeypatch.setattr(derivatives, "DENSE", 10)
    sparse = ss.spectrum(loss, params, fastest=4, rates=rates)
    np.testing.assert_allclose(sparse.rates, dense.rates[:4], atol=1e-8)
    assert not sparse.complete


def test_arnoldi_agrees_with_dense(monkeypatch):
    rng = np.random.default_rng(2)
    law, params = Linear(rng.normal(size=(30, 30))), {"x": rng.normal(size=30)}
    dense = ss.spectrum(law, params, fastest=4)
    monkeypatch.setattr(derivatives, "DENSE", 10)
    sparse = ss.spectrum(law, params, fastest=4)
    np.testing.assert_allclose(sparse.rates.real, dense.rates[:4].real, atol=1e-8)


@pytest.mark.long
def test_every_copy_of_a_repeated_rate_is_found(monkeypatch):
    """At an orbit of 1120 parameters the fastest rate is 19-fold and most others are zero."""
    loss, params = wide_point(12, 20, 16)
    near = Derivatives(loss, params)
    whole = dense_eigen(near.jacobian(near.layout.pack(params)), near.roots)
    assert ss.spectrum(loss, params, fastest=25).complete, "its own derivatives make all rates the faster way"
    monkeypatch.setattr(derivatives, "ALL_RATES", 0)
    found = ss.spectrum(loss, params, fastest=25)
    assert near.layout.size == 1120
    assert not found.complete
    assert found.converged
    np.testing.assert_allclose(found.rates, whole.values[:25], atol=1e-9)
    assert found.rates[0] - found.rates[18] < 1e-9 < found.rates[18] - found.rates[19]
    assert found.largest == pytest.approx(whole.largest, rel=0.02)


@pytest.mark.parametrize("gradient", [True, False])
def test_repeated_rates_of_any_operator(monkeypatch, gradient):
    rng = np.random.default_rng(0)
    values = np.concatenate([np.full(7, 0.5), [0.3], np.zeros(40), -rng.random(32)])
    frame = np.linalg.qr(rng.normal(size=(80, 80)))[0] if gradient else rng.normal(size=(80, 80))
    matrix = frame @ np.diag(values) @ np.linalg.inv(frame)
    law = Linear(matrix) if not gradient else ss.JaxObjective(lambda p, a: -0.5 * p["x"] @ a @ p["x"], data=matrix)
    monkeypatch.setattr(derivatives, "DENSE", 10)
    found = ss.spectrum(law, {"x": np.zeros(80)}, fastest=8)
    np.testing.assert_allclose(np.real(found.rates[:8]), values[:8], atol=1e-6)


@pytest.mark.long
def test_iterations_that_do_not_converge(monkeypatch):
    """Up to some size all rates are computed instead; above it, fewer than asked for are given, and said so."""
    a, loss, params = quadratic(size=120)
    monkeypatch.setattr(derivatives, "DENSE", 10)
    monkeypatch.setattr(spectra, "ROUNDS", 1)
    whole = ss.spectrum(loss, params, fastest=5)
    assert whole.complete
    np.testing.assert_allclose(whole.curvatures, np.linalg.eigvalsh(a), atol=1e-9)
    monkeypatch.setattr(spectra, "LARGEST_DENSE", 50)
    part = ss.spectrum(loss, params, fastest=5)
    assert (part.complete, part.converged, part.requested) == (False, False, 5)
    assert 0 < len(part.rates) < 5
    monkeypatch.setattr(spectra, "ROUNDS", 0)
    with pytest.raises(ss.StagescopeError, match="none of the 5 fastest of 120 rates converged"):
        ss.spectrum(loss, params, fastest=5)


@pytest.mark.long
def test_merged_curvatures_are_curvatures_of_the_full_model():
    process = ss.SequenceClasses.synthetic(2, 1, 1, 2)
    small, whole = ss.PairwiseAttention.merged(process), ss.PairwiseAttention.full(process.vocab)
    a = ss.spectrum(ss.population_loss(small, process), small.init())
    b = ss.spectrum(ss.population_loss(whole, process), whole.init())
    for value in a.curvatures:
        assert np.abs(b.curvatures - value).min() < 1e-10
    assert a.curvatures[0] == pytest.approx(b.curvatures[0], abs=1e-10)
    assert a.speed == pytest.approx(b.speed)


def test_bad_input():
    loss, point = ss.JaxObjective(lambda p: p["x"].sum()), {"x": np.ones(2)}
    with pytest.raises(ss.InputError, match="fastest"):
        ss.spectrum(loss, point, fastest=0)
    with pytest.raises(ss.InputError, match="'Y'"):
        ss.spectrum(loss, point, rates={"Y": 1.0})
    with pytest.raises(ss.InputError, match="rate of x"):
        ss.spectrum(loss, point, rates={"x": -1.0})
    with pytest.raises(ss.InputError, match="JaxObjective"):
        ss.spectrum(lambda p: p["x"].sum(), point)  # pyright: ignore[reportArgumentType]
