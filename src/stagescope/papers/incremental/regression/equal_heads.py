"""The path of equal heads, and when heads that start nearly alike part from it: t_2 without a run from the start [ISA:t2].

Equal heads move as one head [ISA:symmetric]. A difference of heads leaves P unchanged to first order, so every head's own
deviation from the mean obeys the same linear law along this path, whatever its size: V_h' = R s_h and the law of a_h with R held.
One path and its propagator serve all initial noises. Once the deviations have grown to eta, all heads are followed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from stagescope.dynamics.solver import between, steps
from stagescope.fields.softmax import softmax
from stagescope.papers.incremental.regression.loss import BLOCKS, Regression
from stagescope.params import Layout, Params

Velocity = Callable[[np.ndarray], np.ndarray]
Loss = Callable[[np.ndarray], float]
FINE = 4
"""Points for each step of the solver."""


@dataclass(frozen=True)
class Propagated:
    """The path of equal heads at a time: flat (a, V) of one head, and the propagator e^log matrix of deviations up to here."""

    t: float
    point: np.ndarray
    log: float
    matrix: np.ndarray
    rate: float

    def size(self, deviations: np.ndarray) -> float:
        """The logarithm of what initial deviations (H, N + k) have become."""
        return self.log + float(np.log(np.linalg.norm(deviations @ self.matrix.T)))


@dataclass(frozen=True)
class Parted:
    """Where heads have parted by eta: the place on the path of equal heads, all heads there (H, N + k), and the path so far."""

    place: Propagated
    heads: np.ndarray
    before: list[Propagated]


class EqualHeadsPath:
    """The path of equal heads of a regression flow from `start`, the logits of one head, with V = 0 or given; lazily extended."""

    def __init__(self, law: Regression, start: Params, until: float) -> None:
        self.law, self.until = law, until
        self.small = type(law)(model=law.model.symmetric())
        self.layout = Layout.of({name: np.asarray(start[name]).reshape(1, -1) for name in BLOCKS})
        self.flat = self.small.flat(self.layout, dict.fromkeys(BLOCKS, 1.0))
        first = self.layout.pack({name: np.asarray(start[name]).reshape(1, -1) for name in BLOCKS})
        self._source = steps(self.flat, first, (0.0, until))
        one = np.eye(len(first))
        self.known = [Propagated(0.0, first, 0.0, one, 0.0)]

    def _velocity(self, point: np.ndarray) -> np.ndarray:
        out = np.empty_like(point)
        self.flat(point, out)
        return out

    def loss(self, point: np.ndarray) -> float:
        return float(self.small.move(self.layout.unpack(point))[0])

    def jacobian(self, point: np.ndarray) -> np.ndarray:
        """The law of one head's deviation at a point of equal heads, R held."""
        blocks, model = self.layout.unpack(point), self.small.model
        attention, values = softmax(blocks["a"])[0], blocks["V"][0]
        residual = model.target - model.copies * np.outer(values, attention)
        turn, push = np.diag(attention) - np.outer(attention, attention), residual.T @ values
        if self.law.mirror:
            first, cross = np.zeros_like(turn), residual.T
        else:
            mean = attention @ push
            first, cross = (np.diag(push - mean) - np.outer(attention, push)) @ turn, turn @ residual.T
        return np.block([[first, cross], [residual @ turn, np.zeros((len(values), len(values)))]])

    def __iter__(self) -> Iterator[Propagated]:
        yield from self.known
        while True:
            if not self._extend():
                return
            yield self.known[-1]

    def _extend(self) -> bool:
        """One more step of the solver: the propagator by the exponential of the mean law."""
        from scipy.linalg import expm

        found = next(self._source, None)
        if found is None:
            return False
        (t, point), last = found, self.known[-1]
        h, ends = t - last.t, (last.point, point)
        velocities = (self._velocity(last.point), self._velocity(point))
        middle = between(0.5, h, ends, velocities)
        laws = [self.jacobian(each) for each in (last.point, middle, point)]
        matrix = expm(h * (laws[0] + 4 * laws[1] + laws[2]) / 6) @ last.matrix
        size = float(np.linalg.norm(matrix))
        rate = float(np.max(np.real(np.linalg.eigvals(laws[2])))) if h > 0 else last.rate
        self.known.append(Propagated(t, point, last.log + np.log(size), matrix / size, rate))
        return True

    def parted(self, deviations: np.ndarray, log_scale: float, eta: float) -> Parted | None:
        """Where deviations e^log_scale `deviations` of heads from their mean have grown to eta."""
        goal, passed = float(np.log(eta)) - log_scale, []
        for place in self:
            passed.append(place)
            if place.size(deviations) >= goal:
                break
        else:
            return None
        grown = np.exp(place.log + log_scale) * deviations @ place.matrix.T
        return Parted(place, place.point + grown, passed)

    def equal_curve(self, places: list[Propagated]) -> tuple[np.ndarray, np.ndarray]:
        """Time and loss of equal heads."""
        return _fine([(place.t, place.point) for place in places], self._velocity, self.loss)

    def curve(self, found: Parted, last_level: float) -> tuple[np.ndarray, np.ndarray]:
        """Time and loss: of equal heads until they part, then of all heads until the loss is below the last level."""
        time, loss = self.equal_curve(found.before)
        heads, size = found.heads, self.law.model.positions
        layout = Layout.of({"a": heads[:, :size], "V": heads[:, size:]})
        flat = self.law.flat(layout, dict.fromkeys(BLOCKS, 1.0))

        def velocity(point: np.ndarray) -> np.ndarray:
            out = np.empty_like(point)
            flat(point, out)
            return out

        def value(point: np.ndarray) -> float:
            return float(self.law.move(layout.unpack(point))[0])

        first = layout.pack({"a": heads[:, :size], "V": heads[:, size:]})
        after = [(found.place.t, first)]
        for t, point in steps(flat, first, (found.place.t, self.until)):
            after.append((t, point))
            if value(point) < last_level:
                break
        later, losses = _fine(after, velocity, value)
        return np.append(time, later), np.append(loss, losses)


def _fine(places: list[tuple[float, np.ndarray]], velocity: Velocity, loss: Loss) -> tuple[np.ndarray, np.ndarray]:
    """Time and loss with points between the solver's own."""
    time, losses = [places[0][0]], [loss(places[0][1])]
    for (t, y), (after, end) in pairwise(places):
        velocities, h = (velocity(y), velocity(end)), after - t
        for share in np.arange(1, FINE + 1) / FINE:
            time.append(t + share * h)
            losses.append(loss(between(float(share), h, (y, end), velocities)))
    return np.array(time), np.array(losses)
