"""Critical points of any loss that depends on a number, with the whole Jacobian."""

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from stagescope.errors import InputError
from stagescope.fields.field import JaxObjective, Objective
from stagescope.landscape.derivatives import DENSE, Derivatives
from stagescope.landscape.follower import Zeros
from stagescope.landscape.search import refine
from stagescope.landscape.spectrum import dense_eigen
from stagescope.params import Params

FAR = 3.0
"""How far a critical point may be from the start, in lengths of the start, or of 1 where it is shorter."""
Compiled = Callable[[np.ndarray, float], Any]


class DenseZeros(Zeros):
    """The zeros of -grad of `family(value)`. Of an orbit the member nearest to the one before is taken.

    A family of losses written in JAX is compiled once, with the value as a number that it reads; one that cannot be traced so
    is compiled for every value.
    """

    def __init__(self, family: Callable[[float], Objective], start: Params, value: float) -> None:
        self.family, self.value = family, value
        self.near = lru_cache(maxsize=16)(lambda value: _near(family(value), start))
        near = self.near(value)
        self.layout, self.roots = near.layout, near.roots

    def start(self, params: Params) -> np.ndarray:
        """The critical point that least squares on F finds at the first value; one far from the start is refused."""
        given = self.layout.pack(params)
        found = refine(self.near(self.value), given)
        away, most = float(np.linalg.norm(found - given)), FAR * max(float(np.linalg.norm(given)), 1.0)
        if away > most:
            raise InputError(f"no critical point is near the start: the nearest found is {away:.3g} away; start nearer to one")
        return found

    def rows(self, vector: np.ndarray, value: float) -> np.ndarray:
        return np.array(self._functions[1](vector, value))

    def slopes(self, vector: np.ndarray, value: float) -> np.ndarray:
        return np.array(self._functions[2](vector, value))

    def spectrum(self, slopes: np.ndarray, value: float) -> tuple[np.ndarray, np.ndarray]:
        found = dense_eigen(slopes, self.roots)
        return found.values, found.vectors / np.linalg.norm(found.vectors, axis=0)

    def loss(self, vector: np.ndarray, value: float) -> float:
        return float(self._functions[0](vector, value))

    def params(self, vector: np.ndarray, value: float) -> dict[str, np.ndarray]:
        return self.layout.unpack(vector)

    @cached_property
    def _functions(self) -> tuple[Compiled, Compiled, Compiled]:
        """Loss, F and its Jacobian."""
        if isinstance(self.family(self.value), JaxObjective):
            found = self._traced()
            try:
                found[1](np.zeros(self.layout.size), self.value)
                return found
            except Exception:  # whatever a family raises that needs a number and gets a tracer
                pass

        def loss(vector: np.ndarray, value: float) -> float:
            return self.family(value).value(self.layout.unpack(vector))

        return loss, lambda vector, value: self.near(value).law(vector), lambda vector, value: self.near(value).jacobian(vector)

    def _traced(self) -> tuple[Compiled, Compiled, Compiled]:
        from stagescope.autodiff import jax

        where, shapes = self.layout.slices(), dict(self.layout.shapes)

        def loss(vector: Any, value: Any) -> Any:
            objective = self.family(value)
            return objective.loss({name: vector[where[name]].reshape(shapes[name]) for name in shapes}, objective.data)

        def law(vector: Any, value: Any) -> Any:
            return -jax.grad(loss)(vector, value)

        return jax.jit(loss), jax.jit(law), jax.jit(jax.jacfwd(law))


def _near(objective: Objective, start: Params) -> Derivatives:
    near = Derivatives(objective, start)
    if near.field.objective is None:
        raise InputError(f"{type(objective).__name__} is no gradient of a loss; only critical points of losses are continued")
    if not near.dense:
        raise InputError(f"the model has {near.layout.size} parameters; critical points are continued up to {DENSE}")
    return near
