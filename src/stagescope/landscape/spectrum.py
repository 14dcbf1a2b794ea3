"""Rates at a point: eigenvalues and directions of the linearised field, and forks that are pushed along one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.linalg import norm
from pydantic import Field as Limits

from stagescope.core.errors import InputError, StagescopeError
from stagescope.core.params import Layout, Params
from stagescope.flow.field import Field, Objective
from stagescope.flow.fork import Forked
from stagescope.landscape.derivatives import Derivatives, NotFinite
from stagescope.landscape.limits import LIMITS

LARGEST_DENSE = 3000
"""Parameters up to which all rates are computed where iteration fails: about .4 GB and half a minute at this size."""
ROUNDS = 20
"""How often what an iteration found is taken out to look for more."""

Times = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Spectrum:
    """Growth rates of small deviations from a point, fastest first, and their directions.

    Rates of a loss are real and are its curvatures with the other sign; those of a law that is no gradient may be
    complex. All rates are known where `complete`, else only the fastest growing ones; `largest` is the largest |rate|.
    Where the iteration did not converge, `rates` holds fewer than were `requested`, and they need not be the fastest.

    Examples:
        >>> found = ss.spectrum(well, {"x": np.zeros(1)})
        >>> found.rates.tolist(), found.complete
        ([1.0], True)
    """

    rates: np.ndarray
    directions: tuple[Mapping[str, np.ndarray], ...]
    speed: float
    complete: bool
    largest: float
    requested: int

    @property
    def converged(self) -> bool:
        """Whether these are all rates, or as many as were requested."""
        return self.complete or len(self.rates) >= self.requested

    @property
    def curvatures(self) -> np.ndarray:
        """Eigenvalues of the Hessian, ascending, at unit rates."""
        return -self.rates


@dataclass(frozen=True)
class Modes:
    """Eigenvalues of J, largest real part first, with eigenvectors as columns."""

    values: np.ndarray
    vectors: np.ndarray
    largest: float
    complete: bool


def spectrum(what: Objective | Field, params: Params, fastest: int = 6, rates: Mapping[str, float] | None = None) -> Spectrum:
    """The `fastest` growing directions at a point with their rates; all rates where the model is small.

    Rates of a reduced model are those of the unreduced one on its symmetric subspace.

    Args:
        what: an objective or a field.
        params: the point.
        fastest: how many rates, where the model is large.
        rates: a factor of the velocity for each block.

    Examples:
        >>> ss.spectrum(well, {"x": np.ones(1)}).rates.tolist()
        [-2.0]
    """
    if not fastest >= 1:
        raise InputError(f"fastest is {fastest}, but must be at least 1")
    near = Derivatives(what, params, rates)
    nearby = spectrum_at(near, near.layout.pack(params), fastest)
    if not len(nearby.rates):
        raise StagescopeError(f"none of the {fastest} fastest of {near.layout.size} rates converged; ask for fewer or more")
    return nearby


def spectrum_at(near: Derivatives, vector: np.ndarray, fastest: int) -> Spectrum:
    """The spectrum at a flat vector; it holds no rates where the iteration did not converge or the Jacobian is not finite."""
    try:
        modes = eigen(near, vector, fastest)
    except (NotFinite, np.linalg.LinAlgError):
        modes = Modes(np.zeros(0), np.zeros((len(vector), 0)), np.inf, complete=False)
    speed = near.field.speed(near.layout.unpack(near.velocity(vector)))
    directions = tuple(near.layout.unpack(modes.vectors[:, i]) for i in range(min(fastest, modes.vectors.shape[1])))
    return Spectrum(modes.values, directions, speed, modes.complete, modes.largest, requested=fastest)


def eigen(near: Derivatives, vector: np.ndarray, fastest: int) -> Modes:
    """All modes of J where that takes less time, else the fastest by iteration, or all again where that does not converge."""
    size = near.layout.size
    if near.all_rates or fastest >= size - 1:
        return dense_eigen(near.jacobian(vector), near.roots)
    symmetric = near.roots is not None
    times, roots = near.symmetric(vector) if symmetric else (lambda x: near.jvp(vector, x), np.ones(size))
    largest = largest_rate(times, size, symmetric)
    if largest == 0:
        return Modes(np.zeros(fastest), roots[:, None] * np.eye(size)[:, :fastest], 0.0, complete=False)
    values, vectors = (_lanczos if symmetric else _arnoldi)(times, size, fastest, largest)
    if len(values) < fastest and size <= LARGEST_DENSE:
        return dense_eigen(near.jacobian(vector), near.roots)
    return Modes(values, roots[:, None] * vectors, largest, complete=False)


def dense_eigen(jacobian: np.ndarray, roots: np.ndarray | None) -> Modes:
    """All modes; `roots` is D^(1/2) of a gradient field, which makes its Jacobian symmetric."""
    if roots is None:
        values, vectors = np.linalg.eig(jacobian)
        order = np.argsort(-np.real(values))
        values, vectors = values[order], vectors[:, order]
    else:
        moving = roots > 0
        scale = np.where(moving, roots, 1.0)
        symmetric = np.where(np.outer(moving, moving), jacobian * scale / scale[:, None], 0.0)
        values, vectors = np.linalg.eigh((symmetric + symmetric.T) / 2)
        values, vectors = values[::-1], scale[:, None] * vectors[:, ::-1]
    return Modes(values, vectors, float(np.abs(values).max(initial=0.0)), complete=True)


def largest_rate(times: Times, size: int, symmetric: bool) -> float:
    """About the largest |rate|; 0 only where J vanishes."""
    start = _start(size, 0)
    gain = float(norm(times(start)) / norm(start))
    if not np.isfinite(gain):
        raise NotFinite("products with the Jacobian at this point are not finite")
    if gain == 0:
        return 0.0
    values, _ = _arpack("eigsh" if symmetric else "eigs", times, size, 1, "LM", LIMITS.agree, seed=0)  # it only sets a scale
    return max(gain, float(np.abs(values).max(initial=0.0)))


def _lanczos(times: Times, size: int, fastest: int, largest: float) -> tuple[np.ndarray, np.ndarray]:
    """The fastest modes of a symmetric operator, with all their copies.

    From one start Lanczos sees one copy of a repeated rate, the others by rounding at best. So what was found is taken to
    the other end of the spectrum, and the search repeated, until nothing faster than the slowest kept remains.
    """
    values, vectors = np.zeros(0), np.zeros((size, 0))
    for seed in range(ROUNDS):
        rates, directions = _arpack("eigsh", _below(times, values, vectors, largest), size, fastest, "LA", LIMITS.critical, seed)
        if not len(rates):
            break
        settled = len(values) >= fastest and rates.max() <= values[fastest - 1] + LIMITS.free * largest
        values, vectors = np.append(values, rates), np.linalg.qr(np.hstack([vectors, directions]))[0]
        order = np.argsort(-values)
        values, vectors = values[order], vectors[:, order]
        if settled:
            return values[:fastest], vectors[:, :fastest]
    return values[: fastest - 1], vectors[:, : fastest - 1]  # one short: whether faster ones are missing is not known


def _below(times: Times, values: np.ndarray, vectors: np.ndarray, largest: float) -> Times:
    """The operator with the given modes moved to below all others."""
    return lambda x: times(x) - vectors @ ((values + 2 * largest) * (vectors.T @ x))


def _arnoldi(times: Times, size: int, fastest: int, largest: float) -> tuple[np.ndarray, np.ndarray]:
    """The fastest modes of any operator; one short where a second look, outside their span, finds a faster one."""
    values, vectors = _arpack("eigs", times, size, fastest, "LR", LIMITS.critical, seed=0)
    if len(values) >= fastest:
        span = np.linalg.svd(np.hstack([np.real(vectors), np.imag(vectors)]), full_matrices=False)
        span = span[0][:, span[1] > LIMITS.free * span[1][0]]

        def outside(x: np.ndarray) -> np.ndarray:
            remaining = x - span @ (span.T @ x)
            image = times(remaining)
            return image - span @ (span.T @ image) - 2 * largest * (x - remaining)

        faster, _ = _arpack("eigs", outside, size, 1, "LR", LIMITS.free, seed=1)
        if not len(faster) or np.real(faster[0]) > np.real(values[fastest - 1]) + LIMITS.free * largest:
            values, vectors = values[: fastest - 1], vectors[:, : fastest - 1]
    return values[:fastest], vectors[:, :fastest]


def _arpack(
    kind: str, times: Times, size: int, count: int, which: str, tolerance: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs, largest real part first, by ARPACK from a fixed start: those that converged within bounded work."""
    from scipy.sparse import linalg

    make: Any = linalg.LinearOperator  # its stub does not know these arguments
    operator = make((size, size), matvec=lambda x: times(np.ravel(x)), dtype=float)
    dimension = min(size, max(LIMITS.iterations, 4 * count + 1))
    try:
        values, vectors = getattr(linalg, kind)(
            operator, k=count, which=which, v0=_start(size, seed), tol=tolerance, ncv=dimension, maxiter=LIMITS.iterations
        )
    except linalg.ArpackNoConvergence as failure:
        values, vectors = failure.eigenvalues, failure.eigenvectors
    except linalg.ArpackError:
        values, vectors = np.zeros(0), np.zeros((size, 0))
    order = np.argsort(-np.real(values))
    return values[order], vectors[:, order]


