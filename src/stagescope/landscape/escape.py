"""How a run leaves a slow place: by the linear law, by one of a higher order, by a drift, or by none that can be stated.

The tip of a cone of zeros comes first, then local laws (Taylor polynomials of the field), then the run beside them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.linalg import norm

from stagescope.core.errors import StagescopeError
from stagescope.detect.events import first_crossing
from stagescope.flow.field import Field, Objective
from stagescope.landscape.critical import FASTEST, CriticalPoint, newton
from stagescope.landscape.derivatives import DENSE, Derivatives, NotFinite
from stagescope.landscape.limits import EPS, LIMITS
from stagescope.landscape.linearise import Linearisation, last_rise, linearise
from stagescope.landscape.spectrum import blocks, spectrum
from stagescope.runs.run import Run

CUTS = np.array([1e-12, 1e-8, 1e-5, 1e-3])
"""Those of the steps towards a tip, where many singular values are nearly zero."""


@dataclass(frozen=True)
class Tip:
    """A zero of F with s' = coefficient s^order along the fastest direction of its kernel; None where tests disagree."""

    point: np.ndarray
    order: float | None
    coefficient: float | None


Reduced = Callable[[np.ndarray], np.ndarray]
"""F on the kernel, its range coordinates slaved [Lyapunov-Schmidt]: a displacement in the kernel to its velocity there."""


def find_tip(near: Derivatives, start: np.ndarray, reach: float, length: float) -> Tip | None:
    """The tip that undamped steps reach from `start` within `reach`, None if they do not."""
    try:
        largest = float(norm(near.jacobian(start), 2))
        point = newton(near, start, EPS, CUTS, multiples=(1.0, 2.0, 3.0))
        if norm(near.velocity(point)) > LIMITS.polished or norm(point - start) > reach:
            return None
        left, values, right = np.linalg.svd(near.jacobian(point))
        ranged = values > LIMITS.kernel * largest
        kernel = right[~ranged]
        if not len(kernel):
            return Tip(point, None, None)
        random_directions = np.random.default_rng(0).normal(size=(LIMITS.starts - 1, len(kernel)))
        directions = [y / norm(y) for y in (kernel @ (start - point), *random_directions) if norm(y) > 0]
        reduced, s = _reduced(near, point, (left, values, right), ranged), LIMITS.displacement * length
        order = _order(reduced, directions, s)
        return Tip(point, order, None if order is None else _coefficient(reduced, directions, order, s))
    except (NotFinite, np.linalg.LinAlgError):
        return None


def _reduced(near: Derivatives, point: np.ndarray, parts: tuple[np.ndarray, ...], ranged: np.ndarray) -> Reduced:
    left, values, right = parts
    kernel, project = right[~ranged], np.linalg.solve(left[:, ~ranged].T @ right[~ranged].T, left[:, ~ranged].T)
    back = right[ranged].T @ (left[:, ranged].T / values[ranged][:, None])

    def reduced(y: np.ndarray) -> np.ndarray:
        vector = point + kernel.T @ y
        velocity = near.velocity(vector)
        for _ in range(LIMITS.patience if ranged.any() else 0):
            step = back @ velocity
            vector = vector - step
            velocity = near.velocity(vector)
            if norm(step) <= 1e-14 * norm(y):
                break
        return project @ velocity

    return reduced


def _order(reduced: Reduced, directions: list[np.ndarray], s: float) -> float | None:
    """The power of s by which F grows in each direction, where all tests agree; a whole number where it is one."""
    sizes = np.array([[norm(reduced(factor * s * y)) for factor in (1, 2, 4)] for y in directions])
    if not np.all(sizes > 0):
        return None
    tests = np.log2(sizes[:, 1:] / sizes[:, :-1]).ravel()
    if not np.ptp(tests) <= LIMITS.holds:
        return None
    mean_order = float(np.mean(tests))
    return round(mean_order) if abs(mean_order - round(mean_order)) <= LIMITS.holds else round(mean_order, 2)


def _coefficient(reduced: Reduced, directions: list[np.ndarray], order: float, s: float) -> float | None:
    """The largest c with F_p(u) = c u, by the shifted power method; odd and even parts are taken to drop the next order."""
    sign = (-1.0) ** order if order == round(order) else 0.0

    def leading(y: np.ndarray) -> np.ndarray:
        """The part of F of that parity."""
        if not sign:
            return reduced(s * y) / s**order
        return (reduced(s * y) + sign * reduced(-s * y)) / (2 * s**order)

    largest = max(float(norm(reduced(s * y))) / s**order for y in directions)
    coefficients = [c for c in (_power(leading, y, order) for y in directions) if c is not None and c > LIMITS.small * largest]
    return max(coefficients) if coefficients else None


