"""What the published figures plot, against direct computation sequence by sequence."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.papers.focus_dilution import (
    TokenCurves,
    last_token_losses,
    mean_cosine,
    neuron_cosines,
    neuron_order,
    perpendicular_norms,
    position_entropies,
    principal_paths,
    probe_attention,
    token_curves,
)

CHAIN = ss.LazyChain(pi=(0.6, 0.3, 0.1), persistence=0.4)
MODEL = ss.TokenAttention(vocab=3, width=5, scale=1.3)
LENGTH = 4


def curves_of(law, frames=2):
    """Curves of random parameters that are far from the start."""
    blocks = [MODEL.init(seed, 0.8) for seed in range(frames)]
    return TokenCurves(np.arange(frames, dtype=float), {n: np.array([b[n] for b in blocks]) for n in MODEL.shapes}, law)


def sampled(**given):
    return ss.TokenSampled(model=MODEL, process=CHAIN, sequences=50, length=LENGTH, start="uniform", **given)


def every_sequence():
    """All contexts with their probabilities, the first token uniform."""
    for number in range(3**LENGTH):
        tokens = [number // 3**k % 3 for k in range(LENGTH)]
        steps = [CHAIN.transition[a, b] for a, b in pairwise(tokens)]
        yield np.array(tokens), np.prod(steps) / 3


def by_definition(curves, frame, tokens):
    """softmax(Z WQ WK^T Z^T) Z W1 at the last position, Z = rows of W0: Definition 2.2 with a scale."""
    w = {name: block[frame] for name, block in curves.params.items()}
    z = w["W0"][tokens]
    weights = np.exp(MODEL.scale * z[-1] @ w["WQ"] @ w["WK"].T @ z.T)
    weights /= weights.sum()
    logits = weights @ z @ w["W1"]
    return weights, logits - np.log(np.exp(logits).sum())


def test_losses_and_entropies_by_last_token_are_means_over_all_sequences():
    curves = curves_of(sampled())
    losses, entropies = last_token_losses(curves), position_entropies(curves)
    for frame in range(2):
        sums, shares = np.zeros((2, 3)), np.zeros(3)
        for tokens, probability in every_sequence():
            weights, logs = by_definition(curves, frame, tokens)
            last = tokens[-1]
            shares[last] += probability
            sums[0, last] -= probability * CHAIN.transition[last] @ logs
            sums[1, last] -= probability * weights @ np.log(weights)
        np.testing.assert_allclose(losses.by_token[frame], sums[0] / shares, atol=1e-12)
        np.testing.assert_allclose(entropies[frame], sums[1] / shares, atol=1e-12)
        np.testing.assert_allclose(losses.shares, shares, atol=1e-12)
        assert losses.total[frame] == pytest.approx(sums[0].sum(), abs=1e-12)


def test_no_loss_is_below_the_entropy_of_the_next_token():
    curves = curves_of(sampled(), frames=6)
    losses = last_token_losses(curves)
    assert np.all(losses.by_token > losses.floor)


def test_fresh_sequences_agree_with_the_exact_law_and_are_not_those_of_the_training():
    law = sampled(seed=3)
    curves = curves_of(law)
    exact, drawn = last_token_losses(curves), last_token_losses(curves, 40_000, seed=3)
    np.testing.assert_allclose(drawn.by_token, exact.by_token, atol=0.08)  # four standard errors of 6000 sequences
    np.testing.assert_allclose(position_entropies(curves, 40_000), position_entropies(curves), atol=0.02)
    trained = last_token_losses(curves, law.sequences, seed=law.seed).total
    assert np.all(np.abs(trained - [law.value({n: b[k] for n, b in curves.params.items()}) for k in range(2)]) > 1e-6)


def test_the_loss_of_a_population_run_splits_into_the_losses_of_its_queries():
    law = ss.population_loss(MODEL, CHAIN)
    curves = curves_of(law)
    losses = last_token_losses(curves)
    np.testing.assert_allclose(losses.shares, CHAIN.stationary)
    np.testing.assert_allclose(losses.by_token @ losses.shares, losses.total, atol=1e-12)
    assert losses.total[0] == pytest.approx(law.value({n: b[0] for n, b in curves.params.items()}), abs=1e-12)
    with pytest.raises(InputError, match="infinitely long"):
        position_entropies(curves)


def test_at_a_flat_start_entropies_are_log_length_and_losses_log_vocab():
    blocks = {name: np.zeros((1, *shape)) for name, shape in MODEL.shapes.items()}
    curves = TokenCurves(np.zeros(1), blocks, sampled())
    np.testing.assert_allclose(position_entropies(curves), np.log(LENGTH))
    np.testing.assert_allclose(last_token_losses(curves).by_token, np.log(3))


def test_curves_of_a_stored_run_have_its_own_losses(tmp_path):
    run = ss.run_study("focus-dilution", "sampled", steps=3, sequences=64, length=5, out=tmp_path / "run", progress=False)
    assert last_token_losses(token_curves(run)).by_token.shape == (run.frames, 4)


def test_cosines_are_of_columns_and_an_order_puts_opposite_groups_apart():
    sign = np.array([1, -1, 1, 1, -1, -1.0])
    weights = np.outer(np.arange(1.0, 5), sign)
    np.testing.assert_allclose(neuron_cosines(weights), np.outer(sign, sign), atol=1e-12)
    ordered = sign[neuron_order(neuron_cosines(weights))]
    assert np.count_nonzero(np.diff(ordered)) == 1
    assert mean_cosine(weights) == pytest.approx(1)
    assert mean_cosine(np.eye(4)) == 0
    assert np.all(neuron_cosines(np.zeros((2, 3))) == 0)  # a neuron without weights has no direction


def test_the_mean_cosine_of_random_neurons_is_that_of_random_directions():
    """E|cos| in R^4 is 4/(3 pi)."""
    assert mean_cosine(np.random.default_rng(0).normal(size=(4, 800))) == pytest.approx(4 / (3 * np.pi), abs=0.003)


@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_perpendicular_norms_by_least_squares(seed, token):
    rows = np.random.default_rng(seed).normal(size=(2, 4, 6))
    for found, w0 in zip(perpendicular_norms(rows, token), rows, strict=True):
        rest = [np.linalg.lstsq(w0[token][:, None], row)[1] for row in w0]
        expected = [np.sqrt(left[0]) if len(left) else 0.0 for left in rest]
        np.testing.assert_allclose(found, expected, atol=1e-7)


def test_attention_over_a_probe_sequence_is_the_softmax_of_its_scores():
    scores = np.random.default_rng(1).normal(size=(3, 5, 5))
    sequence = (4, 1, 1, 0)
    found = probe_attention(scores, sequence)
    for t in range(3):
        weights = np.exp([[scores[t, i, j] for j in sequence] for i in sequence])
        np.testing.assert_allclose(found[t], weights / weights.sum(axis=1, keepdims=True))
    with pytest.raises(InputError, match="0 to 4"):
        probe_attention(scores, (0, 5))
    with pytest.raises(InputError, match="no tokens"):
        probe_attention(scores, ())


def test_principal_paths_rebuild_a_plane_and_know_where_zero_is():
    rng = np.random.default_rng(2)
    plane = np.linalg.qr(rng.normal(size=(6, 2)))[0].T
    rows = rng.normal(size=(7, 3, 2)) @ plane + 0.3 * plane[0]
    paths, shares, origin = principal_paths(rows)
    assert shares.sum() == pytest.approx(1)
    assert shares[0] >= shares[1]
    np.testing.assert_allclose(np.linalg.norm(paths - origin, axis=2), np.linalg.norm(rows, axis=2), atol=1e-12)
    assert np.all(paths[-1, 0] >= 0)
