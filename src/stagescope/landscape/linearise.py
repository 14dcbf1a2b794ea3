"""Linearisation: what a field does near a critical point, to first and to second order."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.errors import InputError, StagescopeError
from stagescope.fields.field import Field, Objective
from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.growth import Growth, Motion, general_growth, growing_modes, krylov_growth, threshold
from stagescope.landscape.spectrum import LARGEST_DENSE, eigen, largest_rate
from stagescope.params import Params

MOST_RATES, SAME = 8, 1e-6
"""Different rates of growth that the second order handles; rates closer than this, relative to the largest, count as one."""
PRODUCTS = 300
"""Parameters above which products with a symmetric J are cheaper than all its rates and modes."""
DRIVEN = 1e-10
"""A rate this near to the one that is driven, relative to the furthest, is taken to be the same."""
WHOLE = np.array([1, 1j])
"""Real and imaginary part as columns, times this, are the numbers themselves."""


@dataclass(frozen=True)
class Linearisation:
    """theta = theta* + delta with delta' = J delta near a critical point theta* [flow:linear].

    The whole Jacobian is formed up to a few thousand parameters; above that, only products with it are taken.

    Examples:
        >>> near = ss.linearise(well, {"x": np.zeros(1)})
        >>> near.rates.tolist(), near.jacobian.tolist()
        ([1.0], [[1.0]])
        >>> print(f"{near.escape_time({'x': np.full(1, 1e-3)}, size=0.1):.3f}")  # ln 100
        4.605
    """

    near: Derivatives
    point: np.ndarray

    @property
    def dense(self) -> bool:
        return len(self.point) <= LARGEST_DENSE

    @cached_property
    def jacobian(self) -> np.ndarray:
        if not self.dense:
            raise InputError(f"the Jacobian of {len(self.point)} parameters is not formed; the limit is {LARGEST_DENSE}")
        return self.near.jacobian(self.point)

    @property
    def _symmetric(self) -> bool:
        """Whether D^(-1/2) J D^(1/2) is symmetric: a gradient field of which every block moves."""
        return self.near.roots is not None and bool(np.all(self.near.roots > 0))

    @property
    def _whole(self) -> bool:
        """Whether growth and second order are computed from the whole Jacobian, not by products with it."""
        return self.dense and not (self._symmetric and len(self.point) > PRODUCTS)

    @cached_property
    def _growth(self) -> Growth:
        if not self._symmetric:
            return general_growth(self.jacobian)
        roots: Any = self.near.roots
        found = growing_modes(*self._modes)
        return Growth(roots[:, None] * found.basis, found.matrix, found.read / roots)

    @cached_property
    def _modes(self) -> tuple[np.ndarray, np.ndarray]:
        """All rates and modes of D^(-1/2) J D^(1/2), where this is symmetric."""
        roots: Any = self.near.roots
        matrix = self.jacobian * roots / roots[:, None]
        return np.linalg.eigh((matrix + matrix.T) / 2)

    @cached_property
    def _threshold(self) -> float:
        return threshold(largest_rate(lambda x: self.near.jvp(self.point, x), len(self.point), symmetric=False))

    def _motion(self, deviation: np.ndarray) -> Motion:
        """The growing part of a deviation."""
        if not np.all(np.isfinite(deviation)):
            raise StagescopeError("the deviation from the critical point is not finite")
        if self._whole:
            return self._growth.motion(deviation)
        if not self._symmetric:
            return krylov_growth(lambda x: self.near.jvp(self.point, x), deviation, self._threshold, symmetric=False)
        times, roots = self.near.symmetric(self.point)
        found = krylov_growth(times, deviation / roots, self._threshold, symmetric=True)
        return Motion(roots[:, None] * found.basis, found.matrix, found.amplitudes)

    @cached_property
    def rates(self) -> np.ndarray:
        """Rates of the growing directions, fastest first; only the fastest few where the Jacobian is not formed."""
        if self.dense:
            return self._growth.rates
        values = eigen(self.near, self.point, fastest=6).values
        return values[np.real(values) > self._threshold]

    def predict(self, params: Params, t: float) -> dict[str, np.ndarray]:
        """theta* + exp(J t)(params - theta*)."""
        deviation = self.deviation(params)
        if self.dense:
            from scipy.linalg import expm

            return self.near.layout.unpack(self.point + expm(self.jacobian * t) @ deviation)
        from scipy.sparse.linalg import expm_multiply

        moved = expm_multiply(self.near.operator(self.point, t), deviation, traceA=0.0)  # the trace only shifts, to save work
        return self.near.layout.unpack(self.point + moved)

    def deviation(self, params: Params) -> np.ndarray:
        return self.near.layout.pack(params) - self.point

    def unstable(self, params: Params, t: float = 0.0) -> np.ndarray:
        """The part of a deviation in the growing invariant subspace, carried on for a time t."""
        return self._motion(self.deviation(params)).at(t)

    def escape_time(self, params: Params, size: float) -> float | None:
        """When the growing part of a deviation reaches `size`; 0 if it has, None if nothing of it grows."""
        from scipy.optimize import brentq

        if not (np.isfinite(size) and size > 0):
            raise InputError(f"size is {size}, but an escape is a finite deviation > 0")
        motion = self._motion(self.deviation(params))
        if not motion.any:
            return None
        goal = float(np.log(size))
        if motion.log_size(0.0) >= goal:
            return 0.0
        horizon = 1 / float(np.real(np.linalg.eigvals(motion.matrix)).max())
        while motion.log_size(horizon) < goal:
            horizon *= 2
        return float(brentq(lambda t: motion.log_size(t) - goal, 0.0, horizon))  # pyright: ignore[reportArgumentType]

    def second_order(self, params: Params) -> dict[str, np.ndarray]:
        """What the growing part v of `params - theta*` drives: theta = theta* + v + w + ...

        One rate lambda: (2 lambda I - J) w = F''[v, v]/2. With several, v = E a and a' = A a: then w = W (a x a), where
        W (A x I + I x A) - J W = F''[E, E]/2, so that parts of rates l and m drive at l + m.
        """
        motion = self._motion(self.deviation(params))
        if not motion.any:
            raise InputError("nothing grows at this point in the given direction: there is no second order to predict")
        from scipy.linalg import schur

        frame, small, a = _distinct(motion)
        count, one = len(a), np.eye(len(a))
        pairs = [[self.near.second(self.point, frame[:, i], frame[:, j]) / 2 for j in range(count)] for i in range(count)]
        made: Any = schur(np.kron(small, one) + np.kron(one, small), output="complex")
        upper, turn = made
        forcing = np.stack([column for row in pairs for column in row], axis=1) @ turn
        solved = np.zeros_like(forcing)
        for k in range(count**2):  # from left to right: the sum of rates is triangular
            solved[:, k] = self._driven(upper[k, k], forcing[:, k] - solved[:, :k] @ upper[:k, k])
        return self.near.layout.unpack(np.real(solved @ (turn.conj().T @ np.kron(a, a))))

    def _driven(self, rate: complex, forcing: np.ndarray) -> np.ndarray:
        """The least w with (rate I - J) w = forcing; where `rate` is one of J's, there may be none: a resonance."""
        length = float(np.linalg.norm(forcing))
        if length == 0:
            return np.zeros_like(forcing)
        if self._whole:
            parts = np.stack([np.real(forcing), np.imag(forcing)], axis=1)
            found = (self._by_modes if self._symmetric else self._by_least_squares)(rate, parts)
            left = float(np.linalg.norm(rate * (found @ WHOLE) - self.jacobian @ found @ WHOLE - forcing))
            found = found @ WHOLE
        else:
            found, left = self._iterated(rate, forcing)
        if left > 1e-6 * length:  # not solved: a resonance
            raise StagescopeError(
                f"resonance: the driven rate {np.real(rate):.4g} is itself a rate of this point and is excited, so the second "
                f"order grows as t e^({np.real(rate):.4g} t) and has no fixed shape"
            )
        return found

    def _by_modes(self, rate: complex, parts: np.ndarray) -> np.ndarray:
        roots: Any = self.near.roots
        rates, modes = self._modes
        gaps = np.real(rate) - rates
        gaps[np.abs(gaps) <= DRIVEN * np.abs(gaps).max()] = np.inf
        return roots[:, None] * (modes @ ((modes.T @ (parts / roots[:, None])) / gaps[:, None]))

    def _by_least_squares(self, rate: complex, parts: np.ndarray) -> np.ndarray:
        system = (rate if np.imag(rate) else np.real(rate)) * np.eye(len(parts)) - self.jacobian
        return np.linalg.lstsq(system, parts, rcond=DRIVEN)[0]

    def _iterated(self, rate: complex, forcing: np.ndarray) -> tuple[np.ndarray, float]:
        from scipy.sparse.linalg import lsmr

        if abs(np.imag(rate)) > SAME * abs(rate):
            raise StagescopeError(f"second order of turning modes needs the whole Jacobian: at most {LARGEST_DENSE} parameters")
        operator, right = self.near.operator(self.point, -1.0, float(np.real(rate))), np.real(forcing)
        found = lsmr(operator, right, atol=1e-12, btol=1e-12, maxiter=2000)[0]
        return found, float(np.linalg.norm(operator @ found - right))


