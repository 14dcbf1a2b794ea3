"""The one-layer transformer on a text: the gradient of its steps is that of the definition, and all positions count."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.scan_snap.text.loss import TextTransformer, TextTransformerLoss
from stagescope.params import Layout


@pytest.fixture(scope="module")
def loss():
    corpus = ss.read_corpus("topics", vocab=12)
    model = TextTransformer(vocab=12, length=5, width=4, hidden=3)
    return TextTransformerLoss(model=model, process=corpus, length=5, batch=3, watched=7, precision="float64")


def somewhere(loss):
    draw = np.random.default_rng(0)
    return {name: block + 0.3 * draw.normal(size=block.shape) for name, block in loss.model.init(1).items()}


@pytest.mark.long
def test_value_is_the_mean_over_windows_and_positions(loss):
    params, total = somewhere(loss), []
    for start in loss.seen:
        window = np.asarray(loss.tokens[start : start + 6], dtype=int)
        logits = np.asarray(loss.model.forward(params, window[None, :-1])[0])[0]
        total += [np.log(np.sum(np.exp(row))) - row[following] for row, following in zip(logits, window[1:], strict=True)]
    assert len(total) == 7 * 5
    assert loss.value(params) == pytest.approx(np.mean(total), rel=1e-12)


@pytest.mark.long
def test_steps_go_down_the_loss_of_their_windows(loss):
    """Central differences along a random direction, on the windows of one step."""
    params = somewhere(loss)
    layout = Layout.of(params)
    vector, found = layout.pack(params), np.empty(layout.size)
    loss.step_gradient(layout)(vector, 4, found)
    direction = np.random.default_rng(1).normal(size=layout.size)

    def value(along):
        return loss.of_windows(layout.unpack(vector + along * direction), loss.minibatch(4))[0]

    assert found @ direction == pytest.approx((value(1e-6) - value(-1e-6)) / 2e-6, rel=1e-6)
    np.testing.assert_allclose(found, layout.pack(loss.of_windows(params, loss.minibatch(4))[1]), atol=1e-13)
