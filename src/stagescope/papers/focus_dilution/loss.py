"""Focus and dilution in the limit of long contexts: the exact population loss of TokenAttention on a chain."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import SerializeAsAny, model_validator

from stagescope.fields.field import Compiled
from stagescope.fields.objective import Objective
from stagescope.fields.of_model import OfModel
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.params import Layout, Params
from stagescope.processes.markov_chain import Chain
from stagescope.spec import Described, Spec

BLOCKS = ("W0", "W1", "WQ", "WK")


class TokenLoss(OfModel, Described, Objective):
    """A loss of TokenAttention on a chain; the forms differ in the contexts they average over [FD:model]."""

    model: TokenAttention
    process: SerializeAsAny[Chain]

    @model_validator(mode="after")
    def _fits(self) -> "TokenLoss":
        if self.model.vocab != self.process.vocab:
            raise ValueError(f"model vocabulary {self.model.vocab} differs from the chain's {self.process.vocab} tokens")
        return self


class TokenPopulation(TokenLoss):
    """L = - sum_i pi_i sum_k P_ik log softmax(A_i W0 W1)_k, counts replaced by pi (s -> infinity) [FD:population]."""

    @property
    def data(self) -> Any:
        return {"pi": self.process.stationary, "transition": self.process.transition, "scale": self.model.scale}

    def form(self) -> Spec:
        """The chain and the scale of the scores enter as data alone."""
        return {"type": type(self).__name__, "shapes": {name: list(shape) for name, shape in self.model.shapes.items()}}

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jax, jnp

        w0 = params["W0"]
        scores = data["scale"] * (w0 @ params["WQ"]) @ (w0 @ params["WK"]).T
        attention = jax.nn.softmax(scores + jnp.log(data["pi"]), axis=1)
        predicted = jax.nn.log_softmax(attention @ w0 @ params["W1"], axis=1)
        return -jnp.sum(data["pi"][:, None] * data["transition"] * predicted)

    def value(self, params: Params) -> float:
        return self._kernel(params)[0]

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self._kernel(params)[1]

    def _kernel(self, params: Params) -> tuple[float, dict[str, np.ndarray]]:
        from stagescope.papers.focus_dilution.kernel import gradient

        layout = Layout.of({name: params[name] for name in BLOCKS})
        out = np.empty(layout.size)
        return gradient(layout.pack(params), out, self._held.copy()), layout.unpack(out)

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> Compiled:
        """The kernel with everything but parameters bound; each has its own work space."""
        from stagescope.papers.focus_dilution.kernel import WEIGHTS, address, gradient

        held = self._held.copy()
        held[WEIGHTS] = [-rates[name] for name in BLOCKS]

        def flat(vector: np.ndarray, out: np.ndarray) -> float:
            return gradient(vector, out, held)

        return Compiled(flat, address, held)

    @cached_property
    def _held(self) -> np.ndarray:
        from stagescope.papers.focus_dilution.kernel import hold

        sizes = (*self.model.shapes["W0"], self.model.shapes["WQ"][1])
        return hold(sizes, self.model.scale, self.process.stationary, self.process.transition)