def _power(leading: Reduced, y: np.ndarray, order: float) -> float | None:
    """c of the eigenvector that the power method finds from y; None if it does not converge, or c is not above zero."""
    shift = 0.0
    for _ in range(LIMITS.steps):
        value = leading(y)
        c = float(value @ y)
        if norm(value - c * y) <= LIMITS.kernel * abs(c):
            return c if c > 0 else None
        shift = max(shift, order * float(norm(value)) / 2)
        y = value + shift * y
        y = y / norm(y)
    return None


@dataclass(frozen=True)
class LocalLaw:
    """A Taylor polynomial of F of an order, followed from the run until the displacement has a size.

    `order` is None where no order fits; `remainder` then is the least that was found, and `reason` says why. `after` is the
    time until the displacement from the point has the size, `end` the displacement then.
    """

    order: int | None
    remainder: float
    after: float | None = None
    end: np.ndarray | None = None
    reason: str = ""


class _UsedUp(Exception):
    pass


def local_law(
    near: Derivatives, point: np.ndarray, start: np.ndarray, size: float, horizon: float, orders: int = LIMITS.orders
) -> LocalLaw:
    """The law of least order, from two to `orders`, that holds from the displacement `start` from a point on, and leaves it.

    A remainder is taken at the start and along the path. Where `start` is zero, F at the point is kept: a drift.
    """
    drift, least, reason = not start.any(), np.inf, ""
    bound, calls = (LIMITS.holds, LIMITS.drift_calls) if drift else (LIMITS.precise, LIMITS.calls)
    for order in range(2, orders + 1):

        def law(displacement: np.ndarray, order: int = order) -> np.ndarray:
            return near.series(point, displacement, order)[0 if drift else 1 :].sum(axis=0)

        first = remainder(near, point, start, law)
        if not first <= bound:
            least = min(least, first)
            continue
        try:
            times, path, escaped = _followed(law, start, size, horizon, calls)
        except _UsedUp:
            return LocalLaw(None, least, reason=f"the law of order {order} was not followed in {calls} evaluations")
        path_remainder = _mean_remainder(near, point, times, path, law)
        if path_remainder <= bound and escaped:
            return LocalLaw(order, path_remainder, float(times[-1]), path[-1])
        reason = "" if escaped else f"by the law of order {order} it would not leave"
        least = min(least, path_remainder)
    return LocalLaw(None, least, reason=reason)


def drift_law(near: Derivatives, point: np.ndarray, size: float, horizon: float, orders: int) -> LocalLaw:
    """The law of least order, up to `orders`, by which F and its derivatives at a point that is not critical move it on."""
    jacobian, velocity = near.jacobian(point), near.velocity(point)
    times, path, escaped = _straight(jacobian, velocity, size, horizon)
    remainder = _mean_remainder(near, point, times, path, lambda displacement: velocity + jacobian @ displacement)
    if escaped and remainder <= LIMITS.holds:
        return LocalLaw(1, remainder, float(times[-1]), path[-1])
    higher = local_law(near, point, np.zeros_like(point), size, horizon, orders)
    return higher if higher.order is not None else LocalLaw(None, min(remainder, higher.remainder), reason=higher.reason)


def carried(near: Derivatives, point: np.ndarray, order: int, goal: Callable, horizon: float) -> float | None:
    """The time in which the Taylor polynomial of F of an order at a point carries it to where `goal` of the vector is zero.

    F at the point is kept, so it need not be critical. None where it does not come there by the horizon, or in `LIMITS.calls`.
    """

    def law(displacement: np.ndarray) -> np.ndarray:
        return near.series(point, displacement, order).sum(axis=0)

    try:
        times, _, arrived = _followed(law, np.zeros_like(point), 1.0, horizon, LIMITS.calls, lambda step: goal(point + step))
    except _UsedUp:
        return None
    return float(times[-1]) if arrived else None


def linear_remainder(local: Linearisation, start: np.ndarray, after: float | None) -> float:
    """The mean remainder of the linear law over an escape; of a large model, or one that never leaves, that at its start."""
    near, point = local.near, local.point
    if not after or not near.dense:
        return remainder(near, point, start, lambda displacement: near.jvp(point, displacement))
    jacobian, times = local.jacobian, np.linspace(0.0, after, LIMITS.points)
    path = _exponential(jacobian, start, times)
    return _mean_remainder(near, point, times, path, lambda displacement: jacobian @ displacement)


