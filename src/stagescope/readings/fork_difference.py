"""How a fork differs from the run it was forked from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.core.errors import InputError
from stagescope.core.spec import digest
from stagescope.readings.reading import reading
from stagescope.runs.run import Run
from stagescope.runs.store import load

PARTED = 0.01
"""Two runs have parted where their parameters are this share of their length apart."""


@dataclass(frozen=True)
class ForkDifference:
    """A fork beside its parent, at the frames of the fork that the parent reaches too.

    `distance` is |theta_fork - theta_parent| at equal times of the clock, `relative` that over |theta_parent|; between frames
    of the parent its parameters are interpolated. `parted` is the first frame at which `relative` is above 1 %, None where
    there is none. `loss` and `events` are those of the parent, then of the fork; an event that did not come is None.

    Examples:
        >>> frozen = ss.fork(run, at="frame=370", freeze=("WQ", "WK"))
        >>> there = ss.fork_difference(run, frozen)
        >>> print(f"forked at {there.at:.0f}, ended with losses {there.loss[0]:.2f} and {there.loss[1]:.2f}")
        forked at 102, ended with losses 1.01 and 1.03
    """

    clock: str
    at: float
    time: np.ndarray
    distance: np.ndarray
    relative: np.ndarray
    parted: float | None
    loss: tuple[float, float] | None
    events: Mapping[str, tuple[float | None, float | None]]

    def json(self) -> dict[str, Any]:
        last = {"t": float(self.time[-1]), "distance": float(self.distance[-1]), "relative": float(self.relative[-1])}
        lists = {name: getattr(self, name).tolist() for name in ("time", "distance", "relative")}
        return {**asdict(self), **lists, "end": last, "events": {name: list(pair) for name, pair in self.events.items()}}

    def __str__(self) -> str:
        clock, relative = self.clock, float(self.relative[-1])
        parted = f"at {clock} = {self.parted:.6g}" if self.parted is not None else "nowhere"
        lines = [
            f"forked at {clock} = {self.at:.6g}; apart by 1 % {parted}",
            f"at {clock} = {self.time[-1]:.6g}: apart by {self.distance[-1]:.3g}, {relative:.3g} of the parent's length",
        ]
        if self.loss is not None:
            lines.append(f"loss there: {self.loss[0]:.6g} in the parent, {self.loss[1]:.6g} in the fork")
        for name, (parent_time, fork_time) in self.events.items():
            if parent_time is None and fork_time is None:
                continue
            lines.append(f"{name}: {_time_text(clock, parent_time)} in the parent, {_time_text(clock, fork_time)} in the fork")
        return "\n".join(lines)


def _time_text(clock: str, time: float | None) -> str:
    return "not reached" if time is None else f"{clock} = {time:.6g}"


def fork_difference(parent: Run | str | Path, fork: Run | str | Path) -> ForkDifference:
    """How far a fork is from the run it was forked from, where they part, and their events side by side.

    Args:
        parent: the old run.
        fork: the new one.

    Returns:
        Distances over time, and the events of both.

    Examples:
        >>> other = ss.fork_difference(run, ss.fork(run, at="frame=370", freeze=("WQ", "WK")))
        >>> other.clock, len(other.time)
        ('t', 400)
    """
    run, forked = (load(one) if isinstance(one, str | Path) else one for one in (parent, fork))
    dynamics = forked.spec["dynamics"] or {}
    if dynamics.get("parent") != digest(run.spec):
        raise InputError("the second run is not a fork of the first; give the run and what `ss.fork` made of it")
    clock = forked.clock
    parent_times, fork_times = run.series[clock].astype(float), forked.time
    frames = np.flatnonzero(fork_times <= parent_times[-1])
    place = np.clip(np.searchsorted(parent_times, fork_times[frames]), 1, max(1, run.frames - 1))
    later = (
        ((fork_times[frames] - parent_times[place - 1]) / (parent_times[place] - parent_times[place - 1])).clip(0, 1)
        if run.frames > 1
        else 0 * frames
    )
    squares, lengths = np.zeros(len(frames)), np.zeros(len(frames))
    for name in run.params:  # frame by frame: all frames at once would take memory twice over
        old, new = run.params[name], forked.params[name]
        for i, (frame, right, share) in enumerate(zip(frames, place, later, strict=True)):
            between = old[min(right, len(old) - 1)] if share == 1 else (1 - share) * old[right - 1] + share * old[right]
            squares[i] += float(np.sum((new[frame] - between) ** 2))
            lengths[i] += float(np.sum(between**2))
    distance, length = np.sqrt(squares), np.sqrt(lengths)
    relative = distance / np.maximum(length, np.finfo(float).tiny)
    beyond = np.flatnonzero(relative > PARTED)
    loss = None
    if "loss" in run.series and "loss" in forked.series:
        loss = (
            float(np.interp(fork_times[frames[-1]], parent_times, run.series["loss"])),
            float(forked.series["loss"][frames[-1]]),
        )
    steps = forked.series["step"] if "step" in forked.series else forked.series["t"]
    fork_at = float(forked.time[np.searchsorted(steps, dynamics["at"])])
    parted = float(fork_times[frames[beyond[0]]]) if len(beyond) else None
    events = {}
    if run.clock == clock:
        before, after = reading(run).told_stages.events, reading(forked).told_stages.events
        events = {name: (before.get(name), after.get(name)) for name in dict.fromkeys((*before, *after))}
    return ForkDifference(clock, fork_at, fork_times[frames], distance, relative, parted, loss, events)
