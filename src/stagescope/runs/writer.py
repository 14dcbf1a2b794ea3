"""Write a run so that a crash at any instant loses at most the work since the last commit.

A chunk is the unit of commit: written, synced, never rewritten. Frames that do not fill a chunk yet travel in the
checkpoint. A frame exists once the manifest, replaced atomically, says so.
"""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy as safetensors

from stagescope.errors import InputError, StoreError
from stagescope.runs import arrays, files
from stagescope.runs.arrays import Column
from stagescope.runs.manifest import CHECKPOINT, DATA, EVENTS, NAME, Manifest
from stagescope.runs.manifest import read as read_manifest

Frame = Mapping[str, Any]
State = dict[str, np.ndarray]

CHUNKS = 16
"""Chunks per array of a large run; a small one has fewer, because a chunk is at least SMALL bytes of frames."""
SMALL, LARGE = 2**20, 64 * 2**20
_OURS = {NAME, NAME + ".new", EVENTS, DATA, CHECKPOINT}
_PENDING = "pending/"


def chunk_frames(planned: int, columns: Mapping[str, Column]) -> int:
    frame = sum(column.frame_bytes for column in columns.values())
    return max(1, min(planned, max(-(-planned // CHUNKS), SMALL // frame), LARGE // frame))


class Writer:
    """The open end of a run on disk; hold one per folder, it is locked."""

    def __init__(self, folder: Path, manifest: Manifest, lock: files.Lock) -> None:
        self.folder, self.manifest, self._lock = folder, manifest, lock
        places = {name: folder / DATA / name / "zarr.json" for name in manifest.arrays}
        self._columns = {name: arrays.column_of(place.read_bytes()) for name, place in places.items()}
        self._buffer: list[Frame] = []

    @classmethod
    def create(cls, folder: Path, manifest: Manifest, columns: Mapping[str, Column], overwrite: bool = False) -> "Writer":
        """Make the run beside its place and move it in whole, so that the folder is a run from its first instant."""
        with files.told(folder):
            check_place(folder, overwrite)
            folder.parent.mkdir(parents=True, exist_ok=True)
            fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
            try:
                os.chmod(fresh, 0o777 & ~_umask())
                lock = files.Lock(fresh)
                known = _create_arrays(fresh, manifest, columns)
                manifest = manifest.model_copy(update={"files": known})
                (fresh / CHECKPOINT).mkdir()
                (fresh / EVENTS).touch()
                manifest.write(fresh)
                _move_in(fresh, folder)
            except BaseException:
                shutil.rmtree(fresh, ignore_errors=True)
                raise
            files.sync(folder.parent)
        return cls(folder, manifest, lock)

    @classmethod
    def reopen(cls, folder: Path) -> tuple["Writer", State]:
        """Continue a run: its writer and the state of the last commit; what was not committed is dropped."""
        lock = files.Lock(folder)
        manifest = read_manifest(folder)
        if manifest.checkpoint is None:
            raise StoreError(f"{folder}: stopped before its first checkpoint; start it again with --overwrite")
        with files.told(folder):
            os.truncate(folder / EVENTS, manifest.events_bytes)
            for stray in (folder / CHECKPOINT).iterdir():
                if f"{CHECKPOINT}/{stray.name}" != manifest.checkpoint:
                    stray.unlink()
            stored = safetensors.load_file(folder / manifest.checkpoint)
        writer = cls(folder, manifest, lock)
        writer._buffer = list(_frames(pending(stored)))
        return writer, {name: value for name, value in stored.items() if not name.startswith(_PENDING)}

    def frame(self, frame: Frame) -> None:
        self._buffer.append(frame)

    def commit(self, state: Mapping[str, Any], event: str = "checkpoint", **facts: Any) -> None:
        """Make everything up to now durable."""
        with files.told(self.folder):
            known = dict(self.manifest.files)
            while len(self._buffer) >= self.manifest.chunk:
                known |= self._write_chunk(self.manifest.chunk)
            committed = self._commit_state(known, state, event, status="running", **facts)
            self._drop_checkpoint(committed)

    def finish(self, status: str, reason: str, state: Mapping[str, Any]) -> None:
        """Close the run with its outcome; the arrays are cut to the frames that exist."""
        with files.told(self.folder):
            known = dict(self.manifest.files)
            while self._buffer:
                known |= self._write_chunk(min(len(self._buffer), self.manifest.chunk))
            if self.manifest.committed < self.manifest.planned:
                known |= self._trim(known)
            event = "finished" if status in ("finished", "stopped") else "failed"
            committed = self._commit_state(known, state, event, status=status, reason=reason, trimmed={})
            self._drop_checkpoint(committed)
        self.close()

    def close(self) -> None:
        self._lock.release()

    def _write_chunk(self, count: int) -> dict[str, str]:
        start, chunk = self.manifest.committed, self.manifest.chunk
        known = {}
        for name, column in self._columns.items():
            data = arrays.encode(column, [frame[name] for frame in self._buffer[:count]], chunk)
            place = f"{DATA}/{name}/{arrays.chunk_name(column, start // chunk)}"
            (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
            files.replace(self.folder / place, data)
            known[place] = files.digest(data)
        self.manifest = self.manifest.model_copy(update={"committed": start + count})
        del self._buffer[:count]
        return known

    def _commit_state(self, known: dict[str, str], state: Mapping[str, Any], event: str, **facts: Any) -> Manifest:
        place, seal = self._write_checkpoint(state)
        if self.manifest.checkpoint is not None:
            known.pop(self.manifest.checkpoint, None)
        known[place] = seal
        extra = {name: facts.pop(name) for name in list(facts) if name not in Manifest.model_fields}
        self._log(event, frames=self.manifest.committed + len(self._buffer), **extra)
        known[EVENTS] = files.sha256(self.folder / EVENTS)
        size = (self.folder / EVENTS).stat().st_size
        update = {"files": known, "checkpoint": place, "events_bytes": size, **facts}
        manifest = self.manifest.model_copy(update=update)
        manifest.write(self.folder)
        return manifest

    def _drop_checkpoint(self, manifest: Manifest) -> None:
        old, self.manifest = self.manifest.checkpoint, manifest
        if old is not None and old != manifest.checkpoint:
            (self.folder / old).unlink(missing_ok=True)

    def _write_checkpoint(self, state: Mapping[str, Any]) -> tuple[str, str]:
        tensors = {name: np.ascontiguousarray(value) for name, value in state.items()}
        for name in self.manifest.arrays if self._buffer else ():
            tensors[_PENDING + name] = np.stack([np.asarray(frame[name]) for frame in self._buffer])
        last = int(Path(self.manifest.checkpoint).stem) if self.manifest.checkpoint else 0
        place = f"{CHECKPOINT}/{last + 1:06d}.safetensors"
        data = safetensors.save(tensors)
        files.replace(self.folder / place, data)
        return place, files.digest(data)

    def _log(self, event: str, **facts: Any) -> None:
        line = json.dumps({"event": event, "time": round(time.time(), 3), **facts}) + "\n"
        with open(self.folder / EVENTS, "ab") as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

    def _trim(self, known: dict[str, str]) -> dict[str, str]:
        """Cut the arrays' shapes; the manifest first says that either metadata is good, so no instant is damage."""
        texts = _metadata(self.manifest, self._columns, self.manifest.committed)
        trimmed = {place: files.digest(text) for place, text in texts.items()}
        self.manifest = self.manifest.model_copy(update={"files": known, "trimmed": trimmed})
        self.manifest.write(self.folder)
        for place, text in texts.items():
            files.replace(self.folder / place, text)
        return trimmed


def pending(stored: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The frames of a checkpoint that have not filled a chunk yet."""
    return {name.removeprefix(_PENDING): value for name, value in stored.items() if name.startswith(_PENDING)}


def check_place(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that is in use; with `overwrite`, accept one that holds a run and nothing else."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; choose a folder")
    entries = {entry.name for entry in folder.iterdir()}
    if not entries:
        return
    if not overwrite:
        raise InputError(f"{folder} is not empty; choose another folder, or --overwrite to replace a run")
    if NAME not in entries or entries - _OURS:
        foreign = ", ".join(sorted(entries - _OURS)[:3]) or "no manifest.json"
        raise InputError(f"{folder} is not (only) a run ({foreign}); it will not be deleted, choose another folder")
    if files.locked(folder):
        raise StoreError(f"{folder}: another process is writing this run; wait for it or stop it")


def _move_in(fresh: Path, folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
        os.replace(folder, old)
        os.replace(fresh, folder)
        shutil.rmtree(old)
    else:
        os.replace(fresh, folder)


def _create_arrays(folder: Path, manifest: Manifest, columns: Mapping[str, Column]) -> dict[str, str]:
    texts = _metadata(manifest, columns, manifest.planned)
    for place, text in texts.items():
        (folder / place).parent.mkdir(parents=True)
        files.replace(folder / place, text)
    return {place: files.digest(text) for place, text in texts.items()}


def _metadata(manifest: Manifest, columns: Mapping[str, Column], frames: int) -> dict[str, bytes]:
    texts = arrays.metadata(columns, frames, manifest.chunk, manifest.clock)
    return {f"{DATA}/{place}": text for place, text in texts.items()}


def _frames(columns: Mapping[str, np.ndarray]) -> list[Frame]:
    count = min((len(values) for values in columns.values()), default=0)
    return [{name: values[i] for name, values in columns.items()} for i in range(count)]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
