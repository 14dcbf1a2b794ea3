"""Stages of heads on a text: when they acquire one lag after another [ISA:text-stages]."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.detect.events import crossing, first_crossing
from stagescope.detect.noise import TWO_SIDED, flutter
from stagescope.detect.stage import Event, Stage, Stages

ACQUIRED = 0.5
"""A lag is acquired when a head first gives it this share of its attention: most of it."""


@dataclass(frozen=True)
class LagHeads:
    """What the detector reads: the attention of the heads on each lag (frames, H, P), nearest first, and the loss."""

    time: np.ndarray
    loss: np.ndarray
    mass: np.ndarray
    agreement: np.ndarray

    def tops(self, frame: int) -> tuple[int, ...]:
        """The lag of largest attention of each head."""
        return tuple(int(lag) + 1 for lag in self.mass[frame].argmax(axis=1))

    def frame(self, when: float) -> int:
        """The first frame at or after a time."""
        return min(int(np.searchsorted(self.time, when)), len(self.time) - 1)


def acquired(heads: LagHeads) -> tuple[tuple[int, float], ...]:
    """Acquired lags with their times, earliest first."""
    best = heads.mass.max(axis=1)
    found = [(lag + 1, first_crossing(heads.time, best[:, lag], ACQUIRED, rising=True)) for lag in range(best.shape[1])]
    return tuple(sorted(((lag, when) for lag, when in found if when is not None), key=lambda pair: pair[1]))


def _event(heads: LagHeads, lag: int) -> Event:
    """When a lag was acquired; the interval is from the spacing of records and the noise of batches in the run."""
    best = heads.mass[:, :, lag - 1].max(axis=1)
    error = TWO_SIDED * flutter(heads.time, best)
    return crossing(heads.time, best, ACQUIRED, True, error=error, how=f"a head gives lag {lag} half of its attention")


def detect(heads: LagHeads, *, clock: str, status: str) -> Stages:
    """Events t1, t2, ...: when the first, the second, ... lag was acquired; at most as many as heads and as lags."""
    found = acquired(heads)
    names = [f"t{j}" for j in range(1, min(heads.mass.shape[1:]) + 1)]
    events = {name: Event.missing() for name in names}
    events |= {f"t{j}": _event(heads, lag) for j, (lag, _) in enumerate(found, start=1)}
    notes = {f"t{j}": f"lag {lag}" for j, (lag, _) in enumerate(found, start=1)}
    rest = _not_acquired(heads, {lag for lag, _ in found})
    notes |= {name: rest for name, event in events.items() if event.time is None}
    return Stages.of(status, clock, events, _stages(heads, found), notes)


def _not_acquired(heads: LagHeads, taken: set[int]) -> str:
    best = heads.mass.max(axis=(0, 1))
    others = [lag for lag in range(1, len(best) + 1) if lag not in taken]
    if not others:
        return "every lag was acquired"
    lag = max(others, key=lambda one: best[one - 1])
    return f"no other lag had {ACQUIRED:g} of a head's attention; lag {lag} had the most, {best[lag - 1]:.2f}"


def _stages(heads: LagHeads, found: tuple[tuple[int, float], ...]) -> tuple[Stage, ...]:
    """`start`, then `1 lag`, `2 lags`, ... with the losses, and the top lags and agreement of heads at the end of each."""
    starts = (float(heads.time[0]), *(when for _, when in found))
    made = []
    for j, start in enumerate(starts):
        stop = starts[j + 1] if j + 1 < len(starts) else None
        frame = len(heads.time) - 1 if stop is None else heads.frame(stop)
        facts = {
            "acquired": [lag for lag, _ in found[:j]],
            "loss_start": float(heads.loss[heads.frame(start)]),
            "loss_end": float(heads.loss[frame]),
            "top_lags": list(heads.tops(frame)),
            "top_attention": heads.mass[frame].max(axis=1).tolist(),
            "agreement": float(heads.agreement[frame]),
        }
        made.append(Stage("start" if j == 0 else f"{j} lag{'s' * (j > 1)}", start, stop, _sentence(facts), facts=facts))
    return tuple(made)


def _sentence(facts: Mapping[str, Any]) -> str:
    lags, shares = " ".join(map(str, facts["top_lags"])), " ".join(f"{share:.2f}" for share in facts["top_attention"])
    loss = f"loss {facts['loss_start']:.4g} to {facts['loss_end']:.4g}"
    return f"{loss}; at its end top lags {lags} with attention {shares}, agreement {facts['agreement']:.2f}"
