"""A critical point followed over a number that its loss depends on: the branch, its folds, and where rates cross."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import chain, combinations, pairwise
from typing import Any

import numpy as np
from numpy.linalg import norm

from stagescope.core.errors import InputError
from stagescope.core.params import Params
from stagescope.flow.field import JaxObjective, Objective
from stagescope.landscape.critical import refine
from stagescope.landscape.derivatives import DENSE, Derivatives
from stagescope.landscape.follower import CLOSED, Follower, Spot, Zeros
from stagescope.landscape.limits import LIMITS
from stagescope.landscape.spectrum import dense_eigen


@dataclass(frozen=True)
class BranchPoint:
    """A critical point of a branch: `index` directions grow inside the model; `rates` are those of what opens out of it.

    Where the model is whole, `rates` are those of the directions that grow in it. `measures` are curves to draw, by name.

    Examples:
        >>> point = ss.BranchPoint(0.0, -0.25, 0, (), {}, {}, {"x": np.ones(1)})
        >>> point.stable
        True
    """

    value: float
    loss: float
    index: int
    rates: tuple[float, ...]
    openings: Mapping[str, tuple[float, ...]]
    measures: Mapping[str, tuple[float, ...]]
    params: Mapping[str, np.ndarray]

    @property
    def stable(self) -> bool:
        """Whether nothing grows inside the model."""
        return self.index == 0

    def json(self) -> dict[str, Any]:
        facts = {"value": self.value, "loss": self.loss, "index": self.index, "rates": list(self.rates), "stable": self.stable}
        facts["openings"] = {name: list(rates) for name, rates in self.openings.items()}
        return facts | {name: list(values) for name, values in self.measures.items()}


@dataclass(frozen=True)
class Crossing:
    """A place on a branch. `kind` is fold, bifurcation (a rate inside the model is zero), opening (a rate out of it is zero),
    or order (two kinds of openings are equally fast); `what` names the rates.

    Examples:
        >>> fold = ss.Crossing(value=0.385, loss=0.083, kind="fold", what="the branch turns back")
        >>> fold.kind, fold.value
        ('fold', 0.385)
    """

    value: float
    loss: float
    kind: str
    what: str

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Branch:
    """Critical points in the order in which they follow each other, folds, and crossings of rates; `notes` say how it ends.

    Examples:
        >>> def family(v):
        ...     return ss.JaxObjective(lambda params: (params["x"] ** 4 / 4 - params["x"] ** 2 / 2 - v * params["x"]).sum())
        >>> branch = ss.continue_point(family, 0.0, {"x": np.ones(1)}, low=-0.2, high=0.2)
        >>> print(f"{len(branch.folds)} folds, loss {branch.points[0].loss:.3f} at {branch.points[0].value:.2f}")
        0 folds, loss -0.061 at -0.20
    """

    points: tuple[BranchPoint, ...]
    folds: tuple[Crossing, ...]
    crossings: tuple[Crossing, ...]
    notes: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        parts = {name: [entry.json() for entry in getattr(self, name)] for name in ("points", "folds", "crossings")}
        return {**parts, "notes": list(self.notes)}


Compiled = Callable[[np.ndarray, float], Any]


class DenseZeros(Zeros):
    """The zeros of -grad of `family(value)`. Of an orbit the member nearest to the one before is taken.

    A family of losses written in JAX is compiled once, with the value as a number that it reads; one that cannot be traced so
    is compiled for every value.
    """

    def __init__(self, family: Callable[[float], Objective], start: Params, value: float) -> None:
        self.family, self.value = family, value
        self.near = lru_cache(maxsize=16)(lambda value: _near(family(value), start))
        near = self.near(value)
        self.layout, self.roots = near.layout, near.roots

    def start(self, params: Params) -> np.ndarray:
        """The critical point that least squares on F finds at the first value; one far from the start is refused."""
        vector = self.layout.pack(params)
        zero = refine(self.near(self.value), vector)
        away, limit = float(norm(zero - vector)), LIMITS.far * max(float(norm(vector)), 1.0)
        if away > limit:
            raise InputError(f"no critical point is near the start: the nearest found is {away:.3g} away; start nearer to one")
        return zero

    def rows(self, vector: np.ndarray, value: float) -> np.ndarray:
        return np.array(self._functions[1](vector, value))

    def slopes(self, vector: np.ndarray, value: float) -> np.ndarray:
        return np.array(self._functions[2](vector, value))

    def spectrum(self, slopes: np.ndarray, value: float) -> tuple[np.ndarray, np.ndarray]:
        modes = dense_eigen(slopes, self.roots)
        return modes.values, modes.vectors / norm(modes.vectors, axis=0)

    def loss(self, vector: np.ndarray, value: float) -> float:
        return float(self._functions[0](vector, value))

    def params(self, vector: np.ndarray, value: float) -> dict[str, np.ndarray]:
        return self.layout.unpack(vector)

    @cached_property
    def _functions(self) -> tuple[Compiled, Compiled, Compiled]:
        """Loss, F and its Jacobian."""
        if isinstance(self.family(self.value), JaxObjective):
            traced = self._traced()
            try:
                traced[1](np.zeros(self.layout.size), self.value)
                return traced
            except Exception:  # whatever a family raises that needs a number and gets a tracer
                pass

        def loss(vector: np.ndarray, value: float) -> float:
            return self.family(value).value(self.layout.unpack(vector))

        return loss, lambda vector, value: self.near(value).law(vector), lambda vector, value: self.near(value).jacobian(vector)

    def _traced(self) -> tuple[Compiled, Compiled, Compiled]:
        from stagescope.flow.autodiff import jax

        def loss(vector: Any, value: Any) -> Any:
            objective = self.family(value)
            return objective.loss(self.layout.unpack(vector), objective.data)

        def law(vector: Any, value: Any) -> Any:
            return -jax.grad(loss)(vector, value)

        return jax.jit(loss), jax.jit(law), jax.jit(jax.jacfwd(law))


def _near(objective: Objective, start: Params) -> Derivatives:
    near = Derivatives(objective, start)
    if near.field.objective is None:
        raise InputError(f"{type(objective).__name__} is no gradient of a loss; only critical points of losses are continued")
    if not near.dense:
        raise InputError(f"the model has {near.layout.size} parameters; critical points are continued up to {DENSE}")
    return near


@dataclass(frozen=True)
class Modes:
    """Rates at one point with their left and right directions as columns: eigenvalues, or singular values.

    A singular value has the sign by which it continues the one before.
    """

    rates: np.ndarray
    left: np.ndarray
    right: np.ndarray
    singular: bool

    def after(self, before: "Modes", zero: float) -> "Modes":
        """The same modes in the order of those before.

        The direction of a rate that is zero may be anything, so the one before is kept. Directions that turn too far between
        two points decide no sign of a singular value: then that of the rate before is kept.
        """
        if not len(self.rates):
            return self
        from scipy.optimize import linear_sum_assignment

        along, across = before.left.T @ self.left, before.right.T @ self.right
        order = linear_sum_assignment(-np.abs(along * across))[1]
        turns = [np.where(np.diag(overlap[:, order]) < 0, -1.0, 1.0) for overlap in (along, across)]
        unlike = np.abs(np.diag((along * across)[:, order])) < LIMITS.half**2
        if self.singular:
            turns[1] = np.where(unlike, turns[0] * np.where(before.rates < 0, -1.0, 1.0), turns[1])
        none = np.abs(self.rates[order]) <= zero
        left = np.where(none, before.left, self.left[:, order] * turns[0])
        right = np.where(none, before.right, self.right[:, order] * turns[1])
        return Modes(self.rates[order] * turns[0] * turns[1], left, right, self.singular)


def inside(zeros: Zeros, spot: Spot) -> Modes:
    """The rates inside the model."""
    rates, directions = zeros.spectrum(spot.slopes, spot.value)
    return Modes(rates, directions, directions, singular=False)


def outside(zeros: Zeros, spot: Spot) -> dict[str, Modes]:
    """The rates of what opens, by kind."""
    by_kind = {}
    for name, matrix in zeros.openings(spot.vector, spot.value).items():
        left, rates, right = np.linalg.svd(matrix, full_matrices=False)
        by_kind[name] = Modes(rates, left, right.T, singular=True)
    return by_kind


class Tracked:
    """The rates of all points of a branch, mode by mode."""

    def __init__(self, zeros: Zeros, spots: Sequence[Spot]) -> None:
        self.zeros, self.spots = zeros, list(spots)
        inner, outer = [inside(zeros, spot) for spot in spots], [outside(zeros, spot) for spot in spots]
        largest = np.array([np.abs(modes.rates).max(initial=0.0) for modes in inner])
        # Rounding, and what is left of F over the length of the point: along an orbit a rate is as large as that.
        self.zero = LIMITS.free * largest + LIMITS.critical / np.array([max(float(norm(spot.vector)), 1e-3) for spot in spots])
        self.inside = self._ordered(inner)
        self.outside = {name: self._ordered([by_kind[name] for by_kind in outer]) for name in outer[0]}
        self.signs = {"": signs(self.inside, self.zero)}
        self.signs |= {name: signs(modes, self.zero) for name, modes in self.outside.items()}

    def _ordered(self, modes: list[Modes]) -> list[Modes]:
        for i in range(1, len(modes)):
            modes[i] = modes[i].after(modes[i - 1], self.zero[i])
        return modes

    @property
    def points(self) -> tuple[BranchPoint, ...]:
        points = []
        for i, spot in enumerate(self.spots):
            growing, place = self.signs[""][i] > 0, (spot.vector, spot.value)
            openings = {name: _fastest(modes[i].rates, self.zero[i]) for name, modes in self.outside.items()}
            inner = _fastest(self.inside[i].rates[growing], 0.0)
            rates = tuple(sorted(chain.from_iterable(openings.values()), reverse=True)) if openings else inner
            points.append(
                BranchPoint(
                    value=spot.value,
                    loss=self.zeros.loss(*place),
                    index=int(np.sum(growing)),
                    rates=rates,
                    openings=openings,
                    measures=self.zeros.measures(*place),
                    params=self.zeros.params(*place),
                )
            )
        return tuple(points)


def _fastest(rates: np.ndarray, zero: float) -> tuple[float, ...]:
    sizes = np.sort(np.abs(rates))[::-1]
    return tuple(float(rate) for rate in sizes if rate > zero)


def signs(modes: Sequence[Modes], zero: np.ndarray) -> np.ndarray:
    """The sign of every mode at every point; where a rate is too small to have one, that of the point before, or after."""
    rates = np.array([spot_modes.rates for spot_modes in modes])
    signs = np.where(np.abs(rates) > zero[:, None], np.sign(rates), 0.0)
    for order in (range(1, len(signs)), range(len(signs) - 2, -1, -1)):
        step = 1 if order.step > 0 else -1
        for i in order:
            signs[i] = np.where(signs[i] == 0, signs[i - step], signs[i])
    return signs


FAMILY = "critical points of equal loss go through each: the member nearest to that of the point before is shown, with its rates"


def follow(zeros: Zeros, start: np.ndarray, value: float, low: float, high: float) -> Branch:
    """The branch of critical points through a start, to both sides, while the value is between `low` and `high`."""
    follower = Follower(zeros, start, value, low, high)
    down, ended = follower.side(-1.0)
    up, stopped = ([follower.first], "") if ended == CLOSED else follower.side(1.0)
    steps = [spot.step for spot in down[-2::-1]]
    back = [replace(spot, tangent=-spot.tangent, step=step) for spot, step in zip(down[:0:-1], steps, strict=True)]
    tracked = Tracked(zeros, [*back, *up])
    folds = []  # where the value turns back along the branch, by more than rounding
    for current, following in pairwise(tracked.spots):
        if current.tangent[-1] * following.tangent[-1] < 0:
            spot = follower.located(current, following, lambda spot: float(spot.tangent[-1]))
            if max(abs(spot.value - current.value), abs(spot.value - following.value)) > LIMITS.flat * follower.span:
                folds.append(_place(follower, spot, "fold", "the branch turns back"))
    crossings: list[Crossing] = []  # crossings of equal rates at one place are one
    close = LIMITS.place * follower.span
    for crossing in (*_zeros(follower, tracked, folds), *_orders(follower, tracked)):
        candidates = (old for old in crossings if (old.kind, old.what) == (crossing.kind, crossing.what))
        if not any(abs(crossing.value - old.value) <= close and abs(crossing.loss - old.loss) <= close for old in candidates):
            crossings.append(crossing)
    notes = dict.fromkeys(note for note in (ended, stopped, FAMILY if follower.family else "") if note)
    return Branch(tracked.points, tuple(folds), tuple(crossings), tuple(notes))


def _place(follower: Follower, spot: Spot, kind: str, what: str) -> Crossing:
    return Crossing(spot.value, follower.zeros.loss(spot.vector, spot.value), kind, what)


def _zeros(follower: Follower, tracked: Tracked, folds: list[Crossing]) -> Iterator[Crossing]:
    """Where a rate is zero: one inside the model, folds left out, because there one always is; or one of what opens."""

    def modes_at(name: str, spot: Spot) -> Modes:
        return outside(follower.zeros, spot)[name] if name else inside(follower.zeros, spot)

    for name, modes in {"": tracked.inside, **tracked.outside}.items():
        for i, (current, following) in enumerate(pairwise(tracked.spots)):
            for mode in np.flatnonzero(tracked.signs[name][i] * tracked.signs[name][i + 1] < 0):
                rate = _rate(modes[i], modes[i + 1], int(mode), partial(modes_at, name))
                spot = follower.located(current, following, rate)
                if abs(rate(spot)) > LIMITS.small * max(abs(rate(current)), abs(rate(following))):
                    continue  # another mode was taken for this one: two rates that do not cross
                if name:
                    yield _place(follower, spot, "opening", f"a rate of {name} is zero")
                elif all(abs(spot.value - fold.value) > LIMITS.place * follower.span for fold in folds):
                    yield _place(follower, spot, "bifurcation", "a rate inside the model is zero")


def _rate(before: Modes, after: Modes, mode: int, modes_at: Callable[[Spot], Modes]) -> Callable[[Spot], float]:
    """The rate of one mode at a place between two points, by its directions at both."""
    left, right = (before.left + after.left)[:, mode], (before.right + after.right)[:, mode]

    def rate(spot: Spot) -> float:
        modes = modes_at(spot)
        overlaps = (left @ modes.left) * (right @ modes.right)
        best = int(np.argmax(np.abs(overlaps)))
        return float(modes.rates[best] * np.sign(overlaps[best]))

    return rate


def _orders(follower: Follower, tracked: Tracked) -> Iterator[Crossing]:
    """Where two kinds of openings are equally fast, so that the order of what opens swaps."""
    for one, two in combinations(tracked.outside, 2):

        def lead(spot: Spot, names: tuple[str, str] = (one, two)) -> float:
            modes = outside(follower.zeros, spot)
            return _top(modes[names[0]]) - _top(modes[names[1]])

        pairs = list(zip(tracked.outside[one], tracked.outside[two], strict=True))
        real = [min(_top(a), _top(b)) > zero for (a, b), zero in zip(pairs, tracked.zero, strict=True)]
        leads = [_top(a) - _top(b) for a, b in pairs]
        for i, (current, following) in enumerate(pairwise(tracked.spots)):
            if real[i] and real[i + 1] and leads[i] * leads[i + 1] < 0:
                yield _place(follower, follower.located(current, following, lead), "order", f"{one} and {two} open equally fast")


def _top(modes: Modes) -> float:
    return float(np.abs(modes.rates).max(initial=0.0))
