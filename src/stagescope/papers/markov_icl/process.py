"""Sequences that each come from a chain of their own, drawn from a prior [MIC:task].

The integral over the prior is a quadrature for two tokens, and the mean over fixed draws for more: those draws are the task.
"""

from functools import cached_property
from itertools import product
from typing import Literal

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.core.memory import require_memory
from stagescope.core.params import key
from stagescope.core.spec import Seed
from stagescope.processes.markov_chain import Process

SWEEPS = 500
"""Normalisations of rows and columns that make a matrix doubly stochastic: each halves the error or better at k <= 10."""


class ChainPrior(Process):
    """A prior over Markov chains on k tokens, of order 1 or 2: rows ~ Dirichlet(concentration, ..., concentration).

    `doubly_stochastic` is the control in which unigrams are useless: for two tokens p = q ~ Beta, for more the rows are scaled
    until rows and columns sum to one. `nodes` are those of the quadrature in each number of a two-token chain, `draws` is the
    number of chains drawn from `seed` where there are more tokens. The first tokens of a sequence are uniform.
    """

    tokens: int = Limits(default=2, ge=2, le=20)
    concentration: float = Limits(default=1.0, gt=0)
    doubly_stochastic: bool = False
    order: Literal[1, 2] = 1
    nodes: int = Limits(default=24, ge=2, le=200)
    draws: int = Limits(default=1500, ge=1)
    seed: Seed = 0

    @model_validator(mode="after")
    def _valid(self) -> "ChainPrior":
        if self.doubly_stochastic and self.order == 2:
            raise ValueError("doubly_stochastic is a prior of chains of order 1; leave it out, or take order 1")
        require_memory("the chains", "take fewer draws, nodes or tokens", self.chains, *self._shape)
        return self

    @property
    def _shape(self) -> tuple[int, int]:
        """Contexts of a chain, and tokens."""
        return self.tokens**self.order, self.tokens

    @property
    def chains(self) -> int:
        """Number of chains that the population loss is a sum over."""
        if self.tokens > 2:
            return self.draws
        return self.nodes if self.doubly_stochastic else self.nodes ** self._shape[0]

    @cached_property
    def _quadrature(self) -> tuple[np.ndarray, np.ndarray]:
        """Transitions (C, k^order, k) and weights (C,)."""
        if self.tokens > 2:
            return self.draw(key(self.seed, "chains"), self.draws), np.full(self.draws, 1 / self.draws)
        # nodes of the Beta law of one probability: Gauss-Legendre, Gauss-Jacobi unless it is uniform
        if self.concentration == 1:
            x, w = np.polynomial.legendre.leggauss(self.nodes)
        else:
            from scipy.special import roots_jacobi

            x, w = roots_jacobi(self.nodes, self.concentration - 1, self.concentration - 1)
        nodes, weights = (1 + x) / 2, w / w.sum()
        if self.doubly_stochastic:  # of leaving a token, the same for both
            return leaving_with(nodes), weights
        rows = np.array(list(product(nodes, repeat=self._shape[0])))
        return np.stack([1 - rows, rows], axis=2), np.array(list(map(np.prod, product(weights, repeat=self._shape[0]))))

    @property
    def transitions(self) -> np.ndarray:
        """P (C, k^order, k) of every chain; the context's last token is its last digit in base k."""
        return self._quadrature[0]

    @property
    def weights(self) -> np.ndarray:
        """Weight of every chain (C,)."""
        return self._quadrature[1]

    def draw(self, random: np.random.Generator, count: int) -> np.ndarray:
        """Chains of the prior (count, k^order, k)."""
        if self.doubly_stochastic and self.tokens == 2:
            leave = random.beta(self.concentration, self.concentration, size=count)
            return leaving_with(leave)
        rows = random.gamma(self.concentration, size=(count, *self._shape)) + 1e-300  # a tiny shape draws zeros
        rows /= rows.sum(axis=2, keepdims=True)
        for _ in range(SWEEPS if self.doubly_stochastic else 0):
            rows /= rows.sum(axis=1, keepdims=True)
            rows /= rows.sum(axis=2, keepdims=True)
        return rows

    @cached_property
    def contexts(self) -> np.ndarray:
        """The stationary law of the last `order` tokens (C, k^order)."""
        return stationary(self.transitions)

    @cached_property
    def marginal(self) -> np.ndarray:
        """pi (C, k): the stationary law of a token."""
        return self.contexts.reshape(len(self.contexts), -1, self.tokens).sum(axis=1)

    @cached_property
    def bigrams(self) -> np.ndarray:
        """P(j | i) of the stationary law (C, k, k): the transitions themselves for order 1."""
        count, k = len(self.contexts), self.tokens
        pairs = (self.contexts[:, :, None] * self.transitions).reshape(count, -1, k, k).sum(axis=1)
        return pairs / self.marginal[:, :, None]

    def powers(self, lags: int) -> np.ndarray:
        """P^d of every chain for the lags d = 0 .. lags - 1 (lags, C, k, k)."""
        require_memory("the powers of the chains", "take fewer lags, nodes or draws", lags, self.chains, *self._shape)
        powers = [np.broadcast_to(np.eye(self.tokens), self.bigrams.shape)]
        for _ in range(lags - 1):
            powers.append(powers[-1] @ self.transitions)
        return np.stack(powers)

    def windows(self, length: int) -> np.ndarray:
        """The stationary law of `length` tokens in a row (C, k^length), the last token the last digit in base k."""
        count, k, states = self.chains, self.tokens, self._shape[0]
        require_memory("the law of the windows", "take fewer lags or nodes", count, k**length)
        law = self.marginal if length == 1 else self.contexts
        for size in range(self.order, length):
            after = self.transitions[:, np.arange(k**size) % states]
            law = (law[:, :, None] * after).reshape(count, -1)
        return law

    @cached_property
    def entropies(self) -> np.ndarray:
        """Loss of the uniform, unigram, bigram (and trigram) estimator on an infinite context [MIC:entropies]."""
        of_chains = [_entropy(self.marginal), np.sum(self.marginal * _entropy(self.bigrams), axis=1)]
        if self.order == 2:
            of_chains.append(np.sum(self.contexts * _entropy(self.transitions), axis=1))
        return np.array([float(np.log(self.tokens)), *(float(self.weights @ values) for values in of_chains)])

    def floor(self) -> float:
        """The entropy rate, mean over chains: what the best predictor reaches on an infinite context."""
        return float(self.entropies[-1])

    def sample(self, random: np.random.Generator, count: int, length: int) -> np.ndarray:
        """Token sequences (count, length), each from a chain of its own."""
        require_memory("the sample", "take fewer or shorter sequences", count, length)
        return sampled(random, self.draw(random, count), length, self.order)