def _start(size: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=size)


def blocks(direction: Mapping[str, np.ndarray]) -> str:
    """The parameter blocks that carry a direction, largest first."""
    shares = {name: float(np.sum(np.abs(block) ** 2)) for name, block in direction.items()}
    total = sum(shares.values())
    order = sorted(shares, key=lambda name: (-round(shares[name] / total, 3), name))
    return "+".join(name for name in order if shares[name] > 0.05 * total)


class Pushed(Forked):
    """A fork whose second part begins `perturb` away, along the `along`-th fastest growing direction at the frame.

    The distance is absolute, in the norm over all coordinates of the unreduced model. A push that is negative goes the other way.
    """

    perturb: float
    along: int = Limits(default=1, ge=1)

    def pushed(self, field: Field, layout: Layout, vector: np.ndarray) -> np.ndarray:
        unit, *_ = direction(field, layout, vector, self.after.block_rates(layout.names), self.along)
        return vector + self.perturb * unit


def direction(
    field: Field, layout: Layout, vector: np.ndarray, rates: Mapping[str, float], along: int
) -> tuple[np.ndarray, float, int]:
    """The `along`-th fastest growing direction at a point, of length 1, its rate, and how many are known to have this rate.

    The first of its entries that are clear of rounding, at least half of the largest, is positive.
    """
    if field.objective is None:
        raise InputError("this law of motion is no gradient, and its directions may turn: leave out --perturb")
    near = Derivatives(field, layout.unpack(vector), rates)
    assert near.roots is not None
    moving = near.roots > 0
    free = int(moving.sum())
    if along > free:
        raise InputError(f"along is {along}, but {free} parameters move and have as many directions; choose 1 to {free}")
    if near.dense:
        modes = dense_eigen(near.jacobian(vector)[np.ix_(moving, moving)], near.roots[moving])
        unit = np.zeros_like(vector)
        unit[moving] = modes.vectors[:, along - 1]
    else:
        modes = eigen(near, vector, along)
        if len(modes.values) < along:
            raise StagescopeError(f"direction {along} of the spectrum did not converge at this frame; choose a lower --along")
        unit = np.where(moving, modes.vectors[:, along - 1], 0.0)
    if norm(unit) < LIMITS.equal:
        raise InputError(f"direction {along} has rate 0 and lies in frozen blocks; choose a lower --along")
    first = int(np.argmax(np.abs(unit) >= LIMITS.half * np.abs(unit).max()))
    rate = float(modes.values[along - 1])
    copies = int(np.sum(np.abs(modes.values - rate) <= LIMITS.free * modes.largest))
    return unit * (np.sign(unit[first]) / field.speed(layout.unpack(unit))), rate, copies
