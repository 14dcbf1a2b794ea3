"""The frames at which a run of incremental learning is read, so that an event has one time however the run was recorded."""

from dataclasses import dataclass, replace

import numpy as np

from stagescope.dynamics.record import LogSpaced, Record
from stagescope.papers.rebuild import last_motion, replay
from stagescope.runs.run import Run


@dataclass(frozen=True)
class Resolution:
    """The frames of a replay."""

    flow: int = 1500
    """Of a flow, at equal ratios from `first` of its length: .9 % apart, less than the width of a fall of the loss."""
    first: float = 1e-6
    steps: int = 300
    """Of a descent, at equal ratios from step 1: those of the study by default, so that a run of the study needs no replay."""
    draws: int = 3
    """Replays of the regression transformer with other batches, a second each: a standard deviation with three degrees."""
    apart: float = 0.03
    """A replay that is farther than this from a frame of the run, in shares of its largest parameters, is another motion: what
    interpolation leaves at steps is a tenth of it."""


RESOLUTION = Resolution()


def dense(run: Run) -> Run:
    """A run replayed from its first frame to its last at frames that depend on its length alone; itself if it has those.

    A run whose numbers broke down cannot be replayed to its end and is read as it is; so is one whose replay passes elsewhere,
    since it was not made by its law.
    """
    if run.frames < 2 or run.status in ("diverged", "failed"):
        return run
    if "step" in run.series:
        record = LogSpaced(frames=RESOLUTION.steps)
        return run if np.array_equal(run.step, record.steps(int(run.step[-1]))) else _again(run, record)
    end = float(run.t[-1])
    record = LogSpaced(frames=RESOLUTION.flow, first=RESOLUTION.first * end)
    same = run.frames == RESOLUTION.flow and np.allclose(run.t, record.times(end), rtol=1e-12, atol=0)
    return run if same else _again(run, record)


def _again(run: Run, record: Record) -> Run:
    """The replay, with the options of the study that made the run; the run itself where the replay passes elsewhere."""
    again = replay(run, record)
    return replace(again, study=run.study, config=run.config) if _same_motion(run, again) else run


def _same_motion(run: Run, again: Run) -> bool:
    """Whether a replay passes through the frames of a run."""
    room = RESOLUTION.apart + 10 * float(last_motion(run.spec).get("rtol", 0.0))
    near = np.clip(np.searchsorted(again.time, run.time), 1, again.frames - 1)
    later = ((run.time - again.time[near - 1]) / (again.time[near] - again.time[near - 1])).clip(0, 1)
    apart, size = np.zeros(run.frames), np.zeros(run.frames)
    for name in run.params:
        block, other = (each.params[name].reshape(each.frames, -1) for each in (run, again))
        between = (1 - later)[:, None] * other[near - 1] + later[:, None] * other[near]
        apart, size = apart + np.sum((block - between) ** 2, axis=1), size + np.sum(block**2, axis=1)
    return bool(np.sqrt(apart.max()) <= room * np.sqrt(size.max()))
