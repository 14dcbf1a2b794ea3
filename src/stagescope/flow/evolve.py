"""The one verb: evolve a field from initial parameters, record it, and keep it safe while it runs."""

import gc
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagescope.core.errors import InputError, StagescopeError
from stagescope.core.own import fingerprint
from stagescope.core.params import Layout, Params, check_name
from stagescope.core.progress import progress_for
from stagescope.core.spec import Spec, digest
from stagescope.core.threads import one_blas_thread
from stagescope.flow.dynamics import FRAMES, Dynamics, Point, SolveFailed, State, require_motion
from stagescope.flow.field import Field, FlatField, Objective, as_field
from stagescope.flow.kept import kept_frames, kept_run
from stagescope.flow.record import Record, Refined, Stop, require_frames
from stagescope.runs import manifest as manifests
from stagescope.runs.arrays import Column, crc32c
from stagescope.runs.files import store_errors
from stagescope.runs.run import Arrays, Run, how_to_resume
from stagescope.runs.store import load
from stagescope.runs.writer import Writer, check_place, header


@dataclass(frozen=True)
class Origin:
    """Where a run comes from, for its manifest: the study and its options, and the equations it touches."""

    study: str | None = None
    config: Mapping[str, Any] | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Journey:
    """A field, a dynamics, and where frames are kept: everything that decides the numbers of a run."""

    field: Field
    layout: Layout
    dynamics: Dynamics
    positions: np.ndarray
    stop: Stop | None
    record: Record | None
    until: float | None
    seed: int = 0
    origin: Origin = Origin()

    @property
    def spec(self) -> Spec:
        parts = {"dynamics": self.dynamics, "record": self.record, "stop": self.stop}
        described = {name: part.describe() if part is not None else None for name, part in parts.items()}
        blocks = {name: list(shape) for name, shape in self.layout.shapes}
        return {"field": self.field.describe(), "blocks": blocks, "until": self.until, **described}

    def axes(self) -> dict[str, tuple[str, ...]]:
        named, clock = self.field.axes, self.dynamics.clock
        axes: dict[str, tuple[str, ...]] = dict.fromkeys(self.series, (clock,))
        for name, shape in self.layout.shapes:
            inner = named.get(name) or tuple(f"{name}_{i}" for i in range(len(shape)))
            axes[name] = (clock, *inner)
        return axes

    def walk(self, state: State) -> Iterator[Point]:
        first = {"first_stop": np.array(self.record.first_stop)} if isinstance(self.record, Refined) else {}
        return self.dynamics.walk(self.field, self.layout, {**state, **first}, self.positions)

    @property
    def series(self) -> tuple[str, ...]:
        return (*self.dynamics.times(0), *(("loss",) if self.field.objective else ()), "speed")


class Frame(NamedTuple):
    """What is recorded of a point: the clock, loss and speed by name, and all parameters."""

    series: dict[str, float]
    vector: np.ndarray


class FrameRecorder:
    """Turns a point into a frame."""

    def __init__(self, journey: Journey) -> None:
        self._journey, self._objective = journey, journey.field.objective
        self._flats: dict[int, FlatField] = {}
        self._velocity = np.empty(journey.layout.size)
        self._weights = journey.field.weights(journey.layout)

    def _flat(self, position: float) -> FlatField:
        """The field with the rates in force at a position."""
        dynamics, journey = self._journey.dynamics.in_force(position), self._journey
        if id(dynamics) not in self._flats:
            self._flats[id(dynamics)] = journey.field.flat(journey.layout, dynamics.block_rates(journey.layout.names))
        return self._flats[id(dynamics)]

    def frame(self, point: Point) -> Frame:
        vector, loss, speed = point.vector, point.loss, point.speed
        if speed is None or not math.isfinite(speed):
            loss = self._flat(point.position)(vector, self._velocity)
            speed = math.sqrt(np.dot(self._weights * self._velocity, self._velocity))
        series = self._journey.dynamics.times(point.position)
        if self._objective is not None:
            series["loss"] = self._objective.value(self._journey.layout.unpack(vector)) if loss is None else loss
            if not math.isfinite(series["loss"]):
                if point.position == 0:
                    raise InputError(f"the loss is {series['loss']} at the initial parameters: change them, or mend the loss")
                place = f"step {series['step']}" if "step" in series else f"t={series['t']:g}"
                raise SolveFailed("diverged", f"diverged at {place}: the loss is {series['loss']}; lower the rates")
        series["speed"] = speed
        return Frame(series, vector)


def advice(folder: Path, spec: Spec) -> str:
    """What to do after an interrupt."""
    return f"interrupted; {how_to_resume(folder, spec)}"


