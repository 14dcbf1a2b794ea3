"""Fewer frames, evenly, where all of them would cost too much: the first and the last are always kept."""

from dataclasses import dataclass

import numpy as np

from stagescope.runs.run import Run

CELLS = 60e6
"""Most cells of a view of matrices that are there already, or made a frame at a time."""
OBSERVED = 20e6
"""Most of those that are made from other matrices, all frames at once: about 600 MB with what is needed on the way."""
NUMBERS = 3e6
"""Most numbers of a view of curves."""
WORK = 2e9
"""Most multiplications, about a second or two, that the singular values of one block may take."""


@dataclass(frozen=True)
class Shown:
    """A run at the frames shown, and which of the whole run's frames these are; None: every one."""

    run: Run
    frames: np.ndarray | None = None


def shown(run: Run, size: float, most: float) -> Shown:
    """Frames of a run, few enough that their number times `size`, the cost of one, is at most `most`."""
    frames = spread(run.frames, max(2, int(most / max(size, 1))))
    return Shown(run) if frames is None else Shown(run.only(frames), frames)


def spread(frames: int, most: int) -> np.ndarray | None:
    """At most `most` of `frames` frames, evenly spaced, with the first and the last; None means all of them."""
    if frames <= most:
        return None
    return np.unique(np.rint(np.linspace(0, frames - 1, most)).astype(int))
