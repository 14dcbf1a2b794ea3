"""The saddle path of TokenAttention: from the start to the sequence of stages and their times, without a run [FD:ladder]."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stagescope.core.errors import InputError
from stagescope.core.params import Layout, Params, root_mean_square
from stagescope.flow.solver import TOLERANCES, Stopped, between, steps
from stagescope.landscape.flow_prediction import FlowEvents, FlowSteps
from stagescope.landscape.graded import Graded
from stagescope.landscape.saddle_path import SOLVER, AtRest, Leg, Place, SaddlePath, of_two_sizes, plain_time, unsure
from stagescope.papers.focus_dilution.family import escape_matrices, project, reduced
from stagescope.papers.focus_dilution.kernel import laws, population_slopes
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenCounts, TokenLoss, TokenSampled
from stagescope.papers.focus_dilution.observables import TokenCurves, triangle
from stagescope.papers.focus_dilution.stages import Stay, open_directions, opening_times, stays

# The flow of a small model, one step of the solver at a time, and the linear laws beside it.


class SmallModel:
    """The same loss of the model of width r and key width rq, r at least 1; at rq = 0 its one query and key are zeros."""

    def __init__(self, loss: TokenLoss, r: int, rq: int) -> None:
        self.r, self.rq, self.loss = r, rq, reduced(loss, r, rq)
        self.layout = Layout(tuple((name, self.loss.model.shapes[name]) for name in BLOCKS))
        self.flat = self.loss.flat(self.layout, dict.fromkeys(BLOCKS, 1.0))

    def packed(self, small: Params) -> np.ndarray:
        none = {} if self.rq else {name: np.zeros((self.r, 1)) for name in ("WQ", "WK")}
        return self.layout.pack({**small, **none})

    def unpacked(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """The blocks of one vector, or of several along leading axes."""
        small = self.layout.unpack(vector)
        return small if self.rq else small | {name: small[name][..., :0] for name in ("WQ", "WK")}

    def velocity(self, vector: np.ndarray) -> tuple[np.ndarray, float]:
        """The velocity and the loss."""
        out = np.empty_like(vector)
        value = self.flat(vector, out)
        return out, float(self.loss.value(self.layout.unpack(vector)) if value is None else value)

    def steps(
        self, vector: np.ndarray, start: float, until: float, tolerances: tuple[float, float] = TOLERANCES
    ) -> Iterator[tuple[float, np.ndarray]]:
        """Times and points, one for each step that the solver takes."""
        return steps(self.flat, vector, (start, until), tolerances)


# A small model (r, rq) of TokenAttention and what lies outside it, as a saddle path carries them.
#
# With E = [W0; W1^T; WQ^T; WK^T] stacked on the width axis, the flow is E' = N(E) E with N = [[0, B], [B^T, 0]], an identity;
# so is A' = [[0, F], [F^T, 0]] A for A = [WQ; WK]. N depends on what lies outside a small model to second order only. So this
# part obeys two linear laws along the small model's path:
#
# embedding stack   all rows of E, columns outside S; B = [-GM, -GP K, -GP^T Q] with all of Q and K
# attention stack   all rows of A, columns outside U; F = -W0^T GP W0 with all of W0
#
# What of WQ and WK lies outside both S and U is in both stacks. It is as small as the start, so products of two patterns
# move it, and each stack reads the other in its law.

Laws = tuple[np.ndarray, np.ndarray]
"""B (d, d + 2 mk) and F (m, m)."""


def stacked(params: Params) -> tuple[np.ndarray, np.ndarray]:
    """E (2 d + 2 mk, m) and A (2 m, mk)."""
    w0, w1, wq, wk = (params[name] for name in BLOCKS)
    return np.vstack([w0, w1.T, wq.T, wk.T]), np.vstack([wq, wk])


@dataclass(frozen=True)
class State:
    """`small` are the blocks of the small model, `s` (r, m) and `u` (rq, mk) the orthonormal rows that embed it."""

    small: Params
    s: np.ndarray
    u: np.ndarray
    embedding: Graded
    attention: Graded

    @classmethod
    def at(cls, start: Params) -> "State":
        """A start near the origin: the small model is (0, 0), and everything is outside it."""
        (d, m), keys = start["W0"].shape, start["WQ"].shape[1]
        small = {"W0": np.zeros((d, 0)), "W1": np.zeros((0, d)), "WQ": np.zeros((0, 0)), "WK": np.zeros((0, 0))}
        return cls(small, np.zeros((0, m)), np.zeros((0, keys)), *map(Graded.of, stacked(start)))

    @property
    def r(self) -> int:
        return len(self.s)

    @property
    def rq(self) -> int:
        return len(self.u)

    @property
    def stacks(self) -> list[Graded]:
        return [self.embedding, self.attention]

    def laws(self, loss: TokenLoss, small: Params) -> Laws:
        """The laws beside a point of the small model, with the stacks as they are here."""
        w0, w1, wq, wk = (np.ascontiguousarray(small[name]) for name in BLOCKS)
        if isinstance(loss, TokenCounts):
            slopes = loss.slopes(small)
        else:
            slopes = population_slopes(loss.process.stationary, loss.process.transition, loss.model.scale, w0, w1, wq, wk)
        return laws(slopes, (w0, wq, wk), (self.s, self.u), self.embedding.arrays, self.attention.arrays)

    def opened(self, block: str) -> "State":
        """The state after the largest pattern of a stack has joined the small model."""
        old = self.small
        if block == "attention":
            y, column, remaining = self.attention.split()
            m = self.s.shape[1]
            new = {"WQ": self.s @ column[:m], "WK": self.s @ column[m:]}
            small = {**old, **{name: np.column_stack([old[name], part]) for name, part in new.items()}}
            return replace(self, small=small, u=np.vstack([self.u, y]), attention=remaining)
        x, column, remaining = self.embedding.split()
        d, keys = len(old["W0"]), self.u.shape[1]
        w0, w1, wq, wk = np.split(column, [d, 2 * d, 2 * d + keys])
        new = {"W1": w1, "WQ": self.u @ wq, "WK": self.u @ wk}
        small = {"W0": np.column_stack([old["W0"], w0]), **{name: np.vstack([old[name], row]) for name, row in new.items()}}
        return replace(self, small=small, s=np.vstack([self.s, x]), embedding=remaining)


# The walk along a saddle path: the small model's flow until something outside it has grown to eta, then the next one.

STACKS = ("embedding", "attention")


@dataclass(frozen=True)
class Ending:
    """Why a path ends. After a final ending nothing opens any more by the linear law beside the path."""

    reason: str
    final: bool = False


def enough(seen: float) -> Ending:
    """The end of a path of which no more is asked."""
    reason = f"beside a run the path is followed to the first event well after t={plain_time(seen)}"
    return Ending(f"{reason}; `stagescope predict` follows it to its end")


@dataclass(frozen=True)
class Walked:
    """One leg: the small model's points at the solver's own times, and how it ended.

    `block` is the one that reached eta at the end; None where the path ends here, and `ending` says why. `tops` are the
    logarithms of the largest pattern of both stacks at those times, `rates` the largest rates there.
    """

    state: State
    model: SmallModel | None
    time: np.ndarray
    points: np.ndarray
    tops: np.ndarray
    rates: np.ndarray
    losses: np.ndarray
    speeds: np.ndarray
    block: str | None
    ending: Ending | None = None


def walk(loss: TokenLoss, start: Params, eta: float, until: float, seen: float = np.inf) -> Iterator[Walked]:
    """The legs from a start near the origin; the last one ends at the first event clearly after the time `seen`."""
    leg = _origin(loss, State.at(start), np.log(eta), until)
    yield leg
    while leg.block is not None:
        leg = _leg(loss, leg.state.opened(leg.block), float(leg.time[-1]), np.log(eta), until, seen)
        yield leg


def _origin(loss: TokenLoss, state: State, eta: float, until: float) -> Walked:
    """At the origin nothing of the small model moves: the whole stay is one linear law."""
    b = state.laws(loss, state.small)[0]
    rate, top = float(np.linalg.norm(b, 2)), state.embedding.top
    (after,), used, block = _grown([state.embedding], [b], until, [eta])
    value = float(loss.value({name: np.zeros(shape) for name, shape in loss.model.shapes.items()}))
    ending = None if block else Ending(f"at the origin nothing grows faster than {rate:.2g}", final=True)
    return Walked(
        state=replace(state, embedding=after),
        model=None,
        time=np.array([0.0, used]),
        points=np.zeros((2, 0)),
        tops=np.array([[top, -np.inf], [after.top, -np.inf]]),
        rates=np.array([[rate, 0.0]] * 2),
        losses=np.full(2, value),
        speeds=np.zeros(2),
        block=block,
        ending=ending,
    )


def _grown(
    stacks: list[Graded], laws: Sequence[np.ndarray], h: float, limits: Sequence[float]
) -> tuple[list[Graded], float, str | None]:
    """The stacks after a time h under constant laws, or when the first of them reaches its limit.

    No pattern grows faster than the largest singular value of its law. So the steps come up to the limit from below.
    """
    used, rates = 0.0, [math.sqrt(np.vdot(law, law)) for law in laws]
    while True:
        gaps = [limit - stack.top for limit, stack in zip(limits, stacks, strict=True)]
        block = _reached(gaps)
        step = min([h - used, *(gap / rate for gap, rate in zip(gaps, rates, strict=True) if rate > 0 and np.isfinite(gap))])
        if block or used + step <= used:
            return stacks, used, block
        stacks = [stack.grown(law, step, rate) for stack, law, rate in zip(stacks, laws, rates, strict=True)]
        used = h if step == h - used else used + step


def _reached(gaps: Iterable[float]) -> str | None:
    """The first stack whose largest pattern has reached its limit."""
    return next((name for name, gap in zip(STACKS, gaps, strict=False) if gap <= LIMITS.arrival), None)


def _rates(laws: np.ndarray) -> np.ndarray:
    """The largest singular value of each law."""
    return np.sqrt(np.maximum(np.linalg.eigvalsh(laws @ np.swapaxes(laws, -1, -2))[..., -1], 0.0))


class _Leg:
    """What a leg has gathered so far."""

    def __init__(self, loss: TokenLoss, state: State, t: float, eta: float) -> None:
        self.model = SmallModel(loss, state.r, state.rq)
        self.eta, self.state, self.scale, self.t = eta, state, loss.model.scale, t
        self.point = self.model.packed(state.small)
        self.velocity, self.loss = self.model.velocity(self.point)
        self.laws = self._laws(self.point)
        self.events: int | None = None
        self.record: list[tuple[float, np.ndarray, list[float], Laws, float, float]] = []
        self._keep()

    def _laws(self, point: np.ndarray) -> Laws:
        return self.state.laws(self.model.loss, self.model.unpacked(point))

    def _keep(self) -> None:
        tops = [stack.top for stack in self.state.stacks]
        self.record.append((self.t, self.point, tops, self.laws, self.loss, self.speed))

    def rates(self) -> np.ndarray:
        """The fastest rate of each stack here."""
        return np.array([_rates(law) for law in self.laws])

    @property
    def speed(self) -> float:
        return math.sqrt(self.velocity @ self.velocity)

    def limits(self) -> tuple[float, float]:
        """An attention pattern of size a makes scores of about scale |W0|^2 a^2 / 2."""
        w0 = self.model.unpacked(self.point)["W0"]
        size = math.sqrt(np.vdot(w0, w0))
        return self.eta, min(self.eta, float(np.log(2 * LIMITS.outside / (self.scale * size**2)) / 2))

    def gaps(self) -> np.ndarray:
        """E-folds of each stack to its limit."""
        return np.array(self.limits()) - [stack.top for stack in self.state.stacks]

    def advance(self, t: float, point: np.ndarray) -> str | None:
        """Carry the stacks over one step of the small flow; returns the block that reached eta on the way."""
        h, (velocity, value) = t - self.t, self.model.velocity(point)
        ends, velocities = (self.point, point), (self.velocity, velocity)
        middle, last = self._laws(between(0.5, h, ends, velocities)), self._laws(point)
        mean = [(a + 4 * b + c) / 6 for a, b, c in zip(self.laws, middle, last, strict=True)]
        (embedding, attention), used, block = _grown(self.state.stacks, mean, h, self.limits())
        self.state = replace(self.state, embedding=embedding, attention=attention)
        if block and used < h:
            self.point = between(used / h, h, ends, velocities)
            self.velocity, self.loss = self.model.velocity(self.point)
            self.t, self.laws = self.t + used, self._laws(self.point)
        else:
            self.t, self.point, self.velocity, self.laws, self.loss = t, point, velocity, last, value
        self._keep()
        return block

    def shows_event(self) -> bool:
        """Whether an event has come since the point before that of the first call."""
        if self.events is None:
            self.events = self._events(self.record[-2][1])
        return self._events(self.point) > self.events

    def _events(self, point: np.ndarray) -> int:
        """How many directions are open; singular values of W0 = Q R are those of R, and so on."""
        small = self.model.unpacked(point)
        return sum(open_directions(self.model.loss, small | {"W0": triangle(small["W0"])}))

    def ending(self, until: float) -> Ending | None:
        """Why the path ends where the small flow has settled; None where something opens before `until`, inside or outside.

        A way out inside the small model that is lost to rounding ends the path unless something outside opens before.
        """
        gaps, rates = self.gaps(), self.rates()
        due = self.t + float(np.min(gaps / np.maximum(rates, 1e-300)))
        rate, size = self.inside()
        if rate > LIMITS.flow_noise and size < LIMITS.lost and due > self.t + math.log(LIMITS.level / LIMITS.lost) / rate:
            way = f"the path leaves its last leg inside its own model, at rate {rate:.2g}"
            return Ending(f"{way}, along a direction whose size is lost to rounding; what follows is not predicted")
        if due <= until or rate > LIMITS.flow_noise:
            return None
        fastest = float(rates[np.isfinite(gaps)].max(initial=0.0))
        return Ending(f"on the last leg nothing grows faster than {fastest:.2g}", final=True)

    def endless(self, begun: float, until: float) -> Ending | None:
        """Why nothing opens on a leg that never settles, whose rates fall like 1 / t or faster: its growth is finite.

        From t to `until` a pattern then grows by rate t ln(until / t) e-folds at most. Where something grows inside the small
        model, the leg will move on and its rates with it.
        """
        steps = len(self.record)
        if steps >= 2 * LIMITS.steps * (1 if self.t > 2 * begun else LIMITS.patience):
            return Ending(f"the flow of the last leg was given up after {steps} steps of the solver, at t={plain_time(self.t)}")
        if self.t < LIMITS.patience * max(begun, 1.0):
            return None
        gaps, rates = self.gaps(), self.rates()
        folds = rates * self.t * math.log(until / self.t)
        if np.any(folds >= gaps) or self.inside()[0] > LIMITS.flow_noise:
            return None
        nearest = int(np.argmin(gaps - folds))
        lacks = (
            f"from t={plain_time(self.t, 3)} on it is {folds[nearest]:.2g} e-folds at most, and {gaps[nearest]:.2g} are needed"
        )
        return Ending(f"the growth along the last leg is finite: {lacks}", final=True)

    def inside(self) -> tuple[float, float]:
        """The fastest rate inside the small model, and the size of what grows at it, from the velocity along it."""
        size, step = len(self.point) - 2 * self.model.r * (self.model.rq == 0), 1e-6
        rows = np.eye(len(self.point))[:size]
        ends = [[self.model.velocity(self.point + sign * step * row)[0][:size] for sign in (1, -1)] for row in rows]
        jacobian = np.array([(up - down) / (2 * step) for up, down in ends])
        rates, directions = np.linalg.eigh((jacobian + jacobian.T) / 2)
        along = np.linalg.norm(directions[:, rates > LIMITS.flow_noise].T @ self.velocity[:size])
        return float(rates[-1]), float(along / max(rates[-1], LIMITS.flow_noise))

    def ended(self, block: str | None, ending: Ending | None = None) -> Walked:
        state = replace(self.state, small=self.model.unpacked(self.point))
        time, points, tops, laws, losses, speeds = zip(*self.record, strict=True)
        rates = np.stack([_rates(np.stack(block)) for block in zip(*laws, strict=True)], axis=1)
        arrays = {"time": time, "points": points, "tops": tops, "rates": rates, "losses": losses, "speeds": speeds}
        columns = {name: np.array(values) for name, values in arrays.items()}
        return Walked(state, self.model, block=block, ending=ending, **columns)


def _leg(loss: TokenLoss, state: State, t: float, eta: float, until: float, seen: float) -> Walked:
    leg = _Leg(loss, state, t, eta)
    if block := _reached(leg.gaps()):
        return leg.ended(block)
    try:
        for now, point in leg.model.steps(leg.point, t, until):
            block = leg.advance(now, point)
            if block:
                return leg.ended(block)
            if leg.t > LIMITS.time_factor * seen and leg.shows_event():
                return leg.ended(None, enough(seen))
            ending = leg.ending(until) if leg.speed < LIMITS.settled else leg.endless(t, until)
            if ending:
                return leg.ended(None, ending)
    except Stopped as error:
        return leg.ended(None, Ending(str(error)))
    return leg.ended(None, Ending(f"nothing has opened on the last leg by t={until:g}"))


# Legs and events read off a walk along a saddle path.


@dataclass(frozen=True)
class Path:
    """A walk as one curve."""

    walked: list[Walked]
    loss: TokenLoss

    @cached_property
    def time(self) -> np.ndarray:
        return np.concatenate([leg.time for leg in self.walked])

    @cached_property
    def losses(self) -> np.ndarray:
        return np.concatenate([leg.losses for leg in self.walked])

    def by_stack(self, name: str) -> dict[str, np.ndarray]:
        """The `tops` or `rates` of each stack."""
        return dict(zip(STACKS, np.concatenate([getattr(leg, name) for leg in self.walked]).T, strict=True))

    @cached_property
    def values(self) -> dict[str, np.ndarray]:
        """Singular values of W0 (E) and of Phi (Q)."""
        (d, m), keys = self.loss.model.shapes["W0"], self.loss.model.shapes["WQ"][1]
        counts = {"E": min(d, m), "Q": min(d, m, keys)}
        return {name: np.vstack([_values(leg, name, count) for leg in self.walked]) for name, count in counts.items()}

    @cached_property
    def events(self) -> dict[str, float | None]:
        """When the k-th singular value of W0 or of Phi passes .1, as for runs [FD:stages]."""
        return opening_times(self.time, self.values["E"], self.values["Q"])

    def legs(self) -> list[Leg]:
        """The stays of the path, each with what opens at its end."""
        path_stays = stays(self.time, self.values["E"], self.values["Q"])
        return [self._leg(stay, following) for stay, following in zip(path_stays, [*path_stays[1:], None], strict=True)]

    def _leg(self, stay: Stay, following: Stay | None) -> Leg:
        end = float(self.time[-1]) if stay.stop is None else stay.stop
        # What opens at the end of a stay, and its rate when the last pattern of this kind joined the path before.
        opens = local = None
        if following is not None and (following.r > stay.r or following.rq > stay.rq):
            opens = "embedding" if following.r > stay.r else "attention"
            legs = [leg for leg in self.walked if leg.block == opens and leg.time[-1] <= following.start]
            local = float(legs[-1].rates[-1][STACKS.index(opens)]) if legs else None
        return Leg(
            label=stay.label,
            t_in=stay.start,
            t_out=stay.stop,
            loss=float(np.interp(end, self.time, self.losses)),
            opens=opens,
            local_rate=local,
            at_rest=lambda: self._at_rest(stay, opens, local),
        )

    def _at_rest(self, stay: Stay, opens: str | None, local: float | None) -> AtRest:
        # The rates at the critical point of the stay's own small model, and whether this point lies at infinity.
        rates: list[float] = []
        endless = False
        if stay.r:
            model, point, endless = self.critical(stay)
            if opens is not None and not endless:
                law = escape_matrices(model.loss, model.unpacked(point))[opens]
                rates = [float(rate) for rate in np.linalg.svd(law, compute_uv=False) if rate > LIMITS.no_rate]
        elif opens:
            rates = [float(self.walked[0].rates[0][0])]
        if local is None:
            last = self.walked[-1]
            near = last.speeds[-1] < LIMITS.settled or (last.ending is not None and last.ending.final)
        else:
            near = bool(rates) and abs(local - rates[0]) <= LIMITS.negligible * rates[0]
        state: Place = "at infinity" if endless else "settled" if near else "passed"
        return state, tuple(rates) if near and not endless else ()

    def critical(self, stay: Stay) -> tuple[SmallModel, np.ndarray, bool]:
        """The small model of a stay, r at least 1, where its flow ends, and whether that is at infinity.

        The flow starts from the slowest point of the stay.
        """
        stop = np.inf if stay.stop is None else stay.stop
        moving = [leg for leg in self.walked if leg.model is not None]
        frames = [(leg, i) for leg in moving for i in np.flatnonzero((leg.time >= stay.start) & (leg.time <= stop)).tolist()]
        leg, frame = min(frames, key=lambda at: at[0].speeds[at[1]])
        assert leg.model is not None
        small = project(leg.model.layout.unpack(leg.points[frame]), stay.r, stay.rq)
        model = SmallModel(self.loss, stay.r, stay.rq)
        return model, *followed(model, model.layout.pack(small), float(leg.time[frame]))


def _values(leg: Walked, letter: str, count: int) -> np.ndarray:
    out = np.zeros((len(leg.time), count))
    if leg.model is not None:
        small = leg.model.unpacked(leg.points)
        matrices = small["W0"] if letter == "E" else leg.model.loss.model.scores(small)
        count_here = min(count, leg.model.r if letter == "E" else leg.model.rq)
        out[:, :count_here] = np.linalg.svd(matrices, compute_uv=False)[:, :count_here]
    return out


def followed(model: SmallModel, point: np.ndarray, t: float) -> tuple[np.ndarray, bool]:
    """Where the flow of a small model ends, and whether it has no end: its speed falls by a power of time only."""
    times, speeds = [], []
    try:
        for now, vector in model.steps(point, t, 1e12, LIMITS.tolerances):
            point, speed = vector, float(np.linalg.norm(model.velocity(vector)[0]))
            times.append(now)
            speeds.append(speed)
            if speed < LIMITS.settled or len(times) >= LIMITS.steps:
                break
    except Stopped:
        return point, False
    late = np.array(times) > times[-1] / 10
    if speeds[-1] < LIMITS.settled or np.sum(late) < 3:
        return point, False
    slope = np.polyfit(np.log(np.array(times)[late]), np.log(np.array(speeds)[late]), 1)[0]
    return point, bool(slope > -LIMITS.power)


UNTRIED = "of paths on finite or sampled contexts E1 alone was compared with a flow"


def token_path(loss: TokenLoss, start: Params, until: float, seen: float = np.inf) -> SaddlePath:
    """The path from a start near the origin, followed up to the time `until`, or to the first event after the time `seen`.

    It is computed twice, with eta and with half of it: times are extrapolated, and the interval is a multiple of the difference.
    """
    _check(loss, start)
    # The geometric mean of the start and 1, and well above the largest pattern of the start.
    eta = float(np.clip(max(np.sqrt(root_mean_square(start)), 2 * LIMITS.margin * _top(start)), LIMITS.outside, LIMITS.linear))
    coarse, fine = _both(loss, start, eta, until, seen)
    ending = fine.walked[-1].ending
    assert ending is not None
    end = float(fine.time[-1])
    if ending.final:  # up to when it is the end: what lies outside, of size s, acts on the path at the rate s^2 at most
        size = float(fine.walked[-1].tops[-1].max())
        end = max(end, min(until, LIMITS.level * float(np.exp(-2 * min(size, 0.0)))))
    error = SOLVER + root_mean_square(start)  # what lies outside the path is left out to second order: a share of its own size
    reason = f"{ending.reason}, which is known up to t={plain_time(end, 2)}" if ending.final else ending.reason
    shared = {"reason": reason, "end": end, "absent": ending.final, "error": error}
    events = {name: of_two_sizes(*_times(coarse, fine, name, seen), **shared) for name in fine.events}
    notes = [UNTRIED] * isinstance(loss, TokenCounts) + unsure(events)
    along = {"time": coarse.time, "sizes": coarse.by_stack("tops"), "rates": coarse.by_stack("rates"), "losses": coarse.losses}
    return SaddlePath(tuple(coarse.legs()), events, tuple(notes), eta, **along)


def _both(loss: TokenLoss, start: Params, eta: float, until: float, seen: float) -> tuple[Path, Path]:
    """The paths with eta and with half of it, up to an event whose interval lies after `seen`; without one, to their ends."""
    coarse, fine = (Path(list(walk(loss, start, size, until, seen)), loss) for size in (eta, eta / 2))
    lows = [of_two_sizes(coarse.events[name], time, "").low for name, time in fine.events.items()]
    clear = any(low is not None and low > seen for low in lows)
    if clear or not any(path.walked[-1].ending == enough(seen) for path in (coarse, fine)):
        return coarse, fine
    return _both(loss, start, eta, until, np.inf)


def _times(coarse: Path, fine: Path, name: str, seen: float) -> tuple[float | None, float | None]:
    """When an event comes with both sizes; None for both where one of them is not followed so far, an event less."""
    times = coarse.events[name], fine.events[name]
    short = [path.walked[-1].ending for path, time in zip((coarse, fine), times, strict=True) if time is None]
    return (None, None) if enough(seen) in short else times


def _top(start: Params) -> float:
    """The size of the largest pattern of both stacks."""
    return max(float(np.linalg.norm(stack, 2)) for stack in stacked(start))


def _check(loss: TokenLoss, start: Params) -> None:
    if isinstance(loss, TokenSampled) and loss.batch is not None:
        raise InputError("this loss draws a batch for every step, so it has no flow to predict; use it without batches")
    rms = root_mean_square(start)
    if not rms <= LIMITS.start:
        much = f"{rms / LIMITS.start:.3g} times the largest for which one direction opens after the other, {LIMITS.start:g}"
        raise InputError(f"the start has rms {rms:.3g}, {much}: it is not near the origin; take a smaller init scale")
    if not (np.any(start["W0"]) or np.any(start["W1"])):
        raise InputError("W0 and W1 start at 0, so nothing ever moves; give one of them a start above 0")
    limit, top = LIMITS.linear / (2 * LIMITS.margin), _top(start)
    if top > limit:
        small = f"{top / limit:.3g} times the largest that is small beside what opens, {limit:.3g}"
        raise InputError(f"the start has a pattern of size {top:.3g}, {small}; take a smaller init scale for this width")


# The flow itself, read as runs are: E_k and Q_k at the steps of its solver.


def _flow_times(steps: FlowSteps) -> dict[str, float | None]:
    curves = TokenCurves(steps.time, steps.params, steps.law)
    return opening_times(curves.time, curves.embedding_values, curves.score_values)


def _flow_leg(_: TokenLoss, passed: list[str], coming: str | None) -> tuple[str, str | None]:
    r, rq = (sum(name[0] == letter for name in passed) for letter in "EQ")
    return f"({r},{rq})", coming and {"E": "embedding", "Q": "attention"}[coming[0]]


TOKEN_FLOW = FlowEvents(_flow_times, _flow_leg)
