"""All drops of separate heads from the start alone: who wins, when, and what that leaves to the others [LIN:cascade].

The head that blows up first learns the largest direction that is left. While it does, the push on that direction fades for the
silent heads; afterwards they obey the same law without it. Heads of rank R hold R directions: a further one of the same head
opens exponentially [LIN:rank].
"""

from dataclasses import dataclass, field

import numpy as np

from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.blow_up import SilentHead, blow_up_time, growing_part
from stagescope.papers.linear_icl.process import RegressionTask

LEARNED = 1e-8
"""A direction is learned once its head's value is so close to the final one, relatively."""
FAR = 50.0
"""A silent head whose value is this many times the final one of a learned head has blown up."""


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
        first, *rest = sorted(wait - self.since for wait in self.waits if np.isfinite(wait)) or [np.inf]
        return rest[0] / first if rest and first > 0 else np.inf


@dataclass
class _Active:
    """A head that holds directions: since `begin` its tau is `tau` + v (t - begin)."""

    held: list[int]
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

    @property
    def next_direction(self) -> int:
        return int(np.flatnonzero(~self.mask)[0])


def cascade(task: RegressionTask, heads: list[SilentHead], rank: int = 1) -> list[Drop]:
    """The drops of a flow from these heads, first to last; those that never come are left out."""
    state, found = _State(task, rank, dict(enumerate(heads)), len(heads)), []
    while len(state.learned) < task.dim:
        drop = _next(state)
        if drop is None:
            break
        found.append(drop)
        _learn(state, drop)
    return found


def _next(state: _State) -> Drop | None:
    """The earlier of the first blow-up of a silent head and the first opening in a head that has room."""
    task, waits = state.task, np.full(state.heads, np.inf)
    for h, head in state.silent.items():
        waits[h] = state.now + blow_up_time(head, task.spectrum, state.mask)
    d, found = state.next_direction, []
    if np.isfinite(waits).any():
        h = int(np.argmin(waits))
        found.append(Drop(d, h, float(waits[h]) + forms.delay(task, d), float(waits[h]), tuple(waits.tolist()), state.before))
    for h, head in state.active.items():
        if len(head.held) < state.rank:
            left, all_waits = np.flatnonzero(~state.mask).tolist(), tuple(waits.tolist())
            found += [Drop(i, h, _opening(task, head, i), None, all_waits, state.before) for i in left]
    known = [drop for drop in found if np.isfinite(drop.time)]
    return min(known, key=lambda drop: drop.time, default=None)


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
        head.held.append(drop.direction)
        head.begin, head.v = drop.time, forms.head_value(task, head.held)
        end = drop.time + 1 / forms.pace(task, drop.direction)
    else:
        winner = state.silent.pop(drop.head)
        state.active[drop.head] = _activated(task, winner, drop, state.mask)
        end = drop.blow_up + (float(forms.course(1 - LEARNED)) + forms.AT_ZERO) / forms.pace(task, drop.direction)
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
    from stagescope.papers.linear_icl.cascade_kernel import follow

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
    largest = FAR * max(forms.head_value(task, (i,)) for i in range(task.dim))
    reached = follow(y, (state.now, end), largest, rates, grow, fade, d, pace, 1 / forms.final_map(task)[d])
    for place, h in enumerate(names):
        v, tau, gamma = y[1 + 3 * place : 4 + 3 * place]
        turn = 2 * np.where(np.arange(task.dim) == d, gamma, rates * tau)
        state.silent[h] = SilentHead(float(v), grow[place] * np.exp(turn), fade[place] * np.exp(-turn))
    return float(reached)
