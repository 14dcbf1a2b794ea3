"""Losses on finite sequences: exact over all of them, or on fresh batches [MIC:finite]."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import Field as Limits
from pydantic import SerializeAsAny, model_validator

from stagescope.errors import InputError
from stagescope.keys import key
from stagescope.memory import require_memory
from stagescope.papers.markov_icl.loss import ByKernel, InContext, Kernel
from stagescope.papers.markov_icl.model import LinearMatch, MatchModel, ReadoutMatch
from stagescope.papers.markov_icl.sequences import Enumerated, linear_logits, readout_logits

MOST_SEQUENCES = 20_000
"""Sequences that are enumerated at most: a gradient then takes some ten milliseconds."""


class FiniteLoss(InContext):
    """Mean cross-entropy of the next token after every place but the last: model F or T, by the type of the model."""

    model: SerializeAsAny[MatchModel]
    length: int = Limits(ge=3)

    @model_validator(mode="after")
    def _known(self) -> "FiniteLoss":
        if not isinstance(self.model, LinearMatch | ReadoutMatch):
            raise ValueError(f"finite sequences are for LinearMatch (F) and ReadoutMatch (T), not {type(self.model).__name__}")
        if self.model.lags > self.length:
            raise ValueError(f"{self.model.lags} lags are more than the {self.length} tokens of a sequence; take fewer lags")
        return self

    @cached_property
    @abstractmethod
    def _every(self) -> dict[str, np.ndarray]:
        """The sequences of the recorded loss (N, T), and their weights (N,)."""

    @property
    def data(self) -> Any:
        return self._every

    @property
    def logits(self) -> Callable[[Any, Any, Any], Any]:
        return readout_logits if isinstance(self.model, ReadoutMatch) else linear_logits

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jax, jnp

        tokens = data["tokens"]
        predicted = jax.nn.log_softmax(self.logits(params, tokens, self.model)[:, :-1], axis=-1)
        chosen = jnp.take_along_axis(predicted, tokens[:, 1:, None], axis=-1)[..., 0]
        return -jnp.sum(data["weights"] * jnp.mean(chosen, axis=1))


class FiniteExact(ByKernel, FiniteLoss):
    """Over all k^T sequences, with the prior integrated out [MIC:enumeration].

    Where the model treats all tokens alike, the first token is taken to be 0: the others are its copies.
    """

    model: SerializeAsAny[MatchModel]  # said again: the first of two bases leaves its type open

    @model_validator(mode="after")
    def _few(self) -> "FiniteExact":
        count = self.process.tokens**self.length
        if count > MOST_SEQUENCES:
            what = f"{self.process.tokens}^{self.length} = {count:,} sequences are more than {MOST_SEQUENCES:,}"
            raise ValueError(f"{what}; take a shorter --length, or --batch for sampled ones")
        if self.process.doubly_stochastic and self.process.tokens > 2:
            raise ValueError("doubly stochastic chains of three tokens or more have no closed weights; take --batch")
        return self

    @cached_property
    def everything(self) -> Enumerated:
        return Enumerated(self.process, self.length)

    @cached_property
    def _every(self) -> dict[str, np.ndarray]:
        found = self.everything
        tokens, weights = found.tokens, found.weights
        if isinstance(self.model, LinearMatch) and self.model.form != "free":
            half = tokens[:, 0] == 0
            tokens, weights = tokens[half], self.process.tokens * weights[half]
        return {"tokens": tokens, "weights": weights}

    def kernel(self) -> Kernel | None:
        from stagescope.papers.markov_icl.prefix_kernel import WEIGHTS, gradient, hold

        if not isinstance(self.model, LinearMatch):
            return None
        size = self.model.tokens, self.model.lags, self.length
        return Kernel(gradient, hold(*size, self.model.place_of_form, self.data["weights"]), WEIGHTS)


class FiniteSampled(FiniteLoss):
    """On fresh sequences: every step of a descent sees `batch` new ones, each from a chain of its own.

    The recorded loss is over `watched` sequences that no step sees.
    """

    batch: int = Limits(default=64, ge=1)
    watched: int = Limits(default=1000, ge=2)
    seed: int = Limits(default=0, ge=0, lt=2**63)

    @model_validator(mode="after")
    def _fits(self) -> "FiniteSampled":
        try:
            shape = (max(self.batch, self.watched), self.length, self.process.tokens**2)
            require_memory("these sequences", "take fewer or shorter ones", *shape)
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    def sequences(self, count: int, *purpose: str | int) -> np.ndarray:
        return self.process.sample(key(self.seed, "sequences", *purpose), count, self.length)

    @cached_property
    def _every(self) -> dict[str, np.ndarray]:
        return _alike(self.sequences(self.watched, "watched"))

    def draw(self, step: int) -> Any:
        return _alike(self.sequences(self.batch, "step", step))


def _alike(tokens: np.ndarray) -> dict[str, np.ndarray]:
    return {"tokens": tokens, "weights": np.full(len(tokens), 1 / len(tokens))}
