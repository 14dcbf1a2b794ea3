"""Attention in token-pair logits: the one-layer model of scan and snap [SnS:model]."""

from typing import Any

import numpy as np
from pydantic import model_validator

from stagescope.core.errors import InputError
from stagescope.core.memory import require_parameters
from stagescope.core.params import key
from stagescope.core.spec import Described, Integers
from stagescope.papers.scan_snap.process import SequenceClasses


class PairwiseAttention(Described):
    """Y (keys, outputs) and Z (queries, keys) of a model over `vocab` tokens [SnS:model].

    A context with counts N_l and query m gives v_l ~ N_l exp(Z_ml), normalised to sum 1, f = v/|v|_2 and logits Y^T f.
    Rows and columns belong to the tokens listed. Outputs that are not listed are never targets; they start equal and so
    stay equal, and the last column of Y stands for all `rest` of them [SnS:merged-columns].

    Args:
        vocab: number of tokens.
        keys: tokens that occur in contexts.
        queries: tokens that end a context.
        outputs: tokens that can be targets.

    Examples:
        >>> pairwise = ss.PairwiseAttention.merged(classes)
        >>> {name: block.shape for name, block in pairwise.init().items()}
        {'Y': (9, 3), 'Z': (2, 9)}
    """

    vocab: int
    keys: Integers
    queries: Integers
    outputs: Integers

    @model_validator(mode="after")
    def _valid(self) -> "PairwiseAttention":
        for name in ("keys", "queries", "outputs"):
            tokens = getattr(self, name)
            if not tokens or len(set(tokens)) != len(tokens) or min(tokens) < 0 or max(tokens) >= self.vocab:
                raise ValueError(f"{name} must list different tokens of 0..{self.vocab - 1}, at least one")
        _check_sizes(self.vocab, len(self.keys), len(self.queries), len(self.outputs))
        return self

    @classmethod
    def merged(cls, process: SequenceClasses) -> "PairwiseAttention":
        """Only what the process can move: context tokens, queries, targets, and one column for all other outputs."""
        queries = tuple(sorted({item.query for item in process.classes}))
        outputs = tuple(sorted({item.target for item in process.classes}))
        return cls(vocab=process.vocab, keys=process.keys, queries=queries, outputs=outputs)

    @classmethod
    def every_output(cls, process: SequenceClasses) -> "PairwiseAttention":
        """Rows for the tokens in use and a column for every output, which a random initial Y needs."""
        model = cls.merged(process)
        _check_sizes(process.vocab, len(model.keys), len(model.queries), process.vocab)
        return model.model_copy(update={"outputs": tuple(range(process.vocab))})

    @classmethod
    def full(cls, vocab: int) -> "PairwiseAttention":
        """A row and a column for every token, as in the paper; rows of tokens that never occur do not move."""
        _check_sizes(vocab, vocab, vocab, vocab)
        tokens = tuple(range(vocab))
        return cls(vocab=vocab, keys=tokens, queries=tokens, outputs=tokens)

    @property
    def rest(self) -> int:
        """How many outputs the merged column stands for; if none, there is no such column."""
        return self.vocab - len(self.outputs)

    @property
    def multiplicity(self) -> np.ndarray:
        """How many outputs each column of Y stands for."""
        return np.array([1.0] * len(self.outputs) + ([float(self.rest)] if self.rest else []))

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return {"Y": ("key", "output"), "Z": ("query", "key")}

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        return {"Y": (len(self.keys), len(self.multiplicity)), "Z": (len(self.queries), len(self.keys))}

    def init(self, seed: int = 0, scale: float = 0.0) -> dict[str, np.ndarray]:
        """Zero, or uniform in +-scale. The merged column needs equal initial columns, so a random Y needs `rest` = 0."""
        if not (np.isfinite(scale) and scale >= 0):
            raise InputError(f"init scale is {scale}, but must be finite and >= 0")
        if scale and self.rest:
            raise InputError(
                "a random initial Y breaks the merged column; use --columns all (PairwiseAttention.every_output) or scale 0"
            )
        if not scale:
            return {name: np.zeros(shape) for name, shape in self.shapes.items()}
        return {name: scale * key(seed, "init", name).uniform(-1, 1, shape) for name, shape in self.shapes.items()}


def _check_sizes(vocab: int, keys: int, queries: int, outputs: int) -> None:
    """Refuse what is too large before its tokens are listed."""
    shapes = {"Y": (keys, outputs), "Z": (queries, keys)}
    require_parameters(shapes, "take fewer tokens or classes, or --columns merged", vocab=vocab, keys=keys, outputs=outputs)


def _weights(scores: Any, counts: Any, xp: Any) -> Any:
    """N_l exp(z_l) up to a factor, of NumPy or of JAX arrays."""
    present = xp.where(counts > 0, scores, -xp.inf)
    return counts * xp.exp(present - xp.max(present, axis=-1, keepdims=True))


def attention(scores: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """v_l ~ N_l exp(z_l), summing to one over keys; with P(l|n) for N_l this is c_{l|n} of the long-sequence limit."""
    weights = _weights(scores, counts, np)
    return weights / weights.sum(axis=-1, keepdims=True)


def features(scores: Any, counts: Any, xp: Any = np) -> Any:
    """f = v/|v|_2, what the decoder reads; `xp` is the module of the arrays."""
    weights = _weights(scores, counts, xp)
    return weights / xp.linalg.norm(weights, axis=-1, keepdims=True)
