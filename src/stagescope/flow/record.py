"""When to keep a frame, and when to stop: values, not callbacks."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from pydantic import Field as Limits
from pydantic import SerializeAsAny, model_validator

from stagescope.core.errors import InputError
from stagescope.core.memory import require_disk, require_memory
from stagescope.core.spec import Described, Numbers


class Record(Described):
    """Where on the clock frames are kept; the start and the end always are."""

    @abstractmethod
    def times(self, until: float) -> np.ndarray:
        """Positions of the frames in [0, until], increasing."""

    def count(self, steps: int) -> int:
        """How many frames are asked for at most, of a run of so many steps; known before their times are made."""
        return int(getattr(self, "frames", 0))

    def steps(self, total: int) -> np.ndarray:
        """Steps of the frames in 0..total, increasing."""
        return np.unique(np.rint(self.times(float(total))).astype(np.int64))


class Uniform(Record):
    """Equally spaced frames.

    Args:
        frames: how many.

    Examples:
        >>> ss.evolve(well, {"x": np.full(1, 0.1)}, ss.GradientFlow(), until=4, record=ss.Uniform(frames=3)).t.tolist()
        [0.0, 2.0, 4.0]
    """

    frames: int = Limits(default=400, ge=2)

    def times(self, until: float) -> np.ndarray:
        return np.linspace(0.0, until, self.frames)


class LogSpaced(Record):
    """The start, then frames at equal ratios from `first` (default: until/10000) on.

    Args:
        frames: how many.
        first: the first frame after the start.

    Examples:
        >>> flow = ss.evolve(well, {"x": np.full(1, 0.1)}, ss.GradientFlow(), until=100, record=ss.LogSpaced(frames=4, first=1.0))
        >>> flow.t.round(6).tolist()
        [0.0, 1.0, 10.0, 100.0]
    """

    frames: int = Limits(default=400, ge=3)
    first: float | None = Limits(default=None, gt=0)

    def times(self, until: float) -> np.ndarray:
        first = self.first if self.first is not None else until * 1e-4
        if first >= until:
            raise InputError(f"first frame at {first:g} is not before the end {until:g}")
        return np.concatenate([[0.0], np.geomspace(first, until, self.frames - 1)])

    def steps(self, total: int) -> np.ndarray:
        first = self.first if self.first is not None else 1.0
        grid = np.geomspace(min(first, total), total, self.frames - 1)
        return np.unique(np.concatenate([[0], np.rint(grid).astype(np.int64)]))


class Graded(Record):
    """Equally spaced frames, and up to the tenth of them others at equal ratios: where the first things happen.

    Args:
        frames: equally spaced frames.
        early: further frames before the tenth of these.

    Examples:
        >>> early = ss.evolve(well, {"x": np.full(1, 0.1)}, ss.GradientFlow(), until=10, record=ss.Graded(frames=20, early=10)).t
        >>> bool(early[1] < 10 / 19)
        True
    """

    frames: int = Limits(default=400, ge=12)
    early: int = Limits(default=60, ge=2)

    def count(self, steps: int) -> int:
        return self.frames + self.early

    def times(self, until: float) -> np.ndarray:
        grid = np.linspace(0.0, until, self.frames)
        return np.unique(np.concatenate([grid, np.geomspace(grid[10] * 1e-3, grid[10], self.early)]))


class Around(Record):
    """Frames at equal ratios, and around some times others, near each other within its width and at equal ratios beyond.

    For runs with long plateaus and short changes at times that are about known: `at` are these times, `widths` how long each
    change takes. Those outside of the run are passed over.

    Args:
        at: times of the changes.
        widths: how long each change takes.
        frames: how many frames there are at equal ratios.

    Examples:
        >>> record = ss.Around(at=(50.0,), widths=(2.0,), frames=30)
        >>> frames = ss.evolve(well, {"x": np.full(1, 1e-3)}, ss.GradientFlow(), until=100, record=record).t
        >>> int(((frames > 49) & (frames < 51)).sum()) > 3
        True
    """

    at: Numbers
    widths: Numbers
    frames: int = Limits(default=200, ge=3)

    @model_validator(mode="after")
    def _valid(self) -> "Around":
        if len(self.at) != len(self.widths) or min((*self.at, *self.widths), default=1.0) <= 0:
            raise ValueError(f"give as many widths as times, all above 0; got {self.at} and {self.widths}")
        return self

    def count(self, steps: int) -> int:
        return self.frames + NEAR.size * len(self.at)

    def times(self, until: float) -> np.ndarray:
        inside = [pair for pair in zip(self.at, self.widths, strict=True) if pair[0] < until]
        near = [time + width * NEAR for time, width in inside]
        frame_times = np.unique(np.concatenate([LogSpaced(frames=self.frames).times(until), *near]))
        in_run = frame_times[(frame_times >= 0) & (frame_times <= until)]
        distinct = np.concatenate([np.diff(in_run) > TOGETHER * until, [True]])
        return in_run[distinct]


TOGETHER = 1e-9
"""Two frames nearer than this share of the run are one."""
NEAR = np.unique(np.concatenate([np.linspace(-1, 1, 41), *(sign * 1.15 ** np.arange(1, 31) for sign in (-1, 1))]))
"""Frames around one time: 41 within its width, and 30 on each side at ratios of 1.15, up to 66 widths."""


class AtTimes(Record):
    """Frames at chosen positions of the clock.

    Args:
        at: the positions, in the unit of the clock.

    Examples:
        >>> ss.evolve(well, {"x": np.full(1, 0.1)}, ss.GradientFlow(), until=4, record=ss.AtTimes(at=(0, 1, 4))).t.tolist()
        [0.0, 1.0, 4.0]
    """

    at: Numbers

    @model_validator(mode="after")
    def _increasing(self) -> "AtTimes":
        if not self.at or np.any(np.diff(self.at) <= 0) or self.at[0] < 0:
            raise ValueError(f"frames must be at increasing times >= 0, got {self.at[:5]}")
        return self

    def count(self, steps: int) -> int:
        return len(self.at) + 2

    def times(self, until: float) -> np.ndarray:
        if self.at[-1] > until:
            raise InputError(f"the last frame is at {self.at[-1]:g}, but the run ends at {until:g}")
        return np.unique(np.concatenate([[0.0], self.at, [until]]))


class Refined(AtTimes):
    """Frames at chosen times of a flow whose first recorded time was `first_stop`.

    CVODE chooses its first step by the first time that it is asked for, and all later ones follow. So this record makes the very
    steps of that flow, and passes through its frames bit by bit.
    """

    first_stop: float = Limits(gt=0)


class Every(Record):
    """A frame every n steps of a descent.

    Args:
        n: steps between two frames.

    Examples:
        >>> ss.evolve(well, {"x": np.full(1, 0.1)}, ss.Descent(lr=0.1, steps=9), record=ss.Every(n=3)).step.tolist()
        [0, 3, 6, 9]
    """

    n: int = Limits(default=1, ge=1)

    def count(self, steps: int) -> int:
        return steps // self.n + 2

    def times(self, until: float) -> np.ndarray:
        raise InputError("a flow has no steps to record: use --record log or uniform (LogSpaced, Uniform, AtTimes)")

    def steps(self, total: int) -> np.ndarray:
        return np.unique(np.concatenate([np.arange(0, total + 1, self.n), [total]]))


class Spliced(Record):
    """The frames of a record of a run to `ends`, up to `at`; after it, those of the same record to another end."""

    record: SerializeAsAny[Record]
    at: float = Limits(ge=0)
    ends: float = Limits(gt=0)

    def count(self, steps: int) -> int:
        return self.record.count(int(self.ends)) + self.record.count(steps)

    def times(self, until: float) -> np.ndarray:
        return self._spliced(self.record.times(self.ends), self.record.times(until))

    def steps(self, total: int) -> np.ndarray:
        return self._spliced(self.record.steps(int(self.ends)), self.record.steps(total))

    def _spliced(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        return np.concatenate([before[before <= self.at], after[after > self.at]])


PER_FRAME = 100
"""Numbers that a frame takes besides its parameters: names, clocks, loss and the objects that hold them."""


def require_frames(
    record: Record | None, steps: int | None, size: int, out: Path | None = None, waiting: Callable[[int], int] = int
) -> None:
    """Refuse more frames than fit in memory or, with `out`, on its disk; `size` is how many parameters a frame has.

    In a folder, `waiting` says how many of the frames are in memory at a time.
    """
    if record is None:
        return
    planned = record.count(steps or 0)
    recorded = planned if steps is None else min(planned, steps + 1)
    remedy = "record fewer --frames"
    if isinstance(record, Every) and steps is not None:
        remedy = f"take fewer --steps than {steps:,}, or choose --record log where there is such an option"
    require_memory(f"the times of {planned:,} frames", remedy, planned)
    require_memory(f"the {recorded:,} recorded frames", remedy, recorded if out is None else waiting(recorded), PER_FRAME + size)
    if out is not None:
        require_disk(f"the {recorded:,} recorded frames", remedy, out, recorded, size)


class Stop(Described):
    """A condition looked at on every recorded frame; the run ends at the first one that meets it."""

    @abstractmethod
    def met(self, series: Mapping[str, float]) -> str | None:
        """The reason to stop, or None."""


class LossBelow(Stop):
    """Stop once the loss is below a value.

    Args:
        value: the loss at which to stop.

    Examples:
        >>> ss.evolve(well, {"x": np.full(1, 0.1)}, ss.GradientFlow(), until=100, stop=ss.LossBelow(value=0.1)).status
        'stopped'
    """

    value: float

    def met(self, series: Mapping[str, float]) -> str | None:
        loss = series.get("loss")
        return f"loss {loss:g} is below {self.value:g}" if loss is not None and loss < self.value else None


class SpeedBelow(Stop):
    """Stop once |theta'| is below a value.

    Args:
        value: the speed at which to stop.

    Examples:
        >>> flow = ss.evolve(well, {"x": np.full(1, 0.5)}, ss.GradientFlow(), until=50, stop=ss.SpeedBelow(value=1e-3))
        >>> flow.status
        'stopped'
    """

    value: float = Limits(gt=0)

    def met(self, series: Mapping[str, float]) -> str | None:
        speed = series["speed"]
        return f"speed {speed:g} is below {self.value:g}" if speed < self.value else None
