"""Finite sequences: what the models F and T predict on them, exact losses over all of them, or on fresh batches [MIC:finite]."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from pydantic import Field as Limits
from pydantic import SerializeAsAny, model_validator
from scipy.special import gammaln

from stagescope.core.memory import require_memory
from stagescope.core.params import key
from stagescope.core.spec import Seed
from stagescope.flow.by_kernel import Kernel
from stagescope.flow.softmax import softmax
from stagescope.papers.markov_icl.loss import BLOCKS, Exact, InContext
from stagescope.papers.markov_icl.model import LinearMatch, MatchModel, ReadoutMatch
from stagescope.papers.markov_icl.process import ChainPrior


def one_hot(tokens: np.ndarray, k: int) -> np.ndarray:
    return (tokens[..., None] == np.arange(k)).astype(float)


def places(lags: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Which lag a place (row) sees another place at (T, T), and whether it sees it."""
    lag = np.arange(length)[:, None] - np.arange(length)
    return np.clip(lag, 0, lags - 1), (lag >= 0) & (lag < lags)


def causal(v: np.ndarray, length: int) -> np.ndarray:
    """Layer 1 of every place (T, T): softmax of the scores of the lags over the places that are there."""
    lag, visible = places(len(v), length)
    return softmax(np.where(visible, v[lag], -np.inf))


