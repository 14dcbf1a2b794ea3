"""Numbers of three findings about normalised steps, by the head model: the path by eps, blind focus, frozen attention.

Without arguments they are those of the published chain, start and optimiser in long contexts. Each takes seconds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stagescope.flow.descent import Adam, Descent, HeavyBall
from stagescope.papers.focus_dilution.head_prediction import excess_loss, head_curves
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.model import LazyChain, TokenAttention
from stagescope.papers.focus_dilution.observables import TokenCurves, token_curves
from stagescope.papers.focus_dilution.stages import row_cycles
from stagescope.runs.run import Run

EPS = (1e-30, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
NORM = 0.3
"""Norm of the most frequent token at which the norms of all tokens are compared, before any of them turns."""


@dataclass(frozen=True)
class Published:
    """The published chain and start in long contexts, with other numbers where they are given."""

    pi: tuple[float, ...] = (0.75, 0.19, 0.05, 0.01)
    persistence: float = 0.8
    width: int = 256
    seed: int = 0
    lr: float = 1.5e-4
    eps: float = 1e-8

    def law(self, persistence: float | None = None) -> TokenPopulation:
        chain_persistence = self.persistence if persistence is None else persistence
        model = TokenAttention(vocab=len(self.pi), width=self.width, scale=1.0)
        return TokenPopulation(model=model, process=LazyChain(pi=self.pi, persistence=chain_persistence))

    def start(self, sigma: float | None = None) -> dict[str, np.ndarray]:
        return self.law().model.init(self.seed, 1 / self.width if sigma is None else sigma)

    def descent(self, steps: int, eps: float | None = None, added: float = 0.0) -> Descent:
        eps = self.eps if eps is None else eps
        return Descent(optimizer=Adam(eps=eps), lr=self.lr + added * eps, steps=steps)


PUBLISHED = Published()


@dataclass(frozen=True)
class EpsPath:
    """Runs from Adam to gradient descent, with step size lr + .05 eps.

    `heights` (eps, d) is the largest attention of each row on the most frequent token in its first cycle, `norms` (eps, d) the
    row norms of W0 when that of the most frequent token is .3. `flow` (d,) are the heights of gradient descent with momentum from
    the same start, to which steps go over. The last of `curves` are its own.
    """

    eps: np.ndarray
    heights: np.ndarray
    norms: np.ndarray
    flow: np.ndarray
    base: float
    curves: tuple[TokenCurves, ...]


def epsilon_path(setting: Published = PUBLISHED, eps: Sequence[float] = EPS, steps: int = LIMITS.path_steps) -> EpsPath:
    """The path by eps from the published experiment to the theorem [FDA:path].

    At eps 1e-5 and 1e-4 the first focus comes after more than 3000 steps; heights are those reached by then.
    """
    law, start = setting.law(), setting.start()
    curves = tuple(head_curves(law, start, setting.descent(steps, one_eps, LIMITS.path_rate)) for one_eps in eps)
    ball = HeavyBall(momentum=Adam().b1)
    flow = head_curves(law, start, Descent(optimizer=ball, lr=LIMITS.path_rate * (1 - ball.momentum), steps=steps))
    heights = np.array([[cycle.height for cycle in row_cycles(head)] for head in curves])
    norms = np.array([_norms(head) for head in curves])
    return EpsPath(
        np.array(eps), heights, norms, np.array([cycle.height for cycle in row_cycles(flow)]), max(setting.pi), (*curves, flow)
    )


def _norms(curves: TokenCurves) -> np.ndarray:
    """Row norms of W0 when that of the most frequent token passes `NORM`; nan where it does not."""
    passed = np.flatnonzero(curves.norms[:, curves.frequent] >= NORM)
    return curves.norms[passed[0]] if passed.size else np.full(len(curves.pi), np.nan)


@dataclass(frozen=True)
class BlindFocus:
    """The first focus from one start on chains of the same pi.

    `ups` (persistence, d) are steps, nan where a row has no total focus; `excess` (persistence,) is the share of the loss above
    H(pi) that is left then. `curves` are those of each persistence.
    """

    persistence: np.ndarray
    ups: np.ndarray
    excess: np.ndarray
    curves: tuple[TokenCurves, ...]


def blind_focus(
    setting: Published = PUBLISHED, persistence: Sequence[float] = (0.0, 0.2, 0.5, 0.8, 0.95), steps: int = 500
) -> BlindFocus:
    """Focus under Adam does not look at the transition matrix: independent tokens focus at the same step [FDA:blind]."""
    curves = tuple(head_curves(setting.law(value), setting.start(), setting.descent(steps)) for value in persistence)
    ups = np.array([[np.nan if cycle.up is None else cycle.up for cycle in row_cycles(head)] for head in curves])
    return BlindFocus(np.array(persistence), ups, np.array([left_at_focus(head) for head in curves]), curves)


def left_at_focus(curves: TokenCurves) -> float:
    """The share of the excess loss over H(pi) that is left when the first row has its focus; nan where none has."""
    ups = [cycle.up for cycle in row_cycles(curves) if cycle.up is not None]
    if not ups:
        return math.nan
    frame = int(np.argmin(np.abs(curves.time - min(ups))))
    loss = curves.law.value({name: block[frame] for name, block in curves.params.items()})
    return excess_loss(curves, curves.time[frame], np.full(len(curves.time), loss))


@dataclass(frozen=True)
class FrozenAttention:
    """The start below which attention never opens, by eps.

    sigma_c lies between `low` and `high`, in units of 1/m. `exponent` is the slope of log sigma_c over log eps.
    """

    eps: np.ndarray
    low: np.ndarray
    high: np.ndarray
    exponent: float


def frozen_attention(
    setting: Published = PUBLISHED,
    eps: Sequence[float] = (1e-10, 1e-9, 1e-8, 1e-7, 1e-6),
    steps: int = 1500,
    factor: float = 2**0.25,
) -> FrozenAttention:
    """Frozen attention is an effect of eps: sigma_c by bisection between 2^-12 / m and 4 / m, to a factor [FDA:frozen]."""
    brackets = []
    for one_eps in eps:
        low, high = 2.0**-12, 4.0
        while high / low > factor:
            middle = math.sqrt(low * high)
            curves = head_curves(setting.law(), setting.start(middle / setting.width), setting.descent(steps, one_eps))
            opens = any(row.up is not None for row in row_cycles(curves))
            low, high = (low, middle) if opens else (middle, high)
        brackets.append((low, high))
    low, high = np.array(brackets).T
    slope = np.polyfit(np.log(eps), np.log(low * high) / 2, 1)[0]
    return FrozenAttention(np.array(eps), low, high, float(slope))


def focus_measure(run: Run) -> dict[str, float | str]:
    """What a sweep keeps of the first focus: of rare rows the least and the largest share of the way from pi_0 to 1.

    `outcome` is "total" where all rare rows have a total focus, "partial" where some gain attention, and "none" where none does.
    """
    curves = token_curves(run)
    base = float(curves.pi.max())
    rare = [cycle for cycle in row_cycles(curves) if cycle.row != curves.frequent]
    gains = [cycle.height - base for cycle in rare]
    total = all(cycle.up is not None for cycle in rare)
    outcome = "total" if total else "partial" if max(gains) > LIMITS.gain else "none"
    return {"least": min(gains) / (1 - base), "most": max(gains) / (1 - base), "outcome": outcome}
