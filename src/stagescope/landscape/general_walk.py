"""The walk along a saddle path of any loss: a base path, and small deviations that obey its linear law until they join it.

The base path is a flow of the whole model. It starts at a critical point along what has grown there, so it stays in the
directions that its symmetry allows, up to rounding. What the start had in other directions is carried beside it. Where the
base path falls onto a critical point, the stay there is one linear law.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.linalg import norm

from stagescope.flow.solver import Stopped, between, steps
from stagescope.landscape.critical import refine
from stagescope.landscape.derivatives import Derivatives, NotFinite
from stagescope.landscape.limits import LIMITS
from stagescope.landscape.linearise import threshold
from stagescope.landscape.saddle_path import plain_time

TOGETHER = -float(np.log(LIMITS.coupling))
"""E-folds within which deviations are one: of a smaller one beside a larger, less is left than a coupling."""


@dataclass(frozen=True)
class Eigen:
    """A symmetric Jacobian: rates ascending, eigenvectors as columns."""

    rates: np.ndarray
    vectors: np.ndarray

    @classmethod
    def of(cls, jacobian: np.ndarray) -> "Eigen":
        return cls(*np.linalg.eigh((jacobian + jacobian.T) / 2))

    @property
    def largest(self) -> float:
        return float(np.abs(self.rates).max(initial=0.0))

    def clusters(self, above: float) -> list[np.ndarray]:
        """The places of equal rates above a limit, slowest first."""
        places = np.flatnonzero(self.rates > above)
        cuts = np.flatnonzero(np.diff(self.rates[places]) > LIMITS.equal * self.largest) + 1
        return [cluster for cluster in np.split(places, cuts) if cluster.size]


@dataclass(frozen=True)
class Tangents:
    """Deviations e^logs units: logarithms (k,) and unit vectors as rows (k, n)."""

    logs: np.ndarray
    units: np.ndarray

    @classmethod
    def of(cls, vector: np.ndarray) -> "Tangents":
        """One deviation; squares of its entries may underflow."""
        top = float(np.abs(vector).max(initial=0.0))
        if top == 0:
            return cls(np.zeros(0), np.zeros((0, len(vector))))
        length = float(norm(vector / top))
        return cls(np.array([np.log(top) + np.log(length)]), (vector / top / length)[None])

    @property
    def top(self) -> float:
        return float(self.logs.max(initial=-np.inf))

    @property
    def total(self) -> np.ndarray:
        return np.exp(self.logs) @ self.units

    def without(self, place: int) -> "Tangents":
        return Tangents(np.delete(self.logs, place), np.delete(self.units, place, axis=0))

    def plus(self, other: "Tangents") -> "Tangents":
        return Tangents(np.append(self.logs, other.logs), np.vstack([self.units, other.units]))

    def carried(self, law: Eigen, h: float) -> "Tangents":
        """After a time h under a constant law, each for itself."""
        if not self.logs.size:
            return self
        parts = self.units @ law.vectors
        parts[np.abs(parts) < LIMITS.polished] = 0.0
        folds = law.rates * h
        shift = np.max(np.where(parts != 0, folds, -np.inf), axis=1)
        scaled = parts * np.exp(np.minimum(folds - shift[:, None], 0.0))
        length = norm(scaled, axis=1)
        return Tangents(self.logs + shift + np.log(length), (scaled / length[:, None]) @ law.vectors.T)

    def within(self, basis: np.ndarray) -> "Tangents":
        """The parts in the span of orthonormal columns, as few deviations of falling size with the same sum."""
        parts = self.units @ basis
        terms = [(log, part) for log, part in zip(self.logs, parts, strict=True) if norm(part) > LIMITS.coupling]
        logs, units = [], []
        while terms:
            top = max(log + np.log(norm(part)) for log, part in terms)
            near = [log + np.log(norm(part)) > top - TOGETHER for log, part in terms]
            total = np.sum(
                [np.exp(log - top) * part for (log, part), is_near in zip(terms, near, strict=True) if is_near], axis=0
            )
            length = float(norm(total))
            unit = total / length
            logs.append(top + np.log(length))
            units.append(unit)
            later = [(log, part - unit * (unit @ part)) for (log, part), is_near in zip(terms, near, strict=True) if not is_near]
            terms = [(log, part) for log, part in later if norm(part) > LIMITS.coupling]
        return Tangents(np.array(logs), np.array(units).reshape(len(units), basis.shape[1]) @ basis.T)


class Law:
    """A gradient field in coordinates in which its Jacobian is symmetric, theta / D^(1/2); D is 1 unless the model is reduced."""

    def __init__(self, near: Derivatives) -> None:
        roots, objective = near.roots, near.field.objective
        assert roots is not None
        assert objective is not None
        self.near, self.roots, self.objective = near, roots, objective

    def flat(self, y: np.ndarray, out: np.ndarray) -> None:
        out[:] = self.velocity(y)

    def velocity(self, y: np.ndarray) -> np.ndarray:
        return self.near.velocity(self.roots * y) / self.roots

    def jacobian(self, y: np.ndarray) -> np.ndarray:
        return self.near.jacobian(self.roots * y) * self.roots / self.roots[:, None]

    def second(self, y: np.ndarray, direction: np.ndarray) -> np.ndarray:
        return self.near.second(self.roots * y, self.roots * direction) / self.roots

    def loss(self, y: np.ndarray) -> float:
        return float(self.objective.value(self.near.layout.unpack(self.roots * y)))

    def refined(self, y: np.ndarray) -> np.ndarray:
        return refine(self.near, self.roots * y, LIMITS.iterations * len(y)) / self.roots


@dataclass(frozen=True)
class Settled:
    """A stay at a critical point. `direction` is the unit vector that reached eta there, growing at `rate`."""

    point: np.ndarray
    t: float
    stop: float
    loss: float
    law: Eigen
    tops: tuple[float, float]
    direction: np.ndarray | None
    rate: float | None
    ending: str = ""

    @property
    def zero(self) -> float:
        return threshold(self.law.largest)

    @property
    def rates(self) -> tuple[float, ...]:
        """Of what grows, fastest first."""
        return tuple(float(rate) for rate in self.law.rates[::-1] if rate > self.zero)


@dataclass
class Moved:
    """A stretch of the path between two critical points."""

    time: list[float] = field(default_factory=list)
    points: list[np.ndarray] = field(default_factory=list)
    speeds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    tops: list[float] = field(default_factory=list)
    ending: str = ""


def walk(law: Law, point: np.ndarray, start: Tangents, eta: float, until: float) -> Iterator[Settled | Moved]:
    """Stays and stretches, from a critical point and the deviation of the start from it."""
    t, tangents, goal = 0.0, start, float(np.log(eta))
    while True:
        stay, tangents = stay_until_escape(law, point, t, tangents, goal, until)
        yield stay
        if stay.direction is None:
            return
        leg = Stretch(law, stay, tangents, goal, until)
        yield leg.walked()
        if leg.arrived is None:
            return
        point, t, tangents = leg.arrived, leg.t, leg.tangents


def stay_until_escape(
    law: Law, point: np.ndarray, t: float, tangents: Tangents, goal: float, until: float
) -> tuple[Settled, Tangents]:
    """The stay at a critical point until the first part has grown to eta, and what is left beside it then."""
    eigen, loss = Eigen.of(law.jacobian(point)), law.loss(point)
    zero, top = threshold(eigen.largest), tangents.top
    quiet = eigen.vectors[:, eigen.rates <= zero]
    quiet_part = tangents.within(quiet)
    parts = [(float(eigen.rates[place].mean()), tangents.within(eigen.vectors[:, place])) for place in eigen.clusters(zero)]
    parts = [(rate, part) for rate, part in parts if part.logs.size]
    waits = [max(goal - part.top, 0.0) / rate for rate, part in parts]
    if not parts or t + min(waits) > until:
        ending = _still(eigen, parts, until, t)
        return Settled(point, t, until, loss, eigen, (top, top), None, None, ending), tangents
    first, wait = int(np.argmin(waits)), min(waits)
    grown = [Tangents(part.logs + rate * wait, part.units) for rate, part in parts]
    direction, deviations = grown[first].units[0], quiet_part.carried(eigen, wait)
    for place, part in enumerate(grown):
        deviations = deviations.plus(part.without(0) if place == first else part)
    tops = (top, grown[first].top)
    return Settled(point, t, t + wait, loss, eigen, tops, direction, parts[first][0]), deviations


def _still(eigen: Eigen, parts: list, until: float, t: float) -> str:
    fastest = float(eigen.rates.max(initial=0.0))
    if fastest <= threshold(eigen.largest):
        flat = int(np.sum(np.abs(eigen.rates) <= threshold(eigen.largest)))
        note = f"; along its {flat} flat directions only laws of a higher order can open, which are not predicted" if flat else ""
        return f"nothing grows at the critical point that is reached{note}"
    if not parts:
        return f"the start has no part along what grows there, at rate {fastest:.3g} at most"
    return f"nothing reaches the size eta between t={plain_time(t)} and t={until:g}"


class Stretch:
    """A stretch of the base path as it is walked, from what has opened at a critical point."""

    def __init__(self, law: Law, stay: Settled, tangents: Tangents, goal: float, until: float) -> None:
        self.law, self.tangents, self.goal, self.until = law, tangents, goal, until
        self.origin, self.t, self.moved = stay.point, stay.stop, Moved()
        self.arrived: np.ndarray | None = None
        # What has opened at a critical point, with what it drives at second order: (2 rate - J) w = F''[v, v]/2.
        assert stay.direction is not None
        assert stay.rate is not None
        v = np.exp(stay.tops[1]) * stay.direction
        forcing, gaps = stay.law.vectors.T @ law.second(stay.point, v) / 2, 2 * stay.rate - stay.law.rates
        driven = np.where(np.abs(gaps) > 0.1 * stay.rate, forcing / np.where(gaps == 0, 1.0, gaps), 0.0)
        self._begin(stay.point + (v + stay.law.vectors @ driven))
        self.began = tangents.logs

    def _begin(self, y: np.ndarray) -> None:
        self.y, self.velocity, self.jacobian = y, self.law.velocity(y), self.law.jacobian(y)
        self.lowest = self.speed
        self._keep()

    @property
    def speed(self) -> float:
        return float(norm(self.velocity))

    @property
    def way(self) -> float:
        return float(norm(self.y - self.origin))

    def _keep(self) -> None:
        """The path is the base path with what lies beside it: right to first order in this."""
        point = self.y + self.tangents.total
        self.moved.time.append(self.t)
        self.moved.points.append(point)
        self.moved.speeds.append(float(norm(self.law.velocity(point))))
        self.moved.losses.append(self.law.loss(point))
        self.moved.tops.append(self.tangents.top)

    def walked(self) -> Moved:
        try:
            while self.arrived is None and not self.moved.ending:
                self._flow()
        except (Stopped, NotFinite, np.linalg.LinAlgError) as error:
            self.moved.ending = f"{error}, at t={plain_time(self.t)}"
        return self.moved

    def _flow(self) -> None:
        """The flow until something joins the base path, or it arrives or ends."""
        for t, y in steps(self.law.flat, self.y, (self.t, self.until)):
            if self._advance(t, y):
                return
            fallen = self._fallen()
            if fallen is not None:
                self._relax(*fallen)
                return
            # Whether noise of the base path has grown, as some deviation has, to where it is seen, and that one is smaller.
            hidden = self.began < np.log(LIMITS.polished)
            if not norm(y) * LIMITS.equal < max(1.0, float(norm(self.origin))):
                self.moved.ending = f"the path runs off: at t={plain_time(self.t)} its length is {norm(y):.2g}"
            elif len(self.moved.time) > LIMITS.calls:
                self.moved.ending = f"given up after {LIMITS.calls} steps of the solver, at t={plain_time(self.t)}"
            elif np.any(hidden & (self.tangents.logs - self.began > np.log(LIMITS.place / LIMITS.polished))):
                self.moved.ending = (
                    f"from t={plain_time(self.t)} on, rounding on the path is larger than what the start leaves beside it"
                )
            if self.moved.ending:
                return
        self.moved.ending = f"no critical point is reached by t={self.until:g}"

    def _advance(self, t: float, y: np.ndarray) -> bool:
        """Carry what lies beside the base path over one step; true where a part of it has joined on the way."""
        h, velocity, jacobian = t - self.t, self.law.velocity(y), self.law.jacobian(y)
        ends, velocities = (self.y, y), (self.velocity, velocity)
        parts = int(np.clip(np.ceil(norm(jacobian - self.jacobian, 2) * h / LIMITS.change), 1, 50))
        for k in range(parts if self.tangents.logs.size else 0):
            if parts == 1:
                middle = self.law.jacobian(between(0.5, h, ends, velocities))
                mean = (self.jacobian + 4 * middle + jacobian) / 6
            else:
                mean = self.law.jacobian(between((k + 0.5) / parts, h, ends, velocities))
            eigen, before = Eigen.of(mean), self.tangents
            self.tangents = before.carried(eigen, h / parts)
            if self.tangents.top >= self.goal:
                share = min(max((self.goal - before.top) / (self.tangents.top - before.top), 0.0), 1.0)
                self.tangents = before.carried(eigen, share * h / parts)
                # The largest deviation becomes a part of the base path.
                y = between((k + share) / parts, h, ends, velocities)
                place, self.t = int(np.argmax(self.tangents.logs)), self.t + ((k + share) / parts * h)
                deviation = float(np.exp(self.tangents.logs[place])) * self.tangents.units[place]
                self.tangents, self.began = self.tangents.without(place), np.delete(self.began, place)
                self._begin(y + deviation)
                return True
        self.t, self.y, self.velocity, self.jacobian = t, y, velocity, jacobian
        self._keep()
        return False

    def _fallen(self) -> tuple[np.ndarray, Eigen] | None:
        """The critical point that the base path falls onto, searched each time |F| has fallen far enough."""
        if self.speed > LIMITS.half * self.lowest:
            self.lowest = max(self.lowest, self.speed)
            return None
        self.lowest = self.speed
        point = self.law.refined(self.y)
        away, peak = self.y - point, max(self.moved.speeds)
        if norm(self.law.velocity(point)) > LIMITS.coupling * peak or norm(away) > LIMITS.size * self.way:
            return None
        jacobian = self.law.jacobian(point)
        if norm(self.velocity - jacobian @ away) > LIMITS.precise * self.speed:
            return None
        eigen = Eigen.of(jacobian)
        unstable = eigen.vectors[:, eigen.rates > threshold(eigen.largest)]
        return (point, eigen) if norm(unstable.T @ away) <= LIMITS.equal * self.way else None

    def _relax(self, point: np.ndarray, eigen: Eigen) -> None:
        """The last of the way by the linear law at the critical point, without what rounding has put along its way out."""
        zero, goal = threshold(eigen.largest), LIMITS.place * self.way
        falls = eigen.rates < -zero
        rates, basis = eigen.rates[falls], eigen.vectors[:, falls]
        along = basis.T @ (self.y - point)
        while norm(along) > goal:
            heavy = np.abs(along) > 0.1 * norm(along)
            h = 0.5 / float(-rates[heavy].max())
            if self.t + h > self.until:
                self.moved.ending = f"the next critical point is not reached by t={self.until:g}"
                return
            along = along * np.exp(rates * h)
            if self._advance(self.t + h, point + basis @ along):
                return
        self.arrived = point