LARGE = 2**27
"""Bytes of a run before which what nobody can reach is freed: a run and its reading hold each other, and Python, which frees
such pairs after so many new objects, does not count bytes."""


class Memory:
    """Keeps frames in memory, in arrays of the planned length: what no frame reaches takes no memory of the machine."""

    advice = "interrupted; nothing was being saved (give out=FOLDER to keep a resumable run)"
    folder = None

    def __init__(self, first: Frame, journey: Journey) -> None:
        self._layout, self._series, self._waiting = journey.layout, [first.series], [first.vector]
        if 8 * len(journey.positions) * journey.layout.size > LARGE:
            gc.collect()
        self._blocks = {name: np.empty((len(journey.positions), *shape)) for name, shape in journey.layout.shapes}

    def take(self, frames: list[Frame]) -> None:
        self._series.extend(series for series, _ in frames)
        self._waiting.extend(vector for _, vector in frames)
        if len(self._waiting) >= FRAMES:
            self._write()

    def _write(self) -> None:
        """Move what waits into the blocks: many frames at once, because each write to each block takes its time."""
        end = len(self._series)
        if self._waiting:
            for name, block in self._layout.unpack(np.array(self._waiting)).items():
                self._blocks[name][end - len(block) : end] = block
        self._waiting = []

    def commit(self, state: State, event: str) -> None: ...

    def abandon(self) -> None: ...

    def finish(self, journey: Journey, status: str, reason: str, state: State) -> Run:
        self._write()
        return Run(
            params=Arrays.of({name: block[: len(self._series)] for name, block in self._blocks.items()}),
            series=Arrays.of({name: np.array([series[name] for series in self._series]) for name in journey.series}),
            spec=journey.spec,
            clock=journey.dynamics.clock,
            status=status,
            reason=reason,
            seed=journey.seed,
            study=journey.origin.study,
            config=journey.origin.config,
            tags=journey.origin.tags,
            axes=journey.axes(),
        )


class Disk:
    """Writes frames through the run store."""

    def __init__(self, writer: Any, layout: Layout) -> None:
        self._writer, self._layout = writer, layout
        self.commit, self.abandon = writer.commit, writer.close
        self.folder = writer.folder
        self.advice = advice(writer.folder, writer.manifest.spec)

    def take(self, frames: list[Frame]) -> None:
        for series, vector in frames:
            self._writer.frame({**series, **self._layout.unpack(vector)})

    def finish(self, journey: Journey, status: str, reason: str, state: State) -> Run:
        self._writer.finish(status, reason, state)
        return load(self._writer.folder)


def sink_for(journey: Journey, folder: Path | None, overwrite: bool, checksum: bool, first: Frame, state: State) -> Memory | Disk:
    """Memory, or a folder that has the first frame and the first state from the start."""
    if folder is None:
        return Memory(first, journey)
    axes = journey.axes()
    columns = {name: Column((), axes[name], "int64" if name == "step" else "float64") for name in journey.series}
    columns |= {name: Column(shape, axes[name]) for name, shape in journey.layout.shapes}
    columns = {name: replace(column, checksum=checksum) for name, column in columns.items()}
    origin, spec = journey.origin, journey.spec
    config = dict(origin.config) if origin.config is not None else None
    facts = {"study": origin.study, "config": config, "tags": origin.tags, "clock": journey.dynamics.clock}
    facts |= {"spec": spec, "seed": journey.seed, "config_digest": digest(config if config is not None else spec)}

    def begin(writer: Writer) -> None:
        writer.frame({**first.series, **journey.layout.unpack(first.vector)})
        writer.commit(state, "started")

    manifest = header(facts, columns, len(journey.positions))
    if spec["field"]["type"] == "own":
        manifest.environment["objective"] = fingerprint(journey.field.objective or journey.field)
    return Disk(Writer.create(folder, manifest, columns, begin, overwrite), journey.layout)


FIRST_COMMIT, NEXT_COMMIT = 0.1, 0.5
"""Least seconds to the first and between later commits of a run on disk; committing never changes a number."""
SERIES = ("t", "step", "loss", "speed")
QUIET: dict[str, Any] = {"over": "ignore", "invalid": "ignore"}
"""No warning on overflow: a loss that is not finite ends the run, and its outcome reports it."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C; what was committed is on disk, in `folder`, and can be resumed. A run in memory has none, and is lost.

    Examples:
        >>> issubclass(ss.Interrupted, KeyboardInterrupt)
        True
    """

    def __init__(self, sentence: str = "", folder: Path | None = None) -> None:
        super().__init__(sentence)
        self.folder = folder


