"""The seam: a field theta' = F(theta), and objectives, which give one by descending [flow:field]."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.core.errors import InputError, StagescopeError
from stagescope.core.params import Layout, Params
from stagescope.core.spec import Spec

Axes = Mapping[str, tuple[str, ...]]
"""Names of the axes of each block."""
Shapes = Mapping[str, tuple[int, ...]]
"""Their lengths."""
FlatField = Callable[[np.ndarray, np.ndarray], float | None]
"""Reads a flat parameter vector, writes its velocity into the second argument; returns the loss where it comes with it."""
TaylorField = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
"""(vector, lines (k, n), order) -> Taylor terms (order + 1, k, n) of F at unit rates along lines through a flat vector."""
StepGradient = Callable[[np.ndarray, int, np.ndarray], None]
"""Writes the gradient that one step of a descent sees, at a flat parameter vector, into the last argument."""


@dataclass(frozen=True)
class Compiled:
    """A flat field that is also machine code, for solvers that then need no Python between themselves and the kernel.

    `address()` is that of the C function SUNDIALS calls, int f(double t, N_Vector y, N_Vector velocity, void *constants): 0, with
    the loss left in the third last place of `constants`, or -1 where the velocity is not finite, with t and |y| in the last two.
    `constants` are all it needs, work space included, so one field serves one solver.
    """

    call: FlatField
    address: Callable[[], int]
    constants: np.ndarray

    def __call__(self, vector: np.ndarray, out: np.ndarray) -> float | None:
        return self.call(vector, out)


@contextmanager
def naming_blocks(what: str, params: Any) -> Iterator[None]:
    """Errors of a caller's own expression as a sentence with the blocks and shapes it was given."""
    try:
        yield
    except StagescopeError:
        raise
    except KeyError as error:
        if not error.args or error.args[0] in params:
            raise
        raise InputError(f"{what} reads the block {error.args[0]!r}, but the parameters are {_shapes(params)}") from error
    except (TypeError, ValueError) as error:  # how JAX says that shapes do not fit
        raise InputError(f"{what} fails on the parameters {_shapes(params)}: {str(error).splitlines()[0]}") from error


def _shapes(params: Any) -> str:
    return ", ".join(f"{name} {tuple(np.shape(block))}" for name, block in params.items())


class ParameterBlocks(ABC):
    """What fields and objectives say of themselves: blocks of parameters by name, and the data they read."""

    @abstractmethod
    def describe(self) -> Spec:
        """What this is, for the manifest."""

    @property
    def data(self) -> Any:
        """Arrays that are read; passed as arguments so that they are not compiled in."""
        return None

    def draw(self, step: int) -> Any:
        """The data of one step where steps are stochastic; None where every step sees the same data."""
        return None

    @property
    def axes(self) -> Axes:
        """Names of the axes of each block, where the model has names."""
        return {}

    @property
    def shapes(self) -> Shapes:
        """Shapes of the blocks, where the model has them."""
        return {}

    @property
    def multiplicity(self) -> Mapping[str, np.ndarray]:
        """How many equal coordinates of an unreduced model each entry stands for; 1 where a block is not named."""
        return {}


