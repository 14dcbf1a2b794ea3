"""All drops of separate heads from the start alone: who wins, when, and what that leaves to the others [LIN:cascade].

A silent head moves alone and leaves its saddle, which is of order two, at a finite time [LIN:blow-up]. With g_i = lambda_i^2 of
what is not learned and dtau = v dt its parts k + q grow as e^{g_i tau} and k - q as e^{-g_i tau}. So v^2 = E(tau) = v_0^2 +
sum_i [A_i (e^{2 g_i tau} - 1) + B_i (e^{-2 g_i tau} - 1)], A, B = sum over rows of ((k_0 +- q_0)/2)^2. T = int dtau / sqrt(E).

The head that blows up first learns the largest direction that is left. While it does, the push on that direction fades for the
silent heads; afterwards they obey the same law without it. Heads of rank R hold R directions: a further one of the same head
opens exponentially [LIN:rank].
"""

from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from stagescope.core.params import Params
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.limits import LIMITS
from stagescope.papers.linear_icl.process import RegressionTask


@dataclass(frozen=True)
class SilentHead:
    """v, and A_i and B_i: the parts of a head's keys and queries that grow for v > 0 and for v < 0, squared, over its rows."""

    v: float
    grow: np.ndarray
    fade: np.ndarray

    @classmethod
    def all_of(cls, params: Params) -> "list[SilentHead]":
        """Every head of a start with keys and queries."""
        keys, queries = np.asarray(params["K"], dtype=float), np.asarray(params["Q"], dtype=float)
        grow, fade = (np.sum(((keys + sign * queries) / 2) ** 2, axis=1) for sign in (1, -1))
        return [cls(float(v), a, b) for v, a, b in zip(params["v"], grow, fade, strict=True)]

    @property
    def size(self) -> float:
        """About the largest of |v|, |k|, |q|: the scale of the head."""
        return float(np.sqrt(max(self.v**2, np.sum(self.grow), np.sum(self.fade))))

    @property
    def upright(self) -> "SilentHead":
        """The same head with v >= 0: the sign of v and that of q together change nothing."""
        return self if self.v >= 0 else SilentHead(-self.v, self.fade, self.grow)


@dataclass(frozen=True)
class _Energy:
    """E(tau) of a head of size 1, with v >= 0."""

    v: float
    grow: np.ndarray
    fade: np.ndarray
    rates: np.ndarray  # 2 g_i

    def __call__(self, tau: np.ndarray | float) -> np.ndarray:
        powers = np.clip(np.multiply.outer(np.asarray(tau, dtype=float), self.rates), -LIMITS.exponent, LIMITS.exponent)
        return self.v**2 + np.expm1(powers) @ self.grow + np.expm1(-powers) @ self.fade

    def slope(self, tau: float, order: int = 1) -> float:
        """The first or second derivative."""
        powers = np.clip(tau * self.rates, -LIMITS.exponent, LIMITS.exponent)
        sign = -1 if order == 1 else 1
        return float(self.rates**order @ (self.grow * np.exp(powers) + sign * self.fade * np.exp(-powers)))

    @property
    def turns(self) -> bool:
        """Whether E reaches 0, so that v changes its sign."""
        return self.foot > 0 and float(self(self.foot)) <= 0

    @cached_property
    def foot(self) -> float:
        """Where E is least from tau = 0 on: its slope only rises."""
        if self.slope(0.0) >= 0:
            return 0.0
        high = 1 / self.rates.max()
        while self.slope(high) < 0 and high * self.rates.max() < LIMITS.exponent:
            high *= 2
        return _bisected(lambda tau: self.slope(tau) > 0, 0.0, high)


def blow_up_time(head: SilentHead, spectrum: np.ndarray, learned: np.ndarray | None = None) -> float:
    """T of a silent head beside learned directions (a mask), infinite where nothing of it can grow [LIN:blow-up]."""
    energy = _energy(head, spectrum, learned)
    return np.inf if energy is None else _time(energy) / head.size


def growing_part(head: SilentHead, spectrum: np.ndarray, learned: np.ndarray | None = None) -> np.ndarray:
    """A_i of the sign with which the head blows up: squares of what grows as e^{g_i |tau|}."""
    energy, up = _energy(head, spectrum, learned), head.upright
    return up.fade if energy is not None and energy.turns else up.grow


def _energy(head: SilentHead, spectrum: np.ndarray, learned: np.ndarray | None) -> _Energy | None:
    """E of a head scaled to size 1; None where nothing of it can grow."""
    active = np.ones(len(spectrum), dtype=bool) if learned is None else ~np.asarray(learned)
    scale, up = head.size, head.upright
    if scale == 0 or not active.any():
        return None
    return _Energy(up.v / scale, up.grow[active] / scale**2, up.fade[active] / scale**2, 2 * spectrum[active] ** 2)


