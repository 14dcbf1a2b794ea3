"""Durable files: written whole or not at all, hashed, and locked while a run is being written."""

import errno
import fcntl
import hashlib
import os
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
    errno.ENOENT: "it is missing; restore it from a copy",
    errno.ENOTDIR: "a part of this path is a file; choose another folder",
}


@contextmanager
def told(path: Path) -> Iterator[None]:
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
    with open(fresh, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    sync(path.parent)


class Lock:
    """An advisory lock on a folder; it ends with the process, so a killed run is never left locked."""

    def __init__(self, folder: Path) -> None:
        self._handle = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._handle)
            raise StoreError(f"{folder}: another process is writing this run; wait for it or stop it") from None

    def release(self) -> None:
        os.close(self._handle)


def locked(folder: Path) -> bool:
    try:
        Lock(folder).release()
    except StoreError:
        return True
    return False