@kept_run
@one_blas_thread()
def evolve(
    what: Objective | Field,
    params: Params,
    dynamics: Dynamics,
    *,
    until: float | None = None,
    record: Record | None = None,
    stop: Stop | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    overwrite: bool = False,
    checksum: bool = False,
    progress: bool | None = None,
    origin: Origin | None = None,
) -> Run:
    """Move `params` along the field and return the run; with `out`, write it there as it goes.

    With `checksum`, every chunk ends with a CRC32C, so that other Zarr readers see damage too; ours see it by SHA-256.
    `until` ends a flow; a descent counts its own steps. A solve that breaks down is an outcome, not an exception: the
    run's `status` and `reason` say so. Ctrl-C raises `Interrupted` after the last commit. BLAS has one thread meanwhile, so
    that the bits of a run do not depend on who started it.

    Args:
        what: an objective or a field.
        params: the start, a dict of arrays.
        dynamics: `GradientFlow` or `Descent`.
        until: the end of a flow.
        record: which frames are kept.
        stop: ends the run early.
        seed: kept in the run; a dynamics that draws uses it.
        out: a folder for the run.
        overwrite: replace a run in this folder.
        checksum: end every chunk with a CRC32C.
        progress: show a bar; None shows it on a terminal.
        origin: where the run begins if not at its start; for forks.

    Returns:
        The run. Its `status` says how it ended.

    Examples:
        >>> flow = ss.evolve(well, {"x": np.full(1, 0.1)}, ss.GradientFlow(), until=20)
        >>> flow.status, flow.params["x"][-1].round(4).tolist()
        ('finished', [1.0])
    """
    law, layout, vector, settled = _settled(what, params, dynamics)
    folder = None if out is None else Path(out)
    require_frames(record, getattr(dynamics, "steps", None), layout.size, folder, settled.waiting)
    positions = settled.positions(record, until)
    if checksum:
        if folder is None:
            raise InputError("checksum is for chunks on disk, and this run stays in memory; give out=FOLDER")
        crc32c()  # refuses before any work where no package computes it
    journey = Journey(law, layout, settled, positions, stop, record, until, seed, origin or Origin())
    if folder is not None:
        with store_errors(folder):
            check_place(folder, overwrite)  # refuses a folder that is in use before any work is done
    state, recorder = settled.start(law, layout, vector), FrameRecorder(journey)
    with np.errstate(**QUIET):
        first = recorder.frame(Point(0.0, vector, frame=True, state=state))
    if not vector.any():  # a start that nothing moves away from is refused
        horizon = settled.times(float(positions[-1])).get("t", math.inf)
        require_motion(law, layout.unpack(vector), first.series["speed"], horizon)
    reason = stop.met(first.series) if stop is not None else None
    if reason:
        return sink_for(journey, folder, overwrite, checksum, first, state).finish(journey, "stopped", reason, state)
    points = _primed(journey.walk(state))
    try:
        run = _drive(journey, sink_for(journey, folder, overwrite, checksum, first, state), state, recorder, points, progress)
        run.memo["evolved"] = run.params, run.series, run.spec
        return run
    except KeyboardInterrupt as interrupt:
        if isinstance(interrupt, Interrupted) or folder is None or not _begun(folder, journey):
            raise
        raise Interrupted(advice(folder, journey.spec), folder) from None


def just_evolved(run: Run) -> bool:
    """Whether a run has the very arrays that `evolve` made in this process; one of other arrays or from a folder has not."""
    parts = run.memo.get("evolved", ())
    return len(parts) == 3 and all(before is now for before, now in zip(parts, (run.params, run.series, run.spec), strict=True))


@kept_frames
def frames(
    what: Objective | Field,
    params: Params,
    dynamics: Dynamics,
    *,
    until: float | None = None,
    record: Record | None = None,
    measured: np.ndarray | None = None,
) -> Iterator[tuple[dict[str, float], np.ndarray]]:
    """The frames that `evolve` would record, one after another, each as its clock and the flat vector of its parameters.

    None is kept: this is for a reader who needs less of each than the parameters. At the positions `measured` loss and speed
    come with the clock. A solve that breaks down raises `SolveFailed`.
    """
    law, layout, vector, settled = _settled(what, params, dynamics)
    state = settled.start(law, layout, vector)
    journey = Journey(law, layout, settled, settled.positions(record, until), None, record, until)
    recorder, complete = FrameRecorder(journey), frozenset(() if measured is None else measured.tolist())
    points = chain((Point(0.0, vector, frame=True, state=state),), journey.walk(state))
    with one_blas_thread():
        while True:
            with np.errstate(**QUIET):  # not around a yield: it would hold for the caller too
                point = next(points, None)
                if point is None:
                    return
                series = recorder.frame(point).series if point.position in complete else settled.times(point.position)
            if point.frame:
                yield series, point.vector