class Field(ParameterBlocks):
    """A law of motion at unit rates; a dynamics multiplies block b by its rate.

    A subclass gives `law`, a JAX expression. It may override `flat` with a kernel. `multiplicity` says how many equal
    coordinates of an unreduced model each entry stands for (1 unless the model is reduced): norms count them all.

    Examples:
        >>> field = loss.field()
        >>> isinstance(field, ss.Field)
        True
        >>> sorted(field.rhs(model.init(seed=0, scale=0.1)))
        ['W0', 'W1', 'WK', 'WQ']
    """

    @property
    def objective(self) -> "Objective | None":
        """The loss this field descends, or None for a law that is no gradient."""
        return None

    @abstractmethod
    def law(self, params: Any, data: Any) -> Any:
        """F(params), traceable by JAX."""

    def checked(self, params: Any, data: Any) -> Any:
        """The law, refused with a sentence where it does not answer the parameters block by block."""
        with naming_blocks("the law of motion", params):
            velocity = self.law(params, data)
        for name, block in params.items():
            if name not in velocity or velocity[name].shape != block.shape:
                answer = f"shape {velocity[name].shape}" if name in velocity else "nothing"
                raise InputError(f"the law of motion gives {answer} for block {name}; the parameters are {_shapes(params)}")
        return velocity

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        from stagescope.flow.autodiff import jax

        return jax.jit(self.checked)

    def rhs(self, params: Params) -> dict[str, np.ndarray]:
        """F(params) at unit rates."""
        velocity = self._compiled(dict(params), self.data)
        return {name: np.asarray(velocity[name]) for name in params}

    def traced(self, layout: Layout, rates: Mapping[str, float]) -> Callable[[Any, Any], Any]:
        """F of a flat vector and data with its block rates, traceable by JAX."""
        from stagescope.flow.autodiff import jnp

        def velocity(vector: Any, data: Any) -> Any:
            blocks = self.checked(layout.unpack(vector), data)
            return jnp.concatenate([rates[name] * blocks[name].ravel() for name in layout.names])

        return velocity

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        """The field with its block rates on flat vectors, for solvers."""
        from stagescope.flow.autodiff import jax

        run, data = jax.jit(self.traced(layout, rates)), self.data

        def flat(vector: np.ndarray, out: np.ndarray) -> None:
            out[:] = run(vector, data)

        return flat

    def taylor(self, layout: Layout) -> TaylorField | None:
        """Derivatives of F along lines by code of the model's own; None where they come from the law."""
        return None

    def weights(self, layout: Layout) -> np.ndarray:
        """The multiplicity of each entry of a flat vector: what its square counts in a norm."""
        return layout.spread(self.multiplicity)

    def speed(self, velocity: Params) -> float:
        """|F| over all coordinates of the unreduced model."""
        return float(np.sqrt(sum(self.squares(velocity).values())))

    def squares(self, velocity: Params) -> dict[str, float]:
        """|F_b|^2 of each block."""
        weights = self.multiplicity
        return {name: float(np.sum(np.square(v) * weights.get(name, 1.0))) for name, v in velocity.items()}


def floats(params: Params) -> dict[str, np.ndarray]:
    return {name: np.asarray(block, dtype=float) for name, block in params.items()}


class Objective(ParameterBlocks):
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
        gradient = self._autodiff.grad(floats(params), self.data)
        return {name: np.asarray(gradient[name]) for name in params}

    def hvp(self, params: Params, direction: Params) -> dict[str, np.ndarray]:
        """Derivative of the gradient along a direction."""
        product = self._autodiff.hvp(floats(params), floats(direction), self.data)
        return {name: np.asarray(product[name]) for name in params}

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
        from stagescope.flow.autodiff import jax

        weights = objective.multiplicity

        def grad(params: Any, data: Any) -> Any:
            gradient = jax.grad(objective.loss)(params, data)
            return {name: gradient[name] / weights[name] if name in weights else gradient[name] for name in params}

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
        gradient = self.source._autodiff.traced_grad(params, data)
        return {name: -value for name, value in gradient.items()}

    def describe(self) -> Spec:
        return self.source.describe()

    @property
    def data(self) -> Any:
        return self.source.data

    def draw(self, step: int) -> Any:
        return self.source.draw(step)

    @property
    def axes(self) -> Axes:
        return self.source.axes

    @property
    def shapes(self) -> Shapes:
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
            number = self._loss(params) if self._data is None else self._loss(params, data)
        if np.shape(number) != ():
            raise InputError(f"the loss {self.name!r} is a number for each set of parameters, got shape {np.shape(number)}")
        return number

    @property
    def data(self) -> Any:
        return self._data

    def describe(self) -> Spec:
        return {"type": "own", "name": self.name}


class OfModel:
    """Names and shapes of the blocks, read off `model`."""

    model: Any

    @property
    def axes(self) -> Axes:
        return self.model.axes

    @property
    def shapes(self) -> Shapes:
        return self.model.shapes


Found = tuple[float, dict[str, np.ndarray]]
"""A loss and its gradient by block."""


def flat_field(kernel: Callable[[Params], Found], layout: Layout, rates: Mapping[str, float]) -> FlatField:
    """The velocity -rate_b grad_b L, and the loss that comes with it."""
    slices = layout.slices()

    def flat(vector: np.ndarray, out: np.ndarray) -> float:
        loss, gradient = kernel(layout.unpack(vector))
        for name in layout.names:
            out[slices[name]] = -rates[name] * gradient[name].ravel()
        return loss

    return flat


def flat_gradient(kernel: Callable[[Params, int], Mapping[str, np.ndarray]], layout: Layout) -> StepGradient:
    """The gradient that a step of a descent sees."""
    slices = layout.slices()

    def gradient(vector: np.ndarray, step: int, out: np.ndarray) -> None:
        blocks = kernel(layout.unpack(vector), step)
        for name in layout.names:
            out[slices[name]] = blocks[name].ravel()

    return gradient
