"""Linearisation: what a field does near a critical point, to first and to second order."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.errors import InputError
from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.spectrum import dense_eigen
from stagescope.objectives.field import Field
from stagescope.objectives.objective import Objective
from stagescope.types import Params

GROWING = 1e-7
"""A direction grows if its rate exceeds this share of the largest |rate|."""


@dataclass(frozen=True)
class Linearisation:
    """theta = theta* + delta with delta' = J delta near a critical point theta* [flow:linear]."""

    near: Derivatives
    point: np.ndarray

    @cached_property
    def jacobian(self) -> np.ndarray:
        return self.near.jacobian(self.point)

    @cached_property
    def _modes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Growing rates, their directions as columns, and the dual rows that read their amplitudes."""
        values, vectors = dense_eigen(self.jacobian, self.near.roots)
        growing = np.real(values) > GROWING * np.abs(values).max(initial=0.0)
        return values[growing], vectors[:, growing], np.linalg.inv(vectors)[growing]

    @property
    def rates(self) -> np.ndarray:
        """Rates of the growing directions, fastest first."""
        return self._modes[0]

    def predict(self, params: Params, t: float) -> dict[str, np.ndarray]:
        """theta* + exp(J t)(params - theta*)."""
        from scipy.linalg import expm

        moved = self.point + expm(self.jacobian * t) @ self.deviation(params)
        return self.near.layout.unpack(moved)

    def deviation(self, params: Params) -> np.ndarray:
        return self.near.layout.pack(params) - self.point

    def unstable(self, params: Params, t: float = 0.0) -> np.ndarray:
        """The part of a deviation in the growing directions, carried on for a time t: sum_k e^(lambda_k t) v_k (v_k* . delta)."""
        rates, directions, duals = self._modes
        return np.real(directions @ (np.exp(rates * t) * (duals @ self.deviation(params))))

    def escape_time(self, params: Params, size: float) -> float | None:
        """When the growing part of a deviation reaches `size`; 0 if it has, None if nothing grows."""
        from scipy.optimize import brentq

        def excess(t: float) -> float:
            return float(np.log(max(np.linalg.norm(self.unstable(params, t)), 1e-300) / size))

        if not size > 0:
            raise InputError(f"size is {size}, but an escape is a deviation > 0")
        if excess(0.0) >= 0:
            return 0.0
        if not len(self.rates) or not np.any(self.unstable(params)):
            return None
        horizon = 1 / float(np.real(self.rates[0]))
        while excess(horizon) < 0:
            horizon *= 2
        return float(brentq(excess, 0.0, horizon))  # pyright: ignore[reportArgumentType]

    def second_order(self, params: Params) -> dict[str, np.ndarray]:
        """w with (2 lambda I - J) w = F''[v, v]/2, v the growing part of `params - theta*`: then theta = theta* + v + w + ...

        A mode v ~ e^(lambda t) drives its square at twice its rate; all of v must grow at one rate lambda.
        """
        v = self.unstable(params)
        if not np.any(v):
            raise InputError("nothing grows at this point in the given direction: there is no second order to predict")
        rate = float(v @ self.near.jvp(self.point, v) / (v @ v))
        forcing = self.near.second(self.point, v) / 2
        return self.near.layout.unpack(np.linalg.solve(2 * rate * np.eye(len(v)) - self.jacobian, forcing))


def linearise(what: Objective | Field, params: Params, rates: Mapping[str, float] | None = None) -> Linearisation:
    """The linearisation of a field at a critical point. It forms the whole Jacobian: models up to a few thousand parameters."""
    near = Derivatives(what, params, rates)
    if near.layout.size > 5000:
        raise InputError(f"{near.layout.size} parameters: a linearisation forms a square matrix of that size; the limit is 5000")
    return Linearisation(near, near.layout.pack(params))