def leaving_with(chance: np.ndarray) -> np.ndarray:
    """Chains of two tokens that leave each with the same probability (C, 2, 2)."""
    return np.array([[1 - chance, chance], [chance, 1 - chance]]).transpose(2, 0, 1)


def stationary(transitions: np.ndarray) -> np.ndarray:
    """The stationary law of the contexts (C, k^order) of chains (C, k^order, k)."""
    count, states, k = transitions.shape
    moves = np.zeros((count, states, states))
    for context in range(states):
        moves[:, context, (context * k) % states + np.arange(k)] = transitions[:, context]
    system = moves.transpose(0, 2, 1) - np.eye(states)
    system[:, -1] = 1.0  # they sum to one
    return np.linalg.solve(system, np.broadcast_to(np.eye(states)[:, -1:], (count, states, 1)))[..., 0]


def sampled(random: np.random.Generator, chains: np.ndarray, length: int, order: int = 1) -> np.ndarray:
    """One sequence (count, length) of each chain (count, k^order, k); the first tokens are uniform."""
    count, states, k = chains.shape
    tokens = random.integers(k, size=(count, length))
    draws, sequences = random.random((length, count)), np.arange(count)
    below = np.cumsum(chains, axis=2)[:, :, :-1]
    context = np.zeros(count, dtype=int)
    for place in range(length):
        if place >= order:
            tokens[:, place] = np.sum(draws[place][:, None] >= below[sequences, context], axis=1)
        context = (context * k + tokens[:, place]) % states
    return tokens


def _entropy(law: np.ndarray) -> np.ndarray:
    """Over the last axis, nats."""
    return -np.sum(law * np.log(np.where(law > 0, law, 1.0)), axis=-1)
