"""Losses on windows of a text: every step of a descent sees some windows of the training part, drawn from (seed, step)."""

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.core.errors import InputError
from stagescope.core.memory import require_work
from stagescope.core.params import Layout, Params, key
from stagescope.core.spec import Described
from stagescope.corpora.corpus import TextCorpus
from stagescope.flow.field import FlatField, Found, Objective, OfModel, StepGradient, flat_field, flat_gradient


class WindowLoss(OfModel, Described, Objective):
    """The mean loss of a model on windows of `length` tokens of a text, and the tokens after them.

    A window starts anywhere in the stream of the training part and may run over the ends of documents, as in the training of
    language models. Each step sees `batch` windows, drawn from (seed, step); `value` and `grad`, and so the recorded loss, are
    over `watched` windows at equal distances, of the held-out part with `part`. `precision` is that of one pass; parameters and
    the optimiser's memory are float64 in both.
    """

    model: Any
    process: TextCorpus
    length: int = Limits(ge=1, lt=2**16)
    batch: int = Limits(default=1024, ge=1)
    seed: int = Limits(default=0, ge=0, lt=2**63)
    watched: int = Limits(default=4096, ge=1)
    part: Literal["train", "held-out"] = "train"
    precision: Literal["float32", "float64"] = "float32"

    @model_validator(mode="after")
    def _same_vocabulary(self) -> Self:
        if self.model.vocab != self.process.vocab:
            raise ValueError(f"model vocabulary {self.model.vocab} differs from the corpus's {self.process.vocab} tokens")
        step, size = f"a step on {self.batch:,} windows of {self.length:,} tokens", max(self.length, self.model.vocab)
        require_work(step, "lower --batch, --window or --vocab", self.batch, size)
        return self

    @property
    def tokens(self) -> np.ndarray:
        """The stream of token numbers that windows are cut from."""
        return self.process.part(self.part)

    @property
    def windows(self) -> int:
        """How many windows there are; looked at when first needed, so that a run can be opened where its text is not."""
        count = len(self.tokens) - self.length
        if count < 1:
            stream = f"the {self.part} part of this corpus has {len(self.tokens)} tokens"
            raise InputError(f"{stream}, too few for one window of {self.length} and the token after it: take a shorter window")
        return count

    @cached_property
    def seen(self) -> np.ndarray:
        """First positions of the windows that `value` and `grad` are over."""
        count = min(self.watched, self.windows)
        return np.arange(count) * self.windows // count

    def minibatch(self, step: int) -> np.ndarray:
        """First positions of the windows of one step."""
        return key(self.seed, "windows", step).integers(self.windows, size=self.batch)

    @abstractmethod
    def arrays(self, starts: np.ndarray) -> Any:
        """What the JAX definition reads of some windows."""

    @abstractmethod
    def of_windows(self, params: Params, starts: np.ndarray) -> Found:
        """Loss and gradient on some windows, in `precision`."""

    @property
    def data(self) -> Any:
        return self.arrays(self.seen)

    def draw(self, step: int) -> Any:
        return self.arrays(self.minibatch(step))

    def value(self, params: Params) -> float:
        return self.of_windows(params, self.seen)[0]

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self.of_windows(params, self.seen)[1]

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        return flat_field(lambda params: self.of_windows(params, self.seen), layout, rates)

    def step_gradient(self, layout: Layout) -> StepGradient:
        """The gradient that a step of a descent sees."""
        return flat_gradient(lambda params, step: self.of_windows(params, self.minibatch(step))[1], layout)


CHUNK = 1024
"""Windows that pass at once."""


class TokenWindowLoss(WindowLoss):
    """A window loss whose JAX definition reads the tokens of each window, compiled and summed chunk by chunk."""

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        if self.model.length != self.length:
            raise ValueError(f"the model is for windows of {self.model.length} tokens, not of {self.length}")
        return self

    def arrays(self, starts: np.ndarray) -> dict[str, Any]:
        """Windows (N, length + 1), the token after each of them last."""
        from stagescope.flow.autodiff import jnp

        places = starts[:, None] + np.arange(self.length + 1)
        return {"tokens": jnp.asarray(self.tokens[places].astype(np.int32))}

    @cached_property
    def _compiled(self) -> Any:
        from stagescope.flow.autodiff import jax

        return jax.jit(jax.value_and_grad(self.loss))

    def of_windows(self, params: Params, starts: np.ndarray) -> Found:
        """Chunk by chunk, summed in float64."""
        from stagescope.flow.autodiff import jnp

        cast = {name: jnp.asarray(block, self.precision) for name, block in params.items()}
        total, sums = 0.0, {name: np.zeros(np.shape(block)) for name, block in params.items()}
        for first in range(0, len(starts), CHUNK):
            part = starts[first : first + CHUNK]
            share = len(part) / len(starts)
            loss, grads = self._compiled(cast, self.arrays(part))
            total += share * float(loss)
            for name, block in grads.items():
                sums[name] += share * np.asarray(block, dtype=float)
        return total, sums
