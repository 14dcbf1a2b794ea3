"""Escape from a saddle of order two: the time at which a silent head would blow up, by quadrature [LIN:blow-up].

A silent head moves alone. With g_i = lambda_i^2 of what is not learned and dtau = v dt its parts k + q grow as e^{g_i tau} and
k - q as e^{-g_i tau}. So v^2 = E(tau) = v_0^2 + sum_i [A_i (e^{2 g_i tau} - 1) + B_i (e^{-2 g_i tau} - 1)], A, B = sum over rows
of ((k_0 +- q_0)/2)^2, and T = int dtau / sqrt(E).
"""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from stagescope.params import Params

LARGEST = 600.0
"""Exponents are kept below this: e^600 is a number."""
NODES, PANEL = 16, 0.5
"""Gauss-Legendre nodes in a panel, and the width of a panel in the stretched variable."""
NEGLIGIBLE = 1e-16
"""A panel that adds less than this share of the sum is the last one."""
MOST_PANELS = 400


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
        powers = np.clip(np.multiply.outer(np.asarray(tau, dtype=float), self.rates), -LARGEST, LARGEST)
        return self.v**2 + np.expm1(powers) @ self.grow + np.expm1(-powers) @ self.fade

    def slope(self, tau: float, order: int = 1) -> float:
        """The first or second derivative."""
        powers = np.clip(tau * self.rates, -LARGEST, LARGEST)
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
        while self.slope(high) < 0 and high * self.rates.max() < LARGEST:
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

    def ahead(y: np.ndarray) -> np.ndarray:
        return width * np.cosh(y) / np.sqrt(energy(foot + width * np.sinh(y)))

    def behind(y: np.ndarray) -> np.ndarray:
        return width * np.cosh(y) / np.sqrt(np.maximum(energy(foot - width * np.sinh(y)), least))

    before = _integral(behind, float(np.arcsinh(foot / width))) if foot > 0 else 0.0
    return before + _integral(ahead)


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
    total, begin = 0.0, 0.0
    for _ in range(MOST_PANELS):
        width = min(PANEL, end - begin)
        with np.errstate(over="ignore"):
            added = width * float(weights @ np.nan_to_num(part(begin + width * nodes), nan=0.0, posinf=0.0))
        total, begin = total + added, begin + width
        if begin >= end or (np.isinf(end) and added <= NEGLIGIBLE * total):
            break
    return total


@cache
def _gauss() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2


def _bisected(holds, low: float, high: float) -> float:  # noqa: ANN001 (a function of a number)
    """Where something begins to hold."""
    for _ in range(100):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
