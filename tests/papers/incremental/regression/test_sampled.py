"""The regression transformer: its mean is the regression flow's loss, its steps are the definition's on the same batch."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.params import Layout
from stagescope.core.spec import build
from stagescope.flow.descent import CompiledLoop, GradientLoop

REDUCED = ss.RegressionHeads(positions=5, gains=(3.0, 1.5), heads=3, places=(4, 1))
MODEL = ss.RegressionTransformer(reduced=REDUCED, dim=4, feature_seed=2)


def sampled(**more):
    return ss.RegressionSampled(model=MODEL, **more)


def some_params(scale=0.7, seed=0):
    rng = np.random.default_rng(seed)
    return {name: scale * rng.normal(size=shape) for name, shape in MODEL.shapes.items()}


def test_contract():
    loss = sampled(batch=7, seed=3)
    assert build(loss.describe()) == loss
    start = MODEL.init(5, 1e-2)
    np.testing.assert_array_equal(start["a"], REDUCED.init(5, 1e-2)["a"])
    assert not start["V"].any()
    gram = np.einsum("iyx,jyx->ij", MODEL.features, MODEL.features)
    np.testing.assert_allclose(gram, np.eye(2), atol=1e-14)


def test_mean_over_contexts_is_the_loss_of_the_flow():
    """By the definition, by |R|^2/2, by a large sample, and, inside the span of the features, by RegressionLoss."""
    loss, params = sampled(batch=40_000), some_params()
    assert loss.value(params) == pytest.approx(float(loss._autodiff.value(params, loss.data)), rel=1e-13)
    drawn = float(loss._autodiff.value(params, loss.draw(0)))
    assert drawn == pytest.approx(loss.value(params), rel=0.02)  # standard error 0.5 %
    coefficients = np.random.default_rng(1).normal(size=(3, 2))
    inside = {"a": params["a"], "V": np.einsum("hi,iyx->hyx", coefficients, MODEL.features)}
    reduced = MODEL.reduce(inside)
    np.testing.assert_allclose(reduced["V"], coefficients, atol=1e-14)
    assert loss.value(inside) == pytest.approx(ss.RegressionLoss(model=REDUCED).value(reduced), rel=1e-13)


def test_gradients_are_the_definition_s():
    loss, params = sampled(batch=9, seed=4), some_params()
    layout = Layout.of(params)
    expected = loss._autodiff.grad(params, loss.data)
    for name, block in loss.grad(params).items():
        np.testing.assert_allclose(block, expected[name], atol=1e-13)
    out = np.empty(layout.size)
    loss.step_gradient(layout)(layout.pack(params), 11, out)
    np.testing.assert_allclose(out, layout.pack(loss._autodiff.grad(params, loss.draw(11))), atol=1e-13)
    value = loss.flat(layout, {"a": 2.0, "V": 0.5})(layout.pack(params), out)
    assert value == pytest.approx(loss.value(params), rel=1e-14)
    np.testing.assert_allclose(layout.unpack(out)["a"], -2.0 * expected["a"], atol=1e-13)


def test_steps_are_the_compiled_ones():
    loss, params = sampled(batch=6), some_params(0.1)
    descent, layout = ss.Descent(lr=0.05, steps=20), Layout.of(params)
    fast = GradientLoop(descent, loss.field(), layout, loss.step_gradient(layout))
    slow = CompiledLoop(descent, loss.field(), layout)
    ends = [loop.vector(loop.advance(loop.restore(loop.start(layout.pack(params))), 0, 20)[0]) for loop in (fast, slow)]
    np.testing.assert_allclose(*ends, atol=1e-12)


def test_without_batches_it_descends_as_the_reduced_model():
    start, descent = MODEL.init(0, 1e-2), ss.Descent(lr=0.05, steps=300)
    full = ss.evolve(sampled(), start, descent, progress=False)
    small = ss.evolve(ss.RegressionLoss(model=REDUCED), MODEL.reduce(start), descent, progress=False)
    reduced = MODEL.reduce({name: full.params[name][-1] for name in full.params})
    np.testing.assert_allclose(reduced["V"], small.params["V"][-1], atol=1e-12)
    np.testing.assert_allclose(full.series["loss"], small.series["loss"], atol=1e-12)


def test_refusals():
    with pytest.raises(ss.InputError, match="copies"):
        ss.RegressionTransformer(reduced=REDUCED.symmetric(), dim=4)
    with pytest.raises(ss.InputError, match="cannot be made orthogonal"):
        ss.RegressionTransformer(reduced=REDUCED, dim=2)
    with pytest.raises(ss.InputError, match="draws a batch for every step"):
        ss.evolve(sampled(batch=3), MODEL.init(), ss.GradientFlow(), until=1.0)
