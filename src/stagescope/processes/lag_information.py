"""What each of the tokens before tells of the next one: the importance of lags, measured on a text [ISA:text-importance]."""

from dataclasses import dataclass

import numpy as np

from stagescope.errors import InputError
from stagescope.processes.text_corpus import TextCorpus

FAR = 4
"""Lags so far away that they tell nothing: what is found there is the bias of finite counts, subtracted everywhere."""


@dataclass(frozen=True)
class LagInformation:
    """Nats about the next token at each lag 1 .. P, less the bias of finite counts: `bias` of `alone`; `error` is its spread.

    `alone` is the mutual information I(x_{t-l}; x_t). `added` is what lag l adds to the most informative one, m, at least:
    KL of the joint law of (x_{t-l}, x_t) from the one that follows if x_t depends on x_{t-m} only. By the data-processing
    inequality that is a lower bound of I(x_{t-l}; x_t | x_{t-m}); it is zero if the text is a chain. At m itself it is `alone`.
    """

    alone: np.ndarray
    added: np.ndarray
    bias: float
    error: float

    @property
    def first(self) -> int:
        """The most informative lag."""
        return int(np.argmax(self.alone)) + 1

    @property
    def order(self) -> tuple[int, ...]:
        """Lags by importance: the most informative one, then by what they add to it."""
        rest = np.argsort(-self.added, kind="stable") + 1
        return (self.first, *(int(lag) for lag in rest if lag != self.first))

    def above(self, one: int, other: int) -> bool:
        """Whether one lag's importance is above another's by more than three times the error."""
        if self.first in (one, other):
            return one == self.first
        return bool(self.added[one - 1] - self.added[other - 1] > 3 * self.error)


def lag_information(corpus: TextCorpus, lags: int) -> LagInformation:
    """Importances of the lags 1 .. `lags` on the train part, from counts of pairs: exact but for their finite number."""
    stream = corpus.train
    if len(stream) <= (FAR + 2) * (lags + 1):
        raise InputError(f"the train part of {corpus.source} has {len(stream):,} tokens, too few to compare {lags} lags")
    pairs = _Pairs(stream.astype(np.int64), corpus.vocab)
    far = [len(stream) * (k + 1) // (FAR + 2) for k in range(FAR)]
    alone, nothing = (np.array([_information(pairs.at(lag)) for lag in which]) for which in (range(1, lags + 1), far))
    first = int(np.argmax(alone)) + 1
    added, bias = (np.array([_gain(pairs, lag, first) for lag in which]) for which in (range(1, lags + 1), far))
    added -= bias.mean()
    alone -= nothing.mean()
    added[first - 1] = alone[first - 1]
    return LagInformation(alone, added, float(nothing.mean()), float(np.std(bias, ddof=1)))


@dataclass(frozen=True)
class _Pairs:
    """Joint laws of two tokens of a text at some distance."""

    stream: np.ndarray
    size: int

    def at(self, lag: int) -> np.ndarray:
        """(d, d): the earlier token by row, the later one by column; for a negative lag the other way round.

        The end of the text is joined to its beginning: so all lags have equally many pairs, and the same bias.
        """
        found = np.bincount(self.stream * self.size + np.roll(self.stream, -lag), minlength=self.size**2)
        return found.reshape(self.size, self.size) / len(self.stream)


def _information(joint: np.ndarray) -> float:
    return _divergence(joint, joint.sum(axis=1, keepdims=True) * joint.sum(axis=0))


def _gain(pairs: _Pairs, lag: int, first: int) -> float:
    """KL(law of (x_{t-lag}, x_t) || the law if x_t depends on x_{t-first} only)."""
    known = pairs.at(first)
    follows = known / known.sum(axis=1, keepdims=True)
    return _divergence(pairs.at(lag), pairs.at(lag - first) @ follows)


def _divergence(p: np.ndarray, q: np.ndarray) -> float:
    """KL(p || q); q is positive wherever p is."""
    seen = p > 0
    return float(np.sum(p[seen] * np.log(p[seen] / q[seen])))
