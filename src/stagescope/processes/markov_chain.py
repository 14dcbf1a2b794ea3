"""Markov chains on tokens, given by any transition matrix."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence, Sized
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, model_validator

from stagescope.core.memory import require_memory
from stagescope.core.spec import Described, Numbers


class Process(Described):
    """Base of all token sources."""

    @abstractmethod
    def floor(self) -> float:
        """The least cross-entropy any predictor can reach on this process."""


Start = Literal["stationary", "uniform"]
"""The law of the first token of a context."""

SUM_TOLERANCE = 1e-9
"""How far a row may be from summing to one: rounding of a row with 1e5 entries stays below it."""


def _rows(value: object) -> object:
    """The rows as lists; a matrix that is too large or not square is refused before it is copied."""
    if isinstance(value, Sequence | np.ndarray):
        require_memory("the transition matrix", "take fewer tokens", len(value), len(value))
        for i, row in enumerate(value):
            if isinstance(row, Sized):
                _check_length(i, row, len(value))
    return value.tolist() if isinstance(value, np.ndarray) else value


def _check_length(i: int, row: Sized, size: int) -> None:
    if len(row) != size:
        raise ValueError(f"row {i} of the transition matrix has {len(row)} entries, expected {size}")


class Chain(Process):
    """A stationary Markov chain on tokens 0..d-1; token 0 need not be the most frequent one.

    Examples:
        >>> isinstance(chain, ss.Chain), chain.vocab
        (True, 3)
        >>> print(chain.transition.round(2))
        [[0.8  0.12 0.08]
         [0.2  0.72 0.08]
         [0.2  0.12 0.68]]
    """

    @abstractmethod
    def _matrix(self) -> np.ndarray: ...

    @abstractmethod
    def _law(self) -> np.ndarray: ...

    @cached_property
    def transition(self) -> np.ndarray:
        """P (d, d): P_ij is the probability of j after i."""
        return self._matrix()

    @cached_property
    def stationary(self) -> np.ndarray:
        """pi (d,): the law of a token far from the start."""
        return self._law()

    @property
    def vocab(self) -> int:
        return len(self.stationary)

    def floor(self) -> float:
        """The entropy rate, -sum_i pi_i sum_j P_ij log P_ij: the loss of the best predictor of all."""
        p = self.transition
        return float(-np.sum(self.stationary[:, None] * p * np.log(np.where(p > 0, p, 1.0))))

    def unigram_loss(self) -> float:
        """H(pi): the loss of the best predictor that ignores the context."""
        return float(-np.sum(self.stationary * np.log(self.stationary)))

    def predictive(self, last: np.ndarray) -> np.ndarray:
        """The law of the next token given the last one."""
        return self.transition[last]

    def initial(self, start: Start = "stationary") -> np.ndarray:
        """The law of the first token (d,)."""
        return self.stationary if start == "stationary" else np.full(self.vocab, 1 / self.vocab)

    def sample(self, key: np.random.Generator, batch: int, length: int, start: Start = "stationary") -> np.ndarray:
        """Token sequences (batch, length)."""
        require_memory("the sample", "take fewer or shorter sequences", batch, length)
        return np.stack(list(self._walk(key, batch, length, start)), axis=1)

    def sample_counts(
        self, key: np.random.Generator, batch: int, length: int, start: Start = "stationary"
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Token counts (batch, d) of contexts of `length` tokens, their last token and the one after it (batch,).

        The same sequences that `sample` draws at length + 1, but only the present token of each is ever held.
        """
        require_memory("the counts", "take fewer sequences", batch, self.vocab)
        counts, rows = np.zeros((batch, self.vocab), dtype=np.int32), np.arange(batch)
        last = token = np.zeros(batch, dtype=np.int64)
        for place, token in enumerate(self._walk(key, batch, length + 1, start)):
            if place < length:
                counts[rows, token] += 1
                last = token
        return counts, last, token

    def _walk(self, key: np.random.Generator, batch: int, length: int, start: Start) -> Iterator[np.ndarray]:
        """The tokens (batch,) at one place after another, by inverting the cumulative law.

        Row i of the table ends at exactly i + 1, so one search serves all rows, and a token of probability zero is never
        drawn, also not by a sum that rounds up to the next row.
        """
        cumulative = np.cumsum(self.transition, axis=1)
        table = (cumulative / cumulative[:, -1:] + np.arange(self.vocab)[:, None]).ravel()
        below = np.nextafter(np.arange(1.0, self.vocab + 1), 0)
        first = np.cumsum(self.initial(start))
        token = np.searchsorted(first / first[-1], key.random(batch), side="right")
        yield token
        for _ in range(length - 1):
            points = np.minimum(token + key.random(batch), below[token])
            token = np.searchsorted(table, points, side="right") - self.vocab * token
            yield token


class MarkovChain(Chain):
    """A chain given by its transition matrix, irreducible and aperiodic.

    Args:
        rows: the transition matrix; each row sums to 1.

    Examples:
        >>> ss.MarkovChain(rows=((0.9, 0.1), (0.3, 0.7))).stationary.round(4).tolist()
        [0.75, 0.25]
    """

    rows: Annotated[tuple[Numbers, ...], BeforeValidator(_rows)]

    @model_validator(mode="after")
    def _valid(self) -> "MarkovChain":
        size = len(self.rows)
        if size < 2:
            raise ValueError(f"a chain needs at least two tokens, got {size}")
        for i, row in enumerate(self.rows):
            _check_length(i, row, size)
            if min(row) < 0:
                raise ValueError(f"row {i} has a negative probability {min(row):g}")
            total = math.fsum(row)
            if abs(total - 1) > SUM_TOLERANCE:
                raise ValueError(f"row {i} sums to {total:.12g}, not 1; divide it by its sum")
        links = np.array(self.rows) > 0
        ahead, back = _levels(links), _levels(links.T)
        ways = {"token {} cannot be reached from token 0": ahead, "token 0 cannot be reached from token {}": back}
        for way, levels in ways.items():
            if levels.min() < 0:
                raise ValueError(f"the chain is reducible: {way.format(levels.argmin())}; drop it or add a small probability")
        starts, ends = np.nonzero(links)
        period = np.gcd.reduce(ahead[starts] + 1 - ahead[ends])  # of all round trips: levels are from a breadth-first search
        if period > 1:
            raise ValueError(f"the chain is periodic with period {period}; add a little persistence, such as .99 P + .01 I")
        return self

    def _matrix(self) -> np.ndarray:
        return np.array(self.rows)

    def _law(self) -> np.ndarray:
        """The left fixed vector, by elimination of one token after another (Grassmann, Taksar and Heyman).

        Nothing is subtracted: the diagonal is minus the sum of the other entries of its row, so every entry of pi is right
        to rounding, also where parts of the chain are all but apart.
        """
        rates = np.array(self.rows)
        for k in range(len(rates) - 1, 0, -1):
            rates[:k, k] /= rates[k, :k].sum()
            rates[:k, :k] += np.outer(rates[:k, k], rates[k, :k])
        law = np.ones(len(rates))
        for k in range(1, len(rates)):
            law[k] = law[:k] @ rates[:k, k]
        return law / law.sum()


def _levels(links: np.ndarray) -> np.ndarray:
    """How many links lead from token 0 to each token, by a breadth-first search; -1 where none do."""
    levels, level = np.where(np.arange(len(links)) == 0, 0, -1), 0
    while (levels == level).any():
        following = links[levels == level].any(axis=0) & (levels < 0)
        level += 1
        levels[following] = level
    return levels
