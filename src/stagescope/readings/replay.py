"""The rule of replay: a law may speak for a run only where it passes through every recorded frame.

A replay is the law of the run's spec from its first frame on. It differs from the run by what the solver's tolerance and the
storage of numbers explain, and by no more. That is measured, not guessed:

- The unit of a distance is the error that the solver allows itself in one step, rtol |theta| + atol, plus the rounding of the
  stored numbers, eps max|block|. Distances are root mean squares over all parameters in this unit, as in the solver. Steps of
  a descent on known batches have no tolerance: what is left is rounding.
  A block of zeros has the rounding of where it moves: Adam, whose first steps have one size, makes 1e-6 of 1e-15.
- Within one unit nothing is to be explained. Beyond it, errors may have accumulated and grown: a second replay, `LOOSER` times
  less exact, whose start is moved by as much in units of the rounding, shows by how much they grow up to each frame. Errors
  that contract may be left in other directions, so the largest one so far counts.
- From where even that is more than the mean distance of neighbouring frames, errors decide, and a replay decides nothing.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from stagescope.core.errors import InputError, StagescopeError, message
from stagescope.core.params import Layout, Params, key
from stagescope.core.spec import build
from stagescope.flow.dynamics import Dynamics, SolveFailed, TinyStart
from stagescope.flow.evolve import evolve, frames
from stagescope.flow.field import Field
from stagescope.flow.fork import Forked
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.flow.kept import keeping
from stagescope.flow.record import AtTimes, Refined
from stagescope.runs.run import Run

Made = TypeVar("Made")
REPLAYS = 3
"""A run is replayed at most so often for more frames."""
LOOSER = 100.0
"""How much less exact the second replay is. BDF of order q with tolerance tau errs by tau^(q/(q+1)), q from 1 to 5: it is off by
10 to 46 times the error of the run, so that its distance from the first replay bounds what the run may differ by."""
MARGIN = 10.0
"""A frame may be so many distances of the looser replay away: errors change sign, and that one may be near by chance. A solver of
order 1 errs by this factor more where its tolerance is `LOOSER` times larger: what is farther is not explained by `LOOSER`^2."""
LOOSEST = 1e-2
"""The largest relative tolerance of the second replay: a solver follows nothing with one near 1."""
SAME_START = float(np.sqrt(np.finfo(float).eps))
"""A start that is drawn again has the same random bits; what is solved for in it agrees to half of the digits at least."""
TINY = float(np.finfo(float).tiny)
CLOCK_ROUNDINGS = 4
"""A time of a step is a product of three numbers, each rounded, and is stored."""


@dataclass(frozen=True)
class Difference:
    """A recorded frame that the replay misses: in what, how far relative to its size, and in units of what is allowed."""

    frame: int
    time: float
    quantity: str
    relative: float
    units: float


@dataclass(frozen=True)
class ReplayTest:
    """Whether the law of a run passes through its frames: `passes` is None where that cannot be told, and `reason` says why.

    `largest` is the largest distance of a frame in units of what is allowed, `first` the first frame that is missed.

    Examples:
        >>> test = ss.verify_replay(run)
        >>> test.passes, test.largest <= 1
        (True, True)
    """

    passes: bool | None
    clock: str
    frames: int
    largest: float | None = None
    first: Difference | None = None
    reason: str = ""

    @property
    def sentence(self) -> str:
        """One sentence for people."""
        if self.passes:
            return f"the law passes through all {self.frames:,} frames, the farthest at {self.largest:.2g} of what is allowed"
        if self.reason or self.first is None:
            return self.reason
        place = f"frame {self.first.frame} ({self.clock} = {self.first.time:.5g})"
        deviation = f"{self.first.quantity} off by {self.first.relative:.2g} of their size"
        excess = f", {self.first.units:.2g} times what solver and storage explain" if np.isfinite(self.first.units) else ""
        return f"the law of this run does not make its frames: it misses {place}, {deviation}{excess}"

    def json(self) -> dict[str, Any]:
        return {**asdict(self), "sentence": self.sentence}


def position_of(run: Run) -> np.ndarray:
    """Where the frames of a run are on the axis that its dynamics counts: steps of a descent, times of a flow."""
    return run.series["step" if "step" in run.series else "t"].astype(float)


def read_refined(
    run: Run,
    replay: Callable[[np.ndarray], Run | None],
    read: Callable[[Run], Made],
    pieces_of: Callable[[np.ndarray, Made], np.ndarray],
) -> Made:
    """What `read` makes of a run, replayed until no stretch between two frames is to be cut.

    `pieces_of` says from the frames and what was read into how many pieces to cut each stretch. A run that `replay` does not
    follow, because its law misses a frame, is read as it is.
    """
    position, curves = position_of(run), read(run)
    for _ in range(REPLAYS):
        pieces = pieces_of(position, curves)
        cut = pieces > 1
        stretches = zip(position[:-1][cut], position[1:][cut], pieces[cut], strict=True)
        targets = np.concatenate([position, *(np.linspace(start, end, count + 1) for start, end, count in stretches)])
        targets = np.unique(np.rint(targets) if "step" in run.series else targets)
        if len(targets) == len(position):
            break
        refined_run = replay(targets)
        if refined_run is None:
            return read(run)
        position, curves = position_of(refined_run), read(refined_run)
    return curves


def motion(run: Run) -> dict[str, Any]:
    """The dynamics of a run up to its last recorded frame, and where it ends."""
    dynamics = build(run.spec["dynamics"])
    if "step" in run.series:
        return {"dynamics": dynamics.shortened(int(run.step[-1]))}
    return {"dynamics": dynamics, "until": float(run.t[-1])}


def why_no_replay(run: Run) -> str:
    """Why the law of a run cannot be followed from its first frame; empty where it can."""
    if run.spec["field"] is None:
        return f"this run has no law of motion to replay: it was recorded elsewhere (source: {run.spec['source']['kind']})"
    if run.frames < 2:
        return f"this run has {run.frames} frame{'' if run.frames == 1 else 's'}: a replay needs two"
    return ""


def missed_start(run: Run, start: Params, what: str) -> ReplayTest | None:
    """A test that fails where the first frame of a run is not `start`, which is called `what`; None where it is."""
    first = np.concatenate([np.ravel(run.params[name][0]) for name in run.params])
    begin = np.concatenate([np.ravel(start[name]) for name in run.params]) if set(start) == set(run.params) else np.zeros(0)
    far = float(np.linalg.norm(first - begin) / max(np.linalg.norm(begin), TINY)) if first.shape == begin.shape else np.inf
    if far <= max(SAME_START, precision(first)):
        return None
    reason = f"the first frame of this run is not {what}: the parameters differ by {far:.2g} of their size"
    return ReplayTest(False, run.clock, run.frames, None, Difference(0, float(run.time[0]), "parameters", far, np.inf), reason)


class _Rows:
    """What a law has at the recorded positions of a run; NaN where there is nothing yet.

    Where it has the very numbers of the run they are not kept a second time: all frames of a wide model take a gigabyte.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.positions = run, position_of(run)
        self.identical = np.zeros(run.frames, bool)
        self.series = {name: np.full(run.frames, np.nan) for name in ("t", "loss") if name in run.series}
        self._differing: dict[int, Params] = {}

    def take(self, clock: Mapping[str, float], params: Params) -> None:
        """Keep a frame if it is at a recorded position."""
        if (row := self.row(clock)) is None:
            return
        self.identical[row] = all(np.array_equal(params[name], self.run.params[name][row]) for name in self.run.params)
        if not self.identical[row]:
            self._differing[row] = params
        for name, values in self.series.items():
            values[row] = clock[name]

    def row(self, clock: Mapping[str, float]) -> int | None:
        """The frame of the run that is at the position of a clock."""
        position = clock["step" if "step" in clock else "t"]
        row = int(np.searchsorted(self.positions, position))
        return row if row < len(self.positions) and self.positions[row] == position else None

    def vectors(self, rows: slice) -> np.ndarray:
        """The parameters at some frames (rows, n), blocks in the order of the run."""
        values = vectors(self.run, rows)
        for place, row in enumerate(range(self.run.frames)[rows]):
            if not self.identical[row]:
                params = self._differing.get(row)
                values[place] = np.nan if params is None else np.concatenate([np.ravel(params[name]) for name in self.run.params])
        return values

    def forget(self) -> None:
        """Let the parameters go: only what was measured of them is needed."""
        self._differing.clear()


