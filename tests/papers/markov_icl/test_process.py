"""Chains with a prior: levels, windows, enumeration, samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagescope.core.errors import InputError
from stagescope.core.spec import build
from stagescope.papers.markov_icl.finite import Enumerated, strategies
from stagescope.papers.markov_icl.process import ChainPrior, sampled, stationary


def test_entropies_of_two_tokens():
    """Numbers of the science page, section 1."""
    np.testing.assert_allclose(ChainPrior().entropies, [0.69315, 0.56383, 0.48089], atol=1e-5)
    np.testing.assert_allclose(ChainPrior(doubly_stochastic=True).entropies, [0.69315, 0.69315, 0.5], atol=1e-5)
    np.testing.assert_allclose(ChainPrior(order=2, nodes=10).entropies, [0.69315, 0.60657, 0.55028, 0.46977], atol=1e-5)


@given(tokens=st.integers(2, 4), order=st.integers(1, 2), alpha=st.floats(0.3, 3), seed=st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_chains_are_stationary(tokens, order, alpha, seed):
    prior = ChainPrior(tokens=tokens, order=order, concentration=alpha, nodes=3, draws=5, seed=seed)
    assert build(prior.describe()) == prior
    np.testing.assert_allclose(prior.transitions.sum(axis=2), 1, atol=1e-12)
    assert prior.weights.sum() == pytest.approx(1)
    windows = prior.windows(order + 2)
    np.testing.assert_allclose(windows.sum(axis=1), 1, atol=1e-12)
    last = windows.reshape(prior.chains, -1, tokens).sum(axis=1)
    np.testing.assert_allclose(last, prior.marginal, atol=1e-12)
    assert np.all(np.diff(prior.entropies) <= 1e-12)


def test_doubly_stochastic_chains_of_three_tokens():
    prior = ChainPrior(tokens=3, doubly_stochastic=True, draws=20)
    np.testing.assert_allclose(prior.transitions.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(prior.marginal, 1 / 3, atol=1e-9)


@pytest.mark.parametrize(
    ("prior", "length"),
    [
        (ChainPrior(), 8),
        (ChainPrior(concentration=0.5), 7),
        (ChainPrior(tokens=3, draws=1), 5),
        (ChainPrior(doubly_stochastic=True), 7),
        (ChainPrior(order=2, nodes=2), 6),
    ],
)
def test_weights_of_all_sequences_are_those_of_samples(prior, length):
    everything = Enumerated(prior, length)
    assert everything.weights.sum() == pytest.approx(1, abs=1e-12)
    drawn = prior.sample(np.random.default_rng(0), 20_000, length)
    place = drawn @ (prior.tokens ** np.arange(length)[::-1])
    counts = np.bincount(place, minlength=len(everything.weights))
    expected = 20_000 * everything.weights
    assert np.sum((counts - expected) ** 2 / expected) / len(expected) < 1.4  # chi square per sequence


def test_losses_of_strategies_at_eight_tokens():
    """Science page: mean over positions, T = 8."""
    everything = Enumerated(ChainPrior(), 8)
    found = strategies(everything.tokens, 2)
    chosen = [np.take_along_axis(law, everything.tokens[:, 1:, None], axis=2)[..., 0] for law in found.values()]
    losses = [-np.sum(everything.weights * np.log(each).mean(axis=1)) for each in chosen]
    np.testing.assert_allclose(losses, [0.69315, 0.65852, 0.61615], atol=1e-5)


def test_a_trigram_strategy_learns_a_chain_of_order_two():
    chain = np.array([[[0.9, 0.1], [0.1, 0.9], [0.2, 0.8], [0.8, 0.2]]])
    tokens = sampled(np.random.default_rng(0), np.repeat(chain, 5, axis=0), 4000, order=2)
    law = strategies(tokens, 2, order=2)["trigram"][:, -1]
    np.testing.assert_allclose(law, chain[0, tokens[:, -3] * 2 + tokens[:, -2]], atol=0.05)
    assert stationary(chain).sum() == pytest.approx(1)


def test_a_doubly_stochastic_prior_of_order_two_is_refused():
    with pytest.raises(InputError, match="order 1"):
        ChainPrior(order=2, doubly_stochastic=True)
