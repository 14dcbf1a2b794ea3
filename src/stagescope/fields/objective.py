"""Objectives: losses of named parameters, with gradient and curvature by automatic differentiation."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.errors import InputError
from stagescope.fields.field import Field, FlatField, OnBlocks, TaylorField, floats, naming_blocks
from stagescope.params import Layout, Params
from stagescope.spec import Spec


class Objective(OnBlocks):
    """A loss L(params). The gradient of a reduced model is per coordinate: dL/dtheta divided by the multiplicity.

    Examples:
        >>> isinstance(loss, ss.Objective)
        True
        >>> print(f"{loss.value(model.init(seed=0, scale=1e-3)):.4f}")  # ln 3 at a small start
        1.0986
    """

    @abstractmethod
    def loss(self, params: Any, data: Any) -> Any:
        """The definition: a JAX expression for a scalar."""

    @cached_property
    def _autodiff(self) -> "_Autodiff":
        return _Autodiff(self)

    def value(self, params: Params) -> float:
        return float(self._autodiff.value(floats(params), self.data))

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        found = self._autodiff.grad(floats(params), self.data)
        return {name: np.asarray(found[name]) for name in params}

    def hvp(self, params: Params, direction: Params) -> dict[str, np.ndarray]:
        """Derivative of the gradient along a direction."""
        found = self._autodiff.hvp(floats(params), floats(direction), self.data)
        return {name: np.asarray(found[name]) for name in params}

    def field(self) -> "GradientField":
        return GradientField(self)


def as_field(what: Objective | Field) -> Field:
    """The field of an objective; a field as it is."""
    field = what.field() if isinstance(what, Objective) else what
    if not isinstance(field, Field):
        raise InputError(f"expected an Objective or a Field, got {type(what).__name__}; wrap a JAX loss in JaxObjective")
    return field


class _Autodiff:
    """Compiled value, gradient and Hessian-vector product of an objective's definition."""

    def __init__(self, objective: Objective) -> None:
        from stagescope.autodiff import jax

        weights = objective.multiplicity

        def grad(params: Any, data: Any) -> Any:
            found = jax.grad(objective.loss)(params, data)
            return {name: found[name] / weights[name] if name in weights else found[name] for name in params}

        def hvp(params: Any, direction: Any, data: Any) -> Any:
            return jax.jvp(lambda point: grad(point, data), (params,), (direction,))[1]

        self.traced_grad = grad
        self.value, self.grad, self.hvp = jax.jit(objective.loss), jax.jit(grad), jax.jit(hvp)


class GradientField(Field):
    """Steepest descent: F_b = -grad_b L, so dL/dt = -sum_b rate_b |grad_b L|^2 [flow:dissipation]."""

    def __init__(self, source: Objective) -> None:
        self.source = source

    @property
    def objective(self) -> Objective:
        return self.source

    def law(self, params: Any, data: Any) -> Any:
        found = self.source._autodiff.traced_grad(params, data)
        return {name: -value for name, value in found.items()}

    def describe(self) -> Spec:
        return self.source.describe()

    @property
    def data(self) -> Any:
        return self.source.data

    def draw(self, step: int) -> Any:
        return self.source.draw(step)

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        return self.source.axes

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return self.source.shapes

    @property
    def multiplicity(self) -> Mapping[str, np.ndarray]:
        return self.source.multiplicity

    def rhs(self, params: Params) -> dict[str, np.ndarray]:
        return {name: -value for name, value in self.source.grad(params).items()}

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        kernel = getattr(self.source, "flat", None)
        return kernel(layout, rates) if kernel is not None else super().flat(layout, rates)

    def taylor(self, layout: Layout) -> TaylorField | None:
        kernel = getattr(self.source, "taylor", None)
        return kernel(layout) if kernel is not None else None


class JaxObjective(Objective):
    """Any loss of yours, written in JAX: `JaxObjective(lambda params: ...)`, or with `data` as second argument.

    Args:
        loss: a function of the parameters, a dict of arrays, and of `data` where there are any. It returns one number.
        data: given to the loss as its second argument. They are not compiled in, so they may be large.
        name: by which stored runs know the loss.

    Examples:
        >>> fit = ss.JaxObjective(lambda params, target: ((params["a"] - target) ** 2).sum() / 2, data=np.array([1.0, 2.0]))
        >>> fit.value({"a": np.zeros(2)}), fit.grad({"a": np.zeros(2)})["a"].tolist()
        (2.5, [-1.0, -2.0])
    """

    def __init__(self, loss: Callable[..., Any], data: Any = None, name: str | None = None) -> None:
        if not callable(loss):
            raise InputError(f"expected a function of parameters, got {type(loss).__name__}")
        self._loss, self._data = loss, data
        self.name = name or getattr(loss, "__name__", "loss")

    def loss(self, params: Any, data: Any) -> Any:
        with naming_blocks(f"the loss {self.name!r}", params):
            found = self._loss(params) if self._data is None else self._loss(params, data)
        if np.shape(found) != ():
            raise InputError(f"the loss {self.name!r} is a number for each set of parameters, got shape {np.shape(found)}")
        return found

    @property
    def data(self) -> Any:
        return self._data

    def describe(self) -> Spec:
        return {"type": "own", "name": self.name}
