"""Rates at a point: eigenvalues and directions of the linearised field."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.errors import InputError, StagescopeError
from stagescope.landscape.derivatives import Derivatives
from stagescope.objectives.field import Field
from stagescope.objectives.objective import Objective
from stagescope.types import Params


@dataclass(frozen=True)
class Spectrum:
    """Growth rates of small deviations from a point, fastest first, and their directions.

    Rates of a loss are real and are its curvatures with the other sign; those of a law that is no gradient may be
    complex. All rates are known where `complete`, else only the fastest growing ones.
    """

    rates: np.ndarray
    directions: tuple[Mapping[str, np.ndarray], ...]
    speed: float
    complete: bool

    @property
    def curvatures(self) -> np.ndarray:
        """Eigenvalues of the Hessian, ascending, at unit rates."""
        return -self.rates


def spectrum(what: Objective | Field, params: Params, fastest: int = 6, rates: Mapping[str, float] | None = None) -> Spectrum:
    """The `fastest` growing directions at a point with their rates; all rates where the model is small.

    Rates of a reduced model are those of the unreduced one on its symmetric subspace.
    """
    if not fastest >= 1:
        raise InputError(f"fastest is {fastest}, but at least one rate must be asked for")
    near = Derivatives(what, params, rates)
    vector = near.layout.pack(params)
    values, vectors = eigen(near, vector, fastest)
    speed = near.field.speed(near.layout.unpack(near.velocity(vector)))
    directions = tuple(near.layout.unpack(vectors[:, i]) for i in range(min(fastest, vectors.shape[1])))
    return Spectrum(values, directions, speed, complete=near.dense)


def eigen(near: Derivatives, vector: np.ndarray, fastest: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of J, largest real part first, with eigenvectors as columns; all of them where the model is small."""
    if near.dense:
        return dense_eigen(near.jacobian(vector), near.roots)
    known = near.roots
    if known is None:
        return _largest("eigs", lambda x: near.jvp(vector, np.ravel(x)), near.layout.size, fastest)
    moving, roots = known > 0, np.where(known > 0, known, 1.0)

    def times(x: np.ndarray) -> np.ndarray:
        x = np.where(moving, np.ravel(x), 0.0)  # a frozen block neither moves nor is moved
        return near.jvp(vector, roots * x) / roots

    values, vectors = _largest("eigsh", times, near.layout.size, fastest)
    return values, roots[:, None] * vectors


def dense_eigen(jacobian: np.ndarray, roots: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """All eigenvalues, largest real part first; `roots` is D^(1/2) of a gradient field, which makes it symmetric."""
    if roots is None:
        values, vectors = np.linalg.eig(jacobian)
        order = np.argsort(-np.real(values))
        return values[order], vectors[:, order]
    moving = roots > 0
    scale = np.where(moving, roots, 1.0)
    symmetric = np.where(np.outer(moving, moving), jacobian * scale / scale[:, None], 0.0)
    values, vectors = np.linalg.eigh((symmetric + symmetric.T) / 2)
    return values[::-1], scale[:, None] * vectors[:, ::-1]


def _largest(kind: str, times: Callable, size: int, fastest: int) -> tuple[np.ndarray, np.ndarray]:
    """Lanczos (eigsh) or Arnoldi (eigs) for the eigenvalues of largest real part, from a fixed start: it is repeatable."""
    from scipy.sparse import linalg

    make: Any = linalg.LinearOperator  # its stub does not know these arguments
    solve: Any = getattr(linalg, kind)
    start = np.random.default_rng(0).normal(size=size)
    which = "LA" if kind == "eigsh" else "LR"
    try:
        values, vectors = solve(make((size, size), matvec=times, dtype=float), k=fastest, which=which, v0=start, tol=1e-10)
    except (linalg.ArpackError, TypeError) as error:
        raise StagescopeError(f"the {fastest} fastest of {size} rates did not converge ({error}); ask for fewer") from None
    order = np.argsort(-np.real(values))
    return values[order], vectors[:, order]