def _exponential(matrix: np.ndarray, start: np.ndarray, times: np.ndarray) -> np.ndarray:
    """e^(matrix t) start at equally spaced times from 0 on."""
    from scipy.linalg import expm

    step, path = expm(matrix * times[1]), [start]
    for _ in times[1:]:
        path.append(step @ path[-1])
    return np.array(path)


Law = Callable[[np.ndarray], np.ndarray]
"""The velocity of a displacement."""


def remainder(near: Derivatives, point: np.ndarray, displacement: np.ndarray, law: Law) -> float:
    """The share of F that a law leaves out; infinite where it is not finite."""
    velocity = near.velocity(point + displacement)
    share = float(norm(velocity - law(displacement)) / max(float(norm(velocity)), 1e-300))
    return share if np.isfinite(share) else np.inf


def _mean_remainder(near: Derivatives, point: np.ndarray, times: np.ndarray, path: np.ndarray, law: Law) -> float:
    sampled = np.unique(np.linspace(0, len(times) - 1, LIMITS.points).astype(int))
    values = np.array([remainder(near, point, path[i], law) for i in sampled])
    return float(np.trapezoid(values, times[sampled]) / times[-1]) if times[-1] > 0 else float(values[0])


Path = tuple[np.ndarray, np.ndarray, bool]
"""Times and displacements until their length is a size, and whether it comes to that."""


def _straight(jacobian: np.ndarray, velocity: np.ndarray, size: float, horizon: float) -> Path:
    """The path of F + J d from d = 0, by the exponential of [[J, F], [0, 0]]: its time is doubled until d is long enough."""
    from scipy.linalg import expm

    count = len(velocity)
    augmented = np.zeros((count + 1, count + 1))
    augmented[:count, :count], augmented[:count, count] = jacobian, velocity
    end = min(horizon, size / max(float(norm(velocity)), 1e-300))
    propagator = expm(augmented * end)
    while end < horizon and norm(propagator[:count, count]) < size:  # also ends where it is not finite
        propagator, end = propagator @ propagator, 2 * end
    times = np.linspace(0.0, end, 8 * LIMITS.points)
    displacements = _exponential(augmented, np.append(np.zeros(count), 1.0), times)[:, :count]
    long = np.flatnonzero(~(norm(displacements, axis=1) < size))
    last = int(long[0]) if long.size else len(times) - 1
    return times[: last + 1], displacements[: last + 1], bool(long.size)


def _followed(
    law: Law, start: np.ndarray, size: float, horizon: float, calls: int, goal: Callable[[np.ndarray], float] | None = None
) -> Path:
    """The path of a law until it is `size` long, or at the goal, by a solver that may use so many calls of it."""
    from scipy.integrate import solve_ivp

    used = 0

    def velocity(_: float, displacement: np.ndarray) -> np.ndarray:
        nonlocal used
        used += 1
        if used > calls:
            raise _UsedUp
        return law(displacement)

    end = goal or (lambda displacement: float(norm(displacement)) - size)
    event: Any = lambda _, displacement: end(displacement)  # noqa: E731
    event.terminal, event.direction = True, 1
    method = "LSODA" if len(start) <= DENSE else "RK45"  # of many parameters, its implicit steps take too long
    bounds: Any = {"rtol": LIMITS.accuracy, "atol": LIMITS.accuracy**2 * size}
    solution = solve_ivp(velocity, (0.0, horizon), start, method=method, events=event, **bounds)
    return solution.t, solution.y.T, solution.status == 1


NEAR = LIMITS.near
"""Relative distance from a critical point beyond which its laws are not believed."""
NO_CLOCK = "this run has no flow time, so rates cannot be compared"