def _time(energy: _Energy) -> float:
    """T of a head of size 1."""
    foot, least = energy.foot, float(energy(energy.foot))
    if energy.turns:
        turn = _bisected(lambda tau: float(energy(tau)) <= 0, 0.0, foot)
        if not np.any(energy.fade > 0):
            return np.inf
        return _from_turn(energy, turn, 0.0) + _from_turn(energy, turn, -np.inf)
    if not np.any(energy.grow > 0) or least <= 0:
        return np.inf
    return _beside_foot(energy, foot, least)


def _beside_foot(energy: _Energy, foot: float, least: float) -> float:
    """Without a turn: tau = foot + w sinh y, where w is the width of the dip of E, so that a deep dip is resolved."""
    width = min(np.sqrt(2 * least / energy.slope(foot, 2)), 1 / energy.rates.max())

    def part(y: np.ndarray, sign: int = 1) -> np.ndarray:
        return width * np.cosh(y) / np.sqrt(np.maximum(energy(foot + sign * width * np.sinh(y)), least))

    before = _integral(lambda y: part(y, -1), float(np.arcsinh(foot / width))) if foot > 0 else 0.0
    return before + _integral(part)


def _from_turn(energy: _Energy, turn: float, end: float) -> float:
    """int dtau / sqrt(E) from `end` to the zero of E at `turn`: tau = turn - x^2 and x = w sinh y, smooth at both."""
    steep = -energy.slope(turn)
    width = np.sqrt(min(steep / energy.slope(turn, 2), 1 / energy.rates.max()))

    def part(y: np.ndarray) -> np.ndarray:
        x = width * np.sinh(y)
        return 2 * x * width * np.cosh(y) / np.sqrt(np.maximum(energy(turn - x**2), steep * x**2 / 2))

    return _integral(part, np.inf if np.isinf(end) else float(np.arcsinh(np.sqrt(turn - end) / width)))


def _integral(part, end: float = np.inf) -> float:  # noqa: ANN001 (a function of an array)
    """From 0 to `end` by panels; without an end, up to where nothing is added."""
    nodes, weights = _gauss()
    total, begin, rounding = 0.0, 0.0, float(np.finfo(float).eps)
    while begin < LIMITS.exponent:
        width = min(LIMITS.panel, end - begin)
        with np.errstate(over="ignore"):
            added = width * float(weights @ np.nan_to_num(part(begin + width * nodes), nan=0.0, posinf=0.0))
        total, begin = total + added, begin + width
        if begin >= end or (np.isinf(end) and added <= rounding * total / 2):
            break
    return total


@cache
def _gauss() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(LIMITS.nodes)
    return (nodes + 1) / 2, weights / 2


def _bisected(holds, low: float, high: float) -> float:  # noqa: ANN001 (a function of a number)
    """Where something begins to hold."""
    for _ in range(100):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class Drop:
    """One direction that is learned.

    `time` is half of its loss step. `blow_up` is T of the head on the run's clock, None where the direction opens in a head that
    holds others. `waits` are T of all silent heads on that clock, by head; infinite for heads that are not silent. `since` is the
    time of the drop before, 0 for the first.
    """

    direction: int
    head: int
    time: float
    blow_up: float | None
    waits: tuple[float, ...]
    since: float = 0.0

    @property
    def ratio(self) -> float:
        """How much longer than the first the second head would take from the drop before on; infinite where there is none."""
        first, *later = sorted(wait - self.since for wait in self.waits if np.isfinite(wait)) or [np.inf]
        return later[0] / first if later and first > 0 else np.inf


@dataclass
class _Active:
    """A head that holds directions: since `begin` its tau is `tau` + v (t - begin)."""

    directions: list[int]
    begin: float
    tau: float
    v: float
    grow: np.ndarray


@dataclass
class _State:
    task: RegressionTask
    rank: int
    silent: dict[int, SilentHead]
    heads: int
    now: float = 0.0
    before: float = 0.0
    learned: list[int] = field(default_factory=list)
    active: dict[int, _Active] = field(default_factory=dict)

    @property
    def mask(self) -> np.ndarray:
        return np.isin(np.arange(self.task.dim), self.learned)


def cascade(task: RegressionTask, heads: list[SilentHead], rank: int = 1) -> list[Drop]:
    """The drops of a flow from these heads, first to last; those that never come are left out."""
    state, drops = _State(task, rank, dict(enumerate(heads)), len(heads)), []
    while len(state.learned) < task.dim:
        drop = _next(state)
        if drop is None:
            break
        drops.append(drop)
        _learn(state, drop)
    return drops


