"""The stages of incremental learning: transitions t_j, plateaus, competing and cooperating heads [ISA:stages].

The transitions are crossings of the levels of the restricted classes [ISA:transitions].
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.detect.levels import PLATEAU, Plateau, crossings, no_ladder, plateaus, widened
from stagescope.detect.stage import Event, Stage, Stages
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.observables import agreement


@dataclass(frozen=True)
class Heads:
    """What the detector reads: a loss with the levels it should rest at, and the attention of the heads on the groups.

    `smooth` where the loss is that of a flow. `parts` (frames, H, k) is the share of each feature that each head has learned,
    where it is known. `nearest` gives the class that predicts most like the model at a frame, None
    where that is not known, and `clear` whether it is nearer than the next by more than the error. `redrawn` gives
    the t_j of the same run with other batches, where that is cheap.
    """

    time: np.ndarray
    loss: np.ndarray
    levels: np.ndarray
    agreement: np.ndarray
    contrast: np.ndarray
    mass: np.ndarray
    nearest: Callable[[int], int | None]
    parts: np.ndarray | None = None
    clear: Callable[[int], bool] = lambda frame: True
    smooth: bool = False
    redrawn: Callable[[], tuple[tuple[float | None, ...], ...]] = tuple

    @cached_property
    def flat(self) -> str | None:
        """Why there is no ladder."""
        return no_ladder(self.levels)

    @cached_property
    def crossings(self) -> tuple[Event, ...]:
        """t_1 .. t_k, the same for stages and claims."""
        events = crossings(self.time, self.loss, self.levels, self.smooth)
        redrawn_times = self.redrawn()
        return tuple(widened(event, [times[j] for times in redrawn_times]) for j, event in enumerate(events))

    def mean_crossing(self, j: int) -> tuple[float | None, float]:
        """t_j and its error; the mean over draws of the batches where there are several, whose error is smaller."""
        event, redrawn_times = self.crossings[j - 1], [times[j - 1] for times in self.redrawn()]
        if event.time is None or event.interval is None:
            return None, 0.0
        half = (event.interval[1] - event.interval[0]) / 2
        draw_times = [event.time, *(time for time in redrawn_times if time is not None)]
        return float(np.mean(draw_times)), half / float(np.sqrt(len(draw_times)))

    @cached_property
    def plateaus(self) -> tuple[Plateau | None, ...]:
        return plateaus(self.time, self.loss, self.levels)

    @cached_property
    def alike(self) -> np.ndarray:
        """Mean cosine between the masses of two heads on the groups (frames,); where in a group a head looks does not count."""
        return agreement(self.mass)

    @property
    def shares(self) -> np.ndarray:
        """What each head has of each group (frames, H, k): of its map, where that is known, so that leakage of one head that
        another cancels does not count; of the head's attention elsewhere."""
        return self.mass if self.parts is None else self.parts

    def owners(self, frame: int, error: float = 0.0) -> list[int | None]:
        """The head that has most of each of the first min(H, k) groups; None where no head has more than half of it."""
        shares = self.shares[frame][:, : min(self.mass.shape[1:])]
        return [int(row.argmax()) if row.max() - error > LIMITS.majority else None for row in shares.T]

    @cached_property
    def onset(self) -> Event:
        """The last time at which heads are alike."""
        definition = f"the last time that heads are alike (cosine of masses {LIMITS.alike_cosine:g})"
        together = np.flatnonzero(self.alike >= LIMITS.alike_cosine)
        if self.mass.shape[1] == 1:
            return Event.missing(how="there is one head")
        if not together.size or together[-1] == 0:
            return Event.missing("at the start", definition)
        last = int(together[-1])
        if last == len(self.time) - 1:
            return Event.missing(how=f"heads are alike at the end: cosine of masses {self.alike[-1]:.2f}")
        after = (self.alike[last] - LIMITS.alike_cosine) / (self.alike[last] - self.alike[last + 1])
        time = float(self.time[last] + after * (self.time[last + 1] - self.time[last]))
        return Event(time, float(self.time[last]), float(self.time[last + 1]), how=definition)


