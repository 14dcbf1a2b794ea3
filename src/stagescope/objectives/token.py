"""Focus and dilution in the limit of long contexts: the exact population loss of TokenAttention on a chain."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import SerializeAsAny, model_validator

from stagescope.described import Described, Spec
from stagescope.models.token_attention import TokenAttention
from stagescope.objectives.field import FlatField
from stagescope.objectives.objective import Objective
from stagescope.processes.markov_chain import Chain
from stagescope.types import Layout, Params

BLOCKS = ("W0", "W1", "WQ", "WK")


class TokenPopulation(Described, Objective):
    """L = - sum_i pi_i sum_k P_ik log softmax(A_i W0 W1)_k, counts replaced by pi (s -> infinity) [FD:population]."""

    model: TokenAttention
    process: SerializeAsAny[Chain]

    @model_validator(mode="after")
    def _fits(self) -> "TokenPopulation":
        if self.model.vocab != self.process.vocab:
            raise ValueError(f"model vocabulary {self.model.vocab} differs from the chain's {self.process.vocab} tokens")
        return self

    def describe(self) -> Spec:
        return Described.describe(self)

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        return self.model.axes

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return self.model.shapes

    @property
    def data(self) -> Any:
        return {"pi": self.process.stationary, "transition": self.process.transition}

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jax, jnp

        w0 = params["W0"]
        scores = self.model.scale * (w0 @ params["WQ"]) @ (w0 @ params["WK"]).T
        attention = jax.nn.softmax(scores + jnp.log(data["pi"]), axis=1)
        predicted = jax.nn.log_softmax(attention @ w0 @ params["W1"], axis=1)
        return -jnp.sum(data["pi"][:, None] * data["transition"] * predicted)

    def value(self, params: Params) -> float:
        return self._kernel(params)[0]

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self._kernel(params)[1]

    def _kernel(self, params: Params) -> tuple[float, dict[str, np.ndarray]]:
        layout = Layout.of({name: params[name] for name in BLOCKS})
        out = np.empty(layout.size)
        loss = self._caller()(layout.pack(params), out, np.ones(4))
        return loss, layout.unpack(out)

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        call, weights = self._caller(), -np.array([rates[name] for name in BLOCKS])

        def flat(vector: np.ndarray, out: np.ndarray) -> None:
            call(vector, out, weights)

        return flat

    def _caller(self) -> Any:
        """The kernel with everything but parameters bound; each caller has its own work space."""
        from stagescope.objectives.token_kernel import gradient

        d, m = self.model.shapes["W0"]
        mk = self.model.shapes["WQ"][1]
        work = np.empty(3 * d * d + 2 * d * m + 4 * d * mk)
        pi, transition = self.data["pi"], np.ascontiguousarray(self.data["transition"])
        log_pi, scale, sizes = np.log(pi), self.model.scale, (d, m, mk)

        def call(vector: np.ndarray, out: np.ndarray, weights: np.ndarray) -> float:
            if vector.flags.writeable:
                vector = vector.view()
                vector.flags.writeable = False
            return gradient(vector, out, sizes, log_pi, pi, transition, scale, weights, work)

        return call
