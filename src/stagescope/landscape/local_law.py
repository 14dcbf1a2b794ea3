"""The local law of order n: how a run leaves a slow place by the Taylor polynomial of its field there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.landscape.derivatives import DENSE, Derivatives
from stagescope.landscape.linearise import Linearisation


@dataclass(frozen=True)
class LawRule:
    """When a polynomial is the law of an escape, and how far it is followed.

    Remainders are means over the time of the escape, along the path of the law itself, of the share of F that it leaves out:
    about the relative error of the time the law says.
    """

    linear: float = 0.1  # largest remainder of a linear law
    tolerance: float = 0.02  # of an order above one
    drift: float = 0.1  # of a law without a critical point
    most: int = 5  # orders that are tried,
    most_drift: int = 3  # and of a drift
    size: float = 0.1  # an escape ends at this share of the longest parameter vector,
    beyond: float = 2.0  # or at so many times the distance at which it began
    horizon: float = 10.0  # a law is followed for so many lengths of the run
    calls: int = 4000  # of the polynomial for one path,
    calls_drift: int = 500  # and for one of a drift
    points: int = 60  # along a path at which the remainder is taken
    accuracy: float = 1e-7


LAW = LawRule()


@dataclass(frozen=True)
class LocalLaw:
    """A Taylor polynomial of F of an order, followed from the run until the displacement has a size.

    `order` is None where no order fits; `remainder` then is the least that was found, and `why` the reason. `after` is the
    time until the displacement from the point has the size, `end` the displacement then.
    """

    order: int | None
    remainder: float
    after: float | None = None
    end: np.ndarray | None = None
    why: str = ""


class _UsedUp(Exception):
    pass


def local_law(near: Derivatives, point: np.ndarray, start: np.ndarray, size: float, horizon: float) -> LocalLaw:
    """The law of least order above one that holds from the displacement `start` from a critical point on."""
    return _least(near, (point, start), range(2, LAW.most + 1), LAW.tolerance, (size, horizon, LAW.calls))


def drift_law(near: Derivatives, here: np.ndarray, size: float, horizon: float, most: int) -> LocalLaw:
    """The law of least order, at most `most`, by which F and its derivatives at a point that is not critical move it on."""
    jacobian, velocity = near.jacobian(here), near.velocity(here)
    times, path, left = _straight(jacobian, velocity, size, horizon)
    found = _mean_remainder(near, here, times, path, lambda displacement: velocity + jacobian @ displacement)
    if left and found <= LAW.drift:
        return LocalLaw(1, found, float(times[-1]), path[-1])
    higher = _least(near, (here, np.zeros_like(here)), range(2, most + 1), LAW.drift, (size, horizon, LAW.calls_drift))
    return higher if higher.order is not None else LocalLaw(None, min(found, higher.remainder), why=higher.why)


def carried(near: Derivatives, here: np.ndarray, order: int, goal: Callable[[np.ndarray], float], horizon: float) -> float | None:
    """The time in which the Taylor polynomial of F of an order at a point carries it to where `goal` of the vector is zero.

    F at the point is kept, so it need not be critical. None where it does not come there by the horizon, or in `LAW.calls`.
    """

    def law(displacement: np.ndarray) -> np.ndarray:
        return near.series(here, displacement, order).sum(axis=0)

    try:
        times, _, reached = _followed(law, np.zeros_like(here), 1.0, horizon, LAW.calls, lambda moved: goal(here + moved))
    except _UsedUp:
        return None
    return float(times[-1]) if reached else None


def _least(
    near: Derivatives, place: tuple[np.ndarray, np.ndarray], orders: range, bound: float, limits: tuple[float, float, int]
) -> LocalLaw:
    """The first order whose remainder, at the start and along its path, is within the bound, and by which the run leaves."""
    (point, start), least, why = place, np.inf, ""
    drift = not start.any()
    for order in orders:

        def law(displacement: np.ndarray, order: int = order) -> np.ndarray:
            return near.series(point, displacement, order)[0 if drift else 1 :].sum(axis=0)

        first = remainder(near, point, start, law)
        if not first <= bound:
            least = min(least, first)
            continue
        try:
            times, path, left = _followed(law, start, *limits)
        except _UsedUp:
            return LocalLaw(None, least, why=f"the law of order {order} was not followed in {limits[2]} evaluations")
        found = _mean_remainder(near, point, times, path, law)
        if found <= bound and left:
            return LocalLaw(order, found, float(times[-1]), path[-1])
        why = "" if left else f"by the law of order {order} it would not leave"
        least = min(least, found)
    return LocalLaw(None, least, why=why)


def linear_remainder(local: Linearisation, start: np.ndarray, after: float | None) -> float:
    """The mean remainder of the linear law over an escape; of a large model, or one that never leaves, that at its start."""
    near, point = local.near, local.point
    if not after or not near.dense:
        return remainder(near, point, start, lambda displacement: near.jvp(point, displacement))
    from scipy.linalg import expm

    jacobian, times = local.jacobian, np.linspace(0.0, after, LAW.points)
    step, path = expm(jacobian * times[1]), [start]
    for _ in times[1:]:
        path.append(step @ path[-1])
    return _mean_remainder(near, point, times, np.array(path), lambda displacement: jacobian @ displacement)


Law = Callable[[np.ndarray], np.ndarray]
"""The velocity of a displacement."""


def remainder(near: Derivatives, point: np.ndarray, displacement: np.ndarray, law: Law) -> float:
    """The share of F that a law leaves out; infinite where it is not finite."""
    velocity = near.velocity(point + displacement)
    found = float(np.linalg.norm(velocity - law(displacement)) / max(float(np.linalg.norm(velocity)), 1e-300))
    return found if np.isfinite(found) else np.inf


def _mean_remainder(near: Derivatives, point: np.ndarray, times: np.ndarray, path: np.ndarray, law: Law) -> float:
    kept = np.unique(np.linspace(0, len(times) - 1, LAW.points).astype(int))
    values = np.array([remainder(near, point, path[i], law) for i in kept])
    return float(np.trapezoid(values, times[kept]) / times[-1]) if times[-1] > 0 else float(values[0])


Path = tuple[np.ndarray, np.ndarray, bool]
"""Times and displacements until their length is a size, and whether it comes to that."""


def _straight(jacobian: np.ndarray, velocity: np.ndarray, size: float, horizon: float) -> Path:
    """The path of F + J d from d = 0, by the exponential of [[J, F], [0, 0]]: its time is doubled until d is long enough."""
    from scipy.linalg import expm

    count = len(velocity)
    whole = np.zeros((count + 1, count + 1))
    whole[:count, :count], whole[:count, count] = jacobian, velocity
    end = min(horizon, size / max(float(np.linalg.norm(velocity)), 1e-300))
    moved = expm(whole * end)
    while end < horizon and np.linalg.norm(moved[:count, count]) < size:  # also ends where it is not finite
        moved, end = moved @ moved, 2 * end
    times = np.linspace(0.0, end, 8 * LAW.points)
    step, path = expm(whole * times[1]), [np.append(np.zeros(count), 1.0)]
    for _ in times[1:]:
        path.append(step @ path[-1])
    found = np.array(path)[:, :count]
    long = np.flatnonzero(~(np.linalg.norm(found, axis=1) < size))
    last = int(long[0]) if long.size else len(times) - 1
    return times[: last + 1], found[: last + 1], bool(long.size)


def _followed(
    law: Law, start: np.ndarray, size: float, horizon: float, calls: int, goal: Callable[[np.ndarray], float] | None = None
) -> Path:
    """The path of a law until it is `size` long, or at the goal, by a solver that may use so many calls of it."""
    from scipy.integrate import solve_ivp

    made = 0

    def velocity(_: float, displacement: np.ndarray) -> np.ndarray:
        nonlocal made
        made += 1
        if made > calls:
            raise _UsedUp
        return law(displacement)

    end = goal or (lambda displacement: float(np.linalg.norm(displacement)) - size)
    left: Any = lambda _, displacement: end(displacement)  # noqa: E731
    left.terminal, left.direction = True, 1
    method = "LSODA" if len(start) <= DENSE else "RK45"  # of many parameters, its implicit steps take too long
    bounds: Any = {"rtol": LAW.accuracy, "atol": LAW.accuracy**2 * size}
    found = solve_ivp(velocity, (0.0, horizon), start, method=method, events=left, **bounds)
    return found.t, found.y.T, found.status == 1
