"""The path of equal heads, and when heads that start nearly alike part from it: t_2 without a run from the start [ISA:t2].

Equal heads move as one head [ISA:symmetric]. A difference of heads leaves P unchanged to first order, so every head's own
deviation from the mean obeys the same linear law along this path, whatever its size: V_h' = R s_h and the law of a_h with R held.
One path and its propagator serve all initial noises. Once the deviations have grown to eta, all heads are followed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from stagescope.core.errors import InputError
from stagescope.core.params import Layout, Params
from stagescope.detect.levels import transitions
from stagescope.flow.softmax import softmax
from stagescope.flow.solver import between, steps
from stagescope.landscape.saddle_path import Leg, Place, Predicted, SaddlePath, of_two_sizes, unsure
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.regression import BLOCKS, Regression, RegressionForms

_extrapolated = partial(of_two_sizes, order=1.0)  # the error in the difference of heads falls with this power
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
        blocks = {name: np.asarray(start[name]).reshape(1, -1) for name in BLOCKS}
        self.layout = Layout.of(blocks)
        flat, self.velocity, self.loss = _motion(self.small, self.layout)
        first = self.layout.pack(blocks)
        self._source = steps(flat, first, (0.0, until))
        self.places = [Propagated(0.0, first, 0.0, np.eye(len(first)), 0.0)]

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
        yield from self.places
        while self._extend():
            yield self.places[-1]

    def _extend(self) -> bool:
        """One more step of the solver: the propagator by the exponential of the mean law."""
        from scipy.linalg import expm

        step = next(self._source, None)
        if step is None:
            return False
        (t, point), last = step, self.places[-1]
        h, ends = t - last.t, (last.point, point)
        velocities = (self.velocity(last.point), self.velocity(point))
        middle = between(0.5, h, ends, velocities)
        laws = [self.jacobian(state) for state in (last.point, middle, point)]
        matrix = expm(h * (laws[0] + 4 * laws[1] + laws[2]) / 6) @ last.matrix
        size = float(np.linalg.norm(matrix))
        rate = float(np.max(np.real(np.linalg.eigvals(laws[2])))) if h > 0 else last.rate
        self.places.append(Propagated(t, point, last.log + np.log(size), matrix / size, rate))
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
        return _fine([(place.t, place.point) for place in places], self.velocity, self.loss)

    def curve(self, parted: Parted, last_level: float) -> tuple[np.ndarray, np.ndarray]:
        """Time and loss: of equal heads until they part, then of all heads until the loss is below the last level."""
        time, loss = self.equal_curve(parted.before)
        heads, size = parted.heads, self.law.model.positions
        blocks = {"a": heads[:, :size], "V": heads[:, size:]}
        layout = Layout.of(blocks)
        flat, velocity, value = _motion(self.law, layout)
        first = layout.pack(blocks)
        after = [(parted.place.t, first)]
        for t, point in steps(flat, first, (parted.place.t, self.until)):
            after.append((t, point))
            if value(point) < last_level:
                break
        later, losses = _fine(after, velocity, value)
        return np.append(time, later), np.append(loss, losses)


def _motion(law: Regression, layout: Layout) -> tuple[Any, Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], float]]:
    """The flow of a law at unit rates for the solver, its velocity, and its loss, of flat points."""
    flat = law.flat(layout, dict.fromkeys(BLOCKS, 1.0))

    def velocity(point: np.ndarray) -> np.ndarray:
        out = np.empty_like(point)
        flat(point, out)
        return out

    return flat, velocity, lambda point: float(law.move(layout.unpack(point))[0])


def _fine(places: list[tuple[float, np.ndarray]], velocity: Any, loss: Any) -> tuple[np.ndarray, np.ndarray]:
    """Time and loss with points between the solver's own."""
    time, losses = [places[0][0]], [loss(places[0][1])]
    for (t, y), (after, end) in pairwise(places):
        velocities, h = (velocity(y), velocity(end)), after - t
        for share in np.arange(1, FINE + 1) / FINE:
            time.append(t + share * h)
            losses.append(loss(between(float(share), h, (y, end), velocities)))
    return np.array(time), np.array(losses)


def head_deviations(start: Params) -> tuple[np.ndarray, np.ndarray, float]:
    """The mean head (N + k), the deviations of heads from it (H, N + k) of norm 1, and the logarithm of their norm."""
    heads = np.hstack([start["a"], start["V"]])
    mean = heads.mean(axis=0)
    deviations = heads - mean
    top = float(np.abs(deviations).max())
    if top == 0:
        return mean, deviations, -np.inf
    size = float(np.linalg.norm(deviations / top))
    return mean, deviations / top / size, float(np.log(top) + np.log(size))


def has_room(size: float) -> bool:
    """Whether a difference of heads at the start is small beside eta."""
    return LIMITS.dominant * size <= LIMITS.majority


def parting_times(law: Regression, deviations: np.ndarray, log_sizes: np.ndarray, until: float) -> list[Predicted]:
    """t_2 from `deviations` of these sizes, from one path of equal heads, from uniform attention and V = 0."""
    model, forms = law.model, law.forms
    path = EqualHeadsPath(law, {"a": np.zeros(model.positions), "V": np.zeros(len(model.gains))}, until)
    level = float(forms.levels[1] + forms.levels[2]) / 2

    def time(log_size: float, eta: float) -> float | None:
        return transitions(*_curve(path, path.parted(deviations, log_size, eta), level), forms.levels)[1]

    predicted_times = []
    for size in log_sizes.tolist():
        eta = wanted_eta(float(np.exp(size)))
        predicted_times.append(_extrapolated(time(size, eta), time(size, eta / 2), "heads do not part"))
    return predicted_times