def pairs_before(tokens: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    """C_t = sum_{s <= t} h_s x e_{x_s} (N, T, k, k) with layer 1 given by its weights (T, T): what F reads [MIC:model-f]."""
    hot = one_hot(tokens, k)
    return np.cumsum((weights @ hot)[..., :, None] * hot[..., None, :], axis=1)


def _layer_one(params: Any, tokens: Any, k: int) -> Any:
    """Tokens and what layer 1 has at every place (N, T, k), traceable by JAX."""
    from stagescope.flow.autodiff import jax, jnp

    hot, (lag, visible) = jax.nn.one_hot(tokens, k), places(params["v"].shape[0], tokens.shape[1])
    attention = jax.nn.softmax(jnp.where(visible, params["v"][lag], -jnp.inf), axis=1)
    return hot, jnp.einsum("ts,nsm->ntm", attention, hot)


def linear_logits(params: Any, tokens: Any, model: Any) -> Any:
    """Model F: logits_t = W[x_t] . C_t with C_t = sum_{s <= t} h_s x e_{x_s} (N, T, k), O(T k^2) in layer 2 [MIC:model-f]."""
    from stagescope.flow.autodiff import jnp

    hot, h = _layer_one(params, tokens, model.tokens)
    pairs = jnp.cumsum(h[..., :, None] * hot[..., None, :], axis=1)
    return jnp.einsum("ntm,ntmj->ntj", hot @ model.square(params["W"]), pairs)


def readout_logits(params: Any, tokens: Any, model: Any) -> Any:
    """Model T: logits U o_t, o_t the causal softmax average of tokens with scores W[x_t] . h_s (N, T, k) [MIC:model-t].

    A query is known by its token alone, so running sums for each of the k tokens do for all places.
    """
    from stagescope.flow.autodiff import jax, jnp

    hot, h = _layer_one(params, tokens, model.tokens)
    scores = h @ params["W"].T
    weights = jnp.exp(scores - jax.lax.stop_gradient(jnp.max(scores, axis=1, keepdims=True)))
    sums = jnp.cumsum(weights[..., :, None] * hot[..., None, :], axis=1)
    attended = jnp.einsum("nti,ntij->ntj", hot, sums)
    average = attended / jnp.maximum(jnp.sum(attended, axis=2, keepdims=True), 1e-300)
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
    hot = one_hot(tokens, k)
    occurrences = np.cumsum(hot, axis=1)
    laws = {
        "uniform": np.full((count, length - 1, k), 1 / k),
        "unigram": (occurrences + 1) / (occurrences.sum(axis=2, keepdims=True) + k),
    }
    context = np.zeros_like(tokens)
    for size, name in zip(range(1, order + 1), ("bigram", "trigram"), strict=False):
        context = context + np.pad(tokens, ((0, 0), (size - 1, 0)))[:, :length] * k ** (size - 1)
        contexts = one_hot(context, k**size)
        contexts[:, : size - 1] = 0.0  # not so many tokens yet
        moves = contexts[:, :-1, :, None] * hot[:, 1:, None, :]
        before = np.concatenate([np.zeros((count, 1, k**size, k)), np.cumsum(moves, axis=1)], axis=1)
        followers = np.einsum("nti,ntij->ntj", contexts, before)
        laws[name] = (followers + alpha) / (followers.sum(axis=2, keepdims=True) + k * alpha)
    return {name: law[:, : length - 1] for name, law in laws.items()}


MOST_SEQUENCES = 20_000
"""Sequences that are enumerated at most: a gradient then takes some ten milliseconds."""


class FiniteLoss(InContext):
    """Mean cross-entropy of the next token after every place but the last: model F or T, by the type of the model."""

    model: SerializeAsAny[MatchModel]
    length: int = Limits(ge=3)
    letters: ClassVar = {LinearMatch: "F", ReadoutMatch: "T"}

    @model_validator(mode="after")
    def _known_model(self) -> "FiniteLoss":
        if type(self.model) not in self.letters:
            raise ValueError(f"finite sequences are for LinearMatch (F) and ReadoutMatch (T), not {type(self.model).__name__}")
        if self.model.lags > self.length:
            raise ValueError(f"{self.model.lags} lags are more than the {self.length} tokens of a sequence; take fewer lags")
        return self

    @cached_property
    @abstractmethod
    def _sequences(self) -> dict[str, np.ndarray]:
        """The sequences of the recorded loss (N, T), and their weights (N,)."""

    @property
    def data(self) -> Any:
        return self._sequences

    @property
    def logits(self) -> Callable[[Any, Any, Any], Any]:
        return readout_logits if isinstance(self.model, ReadoutMatch) else linear_logits

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.flow.autodiff import jax, jnp

        tokens = data["tokens"]
        predicted = jax.nn.log_softmax(self.logits(params, tokens, self.model)[:, :-1], axis=-1)
        likelihoods = jnp.take_along_axis(predicted, tokens[:, 1:, None], axis=-1)[..., 0]
        return -jnp.sum(data["weights"] * jnp.mean(likelihoods, axis=1))


class FiniteExact(Exact, FiniteLoss):
    """Over all k^T sequences, with the prior integrated out [MIC:enumeration].

    Where the model treats all tokens alike, the first token is taken to be 0: the others are its copies.
    """

    model: SerializeAsAny[MatchModel]  # said again: the first of two bases leaves its type open

    @model_validator(mode="after")
    def _few(self) -> "FiniteExact":
        count = self.process.tokens**self.length
        if count > MOST_SEQUENCES:
            problem = f"{self.process.tokens}^{self.length} = {count:,} sequences are more than {MOST_SEQUENCES:,}"
            raise ValueError(f"{problem}; take a shorter --length, or --batch for sampled ones")
        if self.process.doubly_stochastic and self.process.tokens > 2:
            raise ValueError("doubly stochastic chains of three tokens or more have no closed weights; take --batch")
        return self

    @cached_property
    def everything(self) -> Enumerated:
        return Enumerated(self.process, self.length)

    @cached_property
    def _sequences(self) -> dict[str, np.ndarray]:
        enumerated = self.everything
        tokens, weights = enumerated.tokens, enumerated.weights
        if isinstance(self.model, LinearMatch) and self.model.form != "free":
            half = tokens[:, 0] == 0
            tokens, weights = tokens[half], self.process.tokens * weights[half]
        return {"tokens": tokens, "weights": weights}

    @cached_property
    def kernel(self) -> Kernel | None:
        from stagescope.papers.markov_icl.kernels import PREFIX_WEIGHTS, hold_prefixes, prefix_gradient

        if not isinstance(self.model, LinearMatch):
            return None
        size = self.model.tokens, self.model.lags, self.length
        constants = hold_prefixes(*size, self.model.place_of_form, self.data["weights"])
        return Kernel(prefix_gradient, constants, PREFIX_WEIGHTS, BLOCKS)


class FiniteSampled(FiniteLoss):
    """On fresh sequences: every step of a descent sees `batch` new ones, each from a chain of its own.

    The recorded loss is over `watched` sequences that no step sees.
    """

    batch: int = Limits(default=64, ge=1)
    watched: int = Limits(default=1000, ge=2)
    seed: Seed = 0

    def check_room(self) -> None:
        shape = (max(self.batch, self.watched), self.length, self.process.tokens**2)
        require_memory("these sequences", "take fewer or shorter ones", *shape)

    def sequences(self, count: int, *purpose: str | int) -> np.ndarray:
        return self.process.sample(key(self.seed, "sequences", *purpose), count, self.length)

    @cached_property
    def _sequences(self) -> dict[str, np.ndarray]:
        return _equally_weighted(self.sequences(self.watched, "watched"))

    def draw(self, step: int) -> Any:
        return _equally_weighted(self.sequences(self.batch, "step", step))


def _equally_weighted(tokens: np.ndarray) -> dict[str, np.ndarray]:
    return {"tokens": tokens, "weights": np.full(len(tokens), 1 / len(tokens))}
