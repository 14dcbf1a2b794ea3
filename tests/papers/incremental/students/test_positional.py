"""Positional heads: what a target sees, logits sequence by sequence, initial parameters."""

import numpy as np
import pytest

import stagescope as ss

MODEL = ss.PositionalHeads(vocab=4, heads=2, context=3, targets=3)


def some_params(seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) for name, shape in MODEL.shapes.items()}


def test_targets_see_what_is_before_them():
    attention = MODEL.attention(some_params())
    np.testing.assert_allclose(attention.sum(axis=-1), 1, rtol=1e-14)
    for t in range(3):
        assert np.all(attention[:, t, : 3 + t] > 0)
        assert np.all(attention[:, t, 3 + t :] == 0)


def test_logits_equal_the_sum_over_heads_and_positions():
    params, tokens = some_params(), np.random.default_rng(1).integers(4, size=(5, 6))
    attention, found = MODEL.attention(params), MODEL.logits(params, tokens)
    for n in range(5):
        for t in range(3):
            sums = [attention[h, t, s] * params["V"][h][:, tokens[n, s]] for h in range(2) for s in range(3 + t)]
            np.testing.assert_allclose(found[n, t], np.sum(sums, axis=0), atol=1e-14)


def test_frames_have_attention_at_once():
    both = [some_params(seed) for seed in (0, 1)]
    stacked = {name: np.stack([params[name] for params in both]) for name in both[0]}
    np.testing.assert_array_equal(MODEL.attention(stacked), [MODEL.attention(params) for params in both])


def test_init_is_small_scores_and_no_values():
    start, again = MODEL.init(3, 0.1), MODEL.init(3, 0.1)
    np.testing.assert_array_equal(start["a"], again["a"])
    assert not start["V"].any()
    assert not start["a"][:, ~MODEL.visible].any()
    assert np.all(start["a"][:, MODEL.visible] != 0)
    assert not np.array_equal(start["a"], MODEL.init(4, 0.1)["a"])
    assert not MODEL.init(0, 0.0)["a"].any()


@pytest.mark.parametrize("seed", [-1, -2, 2**63, 2**64 - 1])
def test_seeds_that_would_collapse_are_refused(seed):
    with pytest.raises(ss.InputError, match=rf"seed is {seed}, but must be >= 0 and below 2\^63"):
        MODEL.init(seed)
    assert not np.array_equal(MODEL.init(2**63 - 1)["a"], MODEL.init(2**63 - 2)["a"])


def test_bad_arguments():
    with pytest.raises(ss.InputError, match="init scale is -1"):
        MODEL.init(0, -1.0)
    with pytest.raises(ss.InputError, match="heads"):
        ss.PositionalHeads(vocab=4, heads=0, context=3, targets=3)
    with pytest.raises(ss.InputError, match=r"expected tokens \(sequences, 5 or more\)"):
        MODEL.logits(some_params(), np.zeros((2, 4), dtype=int))