@dataclass(frozen=True)
class Visit:
    """A slow frame of a run and the critical point that was found from it, or where the search ended."""

    run: Run
    field: Objective | Field
    rates: Mapping[str, float]
    point: CriticalPoint
    frame: int

    @cached_property
    def near(self) -> Derivatives:
        return Derivatives(self.field, self.point.params, self.rates)

    @cached_property
    def theta(self) -> np.ndarray:
        return self.near.layout.pack(self.point.params)

    def at(self, frame: int) -> np.ndarray:
        return self.near.layout.pack(self.run.at(frame))

    @cached_property
    def start(self) -> np.ndarray:
        """The displacement of the run from the point in the slow frame."""
        return self.at(self.frame) - self.theta

    @cached_property
    def length(self) -> float:
        return max(float(norm(self.theta)), float(norm(self.at(-1))))

    @property
    def horizon(self) -> float:
        return LIMITS.horizon * float(self.run.time[-1])

    @cached_property
    def size(self) -> float:
        """The distance from a critical point at which an escape of a higher order ends."""
        return max(LIMITS.size * self.length, float(norm(self.start)) / LIMITS.half)

    @cached_property
    def escapes(self) -> bool:
        """Whether the run, by its flow time, leaves the critical point."""
        return self.run.clock == "t" and self.first_at(self.theta, self.size)[0] is not None

    def first_at(self, origin: np.ndarray, size: float) -> tuple[float | None, np.ndarray | None]:
        """When the run is first at a distance `size` from `origin`, and its displacement in the frame after that."""
        frames = range(self.frame, self.run.frames)
        away = np.array([float(norm(self.at(i) - origin)) for i in frames])
        time = first_crossing(self.run.time[self.frame :], away, size, rising=True)
        if time is None:
            return None, None
        return time, self.at(self.frame + int(np.argmax(away >= size))) - origin


def escape_law(visit: Visit) -> dict[str, Any]:
    """What opens at the place, the law by which the run leaves, and when: the fields of its rung that are known."""
    close = visit.point.found and visit.point.distance <= NEAR
    with np.errstate(over="ignore", invalid="ignore"):
        return _opening(visit) if close else _drift(visit)


def _opening(visit: Visit) -> dict[str, Any]:
    """What opens at a critical point close to the run, by the law of least order that holds."""
    if len(visit.point.growing):
        facts = _linear(visit)
        if facts["remainder"] <= LIMITS.holds:
            growing = tuple(float(rate) for rate in np.real(visit.point.growing)[:FASTEST])
            return {"law": "linear", "order": 1, "opening": blocks(visit.point.directions[0]), "rates": growing} | facts
        if visit.run.clock != "t":
            share = f"it leaves out {facts['remainder']:.0%} of F at the run"
            return {"remainder": facts["remainder"], "note": f"the linear law does not hold here: {share}; {NO_CLOCK}"}
    elif not visit.escapes:
        point = visit.point
        flat = "" if point.flat is None else f", {point.flat} flat directions"
        grows = "its fastest rates did not converge" if point.kind == "unknown" else "nothing grows"
        return {"note": (f"{point.kind}{flat}: {grows}")}
    try:
        return _higher(visit)
    except (StagescopeError, np.linalg.LinAlgError) as error:
        return {"note": f"its escape is not predicted: {error}"}


def _linear(visit: Visit) -> dict[str, Any]:
    """The linear escape: measured rate, cosine and times, and what the law leaves out of F."""
    first = remainder(visit.near, visit.theta, visit.start, lambda d: visit.near.jvp(visit.theta, d))
    if visit.run.clock != "t":
        return {"remainder": first, "note": NO_CLOCK}
    try:
        local = linearise(visit.field, visit.point.params, visit.rates)
        ahead = local.escape_time(visit.run.at(visit.frame), LIMITS.size * visit.length)
        left_out = linear_remainder(local, visit.start, ahead)
        measured = _measured(visit, local) if left_out <= LIMITS.holds else {}
    except (StagescopeError, np.linalg.LinAlgError) as error:
        return {"remainder": first, "note": f"its escape is not predicted: {error}"}
    escape = None if ahead is None else float(visit.run.time[visit.frame]) + ahead
    return {"remainder": left_out, "predicted_escape": escape, **measured}


def _measured(visit: Visit, local: Linearisation) -> dict[str, Any]:
    """Rate, cosine and escape of the growing part of the run's displacement."""
    run, frame, size = visit.run, visit.frame, LIMITS.size * visit.length
    frames = np.arange(frame, run.frames)
    if not local.dense:
        frames = np.unique(np.linspace(frame, run.frames - 1, 100).astype(int))
    parts = np.stack([local.unstable(run.at(int(i))) for i in frames])
    amplitude, time = norm(parts, axis=1), run.time[frames]
    rise = last_rise(time, amplitude, max(size / 10, 1.01 * float(amplitude[0])), size)
    cosine = ()
    if rise is not None:
        last = int(np.searchsorted(time, rise.stop))
        foreseen = local.unstable(run.at(frame), float(time[last] - time[0]))
        cosine = (_cosine(foreseen, parts[last]),)
    return {
        "measured_rate": None if rise is None else rise.rate,
        "cosines": cosine,
        "measured_escape": first_crossing(time, amplitude, size, rising=True),
    }


