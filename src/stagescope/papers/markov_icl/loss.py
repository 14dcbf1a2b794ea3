"""Exact losses on an infinite context: what the context of a chain shows is its stationary law."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import model_validator

from stagescope.errors import InputError
from stagescope.fields.field import Field, FlatField, Objective, OfModel, StepGradient, flat_gradient
from stagescope.memory import require_memory
from stagescope.papers.markov_icl.model import LinearMatch
from stagescope.papers.markov_icl.process import ChainPrior
from stagescope.params import Layout, Params
from stagescope.spec import Described

BLOCKS = ("W", "v")


class InContext(OfModel, Described, Objective):
    """A model on sequences that each have a chain of their own."""

    process: ChainPrior

    @property
    def multiplicity(self) -> Mapping[str, np.ndarray]:
        return getattr(self.model, "multiplicity", {})

    @model_validator(mode="after")
    def _same_tokens(self) -> "InContext":
        if self.model.tokens != self.process.tokens:
            raise ValueError(f"the model has {self.model.tokens} tokens, the prior {self.process.tokens}; give both the same")
        return self

    def needs_order(self, order: int, name: str) -> None:
        """Refuse chains that the model is not about."""
        if self.process.order != order:
            raise ValueError(f"{name} is about chains of order {order}, the prior has order {self.process.order}")


@dataclass(frozen=True)
class Kernel:
    """`gradient(theta, out, held)`, what it reads beside the parameters, and where in that the weights of W and v are."""

    gradient: Callable[[np.ndarray, np.ndarray, np.ndarray], float]
    held: np.ndarray
    weights: slice


class ByKernel(InContext):
    """A loss whose value, gradient and field come from a Numba kernel; the JAX definition is what it is tested against."""

    @abstractmethod
    def kernel(self) -> Kernel | None:
        """The kernel with all it reads; None where the model has none, and its definition is what is computed."""

    @cached_property
    def _kernel(self) -> Kernel | None:
        return self.kernel()

    def value(self, params: Params) -> float:
        return super().value(params) if self._kernel is None else _found(self._kernel, params)[0]

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return super().grad(params) if self._kernel is None else _found(self._kernel, params)[1]

    def step_gradient(self, layout: Layout) -> StepGradient:
        """The gradient that a step of a descent sees."""
        return flat_gradient(lambda params, _: self.grad(params), layout)

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        """The kernel with everything but parameters bound; each has its own work space."""
        from stagescope.fields.compiled import direct

        if self._kernel is None:
            return Field.flat(self.field(), layout, rates)
        if layout.names != BLOCKS:
            raise ValueError(f"the kernel reads blocks in the order W, v; got {', '.join(layout.names)}")
        held = self._kernel.held.copy()
        held[self._kernel.weights] = [-rates[name] for name in BLOCKS]
        return direct(self._kernel.gradient, layout.size, held)


def _found(kernel: Kernel, params: Params) -> tuple[float, dict[str, np.ndarray]]:
    """Loss and gradient."""
    layout = Layout.of({name: params[name] for name in BLOCKS})
    out = np.empty(layout.size)
    return kernel.gradient(layout.pack(params), out, kernel.held), layout.unpack(out)


class LinearPopulation(ByKernel):
    """Model R: z_ij = a pi_j + b pi_i sum_d A_d (P^d)_ij, any number of lags [MIC:model-r].

    L = E_P sum_i pi_i sum_j P_ij (-log softmax(z_i)_j). With a whole W, z_i = sum_m W_im pi_m sum_d A_d (P^d)_m.
    """

    model: LinearMatch

    @model_validator(mode="after")
    def _fits(self) -> "LinearPopulation":
        self.needs_order(1, "model R")
        try:
            shape = (self.model.lags, self.process.chains, self.model.tokens, self.model.tokens)
            require_memory("the powers of the chains", "take fewer lags, nodes or draws", *shape)
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    @cached_property
    def tables(self) -> dict[str, np.ndarray]:
        """Weight of chain and token (C, k), P (C, k, k), and pi_i (P^d)_ij (D, C, k, k)."""
        process, pi = self.process, self.process.marginal
        powers = pi[:, :, None] * process.powers(self.model.lags)
        return {"mass": process.weights[:, None] * pi, "law": process.transitions, "powers": powers}

    @property
    def data(self) -> Any:
        return self.tables

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jax, jnp

        mixed = jnp.tensordot(jax.nn.softmax(params["v"]), data["powers"], axes=1)
        predicted = jax.nn.log_softmax(jnp.einsum("im,cmj->cij", self.model.square(params["W"]), mixed), axis=-1)
        return -jnp.sum(data["mass"][:, :, None] * data["law"] * predicted)

    def kernel(self) -> Kernel:
        from stagescope.papers.markov_icl.kernel import WEIGHTS, gradient, hold

        tables = self.tables
        return Kernel(gradient, hold(self.model.place_of_form, tables["mass"], tables["law"], tables["powers"]), WEIGHTS)
