"""The growing part of a linear motion: which share of a deviation grows, and how it goes on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.errors import StagescopeError

STEPS, LOOK, AGREE = 300, 20, 1e-6
"""A Krylov space grows up to STEPS steps and is checked every LOOK steps, until its growing part changes by less than AGREE."""


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
        moved = expm((self.matrix - fastest * np.eye(len(self.matrix))) * t) @ self.amplitudes
        return fastest * t, self.basis @ moved

    def log_size(self, t: float) -> float:
        """log |deviation| at t."""
        logarithm, unit = self.scaled(t)
        top = float(np.abs(unit).max())  # squares of what is tiny would vanish
        return logarithm + float(np.log(top) + np.log(np.linalg.norm(unit / top)))


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
        reached, before = amplitudes != 0, np.zeros(len(amplitudes), dtype=bool)
        while np.any(reached != before):
            before, reached = reached, reached | np.any(self.matrix[:, reached] != 0, axis=1)
        return Motion(self.basis[:, reached], self.matrix[np.ix_(reached, reached)], amplitudes[reached])


def threshold(largest: float) -> float:
    """The least rate that counts as growth where the largest |rate| is `largest`.

    Orbits of symmetries make many rates that are zero up to 1e-7 of the largest; below 1e-12 a rate is rounding.
    """
    return max(1e-7 * largest, 1e-12)


def symmetric_growth(matrix: np.ndarray, above: float | None = None) -> Growth:
    """Of a symmetric J: eigenvectors of rates above `above`."""
    return growing_modes(*np.linalg.eigh((matrix + matrix.T) / 2), above)


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
    made: Any = schur(matrix, output="real", sort=lambda real, imaginary: real > above)
    upper, frame, count = made
    first, rest = frame[:, :count], frame[:, count:]
    coupling = (
        solve_sylvester(upper[:count, :count], -upper[count:, count:], -upper[:count, count:]) if 0 < count < len(matrix) else 0
    )
    read = first.T - (coupling @ rest.T if 0 < count < len(matrix) else 0)
    return Growth(first, upper[:count, :count], read)


def krylov_growth(times: Callable, deviation: np.ndarray, above: float, symmetric: bool) -> Motion:
    """The growing part of one deviation from products with J alone, by Arnoldi's method with full orthogonalisation.

    The space spanned by J^k deviation holds one direction for every rate the deviation contains, however often it is repeated.
    """
    size, length = len(deviation), float(np.linalg.norm(deviation))
    most = min(STEPS, size)
    frame, small = np.zeros((size, most + 1)), np.zeros((most + 1, most))
    if length == 0:
        return Motion(np.zeros((size, 0)), np.zeros((0, 0)), np.zeros(0))
    frame[:, 0], before = deviation / length, None
    for k in range(most):
        new = times(frame[:, k])
        for _ in range(2):
            along = frame[:, : k + 1].T @ new
            small[: k + 1, k] += along
            new = new - frame[:, : k + 1] @ along
        small[k + 1, k] = np.linalg.norm(new)
        closed = small[k + 1, k] <= 1e-12 * np.abs(small).max() or k + 1 == size  # up to rounding, the space is invariant
        if closed or (k + 1) % LOOK == 0:
            inner = small[: k + 1, : k + 1]
            found = (symmetric_growth if symmetric else general_growth)(inner, above)
            motion = Motion(frame[:, : k + 1] @ found.basis, found.matrix, length * found.read[:, 0])
            now = motion.at(0.0)
            if closed or (before is not None and np.linalg.norm(now - before) <= AGREE * np.linalg.norm(now)):
                return motion
            before = now
        frame[:, k + 1] = new / small[k + 1, k]
    raise StagescopeError(f"the growing part of a deviation among {size} parameters did not converge in {most} steps")
