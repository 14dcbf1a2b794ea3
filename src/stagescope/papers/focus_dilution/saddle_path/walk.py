"""The walk along a saddle path: the small model's flow until something outside it has grown to eta, then the next one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stagescope.dynamics.solver import Stopped, between
from stagescope.landscape.graded import Graded
from stagescope.landscape.saddle_path import plain_time
from stagescope.papers.focus_dilution.loss import TokenLoss
from stagescope.papers.focus_dilution.saddle_path.small_flow import SmallModel
from stagescope.papers.focus_dilution.saddle_path.state import Laws, State
from stagescope.papers.focus_dilution.stages import THRESHOLDS
from stagescope.params import Params

SETTLED = 1e-8
"""|F| of the small flow below which it is at its critical point."""
SCORES = 0.02
"""Singular value of Phi at which an attention pattern joins at the latest: well below the level of events, .1."""
BLOCKS = ("embedding", "attention")
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
    state, t = State.at(start), 0.0
    leg = _origin(loss, state, np.log(eta), until)
    while True:
        yield leg
        if leg.opened is None:
            return
        t = float(leg.time[-1])
        leg = _leg(loss, leg.state.opened(leg.opened), t, np.log(eta), until, seen)


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
        tops = [self.stacks[name].top for name in BLOCKS]
        self.record.append((self.t, self.point, tops, self.laws, self.loss, self.speed))

    def rates(self) -> dict[str, float]:
        """The fastest rate of each block here."""
        return {name: float(_rates(law)) for name, law in zip(BLOCKS, self.laws, strict=True)}

    @property
    def speed(self) -> float:
        return math.sqrt(self.velocity @ self.velocity)

    def limits(self) -> dict[str, float]:
        """An attention pattern of size a makes scores of about scale |W0|^2 a^2 / 2."""
        w0 = self.model.unpacked(self.point)["W0"]
        size = math.sqrt(np.vdot(w0, w0))
        return {"embedding": self.eta, "attention": min(self.eta, float(np.log(2 * SCORES / (self.scale * size**2)) / 2))}

    def advance(self, t: float, point: np.ndarray) -> str | None:
        """Carry the stacks over one step of the small flow; returns the block that reached eta on the way."""
        h, (velocity, value) = t - self.t, self.model.velocity(point)
        ends, velocities = (self.point, point), (self.velocity, velocity)
        middle, last = self._laws(between(0.5, h, ends, velocities)), self._laws(point)
        mean = {name: (a + 4 * b + c) / 6 for name, a, b, c in zip(BLOCKS, self.laws, middle, last, strict=True)}
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
        limits, rates = self.limits(), self.rates()
        gaps = {name: limits[name] - stack.top for name, stack in self.stacks.items()}
        due = self.t + min(gaps[name] / max(rates[name], 1e-300) for name in BLOCKS)
        rate, size = self.inside()
        if rate > INSIDE and size < LOST and due > self.t + math.log(0.1 / LOST) / rate:
            way = f"the path leaves its last leg inside its own model, at rate {rate:.2g}"
            return Ending(f"{way}, along a direction whose size is lost to rounding; what follows is not predicted")
        if due <= until or rate > INSIDE:
            return None
        fastest = max((rates[name] for name in BLOCKS if np.isfinite(gaps[name])), default=0.0)
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
        limits, rates = self.limits(), self.rates()
        gaps = {name: limits[name] - stack.top for name, stack in self.stacks.items()}
        folds = {name: rates[name] * self.t * math.log(until / self.t) for name in BLOCKS}
        if any(folds[name] >= gaps[name] for name in BLOCKS) or self.inside()[0] > INSIDE:
            return None
        nearest = min(BLOCKS, key=lambda name: gaps[name] - folds[name])
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
    for name in BLOCKS:
        if leg.limits()[name] - leg.stacks[name].top <= REACHED:
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