def _higher(visit: Visit) -> dict[str, Any]:
    """The escape by a law of order two or more, with order and coefficient at the tip of the zeros where it is reached."""
    law = local_law(visit.near, visit.theta, visit.start, visit.size, visit.horizon)
    if law.order is None or law.end is None:
        return _lawless(law, LIMITS.orders)
    opening = blocks(visit.near.layout.unpack(law.end - visit.start))
    facts: dict[str, Any] = {"law": f"order {law.order}", "order": law.order, "opening": opening}
    tip = find_tip(visit.near, visit.at(visit.frame), NEAR * visit.length, visit.length) if visit.near.dense else None
    if tip is not None and tip.order is not None:
        facts |= {"order": tip.order, "coefficient": tip.coefficient}
    return facts | _escape(visit, visit.theta, visit.size, law)


def _escape(visit: Visit, origin: np.ndarray, size: float, law: LocalLaw) -> dict[str, Any]:
    """Times and direction of an escape along a law, and of the run."""
    assert law.after is not None
    assert law.end is not None
    measured, displacement = visit.first_at(origin, size)
    return {
        "remainder": law.remainder,
        "predicted_escape": float(visit.run.time[visit.frame]) + law.after,
        "measured_escape": measured,
        "cosines": () if displacement is None else (_cosine(law.end, displacement),),
    }


def _drift(visit: Visit) -> dict[str, Any]:
    """A slow place without a critical point beside it: the law of the field at the run itself, F kept.

    A search that was given up shows nothing: neither that a critical point is near nor that none is. Where one is known, but
    further than `NEAR`, only its own law of a higher order is stated, if that holds so far away: up to the length of the run.
    """
    facts = {"note": _slow(visit)}
    if visit.run.clock != "t" or not visit.near.dense:
        return facts
    if visit.point.found and visit.point.distance <= 1:
        try:
            facts = _higher(visit)
        except (StagescopeError, np.linalg.LinAlgError):
            facts = {}
        if "law" in facts:
            return facts | {"note": f"slow; {_place(visit.point)}, but its law leaves out only {facts['remainder']:.2g} of F"}
    origin, size = visit.at(visit.frame), LIMITS.size * visit.length
    try:
        highest_order = 1 if visit.first_at(origin, size)[0] is None else LIMITS.drift_orders
        law = drift_law(visit.near, origin, size, visit.horizon, highest_order)
    except (StagescopeError, np.linalg.LinAlgError):
        return facts
    if law.order is None:
        return _lawless(law, highest_order, str(facts["note"]))
    note = f"{facts['note']}. The escape is a move by a tenth of the parameters, by the field there to order {law.order}"
    return {"law": "drift", "order": law.order, "note": note} | _escape(visit, origin, size, law)


def _lawless(law: LocalLaw, orders: int, note: str = "") -> dict[str, Any]:
    """No law: what the best one that was tried leaves out, and why."""
    sentences = [note] if note else []
    if np.isfinite(law.remainder):
        sentences.append(f"no law up to order {orders} holds here: the best leaves out {law.remainder:.2g} of F on its way")
    sentences += [law.reason] if law.reason else []
    return {"remainder": law.remainder if np.isfinite(law.remainder) else None, "note": "; ".join(sentences)}


def _slow(visit: Visit) -> str:
    point = visit.point
    try:
        fastest = float(np.real(spectrum(visit.field, visit.run.at(visit.frame), 1, visit.rates).rates[0]))
        grows = f"the fastest direction grows once in {1 / fastest:.3g}" if fastest > 0 else "nothing grows there"
    except StagescopeError as error:
        grows = str(error)
    slow = f"slow (|F| {float(visit.run.series['speed'][visit.frame]):.1e})"
    if point.stopped and not point.led_away:
        near = f"{_place(point)}, nearer ones are not known" if point.found else "whether a critical point is near is not known"
        return f"{slow}; {near}: {point.stopped}. At the run itself, {grows}"
    return f"{slow}, but no critical point is near: {point.stopped or _place(point)}. A drift: {grows}"


def _place(point: CriticalPoint) -> str:
    return f"the one found is at relative distance {point.distance:.2f}" if point.found else f"|F| stays at {point.residual:.1e}"


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / norm(one) / norm(other))
