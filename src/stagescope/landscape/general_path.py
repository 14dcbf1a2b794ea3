"""The saddle path of any loss, from a start near a critical point: its places, their losses, and when each is left.

A place is a critical point on which the path settles, or a point at which the path is slow and passes. The event "escape k" is
the time at which the loss first falls below the mean of the losses of place k and place k + 1, so a run is read in the same
way. Up to 500 parameters, because whole Jacobians are formed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.linalg import norm

from stagescope.core.errors import InputError
from stagescope.core.params import Params
from stagescope.flow.field import Field, Objective, as_field
from stagescope.landscape.derivatives import DENSE, Derivatives
from stagescope.landscape.general_walk import Eigen, Law, Moved, Settled, Tangents, stay_until_escape, walk
from stagescope.landscape.limits import LIMITS
from stagescope.landscape.linearise import threshold
from stagescope.landscape.saddle_path import Leg, Place, SaddlePath, of_two_sizes, unsure
from stagescope.landscape.spectrum import blocks


def general_path(what: Objective | Field, start: Params, until: float, seen: float = np.inf) -> SaddlePath:
    """The path from a start near a critical point of any loss, computed with eta and with half of it, whatever was `seen`."""
    near = _checked(what, start)
    law = Law(near)
    y = near.layout.pack(start) / law.roots
    point = _point(law, y, type(what).__name__)
    begin = Tangents.of(y - point)
    eta = _eta(law, point, begin)
    coarse, fine = (_Path(law, list(walk(law, point, begin, size, until))) for size in (eta, eta / 2))
    ending = fine.walked[-1].ending
    levels = {f"escape {k + 1}": level for k, level in enumerate(fine.levels)}
    events = {name: of_two_sizes(coarse.when(level), fine.when(level), ending) for name, level in levels.items()}
    notes = [*unsure(events), f"the path ends: {ending}"]
    if len(coarse.stops) != len(fine.stops):
        notes.append(f"with eta the path has {len(coarse.stops)} places, with half of it {len(fine.stops)}: they are not sure")
    return SaddlePath(
        tuple(fine.legs()), events, tuple(notes), eta, fine.time, {"outside": fine.tops}, levels, losses=fine.losses
    )


def _checked(what: Objective | Field, start: Params) -> Derivatives:
    field = as_field(what)
    if field.draw(0) is not None:
        raise InputError("this loss draws a batch for every step, so it has no flow to predict; use it without batches")
    if field.objective is None:
        name = type(what).__name__
        speed = field.speed(field.rhs({block: np.zeros(np.shape(value)) for block, value in start.items()}))
        drift = f" ({_no_point(speed)})" if speed > LIMITS.critical else ""
        raise InputError(f"{name} is no gradient of a loss, and a general saddle path needs one{drift}; run it instead")
    near = Derivatives(what, start)
    if near.layout.size > DENSE:
        size = near.layout.size
        raise InputError(f"the model has {size} parameters, and a general saddle path is for {DENSE} at most; take a smaller one")
    return near


def _no_point(speed: float) -> str:
    reason = f"the origin is no critical point, |F| = {speed:.2g} there: a start near it moves at once"
    return f"{reason} and has no waiting time to predict"


def _point(law: Law, y: np.ndarray, name: str) -> np.ndarray:
    """The critical point that a start is near: the origin, or the one that a search finds from the start."""
    origin, fast = np.zeros_like(y), float(norm(law.velocity(y)))
    speed = float(norm(law.velocity(origin)))
    if speed <= LIMITS.critical and _missed(law, origin, y) <= LIMITS.near:
        return origin
    root = law.refined(y)
    if speed <= LIMITS.critical and norm(root) < norm(y):
        _refuse_degenerate(Eigen.of(law.jacobian(origin)))
    critical = norm(law.velocity(root)) <= LIMITS.critical
    away, length = float(norm(y - root)), float(norm(root))
    if critical and away < LIMITS.coupling * length:
        raise InputError(
            f"the start is {away / length:.1g} of its length from a critical point, less than is told from rounding "
            f"({LIMITS.coupling:g}); start further from it"
        )
    if critical and _missed(law, root, y) <= LIMITS.near:
        return root
    if speed > LIMITS.critical:
        raise InputError(f"{name}: {_no_point(speed)}. |F| = {fast:.2g} at the start; run it instead")
    ratio = float(norm(y)) / reach(law, origin, Eigen.of(law.jacobian(origin)), y / norm(y))
    raise InputError(f"the start is {ratio:.3g} times as large as the linear law at the origin reaches; take a smaller start")


def _missed(law: Law, point: np.ndarray, y: np.ndarray) -> float:
    """The share of F at y that the linear law at a critical point misses."""
    linear = law.jacobian(point) @ (y - point)
    size = float(norm(linear))
    error = float(norm(law.velocity(y) - linear))
    return error / size if size > 0 else (0.0 if error == 0 else np.inf)


def reach(law: Law, point: np.ndarray, eigen: Eigen, unit: np.ndarray) -> float:
    """The size up to which the linear law holds along a direction."""
    linear = eigen.vectors @ (eigen.rates * (eigen.vectors.T @ unit))
    speed, size = float(norm(linear)), 100.0
    while size > 1e-12:
        velocity = law.velocity(point + size * unit)
        if norm(velocity - size * linear) <= LIMITS.linear * size * speed:
            break
        size /= np.sqrt(2)
    return size


def _refuse_degenerate(eigen: Eigen) -> None:
    if eigen.largest <= threshold(0.0):
        raise InputError(
            "every rate is 0 at the critical point of the start, so the linear law does not hold there and nothing is predicted; "
            "run it and read its ladder"
        )


def _eta(law: Law, point: np.ndarray, begin: Tangents) -> float:
    """The geometric mean of what grows of the start and of the size to which the linear law holds, within limits."""
    eigen = Eigen.of(law.jacobian(point))
    _refuse_degenerate(eigen)
    stay, _ = stay_until_escape(law, point, 0.0, begin, 0.0, np.inf)
    if stay.direction is None:
        return LIMITS.agree
    limit = reach(law, point, eigen, stay.direction)
    decays, grows = eigen.rates < -stay.zero, eigen.rates > stay.zero
    falling, size = (float(np.exp(begin.within(eigen.vectors[:, places]).top)) for places in (decays, grows))
    if falling > limit:
        raise InputError(
            f"the start moves at once: what decays of it has size {falling:.3g}, {falling / limit:.3g} times as far as the "
            "linear law reaches along what opens; start nearer to the critical point"
        )
    # what decays of the start drives what grows, at second order; it must be small beside what grows of the start itself
    decaying = begin.within(eigen.vectors[:, decays]).total
    if decaying.any() and size:
        driven = np.abs(eigen.vectors[:, grows].T @ law.second(point, decaying) / 2 / eigen.rates[grows]).max(initial=0.0)
        if driven > LIMITS.agree * size:
            raise InputError(
                f"what decays of the start, of size {norm(decaying):.2g}, drives what grows by {driven / size:.2g} of its size, "
                "and the linear law leaves that out; take a start with less of it"
            )
    lowest, highest = LIMITS.agree * limit, LIMITS.largest_eta * limit
    if 2 * LIMITS.room * size > highest:
        excess = f"{2 * LIMITS.room * size / highest:.3g} times the largest that is small beside what opens"
        raise InputError(f"what grows of the start has size {size:.3g}, {excess}; take a smaller start")
    return float(np.clip(max(np.sqrt(size * limit), 2 * LIMITS.room * size), lowest, highest))


@dataclass(frozen=True)
class _Stop:
    """A place of the path."""

    t: float
    kind: str
    loss: float
    state: Place
    opens: str | None = None
    rates: tuple[float, ...] = ()
    local: float | None = None


class _Path:
    """A walk as one curve, its places, and the levels between them."""

    def __init__(self, law: Law, walked: list[Settled | Moved]) -> None:
        self.law, self.walked = law, walked
        stretches = [part for part in walked if isinstance(part, Moved)]
        first = walked[0]
        assert isinstance(first, Settled)
        self.time = np.array([first.t, *(t for stretch in stretches for t in stretch.time)])
        self.losses = np.array([first.loss, *(loss for stretch in stretches for loss in stretch.losses)])
        self.speeds = np.array([0.0, *(speed for stretch in stretches for speed in stretch.speeds)])
        self.tops = np.array([first.tops[0], *(top for stretch in stretches for top in stretch.tops)])

    @cached_property
    def stops(self) -> list[_Stop]:
        """The places, of neighbours with one loss the first: a path slows down once more where it leaves one."""
        stops = [
            stop for part in self.walked for stop in (self._slow(part) if isinstance(part, Moved) else [self._settled(part)])
        ]
        equal = LIMITS.coupling * max(abs(stop.loss) for stop in stops)
        return stops[:1] + [after for before, after in pairwise(stops) if abs(before.loss - after.loss) > equal]

    def _settled(self, stay: Settled) -> _Stop:
        falls, grows = bool(np.any(stay.law.rates < -stay.zero)), bool(stay.rates)
        kind = "saddle" if falls and grows else "maximum" if grows else "minimum"
        opens = None if stay.direction is None else self._blocks(stay.direction)
        return _Stop(stay.t, kind, stay.loss, "settled", opens, stay.rates, stay.rate)

    def _slow(self, leg: Moved) -> Iterator[_Stop]:
        """The marked minima of the speed inside a stretch, and its end where it ends the path."""
        from scipy.signal import find_peaks

        for frame in find_peaks(-np.log(leg.speeds), prominence=-np.log(LIMITS.slower))[0]:
            yield self._passed(leg, frame)
        if leg.ending:
            yield _Stop(leg.time[-1], "end", leg.losses[-1], "at infinity" if _endless(leg) else "passed")

    def _passed(self, leg: Moved, frame: int) -> _Stop:
        """A slow point: settled where what grows does so at nearly the rate of the critical point beside it."""
        y, stop = leg.points[frame], leg.time[frame]
        eigen, point = Eigen.of(self.law.jacobian(y)), self.law.refined(y)
        grows = eigen.rates[-1] > threshold(eigen.largest)
        opens, local = (self._blocks(eigen.vectors[:, -1]), float(eigen.rates[-1])) if grows else (None, None)
        critical_eigen = Eigen.of(self.law.jacobian(point))
        critical = norm(self.law.velocity(point)) <= LIMITS.critical
        if critical and local is not None and abs(local - critical_eigen.rates[-1]) <= LIMITS.agree * local:
            rates = tuple(float(rate) for rate in critical_eigen.rates[::-1] if rate > threshold(critical_eigen.largest))
            return _Stop(stop, "saddle", self.law.loss(point), "settled", opens, rates, local)
        return _Stop(stop, "slow", leg.losses[frame], "passed", opens, (), local)

    def _blocks(self, unit: np.ndarray) -> str:
        """The blocks that carry a direction, largest first."""
        return blocks(self.law.near.layout.unpack(unit))

    @cached_property
    def levels(self) -> list[float]:
        losses = [stop.loss for stop in self.stops]
        return [(above + below) / 2 for above, below in pairwise(losses)]

    def when(self, level: float) -> float | None:
        """When the loss falls below a level: on the cubic through the ends of a step, whose slopes are -|F|^2."""
        from scipy.optimize import brentq

        below = np.flatnonzero(self.losses < level)
        if not below.size:
            return None
        i = int(below[0])
        h = self.time[i] - self.time[i - 1]
        (a, b), (first, last) = self.losses[i - 1 : i + 1], -h * self.speeds[i - 1 : i + 1] ** 2

        def over(s: float) -> float:
            return a + s * (b - a) + s * (1 - s) * ((1 - s) * (first - b + a) - s * (last - b + a)) - level

        share: Any = brentq(over, 0.0, 1.0) if a > level else 1.0
        return float(self.time[i - 1] + share * h)

    def legs(self) -> Iterator[Leg]:
        times = [0.0, *(self.when(level) or 0.0 for level in self.levels), None]
        for k, stop in enumerate(self.stops):
            begin, leave = times[k] or 0.0, times[k + 1]
            label = f"{k + 1} {stop.kind}"
            yield Leg(label, begin, leave, stop.loss, stop.opens, stop.local, lambda at=(stop.state, stop.rates): at)


def _endless(leg: Moved) -> bool:
    """Whether the speed falls by a power of time only at the end of a stretch."""
    time, speeds = np.array(leg.time), np.array(leg.speeds)
    late = time > time[-1] / 10
    if np.sum(late) < 3 or np.any(speeds[late] <= 0):
        return False
    slope = np.polyfit(np.log(time[late]), np.log(speeds[late]), 1)[0]
    return bool(-LIMITS.power < slope < 0)
