"""Exact losses on an infinite context: what the context of a chain shows is its stationary law."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, get_args

import numpy as np
from pydantic import model_validator

from stagescope.errors import InputError
from stagescope.fields.field import Compiled, StepGradient
from stagescope.fields.objective import Objective
from stagescope.fields.of_model import OfModel
from stagescope.fields.packed import flat_gradient
from stagescope.memory import require_memory
from stagescope.papers.markov_icl.model import Form, LinearMatch
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


class LinearPopulation(InContext):
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

    @cached_property
    def _held(self) -> np.ndarray:
        from stagescope.papers.markov_icl.kernel import hold

        tables = self.tables
        return hold(get_args(Form).index(self.model.form), tables["mass"], tables["law"], tables["powers"])

    def value(self, params: Params) -> float:
        return self._kernel(params)[0]

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self._kernel(params)[1]

    def _kernel(self, params: Params) -> tuple[float, dict[str, np.ndarray]]:
        from stagescope.papers.markov_icl.kernel import gradient

        layout = Layout.of({name: params[name] for name in BLOCKS})
        out = np.empty(layout.size)
        return gradient(layout.pack(params), out, self._held), layout.unpack(out)

    def step_gradient(self, layout: Layout) -> StepGradient:
        """The gradient that a step of a descent sees."""
        return flat_gradient(lambda params, _: self.grad(params), layout)

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> Compiled:
        """The kernel with everything but parameters bound; each has its own work space."""
        from stagescope.fields.direct import direct
        from stagescope.papers.markov_icl.kernel import WEIGHTS, gradient

        if layout.names != BLOCKS:
            raise ValueError(f"the kernel reads blocks in the order W, v; got {', '.join(layout.names)}")
        held = self._held.copy()
        held[WEIGHTS] = [-rates[name] for name in BLOCKS]
        return direct(gradient, layout.size, held)
