"""Attention heads that read positions only: the minimal model of incremental learning [ISA:positional-heads]."""

import numpy as np
from pydantic import Field as Limits

from stagescope.described import Described
from stagescope.errors import InputError
from stagescope.keys import key
from stagescope.types import Params


class PositionalHeads(Described):
    """a (H, L, P + L - 1) positional scores and V (H, d, d) values [ISA:positional-heads].

    logits_t = sum_h V_h sum_{s < P + t} softmax(a_h[t])_s e_{x_s} for the targets t = 0 .. L - 1 after a context of P tokens:
    what one-hot positions and a free query matrix reduce to. Scores of positions a target does not see have no effect.
    """

    vocab: int = Limits(ge=2)
    heads: int = Limits(ge=1)
    context: int = Limits(ge=1)
    targets: int = Limits(ge=1)

    @property
    def positions(self) -> int:
        """Positions that some target sees."""
        return self.context + self.targets - 1

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"a": (self.heads, self.targets, self.positions), "V": (self.heads, self.vocab, self.vocab)}

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return {"a": ("head", "target", "position"), "V": ("head", "output", "token")}

    @property
    def visible(self) -> np.ndarray:
        """Which positions each target sees (L, P + L - 1): those before it."""
        return np.arange(self.positions) < self.context + np.arange(self.targets)[:, None]

    def init(self, seed: int = 0, scale: float = 1e-3) -> dict[str, np.ndarray]:
        """V = 0 and normal numbers times `scale` in a, zero where a target sees nothing."""
        if not (np.isfinite(scale) and scale >= 0):
            raise InputError(f"init scale is {scale}, but must be finite and >= 0")
        normal = key(seed, "init", "a").normal(size=self.shapes["a"])
        return {"a": np.where(self.visible, scale * normal, 0.0), "V": np.zeros(self.shapes["V"])}

    def attention(self, params: Params) -> np.ndarray:
        """softmax(a) over the visible positions (..., H, L, P + L - 1)."""
        scores = np.where(self.visible, params["a"], -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)

    def logits(self, params: Params, tokens: np.ndarray) -> np.ndarray:
        """Output logits (B, L, d) for tokens (B, P + L - 1 or more): one gather of rows per position."""
        attention, values = self.attention(params), np.asarray(params["V"], dtype=float)
        if tokens.ndim != 2 or tokens.shape[1] < self.positions:
            raise InputError(f"expected tokens (sequences, {self.positions} or more), got shape {tokens.shape}")
        total = np.zeros((len(tokens), self.targets, self.vocab))
        for s in range(self.positions):
            rows = np.einsum("ht,hjx->xtj", attention[:, :, s], values)
            total += rows[tokens[:, s]]
        return total
