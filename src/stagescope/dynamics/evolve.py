"""The one verb: evolve a field from initial parameters, record it, and keep it safe while it runs."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.dynamics.dynamics import Dynamics, Point, SolveFailed, State, require_motion
from stagescope.dynamics.record import Record, Stop, require_frames
from stagescope.errors import InputError, StagescopeError
from stagescope.fields.field import Field, FlatField
from stagescope.fields.objective import Objective, as_field
from stagescope.own import fingerprint
from stagescope.params import Layout, Params, check_name
from stagescope.progress import progress_for
from stagescope.runs import manifest as manifests
from stagescope.runs.arrays import Column, crc32c
from stagescope.runs.files import store_errors
from stagescope.runs.run import Arrays, Run, how_to_resume
from stagescope.runs.saving import header
from stagescope.runs.store import load
from stagescope.runs.writer import Writer, check_place
from stagescope.spec import Spec, digest
from stagescope.threads import one_blas_thread

FIRST_COMMIT, NEXT_COMMIT = 0.1, 0.5
"""Least seconds to the first and between later commits of a run on disk; committing never changes a number."""
SERIES = ("t", "step", "loss", "speed")
QUIET: dict[str, Any] = {"over": "ignore", "invalid": "ignore"}
"""No warning on overflow: a loss that is not finite ends the run, and its outcome reports it."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C; what was committed is on disk and can be resumed."""


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
        return self.dynamics.walk(self.field, self.layout, state, self.positions)

    @property
    def series(self) -> tuple[str, ...]:
        return (*self.dynamics.times(0), *(("loss",) if self.field.objective else ()), "speed")


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
    """
    law = as_field(what)
    params = _checked(params, law)
    layout = Layout.of(params)
    vector = layout.pack(params)
    dynamics.block_rates(layout.names)
    settled = dynamics.settled(law, layout, vector)
    folder = None if out is None else Path(out)
    require_frames(record, getattr(dynamics, "steps", None), layout.size, folder, getattr(dynamics, "segments", 1))
    positions = settled.positions(record, until)
    if checksum:
        _check_checksum(out)
    journey = Journey(law, layout, settled, positions, stop, record, until, seed, origin or Origin())
    if folder is not None:
        with store_errors(folder):
            check_place(folder, overwrite)  # refuses a folder that is in use before any work is done
    state, camera = settled.start(law, layout, vector), _Camera(journey)
    with np.errstate(**QUIET):
        first = camera.frame(Point(0.0, vector, frame=True, state=state))
    if not vector.any():
        require_motion(law, params, first["speed"], settled.times(float(positions[-1])).get("t", math.inf))
    reason = stop.met(first) if stop is not None else None
    if reason:
        return _sink(journey, out, overwrite, checksum, first, state).finish(journey, "stopped", reason, state)
    points = _primed(journey.walk(state))
    try:
        return _drive(journey, _sink(journey, out, overwrite, checksum, first, state), state, camera, points, progress)
    except KeyboardInterrupt as interrupt:
        if isinstance(interrupt, Interrupted) or out is None or not _begun(Path(out), journey):
            raise
        raise Interrupted(_advice(Path(out), journey.spec)) from None


def _begun(folder: Path, journey: Journey) -> bool:
    """Whether the folder has this run already: an interrupt may come between its first commit and its first step."""
    with suppress(StagescopeError):
        found = manifests.read(folder)
        return found.status == "running" and found.spec == journey.spec
    return False


def _advice(folder: Path, spec: Spec) -> str:
    return f"interrupted; {how_to_resume(folder, spec)}"


@one_blas_thread()
def proceed(journey: Journey, folder: Path, progress: bool | None = None) -> Run:
    """Continue a run on disk from its last commit; its arrays end up bitwise those of an uninterrupted run."""
    camera = _Camera(journey)
    writer, state = Writer.reopen(folder)
    return _drive(journey, _Disk(writer), state, camera, None, progress)


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
    sink: "_Memory | _Disk",
    state: State,
    camera: "_Camera",
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
            outcome = _follow(journey, sink, state, camera, points, bar)
        except KeyboardInterrupt:
            sink.abandon()
            raise Interrupted(sink.advice) from None
        except BaseException:
            sink.abandon()
            raise
    return outcome


@np.errstate(**QUIET)
def _follow(journey: Journey, sink: "_Memory | _Disk", state: State, camera: "_Camera", points: Iterator[Point], bar: Any) -> Run:
    """Frames wait until there is a state after them, so that what is committed can always be continued from."""
    status, reason, due = "finished", "", time.monotonic() + FIRST_COMMIT
    waiting: list[dict[str, Any]] = []
    handing_over = False
    try:
        for point in points:
            if point.frame:
                frame = camera.frame(point)
                waiting.append(frame)
                bar.update(point.position, frame.get("loss"))
                reason = journey.stop.met(frame) or "" if journey.stop else ""
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


class _Camera:
    """Turns a point into a frame: parameters by name, the clock, loss and speed."""

    def __init__(self, journey: Journey) -> None:
        field, layout = journey.field, journey.layout
        where, counts = layout.slices(), field.multiplicity
        self._journey, self._objective = journey, field.objective
        self._flats: dict[int, FlatField] = {}
        self._velocity = np.empty(layout.size)
        self._blocks = [(name, where[name], shape) for name, shape in layout.shapes]
        self._counts = layout.pack({name: np.broadcast_to(counts.get(name, 1.0), shape) for name, shape in layout.shapes})

    def _flat(self, position: float) -> FlatField:
        """The field with the rates in force at a position."""
        moved, journey = self._journey.dynamics.in_force(position), self._journey
        if id(moved) not in self._flats:
            self._flats[id(moved)] = journey.field.flat(journey.layout, moved.block_rates(journey.layout.names))
        return self._flats[id(moved)]

    def frame(self, point: Point) -> dict[str, Any]:
        vector, velocity = point.vector, self._velocity
        loss = self._flat(point.position)(vector, velocity)
        params = {name: vector[where].reshape(shape) for name, where, shape in self._blocks}
        frame: dict[str, Any] = {**self._journey.dynamics.times(point.position), **params}
        if self._objective is not None:
            frame["loss"] = self._objective.value(params) if loss is None else loss
            if not math.isfinite(frame["loss"]):
                if point.position == 0:
                    raise InputError(f"the loss is {frame['loss']} at the initial parameters: change them, or mend the loss")
                where = f"step {frame['step']}" if "step" in frame else f"t={frame['t']:g}"
                raise SolveFailed("diverged", f"diverged at {where}: the loss is {frame['loss']}; lower the rates")
        frame["speed"] = math.sqrt(np.dot(self._counts * velocity, velocity))
        return frame


class _Memory:
    """Keeps frames in memory."""

    advice = "interrupted; nothing was being saved (give out=FOLDER to keep a resumable run)"

    def __init__(self, first: dict[str, Any]) -> None:
        self._frames = [first]

    def take(self, frames: list[dict[str, Any]]) -> None:
        self._frames.extend(frames)

    def commit(self, state: State, event: str) -> None: ...

    def abandon(self) -> None: ...

    def finish(self, journey: Journey, status: str, reason: str, state: State) -> Run:
        stacked = {name: np.array([frame[name] for frame in self._frames]) for name in journey.axes()}
        return Run(
            params=Arrays.of({name: stacked[name] for name in journey.layout.names}),
            series=Arrays.of({name: stacked[name] for name in journey.series}),
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


class _Disk:
    """Writes frames through the run store."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self.commit, self.abandon = writer.commit, writer.close
        self.advice = _advice(writer.folder, writer.manifest.spec)

    def take(self, frames: list[dict[str, Any]]) -> None:
        for frame in frames:
            self._writer.frame(frame)

    def finish(self, journey: Journey, status: str, reason: str, state: State) -> Run:
        self._writer.finish(status, reason, state)
        return load(self._writer.folder)


