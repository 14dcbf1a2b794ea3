"""Where plateaus lie: least losses of restricted classes for R and F, entropies for S and S3, losses of strategies for T.

With layer 1 held, R and F are linear in W and the loss is convex: Newton's method finds its least value [MIC:classes].
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.errors import StagescopeError
from stagescope.fields.softmax import log_softmax
from stagescope.papers.markov_icl.finite import FiniteLoss
from stagescope.papers.markov_icl.loss import LinearPopulation
from stagescope.papers.markov_icl.model import LinearMatch
from stagescope.papers.markov_icl.sequences import pairs_before, strategies

NEWTON, ENOUGH = 200, 1e-13
"""Steps at most, and the squared length of a Newton step at which the loss no longer changes in double precision."""

SAME = 1e-9
"""Nats: levels that differ by less are equal up to rounding, as those of F on three tokens, and there is no step between them."""


@dataclass(frozen=True)
class Levels:
    """Names of the strategies, the loss of each, and the best (a, b) of its class where it is one."""

    names: tuple[str, ...]
    losses: np.ndarray
    best: tuple[np.ndarray | None, ...]


@dataclass(frozen=True)
class Class:
    """A class of logits a f_0 + b f_1: features (2, N, k), the law to be predicted (N, k), and weights (N,)."""

    features: np.ndarray
    law: np.ndarray
    weights: np.ndarray

    def loss(self, parts: np.ndarray) -> float:
        logs = log_softmax(np.tensordot(parts, self.features, axes=1))
        return float(-np.sum(self.weights[:, None] * self.law * logs))

    def slope(self, parts: np.ndarray) -> np.ndarray:
        """-dL/d(a, b)."""
        p = np.exp(log_softmax(np.tensordot(parts, self.features, axes=1)))
        return np.einsum("n,fnk,nk->f", self.weights, self.features, self.law - p)

    def least(self) -> tuple[float, np.ndarray]:
        """The least loss and where it is."""
        parts = np.zeros(2)
        for _ in range(NEWTON):
            p = np.exp(log_softmax(np.tensordot(parts, self.features, axes=1)))
            centred = self.features - np.sum(self.features * p, axis=2, keepdims=True)
            curve = np.einsum("n,fnk,gnk,nk->fg", self.weights, centred, centred, p, optimize=True)
            slope = self.slope(parts)
            step = np.linalg.lstsq(curve, slope, rcond=1e-13)[0]
            while self.loss(parts + step) > self.loss(parts) + 1e-14:
                step = step / 2
                if step @ step < ENOUGH**2:
                    break
            parts = parts + step
            if step @ slope < ENOUGH:
                return self.loss(parts), parts
        raise StagescopeError(f"the least loss of a class was not found in {NEWTON} steps of Newton's method")


def class_of(law: Any, attention: np.ndarray) -> Class:
    """The class of R or F with layer 1 held at attention A over the lags."""
    return _infinite(law, attention) if isinstance(law, LinearPopulation) else _finite(law, attention)


def _infinite(law: LinearPopulation, attention: np.ndarray) -> Class:
    tables, k = law.tables, law.model.tokens
    matched = np.tensordot(attention, tables["powers"], axes=1)
    common = np.broadcast_to(law.process.marginal[:, None, :], matched.shape)
    features = np.stack([common, matched]).reshape(2, -1, k)
    return Class(features, tables["law"].reshape(-1, k), tables["mass"].ravel())


def _finite(law: FiniteLoss, attention: np.ndarray) -> Class:
    """Counts n_j before a place, and counts of tokens whose h is that of the current token."""
    data, k = law.data, law.model.tokens
    tokens, length = data["tokens"], law.length
    here = (tokens[..., None] == np.arange(k)).astype(float)
    lag = np.arange(length)[:, None] - np.arange(length)
    weights = np.where((lag >= 0) & (lag < len(attention)), attention[np.clip(lag, 0, len(attention) - 1)], 0.0)
    lost = weights.sum(axis=1) == 0  # nothing attended is there yet: only the place itself
    weights[lost, lost] = 1.0
    pairs = pairs_before(tokens, weights / weights.sum(axis=1, keepdims=True), k)
    features = np.stack([pairs.sum(axis=2), np.einsum("ntm,ntmj->ntj", here, pairs)])[:, :, :-1]
    shares = np.repeat(data["weights"][:, None], length - 1, axis=1) / (length - 1)
    return Class(features.reshape(2, -1, k), here[:, 1:].reshape(-1, k), shares.ravel())


def one_lag(lags: int, lag: int) -> np.ndarray:
    return np.eye(lags)[lag]


def levels(law: Any) -> Levels:
    """The ladder of a loss: uniform, unigram, bigram, for chains of order 2 trigram.

    Under a doubly stochastic prior a unigram is no better than the uniform prediction, and its level is left out: a class of R
    with even attention is below it, but only with a match that grows with the number of lags.
    """
    linear = isinstance(law.model, LinearMatch)
    found = _of_classes(law) if linear else _of_strategies(law) if isinstance(law, FiniteLoss) else _of_entropies(law)
    if not law.process.doubly_stochastic:
        return found
    kept = [place for place, name in enumerate(found.names) if name != "unigram"]
    return Levels(tuple(found.names[i] for i in kept), found.losses[kept], tuple(found.best[i] for i in kept))


def _of_classes(law: Any) -> Levels:
    lags, top = law.model.lags, float(np.log(law.model.tokens))
    unigram, bigram = (class_of(law, held).least() for held in (np.full(lags, 1 / lags), one_lag(lags, 1)))
    same = abs(unigram[0] - bigram[0]) < SAME
    losses = np.array([top, unigram[0], unigram[0] if same else bigram[0]])
    return Levels(("uniform", "unigram", "bigram"), losses, (np.zeros(2), unigram[1], bigram[1]))


def _of_entropies(law: Any) -> Levels:
    found = law.process.entropies
    return Levels(("uniform", "unigram", "bigram", "trigram")[: len(found)], found, (None,) * len(found))


def _of_strategies(law: FiniteLoss) -> Levels:
    """Losses of the strategies on the very sequences that the recorded loss is over."""
    tokens, weights = law.data["tokens"], law.data["weights"]
    found = strategies(tokens, law.model.tokens, law.process.concentration, law.process.order)
    chosen = {name: np.take_along_axis(each, tokens[:, 1:, None], axis=2)[..., 0] for name, each in found.items()}
    losses = np.array([-np.sum(weights * np.log(each).mean(axis=1)) for each in chosen.values()])
    return Levels(tuple(found), losses, (None,) * len(found))
