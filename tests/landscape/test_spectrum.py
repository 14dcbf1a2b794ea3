"""Curvatures: known Hessians, dense against Lanczos, and the merged column."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.landscape import spectrum as module


def test_quadratic_has_its_matrix():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(6, 6))
    a = a + a.T

    def loss(params, a):
        x = params["x"]
        return 0.5 * x @ a @ x

    found = ss.spectrum(ss.JaxObjective(loss, data=a), {"x": rng.normal(size=6)})
    np.testing.assert_allclose(found.curvatures, np.linalg.eigvalsh(a), atol=1e-12)
    first = found.directions[0]["x"]
    np.testing.assert_allclose(a @ first, found.curvatures[0] * first, atol=1e-10)
    assert found.rates[0] == -found.curvatures[0]
    assert found.complete


def test_lanczos_agrees_with_dense(monkeypatch):
    process = ss.SequenceClasses.synthetic(2, 2, 4, 5)
    model = ss.PairwiseAttention.merged(process)
    loss = ss.population_loss(model, process)
    rng = np.random.default_rng(1)
    params = {name: rng.normal(size=block.shape) for name, block in model.init().items()}
    dense = ss.spectrum(loss, params, lowest=4)
    monkeypatch.setattr(module, "DENSE", 10)
    sparse = ss.spectrum(loss, params, lowest=4)
    np.testing.assert_allclose(sparse.curvatures, dense.curvatures[:4], atol=1e-8)
    assert not sparse.complete


def test_merged_curvatures_are_curvatures_of_the_full_model():
    process = ss.SequenceClasses.synthetic(2, 1, 1, 2)
    small, whole = ss.PairwiseAttention.merged(process), ss.PairwiseAttention.full(process.vocab)
    a = ss.spectrum(ss.population_loss(small, process), small.init())
    b = ss.spectrum(ss.population_loss(whole, process), whole.init())
    for value in a.curvatures:
        assert np.abs(b.curvatures - value).min() < 1e-10
    assert a.curvatures[0] == pytest.approx(b.curvatures[0], abs=1e-10)
    assert a.gradient_norm == pytest.approx(b.gradient_norm)


def test_bad_count():
    with pytest.raises(ss.InputError, match="lowest"):
        ss.spectrum(ss.JaxObjective(lambda p: p["x"].sum()), {"x": np.ones(2)}, lowest=0)
