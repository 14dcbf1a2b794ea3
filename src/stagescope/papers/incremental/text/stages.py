"""When heads on a text turn to one lag after another [ISA:text-stages]."""

from dataclasses import dataclass

import numpy as np

from stagescope.detect.stage import Stage, Stages, first_crossing

MOST = 0.5
"""A lag is acquired once some head gives it most of its attention: half of it."""


@dataclass(frozen=True)
class LagHeads:
    """What the detector looks at: the heads' attention on each lag (frames, H, P), nearest first, and the loss."""

    time: np.ndarray
    loss: np.ndarray
    mass: np.ndarray
    agreement: np.ndarray

    def tops(self, frame: int) -> tuple[int, ...]:
        """The lag that each head looks at most."""
        return tuple(int(lag) + 1 for lag in self.mass[frame].argmax(axis=1))

    def frame(self, when: float) -> int:
        """The first frame at or after a time: what was crossed then has been crossed there."""
        return min(int(np.searchsorted(self.time, when)), len(self.time) - 1)


def acquired(heads: LagHeads) -> tuple[tuple[int, float], ...]:
    """Lags that some head gave most of its attention to, with the first time of that, earliest first."""
    best = heads.mass.max(axis=1)
    found = [(lag + 1, first_crossing(heads.time, best[:, lag], MOST, rising=True)) for lag in range(best.shape[1])]
    return tuple(sorted(((lag, when) for lag, when in found if when is not None), key=lambda pair: pair[1]))


def detect(heads: LagHeads, *, clock: str, status: str) -> Stages:
    """Events t1, t2, ...: when the first, the second, ... lag was acquired; as many as heads or lags, whatever is less."""
    found = acquired(heads)
    names = [f"t{j}" for j in range(1, min(heads.mass.shape[1:]) + 1)]
    events: dict[str, float | None] = dict.fromkeys(names) | {f"t{j}": when for j, (_, when) in enumerate(found, start=1)}
    notes = {f"t{j}": f"lag {lag}" for j, (lag, _) in enumerate(found, start=1)}
    rest = _best_of_the_rest(heads, {lag for lag, _ in found})
    notes |= {name: rest for name, when in events.items() if when is None}
    return Stages(status, clock, events, _stages(heads, found), notes)


def _best_of_the_rest(heads: LagHeads, taken: set[int]) -> str:
    best = heads.mass.max(axis=(0, 1))
    others = [lag for lag in range(1, len(best) + 1) if lag not in taken]
    if not others:
        return "every lag was acquired"
    lag = max(others, key=lambda one: best[one - 1])
    return f"no other lag had most of a head's attention; lag {lag} came nearest, with {best[lag - 1]:.2f}"


def _stages(heads: LagHeads, found: tuple[tuple[int, float], ...]) -> tuple[Stage, ...]:
    """`start`, then `1 lag`, `2 lags`, ... with the losses, where heads look and how alike they are at the end of each."""
    starts = (float(heads.time[0]), *(when for _, when in found))
    made = []
    for j, start in enumerate(starts):
        stop = starts[j + 1] if j + 1 < len(starts) else None
        frame = len(heads.time) - 1 if stop is None else heads.frame(stop)
        lags = " ".join(map(str, heads.tops(frame)))
        shares = " ".join(f"{share:.2f}" for share in heads.mass[frame].max(axis=1))
        lost = f"loss {heads.loss[heads.frame(start)]:.4g} to {heads.loss[frame]:.4g}"
        looks = f"at its end heads look most at lag {lags} with {shares}, agreement {heads.agreement[frame]:.2f}"
        made.append(Stage("start" if j == 0 else f"{j} lag{'s' * (j > 1)}", start, stop, f"{lost}; {looks}"))
    return tuple(made)