def detect(heads: Heads, *, clock: str, status: str) -> Stages:
    """Events t1 .. tk and `onset`, the last time at which heads are alike before they part; a stage for every plateau.

    Where levels do not decrease there are no transitions; the notes give the two levels.
    """
    events = (Event.missing(how=heads.flat),) * (len(heads.levels) - 1) if heads.flat else heads.crossings
    estimates = {f"t{j}": event for j, event in enumerate(events, start=1)} | {"onset": heads.onset}
    end = f"{clock}={heads.time[-1]:.4g}"
    notes = {
        name: heads.flat or f"the least loss is {heads.loss.min():.4g} by {end}, above the middle between levels {j - 1} and {j}"
        for j, name in enumerate(estimates, start=1)
        if estimates[name].state == "not reached" and name != "onset"
    }
    if heads.onset.time is None:
        notes["onset"] = heads.onset.how
    whole_run = Stage("start", float(heads.time[0]), None, heads.flat or "", facts={"levels": heads.levels.tolist()})
    return Stages.of(status, clock, estimates, (whole_run,) if heads.flat else _stages(heads), notes)


def _stages(heads: Heads) -> tuple[Stage, ...]:
    times = [event.time for event in heads.crossings]
    level = float(heads.levels[0])
    stages = [Stage("start", float(heads.time[0]), times[0], f"level 0 is {level:.4g}", facts={"level": level})]
    for j, plateau in enumerate(heads.plateaus, start=1):
        start = times[j - 1]
        if start is None:
            break
        stop = times[j] if j < len(times) else None
        if plateau is None:
            facts = {"plateau": j, "level": float(heads.levels[j])}
            stages.append(Stage(f"passage {j}", start, stop, f"fewer than {PLATEAU.fewest} frames", facts=facts))
            continue
        gap = float((plateau.loss - plateau.level) / (heads.levels[j - 1] - heads.levels[j]))
        sentence = f"loss {plateau.loss:.4g}, level {plateau.level:.4g} ({gap:+.1%} of the step)"
        if plateau.between is False:
            sentence = f"no plateau: the loss does not slow down between t_{j} and t_{j + 1}; {sentence}"
        kind = f"plateau {j}" if plateau.accepted and plateau.between is not False else f"passage {j}"
        head_facts = _heads(heads, int(np.argmin(np.abs(heads.time - plateau.t))))
        facts = {"plateau": j, "t": plateau.t, "loss": plateau.loss, "level": plateau.level, "gap": gap}
        facts |= {"between": plateau.between, **head_facts}
        tops, near = " ".join(map(str, head_facts["top_groups"])), head_facts["nearest_class"]
        numbers = f"agreement {head_facts['agreement']:.2f}, contrast {head_facts['contrast']:.2f}, top groups {tops}"
        sentence += f"; {head_facts['heads']}: {numbers}" + ("" if near is None else f", predicts as class {near}")
        stages.append(Stage(kind, start, stop, sentence, facts=facts))
    return tuple(stages)


def _heads(heads: Heads, frame: int) -> dict[str, Any]:
    """How heads divide the groups at a frame, groups counted from 1, and the class that predicts most like the model.

    Heads compete if each has most of its attention on the first group. They cooperate if each of the first min(H, k) groups
    has a head of its own.
    """
    mass = heads.mass[frame]
    tops, owners = (mass.argmax(axis=1) + 1).tolist(), heads.owners(frame)
    word = "between"
    if None not in owners and len(set(owners)) == len(owners) > 1:
        word = "cooperative"
    elif np.all(mass[:, 0] > LIMITS.majority):
        word = "competitive"
    cosine, contrast = float(heads.alike[frame]), float(heads.contrast[frame])
    near = heads.nearest(frame)
    return {"heads": word, "agreement": cosine, "contrast": contrast, "top_groups": tops, "nearest_class": near}
