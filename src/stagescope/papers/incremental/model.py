"""The base of all students of a lagged chain: a context, targets after it, and the positions that each target sees."""

from abc import abstractmethod
from functools import cached_property
from typing import Self

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.errors import InputError
from stagescope.fields.softmax import softmax
from stagescope.memory import require_parameters
from stagescope.params import Params
from stagescope.spec import Described


class LaggedModel(Described):
    """Predicts `targets` tokens after a `context` of P tokens; target t = 0 .. L - 1 sees the positions s < P + t."""

    vocab: int = Limits(ge=2)
    heads: int = Limits(ge=1)
    context: int = Limits(ge=1)
    targets: int = Limits(ge=1)

    @model_validator(mode="after")
    def _small(self) -> Self:
        sizes = {name: value for name, value in self if type(value) is int}
        remedy = "take shorter spans, less padding, fewer targets, heads or tokens, or a smaller width"
        require_parameters(self.shapes, remedy, **sizes)
        return self

    @property
    def positions(self) -> int:
        """Positions that some target sees."""
        return self.context + self.targets - 1

    @cached_property
    def visible(self) -> np.ndarray:
        """Which positions each target sees (L, P + L - 1): those before it."""
        return np.arange(self.positions) < self.context + np.arange(self.targets)[:, None]

    @property
    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the parameter blocks."""

    @property
    @abstractmethod
    def axes(self) -> dict[str, tuple[str, ...]]:
        """Names of their axes."""

    @abstractmethod
    def logits(self, params: Params, tokens: np.ndarray) -> np.ndarray:
        """Output logits (B, L, d) for tokens (B, P + L - 1 or more)."""

    @abstractmethod
    def seen(self, params: Params, tokens: np.ndarray) -> np.ndarray:
        """Attention (B, H, L, P + L - 1) on tokens (B, P + L - 1 or more); B = 1 where it does not depend on the tokens."""

    @abstractmethod
    def token_maps(self, params: Params) -> np.ndarray | None:
        """(H, d, d): what a token that a head attends to adds to the logits; None where that is not linear."""

    def check_tokens(self, tokens: np.ndarray) -> None:
        if tokens.ndim != 2 or tokens.shape[1] < self.positions:
            raise InputError(f"expected tokens (sequences, {self.positions} or more), got shape {tokens.shape}")

    def masked_softmax(self, scores: np.ndarray) -> np.ndarray:
        """softmax of scores (..., L, P + L - 1) over the positions each target sees."""
        return softmax(np.where(self.visible, scores, -np.inf))


def check_scale(scale: float) -> None:
    if not (np.isfinite(scale) and scale >= 0):
        raise InputError(f"init scale is {scale}, but must be finite and >= 0")
