"""Record named arrays of any program, step by step, as a run: crash-safe on disk, or in memory."""

import json
import operator
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from stagescope.core.errors import InputError, StagescopeError, message
from stagescope.core.spec import digest
from stagescope.runs import manifest as manifests
from stagescope.runs.arrays import Column
from stagescope.runs.from_arrays import check_free, numbers
from stagescope.runs.run import DONE, Arrays, Run
from stagescope.runs.store import load
from stagescope.runs.writer import Writer, check_place, header

CLOCK = "step"
_SMALLER = "record a part of it, or a mean over one of its axes"

Frame = dict[str, np.ndarray]
Axes = Mapping[str, tuple[str, ...]]


def columns_of(arrays: Mapping[str, Any], axes: Axes, blocks: tuple[str, ...]) -> tuple[Frame, dict[str, Column]]:
    """The first record and the columns that it fixes."""
    if not arrays:
        raise InputError("there is nothing beside the step; give the loss as loss=..., or any other array by a name")
    for kind, names in (("axes", axes), ("blocks", blocks)):
        for name in names:
            if name not in arrays:
                raise InputError(f"{kind} names {name!r}, which is not recorded; recorded: {', '.join(arrays)}")
    frame = {}
    for name, value in arrays.items():
        check_free(name)
        frame[name] = array = _array(name, value)
        if not array.size:
            raise InputError(f"{name} has shape {array.shape} and holds no number; leave it out")
        if name == "loss" and array.ndim:
            raise InputError(f"loss has shape {array.shape}, expected one number; average it, or rename the array")
    columns = {name: _column(name, value, axes.get(name)) for name, value in frame.items()}
    # an axis has one length in all arrays: other tools, such as xarray, open the run only then
    first: dict[str, tuple[str, int]] = {}
    for name, column in columns.items():
        for axis, size in zip(column.axes[1:], column.shape, strict=True):
            owner, length = first.setdefault(axis, (name, size))
            if length != size:
                raise InputError(f"the axis {axis!r} has {length} items in {owner} and {size} in {name}; give it two names")
    return frame, columns


def fitted(arrays: Mapping[str, Any], columns: Mapping[str, Column]) -> Frame:
    """A later record in the types of the first; one with other names, shapes or types is refused."""
    names = [name for name in columns if name != CLOCK]
    for name in names:
        if name not in arrays:
            raise InputError(f"{name} is missing; give every array at every record, NaN where it is not known")
    for name in arrays:
        if name not in columns:
            raise InputError(f"{name} was not in the first record; give it from the first record on, NaN where it is not known")
    frame = {}
    for name in names:
        array, column = _array(name, arrays[name]), columns[name]
        if array.shape != column.shape:
            remedy = "give it one shape throughout"
            raise InputError(f"{name} has shape {array.shape}, in the first record it had {column.shape}; {remedy}")
        if not np.can_cast(array.dtype, column.dtype, "safe"):
            remedy = f"convert it, or give {array.dtype} from the first record on"
            raise InputError(f"{name} is {array.dtype}, in the first record it was {column.dtype}; {remedy}")
        frame[name] = array.astype(column.dtype)
    return frame