def _check_checksum(out: str | Path | None) -> None:
    """Before any work: there must be a folder for the checksums, and a package that computes them."""
    if out is None:
        raise InputError("checksum is for chunks on disk, and this run stays in memory; give out=FOLDER")
    crc32c()


def _sink(
    journey: Journey, out: str | Path | None, overwrite: bool, checksum: bool, first: dict[str, Any], state: State
) -> _Memory | _Disk:
    if out is None:
        return _Memory(first)
    axes = journey.axes()
    columns = {name: Column((), axes[name], "int64" if name == "step" else "float64") for name in journey.series}
    columns |= {name: Column(shape, axes[name]) for name, shape in journey.layout.shapes}
    columns = {name: replace(column, checksum=checksum) for name, column in columns.items()}
    origin, spec = journey.origin, journey.spec
    config = dict(origin.config) if origin.config is not None else None
    facts = {"study": origin.study, "config": config, "tags": origin.tags, "clock": journey.dynamics.clock}
    facts |= {"spec": spec, "seed": journey.seed, "config_digest": digest(config if config is not None else spec)}

    def begin(writer: Writer) -> None:
        writer.frame(first)
        writer.commit(state, "started")

    manifest = header(facts, columns, len(journey.positions))
    if spec["field"]["type"] == "own":
        manifest.environment["objective"] = fingerprint(journey.field.objective or journey.field)
    return _Disk(Writer.create(Path(out), manifest, columns, begin, overwrite))
