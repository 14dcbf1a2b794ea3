"""Attention between token types: the one-layer model of focus and dilution [FD:model]."""

from collections.abc import Mapping
from typing import Self

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.errors import InputError, unknown
from stagescope.fields.softmax import softmax
from stagescope.keys import key
from stagescope.memory import require_parameters
from stagescope.params import Params
from stagescope.spec import Described


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
        if missing := set(self.shapes) - set(scales):
            raise InputError(f"no init scale given for {', '.join(sorted(missing))}")
        return {name: scales[name] * key(seed, "init", name).normal(size=shape) for name, shape in self.shapes.items()}

    def scores(self, params: Params) -> np.ndarray:
        """Phi (..., d, d), before the softmax."""
        w0 = params["W0"]
        return self.scale * (w0 @ params["WQ"]) @ np.swapaxes(w0 @ params["WK"], -1, -2)

    def attention(self, params: Params, frequencies: np.ndarray) -> np.ndarray:
        """A (..., d, d): rows are query types; with the stationary law these are the rows of an infinitely long context."""
        return softmax(self.scores(params) + np.log(frequencies))
