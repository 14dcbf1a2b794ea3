"""The stages of incremental learning: transitions t_j, plateaus, competing and cooperating heads [ISA:stages]."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.detect.stage import Stage, Stages
from stagescope.papers.incremental.transitions import PLATEAU, no_ladder, plateaus, transitions


@dataclass(frozen=True)
class HeadThresholds:
    """When heads compete and when they cooperate. Set on runs of preset `ladder`; validation/incremental.py uses other seeds."""

    alike: float = 0.95
    """Heads compete if their agreement is at least this and they share a top group."""
    apart: float = 0.6
    """Heads cooperate if their agreement is at most this and ..."""
    split: float = 0.2
    """... their contrast is at least this. Equal heads have contrast 0, a perfect split of k groups (k - 1)/k."""


HEADS = HeadThresholds()


@dataclass(frozen=True)
class Heads:
    """What the detector reads: a loss with the levels it should rest at, and the attention of the heads on the groups.

    `nearest` gives the class that predicts most like the model at a frame, None where that is not known.
    """

    time: np.ndarray
    loss: np.ndarray
    levels: np.ndarray
    agreement: np.ndarray
    contrast: np.ndarray
    mass: np.ndarray
    nearest: Callable[[int], int | None]


def detect(heads: Heads, *, clock: str, status: str) -> Stages:
    """Events t1 .. tk and `onset`, the last frame at which heads agree before they part; a stage for every plateau.

    Where levels do not decrease there are no transitions; the notes give the two levels.
    """
    flat = no_ladder(heads.levels)
    when = (None,) * (len(heads.levels) - 1) if flat else transitions(heads.time, heads.loss, heads.levels)
    onset = _onset(heads)
    events: dict[str, float | None] = {f"t{j + 1}": t for j, t in enumerate(when)} | {"onset": onset}
    end = f"{clock}={heads.time[-1]:.4g}"
    notes = {
        name: flat or f"the least loss is {heads.loss.min():.4g} by {end}, above the middle between levels {j - 1} and {j}"
        for j, name in enumerate(events, start=1)
        if events[name] is None and name != "onset"
    }
    if onset is None:
        alone = heads.mass.shape[1] == 1
        notes["onset"] = "there is one head" if alone else f"the agreement of heads is {heads.agreement[-1]:.2f} at the end"
    return Stages(status, clock, events, (_whole(heads, flat),) if flat else _stages(heads, when), notes)


def _onset(heads: Heads) -> float | None:
    alike = heads.agreement >= HEADS.alike
    if alike[-1] or not alike.any() or heads.mass.shape[1] == 1:
        return None
    return float(heads.time[np.flatnonzero(alike)[-1]])


def _whole(heads: Heads, why: str) -> Stage:
    return Stage("start", float(heads.time[0]), None, why, facts={"levels": heads.levels.tolist()})


def _stages(heads: Heads, when: tuple[float | None, ...]) -> tuple[Stage, ...]:
    first = when[0] if when else None
    level = float(heads.levels[0])
    found = [Stage("start", float(heads.time[0]), first, f"level 0 is {level:.4g}", facts={"level": level})]
    for j, plateau in enumerate(plateaus(heads.time, heads.loss, heads.levels), start=1):
        start = when[j - 1]
        if start is None:
            break
        stop = when[j] if j < len(when) else None
        if plateau is None:
            facts = {"plateau": j, "level": float(heads.levels[j])}
            found.append(Stage(f"plateau {j}", start, stop, f"fewer than {PLATEAU.fewest} frames", facts=facts))
            continue
        frame = int(np.argmin(np.abs(heads.time - plateau.t)))
        gap = float((plateau.loss - plateau.level) / (heads.levels[j - 1] - heads.levels[j]))
        rest = f"loss {plateau.loss:.4g}, level {plateau.level:.4g} ({gap:+.1%} of the step)"
        kind = f"plateau {j}" if plateau.accepted else f"passage {j}"
        seen = _heads(heads, frame)
        facts = {"plateau": j, "t": plateau.t, "loss": plateau.loss, "level": plateau.level, "gap": gap, **seen}
        found.append(Stage(kind, start, stop, f"{rest}; {_sentence(seen)}", facts=facts))
    return tuple(found)


def _heads(heads: Heads, frame: int) -> dict[str, Any]:
    """How heads divide the groups at a frame, groups counted from 1, and the class that predicts most like the model."""
    tops = (heads.mass[frame].argmax(axis=1) + 1).tolist()
    agreement, contrast = float(heads.agreement[frame]), float(heads.contrast[frame])
    word = "between"
    if agreement >= HEADS.alike and len(set(tops)) == 1:
        word = "competitive"
    elif agreement <= HEADS.apart and contrast >= HEADS.split:
        word = "cooperative"
    near = heads.nearest(frame)
    return {"heads": word, "agreement": agreement, "contrast": contrast, "top_groups": tops, "nearest_class": near}


def _sentence(seen: dict[str, Any]) -> str:
    tops, near = " ".join(map(str, seen["top_groups"])), seen["nearest_class"]
    numbers = f"agreement {seen['agreement']:.2f}, contrast {seen['contrast']:.2f}, top groups {tops}"
    return f"{seen['heads']}: {numbers}" + ("" if near is None else f", predicts as class {near}")
