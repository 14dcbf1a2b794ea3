"""The tip of a cone of zeros: where it is, of which order the field is there, and its fastest direction."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stagescope.landscape.derivatives import Derivatives, NotFinite


@dataclass(frozen=True)
class TipRule:
    """How the tip is searched for, and which tests its order must pass."""

    multiples: tuple[float, ...] = (1.0, 2.0, 3.0)  # of a Newton step: the p-fold one ends a homogeneous field of degree p
    cuts: tuple[float, ...] = (1e-12, 1e-8, 1e-5, 1e-3)  # singular values below such a share of the largest are not used
    steps: int = 40
    reached: float = 1e-12  # |F| at a tip
    flat: float = 1e-4  # singular values of J at the tip below this share of the largest one at the run are its kernel
    sizes: tuple[float, float] = (0.005, 0.01)  # of test displacements, relative to the length
    directions: int = 4
    agree: float = 0.1  # tests of the order must differ by less
    slaving: int = 30  # steps that bring the range coordinates to where F has none in them
    iterations: int = 500  # of the power method
    parity: float = 1e-3  # least share of F that c must have: F of the other parity is of no whole order
    exact: float = 1e-4  # |F_p(u) - c u| / c of an eigenvector


TIP = TipRule()


@dataclass(frozen=True)
class Tip:
    """A zero of F with s' = coefficient s^order along the fastest direction of its kernel; None where tests disagree."""

    point: np.ndarray
    order: float | None
    coefficient: float | None


def find_tip(near: Derivatives, start: np.ndarray, reach: float, length: float) -> Tip | None:
    """The tip that Euler-Newton steps reach from `start` within `reach`, None if they do not.

    Where F is homogeneous of degree p at a zero, J(x) x = p F(x): a Newton step goes 1/p of the way, the p-fold one all of it.
    """
    try:
        largest = float(np.linalg.norm(near.jacobian(start), 2))
        point = _euler_newton(near, start)
        if np.linalg.norm(near.velocity(point)) > TIP.reached or np.linalg.norm(point - start) > reach:
            return None
        return _described(near, point, start, TIP.flat * largest, length)
    except (NotFinite, np.linalg.LinAlgError):
        return None


def _euler_newton(near: Derivatives, start: np.ndarray) -> np.ndarray:
    point, size = start, float(np.linalg.norm(near.velocity(start)))
    for _ in range(TIP.steps):
        left, values, right = np.linalg.svd(near.jacobian(point))
        along, trials = left.T @ near.velocity(point), []
        for cut in TIP.cuts:
            kept = values > cut * values[0]
            step = -right[kept].T @ (along[kept] / values[kept])
            trials += [point + multiple * step for multiple in TIP.multiples]
        sizes = [float(np.nan_to_num(np.linalg.norm(near.velocity(trial)), nan=np.inf)) for trial in trials]
        best = int(np.argmin(sizes))
        if not sizes[best] < 0.9 * size:
            break
        point, size = trials[best], sizes[best]
        if size < 1e-16:
            break
    return point


Reduced = Callable[[np.ndarray], np.ndarray]
"""F on the kernel, its range coordinates slaved [Lyapunov-Schmidt]: a displacement in the kernel to its velocity there."""


def _described(near: Derivatives, point: np.ndarray, start: np.ndarray, flat: float, length: float) -> Tip:
    left, values, right = np.linalg.svd(near.jacobian(point))
    kernel = right[values <= flat]
    if not len(kernel):
        return Tip(point, None, None)
    rng = np.random.default_rng(0)
    first = kernel @ (start - point)
    directions = [first, *rng.normal(size=(TIP.directions, len(kernel)))]
    directions = [y / np.linalg.norm(y) for y in directions if np.linalg.norm(y) > 0]
    reduced = _reduced(near, point, (left, values, right), values > flat)
    order = _order(reduced, directions, length)
    return Tip(point, order, None if order is None else _coefficient(reduced, directions, order, length))


def _reduced(near: Derivatives, point: np.ndarray, parts: tuple[np.ndarray, ...], ranged: np.ndarray) -> Reduced:
    left, values, right = parts
    kernel, project = right[~ranged], np.linalg.solve(left[:, ~ranged].T @ right[~ranged].T, left[:, ~ranged].T)
    back = right[ranged].T @ (left[:, ranged].T / values[ranged][:, None])

    def reduced(y: np.ndarray) -> np.ndarray:
        vector = point + kernel.T @ y
        velocity = near.velocity(vector)
        for _ in range(TIP.slaving if ranged.any() else 0):
            step = back @ velocity
            vector = vector - step
            velocity = near.velocity(vector)
            if np.linalg.norm(step) <= 1e-14 * np.linalg.norm(y):
                break
        return project @ velocity

    return reduced


def _order(reduced: Reduced, directions: list[np.ndarray], length: float) -> float | None:
    """The power of s by which F grows in each direction, where all tests agree; a whole number where it is one."""
    small, large = (size * length for size in TIP.sizes)
    sizes = np.array([[np.linalg.norm(reduced(s * y)) for s in (small, large, 2 * large)] for y in directions])
    if not np.all(sizes > 0):
        return None
    tests = np.log2(sizes[:, 1:] / sizes[:, :-1]).ravel()
    if not np.ptp(tests) <= TIP.agree:
        return None
    found = float(np.mean(tests))
    return round(found) if abs(found - round(found)) <= TIP.agree else round(found, 2)


def _coefficient(reduced: Reduced, directions: list[np.ndarray], order: float, length: float) -> float | None:
    """The largest c with F_p(u) = c u, by the shifted power method; odd and even parts are taken to drop the next order."""
    s, sign = TIP.sizes[0] * length, (-1.0) ** order if order == round(order) else 0.0

    def leading(y: np.ndarray) -> np.ndarray:
        """The part of F of that parity."""
        if not sign:
            return reduced(s * y) / s**order
        return (reduced(s * y) + sign * reduced(-s * y)) / (2 * s**order)

    whole = max(float(np.linalg.norm(reduced(s * y))) / s**order for y in directions)
    found = [c for c in (_power(leading, y, order) for y in directions) if c is not None and c > TIP.parity * whole]
    return max(found) if found else None


def _power(leading: Reduced, y: np.ndarray, order: float) -> float | None:
    """c of the eigenvector that the power method finds from y; None if it does not converge, or c is not above zero."""
    shift = 0.0
    for _ in range(TIP.iterations):
        value = leading(y)
        c = float(value @ y)
        if np.linalg.norm(value - c * y) <= TIP.exact * abs(c):
            return c if c > 0 else None
        shift = max(shift, order * float(np.linalg.norm(value)) / 2)
        y = value + shift * y
        y = y / np.linalg.norm(y)
    return None