def _settled(what: Objective | Field, params: Params, dynamics: Dynamics) -> tuple[Field, Layout, np.ndarray, Dynamics]:
    """The field, the blocks, the flat initial parameters, and the dynamics with every choice made that depends on them."""
    law = as_field(what)
    params = _checked(params, law)
    layout = Layout.of(params)
    vector = layout.pack(params)
    dynamics.block_rates(layout.names)  # refuses rates of blocks that are not there
    return law, layout, vector, dynamics.settled(law, layout, vector)


def _begun(folder: Path, journey: Journey) -> bool:
    """Whether the folder has this run already: an interrupt may come between its first commit and its first step."""
    with suppress(StagescopeError):
        manifest = manifests.read(folder)
        return manifest.status == "running" and manifest.spec == journey.spec
    return False


@one_blas_thread()
def proceed(journey: Journey, folder: Path, progress: bool | None = None) -> Run:
    """Continue a run on disk from its last commit; its arrays end up bitwise those of an uninterrupted run."""
    recorder = FrameRecorder(journey)
    writer, state = Writer.reopen(folder)
    return _drive(journey, Disk(writer, journey.layout), state, recorder, None, progress)


def _checked(params: Params, law: Field) -> dict[str, np.ndarray]:
    if not isinstance(params, Mapping):
        raise InputError(f"parameters must be blocks by name, such as {{'W': array}}, got {type(params).__name__}")
    if not params:
        raise InputError("no parameters given")
    names = list(law.axes) or list(params)
    if set(names) != set(params):
        raise InputError(f"this model has parameter blocks {names}, got {sorted(params)}")
    arrays = {name: np.array(params[name], dtype=float) for name in names}
    for name, block in arrays.items():
        check_name(name, SERIES)
        if block.shape != law.shapes.get(name, block.shape):
            raise InputError(f"block {name} of this model has shape {law.shapes[name]}, got {block.shape}")
        if not np.all(np.isfinite(block)):
            raise InputError(f"initial {name} has entries that are not finite")
    return arrays


def _primed(points: Iterator[Point]) -> Iterator[Point]:
    """The same points, the first one made now: what has to be compiled is, before the run's folder appears."""
    try:
        first = next(points, None)
    except SolveFailed as failure:
        return _failing(failure)
    return chain(() if first is None else (first,), points)


def _failing(failure: SolveFailed) -> Iterator[Point]:
    raise failure
    yield  # makes this an iterator, so that the failure is met where the walk is followed


def _drive(
    journey: Journey,
    sink: Memory | Disk,
    state: State,
    recorder: FrameRecorder,
    points: Iterator[Point] | None,
    progress: bool | None,
) -> Run:
    """Follow the points to the end; none are given for a run that is resumed: they are made here, under its lock."""
    total = float(journey.positions[-1])
    with progress_for(progress) as bar:
        bar.begin(journey.origin.study or "evolve", total, "step" if "step" in journey.series else "t")
        try:
            if points is None:
                points = _primed(journey.walk(state))
                sink.commit(state, "resumed")
            outcome = _follow(journey, sink, state, recorder, points, bar)
        except KeyboardInterrupt:
            sink.abandon()
            raise Interrupted(sink.advice, sink.folder) from None
        except BaseException:
            sink.abandon()
            raise
    return outcome


@np.errstate(**QUIET)
def _follow(
    journey: Journey, sink: Memory | Disk, state: State, recorder: FrameRecorder, points: Iterator[Point], bar: Any
) -> Run:
    """Frames wait until there is a state after them, so that what is committed can always be continued from."""
    status, reason, due = "finished", "", time.monotonic() + FIRST_COMMIT
    waiting: list[Frame] = []
    handing_over = False
    try:
        for point in points:
            if point.frame:
                frame = recorder.frame(point)
                waiting.append(frame)
                bar.update(point.position, frame.series.get("loss"))
                reason = journey.stop.met(frame.series) or "" if journey.stop else ""
            if point.state is not None:
                handing_over = True
                sink.take(waiting)
                state, waiting = point.state, []
                if not reason and time.monotonic() > due:
                    sink.commit(state, "checkpoint")
                    due = time.monotonic() + NEXT_COMMIT
                    bar.update(point.position)
                handing_over = False
            if reason:
                status = "stopped"
                break
    except SolveFailed as failure:
        status, reason = failure.status, str(failure)
    except KeyboardInterrupt:
        if not handing_over:  # else the last commit stands
            sink.commit(state, "checkpoint")
        raise
    sink.take(waiting)
    return sink.finish(journey, status, reason, state)
