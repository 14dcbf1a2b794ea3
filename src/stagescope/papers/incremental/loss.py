"""Students that predict tokens from the ones before: what each step sees, and the mean cross-entropy [ISA:loss]."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.fields.field import FlatField, StepGradient
from stagescope.fields.objective import Objective
from stagescope.fields.of_model import OfModel
from stagescope.fields.packed import Found, flat_field, flat_gradient
from stagescope.papers.incremental.model import LaggedModel
from stagescope.params import Layout, Params
from stagescope.spec import Described


@dataclass(frozen=True)
class Sequences:
    """Tokens position by position (P + L, N), and the true law of each target (N, L d), empty for hard labels."""

    tokens: np.ndarray
    soft: np.ndarray

    @classmethod
    def of(cls, tokens: np.ndarray, laws: np.ndarray | None) -> "Sequences":
        """From sequences (N, P + L) and laws (N, L, d) in any layout."""
        soft = np.empty((0, 0)) if laws is None else np.ascontiguousarray(laws.reshape(len(tokens), -1))
        return cls(np.ascontiguousarray(tokens.T, dtype=np.uint32), soft)

    def take(self, chosen: np.ndarray | slice) -> "Sequences":
        return Sequences(np.ascontiguousarray(self.tokens[:, chosen]), self.soft[chosen] if self.soft.size else self.soft)

    @cached_property
    def by_sequence(self) -> np.ndarray:
        """Tokens (N, P + L)."""
        return np.ascontiguousarray(self.tokens.T)

    def arrays(self) -> dict[str, Any]:
        """What the JAX definition reads."""
        from stagescope.autodiff import jnp

        return {"tokens": jnp.asarray(self.tokens.T.astype(np.int64)), "soft": jnp.asarray(self.soft)}


class SequenceLoss(OfModel, Described, Objective):
    """L = -mean over sequences and targets of sum_y q_t(y) log softmax(logits_t)_y [ISA:loss].

    A subclass says which sequences there are: `seen`, which `value` and `grad` are over, `all` and, for a step, `minibatch`.
    """

    model: LaggedModel

    @cached_property
    @abstractmethod
    def seen(self) -> Sequences:
        """The sequences that `value` and `grad` are over."""

    @cached_property
    @abstractmethod
    def all(self) -> Sequences:
        """The sequences of a step that has no minibatch."""

    @abstractmethod
    def minibatch(self, step: int) -> Sequences | None:
        """The sequences of one step, None where every step sees all of them."""

    @cached_property
    def _arrays(self) -> Any:
        return self.seen.arrays()

    @property
    def data(self) -> Any:
        return self._arrays

    def draw(self, step: int) -> Any:
        batch = self.minibatch(step)
        return None if batch is None else batch.arrays()

    @abstractmethod
    def predict(self, params: Any, data: Any) -> Any:
        """Logits (N, L, d), traceable by JAX: the definition of the student."""

    def loss(self, params: Any, data: Any) -> Any:
        """The definition: cross-entropy of what the student predicts."""
        from stagescope.autodiff import jax, jnp

        predicted = jax.nn.log_softmax(self.predict(params, data), axis=-1)
        if data["soft"].size:
            return -jnp.mean(jnp.sum(data["soft"].reshape(predicted.shape) * predicted, axis=-1))
        return -jnp.mean(jnp.take_along_axis(predicted, data["tokens"][:, self.model.context :, None], axis=-1))

    @abstractmethod
    def _kernel(self, params: Params, on: Sequences, wanted: bool = True, gradient: bool = True) -> Found:
        """Loss, where it is wanted, and gradient on some sequences, faster than by the definition."""

    def _step_gradient(self, params: Params, step: int) -> dict[str, np.ndarray]:
        batch = self.minibatch(step)
        return self._kernel(params, self.all if batch is None else batch, wanted=False)[1]

    def value(self, params: Params) -> float:
        return self._kernel(params, self.seen, gradient=False)[0]

    def values(self, params: Params) -> np.ndarray:
        """The loss of every frame of recorded parameters (K, ...)."""
        frames = len(next(iter(params.values())))
        return np.array([self.value({name: params[name][frame] for name in params}) for frame in range(frames)])

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self._kernel(params, self.seen)[1]

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        return flat_field(lambda params: self._kernel(params, self.seen), layout, rates)

    def step_gradient(self, layout: Layout) -> StepGradient:
        """The gradient that a step of a descent sees."""
        return flat_gradient(self._step_gradient, layout)
