"""Positional heads on windows of a text."""

import json

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.core.spec import build
from stagescope.papers.incremental.text.loss import TextHeads


@pytest.fixture(scope="module")
def loss():
    corpus = ss.read_corpus(vocab=15)
    model = ss.PositionalHeads(vocab=15, heads=2, context=4, targets=1)
    return TextHeads(model=model, process=corpus, batch=64, watched=500, seed=3)


@pytest.fixture
def params(loss):
    draw = np.random.default_rng(0)
    return {name: draw.normal(size=shape) for name, shape in loss.shapes.items()}


def test_the_value_is_the_cross_entropy_of_the_models_logits(loss, params):
    windows = loss.seen.tokens.T.astype(int)
    logits = loss.model.logits(params, windows)[:, 0]
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    assert loss.value(params) == pytest.approx(-logs[np.arange(len(windows)), windows[:, -1]].mean(), rel=1e-12)


def test_kernel_and_definition_agree(loss, params):
    from stagescope.flow.autodiff import jax

    value, grad = jax.jit(jax.value_and_grad(loss.loss))(params, loss.data)
    assert loss.value(params) == pytest.approx(float(value), rel=1e-12)
    for name, block in loss.grad(params).items():
        np.testing.assert_allclose(block, grad[name], atol=1e-13)


def test_one_head_on_the_last_token_can_be_the_bigram_chain(loss):
    """V = log P, attention on lag 1: the loss over all windows is the entropy rate of the bigram chain, the floor."""
    corpus = loss.process
    model = ss.PositionalHeads(vocab=15, heads=1, context=4, targets=1)
    whole = TextHeads(model=model, process=corpus, batch=None, watched=10**7)
    scores = np.zeros((1, 1, 4))
    scores[..., -1] = 60.0
    params = {"a": scores, "V": np.log(np.maximum(corpus.transition, 1e-12)).T[None]}
    assert whole.value(params) == pytest.approx(corpus.floor(), abs=1e-4)  # windows leave out the ends of the text


def test_windows_of_a_step_are_drawn_from_its_number(loss):
    first, again, other = loss.minibatch(5), loss.minibatch(5), loss.minibatch(6)
    assert np.array_equal(first.tokens, again.tokens)
    assert not np.array_equal(first.tokens, other.tokens)
    assert first.tokens.shape == (5, 64)
    stream = {tuple(window) for window in loss.windows.tolist()}
    assert all(tuple(window) in stream for window in first.tokens.T.tolist())


def test_without_a_batch_every_step_sees_every_window(loss):
    whole = TextHeads(model=loss.model, process=loss.process, batch=None)
    assert whole.minibatch(0) is None
    assert whole.all.tokens.shape == (5, len(loss.process.train) - 4)


def test_held_out_windows_are_others(loss, params):
    judge = loss.judge()
    assert np.array_equal(judge.windows, loss.process.windows(5, "held-out"))
    assert judge.value(params) != loss.value(params)


def test_it_is_built_again_from_its_description(loss, params):
    again = build(json.loads(json.dumps(loss.describe())))
    assert again == loss
    assert again.value(params) == loss.value(params)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"vocab": 14}, "differs from the text's 15 tokens"),
        ({"targets": 2}, "one target"),
    ],
)
def test_bad_sizes_are_refused(loss, sizes, words):
    model = ss.PositionalHeads(**({"vocab": 15, "heads": 1, "context": 4, "targets": 1} | sizes))
    with pytest.raises(InputError, match=words):
        TextHeads(model=model, process=loss.process)
