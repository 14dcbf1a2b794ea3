"""Zeros of a field that depends on a number, followed by pseudo-arclength steps.

Symmetries make critical points orbits. Rows besides F pick one member of each; what they leave free is taken by steps of least
norm.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.linalg import norm

from stagescope.core.errors import InputError, StagescopeError
from stagescope.landscape.limits import EPS, LIMITS

NUDGE = EPS ** (1 / 3)
"""Share of the span by which the value is changed for the slope of the rows: where rounding and the third order are equal."""
CLOSED = "it closes on itself"


class Zeros(ABC):
    """Critical points of a loss that depends on a number; a value that is not allowed raises an `InputError`."""

    @abstractmethod
    def rows(self, vector: np.ndarray, value: float) -> np.ndarray:
        """F, and after it rows that vanish on one member of each orbit."""

    @abstractmethod
    def slopes(self, vector: np.ndarray, value: float) -> np.ndarray:
        """The derivative of the rows by the parameters."""

    @abstractmethod
    def loss(self, vector: np.ndarray, value: float) -> float: ...

    @abstractmethod
    def params(self, vector: np.ndarray, value: float) -> dict[str, np.ndarray]: ...

    def spectrum(self, slopes: np.ndarray, value: float) -> tuple[np.ndarray, np.ndarray]:
        """Rates inside the model and their directions as columns, from the derivative of F."""
        jacobian = slopes[: slopes.shape[1]]
        return np.linalg.eigh((jacobian + jacobian.T) / 2)

    def openings(self, vector: np.ndarray, value: float) -> dict[str, np.ndarray]:
        """Matrices by name whose singular values are rates out of a small model; none where the model is whole."""
        return {}

    def measures(self, vector: np.ndarray, value: float) -> dict[str, tuple[float, ...]]:
        """Curves to draw, by name; each has as many numbers at every point."""
        return {}


@dataclass(frozen=True)
class Spot:
    """A point of a branch while it is followed; `tangent` is in scaled coordinates, the value last, `step` leads to the next."""

    vector: np.ndarray
    value: float
    tangent: np.ndarray
    slopes: np.ndarray
    step: float = 0.0


class Follower:
    """Steps along the zeros, in coordinates scaled by the length of the first point and by the span of the value."""

    def __init__(self, zeros: Zeros, start: np.ndarray, value: float, low: float, high: float) -> None:
        if not (np.isfinite(low) and np.isfinite(high) and low <= value <= high and low < high):
            raise InputError(f"the value {value:g} is not between {low:g} and {high:g}: a branch starts inside its range")
        self.zeros, self.low, self.high, self.span = zeros, low, high, high - low
        self.family = False  # whether critical points of equal loss, of one orbit or not, go through a point
        self.length = max(float(norm(start)), 1e-3)
        upwards = np.append(np.zeros(len(start)), 1.0)
        begin = self.at_value(start, value, upwards)
        if begin is None:
            speed = float(norm(zeros.rows(start, value)[: len(start)]))
            raise StagescopeError(f"no critical point was found at {value:g}: the search began at |F| = {speed:.1e}")
        self.first = begin

    def matrix(self, vector: np.ndarray, value: float, slopes: np.ndarray) -> np.ndarray:
        """The derivative of the rows by the scaled coordinates."""
        h = NUDGE * self.span
        sides = [(value + h, value - h), (value, value - h), (value + h, value)]
        for up, down in sides:  # at the rim of what is allowed one side is missing
            try:
                change = (self.zeros.rows(vector, up) - self.zeros.rows(vector, down)) / (up - down)
            except InputError:
                continue
            return np.hstack([self.length * slopes, self.span * change[:, None]])
        raise InputError(f"the value {value:g} has no neighbours that are allowed")

    def tangent(self, base: Spot, before: np.ndarray) -> np.ndarray:
        """The direction along which the value changes with the least motion while the rows stay zero, turned like the one before.

        Directions at a constant value belong to families of equal loss. At a fold all are; there the one before is projected.
        """
        _, values, right = np.linalg.svd(self.matrix(base.vector, base.value, base.slopes))
        free = right[np.sum(values > LIMITS.free * values[0]) :]
        along = free.T @ free[:, -1]
        self.family = self.family or len(free) > 1
        if norm(along) < LIMITS.flat:
            along = free.T @ (free @ before)
        along /= max(float(norm(along)), 1e-300)
        return along if along @ before >= 0 else -along

    def at_value(self, vector: np.ndarray, value: float, before: np.ndarray) -> Spot | None:
        """The zero nearest to a guess at a value, with a tangent like the one before; None where none is found."""
        for _ in range(LIMITS.patience):
            rows, slopes = self.zeros.rows(vector, value), self.zeros.slopes(vector, value)
            if np.abs(rows).max() <= LIMITS.critical:
                spot = Spot(vector, value, before, slopes)
                return replace(spot, tangent=self.tangent(spot, before))
            if not np.all(np.isfinite(slopes)):
                return None
            vector = vector - np.linalg.lstsq(slopes, rows, rcond=LIMITS.free)[0]
        return None

    def stepped(self, base: Spot, step: float) -> Spot | None:
        """The point a step further: a guess along the tangent, corrected across it; None where no zero is found."""
        vector = base.vector + step * self.length * base.tangent[:-1]
        value = base.value + step * self.span * base.tangent[-1]
        sizes = []
        try:
            for _ in range(LIMITS.corrections):
                rows, slopes = self.zeros.rows(vector, value), self.zeros.slopes(vector, value)
                sizes.append(float(np.abs(rows).max()))
                if sizes[-1] <= LIMITS.critical:
                    spot = Spot(vector, float(value), base.tangent, slopes)
                    return replace(spot, tangent=self.tangent(spot, base.tangent))
                if not np.isfinite(sizes[-1]) or (len(sizes) > 2 and sizes[-1] > sizes[-3]):
                    return None
                system = np.vstack([self.matrix(vector, value, slopes), base.tangent])
                change = -np.linalg.lstsq(system, np.append(rows, 0.0), rcond=LIMITS.free)[0]
                vector, value = vector + self.length * change[:-1], value + self.span * change[-1]
        except (InputError, np.linalg.LinAlgError):
            return None
        return None

    def side(self, sign: float) -> tuple[list[Spot], str]:
        """Points to one side of the first, which is among them, and why there are no more."""
        base = replace(self.first, tangent=sign * self.first.tangent)
        spots, step = [base], LIMITS.first
        while len(spots) < LIMITS.branch:
            following = self.stepped(base, step)
            if following is None or following.tangent @ base.tangent < LIMITS.turn:
                step /= 2
                if step < LIMITS.shortest:
                    # The points up to the first of the last ones, among which the value does not change.
                    moving = [abs(spot.value - spots[-1].value) > LIMITS.flat * self.span for spot in spots]
                    last = max((i for i, moves in enumerate(moving) if moves), default=-1)
                    return spots[: 2 + last], f"it could not be followed beyond {base.value:.4g}"
                continue
            if not self.low <= following.value <= self.high:
                # The last point, and the one at the edge of the range before the next.
                edge = self.low if following.value < self.low else self.high
                share = abs((edge - base.value) / (following.value - base.value))
                last = self.at_value(base.vector + share * (following.vector - base.vector), edge, base.tangent)
                return [*spots[:-1], *([base] if last is None or share == 0 else [replace(base, step=share * step), last])], ""
            spots[-1] = replace(base, step=step)
            spots.append(following)
            displacement = (following.vector - self.first.vector) / self.length
            distance = float(norm(np.append(displacement, (following.value - self.first.value) / self.span)))
            if len(spots) > LIMITS.window and distance < step:
                return spots, CLOSED
            if norm(following.vector) > LIMITS.far * self.length:
                return spots, f"it runs off to infinity near {following.value:.4g}"
            base, step = following, min(1.5 * step, LIMITS.longest)
        return spots, f"it was given up after {LIMITS.branch} points, at {base.value:.4g}"

    def located(self, base: Spot, following: Spot, sign: Callable[[Spot], float]) -> Spot:
        """Where a function of a point changes its sign between two neighbours: regula falsi along the step (Illinois)."""
        low, high, f, g = 0.0, base.step, sign(base), sign(following)
        best = following
        if f * g >= 0:  # one of them is zero to rounding
            return base if abs(f) < abs(g) else following
        for _ in range(LIMITS.located):
            middle = (low * g - high * f) / (g - f)
            trial = self.stepped(base, middle)
            if trial is None:
                break
            best, h = trial, sign(trial)
            if abs(high - low) < LIMITS.coupling * base.step or h == 0:
                break
            if h * g < 0:
                low, f = high, g
            else:
                f /= 2
            high, g = middle, h
        return best
