"""Falsified flows, of any paper: start, end, clock and spec of a true run, and another way between its first and its last frame.

`falsified` reads the folder of a true run and writes that of a false one. Loss and speed are those of the false frames, so the
folder is consistent in itself, and only the law of motion can tell. Nothing here knows a paper, and nothing reads a run.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np

import stagescope as ss
from stagescope.core.params import Layout, key
from stagescope.core.spec import build
from stagescope.readings.rebuild import field_of
from stagescope.runs.run import Arrays, Run

Random = np.random.Generator
Frames = Mapping[str, np.ndarray]
WARPS = (1.2, 1.5)
"""Exponents of a warped clock; in half of the draws their inverses."""
NOISE = 0.01
"""Relative, of each parameter of each jittered frame."""


def _warped(run: Run, other: Run, random: Random) -> Frames:
    """The frames of the flow at T (t/T)^e: each of them is a point of the true way, exactly."""
    exponent = random.uniform(*WARPS) ** random.choice([-1, 1])
    end = run.t[-1]
    inner = np.clip(end * (run.t[1:-1] / end) ** exponent, np.nextafter(0, 1), np.nextafter(end, 0))
    wanted, place = np.unique(np.concatenate([[0.0], inner, [end]]), return_inverse=True)
    again = ss.replay(run, ss.AtTimes(at=tuple(wanted.tolist())))
    return {name: again.params[name][place] for name in run.params}


def _line(run: Run, share: np.ndarray) -> Frames:
    """From the first frame straight to the last."""
    ways = {name: (share.reshape(-1, *[1] * (run.params[name].ndim - 1)), run.params[name]) for name in run.params}
    return {name: (1 - part) * block[0] + part * block[-1] for name, (part, block) in ways.items()}


def _straight(run: Run, other: Run, random: Random) -> Frames:
    return _line(run, run.t / run.t[-1])


def _straight_in_log(run: Run, other: Run, random: Random) -> Frames:
    """Even in log(1 + t/t_1), where t_1 is the first time recorded after the start."""
    return _line(run, np.log1p(run.t / run.t[1]) / np.log1p(run.t[-1] / run.t[1]))


def _taken(run: Run, other: Run, first: int, last: int) -> Frames:
    """The frames from `first` up to `last` are those of the other run at the same times."""
    again = ss.replay(other, ss.AtTimes(at=tuple(run.t.tolist())))
    blocks = {name: np.array(run.params[name]) for name in run.params}
    for name, block in blocks.items():
        block[first:last] = again.params[name][first:last]
    return blocks


def _swapped(run: Run, other: Run, random: Random) -> Frames:
    return _taken(run, other, run.frames // 3, 2 * run.frames // 3)


def _stolen(run: Run, other: Run, random: Random) -> Frames:
    return _taken(run, other, 1, run.frames - 1)


def _jittered(run: Run, other: Run, random: Random) -> Frames:
    blocks = {name: np.array(run.params[name]) for name in run.params}
    for block in blocks.values():
        block[1:-1] *= 1 + NOISE * random.normal(size=block[1:-1].shape)
    return blocks


FALSIFIED: dict[str, Callable[[Run, Run, Random], Frames]] = {
    "warped clock": _warped,
    "straight line": _straight,
    "straight in log time": _straight_in_log,
    "swapped third": _swapped,
    "stolen frames": _stolen,
    "jittered": _jittered,
}
"""What is false of a run, by name: its clock, its way, the middle third of its frames or all, or each parameter by 1 %."""

CLAIMED = ("warped clock", "straight line", "straight in log time", "swapped third", "stolen frames")
"""Nulls on which a rate or a time that is confirmed is a false one. Jitter of 1 % leaves rates and times right to about 1 %: it
is shown, and has no bar."""


def falsified(name: str, folder: Path, other: Path, out: Path, seed: int) -> Run:
    """Write the false run to `out`; `other` is the run of the same shape whose frames are taken."""
    run = ss.load(folder)
    frames = FALSIFIED[name](run, ss.load(other), key(seed, name))
    params, series = Arrays.of(frames), Arrays.of({**run.series, **_loss_and_speed(run, frames)})
    return replace(run, params=params, series=series, memo={}).save(out)


def _loss_and_speed(run: Run, frames: Frames) -> dict[str, np.ndarray]:
    """Both in every frame, by the law in the spec of the run."""
    field, layout, dynamics = field_of(run.spec), Layout.of(run.at(0)), build(run.spec["dynamics"])
    flat, weights = field.flat(layout, dynamics.block_rates(layout.names)), field.weights(layout)
    velocity, rows = np.empty(layout.size), []
    for params in ({name: block[i] for name, block in frames.items()} for i in range(run.frames)):
        flat(layout.pack(params), velocity)
        loss = field.objective.value(params) if field.objective is not None else np.nan
        rows.append((loss, sqrt(np.dot(weights * velocity, velocity))))
    columns = dict(zip(("loss", "speed"), np.array(rows).T, strict=True))
    return {name: column for name, column in columns.items() if name in run.series}
