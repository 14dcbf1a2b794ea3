"""Content-aware heads: scores and logits written out with one-hots, initial parameters."""

import numpy as np
import pytest

import stagescope as ss

MODEL = ss.ContentHeads(vocab=4, heads=2, context=3, targets=3)


def some_params(seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) for name, shape in MODEL.shapes.items()}


def written_out(params, tokens):
    """The definition with one-hot vectors, one target at a time: attention (B, H, L, N) and logits (B, L, d)."""
    n = MODEL.positions
    attention, logits = np.zeros((len(tokens), 2, 3, n)), np.zeros((len(tokens), 3, 4))
    for b, row in enumerate(tokens):
        inputs = np.array([np.concatenate([np.eye(4)[row[s]], np.eye(n)[s]]) for s in range(n)])
        for t in range(3):
            q = MODEL.context + t - 1
            for h in range(2):
                weights = np.exp(inputs[: q + 1] @ params["W"][h].T @ inputs[q] / np.sqrt(4 + n))
                attention[b, h, t, : q + 1] = weights / weights.sum()
                logits[b, t] += params["V"][h] @ (attention[b, h, t] @ inputs)
    return attention, logits


def test_gathers_equal_one_hots():
    params, tokens = some_params(), np.random.default_rng(1).integers(4, size=(7, 6))
    attention, logits = written_out({**params, "W": np.swapaxes(params["W"], 1, 2)}, tokens)
    assert not np.allclose(attention, MODEL.seen(params, tokens), atol=1e-3), "the query is the first index of W"
    attention, logits = written_out(params, tokens)
    np.testing.assert_allclose(MODEL.seen(params, tokens), attention, atol=1e-14)
    np.testing.assert_allclose(MODEL.logits(params, tokens), logits, atol=1e-13)


def test_without_token_scores_it_is_positional():
    """Only position-position scores and token values: PositionalHeads with a = W[q, s] / sqrt(d + N)."""
    params, d = some_params(), MODEL.vocab
    for rows in (np.s_[:, :d], np.s_[:, :, :d]):
        params["W"][rows] = 0
    params["V"][:, :, d:] = 0
    twin = ss.PositionalHeads(vocab=4, heads=2, context=3, targets=3)
    scores = params["W"][:, d + MODEL.context - 1 :, d:] / np.sqrt(MODEL.inputs)
    tokens = np.random.default_rng(1).integers(4, size=(7, 6))
    same = twin.logits({"a": scores, "V": MODEL.token_maps(params)}, tokens)
    np.testing.assert_allclose(MODEL.logits(params, tokens), same, atol=1e-13)


def test_init():
    start = MODEL.init(3, 0.1)
    assert not start["V"].any()
    assert 0.09 < np.abs(start["W"]).max() <= 0.1
    np.testing.assert_array_equal(start["W"], MODEL.init(3, 0.1)["W"])
    assert not MODEL.init(0, 0.0)["W"].any()
    xavier = MODEL.init(3, kind="xavier")["W"]
    np.testing.assert_allclose(xavier, start["W"] / 0.1 * np.sqrt(6 / (9 + 9)), rtol=1e-13)


def test_bad_arguments():
    with pytest.raises(ss.InputError, match="init scale is nan"):
        MODEL.init(0, np.nan)
    with pytest.raises(ss.InputError, match=r"expected tokens \(sequences, 5 or more\)"):
        MODEL.logits(some_params(), np.zeros((2, 4), dtype=int))