def _array(name: str, value: Any) -> np.ndarray:
    """A copy: the program may change its arrays afterwards. A tensor of PyTorch is taken from its graph and its device."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu()
    return numbers(name, value, _SMALLER)


def _column(name: str, value: np.ndarray, axes: tuple[str, ...] | None) -> Column:
    named = tuple(f"{name}_{i}" for i in range(value.ndim)) if axes is None else axes
    if len(named) != value.ndim:
        raise InputError(
            f"{name} has shape {value.shape}, and axes names {len(named)}: {named}; name each of its axes, without time"
        )
    if len({CLOCK, *named}) != 1 + len(named):
        raise InputError(f"the axes {named} of {name} are not different from each other and from {CLOCK!r}; rename one")
    return Column(value.shape, (CLOCK, *named), str(value.dtype))


STATUSES = (*DONE, "diverged", "failed")


class Recorder:
    """Keeps what a program gives it at each step, as a run that `stages`, `report` and everything else take.

    Args:
        out: folder of the run; without one it is kept in memory.
        axes: names of the axes of an array, without time, such as `{"attention": ("head", "query", "key")}`.
        source: facts about where the arrays come from, in JSON, with a `kind`.
        blocks: names of the arrays that are parameters of the model; they are found in `run.params`.
        record: when the program records, in JSON; it is only kept in the spec.
        planned: how many records there will be, if known.
        overwrite: replace a run that is in the folder.
        resume: continue the run in the folder after its last commit; where there is none, begin it.
        every: commit after so many records. A commit waits five times for the disk; a crash loses what came after the last one.

    Examples:
        >>> with ss.Recorder() as recorder:
        ...     for step in range(50):
        ...         recorder.record(step, loss=1 / (step + 1))
        >>> recorder.run.frames
        50
    """

    def __init__(
        self,
        out: str | Path | None = None,
        *,
        axes: Mapping[str, Iterable[str]] | None = None,
        source: Mapping[str, Any] | None = None,
        blocks: Iterable[str] = (),
        record: Any = None,
        planned: int | None = None,
        overwrite: bool = False,
        resume: bool = False,
        every: int = 10,
    ) -> None:
        self._out = None if out is None else Path(out)
        self._axes = {name: tuple(names) for name, names in (axes or {}).items()}
        self._blocks, self._planned, self._overwrite = tuple(blocks), _count("planned", planned), overwrite
        self._every = _count("every", every) or 1
        self.source: dict[str, Any] = _json("source", {"kind": "recorded"} if source is None else dict(source))
        self._record = _json("record", record)
        if not isinstance(self.source.get("kind"), str):
            raise InputError("source has no kind; say where the arrays come from, such as source={'kind': 'recorded'}")
        self.steps: list[int] = []
        self._durable: int | None = None
        self._columns: dict[str, Column] = {}
        self._frames: list[Frame] = []
        self._writer: Writer | None = None
        self._begun = False
        self._status, self._reason = "running", ""
        if self._out is None:
            return
        if resume and overwrite:
            raise InputError("resume and overwrite exclude each other; give one of them")
        if resume and self._out.exists() and not (self._out.is_dir() and not any(self._out.iterdir())):
            self._resume(self._out)
        else:
            check_place(self._out, overwrite)

    @property
    def last(self) -> int | None:
        """The step of the last record, after a resume that of the last committed one; None before any."""
        return self.steps[-1] if self.steps else None

    @property
    def committed(self) -> int | None:
        """The step of the last record that is safe: on disk, or in memory where there is no folder; None before any."""
        return self.last if self._out is None else self._durable

    def record(self, step: int, **arrays: Any) -> None:
        """Keep the arrays of one step. The first record fixes their names, shapes and types; steps must rise."""
        self._require_open()
        number = _step(step, self.last)
        if self._columns:
            frame = fitted(arrays, self._columns)
        else:
            frame, columns = columns_of(arrays, self._axes, self._blocks)
            self._columns = {CLOCK: Column((), (CLOCK,), "int64"), **columns}
        self._frames.append({CLOCK: np.array(number), **frame})
        self.steps.append(number)
        if self._out is not None and (not self._begun or len(self._frames) >= self._every):
            self.commit()

    def commit(self) -> None:
        """Make all records up to now durable. If it fails, they are kept, and the next commit tries again."""
        self._require_open()
        if self._out is None or not self._frames:
            return
        try:
            writer = self._open_writer(self._out)
            for frame in self._frames:
                writer.frame(frame)
            if self._frames:
                writer.commit(self._state())
            self._frames, self._durable = [], self.last
        except BaseException:  # half a commit may be on disk: what is there is read again before the next
            self._drop()
            raise

    def close(self) -> None:
        """Commit and let go of the folder; the run can be resumed. Twice does no harm."""
        if self._status != "running":
            return
        try:
            self.commit()
        finally:
            self._status, self._reason = "interrupted", "it was closed before its end"
            self._drop()

    def finish(self, status: str = "finished", reason: str = "") -> None:
        """End the run with its outcome; it cannot be resumed any more."""
        self._require_open()
        if status not in STATUSES:
            raise InputError(f"there is no status {status!r} of a run that has ended; use one of {', '.join(STATUSES)}")
        self.commit()
        if self._out is not None and self._begun:
            try:
                self._open_writer(self._out).finish(status, reason, self._state())
            except BaseException:
                self._drop()
                raise
        self._status, self._reason = status, reason

    @property
    def run(self) -> Run:
        """The run with all records up to now."""
        if not self.steps:
            raise InputError("nothing was recorded; call record(step, loss=...) first")
        if self._out is not None:
            if self._status == "running":
                self.commit()
            return load(self._out)
        arrays = {name: np.array([frame[name] for frame in self._frames], column.dtype) for name, column in self._columns.items()}
        return Run(
            params=Arrays.of({name: arrays[name] for name in arrays if name in self._blocks}),
            series=Arrays.of({name: arrays[name] for name in arrays if name not in self._blocks}),
            spec=self._spec(),
            clock=CLOCK,
            status=self._status,
            reason=self._reason,
            seed=None,
            axes={name: column.axes for name, column in self._columns.items()},
        )

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            if self._status == "running":
                self.finish()
            return
        try:
            self.close()
        except StagescopeError as second:  # the first error is what the program has to tell
            error.add_note(f"the last records were not committed: {message(second)}")

    def _require_open(self) -> None:
        if self._status != "running":
            remedy = "make a new Recorder"
            if self._status == "interrupted" and self._out is not None:
                remedy = f"continue with ss.Recorder({str(self._out)!r}, resume=True)"
            raise InputError(f"this recorder is closed, its run is {self._status}; {remedy}")

    def _state(self) -> dict[str, np.ndarray]:
        return {"position": np.array(self.steps[-1])}

    def _spec(self) -> dict[str, Any]:
        blocks = {name: list(self._columns[name].shape) for name in self._blocks}
        nothing = dict.fromkeys(("field", "until", "dynamics", "stop"))
        return {**nothing, "record": self._record, "source": self.source, "blocks": blocks}

    def _open_writer(self, folder: Path) -> Writer:
        """The writer. The first commit makes the folder; after one that failed, what it left is opened again."""
        if self._writer is None and self._begun:
            self._writer, _ = Writer.reopen(folder)
            last = int(load(folder).step[-1])
            self._frames = [frame for frame in self._frames if frame[CLOCK] > last]
        elif self._writer is None:
            self._writer = self._created(folder)
        return self._writer

    def _created(self, folder: Path) -> Writer:
        """A new folder, moved into its place with the first records inside."""
        spec = self._spec()
        facts = {"spec": spec, "clock": CLOCK, "seed": None, "config_digest": digest(spec)}

        def begin(writer: Writer) -> None:
            for frame in self._frames:
                writer.frame(frame)
            writer.commit(self._state(), "started")

        writer = Writer.create(folder, header(facts, self._columns, self._planned), self._columns, begin, self._overwrite)
        self._begun, self._frames = True, []
        return writer

    def _drop(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _resume(self, folder: Path) -> None:
        self._check_same(folder, manifests.read(folder))
        self._writer, _ = Writer.reopen(folder)
        try:
            stored_run = load(folder)
            self.steps = stored_run.step.tolist()
            self._columns = self._writer.columns
            for name, names in self._axes.items():
                if name not in self._columns:
                    raise InputError(f"axes names {name!r}, which {folder} does not record; choose another folder")
                stored = self._columns[name].axes[1:]
                if names != stored:
                    remedy = "give the same, or choose another folder"
                    raise InputError(f"{name} has the axes {stored} in {folder}, got {names}; {remedy}")
            self.source, self._begun = stored_run.spec["source"], True
            self._blocks = tuple(stored_run.spec["blocks"])
            self._writer.commit(self._state(), "resumed")
            self._durable = self.last
        except BaseException:
            self._drop()
            raise

    def _check_same(self, folder: Path, manifest: manifests.Manifest) -> None:
        """Refuse to continue what is not an unfinished run of this kind."""
        kind = None if manifest.spec["field"] is not None else manifest.spec["source"]["kind"]
        if kind != self.source["kind"]:
            contents = "a run of a field" if kind is None else f"a run of source kind {kind!r}"
            raise InputError(f"{folder} holds {contents}, not of {self.source['kind']!r}; choose another folder")
        if manifest.status != "running":
            remedy = "choose another folder, or overwrite=True to replace the run"
            raise InputError(f"{folder} is {manifest.status}, so there is nothing to resume; {remedy}")
        blocks = list(manifest.spec["blocks"])
        if sorted(blocks) != sorted(self._blocks):
            raise InputError(
                f"{folder} has the blocks {blocks}, got {list(self._blocks)}; give the same, or choose another folder"
            )


def _count(name: str, value: int | None) -> int | None:
    if value is not None and (not isinstance(value, int | np.integer) or value < 1):
        raise InputError(f"{name} is {value!r}, expected a whole number of records from 1")
    return None if value is None else int(value)


def _json(name: str, value: Any) -> Any:
    """A copy as the manifest will give it back."""
    try:
        return json.loads(json.dumps(value, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError) as error:
        remedy = "use text, finite numbers, lists and objects only"
        raise InputError(f"{name} cannot be written as JSON: {message(error)}; {remedy}") from None


def _step(step: Any, last: int | None) -> int:
    try:
        number = operator.index(step)
    except TypeError:
        raise InputError(f"step is {step!r}, expected a whole number; count the updates of the parameters") from None
    if not 0 <= number < 2**63:
        raise InputError(f"step is {number}, expected a whole number from 0 below 2^63")
    if last is not None and number <= last:
        raise InputError(f"step is {number} after {last}; steps must rise, record each step once")
    return number