def wanted_eta(size: float) -> float:
    """The difference at which all heads are followed, from the one at the start; refused where there is no room to grow."""
    least = LIMITS.dominant * size
    if not has_room(size):
        raise InputError(
            f"heads differ by {size:.3g} at the start, {least / LIMITS.majority:.3g} times the most from which they part one "
            "after the other; take a smaller --init-scale, the initial noise of attention scores or, with --noise weights, of "
            "weights"
        )
    return max(LIMITS.moved_distance, least)


def regression_path(law: Regression, start: Params, until: float, seen: float = np.inf) -> SaddlePath:
    """Events t_1 .. t_k: the loss passes halfway between two plateaus, as for runs [ISA:transitions].

    All of them, whatever was `seen`.
    """
    model, forms = law.model, law.forms
    mean, deviations, log_size = head_deviations(start)
    size = float(np.exp(log_size))
    eta = wanted_eta(size)
    blocks = {"a": mean[: model.positions], "V": mean[model.positions :]}
    path = EqualHeadsPath(law, blocks, until)
    middles = (forms.levels[:-1] + forms.levels[1:]) / 2
    if model.heads == 1 or size == 0:  # heads that are equal stay so: the path ends on plateau 1
        next((place for place in path if path.loss(place.point) < middles[0]), None)
        curve = path.equal_curve(path.places)
        first = transitions(*curve, forms.levels)[0]
        reason = "there is one head" if model.heads == 1 else "heads start exactly equal and stay so"
        events = {"t1": of_two_sizes(first, first, f"it does not come by t={until:g}")}
        events |= {f"t{j + 1}": Predicted(None, reason=reason) for j in range(1, len(middles))}
        return _saddle_path(events, curve, None, forms, eta, curve[0], {})
    times_of_noises = [path.parted(deviations, log_size, threshold) for threshold in (eta, eta / 2)]
    curves = [_curve(path, parting, middles[forms.reachable - 1]) for parting in times_of_noises]
    coarse, fine = (transitions(*curve, forms.levels) for curve in curves)
    reason = f"it does not come by t={until:g}" if times_of_noises[1] else f"heads have not parted by t={until:g}"
    reason = reason if len(model.gains) == forms.reachable else f"{model.heads} heads reach plateau {forms.reachable} at most"
    events = {f"t{j + 1}": _extrapolated(coarse[j], fine[j], reason) for j in range(len(middles))}
    if size < LIMITS.lost:
        lost = f"heads differ by {size:.1g} at the start: what parts the heads after the first two is lost to rounding"
        events |= {name: Predicted(None, reason=lost) for name in events if name not in ("t1", "t2")}
    sizes = {"heads": np.array([place.size(deviations) + log_size for place in path.places])}
    times = np.array([place.t for place in path.places])
    return _saddle_path(events, curves[1], times_of_noises[1], forms, eta, times, sizes)


def _curve(path: EqualHeadsPath, parted: Parted | None, level: float) -> tuple[np.ndarray, np.ndarray]:
    if parted is not None:
        return path.curve(parted, level)
    return np.array([place.t for place in path.places]), np.array([path.loss(place.point) for place in path.places])


def _saddle_path(
    events: dict[str, Predicted],
    curve: tuple[np.ndarray, np.ndarray],
    found: Parted | None,
    forms: RegressionForms,
    eta: float,
    time: np.ndarray,
    sizes: dict[str, np.ndarray],
) -> SaddlePath:
    """Plateaus between events that come. None is a critical point at a finite place: logits grow without end on each.

    The loss is that where it falls least; on the last plateau it is the level, to which it falls.
    """
    times = [0.0, *(event.t for event in events.values() if event.t is not None)]
    legs = []
    for j, begin in enumerate(times):
        parted, end = found if j == 1 else None, times[j + 1] if j + 1 < len(times) else None
        loss = float(forms.levels[j] if end is None else np.interp(_slowest(curve, begin, end), *curve))
        rate = None if parted is None else parted.place.rate
        opens = "heads part" if parted and end is not None else None
        state: Place = "at infinity" if j else "passed"
        legs.append(Leg(f"plateau {j}", begin, end, loss, opens, rate, lambda state=state: (state, ())))
    levels = {f"t{j + 1}": float(above + below) / 2 for j, (above, below) in enumerate(pairwise(forms.levels))}
    return SaddlePath(tuple(legs), events, tuple(unsure(events)), eta, time, sizes, levels)


def _slowest(curve: tuple[np.ndarray, np.ndarray], begin: float, end: float) -> float:
    """Where the loss falls least between two events; the start before the first."""
    time, loss = curve
    if begin == 0:
        return 0.0
    inside = np.flatnonzero((time[1:] > begin) & (time[1:] < end) & (np.diff(time) > 0))
    if not inside.size:
        return begin
    falls = np.diff(loss)[inside] / np.diff(time)[inside]
    return float(time[1:][inside[int(np.argmax(falls))]])


def no_path(law: Any, start: Params, until: float, seen: float = np.inf) -> SaddlePath:
    """Of students and sampled models: why nothing is predicted."""
    raise InputError(
        f"the start of {type(law).__name__} is no critical point, and the path of equal heads is that of the regression flows; "
        "predict those, --preset ode-exact or published-flow, and compare by the clock of ISA:clock"
    )
