"""Content-aware heads on a lagged chain: the kernel is the definition, in both precisions, and equal heads stay equal."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.params import Layout
from stagescope.core.spec import build
from stagescope.flow.descent import CompiledLoop, Descent, GradientLoop
from stagescope.papers.incremental import students

CHAIN = ss.LaggedChain.spans(5, spans=(2, 1), scale=2.0)
MODEL = ss.ContentHeads(vocab=5, heads=2, context=4, targets=3)


def content(sequences=60, **more):
    return ss.ContentLoss(model=MODEL, process=CHAIN, sequences=sequences, **{"seed": 7, **more})


def some_params(model=MODEL, queries=1.0, values=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return {"W": queries * rng.normal(size=model.shapes["W"]), "V": values * rng.normal(size=model.shapes["V"])}


SIZES = [
    (5, 1, 3, 1, 1, "hard"),
    pytest.param(7, 3, 9, 6, 130, "hard", marks=pytest.mark.long),
    pytest.param(18, 2, 4, 5, 65, "soft", marks=pytest.mark.long),
    (2, 2, 3, 20, 30, "soft"),
]


@pytest.mark.parametrize(("vocab", "count", "context", "targets", "sequences", "labels"), SIZES)
def test_kernel_equals_the_definition(vocab, count, context, targets, sequences, labels):
    model = ss.ContentHeads(vocab=vocab, heads=count, context=context, targets=targets)
    chain = ss.LaggedChain.spans(vocab, spans=(2, 1), scale=2.0)
    loss = ss.ContentLoss(model=model, process=chain, sequences=sequences, labels=labels)
    for queries, values in ((1.0, 0.3), (2000.0, 400.0)):  # scores and logits of hundreds would overflow unless shifted
        params = some_params(model, queries, values)
        defined = float(loss._autodiff.value(params, loss.data))
        assert loss.value(params) == pytest.approx(defined, rel=1e-12, abs=1e-12)
        found, expected = loss.grad(params), loss._autodiff.grad(params, loss.data)
        for name in params:
            np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-12 * max(1.0, values))


def test_two_layers_in_blocks(monkeypatch):
    """Blocks of sequences, the last one smaller, add up to the definition on all of them, in both precisions."""
    monkeypatch.setattr(students, "PASS", 25)
    model = ss.ContentHeads(vocab=5, heads=2, context=4, targets=3, layers=2)
    rng = np.random.default_rng(0)
    params = {name: 0.5 * rng.normal(size=shape) for name, shape in model.shapes.items()}
    for precision, close in (("float64", 1e-13), ("float32", 2e-6)):
        loss = ss.ContentLoss(model=model, process=CHAIN, sequences=60, labels="soft", precision=precision)
        assert loss.value(params) == pytest.approx(float(loss._autodiff.value(params, loss.data)), abs=close)
        found, expected = loss.grad(params), loss._autodiff.grad(params, loss.data)
        for name in params:
            np.testing.assert_allclose(found[name], expected[name], atol=close)


def test_single_precision_is_close_and_is_not_double():
    params = some_params()
    double, single = (content(500, precision=precision) for precision in ("float64", "float32"))
    assert single.value(params) == pytest.approx(double.value(params), abs=1e-7)
    for name, block in double.grad(params).items():
        gap = np.abs(single.grad(params)[name] - block).max()
        assert 0 < gap < 2e-7


@pytest.mark.long
def test_definition_predicts_as_the_model():
    loss, params = content(), some_params()
    tokens = loss.all.tokens.T.astype(int)
    np.testing.assert_allclose(loss.predict(params, loss.data), MODEL.logits(params, tokens), atol=1e-13)


@pytest.mark.long
def test_kernel_steps_equal_the_definition_with_optax():
    loss, start = content(batch=16), some_params(values=0.0)
    descent = Descent(optimizer=ss.AdamW(weight_decay=0.1), rates={"W": 0.3}, lr=0.05, steps=40, clip=0.05)
    layout = Layout.of(start)
    loops = GradientLoop(descent, loss.field(), layout, loss.step_gradient(layout)), CompiledLoop(descent, loss.field(), layout)
    ends = []
    for loop in loops:
        carry, done = loop.advance(loop.restore(loop.start(layout.pack(start))), 0, 40)
        assert done == 40
        ends.append(loop.vector(carry))
    np.testing.assert_allclose(*ends, atol=1e-11)
    assert np.abs(ends[0] - layout.pack(start)).max() > 0.01


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_equal_heads_stay_equal(precision):
    """No initial difference between heads: they agree to the last bit, in single precision too."""
    model = ss.ContentHeads(vocab=5, heads=3, context=4, targets=3)
    loss = ss.ContentLoss(model=model, process=CHAIN, sequences=100, precision=precision)
    run = ss.evolve(loss, model.init(0, 0.0), Descent(optimizer=ss.AdamW(), lr=0.05, steps=300), record=ss.Uniform(frames=2))
    for name in ("W", "V"):
        for other in (1, 2):
            np.testing.assert_array_equal(run.params[name][-1, 0], run.params[name][-1, other])
        assert np.abs(run.params[name][-1]).max() > 0.5


def test_watched_sequences_are_the_first():
    params, whole, part = some_params(), content(), content(watched=20)
    np.testing.assert_array_equal(part.seen.tokens, whole.all.tokens[:, :20])
    np.testing.assert_array_equal(part.minibatch(0) or part.all.tokens, whole.all.tokens)
    assert part.value(params) == pytest.approx(part._kernel(params, whole.all.take(slice(20)))[0], abs=1e-15)
    assert part.value(params) != whole.value(params)
    layout = Layout.of(params)
    steps = [np.empty(layout.size) for _ in range(2)]
    for loss, out in zip((whole, part), steps, strict=True):
        loss.step_gradient(layout)(layout.pack(params), 0, out)
    np.testing.assert_array_equal(*steps)
    with pytest.raises(ss.InputError, match="watched 61 is larger than the 60 sequences"):
        content(watched=61)


def test_held_out_keeps_the_precision_and_describes_itself():
    loss = content(batch=9, precision="float32")
    assert build(loss.describe()) == loss
    judge = loss.judge(200)
    assert (judge.labels, judge.part, judge.precision, judge.batch, judge.seed) == ("soft", "held-out", "float32", None, 7)
    assert judge == ss.held_out(MODEL, CHAIN, 200, seed=7, precision="float32")
    assert judge.value(MODEL.init(0)) == pytest.approx(np.log(5), abs=1e-12)


def test_values_that_are_not_finite_give_no_number():
    params = some_params()
    params["W"][0, 0, 0] = np.inf
    assert np.isnan(content().value(params))