class Replay:
    """The law of a run from its start on. What it has at the recorded positions is kept for `test`.

    `start` is the state at position 0: the first frame, or, where that was not recorded, what the study of the run makes.
    """

    def __init__(self, run: Run, field: Field, start: Params | None = None) -> None:
        if reason := why_no_replay(run):
            raise InputError(reason)
        self.run, self.field, self.rows = run, field, _Rows(run)
        first = self.rows.positions[0]
        if start is None and first != 0:
            raise InputError(f"the first frame of this run is at {first:g}, and the start before it is not known")
        self.start = run.at(0) if start is None else start
        self._broke_down = ""

    def record(self, extra: np.ndarray) -> AtTimes:
        """The recorded positions, and others among them; a flow that was recorded from its start takes the same steps."""
        positions = self.rows.positions
        inside = extra[(extra > 0) & (extra < positions[-1])]
        stops = tuple(np.unique(np.concatenate([positions, inside])).tolist())
        if "step" in self.run.series or positions[0] > 0 or inside.size == 0:
            return AtTimes(at=stops)
        return Refined(at=stops, first_stop=float(positions[1]))

    def frames(self, extra: np.ndarray) -> Iterator[tuple[dict[str, float], Params]]:
        """Clock and parameters of each frame of the replay, one after another; those between the records are not kept."""
        layout = Layout.of(self.start)
        with no_tiny_start():
            try:
                with keeping(self.run):
                    steps = frames(
                        self.field, self.start, **motion(self.run), record=self.record(extra), measured=self.rows.positions
                    )
                for clock, vector in steps:
                    params = layout.unpack(vector)
                    self.rows.take(clock, params)
                    yield clock, params
            except SolveFailed as failure:
                self._broke_down = message(failure)
                raise

    def refined(self, extra: np.ndarray) -> Run | None:
        """The replay with frames at other positions too, if it passes through every recorded frame."""
        with no_tiny_start(), keeping(self.run):
            replayed_run = evolve(
                self.field, self.start, **motion(self.run), record=self.record(extra), seed=self.run.seed or 0, progress=False
            )
        series = dict(replayed_run.series)
        for place in range(replayed_run.frames):
            self.rows.take({name: values[place] for name, values in series.items()}, replayed_run.at(place))
        self._broke_down = "" if replayed_run.done else replayed_run.reason
        return replayed_run if self.test.passes else None

    def followed(self, use: "Callable[[Replay], Made]") -> tuple[Made | None, ReplayTest]:
        """What `use` makes of the replay, None where it does not pass through every recorded frame; and the test."""
        result = None
        try:
            with suppress(SolveFailed):
                result = use(self)
            test = self.test
        except StagescopeError as error:
            reason = f"this run cannot be replayed, so its frames are read as they are: {message(error)}"
            test = ReplayTest(None, self.run.clock, self.run.frames, reason=reason)
        self.rows.forget()
        return result if test.passes else None, test

    def tested(self) -> ReplayTest:
        """The test, of the recorded positions alone."""
        return self.followed(lambda law: deque(law.frames(np.zeros(0)), maxlen=0))[1]

    @cached_property
    def test(self) -> ReplayTest:
        """The rule, put to what the replay had at the recorded positions."""
        run, unit, reason = self.run, _Unit.of(self.run), ""
        series = {name: unit.of_series(name, values) for name, values in self.rows.series.items()}
        distances = {"parameters": self._distances(unit), **series}
        if self._broke_down or not np.all(np.array([*distances.values()]) <= 1):
            allowed, reason = self._allowed(unit)
            distances = {name: np.where(np.isinf(allowed[name]), 0.0, far / allowed[name]) for name, far in distances.items()}
        ratios = np.array([*distances.values()])
        missed = np.flatnonzero(~np.all(ratios <= 1, axis=0))
        largest = float(np.max(ratios)) if np.all(np.isfinite(ratios)) else None
        if not missed.size:
            return ReplayTest(None if reason else True, run.clock, run.frames, largest, reason=reason)
        frame = int(missed[0])
        replayed = self.rows.vectors(slice(frame, frame + 1))[0]
        if not np.isfinite(replayed).all():
            reason = f"the law of this run does not reach frame {frame}: {self._broke_down or 'its numbers are not finite'}"
            return ReplayTest(False, run.clock, run.frames, reason=reason)
        quantity = max(distances, key=lambda name: distances[name][frame])
        if quantity == "parameters":
            recorded, repeated = vectors(run, slice(frame, frame + 1))[0], replayed
        else:
            recorded, repeated = (np.atleast_1d(float(values[quantity][frame])) for values in (run.series, self.rows.series))
        relative = float(np.linalg.norm(repeated - recorded) / max(np.linalg.norm(recorded), TINY))
        first = Difference(frame, float(run.time[frame]), quantity, relative, float(distances[quantity][frame]))
        return ReplayTest(False, run.clock, run.frames, largest, first)

    def _distances(self, unit: "_Unit") -> np.ndarray:
        """How far the parameters of each frame are from those of the run, in units of one error."""
        distances = np.zeros(self.run.frames)
        for rows in pieces(self.run):
            if not self.rows.identical[rows].all():
                distances[rows] = unit.of_parameters(rows, self.rows.vectors(rows), vectors(self.run, rows))
        return distances

    def _allowed(self, unit: "_Unit") -> tuple[dict[str, np.ndarray], str]:
        """How far errors take a frame from the replay, in units of one error; infinite from where nothing is decided, and why.

        The looser replay is compared with this one frame by frame, and none of its frames is kept.
        """
        run, looser, replayed = self.run, unit.looser(self.run), self.rows
        shifted = {}
        for name, block in self.start.items():  # steps from 0 have the rounding of where they lead, a flow has its tolerance
            size = np.abs(block if unit.rtol or np.any(block) else run.params[name][1])
            shifted[name] = block + LOOSER * unit.eps * size * key(0, "replay", name).choice([-1.0, 1.0], size=np.shape(block))
        # where the looser replay broke down, what it had before is all that is known
        distances = {name: np.full(run.frames, np.inf) for name in ("parameters", *replayed.series)}
        errors = np.zeros(run.frames)
        with suppress(SolveFailed, TinyStart):
            with keeping(run):
                steps = frames(self.field, shifted, **looser, record=self.record(np.zeros(0)), measured=replayed.positions)
            for clock, vector in steps:
                if (row := replayed.row(clock)) is None:
                    continue
                rows = slice(row, row + 1)
                reference = replayed.vectors(rows)
                distances["parameters"][rows] = unit.of_parameters(rows, vector[None], reference)
                errors[rows] = np.nan_to_num(np.linalg.norm(vector - reference))
                for name, values in replayed.series.items():
                    distances[name][row] = _ratio(np.abs(clock[name] - values[row]), unit.series[name][row])
        allowed = {
            name: np.maximum.accumulate(np.where(np.isfinite(far), np.maximum(MARGIN * far, 1.0), 1.0))
            for name, far in distances.items()
        }
        allowed |= {"t": np.ones(run.frames)} if "t" in distances else {}
        if not (lost := np.flatnonzero(errors > _spacing(run))).size:
            return allowed, ""
        time = f"{run.clock} = {run.time[lost[0]]:.5g}"
        for name in ("parameters", *({"loss"} & set(allowed))):
            allowed[name][lost[0] :] = np.inf
        return (
            allowed,
            f"a replay decides nothing from {time} on: errors of solver and storage grow beyond the spacing of the frames",
        )


