"""The stages of incremental learning: transitions t_j, plateaus, competing and cooperating heads [ISA:stages]."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stagescope.detect.stage import Stage, Stages
from stagescope.papers.incremental.transitions import no_ladder, plateaus, transitions

ALIKE, APART, SPLIT = 0.95, 0.6, 0.2
"""Heads compete from this agreement on, if they share a top group; they cooperate below the second with this contrast."""


@dataclass(frozen=True)
class Heads:
    """What the detector looks at: a loss with the levels it should rest at, and the heads' attention on the groups."""

    time: np.ndarray
    loss: np.ndarray
    levels: np.ndarray
    agreement: np.ndarray
    contrast: np.ndarray
    mass: np.ndarray
    nearest: Callable[[int], int | None]


def detect(heads: Heads, *, clock: str, status: str) -> Stages:
    """Events t1 .. tk and `onset`, the last frame at which heads agree before they part; a stage for every plateau.

    Where levels do not decrease there are no transitions, and the notes say so.
    """
    flat = no_ladder(heads.levels)
    when = (None,) * (len(heads.levels) - 1) if flat else transitions(heads.time, heads.loss, heads.levels)
    onset = _onset(heads)
    events: dict[str, float | None] = {f"t{j + 1}": t for j, t in enumerate(when)} | {"onset": onset}
    end = f"{clock}={heads.time[-1]:.4g}"
    notes = {
        name: flat or f"the loss reached {heads.loss.min():.4g} by {end}, above half-way between levels {j - 1} and {j}"
        for j, name in enumerate(events, start=1)
        if events[name] is None and name != "onset"
    }
    if onset is None:
        alone = heads.mass.shape[1] == 1
        notes["onset"] = "there is one head" if alone else f"heads agree to {heads.agreement[-1]:.2f} at the end"
    return Stages(status, clock, events, (_whole(heads, flat),) if flat else _stages(heads, when), notes)


def _onset(heads: Heads) -> float | None:
    alike = heads.agreement >= ALIKE
    if alike[-1] or not alike.any() or heads.mass.shape[1] == 1:
        return None
    return float(heads.time[np.flatnonzero(alike)[-1]])


def _whole(heads: Heads, why: str) -> Stage:
    return Stage("start", float(heads.time[0]), None, why)


def _stages(heads: Heads, when: tuple[float | None, ...]) -> tuple[Stage, ...]:
    first = when[0] if when else None
    found = [Stage("start", float(heads.time[0]), first, f"level 0 is {heads.levels[0]:.4g}")]
    for j, plateau in enumerate(plateaus(heads.time, heads.loss, heads.levels), start=1):
        start = when[j - 1]
        if start is None:
            break
        stop = when[j] if j < len(when) else None
        if plateau is None:
            found.append(Stage(f"plateau {j}", start, stop, "too short to be seen"))
            continue
        frame = int(np.argmin(np.abs(heads.time - plateau.t)))
        gap = (plateau.loss - plateau.level) / (heads.levels[j - 1] - heads.levels[j])
        rest = f"loss {plateau.loss:.4g}, level {plateau.level:.4g} ({gap:+.1%} of the step)"
        kind = f"plateau {j}" if plateau.accepted else f"passage {j}"
        found.append(Stage(kind, start, stop, f"{rest}; {_heads(heads, frame)}"))
    return tuple(found)


def _heads(heads: Heads, frame: int) -> str:
    """Agreement, what it means, and which class the model predicts as."""
    tops = heads.mass[frame].argmax(axis=1)
    agree, contrast = float(heads.agreement[frame]), float(heads.contrast[frame])
    word = "between"
    if agree >= ALIKE and len(set(tops.tolist())) == 1:
        word = "competitive"
    elif agree <= APART and contrast >= SPLIT:
        word = "cooperative"
    near = heads.nearest(frame)
    known = "" if near is None else f", predicts as class {near}"
    groups = " ".join(str(top + 1) for top in tops)
    return f"{word}: agreement {agree:.2f}, contrast {contrast:.2f}, top groups {groups}{known}"
