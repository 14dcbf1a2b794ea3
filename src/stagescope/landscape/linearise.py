"""Linearisation: what a field does near a critical point, to first and to second order, and which part of a deviation grows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.linalg import norm

from stagescope.core.errors import InputError, StagescopeError
from stagescope.core.params import Params
from stagescope.flow.field import Field, Objective
from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.limits import LIMITS
from stagescope.landscape.spectrum import LARGEST_DENSE, eigen, largest_rate

FEWEST = 5
"""Frames a rate is fitted on, at least; and the rise they span is at least a factor e."""


@dataclass(frozen=True)
class Rise:
    """An amplitude that rises from one size to another between two times, at `rate` by a log-linear fit."""

    rate: float
    start: float
    stop: float

    def times(self, count: int) -> np.ndarray:
        """Equally spaced times over the rise."""
        return np.linspace(self.start, self.stop, count)


def last_rise(time: np.ndarray, amplitude: np.ndarray, low: float, high: float) -> Rise | None:
    """The last rise from `low` until the amplitude first reaches `high`; None if there is none, or too few frames show it."""
    above = np.flatnonzero(amplitude >= high)
    below = np.flatnonzero(amplitude[: above[0]] <= low) if above.size else above
    if not below.size or above[0] - below[-1] + 1 < FEWEST or high < np.e * low:
        return None
    first, last = int(below[-1]), int(above[0])
    logs = np.log(np.maximum(amplitude[first : last + 1], np.finfo(float).tiny))
    clock = time[first : last + 1]
    start = float(np.interp(np.log(low), logs[:2], clock[:2]))
    stop = float(np.interp(np.log(high), logs[-2:], clock[-2:]))
    grid = np.linspace(start, stop, 200)  # equally spaced, so that no stretch counts more than another
    return Rise(float(np.polyfit(grid, np.interp(grid, clock, logs), 1)[0]), start, stop)


LOOK = 20
"""A Krylov space is checked every so many steps, until its growing part stays the same."""


@dataclass(frozen=True)
class Motion:
    """A growing deviation, basis e^(matrix t) amplitudes: its directions as columns and how their amplitudes move."""

    basis: np.ndarray
    matrix: np.ndarray
    amplitudes: np.ndarray

    @property
    def any(self) -> bool:
        return bool(np.any(self.amplitudes))

    def at(self, t: float) -> np.ndarray:
        logarithm, unit = self.scaled(t)
        with np.errstate(over="ignore", divide="ignore"):  # infinite where it overflows, never 0 times infinity
            return np.sign(unit) * np.exp(np.log(np.abs(unit)) + logarithm) if logarithm else unit

    def scaled(self, t: float) -> tuple[float, np.ndarray]:
        """s t and e^(-s t) times the deviation, s the fastest rate: no overflow however large t is."""
        if not t or not self.matrix.size:
            return 0.0, self.basis @ self.amplitudes
        from scipy.linalg import expm

        fastest = float(np.real(np.linalg.eigvals(self.matrix)).max())
        amplitudes = expm((self.matrix - fastest * np.eye(len(self.matrix))) * t) @ self.amplitudes
        return fastest * t, self.basis @ amplitudes

    def log_size(self, t: float) -> float:
        """log |deviation| at t."""
        logarithm, unit = self.scaled(t)
        top = float(np.abs(unit).max())  # squares of what is tiny would vanish
        return logarithm + float(np.log(top) + np.log(norm(unit / top)))


@dataclass(frozen=True)
class Growth:
    """The growing invariant subspace of J: amplitudes = read . deviation, and amplitudes' = matrix amplitudes."""

    basis: np.ndarray
    matrix: np.ndarray
    read: np.ndarray

    @property
    def rates(self) -> np.ndarray:
        values = np.linalg.eigvals(self.matrix)
        return values[np.argsort(-np.real(values))]

    def motion(self, deviation: np.ndarray) -> Motion:
        """Only what is excited: a mode of amplitude zero that nothing drives sets no scale."""
        amplitudes = self.read @ deviation
        excited, before = amplitudes != 0, np.zeros(len(amplitudes), dtype=bool)
        while np.any(excited != before):
            before, excited = excited, excited | np.any(self.matrix[:, excited] != 0, axis=1)
        return Motion(self.basis[:, excited], self.matrix[np.ix_(excited, excited)], amplitudes[excited])