def _next(state: _State) -> Drop | None:
    """The earlier of the first blow-up of a silent head and the first opening in a head that has room."""
    task, waits = state.task, np.full(state.heads, np.inf)
    for h, head in state.silent.items():
        waits[h] = state.now + blow_up_time(head, task.spectrum, state.mask)
    unlearned, all_waits = np.flatnonzero(~state.mask).tolist(), tuple(waits.tolist())
    first, drops = int(np.argmin(waits)), []
    if np.isfinite(waits[first]):
        blow_up = float(waits[first])
        drops.append(Drop(unlearned[0], first, blow_up + forms.delay(task, unlearned[0]), blow_up, all_waits, state.before))
    for h, head in state.active.items():
        if len(head.directions) < state.rank:
            drops += [Drop(i, h, _opening(task, head, i), None, all_waits, state.before) for i in unlearned]
    return min((drop for drop in drops if np.isfinite(drop.time)), key=lambda drop: drop.time, default=None)


def _opening(task: RegressionTask, head: _Active, direction: int) -> float:
    """Half of the loss step of a direction that opens in an active head: M_ii = v A_i e^{2 gamma_i} saturates at M_final."""
    if head.grow[direction] == 0:
        return np.inf
    grown = forms.final_map(task)[direction] * forms.HALF / (1 - forms.HALF)
    gamma = 0.5 * np.log(grown / (head.v * head.grow[direction]))
    return float(head.begin + (gamma / task.spectrum[direction] ** 2 - head.tau) / head.v)


def _learn(state: _State, drop: Drop) -> None:
    """The direction is learned: its head becomes active or holds one more, and the silent heads feel the push fade."""
    task = state.task
    if drop.blow_up is None:
        head = state.active[drop.head]
        head.tau += head.v * (drop.time - head.begin)
        head.directions.append(drop.direction)
        head.begin, head.v = drop.time, forms.head_value(task, head.directions)
        end = drop.time + 1 / forms.pace(task, drop.direction)
    else:
        winner = state.silent.pop(drop.head)
        state.active[drop.head] = _activated(task, winner, drop, state.mask)
        end = drop.blow_up + (float(forms.course(1 - LIMITS.solver)) + forms.AT_ZERO) / forms.pace(task, drop.direction)
    state.now = _advance(state, drop, max(end, state.now))
    state.learned.append(drop.direction)
    state.before = drop.time


def _activated(task: RegressionTask, winner: SilentHead, drop: Drop, learned: np.ndarray) -> _Active:
    """tau of a head long after its blow-up: lambda_d^2 tau = ln(v_inf u / sqrt A_d) - ln(1 - u^3)/3 along its course."""
    assert drop.blow_up is not None
    d, rate = drop.direction, float(task.spectrum[drop.direction]) ** 2
    v = forms.head_value(task, (d,))
    grow = growing_part(winner, task.spectrum, learned)
    late = 1 - 1e-6
    since = (float(forms.course(late)) + forms.AT_ZERO) / forms.pace(task, d)
    tau = (np.log(v / np.sqrt(grow[d])) - np.log(1 - late**3) / 3) / rate
    return _Active([d], drop.blow_up + since, float(tau), v, grow)


def _advance(state: _State, drop: Drop, end: float) -> float:
    """Silent heads from now to `end` beside a drop; returns the time reached, which is earlier where one of them blows up."""
    from stagescope.papers.linear_icl.kernels import follow

    task, d = state.task, drop.direction
    names = list(state.silent)
    if not names or end <= state.now:
        return end
    heads = [state.silent[h] for h in names]
    pace, since = forms.pace(task, d), state.now - (drop.blow_up if drop.blow_up is not None else drop.time)
    y = np.zeros(1 + 3 * len(heads))
    y[0] = forms.course_inverse(pace * since - forms.AT_ZERO)
    y[1::3] = [head.v for head in heads]
    rates = np.where(state.mask, 0.0, task.spectrum**2)
    grow, fade = np.array([head.grow for head in heads]), np.array([head.fade for head in heads])
    largest = LIMITS.blown * max(forms.head_value(task, (i,)) for i in range(task.dim))
    time_reached = follow(y, (state.now, end), largest, rates, grow, fade, d, pace, 1 / forms.final_map(task)[d])
    for place, h in enumerate(names):
        v, tau, gamma = y[1 + 3 * place : 4 + 3 * place]
        turn = 2 * np.where(np.arange(task.dim) == d, gamma, rates * tau)
        state.silent[h] = SilentHead(float(v), grow[place] * np.exp(turn), fade[place] * np.exp(-turn))
    return float(time_reached)
