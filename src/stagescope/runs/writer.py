"""Write a run so that a crash at any instant loses at most the work since the last commit.

A chunk is the unit of commit: written, synced, never rewritten. Frames that do not fill a chunk yet travel in the
checkpoint. A frame exists once the manifest, replaced atomically, says so.
"""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors.numpy as safetensors
from safetensors import SafetensorError

from stagescope.core.errors import DamagedRun, InputError, StoreError
from stagescope.core.params import check_name
from stagescope.runs import arrays, files
from stagescope.runs.arrays import Column
from stagescope.runs.manifest import CHECKPOINT, DATA, EVENTS, NAME, OURS, Manifest, environment
from stagescope.runs.manifest import read as read_manifest

if TYPE_CHECKING:
    from stagescope.runs.run import Run


Frame = Mapping[str, Any]
State = dict[str, np.ndarray]

CHUNKS = 16
"""Chunks per array of a large run; a small one has fewer, because a chunk is at least SMALL bytes of frames."""
SMALL, LARGE = 2**20, 64 * 2**20
_PENDING = "pending/"


def chunk_frames(planned: int | None, columns: Mapping[str, Column]) -> int:
    frame = sum(column.frame_bytes for column in columns.values())
    if planned is None:
        return max(1, SMALL // frame)
    return max(1, min(planned, max(-(-planned // CHUNKS), SMALL // frame), LARGE // frame))


class Writer:
    """The open end of a run on disk; hold one per folder, it is locked."""

    def __init__(self, folder: Path, manifest: Manifest, lock: files.Lock) -> None:
        self.folder, self.manifest, self._lock = folder, manifest, lock
        places = {name: f"{DATA}/{name}/zarr.json" for name in manifest.arrays}
        self._columns = {name: arrays.column_of(files.read(folder, place), folder / place) for name, place in places.items()}
        self._buffer: list[Frame] = []
        self._stacked: State = {}  # the first frames of the buffer by name, as the last checkpoint had them

    @classmethod
    def create(
        cls,
        folder: Path,
        manifest: Manifest,
        columns: Mapping[str, Column],
        begin: Callable[["Writer"], None],
        overwrite: bool = False,
    ) -> "Writer":
        """Make the run beside its place and move it in whole, so that the folder can be resumed from its first instant.

        `begin` writes what has to be there by then: the first commit of a run, or the whole of one that is done.
        """
        for name in columns:
            check_name(name)
        with files.store_errors(folder):
            check_place(folder, overwrite)
            place = folder.resolve()
            place.parent.mkdir(parents=True, exist_ok=True)
            fresh = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
            lock = files.Lock(fresh)
            try:
                os.chmod(fresh, 0o777 & ~files.umask())
                digests = _write_all(fresh, _metadata(manifest, columns, _length(manifest)))
                (fresh / CHECKPOINT).mkdir()
                (fresh / EVENTS).touch()
                writer = cls(fresh, manifest.model_copy(update={"files": digests}), lock)
                begin(writer)
                _move_in(fresh, place, overwrite)
            except BaseException:
                lock.release()
                shutil.rmtree(fresh, ignore_errors=True)
                raise
            files.sync(place.parent)
        writer.folder = folder
        return writer

    @classmethod
    def reopen(cls, folder: Path) -> tuple["Writer", State]:
        """Continue a run: its writer and the state of the last commit; what was not committed is dropped."""
        with files.store_errors(folder):
            lock = files.Lock(folder)
            try:
                files.refuse_foreign(folder)
                manifest = read_manifest(folder)
                if manifest.status != "running" or manifest.checkpoint is None:
                    raise StoreError(f"{folder} is {manifest.status} by now: nothing to resume")
                stored = tensors(files.read(folder, manifest.checkpoint), folder / manifest.checkpoint)
                writer = cls(folder, manifest, lock)
                files.replace(folder / EVENTS, files.read(folder, EVENTS)[: manifest.events_bytes])
                for name in os.listdir(folder / CHECKPOINT):
                    if OURS.fullmatch(f"{CHECKPOINT}/{name}") and f"{CHECKPOINT}/{name}" != manifest.checkpoint:
                        os.unlink(folder / CHECKPOINT / name)
                if manifest.trimmed:  # undo a change of shape that a crash cut short
                    _write_all(folder, _metadata(manifest, writer._columns, _length(manifest)))
                    writer.manifest = manifest.model_copy(update={"trimmed": {}})
                    writer.manifest.write(folder)
                unfinished = pending(stored)
                count = min(map(len, unfinished.values()), default=0)
                writer._buffer = [{name: values[i] for name, values in unfinished.items()} for i in range(count)]
                return writer, {name: value for name, value in stored.items() if not name.startswith(_PENDING)}
            except BaseException:
                lock.release()
                raise

    @property
    def columns(self) -> dict[str, Column]:
        return dict(self._columns)

    def frame(self, frame: Frame) -> None:
        self._buffer.append(frame)

    def commit(self, state: Mapping[str, Any], event: str = "checkpoint", **facts: Any) -> None:
        """Make everything up to now durable."""
        with files.store_errors(self.folder):
            before, digests = self.manifest, dict(self.manifest.files)
            while len(self._buffer) >= self.manifest.chunk:
                digests |= self._write_chunk(self.manifest.chunk)
            if self.manifest.planned is None and self.manifest.committed > before.committed:
                digests |= self._reshape(before)
            self._commit_state(digests, state, event, status="running", **facts)

    def finish(self, status: str, reason: str, state: Mapping[str, Any]) -> None:
        """Close the run with its outcome; the arrays are cut to the frames that exist."""
        with files.store_errors(self.folder):
            before, digests = self.manifest, dict(self.manifest.files)
            while self._buffer:
                digests |= self._write_chunk(min(len(self._buffer), self.manifest.chunk))
            if self.manifest.committed != _length(before):
                digests |= self._reshape(before)
            event = "finished" if status in ("finished", "stopped") else "failed"
            self._commit_state(digests, state, event, status=status, reason=reason)
        self.close()

    def close(self) -> None:
        self._lock.release()

    def _write_chunk(self, count: int) -> dict[str, str]:
        start, chunk = self.manifest.committed, self.manifest.chunk
        digests = {}
        for name, column in self._columns.items():
            data = arrays.encode(column, [frame[name] for frame in self._buffer[:count]], chunk)
            digests |= _write_all(self.folder, {f"{DATA}/{name}/{arrays.chunk_name(column, start // chunk)}": data})
        self.manifest = self.manifest.model_copy(update={"committed": start + count})
        del self._buffer[:count]
        self._stacked = {}
        return digests

    def _commit_state(self, digests: dict[str, str], state: Mapping[str, Any], event: str, **facts: Any) -> None:
        """Write checkpoint, log and manifest; the checkpoint before goes last."""
        old = self.manifest.checkpoint
        place, seal = self._write_checkpoint(state)
        digests.pop(old or "", None)
        digests[place] = seal
        extra = {name: facts.pop(name) for name in list(facts) if name not in Manifest.model_fields}
        self._log(event, frames=self.manifest.committed + len(self._buffer), **extra)
        digests[EVENTS] = files.sha256(self.folder / EVENTS)
        size = (self.folder / EVENTS).stat().st_size
        update = {"files": digests, "checkpoint": place, "events_bytes": size, **facts}
        manifest = self.manifest.model_copy(update=update)
        manifest.write(self.folder)
        self.manifest = manifest
        if old is not None:
            (self.folder / old).unlink(missing_ok=True)

    def _write_checkpoint(self, state: Mapping[str, Any]) -> tuple[str, str]:
        tensors = {name: np.asarray(value, order="C") for name, value in state.items()}
        if self._buffer:
            self._stacked = {name: self._stack(name) for name in self.manifest.arrays}
            tensors |= {_PENDING + name: value for name, value in self._stacked.items()}
        last = int(Path(self.manifest.checkpoint).stem) if self.manifest.checkpoint else 0
        place = f"{CHECKPOINT}/{last + 1:06d}.safetensors"
        data = safetensors.save(tensors)
        files.replace(self.folder / place, data)
        return place, files.digest(data)

    def _stack(self, name: str) -> np.ndarray:
        """The buffer's frames of one array; only those that came since the last checkpoint are gone through."""
        column = self._columns[name]
        done = self._stacked.get(name, np.empty((0, *column.shape), column.dtype))
        fresh = [np.asarray(frame[name], column.dtype) for frame in self._buffer[len(done) :]]
        return np.concatenate([done, np.stack(fresh)]) if fresh else done

    def _log(self, event: str, **facts: Any) -> None:
        line = json.dumps({"event": event, "time": round(time.time(), 3), **facts}) + "\n"
        with files.store_errors(self.folder / EVENTS), open(self.folder / EVENTS, "ab", opener=files.no_link) as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

    def _reshape(self, before: Manifest) -> dict[str, str]:
        """Give the arrays as many frames as are committed.

        The last commit first says that either metadata is good, so no instant is damage.
        """
        texts = _metadata(self.manifest, self._columns, self.manifest.committed)
        trimmed = {place: files.digest(text) for place, text in texts.items()}
        before.model_copy(update={"trimmed": trimmed}).write(self.folder)
        _write_all(self.folder, texts)
        return trimmed


def tensors(data: bytes, path: Path) -> State:
    """The arrays of a checkpoint."""
    try:
        return safetensors.load(data)
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise DamagedRun(f"{path}: not a checkpoint of a run ({error}); restore it from a copy") from None


def pending(stored: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The frames of a checkpoint that have not filled a chunk yet."""
    return {name.removeprefix(_PENDING): value for name, value in stored.items() if name.startswith(_PENDING)}


def check_place(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that is in use; with `overwrite`, accept one that holds a run and nothing else."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; choose a folder")
    if folder.resolve() == Path.cwd():
        raise InputError(f"{folder} is the current folder, which cannot be replaced; choose a folder in it")
    if not any(folder.iterdir()):
        return
    if not overwrite:
        hint = ", or --overwrite (in Python overwrite=True) to replace a run" if os.path.lexists(folder / NAME) else ""
        raise InputError(f"{folder} is not empty; choose another folder{hint}")
    _check_run_only(folder)
    if files.locked(folder):
        raise StoreError(f"{folder}: another process is writing this run; wait for it or stop it")


def _check_run_only(folder: Path) -> None:
    """What is about to be deleted must be a run, down to every file in it."""
    inside = [entry for entry in files.entries(folder) if not entry.is_dir(follow_symlinks=False)]
    regular = {os.path.relpath(entry.path, folder): entry.is_file(follow_symlinks=False) for entry in inside}
    foreign = ", ".join([name for name in sorted(regular) if not (regular[name] and OURS.fullmatch(name))][:3])
    try:
        read_manifest(folder)
    except StoreError:
        foreign = foreign or f"no {NAME} of a run"
    if foreign:
        raise InputError(f"{folder} is not (only) a run ({foreign}); it will not be deleted, choose another folder")


def _move_in(fresh: Path, folder: Path, overwrite: bool) -> None:
    """Others may have taken the place meanwhile: look again, and without `overwrite` fail rather than replace."""
    check_place(folder, overwrite)
    if not overwrite or not folder.exists():
        os.replace(fresh, folder)
        return
    lock = files.Lock(folder)  # nobody may go on with a run that is being replaced
    try:
        old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
        os.replace(folder, old)
        try:
            os.replace(fresh, folder)
        except BaseException:
            os.replace(old, folder)
            raise
    finally:
        lock.release()
    shutil.rmtree(old, ignore_errors=True)  # the new run is in place; what cannot be removed stays beside it, hidden


def _write_all(folder: Path, texts: Mapping[str, bytes]) -> dict[str, str]:
    """Write files by their paths in a folder; returns their digests."""
    for place, text in texts.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        files.replace(folder / place, text)
    return {place: files.digest(text) for place, text in texts.items()}


def _length(manifest: Manifest) -> int:
    """Frames in the arrays' metadata while a run is going: those planned, or those committed where nobody knows how many."""
    return manifest.committed if manifest.planned is None else manifest.planned


def _metadata(manifest: Manifest, columns: Mapping[str, Column], frames: int) -> dict[str, bytes]:
    texts = arrays.metadata(columns, frames, manifest.chunk, manifest.clock)
    return {f"{DATA}/{place}": text for place, text in texts.items()}


def save(run: "Run", folder: Path, overwrite: bool = False) -> Path:
    """Write a run that lives in memory, with the same guarantees as one recorded to disk."""
    recorded = {**run.series, **run.params}
    columns = {name: Column(value.shape[1:], run.axes[name], str(value.dtype)) for name, value in recorded.items()}

    def write(writer: Writer) -> None:
        for i in range(run.frames):
            writer.frame({name: value[i] for name, value in recorded.items()})
        writer.finish(run.status, run.reason, run.at(-1) if run.frames else {})

    facts = {name: getattr(run, name) for name in ("study", "config", "spec", "tags", "clock", "seed", "config_digest")}
    Writer.create(folder, header(facts, columns, run.frames), columns, write, overwrite)
    return folder


def header(facts: Mapping[str, Any], columns: Mapping[str, Any], planned: int | None) -> Manifest:
    """The manifest of a run that has just begun; `planned` is None where nobody knows how many frames it will have."""
    return Manifest(
        **facts,
        status="running",
        planned=planned,
        chunk=chunk_frames(planned, columns),
        arrays={name: column.axes for name, column in columns.items()},
        environment=environment(facts["spec"]),
    )
