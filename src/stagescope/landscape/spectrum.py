"""Rates at a point: eigenvalues and directions of the linearised field."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stagescope.errors import InputError
from stagescope.objectives.objective import Objective
from stagescope.types import Layout, Params

DENSE = 500
"""Parameters up to which the whole Hessian is formed; above it, Lanczos on Hessian-vector products."""


@dataclass(frozen=True)
class Spectrum:
    """Curvatures of a loss at a point, ascending: the field's rates are their negatives, so the first is the fastest escape."""

    curvatures: np.ndarray
    directions: tuple[Mapping[str, np.ndarray], ...]
    gradient_norm: float
    complete: bool

    @property
    def rates(self) -> np.ndarray:
        """Growth rates of the flow, largest first."""
        return -self.curvatures


def spectrum(objective: Objective, params: Params, lowest: int = 6) -> Spectrum:
    """The `lowest` curvatures of an objective at a point and their directions; all of them where the model is small.

    Curvature is that of the unreduced model on its symmetric subspace: coordinates are scaled by the root of their
    multiplicity, in which the Hessian is symmetric.
    """
    layout = Layout.of(params)
    if not lowest >= 1:
        raise InputError(f"lowest is {lowest}, but at least one curvature must be asked for")
    roots = np.sqrt(layout.pack(_multiplicities(objective, params)))

    def times(vector: np.ndarray) -> np.ndarray:
        direction = layout.unpack(np.ravel(vector) / roots)
        return roots * layout.pack(objective.hvp(params, direction))

    if layout.size <= DENSE:
        hessian = np.stack([times(row) for row in np.eye(layout.size)])
        values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    else:
        values, vectors = _lanczos(times, layout.size, lowest)
    count = min(lowest, len(values))
    gradient = layout.pack(objective.grad(params)) * roots
    return Spectrum(
        curvatures=values if layout.size <= DENSE else values[:count],
        directions=tuple(layout.unpack(vectors[:, i] / roots) for i in range(count)),
        gradient_norm=float(np.linalg.norm(gradient)),
        complete=layout.size <= DENSE,
    )


def _multiplicities(objective: Objective, params: Params) -> Params:
    known = objective.multiplicity
    return {name: np.broadcast_to(known.get(name, 1.0), np.shape(block)) for name, block in params.items()}


def _lanczos(times, size: int, lowest: int) -> tuple[np.ndarray, np.ndarray]:  # noqa: ANN001
    from scipy.sparse.linalg import LinearOperator, eigsh

    operator = LinearOperator((size, size), matvec=times, dtype=float)  # pyright: ignore[reportCallIssue]
    start = np.random.default_rng(0).normal(size=size)  # fixed, so that the answer is repeatable
    values, vectors = eigsh(operator, k=lowest, which="SA", v0=start, tol=1e-10)  # pyright: ignore[reportArgumentType]
    order = np.argsort(values)
    return values[order], vectors[:, order]
