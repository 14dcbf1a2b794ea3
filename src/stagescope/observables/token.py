"""What a focus-dilution run shows: singular values, attention rows, entropies, embedding norms."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.described import build
from stagescope.objectives.token import TokenPopulation
from stagescope.runs.run import Run


@dataclass(frozen=True)
class TokenCurves:
    """A run of TokenAttention on a chain, frame by frame; rows are query types, `pi` is the chain's stationary law."""

    time: np.ndarray
    params: dict[str, np.ndarray]
    law: TokenPopulation

    @property
    def pi(self) -> np.ndarray:
        return self.law.process.stationary

    @property
    def frequent(self) -> int:
        """The most frequent token."""
        return int(np.argmax(self.pi))

    @cached_property
    def scores(self) -> np.ndarray:
        """Phi (frames, d, d)."""
        return self.law.model.scores(self.params)

    @cached_property
    def attention(self) -> np.ndarray:
        """A (frames, d, d): attention of an infinitely long context."""
        return self.law.model.attention(self.params, self.pi)

    @cached_property
    def embedding_values(self) -> np.ndarray:
        """Singular values of W0 (frames, .)."""
        return np.linalg.svd(self.params["W0"], compute_uv=False)

    @cached_property
    def output_values(self) -> np.ndarray:
        """Singular values of W1 (frames, .)."""
        return np.linalg.svd(self.params["W1"], compute_uv=False)

    @cached_property
    def score_values(self) -> np.ndarray:
        """Singular values of Phi (frames, .)."""
        return np.linalg.svd(self.scores, compute_uv=False)

    @cached_property
    def key_values(self) -> np.ndarray:
        """Singular values of WQ WK^T (frames, .)."""
        return np.linalg.svd(self.params["WQ"] @ np.swapaxes(self.params["WK"], 1, 2), compute_uv=False)

    @cached_property
    def entropy(self) -> np.ndarray:
        """Entropy of each attention row (frames, d), in nats."""
        a = self.attention
        return -np.sum(a * np.log(np.where(a > 0, a, 1.0)), axis=2)

    @cached_property
    def probe_entropy(self) -> np.ndarray:
        """Entropy of softmax(Phi) rows (frames, d): log d where a row is flat."""
        b = np.exp(self.scores - self.scores.max(axis=2, keepdims=True))
        b /= b.sum(axis=2, keepdims=True)
        return -np.sum(b * np.log(np.where(b > 0, b, 1.0)), axis=2)

    @cached_property
    def norms(self) -> np.ndarray:
        """Row norms of W0 (frames, d)."""
        return np.linalg.norm(self.params["W0"], axis=2)


def token_curves(run: Run) -> TokenCurves:
    """The curves of a focus-dilution run."""
    law = build(run.spec["field"])
    assert isinstance(law, TokenPopulation)
    return TokenCurves(run.time, {name: run.params[name] for name in run.params}, law)