@dataclass(frozen=True)
class _Unit:
    """One error: what the solver allows itself in a step, and the rounding of what is stored."""

    run: Run
    rtol: float
    atol: float
    eps: float
    blocks: tuple[slice, ...]
    series: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, run: Run) -> "_Unit":
        flows = [part for part in parts_of(build(run.spec["dynamics"])) if isinstance(part, GradientFlow)]
        tolerances = ([part.rtol for part in flows], [part.atol or 0.0 for part in flows])
        ends = np.cumsum([0, *(int(np.prod(run.params[name].shape[1:])) for name in run.params)]).tolist()
        rtol, atol = (max(values, default=0.0) for values in tolerances)
        eps = precision(*(run.params[name][rows] for rows in pieces(run) for name in run.params))
        units = {"t": CLOCK_ROUNDINGS * eps * run.series["t"]} if "t" in run.series else {}
        if "loss" in run.series:  # a small loss is a difference of terms as large as those at the start
            loss = run.series["loss"]
            units["loss"] = np.full(run.frames, (rtol + max(eps, precision(loss))) * np.max(np.abs(loss)))
        return cls(run, rtol, atol, eps, tuple(map(slice, ends[:-1], ends[1:])), units)

    def of_series(self, name: str, values: np.ndarray) -> np.ndarray:
        """How far a series of numbers is from that of the run at each frame; infinite where it is not finite."""
        return _ratio(np.abs(values - np.asarray(self.run.series[name], dtype=float)), self.series[name])

    def of_parameters(self, rows: slice, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Distances of parameters at some frames of the run (rows,); infinite where one is not finite."""
        total = np.zeros(len(one))
        sizes = np.abs(vectors(self.run, slice(rows.start, rows.stop + 1)))
        for block in self.blocks:
            largest = np.append(sizes[:, block].max(axis=1, initial=0.0), 0.0)
            near = np.maximum(largest[:-1], largest[1:])[: len(one), None]  # a block of zeros is rounded as soon as it moves
            unit = self.rtol * sizes[: len(one), block] + self.atol + self.eps * near
            total += np.sum(_ratio(one[:, block] - other[:, block], unit) ** 2, axis=1)
        return np.sqrt(total / one.shape[1])

    def looser(self, run: Run) -> dict[str, Any]:
        """The motion of a run, with a solver that is `LOOSER` times less exact."""
        moving = motion(run)
        factor = max(1.0, min(LOOSER, LOOSEST / self.rtol)) if self.rtol else 1.0

        def loosened(part: Dynamics) -> Dynamics:
            if isinstance(part, GradientFlow):
                atol = None if part.atol is None else factor * part.atol
                return part.model_copy(update={"rtol": factor * part.rtol, "atol": atol})
            if isinstance(part, Forked):
                return part.model_copy(update={"before": loosened(part.before), "after": loosened(part.after)})
            return part

        return {**moving, "dynamics": loosened(moving["dynamics"])}


def _ratio(far: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Differences in a unit; 0 where there is none, infinite where one is not finite or nothing is allowed."""
    with np.errstate(all="ignore"):
        ratio = np.where(far == 0, 0.0, far / unit)
    return np.where(np.isfinite(ratio), ratio, np.inf)


def parts_of(dynamics: Dynamics) -> Iterator[Dynamics]:
    """A dynamics, or both parts of a fork."""
    if isinstance(dynamics, Forked):
        yield from parts_of(dynamics.before)
        yield from parts_of(dynamics.after)
    else:
        yield dynamics


def precision(*parts: np.ndarray) -> float:
    """The relative rounding of stored numbers: that of float32 where all of them are such, whatever they are stored as."""
    with np.errstate(over="ignore"):  # beyond float32
        single = all(np.array_equal(np.asarray(part, dtype=np.float32), part, equal_nan=True) for part in parts)
    return float(np.finfo(np.float32 if single else float).eps)


PIECE = 2**20
"""Numbers that are compared at once: 8 MiB of each array."""


def pieces(run: Run) -> Iterator[slice]:
    """The frames of a run, some at a time, so that no array of them is large."""
    width = sum(int(np.prod(run.params[name].shape[1:])) for name in run.params)
    step = max(1, PIECE // max(1, width))
    yield from (slice(start, min(start + step, run.frames)) for start in range(0, run.frames, step))


def vectors(run: Run, rows: slice) -> np.ndarray:
    """The parameters of some frames (rows, n), one block after another."""
    parts = [np.asarray(run.params[name][rows], dtype=float) for name in run.params]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def _spacing(run: Run) -> float:
    """The mean distance of neighbouring frames."""
    overlapping = (vectors(run, slice(rows.start, rows.stop + 1)) for rows in pieces(run))
    return float(np.concatenate([np.linalg.norm(np.diff(part, axis=0), axis=1) for part in overlapping]).mean())


@contextmanager
def no_tiny_start() -> Iterator[None]:
    """Where a run began so small that rounding decides, the error says what to do."""
    try:
        yield
    except TinyStart as tiny:
        advice = "so its events are not reliable; make it again from 1e-14 or more"
        raise StagescopeError(f"this run began where rounding decides ({tiny.args[0].partition(', but')[0]}), {advice}") from None