def threshold(largest: float) -> float:
    """The least rate that counts as growth where the largest |rate| is `largest`.

    Orbits of symmetries make many rates that are zero up to a share of the largest; others may be rounding.
    """
    return max(LIMITS.flat * largest, LIMITS.polished)


def growing_modes(values: np.ndarray, vectors: np.ndarray, above: float | None = None) -> Growth:
    """Of a symmetric J with these rates, in rising order, and modes."""
    growing = values > (threshold(float(np.abs(values).max(initial=0.0))) if above is None else above)
    basis = vectors[:, growing][:, ::-1]
    return Growth(basis, np.diag(values[growing][::-1]), basis.T)


def general_growth(matrix: np.ndarray, above: float | None = None) -> Growth:
    """Of any J, also one without a full set of eigenvectors, by its ordered real Schur form.

    J Z = Z [[T1, T12], [0, T2]] with the growing rates in T1. With T1 X - X T2 = -T12 the amplitudes z1 - X z2, z = Z^T
    deviation, move by T1 alone: what they leave out stays in the subspace that does not grow.
    """
    from scipy.linalg import schur, solve_sylvester

    if above is None:
        above = threshold(float(np.abs(np.linalg.eigvals(matrix)).max(initial=0.0)))
    schur_form: Any = schur(matrix, output="real", sort=lambda real, imaginary: real > above)
    upper, frame, count = schur_form
    first, remaining = frame[:, :count], frame[:, count:]
    matrix, read = upper[:count, :count], first.T
    if 0 < count < len(upper):
        read = read - solve_sylvester(matrix, -upper[count:, count:], -upper[:count, count:]) @ remaining.T
    return Growth(first, matrix, read)


def krylov_growth(times: Callable, deviation: np.ndarray, above: float, symmetric: bool) -> Motion:
    """The growing part of one deviation from products with J alone, by Arnoldi's method with full orthogonalisation.

    The space spanned by J^k deviation holds one direction for every rate the deviation contains, however often it is repeated.
    """
    size, length = len(deviation), float(norm(deviation))
    limit = min(LIMITS.steps, size)
    frame, small = np.zeros((size, limit + 1)), np.zeros((limit + 1, limit))
    if length == 0:
        return Motion(np.zeros((size, 0)), np.zeros((0, 0)), np.zeros(0))
    frame[:, 0], before = deviation / length, None
    for k in range(limit):
        new = times(frame[:, k])
        for _ in range(2):
            along = frame[:, : k + 1].T @ new
            small[: k + 1, k] += along
            new = new - frame[:, : k + 1] @ along
        small[k + 1, k] = norm(new)
        # up to rounding, the space is invariant
        closed = small[k + 1, k] <= LIMITS.polished * np.abs(small).max() or k + 1 == size
        if closed or (k + 1) % LOOK == 0:
            inner = small[: k + 1, : k + 1]
            growth = growing_modes(*np.linalg.eigh((inner + inner.T) / 2), above) if symmetric else general_growth(inner, above)
            motion = Motion(frame[:, : k + 1] @ growth.basis, growth.matrix, length * growth.read[:, 0])
            now = motion.at(0.0)
            if closed or (before is not None and norm(now - before) <= LIMITS.equal * norm(now)):
                return motion
            before = now
        frame[:, k + 1] = new / small[k + 1, k]
    raise StagescopeError(f"the growing part of a deviation among {size} parameters did not converge in {limit} steps")


