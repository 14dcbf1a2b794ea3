"""Objectives whose value, gradient and field come from a Numba kernel; their definition is what the kernel is tested against."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.core.params import Layout, Params
from stagescope.flow.field import (
    Compiled,
    Field,
    FlatField,
    Found,
    Objective,
    StepGradient,
    flat_field,
    flat_gradient,
)


@dataclass(frozen=True)
class Kernel:
    """A Numba kernel `run(theta, out, constants)`: it returns a loss and writes `writes` times the gradient of `blocks`.

    `constants` are all that it reads besides, and its work space; `weights` are the places there of a factor for each of the
    blocks, 1 as they are stored.
    """

    run: Callable[[np.ndarray, np.ndarray, np.ndarray], float]
    constants: np.ndarray
    weights: slice
    blocks: tuple[str, ...]
    writes: float = 1.0

    def found(self, params: Params) -> Found:
        """The loss and its gradient."""
        layout = Layout.of({name: params[name] for name in self.blocks})
        out = np.empty(layout.size)
        loss, gradient = self.run(layout.pack(params), out, self.constants.copy()), layout.unpack(out)
        return loss, gradient if self.writes == 1 else {name: block / self.writes for name, block in gradient.items()}

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> Compiled:
        """The field that descends with these rates, with everything but parameters bound; each has its own work space."""
        from stagescope.flow.compiled import direct

        expected = tuple(dict.fromkeys(self.blocks))
        if layout.names != expected:
            raise ValueError(f"the kernel reads blocks in the order {', '.join(expected)}; got {', '.join(layout.names)}")
        constants = self.constants.copy()
        constants[self.weights] = [-np.sign(self.writes) * rates[name] for name in self.blocks]
        return direct(self.run, layout.size, constants)


class ByKernel(Objective):
    """An objective whose value, gradient and field come from its kernel; the definition is what that is tested against."""

    @cached_property
    def kernel(self) -> Kernel | None:
        """The kernel with all it reads; None where the definition itself is computed."""
        raise NotImplementedError

    def value(self, params: Params) -> float:
        return super().value(params) if self.kernel is None else self.kernel.found(params)[0]

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return super().grad(params) if self.kernel is None else self.kernel.found(params)[1]

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        return Field.flat(self.field(), layout, rates) if self.kernel is None else self.kernel.flat(layout, rates)


class OnBatches(Objective):
    """An objective whose steps see batches; its recorded loss, its gradient and its field are those of `limit`."""

    @cached_property
    def limit(self) -> ByKernel:
        """The same problem over all data."""
        raise NotImplementedError

    def value(self, params: Params) -> float:
        return self.limit.value(params)

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self.limit.grad(params)

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        return self.limit.flat(layout, rates)


class ByPasses(Objective):
    """An objective that passes over its data in code of its own; the definition is what that is tested against.

    `value` and `grad`, and so the recorded loss, are over the data `seen`. A step of a descent is over its `minibatch`, or over
    `all` of the data where it has none.
    """

    @cached_property
    @abstractmethod
    def seen(self) -> Any:
        """The data that `value` and `grad` are over."""

    @cached_property
    def all(self) -> Any:
        """The data of a step that has no minibatch."""
        return self.seen

    @abstractmethod
    def minibatch(self, step: int) -> Any:
        """The data of one step, None where every step sees all of them."""

    @abstractmethod
    def arrays(self, on: Any) -> Any:
        """Some data as the definition reads them."""

    @abstractmethod
    def _kernel(self, params: Params, on: Any, wanted: bool = True, gradient: bool = True) -> Found:
        """Loss, where it is wanted, and gradient on some data, faster than by the definition."""

    @cached_property
    def _arrays(self) -> Any:
        return self.arrays(self.seen)

    @property
    def data(self) -> Any:
        return self._arrays

    def draw(self, step: int) -> Any:
        batch = self.minibatch(step)
        return None if batch is None else self.arrays(batch)

    def value(self, params: Params) -> float:
        return self._kernel(params, self.seen, gradient=False)[0]

    def values(self, params: Params) -> np.ndarray:
        """The loss of every frame of recorded parameters (K, ...)."""
        frames = len(next(iter(params.values())))
        return np.array([self.value({name: params[name][frame] for name in params}) for frame in range(frames)])

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self._kernel(params, self.seen)[1]

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        return flat_field(lambda params: self._kernel(params, self.seen), layout, rates)

    def _step_gradient(self, params: Params, step: int) -> dict[str, np.ndarray]:
        batch = self.minibatch(step)
        return self._kernel(params, self.all if batch is None else batch, wanted=False)[1]

    def step_gradient(self, layout: Layout) -> StepGradient:
        """The gradient that a step of a descent sees."""
        return flat_gradient(self._step_gradient, layout)
