"""RegressionHeads: initial noise, places, and what is refused."""

import numpy as np
import pytest

import stagescope as ss

MODEL = ss.RegressionHeads(positions=5, gains=(2.0, 1.0), heads=3)


def test_target_and_places():
    moved = ss.RegressionHeads(positions=5, gains=(2.0, 1.0), heads=3, places=(4, 0))
    assert MODEL.target[[0, 1], [0, 1]].tolist() == [2.0, 1.0]
    assert moved.target[[0, 1], [4, 0]].tolist() == [2.0, 1.0]
    assert moved.losses(moved.init(0, 0.0)) == pytest.approx(2.5)


def test_noise_on_logits_and_on_weights():
    logits = MODEL.init(1, 1e-3)
    weights = MODEL.init(1, 1e-3, noise="weights")
    np.testing.assert_allclose(1e-6 * logits["a"], 1e-3 * MODEL.init(1, 1e-6)["a"], rtol=1e-12)
    expected = 0.2 + logits["a"]
    np.testing.assert_allclose(MODEL.attention(weights), expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(weights["a"].mean(axis=1), 0.0, atol=1e-15)
    assert not np.any(weights["V"])


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"gains": (1.0, 2.0)}, "not increase"),
        ({"gains": ()}, "at least one"),
        ({"gains": (1.0, -1.0)}, "positive"),
        ({"places": (1, 1)}, "different places"),
        ({"places": (1, 5)}, "0..4"),
        ({"positions": 1}, "2 gains need at least 2 positions, got 1"),
        ({"heads": 0}, "heads"),
    ],
)
def test_bad_models(fields, said):
    with pytest.raises(ss.InputError, match=said):
        ss.RegressionHeads(**{"positions": 5, "gains": (2.0, 1.0), "heads": 3, **fields})


def test_bad_noise():
    with pytest.raises(ss.InputError, match="negative"):
        MODEL.init(0, 1.0, noise="weights")
    with pytest.raises(ss.InputError, match="sigma"):
        MODEL.init(0, -1.0)
    with pytest.raises(ss.InputError, match="noise"):
        MODEL.init(0, 1.0, noise="values")