MOST_RATES = 8
"""Different rates of growth that the second order handles: it takes a second derivative for each pair."""


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
    def _dense_growth(self) -> bool:
        """Whether growth and second order are computed from the whole Jacobian, not by products with it."""
        return self.dense and not (self._symmetric and len(self.point) > LIMITS.steps)

    @cached_property
    def _growth(self) -> Growth:
        if not self._symmetric:
            return general_growth(self.jacobian)
        roots: Any = self.near.roots
        matrix = self.jacobian * roots / roots[:, None]
        modes = growing_modes(*np.linalg.eigh((matrix + matrix.T) / 2))
        return Growth(roots[:, None] * modes.basis, modes.matrix, modes.read / roots)

    @cached_property
    def _threshold(self) -> float:
        return threshold(largest_rate(lambda x: self.near.jvp(self.point, x), len(self.point), symmetric=False))

    def _motion(self, deviation: np.ndarray) -> Motion:
        """The growing part of a deviation."""
        if not np.all(np.isfinite(deviation)):
            raise StagescopeError("the deviation from the critical point is not finite")
        if self._dense_growth:
            return self._growth.motion(deviation)
        if not self._symmetric:
            return krylov_growth(lambda x: self.near.jvp(self.point, x), deviation, self._threshold, symmetric=False)
        times, roots = self.near.symmetric(self.point)
        motion = krylov_growth(times, deviation / roots, self._threshold, symmetric=True)
        return Motion(roots[:, None] * motion.basis, motion.matrix, motion.amplitudes)

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

        end = expm_multiply(self.near.operator(self.point, t), deviation, traceA=0.0)  # the trace only shifts, to save work
        return self.near.layout.unpack(self.point + end)

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
        schur_form: Any = schur(np.kron(small, one) + np.kron(one, small), output="complex")
        upper, turn = schur_form
        forcing = np.stack([column for row in pairs for column in row], axis=1) @ turn
        solved = np.zeros_like(forcing)
        for k in range(count**2):  # from left to right: the sum of rates is triangular
            solved[:, k] = self._driven(upper[k, k], forcing[:, k] - solved[:, :k] @ upper[:k, k])
        return self.near.layout.unpack(np.real(solved @ (turn.conj().T @ np.kron(a, a))))

    def _driven(self, rate: complex, forcing: np.ndarray) -> np.ndarray:
        """The least w with (rate I - J) w = forcing; where `rate` is one of J's, there may be none: a resonance."""
        length = float(norm(forcing))
        if length == 0:
            return np.zeros_like(forcing)
        if self._dense_growth:
            system = (rate if np.imag(rate) else np.real(rate)) * np.eye(len(forcing)) - self.jacobian
            parts = np.stack([np.real(forcing), np.imag(forcing)], axis=1)
            solution = np.linalg.lstsq(system, parts, rcond=LIMITS.critical)[0] @ [1, 1j]
            error = float(norm(system @ solution - forcing))
        else:
            from scipy.sparse.linalg import lsmr

            if abs(np.imag(rate)) > LIMITS.equal * abs(rate):
                raise StagescopeError(
                    f"second order of turning modes needs the whole Jacobian: at most {LARGEST_DENSE} parameters"
                )
            operator, right = self.near.operator(self.point, -1.0, float(np.real(rate))), np.real(forcing)
            solution = lsmr(operator, right, atol=LIMITS.polished, btol=LIMITS.polished, maxiter=2000)[0]
            error = float(norm(operator @ solution - right))
        if error > LIMITS.equal * length:  # not solved: a resonance
            raise StagescopeError(
                f"resonance: the driven rate {np.real(rate):.4g} is itself a rate of this point and is excited, so the second "
                f"order grows as t e^({np.real(rate):.4g} t) and has no fixed shape"
            )
        return solution


def _distinct(motion: Motion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same motion with one direction for every different rate: those that a, A a, A^2 a, ... span."""
    small, a = motion.matrix, motion.amplitudes
    frame = [a / norm(a)]
    size = float(np.abs(np.linalg.eigvals(small)).max())
    while len(frame) < len(a):
        basis = np.array(frame)
        new = small @ frame[-1]
        for _ in range(2):
            new = new - basis.T @ (basis @ new)
        if norm(new) <= LIMITS.equal * size:
            break
        if len(frame) == MOST_RATES:
            raise StagescopeError(f"more than {MOST_RATES} different rates grow at once: the second order is not formed")
        frame.append(new / norm(new))
    basis = np.array(frame)
    return motion.basis @ basis.T, basis @ small @ basis.T, basis @ a


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
