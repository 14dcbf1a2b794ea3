"""What a focus-dilution run on a text shows: singular values, attention rows by query word, entropies, embedding norms.

With hundreds of types the matrices of all frames together are large, so attention is made frame by frame and only what is
asked for of it is kept.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.described import build
from stagescope.objectives import text_counts as _counts  # noqa: F401 (registers a type that a spec may name)
from stagescope.objectives import text_variant as _variant  # noqa: F401
from stagescope.objectives.token import TokenLoss
from stagescope.runs.run import Run

RARE = 0.5
"""Rare types are the less frequent half of them."""


@dataclass(frozen=True)
class TextCurves:
    """A run of attention between the types of a text, frame by frame; rows are query types, `pi` the law of types."""

    time: np.ndarray
    params: dict[str, np.ndarray]
    law: TokenLoss

    @property
    def pi(self) -> np.ndarray:
        return self.law.process.stationary

    @property
    def frequent(self) -> int:
        """The most frequent type."""
        return int(np.argmax(self.pi))

    @cached_property
    def rare(self) -> np.ndarray:
        """The less frequent half of the types."""
        return np.argsort(self.pi, kind="stable")[: int(RARE * len(self.pi))]

    @cached_property
    def _factors(self) -> tuple[np.ndarray, np.ndarray]:
        """W0 WQ and W0 WK (frames, d, .), whose product times the scale is Phi."""
        w0 = self.params["W0"]
        return w0 @ self.params["WQ"], w0 @ self.params["WK"]

    @cached_property
    def embedding_values(self) -> np.ndarray:
        """Singular values of W0 (frames, .)."""
        return _values(self.params["W0"])

    @cached_property
    def score_values(self) -> np.ndarray:
        """Singular values of Phi (frames, .), of two small factors: Phi is never formed."""
        small = [np.linalg.qr(factor, mode="r") for factor in self._factors]
        return self.law.model.scale * np.linalg.svd(small[0] @ np.swapaxes(small[1], 1, 2), compute_uv=False)

    @cached_property
    def alignment(self) -> np.ndarray:
        """cos(Phi, pi pi^T) (frames,): +1 where attention focuses on frequent types, -1 where it moves away from them."""
        query, key = self._factors
        along = np.einsum("i,kiq,kjq,j->k", self.pi, query, key, self.pi, optimize=True)
        square = np.einsum("kpq,kqp->k", np.swapaxes(query, 1, 2) @ query, np.swapaxes(key, 1, 2) @ key)
        return along / np.maximum(np.sqrt(np.maximum(square, 0)) * np.sum(self.pi**2), np.finfo(float).tiny)

    @cached_property
    def condensed(self) -> np.ndarray:
        """|W0^T pi| / |pi| (frames,): how far embeddings have grown in the direction that grows first [FD:origin]."""
        return np.linalg.norm(np.einsum("kim,i->km", self.params["W0"], self.pi), axis=1) / np.linalg.norm(self.pi)

    @cached_property
    def norms(self) -> np.ndarray:
        """Row norms of W0 (frames, d)."""
        return np.linalg.norm(self.params["W0"], axis=2)

    @cached_property
    def rare_norm(self) -> np.ndarray:
        """Geometric mean of the row norms of rare types (frames,)."""
        return np.exp(np.mean(np.log(np.maximum(self.norms[:, self.rare], np.finfo(float).tiny)), axis=1))

    @cached_property
    def _rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        frequent = self.frequent

        def seen(attention: np.ndarray) -> tuple[np.ndarray, ...]:
            logs = np.log(attention, out=np.zeros_like(attention), where=attention > 0)
            return attention[:, frequent].copy(), np.diagonal(attention).copy(), -np.einsum("ij,ij->i", attention, logs)

        kept = self._each(seen)
        return np.array([k[0] for k in kept]), np.array([k[1] for k in kept]), np.array([k[2] for k in kept])

    def _each(self, seen: Callable[[np.ndarray], tuple[np.ndarray, ...]]) -> list[tuple[np.ndarray, ...]]:
        """Something of the attention (d, d) of every frame, for windows with the frequencies pi."""
        frames = ({name: self.params[name][k] for name in ("W0", "WQ", "WK")} for k in range(len(self.time)))
        return [seen(self.law.model.attention(frame, self.pi)) for frame in frames]

    @property
    def on_frequent(self) -> np.ndarray:
        """Attention of every row on the most frequent type (frames, d)."""
        return self._rows[0]

    @property
    def on_itself(self) -> np.ndarray:
        """Attention of every row on its own type (frames, d)."""
        return self._rows[1]

    @property
    def entropy(self) -> np.ndarray:
        """Entropy of every row (frames, d), in nats."""
        return self._rows[2]

    @cached_property
    def mean_entropy(self) -> np.ndarray:
        """Entropy of attention rows, each with the frequency of its query (frames,)."""
        return self.entropy @ self.pi

    def row(self, token: int) -> np.ndarray:
        """Attention of one query type on every type (frames, d)."""
        return np.array([kept[0] for kept in self._each(lambda attention: (attention[token].copy(),))])


def _values(matrices: np.ndarray) -> np.ndarray:
    """Singular values of tall matrices (frames, d, m), largest first."""
    return np.linalg.svd(np.linalg.qr(matrices, mode="r"), compute_uv=False)


def text_curves(run: Run) -> TextCurves:
    """The curves of a focus-dilution run on a text."""
    law = build(run.spec["field"])
    assert isinstance(law, TokenLoss)
    return TextCurves(run.time, {name: run.params[name] for name in run.params}, law)
