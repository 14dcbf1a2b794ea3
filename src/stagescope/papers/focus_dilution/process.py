"""The chains of focus and dilution: lazy ones, with one frequent token and rare ones that differ a little [FD:lazy-chain]."""

import math

import numpy as np
from pydantic import model_validator

from stagescope.errors import InputError
from stagescope.memory import require_memory
from stagescope.processes.markov_chain import SUM_TOLERANCE, Chain
from stagescope.spec import Numbers


class LazyChain(Chain):
    """P = lam I + (1 - lam) 1 pi^T: stay with probability `persistence`, else draw from pi [FD:lazy-chain].

    A negative `persistence` repeats a token less often than chance would: it may go down to where some P_ii would be 0.

    Args:
        pi: probabilities of the tokens; they sum to 1.
        persistence: the probability to stay.

    Examples:
        >>> lazy = ss.LazyChain(pi=(0.5, 0.5), persistence=0.6)
        >>> print(lazy.transition, round(lazy.floor(), 4))
        [[0.8 0.2]
         [0.2 0.8]] 0.5004
    """

    pi: Numbers
    persistence: float

    @model_validator(mode="after")
    def _valid(self) -> "LazyChain":
        if len(self.pi) < 2:
            raise ValueError(f"a chain needs at least two tokens, got {len(self.pi)}")
        check_tokens(len(self.pi))
        if min(self.pi) <= 0:
            raise ValueError(f"pi has the entry {min(self.pi):g}: a token that never occurs must be left out")
        total = math.fsum(self.pi)
        if abs(total - 1) > SUM_TOLERANCE:
            raise ValueError(f"pi sums to {total:.12g}, not 1; divide it by its sum")
        least = -min(self.pi) / (1 - min(self.pi))
        if not least < self.persistence < 1:
            why = "at 1 nothing is ever drawn, below some token would repeat with a negative probability"
            raise ValueError(f"persistence is {self.persistence:g}, but must be above {least:.4g} and below 1: {why}")
        return self

    def _law(self) -> np.ndarray:
        return np.array(self.pi)

    def _matrix(self) -> np.ndarray:
        size = len(self.pi)
        return self.persistence * np.eye(size) + (1 - self.persistence) * np.tile(self.stationary, (size, 1))


def check_tokens(count: int) -> None:
    """Refuse more tokens than a transition matrix is made for."""
    require_memory(f"the transition matrix of {count:,} tokens", "take fewer (--tokens, --pi)", count, count)


def asymmetric_law(first: float, tokens: int, shape: tuple[float, ...], delta: float) -> tuple[float, ...]:
    """pi_0 fixed, pi_i = (1 - pi_0)/(d - 1) + c_i delta for i >= 1 with sum c_i = 0 [FD:asymmetry]."""
    if not 0 < first < 1:
        raise InputError(f"pi0 is {first:g}, but must lie between 0 and 1: it is the probability of the first token")
    if tokens < 2 or len(shape) != tokens - 1:
        raise InputError(f"the shape {shape} has {len(shape)} entries, but {tokens} tokens need {tokens - 1}: all but the first")
    if abs(math.fsum(shape)) > SUM_TOLERANCE:
        raise InputError(f"the entries of the shape {shape} sum to {math.fsum(shape):g}, not 0; subtract their mean")
    base = (1 - first) / (tokens - 1)
    law = (first, *(base + c * delta for c in shape))
    if min(law) <= 0:
        most = base / max(abs(c) for c in shape if c * delta < 0)
        raise InputError(f"delta {delta:g} makes a probability {min(law):g}; with this shape |delta| must be below {most:g}")
    return law
