"""The one verb: evolve a field from initial parameters, record it, and keep it safe while it runs."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.dynamics.dynamics import Dynamics, Point, SolveFailed, State, require_motion
from stagescope.dynamics.journey import Camera, Frame, Journey, Origin
from stagescope.dynamics.record import Record, Stop, require_frames
from stagescope.dynamics.sinks import Disk, Memory, advice, check_checksum, sink_for
from stagescope.errors import InputError, StagescopeError
from stagescope.fields.field import Field
from stagescope.fields.objective import Objective, as_field
from stagescope.params import Layout, Params, check_name
from stagescope.progress import progress_for
from stagescope.runs import manifest as manifests
from stagescope.runs.files import store_errors
from stagescope.runs.run import Run
from stagescope.runs.writer import Writer, check_place
from stagescope.threads import one_blas_thread

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

    def __init__(self, said: str = "", folder: Path | None = None) -> None:
        super().__init__(said)
        self.folder = folder


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
        check_checksum(folder)
    journey = Journey(law, layout, settled, positions, stop, record, until, seed, origin or Origin())
    if folder is not None:
        with store_errors(folder):
            check_place(folder, overwrite)  # refuses a folder that is in use before any work is done
    state, camera = settled.start(law, layout, vector), Camera(journey)
    first = _first(journey, camera, vector, state)
    reason = stop.met(first.series) if stop is not None else None
    if reason:
        return sink_for(journey, folder, overwrite, checksum, first, state).finish(journey, "stopped", reason, state)
    points = _primed(journey.walk(state))
    try:
        return _drive(journey, sink_for(journey, folder, overwrite, checksum, first, state), state, camera, points, progress)
    except KeyboardInterrupt as interrupt:
        if isinstance(interrupt, Interrupted) or folder is None or not _begun(folder, journey):
            raise
        raise Interrupted(advice(folder, journey.spec), folder) from None


def frames(
    what: Objective | Field, params: Params, dynamics: Dynamics, *, until: float | None = None, record: Record | None = None
) -> Iterator[tuple[dict[str, float], np.ndarray]]:
    """The frames that `evolve` would record, one after another, each as its clock and the flat vector of its parameters.

    None is kept: this is for a reader who needs less of each than the parameters. A solve that breaks down raises `SolveFailed`.
    """
    law, layout, vector, settled = _settled(what, params, dynamics)
    points = settled.walk(law, layout, settled.start(law, layout, vector), settled.positions(record, until))
    with one_blas_thread():
        yield settled.times(0.0), vector
        while True:
            with np.errstate(**QUIET):  # not around a yield: it would hold for the caller too
                point = next(points, None)
            if point is None:
                return
            if point.frame:
                yield settled.times(point.position), point.vector


def _settled(what: Objective | Field, params: Params, dynamics: Dynamics) -> tuple[Field, Layout, np.ndarray, Dynamics]:
    """The field, the blocks, the flat initial parameters, and the dynamics with every choice made that depends on them."""
    law = as_field(what)
    params = _checked(params, law)
    layout = Layout.of(params)
    vector = layout.pack(params)
    dynamics.block_rates(layout.names)  # refuses rates of blocks that are not there
    return law, layout, vector, dynamics.settled(law, layout, vector)


def _first(journey: Journey, camera: Camera, vector: np.ndarray, state: State) -> Frame:
    """The frame of the start, which must not be one that nothing moves away from."""
    with np.errstate(**QUIET):
        first = camera.frame(Point(0.0, vector, frame=True, state=state))
    if not vector.any():
        until = journey.dynamics.times(float(journey.positions[-1])).get("t", math.inf)
        require_motion(journey.field, journey.layout.unpack(vector), first.series["speed"], until)
    return first


def _begun(folder: Path, journey: Journey) -> bool:
    """Whether the folder has this run already: an interrupt may come between its first commit and its first step."""
    with suppress(StagescopeError):
        found = manifests.read(folder)
        return found.status == "running" and found.spec == journey.spec
    return False


@one_blas_thread()
def proceed(journey: Journey, folder: Path, progress: bool | None = None) -> Run:
    """Continue a run on disk from its last commit; its arrays end up bitwise those of an uninterrupted run."""
    camera = Camera(journey)
    writer, state = Writer.reopen(folder)
    return _drive(journey, Disk(writer, journey.layout), state, camera, None, progress)


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
    camera: Camera,
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
            raise Interrupted(sink.advice, sink.folder) from None
        except BaseException:
            sink.abandon()
            raise
    return outcome


@np.errstate(**QUIET)
def _follow(journey: Journey, sink: Memory | Disk, state: State, camera: Camera, points: Iterator[Point], bar: Any) -> Run:
    """Frames wait until there is a state after them, so that what is committed can always be continued from."""
    status, reason, due = "finished", "", time.monotonic() + FIRST_COMMIT
    waiting: list[Frame] = []
    handing_over = False
    try:
        for point in points:
            if point.frame:
                frame = camera.frame(point)
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
