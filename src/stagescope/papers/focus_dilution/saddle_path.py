"""The saddle path of TokenAttention: from the start to the sequence of stages and their times, without a run [FD:ladder]."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stagescope.dynamics.solver import TOLERANCES, Stopped, between, steps
from stagescope.errors import InputError
from stagescope.landscape.flow_prediction import FlowEvents, FlowSteps
from stagescope.landscape.graded import Graded
from stagescope.landscape.saddle_path import SOLVER, AtRest, Leg, Place, SaddlePath, of_two_sizes, plain_time, unsure
from stagescope.papers.focus_dilution.family import escape_matrices, project
from stagescope.papers.focus_dilution.kernel import laws, population_slopes
from stagescope.papers.focus_dilution.ladder import NO_RATE
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenCounts, TokenLoss, TokenPopulation, TokenSampled
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.papers.focus_dilution.stages import THRESHOLDS, Stay, opening_times, stays
from stagescope.params import Layout, Params, root_mean_square

# The flow of a small model, one step of the solver at a time, and the linear laws beside it.


class SmallModel:
    """The same loss of the model of width r and key width rq, r at least 1; at rq = 0 its one query and key are zeros."""

    def __init__(self, loss: TokenLoss, r: int, rq: int) -> None:
        self.r, self.rq = r, rq
        model = TokenAttention(vocab=loss.model.vocab, width=r, key_width=max(rq, 1), scale=loss.model.scale)
        if isinstance(loss, TokenCounts):
            self.loss = loss.model_copy(update={"model": model})  # the contexts stay
        else:
            self.loss = TokenPopulation(model=model, process=loss.process)
        self.layout = Layout(tuple((name, model.shapes[name]) for name in BLOCKS))
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
        rows = np.vstack([start["W0"], start["W1"].T, start["WQ"].T, start["WK"].T])
        scores = Graded.of(np.vstack([start["WQ"], start["WK"]]))
        return cls(small, np.zeros((0, m)), np.zeros((0, keys)), Graded.of(rows), scores)

    @property
    def r(self) -> int:
        return len(self.s)

    @property
    def rq(self) -> int:
        return len(self.u)

    @property
    def label(self) -> str:
        return f"({self.r},{self.rq})"

    def laws(self, loss: TokenLoss, small: Params) -> Laws:
        """The laws beside a point of the small model, with the stacks as they are here."""
        w0, w1, wq, wk = (np.ascontiguousarray(small[name]) for name in BLOCKS)
        if isinstance(loss, TokenCounts):
            found = loss.slopes(small)
        else:
            found = population_slopes(loss.process.stationary, loss.process.transition, loss.model.scale, w0, w1, wq, wk)
        return laws(found, (w0, wq, wk), (self.s, self.u), self.embedding.arrays, self.attention.arrays)

    def opened(self, block: str) -> "State":
        """The state after the largest pattern of a stack has joined the small model."""
        old = self.small
        if block == "attention":
            y, column, rest = self.attention.split()
            m = self.s.shape[1]
            new = {"WQ": self.s @ column[:m], "WK": self.s @ column[m:]}
            small = {**old, **{name: np.column_stack([old[name], part]) for name, part in new.items()}}
            return replace(self, small=small, u=np.vstack([self.u, y]), attention=rest)
        x, column, rest = self.embedding.split()
        d, keys = len(old["W0"]), self.u.shape[1]
        w0, w1, wq, wk = np.split(column, [d, 2 * d, 2 * d + keys])
        new = {"W1": w1, "WQ": self.u @ wq, "WK": self.u @ wk}
        small = {"W0": np.column_stack([old["W0"], w0]), **{name: np.vstack([old[name], row]) for name, row in new.items()}}
        return replace(self, small=small, s=np.vstack([self.s, x]), embedding=rest)


# The walk along a saddle path: the small model's flow until something outside it has grown to eta, then the next one.

SETTLED = 1e-8
"""|F| of the small flow below which it is at its critical point."""
SCORES = 0.02
"""Singular value of Phi at which an attention pattern joins at the latest: well below the level of events, .1."""
STACKS = ("embedding", "attention")
INSIDE = 1e-6
"""A rate of the small model's own linearisation above this is a way out inside it; those of its orbits are rounding."""
LOST = 1e-10
"""Size below which a direction inside the small model is lost to rounding and the solver's errors."""
STEPS = 6000
"""Steps of the solver after which a leg is given up that lasts longer than all before it; others may take ten times as many."""
LONG = 10.0
"""A leg that lasts this many times longer than all before it may be one that never settles."""
LATER = 1.25
"""An event this many times later than what was seen is clearly after it: the interval of an earlier one may reach back before."""
REACHED = 1e-9
"""E-folds below eta from which on a pattern has reached it."""


