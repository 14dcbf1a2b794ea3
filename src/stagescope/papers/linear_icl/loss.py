"""The exact loss of linear attention on in-context regression: D x D arithmetic, no sampling [LIN:loss]."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import model_validator

from stagescope.fields.field import Compiled, GradientField, Objective, OfModel
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask
from stagescope.params import Layout, Params
from stagescope.spec import Described


class HalfDescent(GradientField):
    """theta' = -grad(loss)/2: the flow of half the squared error, whose laws have no factor 2; the loss is reported whole."""

    def law(self, params: Any, data: Any) -> Any:
        return {name: value / 2 for name, value in super().law(params, data).items()}

    def rhs(self, params: Params) -> dict[str, np.ndarray]:
        return {name: value / 2 for name, value in super().rhs(params).items()}


class LinearLoss(OfModel, Described, Objective):
    """What the exact and the sampled loss share: the model on the task, and the flow of half the loss [LIN:flow]."""

    model: LinearAttention
    process: RegressionTask

    @model_validator(mode="after")
    def _fits(self) -> "LinearLoss":
        if self.model.dim != self.process.dim:
            raise ValueError(f"the model has {self.model.dim} directions and the task {self.process.dim}; make them equal")
        return self

    @property
    def task(self) -> RegressionTask:
        """The task with the lengths of contexts that this loss sees."""
        return self.process

    def field(self) -> HalfDescent:
        return HalfDescent(self)


class LinearPopulation(LinearLoss):
    """E (y_q - yhat)^2 = tr Lambda - 2 tr(Lambda^2 M) + tr(M Lambda M^T E[hatLambda^2]) [LIN:loss]."""

    @property
    def data(self) -> Any:
        return {"spectrum": self.process.spectrum, "second": self.process.second}

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jnp

        whole, spectrum = attention_map(params, self.model.merged), data["spectrum"]
        quadratic = jnp.sum(data["second"][:, None] * whole**2 * spectrum)
        return jnp.sum(spectrum) - 2 * jnp.sum(spectrum**2 * jnp.diagonal(whole)) + quadratic

    @cached_property
    def _held(self) -> np.ndarray:
        from stagescope.papers.linear_icl.kernel import hold

        return hold(self.model.heads, self.model.rank or 0, self.process.spectrum, self.process.second)

    def value(self, params: Params) -> float:
        return self._moved(params)[0]

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return {name: -2 * block for name, block in self._moved(params)[1].items()}

    def _moved(self, params: Params) -> tuple[float, dict[str, np.ndarray]]:
        """The loss and the velocity at unit rates, by the kernel."""
        from stagescope.papers.linear_icl.kernel import velocity

        layout = Layout.of({name: params[name] for name in self.shapes})
        out = np.empty(layout.size)
        return velocity(layout.pack(params), out, self._held.copy()), layout.unpack(out)

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> Compiled:
        """The kernel with everything but the parameters bound; each has its own work space."""
        from stagescope.fields.compiled import direct
        from stagescope.papers.linear_icl.kernel import RATES, velocity

        blocks = tuple(self.shapes)
        if layout.names != blocks:
            raise ValueError(f"the kernel reads blocks in the order {', '.join(blocks)}, got {', '.join(layout.names)}")
        held = self._held.copy()
        held[RATES] = [rates[name] for name in (blocks if len(blocks) == 3 else (*blocks, "U"))]
        return direct(velocity, layout.size, held)


def attention_map(params: Any, merged: bool) -> Any:
    """M as a JAX expression."""
    from stagescope.autodiff import jnp

    if merged:
        return jnp.einsum("h,hij->ij", params["v"], params["U"])
    return jnp.einsum("h,hri,hrj->ij", params["v"], params["K"], params["Q"])
