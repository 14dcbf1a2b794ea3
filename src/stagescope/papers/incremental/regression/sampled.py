"""The regression transformer on sampled contexts: what the regression flow is the average of [ISA:regression]."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.errors import InputError
from stagescope.fields.field import FlatField, Found, Objective, OfModel, StepGradient, flat_field, flat_gradient
from stagescope.keys import key
from stagescope.memory import require_memory
from stagescope.papers.incremental.regression.transformer import RegressionTransformer
from stagescope.params import Layout, Params
from stagescope.spec import Described


class RegressionSampled(OfModel, Described, Objective):
    """Mean of |y - prediction|^2/2 over contexts of standard normal tokens, `batch` new ones at every step [ISA:regression].

    `value` and `grad`, and so the recorded loss, are those of all contexts: |G - P|^2/2. Without `batch` steps see that too.

    Args:
        model: the transformer.
        batch: contexts in a step; None takes the mean over all.
        seed: of the draws.

    Examples:
        >>> heads = ss.RegressionHeads(positions=3, gains=(2.0, 1.0), heads=2)
        >>> whole = ss.RegressionTransformer(reduced=heads, dim=4)
        >>> print(f"{ss.RegressionSampled(model=whole, batch=16).value(whole.init(seed=0)):.2f}")
        2.50
    """

    model: RegressionTransformer
    batch: int | None = Limits(default=None, ge=1)
    seed: int = Limits(default=0, ge=0, lt=2**63)

    @model_validator(mode="after")
    def _fits(self) -> "RegressionSampled":
        try:
            require_memory("a batch", "take fewer contexts", self.batch or 1, self.model.positions, self.model.dim)
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    @cached_property
    def _all(self) -> np.ndarray:
        """Contexts whose second moments are exactly those of the tokens: sqrt(N d) e_n x e_i, once each (N d, N, d)."""
        size = self.model.positions * self.model.dim
        return (np.sqrt(size) * np.eye(size)).reshape(size, self.model.positions, self.model.dim)

    @property
    def data(self) -> Any:
        return {"tokens": self._all, "target": self.model.target}

    def minibatch(self, step: int) -> np.ndarray | None:
        """The contexts of one step (batch, N, d), None where every step sees all of them."""
        if self.batch is None:
            return None
        return key(self.seed, "contexts", step).normal(size=(self.batch, self.model.positions, self.model.dim))

    def draw(self, step: int) -> Any:
        tokens = self.minibatch(step)
        return None if tokens is None else {"tokens": tokens, "target": self.model.target}

    def loss(self, params: Any, data: Any) -> Any:
        """The definition, token by token."""
        from stagescope.autodiff import jax, jnp

        attention = jax.nn.softmax(params["a"], axis=1)
        predicted = jnp.einsum("hn,bnx,hyx->by", attention, data["tokens"], params["V"])
        true = jnp.einsum("nyx,bnx->by", data["target"], data["tokens"])
        return jnp.mean(jnp.sum((true - predicted) ** 2, axis=1)) / 2

    def value(self, params: Params) -> float:
        return float(self.model.losses(params))

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self._descend(params, self.model.residual(params))

    def _descend(self, params: Params, residual: np.ndarray) -> dict[str, np.ndarray]:
        """Minus V_h' = R s_h and a_h' = J(s_h) R^T V_h for any R (N, d, d)."""
        attention = self.model.attention(params)
        pull = np.einsum("hyx,nyx->hn", params["V"], residual)
        centred = pull - np.sum(attention * pull, axis=1, keepdims=True)
        return {"a": -attention * centred, "V": -np.einsum("hn,nyx->hyx", attention, residual)}

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        return flat_field(self._kernel, layout, rates)

    def _kernel(self, params: Params) -> Found:
        residual = self.model.residual(params)
        return float(np.sum(residual**2)) / 2, self._descend(params, residual)

    def step_gradient(self, layout: Layout) -> StepGradient:
        return flat_gradient(self._step_gradient, layout)

    def _step_gradient(self, params: Params, step: int) -> dict[str, np.ndarray]:
        """The gradient that a step sees: a batch acts as R times its own second moments, mean over it of error x tokens."""
        residual, tokens = self.model.residual(params), self.minibatch(step)
        if tokens is not None:
            rows = tokens.reshape(len(tokens), -1)
            errors = rows @ residual.transpose(0, 2, 1).reshape(rows.shape[1], -1)
            residual = (errors.T @ rows / len(rows)).reshape(-1, *tokens.shape[1:]).transpose(1, 0, 2)
        return self._descend(params, residual)
