"""The transformer on a lagged chain: precision, dropout by seed and step, resuming."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.params import Layout
from stagescope.core.spec import build
from stagescope.flow.descent import GradientLoop

CHAIN = ss.LaggedChain.spans(4, spans=(1, 1), scale=2.0)
MODEL = ss.Transformer(vocab=4, heads=2, context=2, targets=2, width=6, mlp=5)
CHOICES = {"seed": 7, "precision": "float64"}


def full(sequences=30, **more):
    return ss.TransformerLoss(model=MODEL, process=CHAIN, sequences=sequences, **{**CHOICES, **more})


DOUBLE, SINGLE = full(labels="soft"), full(labels="soft", precision="float32")
FEW = full(15, labels="soft")  # its definition is compiled once for all tests


def test_a_spec_of_version_two_names_the_kernel_and_no_student():
    spec = {**DOUBLE.describe(), "engine": "kernel"}
    assert build(spec) == DOUBLE
    del spec["model"]["student"]
    assert build(spec).model == MODEL.model_copy(update={"student": "pre-norm"})
    with pytest.raises(ss.InputError, match="engine"):
        build({**DOUBLE.describe(), "engine": "jax"})


@pytest.mark.long
def test_gradient_by_finite_differences():
    params, h = MODEL.init(1), 1e-5
    found, rng = DOUBLE.grad(params), np.random.default_rng(2)
    for _ in range(3):
        along = {name: rng.normal(size=block.shape) for name, block in params.items()}
        ahead, back = ({name: params[name] + sign * h * along[name] for name in params} for sign in (1, -1))
        slope = sum(np.sum(found[name] * along[name]) for name in params)
        assert (DOUBLE.value(ahead) - DOUBLE.value(back)) / (2 * h) == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.long
def test_single_precision_is_close():
    params = MODEL.init(0)
    assert DOUBLE.value(params) == pytest.approx(SINGLE.value(params), abs=1e-6)
    single, double = SINGLE.grad(params), DOUBLE.grad(params)
    assert 0 < max(np.abs(single[name] - double[name]).max() for name in params) < 1e-6


@pytest.mark.long
def test_each_step_drops_by_seed_and_step():
    """A step is the definition on its draw."""
    params = MODEL.init(0)
    one, again, other = (DOUBLE._step_gradient(params, step)["U"] for step in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert not np.allclose(one, other, atol=1e-4)
    expected = FEW._autodiff.grad(params, FEW.draw(3))
    np.testing.assert_allclose(FEW._step_gradient(params, 3)["U"], expected["U"], atol=1e-12)
    assert not np.array_equal(DOUBLE.draw(3)["kept"][0], full(seed=8).draw(3)["kept"][0])


def test_steps_go_on_where_they_stopped():
    layout = Layout.of(MODEL.init(0))
    descent = ss.Descent(optimizer=ss.AdamW(), lr=0.01, steps=6, clip=1.0)
    loop = GradientLoop(descent, SINGLE.field(), layout, SINGLE.step_gradient(layout))
    start = loop.start(layout.pack(MODEL.init(0)))
    whole, _ = loop.advance(loop.restore(start), 0, 6)
    half, _ = loop.advance(loop.restore(start), 0, 3)
    rest, _ = loop.advance(loop.restore(loop.state(half, 3)), 3, 3)
    np.testing.assert_array_equal(loop.vector(whole), loop.vector(rest))
    assert np.abs(loop.vector(whole) - start["theta"]).max() > 0.01


def test_learns_and_describes_itself():
    descent = ss.Descent(optimizer=ss.AdamW(), lr=0.02, steps=60)
    run = ss.evolve(SINGLE, MODEL.init(0), descent, record=ss.Uniform(frames=3))
    loss = run.series["loss"]
    assert SINGLE.floor < loss[-1] < loss[0] - 0.3
    assert build(SINGLE.describe()) == SINGLE
    judge = SINGLE.judge(40)
    assert judge == ss.held_out(MODEL, CHAIN, 40, seed=7)
    with pytest.raises(ss.InputError, match="draws a batch for every step, and a flow has none"):
        ss.evolve(SINGLE, MODEL.init(0), ss.GradientFlow(), until=1.0)
