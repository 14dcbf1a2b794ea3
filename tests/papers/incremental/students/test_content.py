"""Content-aware heads: scores and logits written out with one-hots, initial parameters."""

import numpy as np
import pytest
import torch

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


def deep_params(model, seed=0):
    rng = np.random.default_rng(seed)
    return {name: 0.8 * rng.normal(size=shape) for name, shape in model.shapes.items()}


def test_two_layers_written_out():
    """One-hots, one head and one position at a time; the second layer reads what the first makes of every position."""
    model = ss.ContentHeads(vocab=4, heads=2, context=3, targets=3, layers=2)
    params, tokens, n = deep_params(model), np.random.default_rng(1).integers(4, size=(3, 6)), model.positions
    logits = model.logits(params, tokens)
    for b, row in enumerate(tokens):
        x = np.array([np.concatenate([np.eye(4)[row[s]], np.eye(n)[s]]) for s in range(n)])
        for i in (1, 2):
            out = np.zeros((n, params[f"V{i}"].shape[1]))
            for q in range(n):
                for h in range(2):
                    weights = np.exp(x[: q + 1] @ params[f"W{i}"][h].T @ x[q] / np.sqrt(4 + n))
                    out[q] += params[f"V{i}"][h] @ (weights / weights.sum() @ x[: q + 1])
                    if i == 1 and q >= 2:
                        seen = model.seen(params, tokens)[b, h, q - 2, : q + 1]
                        np.testing.assert_allclose(seen, weights / weights.sum(), atol=1e-14)
            x = out
        np.testing.assert_allclose(logits[b], x[2:], atol=1e-12)
    assert model.token_maps(params) is None


@pytest.mark.parametrize("layers", [1, 2])
def test_gradients_are_those_of_pytorch(layers):
    """The minimal student as a PyTorch function of its matrices, on one-hots, in float64."""
    model = ss.ContentHeads(vocab=5, heads=2, context=3, targets=4, layers=layers)
    chain = ss.LaggedChain.spans(5, spans=(2, 1), scale=2.0)
    loss = ss.ContentLoss(model=model, process=chain, sequences=9, seed=2)
    params = deep_params(model)
    leaves = {name: torch.tensor(block, requires_grad=True) for name, block in params.items()}
    tokens, n = torch.tensor(loss.seen.by_sequence.astype(np.int64)), model.positions
    x = torch.cat([torch.nn.functional.one_hot(tokens[:, :n], 5), torch.eye(n).expand(9, n, n)], dim=2).double()
    for i in ("",) if layers == 1 else ("1", "2"):
        scores = torch.einsum("bqi,hij,bsj->bhqs", x, leaves[f"W{i}"], x) / np.sqrt(model.inputs)
        weights = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -np.inf).softmax(-1)
        x = torch.einsum("bhqs,bsj,hoj->bqo", weights, x, leaves[f"V{i}"])
    value = torch.nn.functional.cross_entropy(x[:, 2:].reshape(-1, 5), tokens[:, 3:].reshape(-1))
    value.backward()
    assert loss.value(params) == pytest.approx(float(value.detach()), abs=1e-12)
    for name, block in loss.grad(params).items():
        np.testing.assert_allclose(block, leaves[name].grad.numpy(), atol=1e-10, err_msg=name)


def test_init():
    start = MODEL.init(3, 0.1)
    assert not start["V"].any()
    assert 0.09 < np.abs(start["W"]).max() <= 0.1
    np.testing.assert_array_equal(start["W"], MODEL.init(3, 0.1)["W"])
    assert not MODEL.init(0, 0.0)["W"].any()
    xavier = MODEL.init(3, kind="xavier")
    np.testing.assert_allclose(xavier["W"], start["W"] / 0.1 * np.sqrt(6 / (9 + 9)), rtol=1e-13)
    assert 0.9 * np.sqrt(1 / 3) < np.abs(xavier["V"]).max() <= np.sqrt(1 / 3), "values too, in the range of a square matrix"


def test_bad_arguments():
    with pytest.raises(ss.InputError, match="init scale is nan"):
        MODEL.init(0, np.nan)
    with pytest.raises(ss.InputError, match=r"expected tokens \(sequences, 5 or more\)"):
        MODEL.logits(some_params(), np.zeros((2, 4), dtype=int))
