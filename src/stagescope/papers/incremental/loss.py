"""The mean cross-entropy of a student: which sequences there are, and which of them a step sees [ISA:loss]."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.core.errors import InputError
from stagescope.core.memory import require_memory, require_parameters
from stagescope.core.params import Params, key
from stagescope.core.spec import Described
from stagescope.flow.by_kernel import ByPasses
from stagescope.flow.field import Found, OfModel
from stagescope.papers.incremental.process import LaggedChain, smaller_tables


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


def check_scale(scale: float) -> None:
    if not (np.isfinite(scale) and scale >= 0):
        raise InputError(f"init scale is {scale}, but must be finite and >= 0")


def broken(params: Params) -> Found | None:
    """Loss and gradient where a parameter is no number, None elsewhere: the exponential of a kernel takes numbers only."""
    if all(np.isfinite(block).all() for block in params.values()):
        return None
    return np.nan, {name: np.full(np.shape(block), np.nan) for name, block in params.items()}


@dataclass(frozen=True)
class Sequences:
    """Tokens position by position (P + L, N), and the true law of each target (N, L d), empty for hard labels."""

    tokens: np.ndarray
    soft: np.ndarray
    cache: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)
    """What a kernel made of them, for the next step that sees them."""

    @classmethod
    def of(cls, tokens: np.ndarray, laws: np.ndarray | None) -> "Sequences":
        """From sequences (N, P + L) and laws (N, L, d) in any layout."""
        soft = np.empty((0, 0)) if laws is None else np.ascontiguousarray(laws.reshape(len(tokens), -1))
        return cls(np.ascontiguousarray(tokens.T, dtype=np.uint32), soft)

    def take(self, indices: np.ndarray | slice) -> "Sequences":
        return Sequences(np.ascontiguousarray(self.tokens[:, indices]), self.soft[indices] if self.soft.size else self.soft)

    @cached_property
    def by_sequence(self) -> np.ndarray:
        """Tokens (N, P + L)."""
        return np.ascontiguousarray(self.tokens.T)


class SequenceLoss(OfModel, Described, ByPasses):
    """L = -mean over sequences and targets of sum_y q_t(y) log softmax(logits_t)_y [ISA:loss].

    A subclass gives the `Sequences`: `seen`, over which `value` and `grad` are means, `all` and, for a step, `minibatch`.
    """

    model: LaggedModel

    def arrays(self, on: Sequences) -> Any:
        from stagescope.flow.autodiff import jnp

        return {"tokens": jnp.asarray(on.by_sequence.astype(np.int64)), "soft": jnp.asarray(on.soft)}

    @abstractmethod
    def predict(self, params: Any, data: Any) -> Any:
        """Logits (N, L, d), traceable by JAX: the definition of the student."""

    def loss(self, params: Any, data: Any) -> Any:
        """The definition: cross-entropy of what the student predicts."""
        from stagescope.flow.autodiff import jax, jnp

        predicted = jax.nn.log_softmax(self.predict(params, data), axis=-1)
        if data["soft"].size:
            return -jnp.mean(jnp.sum(data["soft"].reshape(predicted.shape) * predicted, axis=-1))
        return -jnp.mean(jnp.take_along_axis(predicted, data["tokens"][:, self.model.context :, None], axis=-1))


class LaggedLoss(SequenceLoss):
    """The loss of a student on a lagged chain [ISA:loss].

    The label q is the token drawn (`hard`) or the true law (`soft`). With `batch`, each step of a descent sees that many of the
    `sequences`, drawn without repetition from (seed, step); with `fresh` it sees new ones, `batch` of them or as many as
    `sequences`: data without end. `value` and `grad`, and so the recorded loss, are over the `sequences`, which with
    `fresh` are never trained on, or over the first `watched` of them. `part` separates the draws of training and evaluation
    under one seed.
    """

    process: LaggedChain
    sequences: int = Limits(ge=1)
    seed: int = Limits(default=0, ge=0, lt=2**63)
    labels: Literal["hard", "soft"] = "hard"
    batch: int | None = Limits(default=None, ge=1)
    fresh: bool = False
    part: Literal["train", "held-out"] = "train"
    watched: int | None = Limits(default=None, ge=1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        model, process = self.model, self.process
        if model.vocab != process.vocab:
            raise ValueError(f"model vocabulary {model.vocab} differs from the chain's {process.vocab} tokens")
        if self.batch is not None and self.batch > self.sequences and not self.fresh:
            raise ValueError(f"batch {self.batch} is larger than the {self.sequences} sequences; lower it or draw more sequences")
        if self.part == "held-out" and (self.fresh or self.batch is not None):
            raise ValueError("held-out sequences are for evaluation: they take no batch and are never fresh")
        if self.watched is not None and self.watched > self.sequences:
            raise ValueError(f"watched {self.watched} is larger than the {self.sequences} sequences; lower it or leave it out")
        self._check_context()
        for arrays, remedy, shape in self._largest():
            require_memory(arrays, remedy, *shape)
        return self

    def _check_context(self) -> None:
        self.process.check_context(self.model.context)

    def _largest(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """The largest arrays of a run except the parameters: what they are, how to make them smaller, their shape."""
        model, count = self.model, max(self.sequences, self.batch or 1)
        yield "these sequences", "take fewer or shorter ones", (count, model.targets, model.vocab)
        yield "these sequences", "take fewer or shorter ones, or shorter spans", (count, model.context + model.targets)
        remedy = smaller_tables(len(self.process.groups), model.vocab)
        yield "the tables of all lags", remedy, (len(self.process.lags), model.vocab, model.vocab)

    @cached_property
    def all(self) -> Sequences:
        """The sequences that steps see all or some of."""
        return self._sample(self.sequences, self.part)

    @cached_property
    def seen(self) -> Sequences:
        """The sequences that `value` and `grad` are over."""
        return self.all if self.watched is None else self.all.take(slice(self.watched))

    def _sample(self, count: int, *purpose: str | int) -> Sequences:
        model, process = self.model, self.process
        tokens = process.sample(key(self.seed, "sequences", *purpose), count, model.targets, model.context - process.reach)
        return Sequences.of(tokens, process.predictive(tokens, model.context) if self.labels == "soft" else None)

    def minibatch(self, step: int) -> Sequences | None:
        """The sequences of one step, None where every step sees all of them."""
        if self.fresh:
            return self._sample(self.batch or self.sequences, "fresh", step)
        if self.batch is None:
            return None
        return self.all.take(key(self.seed, "batch", step).choice(self.sequences, self.batch, replace=False, shuffle=False))

    def judge(self, sequences: int, seed: int | None = None, labels: Literal["hard", "soft"] = "soft") -> Self:
        """The same loss on held-out sequences, by default those of its own seed, with the true law as label."""
        extra_fields = {name: getattr(self, name) for name in type(self).model_fields if name not in LaggedLoss.model_fields}
        settings = {"model": self.model, "process": self.process, "sequences": sequences}
        return type(self)(**settings, **extra_fields, seed=self.seed if seed is None else seed, labels=labels, part="held-out")

    @cached_property
    def floor(self) -> float:
        """The entropy of the true law over these very targets: with soft labels `value` - `floor` is a mean divergence.

        It is far less noisy than the value, most of whose noise is that of the contexts drawn.
        """
        return self.process.bayes_loss(self.seen.by_sequence, self.model.context)


def windows_of(tokens: np.ndarray, size: int, targets: int) -> np.ndarray:
    """The last `targets` tokens of each sequence, each at the end of a window of so many tokens (sequences x targets, size)."""
    ends = np.arange(tokens.shape[1] - targets, tokens.shape[1])[:, None] + np.arange(1 - size, 1)
    return tokens[:, ends].reshape(-1, size)


class NgramLoss(LaggedLoss):
    """The loss of a learned n-gram: each target of a student's sequences comes with its nearest lags alone [ISA:ngram].

    The model has one target; its context is the window. `drawn` is the number of targets of a sequence as the student sees it:
    with the same seed the sequences are those of the student.
    """

    drawn: int = Limits(ge=1)

    def _check_context(self) -> None:
        if self.model.targets != 1 or self.labels != "hard":
            raise InputError("a learned n-gram has one target a window, and learns from the tokens drawn")

    def _largest(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        yield from super()._largest()
        count = max(self.sequences, self.batch or 1) * self.drawn
        yield "the windows", "take fewer or shorter sequences", (count, self.model.context + 1)

    @cached_property
    def seen(self) -> Sequences:
        return self.all if self.watched is None else self.all.take(slice(self.watched * self.drawn))

    def _sample(self, count: int, *purpose: str | int) -> Sequences:
        tokens = self.process.sample(key(self.seed, "sequences", *purpose), count, self.drawn)
        return Sequences.of(windows_of(tokens, self.model.context + 1, self.drawn), None)

    def minibatch(self, step: int) -> Sequences | None:
        if self.fresh or self.batch is None:
            return super().minibatch(step)
        indices = key(self.seed, "batch", step).choice(self.sequences, self.batch, replace=False, shuffle=False)
        return self.all.take((indices[:, None] * self.drawn + np.arange(self.drawn)).reshape(-1))
