"""Attention heads that read positions only: the minimal model of incremental learning [ISA:positional-heads]."""

import numpy as np

from stagescope.keys import key
from stagescope.papers.incremental.model import LaggedModel, check_scale
from stagescope.params import Params


class PositionalHeads(LaggedModel):
    """a (H, L, P + L - 1) positional scores and V (H, d, d) values [ISA:positional-heads].

    logits_t = sum_h V_h sum_{s < P + t} softmax(a_h[t])_s e_{x_s} for the targets t = 0 .. L - 1 after a context of P tokens:
    what one-hot positions and a free query matrix reduce to. Scores of positions a target does not see have no effect.

    Args:
        vocab: number of tokens d.
        heads: number of heads H.
        context: tokens P before the first target.
        targets: tokens L that are scored.

    Examples:
        >>> student = ss.PositionalHeads(vocab=3, heads=2, context=2, targets=4)
        >>> {name: block.shape for name, block in student.init(seed=0).items()}
        {'a': (2, 4, 5), 'V': (2, 3, 3)}
    """

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"a": (self.heads, self.targets, self.positions), "V": (self.heads, self.vocab, self.vocab)}

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return {"a": ("head", "target", "position"), "V": ("head", "output", "token")}

    def init(self, seed: int = 0, scale: float = 1e-3) -> dict[str, np.ndarray]:
        """V = 0 and normal numbers times `scale` in a, zero where a target sees nothing."""
        check_scale(scale)
        normal = key(seed, "init", "a").normal(size=self.shapes["a"])
        return {"a": np.where(self.visible, scale * normal, 0.0), "V": np.zeros(self.shapes["V"])}

    def attention(self, params: Params) -> np.ndarray:
        """softmax(a) over the visible positions (..., H, L, P + L - 1)."""
        return self.masked_softmax(params["a"])

    def seen(self, params: Params, tokens: np.ndarray) -> np.ndarray:
        return self.attention(params)[None]

    def token_maps(self, params: Params) -> np.ndarray:
        return np.asarray(params["V"], dtype=float)

    def logits(self, params: Params, tokens: np.ndarray) -> np.ndarray:
        """Output logits (B, L, d) for tokens (B, P + L - 1 or more): one gather of rows per position."""
        attention, values = self.attention(params), np.asarray(params["V"], dtype=float)
        self.check_tokens(tokens)
        total = np.zeros((len(tokens), self.targets, self.vocab))
        for s in range(self.positions):
            rows = np.einsum("ht,hjx->xtj", attention[:, :, s], values)
            total += rows[tokens[:, s]]
        return total
