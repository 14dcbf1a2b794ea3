"""The model of focus and dilution, attention between token types [FD:model], and its chains [FD:lazy-chain]."""

import math
from collections.abc import Mapping
from typing import Self

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.core.errors import InputError, unknown
from stagescope.core.memory import require_memory, require_parameters
from stagescope.core.params import Params, key
from stagescope.core.spec import Described, Numbers
from stagescope.flow.softmax import softmax
from stagescope.processes.markov_chain import SUM_TOLERANCE, Chain

# The chains of focus and dilution: lazy ones, with one frequent token and rare ones that differ a little [FD:lazy-chain].


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
            reason = "at 1 nothing is ever drawn, below some token would repeat with a negative probability"
            raise ValueError(f"persistence is {self.persistence:g}, but must be above {least:.4g} and below 1: {reason}")
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
        bound = base / max(abs(c) for c in shape if c * delta < 0)
        raise InputError(f"delta {delta:g} makes a probability {min(law):g}; with this shape |delta| must be below {bound:g}")
    return law


# Attention between token types: the one-layer model of focus and dilution [FD:model].


class TokenAttention(Described):
    """W0 (d, m) embedding, W1 (m, d) output, WQ and WK (m, mk) [FD:model].

    Phi = scale (W0 WQ)(W0 WK)^T are the attention scores between token types; a context with counts n_j and query i has
    attention A_ij ~ n_j exp(Phi_ij), and logits A W0 W1. No values, residual, positions or normalisation.

    Args:
        vocab: number of tokens d.
        width: of the embedding, m.
        key_width: of queries and keys, mk; None takes the width.
        scale: factor of the attention scores.

    Examples:
        >>> {name: block.shape for name, block in model.init(seed=0).items()}
        {'W0': (3, 4), 'W1': (4, 3), 'WQ': (4, 4), 'WK': (4, 4)}
    """

    vocab: int = Limits(ge=2)
    width: int = Limits(ge=1)
    key_width: int | None = Limits(default=None, ge=1)
    scale: float = Limits(gt=0)

    @model_validator(mode="after")
    def _small(self) -> Self:
        sizes = {"vocab": self.vocab, "width": self.width, "key_width": self.key_width}
        require_parameters(self.shapes, "take fewer tokens, a smaller --width or a smaller --key-width", **sizes)
        return self

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        inner = self.key_width or self.width
        return {
            "W0": (self.vocab, self.width),
            "W1": (self.width, self.vocab),
            "WQ": (self.width, inner),
            "WK": (self.width, inner),
        }

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return {"W0": ("token", "width"), "W1": ("width", "output"), "WQ": ("width", "key_width"), "WK": ("width", "key_width")}

    def init(self, seed: int = 0, scale: float | Mapping[str, float] = 1e-3) -> dict[str, np.ndarray]:
        """Normal numbers times `scale`, which may differ between blocks."""
        scales = dict(scale) if isinstance(scale, Mapping) else dict.fromkeys(self.shapes, scale)
        for name, value in scales.items():
            if name not in self.shapes:
                raise unknown("parameter block", name, self.shapes)
            if not (np.isfinite(value) and value >= 0):
                raise InputError(f"init scale of {name} is {value}, but must be finite and >= 0")
        if unscaled := set(self.shapes) - set(scales):
            raise InputError(f"no init scale given for {', '.join(sorted(unscaled))}")
        return {name: scales[name] * key(seed, "init", name).normal(size=shape) for name, shape in self.shapes.items()}

    def scores(self, params: Params) -> np.ndarray:
        """Phi (..., d, d), before the softmax."""
        w0 = params["W0"]
        return self.scale * (w0 @ params["WQ"]) @ np.swapaxes(w0 @ params["WK"], -1, -2)

    def attention(self, params: Params, frequencies: np.ndarray) -> np.ndarray:
        """A (..., d, d): rows are query types; with the stationary law these are the rows of an infinitely long context."""
        return softmax(self.scores(params) + np.log(frequencies))
