"""Attention heads that read tokens and positions: the content-aware minimal student [ISA:content-heads]."""

from typing import Literal

import numpy as np

from stagescope.keys import key
from stagescope.papers.incremental.model import LaggedModel, check_scale
from stagescope.params import Params


class ContentHeads(LaggedModel):
    """W (H, d + N, d + N) queries, V (H, d, d + N) values on inputs u_s = (token one-hot ; position one-hot) [ISA:content-heads].

    N = P + L - 1 positions. The query of target t is the last token it sees, at q = P + t - 1: its score for position s <= q is
    u_q^T W_h u_s / sqrt(d + N), and logits_t = sum_h V_h sum_s softmax(scores)_s u_s. Keys are the inputs themselves. As u holds
    two ones, every product is a sum of two gathered rows; no one-hot is ever made.

    Args:
        vocab: number of tokens d.
        heads: number of heads H.
        context: tokens P before the first target.
        targets: tokens L that are scored.

    Examples:
        >>> student = ss.ContentHeads(vocab=3, heads=2, context=2, targets=4)
        >>> {name: block.shape for name, block in student.init(seed=0).items()}
        {'W': (2, 8, 8), 'V': (2, 3, 8)}
    """

    @property
    def inputs(self) -> int:
        """Length of [token ; position]."""
        return self.vocab + self.positions

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        size = self.inputs
        return {"W": (self.heads, size, size), "V": (self.heads, self.vocab, size)}

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return {"W": ("head", "query", "key"), "V": ("head", "output", "input")}

    def init(self, seed: int = 0, scale: float = 1e-3, kind: Literal["scale", "xavier"] = "scale") -> dict[str, np.ndarray]:
        """V = 0 and W uniform within +- scale; `xavier` is the scale sqrt(6 / (inputs + outputs)) = sqrt(3 / (d + N))."""
        check_scale(scale)
        reach = np.sqrt(3.0 / self.inputs) if kind == "xavier" else scale
        draw = key(seed, "init", "W").uniform(-1.0, 1.0, size=self.shapes["W"])
        return {"W": reach * draw, "V": np.zeros(self.shapes["V"])}

    def seen(self, params: Params, tokens: np.ndarray) -> np.ndarray:
        """Attention (B, H, L, N): four gathered numbers per score."""
        self.check_tokens(tokens)
        weights = np.asarray(params["W"], dtype=float) / np.sqrt(self.inputs)
        places = np.arange(self.positions)
        asked = places[self.context - 1 :]
        rows = weights[:, tokens[:, asked]] + weights[:, None, self.vocab + asked]
        by_token = np.take_along_axis(
            rows, np.broadcast_to(tokens[None, :, None, places], (*rows.shape[:3], len(places))), axis=-1
        )
        return self.masked_softmax(np.swapaxes(by_token + rows[..., self.vocab + places], 0, 1))

    def token_maps(self, params: Params) -> np.ndarray:
        """The part of V that reads tokens."""
        return np.asarray(params["V"], dtype=float)[:, :, : self.vocab]

    def logits(self, params: Params, tokens: np.ndarray) -> np.ndarray:
        values = np.asarray(params["V"], dtype=float)
        attention = self.seen(params, tokens)
        total = np.zeros((len(tokens), self.targets, self.vocab))
        for h in range(self.heads):
            rows = values[h].T[tokens[:, : self.positions]] + values[h].T[self.vocab :]
            total += attention[:, h] @ rows
        return total
