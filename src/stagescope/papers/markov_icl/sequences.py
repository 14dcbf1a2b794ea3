"""Finite sequences: what the models F and T predict on them, which sequences there are, and named strategies [MIC:finite]."""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln

from stagescope.fields.softmax import softmax
from stagescope.memory import require_memory
from stagescope.papers.markov_icl.process import ChainPrior


def by_lag(v: Any, length: int) -> Any:
    """Layer 1 of every place (T, T): softmax of the scores of the lags over the places that are there."""
    from stagescope.autodiff import jax, jnp

    lag = np.arange(length)[:, None] - np.arange(length)
    seen = (lag >= 0) & (lag < v.shape[0])
    return jax.nn.softmax(jnp.where(seen, v[np.clip(lag, 0, v.shape[0] - 1)], -jnp.inf), axis=1)


def causal(v: np.ndarray, length: int) -> np.ndarray:
    """The same of plain numbers."""
    lag = np.arange(length)[:, None] - np.arange(length)
    seen = (lag >= 0) & (lag < len(v))
    return softmax(np.where(seen, v[np.clip(lag, 0, len(v) - 1)], -np.inf))


def pairs_before(tokens: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    """C_t = sum_{s <= t} h_s x e_{x_s} (N, T, k, k) with layer 1 given by its weights (T, T): what F reads [MIC:model-f]."""
    here = (tokens[..., None] == np.arange(k)).astype(float)
    return np.cumsum((weights @ here)[..., :, None] * here[..., None, :], axis=1)


def linear_logits(params: Any, tokens: Any, model: Any) -> Any:
    """Model F: logits_t = W[x_t] . C_t with C_t = sum_{s <= t} h_s x e_{x_s} (N, T, k), O(T k^2) in layer 2 [MIC:model-f]."""
    from stagescope.autodiff import jax, jnp

    here = jax.nn.one_hot(tokens, model.tokens)
    h = jnp.einsum("ts,nsm->ntm", by_lag(params["v"], tokens.shape[1]), here)
    pairs = jnp.cumsum(h[..., :, None] * here[..., None, :], axis=1)
    return jnp.einsum("ntm,ntmj->ntj", here @ model.square(params["W"]), pairs)


def readout_logits(params: Any, tokens: Any, model: Any) -> Any:
    """Model T: logits U o_t, o_t the causal softmax average of tokens with scores W[x_t] . h_s (N, T, k) [MIC:model-t].

    A query is known by its token alone, so running sums for each of the k tokens do for all places.
    """
    from stagescope.autodiff import jax, jnp

    here = jax.nn.one_hot(tokens, model.tokens)
    h = jnp.einsum("ts,nsm->ntm", by_lag(params["v"], tokens.shape[1]), here)
    scores = h @ params["W"].T
    weights = jnp.exp(scores - jax.lax.stop_gradient(jnp.max(scores, axis=1, keepdims=True)))
    sums = jnp.cumsum(weights[..., :, None] * here[..., None, :], axis=1)
    own = jnp.einsum("nti,ntij->ntj", here, sums)
    average = own / jnp.maximum(jnp.sum(own, axis=2, keepdims=True), 1e-300)
    return average @ params["U"]


class Enumerated:
    """All k^T sequences with their probabilities, the prior integrated out [MIC:enumeration].

    Rows of a Dirichlet prior give (1/k) prod_i G(k alpha)/G(k alpha + n_i) prod_j G(alpha + n_ij)/G(alpha). Two doubly
    stochastic tokens have one probability to leave a token, and counts of stays and changes.
    """

    def __init__(self, prior: ChainPrior, length: int) -> None:
        self.prior, self.length = prior, length
        require_memory("all sequences", "take a shorter --length, or --batch", prior.tokens**length, length, prior.tokens**2)

    @cached_property
    def tokens(self) -> np.ndarray:
        """(k^T, T)."""
        k = self.prior.tokens
        return np.arange(k**self.length)[:, None] // k ** np.arange(self.length)[::-1] % k

    @cached_property
    def weights(self) -> np.ndarray:
        """(k^T,), with sum one."""
        prior, tokens = self.prior, self.tokens
        k, alpha, order = prior.tokens, prior.concentration, prior.order
        contexts = sum(tokens[:, place : self.length - order + place] * k ** (order - 1 - place) for place in range(order))
        pairs = np.asarray(contexts) * k + tokens[:, order:]
        counts = np.stack([np.sum(pairs == pair, axis=1) for pair in range(k ** (order + 1))], axis=1).reshape(-1, k**order, k)
        if prior.doubly_stochastic:
            counts = np.stack([counts[:, 0, 0] + counts[:, 1, 1], counts[:, 0, 1] + counts[:, 1, 0]], axis=1)[:, None]
        rows = gammaln(k * alpha) - gammaln(k * alpha + counts.sum(axis=2))
        logs = rows.sum(axis=1) + np.sum(gammaln(alpha + counts) - gammaln(alpha), axis=(1, 2))
        return np.exp(logs - order * np.log(k))


def strategies(tokens: np.ndarray, k: int, alpha: float = 1.0, order: int = 1) -> dict[str, np.ndarray]:
    """Law of the next token by name (N, T - 1, k) after every place but the last [MIC:strategies].

    Uniform; unigram (n_j + 1)/(t + k); bigram (n_ij + alpha)/(n_i + k alpha), the Bayes rule of Dirichlet rows; trigram.
    """
    count, length = tokens.shape
    here = (tokens[..., None] == np.arange(k)).astype(float)
    seen = np.cumsum(here, axis=1)
    found = {"uniform": np.full((count, length - 1, k), 1 / k), "unigram": (seen + 1) / (seen.sum(axis=2, keepdims=True) + k)}
    context = np.zeros_like(tokens)
    for size, name in zip(range(1, order + 1), ("bigram", "trigram"), strict=False):
        context = context + np.pad(tokens, ((0, 0), (size - 1, 0)))[:, :length] * k ** (size - 1)
        at = (context[..., None] == np.arange(k**size)).astype(float)
        at[:, : size - 1] = 0.0  # not so many tokens yet
        moves = at[:, :-1, :, None] * here[:, 1:, None, :]
        before = np.concatenate([np.zeros((count, 1, k**size, k)), np.cumsum(moves, axis=1)], axis=1)
        own = np.einsum("nti,ntij->ntj", at, before)
        found[name] = (own + alpha) / (own.sum(axis=2, keepdims=True) + k * alpha)
    return {name: law[:, : length - 1] for name, law in found.items()}