@dataclass(frozen=True)
class Ending:
    """Why a path ends. After a final ending nothing opens any more by the linear law beside the path."""

    reason: str
    final: bool = False


def enough(seen: float) -> Ending:
    """The end of a path of which no more is asked."""
    why = f"beside a run the path is followed to the first event well after t={plain_time(seen)}"
    return Ending(f"{why}; `stagescope predict` follows it to its end")


@dataclass(frozen=True)
class Walked:
    """One leg: the small model's points at the solver's own times, and how it ended.

    `opened` is the block that reached eta at the end; None where the path ends here, and `ending` says why. `tops` are the
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
    opened: str | None
    ending: Ending | None = None

    @property
    def speed(self) -> float:
        """|F| of the small model at the end."""
        return float(self.speeds[-1])


def walk(loss: TokenLoss, start: Params, eta: float, until: float, seen: float = np.inf) -> Iterator[Walked]:
    """The legs from a start near the origin; the last one ends at the first event clearly after the time `seen`."""
    leg = _origin(loss, State.at(start), np.log(eta), until)
    yield leg
    while leg.opened is not None:
        leg = _leg(loss, leg.state.opened(leg.opened), float(leg.time[-1]), np.log(eta), until, seen)
        yield leg


def _origin(loss: TokenLoss, state: State, eta: float, until: float) -> Walked:
    """At the origin nothing of the small model moves: the whole stay is one linear law."""
    b = state.laws(loss, state.small)[0]
    rate, top = float(np.linalg.norm(b, 2)), state.embedding.top
    after, used, opened = _grown({"embedding": state.embedding}, {"embedding": b}, until, {"embedding": eta})
    value = float(loss.value({name: np.zeros(shape) for name, shape in loss.model.shapes.items()}))
    ending = None if opened else Ending(f"at the origin nothing grows faster than {rate:.2g}", final=True)
    tops = np.array([[top, -np.inf], [after["embedding"].top, -np.inf]])
    rates = np.array([[rate, 0.0]] * 2)
    moved = replace(state, embedding=after["embedding"])
    return Walked(
        moved, None, np.array([0.0, used]), np.zeros((2, 0)), tops, rates, np.full(2, value), np.zeros(2), opened, ending
    )


def _grown(
    stacks: dict[str, Graded], laws: dict[str, np.ndarray], h: float, limits: dict[str, float]
) -> tuple[dict[str, Graded], float, str | None]:
    """The stacks after a time h under constant laws, or when the first of them reaches its limit.

    No pattern grows faster than the largest singular value of its law. So the steps come up to the limit from below.
    """
    used, rates = 0.0, {name: math.sqrt(np.vdot(law, law)) for name, law in laws.items()}
    while True:
        gaps = {name: limits[name] - stacks[name].top for name in stacks}
        for name, gap in gaps.items():
            if gap <= REACHED:
                return stacks, used, name
        if used >= h:
            return stacks, used, None
        left = [gap / rates[name] for name, gap in gaps.items() if rates[name] > 0 and np.isfinite(gap)]
        step = min([h - used, *left])
        if used + step <= used:
            return stacks, used, None
        stacks = {name: stack.grown(laws[name], step, rates[name]) for name, stack in stacks.items()}
        used = h if step == h - used else used + step


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

    @property
    def stacks(self) -> dict[str, Graded]:
        return {"embedding": self.state.embedding, "attention": self.state.attention}

    def _keep(self) -> None:
        tops = [self.stacks[name].top for name in STACKS]
        self.record.append((self.t, self.point, tops, self.laws, self.loss, self.speed))

    def rates(self) -> dict[str, float]:
        """The fastest rate of each block here."""
        return {name: float(_rates(law)) for name, law in zip(STACKS, self.laws, strict=True)}

    @property
    def speed(self) -> float:
        return math.sqrt(self.velocity @ self.velocity)

    def limits(self) -> dict[str, float]:
        """An attention pattern of size a makes scores of about scale |W0|^2 a^2 / 2."""
        w0 = self.model.unpacked(self.point)["W0"]
        size = math.sqrt(np.vdot(w0, w0))
        return {"embedding": self.eta, "attention": min(self.eta, float(np.log(2 * SCORES / (self.scale * size**2)) / 2))}

    def gaps(self) -> dict[str, float]:
        """E-folds of each stack to its limit."""
        limits = self.limits()
        return {name: limits[name] - stack.top for name, stack in self.stacks.items()}

    def advance(self, t: float, point: np.ndarray) -> str | None:
        """Carry the stacks over one step of the small flow; returns the block that reached eta on the way."""
        h, (velocity, value) = t - self.t, self.model.velocity(point)
        ends, velocities = (self.point, point), (self.velocity, velocity)
        middle, last = self._laws(between(0.5, h, ends, velocities)), self._laws(point)
        mean = {name: (a + 4 * b + c) / 6 for name, a, b, c in zip(STACKS, self.laws, middle, last, strict=True)}
        stacks, used, opened = _grown(self.stacks, mean, h, self.limits())
        self.state = replace(self.state, **stacks)
        if opened and used < h:
            self.point = between(used / h, h, ends, velocities)
            self.velocity, self.loss = self.model.velocity(self.point)
            self.t, self.laws = self.t + used, self._laws(self.point)
        else:
            self.t, self.point, self.velocity, self.laws, self.loss = t, point, velocity, last, value
        self._keep()
        return opened

    def shows_event(self) -> bool:
        """Whether an event has come since the point before that of the first call."""
        if self.events is None:
            self.events = self._events(self.record[-2][1])
        return self._events(self.point) > self.events

    def _events(self, point: np.ndarray) -> int:
        """Singular values of W0 and of Phi above the level of events; those of W0 = Q R are those of R, and so on."""
        small = self.model.unpacked(point)
        small["W0"] = np.asarray(np.linalg.qr(small["W0"], mode="r"))
        matrices = (small["W0"], self.model.loss.model.scores(small)) if self.model.rq else (small["W0"],)
        return sum(int(np.sum(np.linalg.svd(matrix, compute_uv=False) > THRESHOLDS.level)) for matrix in matrices)

    def ending(self, until: float) -> Ending | None:
        """Why the path ends where the small flow has settled; None where something opens before `until`, inside or outside.

        A way out inside the small model that is lost to rounding ends the path unless something outside opens before.
        """
        gaps, rates = self.gaps(), self.rates()
        due = self.t + min(gaps[name] / max(rates[name], 1e-300) for name in STACKS)
        rate, size = self.inside()
        if rate > INSIDE and size < LOST and due > self.t + math.log(0.1 / LOST) / rate:
            way = f"the path leaves its last leg inside its own model, at rate {rate:.2g}"
            return Ending(f"{way}, along a direction whose size is lost to rounding; what follows is not predicted")
        if due <= until or rate > INSIDE:
            return None
        fastest = max((rates[name] for name in STACKS if np.isfinite(gaps[name])), default=0.0)
        return Ending(f"on the last leg nothing grows faster than {fastest:.2g}", final=True)

    def endless(self, begun: float, until: float) -> Ending | None:
        """Why nothing opens on a leg that never settles, whose rates fall like 1 / t or faster: its growth is finite.

        From t to `until` a pattern then grows by rate t ln(until / t) e-folds at most. Where something grows inside the small
        model, the leg will move on and its rates with it.
        """
        taken = len(self.record)
        if taken >= (STEPS if self.t > 2 * begun else 10 * STEPS):
            return Ending(f"the flow of the last leg was given up after {taken} steps of the solver, at t={plain_time(self.t)}")
        if self.t < LONG * max(begun, 1.0):
            return None
        gaps, rates = self.gaps(), self.rates()
        folds = {name: rates[name] * self.t * math.log(until / self.t) for name in STACKS}
        if any(folds[name] >= gaps[name] for name in STACKS) or self.inside()[0] > INSIDE:
            return None
        nearest = min(STACKS, key=lambda name: gaps[name] - folds[name])
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
        along = np.linalg.norm(directions[:, rates > INSIDE].T @ self.velocity[:size])
        return float(rates[-1]), float(along / max(rates[-1], INSIDE))

    def ended(self, opened: str | None, ending: Ending | None = None) -> Walked:
        state = replace(self.state, small=self.model.unpacked(self.point))
        time, points, tops, laws, losses, speeds = zip(*self.record, strict=True)
        rates = np.stack([_rates(np.stack(block)) for block in zip(*laws, strict=True)], axis=1)
        arrays = {"time": time, "points": points, "tops": tops, "rates": rates, "losses": losses, "speeds": speeds}
        kept = {name: np.array(values) for name, values in arrays.items()}
        return Walked(state, self.model, opened=opened, ending=ending, **kept)


def _leg(loss: TokenLoss, state: State, t: float, eta: float, until: float, seen: float) -> Walked:
    leg = _Leg(loss, state, t, eta)
    for name, gap in leg.gaps().items():
        if gap <= REACHED:
            return leg.ended(name)
    try:
        for now, point in leg.model.steps(leg.point, t, until):
            opened = leg.advance(now, point)
            if opened:
                return leg.ended(opened)
            if leg.t > LATER * seen and leg.shows_event():
                return leg.ended(None, enough(seen))
            why = leg.ending(until) if leg.speed < SETTLED else leg.endless(t, until)
            if why:
                return leg.ended(None, why)
    except Stopped as error:
        return leg.ended(None, Ending(str(error)))
    return leg.ended(None, Ending(f"nothing has opened on the last leg by t={until:g}"))


# Legs and events read off a walk along a saddle path.


@dataclass(frozen=True)
class PlaceRule:
    """When a leg has settled, and when its critical point lies at infinity."""

    settled: float = 0.01  # the rate of what opens is within this of that at the critical point
    steps: int = 3000  # of the small model's flow towards its critical point, at these tolerances
    tolerances: tuple[float, float] = (1e-6, 1e-10)
    power: float = 3.0  # a speed that falls more slowly than this power of time has no end at a finite place


PLACE_RULE = PlaceRule()


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

    @cached_property
    def sizes(self) -> dict[str, np.ndarray]:
        return dict(zip(STACKS, np.concatenate([leg.tops for leg in self.walked]).T, strict=True))

    @cached_property
    def rates(self) -> dict[str, np.ndarray]:
        return dict(zip(STACKS, np.concatenate([leg.rates for leg in self.walked]).T, strict=True))

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
        found = stays(self.time, self.values["E"], self.values["Q"])
        return [self._leg(stay, following) for stay, following in zip(found, [*found[1:], None], strict=True)]

    def _leg(self, stay: Stay, following: Stay | None) -> Leg:
        end = float(self.time[-1]) if stay.stop is None else stay.stop
        # What opens at the end of a stay, and its rate when the last pattern of this kind joined the path before.
        opens = local = None
        if following is not None and (following.r > stay.r or following.rq > stay.rq):
            opens = "embedding" if following.r > stay.r else "attention"
            joined = [leg for leg in self.walked if leg.opened == opens and leg.time[-1] <= following.start]
            local = float(joined[-1].rates[-1][STACKS.index(opens)]) if joined else None
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
                rates = [float(rate) for rate in np.linalg.svd(law, compute_uv=False) if rate > NO_RATE]
        elif opens:
            rates = [float(self.walked[0].rates[0][0])]
        if local is None:
            last = self.walked[-1]
            near = last.speed < SETTLED or (last.ending is not None and last.ending.final)
        else:
            near = bool(rates) and abs(local - rates[0]) <= PLACE_RULE.settled * rates[0]
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
        most = min(count, leg.model.r if letter == "E" else leg.model.rq)
        out[:, :most] = np.linalg.svd(matrices, compute_uv=False)[:, :most]
    return out


def followed(model: SmallModel, point: np.ndarray, t: float) -> tuple[np.ndarray, bool]:
    """Where the flow of a small model ends, and whether it has no end: its speed falls by a power of time only."""
    times, speeds = [], []
    try:
        for now, vector in model.steps(point, t, 1e12, PLACE_RULE.tolerances):
            point, speed = vector, float(np.linalg.norm(model.velocity(vector)[0]))
            times.append(now)
            speeds.append(speed)
            if speed < SETTLED or len(times) >= PLACE_RULE.steps:
                break
    except Stopped:
        return point, False
    late = np.array(times) > times[-1] / 10
    if speeds[-1] < SETTLED or np.sum(late) < 3:
        return point, False
    slope = np.polyfit(np.log(np.array(times)[late]), np.log(np.array(speeds)[late]), 1)[0]
    return point, bool(slope > -PLACE_RULE.power)


@dataclass(frozen=True)
class PathRule:
    """How large a start may be, and from which size on a direction belongs to the path."""

    largest: float = 3e-3  # rms of the start above which directions open together, so that there is no sequence
    least_eta: float = 0.02
    most_eta: float = 0.05
    slow: float = 0.1  # what lies outside, of size s, moves nothing before this many times s^-2
    room: float = 1.5  # eta / 2 is at least this many times the largest pattern of the start


RULE = PathRule()
UNTRIED = "of paths on finite or sampled contexts E1 alone was compared with a flow"


def token_path(loss: TokenLoss, start: Params, until: float, seen: float = np.inf) -> SaddlePath:
    """The path from a start near the origin, followed up to the time `until`, or to the first event after the time `seen`.

    It is computed twice, with eta and with half of it: times are extrapolated, and the interval is a multiple of the difference.
    """
    _check(loss, start)
    # The geometric mean of the start and 1, and well above the largest pattern of the start.
    eta = float(np.clip(max(np.sqrt(_rms(start)), 2 * RULE.room * _top(start)), RULE.least_eta, RULE.most_eta))
    coarse, fine = _both(loss, start, eta, until, seen)
    ending = fine.walked[-1].ending
    assert ending is not None
    end = float(fine.time[-1])
    if ending.final:  # up to when it is the end: what lies outside, of size s, acts on the path at the rate s^2 at most
        size = max(float(values[-1]) for values in fine.sizes.values())
        end = max(end, min(until, RULE.slow * float(np.exp(-2 * min(size, 0.0)))))
    error = SOLVER + _rms(start)  # what lies outside the path is left out to second order: a share of its own size
    reason = f"{ending.reason}, which is known up to t={plain_time(end, 2)}" if ending.final else ending.reason
    shared = {"reason": reason, "end": end, "absent": ending.final, "error": error}
    events = {name: of_two_sizes(*_times(coarse, fine, name, seen), **shared) for name in fine.events}
    notes = [UNTRIED] * isinstance(loss, TokenCounts) + unsure(events)
    along = {"time": coarse.time, "sizes": coarse.sizes, "rates": coarse.rates, "losses": coarse.losses}
    return SaddlePath(tuple(coarse.legs()), events, tuple(notes), eta, **along)


def _both(loss: TokenLoss, start: Params, eta: float, until: float, seen: float) -> tuple[Path, Path]:
    """The paths with eta and with half of it, up to an event whose interval lies after `seen`; without one, to their ends."""
    coarse, fine = (Path(list(walk(loss, start, size, until, seen)), loss) for size in (eta, eta / 2))
    lows = [of_two_sizes(coarse.events[name], when, "").low for name, when in fine.events.items()]
    clear = any(low is not None and low > seen for low in lows)
    if clear or not any(path.walked[-1].ending == enough(seen) for path in (coarse, fine)):
        return coarse, fine
    return _both(loss, start, eta, until, np.inf)


def _times(coarse: Path, fine: Path, name: str, seen: float) -> tuple[float | None, float | None]:
    """When an event comes with both sizes; None for both where one of them is not followed so far, an event less."""
    found = coarse.events[name], fine.events[name]
    short = [path.walked[-1].ending for path, when in zip((coarse, fine), found, strict=True) if when is None]
    return (None, None) if enough(seen) in short else found


def _rms(start: Params) -> float:
    return root_mean_square({name: start[name] for name in BLOCKS})


def _top(start: Params) -> float:
    """The size of the largest pattern of both stacks."""
    stacks = [np.vstack([start["W0"], start["W1"].T, start["WQ"].T, start["WK"].T]), np.vstack([start["WQ"], start["WK"]])]
    return max(float(np.linalg.norm(stack, 2)) for stack in stacks)


def _check(loss: TokenLoss, start: Params) -> None:
    if isinstance(loss, TokenSampled) and loss.batch is not None:
        raise InputError("this loss draws a batch for every step, so it has no flow to predict; use it without batches")
    rms = _rms(start)
    if not rms <= RULE.largest:
        much = f"{rms / RULE.largest:.3g} times the largest for which one direction opens after the other, {RULE.largest:g}"
        raise InputError(f"the start has rms {rms:.3g}, {much}: it is not near the origin; take a smaller init scale")
    if not (np.any(start["W0"]) or np.any(start["W1"])):
        raise InputError("W0 and W1 start at 0, so nothing ever moves; give one of them a start above 0")
    most, top = RULE.most_eta / (2 * RULE.room), _top(start)
    if top > most:
        small = f"{top / most:.3g} times the largest that is small beside what opens, {most:.3g}"
        raise InputError(f"the start has a pattern of size {top:.3g}, {small}; take a smaller init scale for this width")


# The flow itself, read as runs are: E_k and Q_k at the steps of its solver.


def _flow_times(steps: FlowSteps) -> dict[str, float | None]:
    w0, (rows, columns) = steps.params["W0"], steps.params["W0"].shape[1:]
    most = min(rows, columns, steps.params["WQ"].shape[2])
    scores = _singular_values(steps.law.model.scores(steps.params))[:, :most]
    return opening_times(steps.time, _singular_values(w0 if columns < rows else np.swapaxes(w0, 1, 2)), scores)


def _singular_values(matrices: np.ndarray) -> np.ndarray:
    """Of many matrices at once, largest first, by their squares: 1e-8 of the largest is rounding, and the level is far above."""
    squares = np.linalg.eigvalsh(np.swapaxes(matrices, 1, 2) @ matrices)[:, ::-1]
    return np.sqrt(np.maximum(squares, 0.0))


def _flow_leg(_: TokenLoss, passed: list[str], coming: str | None) -> tuple[str, str | None]:
    r, rq = (sum(name[0] == letter for name in passed) for letter in "EQ")
    return f"({r},{rq})", coming and {"E": "embedding", "Q": "attention"}[coming[0]]


TOKEN_FLOW = FlowEvents(_flow_times, _flow_leg)
