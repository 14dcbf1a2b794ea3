"""The regression flow of incremental learning: heads that fit a linear map, by the exact gradient or by the mirror law.

Tolerances: what decides an escape is the difference between heads, of the size of the initial noise. GradientFlow's default
atol, 1e-10 of the noise but at least 1e-13, resolves it, since logits start near zero: t_2 is right to 5e-8 at noise 1e-8, and
to 1e-5 at 1e-11, where rounding, 1e-15 of a logit, is the limit for every solver. rtol 1e-12 costs no more (the solver's
Newton steps converge better) and makes a whole run, through later escapes, 20 times as exact.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.fields.field import Compiled, Field, Objective, OfModel
from stagescope.papers.incremental.regression.model import RegressionHeads
from stagescope.params import Layout, Params
from stagescope.spec import Described

BLOCKS = ("a", "V")


class Regression(OfModel, Described):
    """What both laws share: the model, its arrays, and one kernel."""

    model: RegressionHeads

    @property
    def mirror(self) -> bool:
        return False

    @property
    def multiplicity(self) -> Mapping[str, np.ndarray]:
        return self.model.multiplicity

    @property
    def data(self) -> Any:
        return {"target": self.model.target}

    @cached_property
    def _held(self) -> np.ndarray:
        from stagescope.papers.incremental.regression.kernel import hold

        model = self.model
        return hold((model.heads, model.positions, len(model.gains)), model.copies, self.mirror, model.gains, model.at)

    def move(self, params: Params) -> tuple[float, dict[str, np.ndarray]]:
        """Loss and velocity at unit rates, by the kernel."""
        from stagescope.papers.incremental.regression.kernel import velocity

        layout = Layout.of({name: params[name] for name in BLOCKS})
        out = np.empty(layout.size)
        return velocity(layout.pack(params), out, self._held.copy()), layout.unpack(out)

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> Compiled:
        """The kernel with everything but parameters bound; each has its own work space."""
        from stagescope.fields.compiled import direct
        from stagescope.papers.incremental.regression.kernel import RATES, velocity

        if layout.names != BLOCKS:
            raise ValueError(f"the kernel reads blocks in the order a, V, got {', '.join(layout.names)}")
        held = self._held.copy()
        held[RATES] = [rates[name] for name in BLOCKS]
        return direct(velocity, layout.size, held)


class RegressionLoss(Regression, Objective):
    """L = |R|^2/2, R = G - P; descending it, V_h' = R s_h and a_h' = J(s_h) R^T V_h, J = diag s - s s^T [ISA:flow].

    Conserved: the sum of each head's logits. Equal heads in a reduced model share the gradient; the multiplicity counts them.

    Args:
        model: the heads.

    Examples:
        >>> heads = ss.RegressionHeads(positions=3, gains=(2.0, 1.0), heads=2)
        >>> print(f"{ss.RegressionLoss(model=heads).value(heads.init(seed=0)):.2f}")  # (2^2 + 1^2) / 2 at a small start
        2.50
    """

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jnp

        return jnp.sum(_residual(params, data, self.model.copies)[1] ** 2) / 2

    def value(self, params: Params) -> float:
        return self.move(params)[0]

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return {name: -block for name, block in self.move(params)[1].items()}


class MirrorFlow(Regression, Field):
    """V_h' = R s_h and a_h' = R^T V_h: the exact law without its factor J(s_h), a field that is no gradient [ISA:mirror].

    Conserved: |V_h|^2/2 - log sum_n exp(a_hn) of each head. Runs record no loss; `model.losses(run.params)` gives it.

    Args:
        model: the heads.

    Examples:
        >>> heads = ss.RegressionHeads(positions=3, gains=(2.0, 1.0), heads=2)
        >>> "loss" in ss.evolve(ss.MirrorFlow(model=heads), heads.init(seed=0), ss.GradientFlow(), until=1).series
        False
    """

    @property
    def mirror(self) -> bool:
        return True

    def law(self, params: Any, data: Any) -> Any:
        attention, residual = _residual(params, data, self.model.copies)
        return {"a": params["V"] @ residual, "V": attention @ residual.T}

    def rhs(self, params: Params) -> dict[str, np.ndarray]:
        return self.move(params)[1]


def _residual(params: Any, data: Any, copies: int) -> tuple[Any, Any]:
    """s (H, N) and R (k, N), as JAX expressions."""
    from stagescope.autodiff import jax

    attention = jax.nn.softmax(params["a"], axis=1)
    return attention, data["target"] - copies * params["V"].T @ attention
