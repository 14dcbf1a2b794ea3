"""Durable files: written whole or not at all, hashed, and locked while a run is being written."""

import errno
import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stagescope.errors import StoreError

_REMEDY = {
    errno.ENOSPC: "the disk is full; free some space and resume",
    errno.EDQUOT: "the quota is used up; free some space and resume",
    errno.EFBIG: "the file size limit of this process is reached; raise it and resume",
    errno.EACCES: "no permission; choose another folder or change its mode",
    errno.EPERM: "no permission; choose another folder or change its mode",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.ENOENT: "it is missing; restore it from a copy, or choose another folder",
    errno.ENOTDIR: "a part of this path is a file; choose another folder",
    errno.EEXIST: "a part of this path is a file; choose another folder",
    errno.ENAMETOOLONG: "choose a shorter name",
}

PATIENCE = 0.2
"""Seconds a writer waits for a lock: readers hold it for microseconds, another writer for as long as it runs."""


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn an operating-system error into a sentence that names the file and the remedy."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDY.get(error.errno or 0, "check the folder and try again")
        raise StoreError(f"{error.filename or path}: {error.strerror or error}: {remedy}") from error


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sync(path: Path) -> None:
    """Push a file or a directory entry to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace(path: Path, data: bytes) -> None:
    """Write `path` so that a reader, or a crash at any instant, sees the old bytes or the new ones."""
    fresh = path.with_name(path.name + ".new")
    with store_errors(path):
        try:
            _write_synced(fresh, data)
            os.replace(fresh, path)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
        sync(path.parent)


def _write_synced(file: Path | int, data: bytes) -> None:
    with open(file, "wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())


def publish(path: Path, data: bytes) -> None:
    """Write a file among the user's own: whole or not at all, through a name that nobody else has."""
    with store_errors(path):
        handle, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            _write_synced(handle, data)
            os.chmod(fresh, 0o666 & ~umask())
            os.replace(fresh, path)
        except OSError:
            os.unlink(fresh)
            raise


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class Lock:
    """An advisory lock on a folder or a file; it ends with the process, so a killed run is never left locked."""

    def __init__(self, path: Path) -> None:
        self._handle: int | None = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o666)
        patience = time.monotonic() + PATIENCE
        while not _flock(self._handle, fcntl.LOCK_EX):
            if time.monotonic() > patience:
                self.release()
                raise StoreError(f"{path}: another process is writing this run; wait for it or stop it")
            time.sleep(PATIENCE / 20)

    def release(self) -> None:
        """Once is enough, twice does no harm: an error may strike after the run was closed."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def locked(folder: Path) -> bool:
    """Whether a run is being written; asking takes a shared lock for an instant, which writers wait out."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        return not _flock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def _flock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
