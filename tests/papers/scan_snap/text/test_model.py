"""The one-layer transformer: a second, plain implementation, and that no position sees the future."""

import numpy as np
import pytest

from stagescope.papers.scan_snap.text.loss import TextTransformer

MODEL = TextTransformer(vocab=11, length=6, width=8, hidden=5, places="sinusoidal")


def plain(model, params, tokens):
    """One window, one position after the other."""

    def norm(part, x):
        return (x - x.mean()) / np.sqrt(x.var() + 1e-5) * params[f"gain_{part}"] + params[f"shift_{part}"]

    x = [np.sqrt(model.width) * params["E"][t] + model.fixed_places[i] for i, t in enumerate(tokens)]
    logits, attention = [], np.zeros((len(tokens), len(tokens)))
    for t in range(len(tokens)):
        scores = np.array([(x[t] @ params["Q"]) @ (x[s] @ params["K"]) / np.sqrt(model.width) for s in range(t + 1)])
        weights = np.exp(scores - scores.max())
        attention[t, : t + 1] = weights / weights.sum()
        mixed = sum(attention[t, s] * x[s] for s in range(t + 1)) @ params["V"] @ params["O"]
        h = norm("head", x[t] + mixed)
        y = norm("mlp", h + np.maximum(h @ params["M"] + params["m"], 0) @ params["N"] + params["n"])
        logits.append(y @ params["U"] + params["u"])
    return np.array(logits), attention


def random_params(model):
    draw = np.random.default_rng(0)
    return {name: block + 0.3 * draw.normal(size=block.shape) for name, block in model.init(1).items()}


def test_forward_is_the_plain_one():
    params, tokens = random_params(MODEL), np.array([[1, 4, 4, 0, 10, 7], [3, 3, 3, 2, 1, 0]])
    logits, attention = MODEL.forward(params, tokens)
    for i in range(2):
        expected = plain(MODEL, params, tokens[i])
        np.testing.assert_allclose(logits[i], expected[0], atol=1e-12)
        np.testing.assert_allclose(attention[0, i], expected[1], atol=1e-12)  # layer, window


@pytest.mark.long
def test_the_future_does_not_matter():
    params, tokens = random_params(MODEL), np.array([[1, 4, 4, 0, 10, 7]])
    changed = tokens.copy()
    changed[0, 4:] = 5
    (logits, attention), (other_logits, other_attention) = (MODEL.forward(params, windows) for windows in (tokens, changed))
    np.testing.assert_allclose(logits[:, :4], other_logits[:, :4], atol=1e-12)
    np.testing.assert_allclose(attention[:, :, :4], other_attention[:, :, :4], atol=1e-12)


def test_without_places_order_before_a_query_does_not_matter():
    model = MODEL.model_copy(update={"places": "none"})
    params = random_params(model)
    one, other = (np.asarray(model.forward(params, np.array([t]))[0])[0, -1] for t in ([1, 4, 2, 0, 10, 7], [10, 0, 4, 1, 2, 7]))
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_shapes_and_axes_agree():
    params = MODEL.init(3)
    assert {name: block.shape for name, block in params.items()} == MODEL.shapes
    assert {name: len(axes) for name, axes in MODEL.axes.items()} == {name: block.ndim for name, block in params.items()}
    assert np.abs(params["E"]).max() <= 0.1
    assert np.abs(params["E"]).max() == pytest.approx(0.1, rel=0.1)
