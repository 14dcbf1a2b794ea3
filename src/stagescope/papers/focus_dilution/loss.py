"""Focus and dilution in the limit of long contexts: the exact population loss of TokenAttention on a chain."""

from collections.abc import Mapping
from functools import cached_property
from types import ModuleType
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field as Limits
from pydantic import SerializeAsAny, model_validator

from stagescope.fields.field import Compiled, Objective, OfModel, TaylorField
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.params import Layout, Params
from stagescope.processes.markov_chain import Chain
from stagescope.spec import Described, Spec

BLOCKS = ("W0", "W1", "WQ", "WK")
MOST_BY_LOOPS = 16
"""Tokens up to which loops over all pairs are the fastest way; with more, a gradient is computed by blocks of queries."""


Kernel = Literal["plain", "blocked"]


def _by_size(fields: dict[str, Any]) -> Kernel:
    return "plain" if fields["model"].vocab <= MOST_BY_LOOPS else "blocked"


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
    """L = - sum_i pi_i sum_k P_ik log softmax(A_i W0 W1)_k, counts replaced by pi (s -> infinity) [FD:population].

    `kernel` computes the gradient; the two differ in rounding. It is by blocks above 16 tokens, and only there is it in a spec:
    runs of more tokens that were begun before there was a choice go on as they began.

    Args:
        model: the attention.
        process: the chain.
        kernel: how the gradient is computed.

    Examples:
        >>> law = ss.TokenPopulation(model=model, process=chain)
        >>> print(f"{law.value(model.init(seed=0, scale=1e-3)):.4f}")
        1.0986
    """

    kernel: Kernel = Limits(default_factory=_by_size)

    def describe(self) -> Spec:
        found = super().describe()
        return found if self.kernel != "plain" else {name: value for name, value in found.items() if name != "kernel"}

    @classmethod
    def restored(cls, fields: Spec) -> Self:
        return super().restored({"kernel": "plain", **fields})

    @property
    def data(self) -> Any:
        return {"pi": self.process.stationary, "transition": self.process.transition, "scale": self.model.scale}

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
        layout = Layout.of({name: params[name] for name in BLOCKS})
        out = np.empty(layout.size)
        return self._module.gradient(layout.pack(params), out, self._held.copy()), layout.unpack(out)

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> Compiled:
        """The kernel with everything but parameters bound; each has its own work space."""
        from stagescope.fields.compiled import direct

        held = self._held.copy()
        held[self._module.WEIGHTS] = [-rates[name] for name in BLOCKS]
        return direct(self._module.gradient, layout.size, held)

    def taylor(self, layout: Layout) -> TaylorField:
        """Taylor terms of -grad L along lines, without JAX."""
        if self.model.vocab > MOST_BY_LOOPS:
            from stagescope.papers.focus_dilution.tangents import many_lines as along_lines
        else:
            from stagescope.papers.focus_dilution.taylor import along_lines

        return along_lines(self._sizes, self.model.scale, self.process.stationary, self.process.transition)

    @property
    def _sizes(self) -> tuple[int, int, int]:
        """Tokens, width and key width."""
        return (*self.model.shapes["W0"], self.model.shapes["WQ"][1])

    @property
    def _module(self) -> ModuleType:
        if self.kernel == "plain":
            from stagescope.papers.focus_dilution import kernel
        else:
            from stagescope.papers.focus_dilution import blocked_kernel as kernel
        return kernel

    @cached_property
    def _held(self) -> np.ndarray:
        return self._module.hold(self._sizes, self.model.scale, self.process.stationary, self.process.transition)