def _distinct(motion: Motion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same motion with one direction for every different rate: those that a, A a, A^2 a, ... span."""
    small, a = motion.matrix, motion.amplitudes
    frame = [a / np.linalg.norm(a)]
    size = float(np.abs(np.linalg.eigvals(small)).max())
    while len(frame) < len(a):
        held = np.array(frame)
        new = small @ frame[-1]
        for _ in range(2):
            new = new - held.T @ (held @ new)
        if np.linalg.norm(new) <= SAME * size:
            break
        if len(frame) == MOST_RATES:
            raise StagescopeError(f"more than {MOST_RATES} different rates grow at once: the second order is not formed")
        frame.append(new / np.linalg.norm(new))
    held = np.array(frame)
    return motion.basis @ held.T, held @ small @ held.T, held @ a


def linearise(what: Objective | Field, params: Params, rates: Mapping[str, float] | None = None) -> Linearisation:
    """The linearisation of a field at a critical point, on any number of parameters.

    Args:
        what: an objective or a field.
        params: a critical point.
        rates: a factor of the velocity for each block.

    Examples:
        >>> ss.linearise(well, {"x": np.zeros(1)}).rates.tolist()
        [1.0]
    """
    near = Derivatives(what, params, rates)
    return Linearisation(near, near.layout.pack(params))
