"""Durable files: written whole or not at all, hashed, and locked while a run is being written.

A folder may come from somebody else. So no link in it is followed, and nothing but regular files is opened.
"""

import errno
import fcntl
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from stagescope.core.errors import InputError, StoreError

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
    errno.EISDIR: "there is a folder of this name; remove it, or choose another folder",
    errno.ELOOP: "it is a link, which is never followed; remove it",
    errno.ENAMETOOLONG: "choose a shorter name",
}
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

PATIENCE = 0.2
"""Seconds a writer waits for a lock: readers hold it for microseconds, another writer while it runs."""


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn an operating-system error into a sentence that names the file and the remedy.

    A hidden file that is made beside `path` and then takes its place is named as `path`, which the caller knows.
    """
    try:
        yield
    except OSError as error:
        remedy, place = _REMEDY.get(error.errno or 0, "check the folder and try again"), error.filename or path
        if isinstance(place, str) and any(part.startswith(f".{path.resolve().name}.") for part in Path(place).parts):
            place = path
        raise StoreError(f"{place}: {error.strerror or error}: {remedy}") from error


def entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Everything in a folder at any depth; links are listed, not followed."""
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as listing:
            for entry in listing:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def foreign(folder: Path) -> list[str]:
    """A sentence for every link, device, FIFO and socket in a folder, at any depth."""
    sentences = []
    with store_errors(folder):
        for entry in entries(folder):
            if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
                with suppress(FileNotFoundError):  # gone by now: a writer renames its files
                    sentences.append(_sentence(entry.path, _kind(entry.stat(follow_symlinks=False))))
    return sorted(sentences)


def refuse_foreign(folder: Path) -> None:
    """Call it before anything is written into a folder that somebody may have sent: a link could lead out of it."""
    if sentences := foreign(folder):
        raise StoreError(sentences[0])


def _kind(status: os.stat_result) -> str:
    """What an entry is that is neither a regular file nor a folder; empty where it is one of them."""
    return _KINDS.get(stat.S_IFMT(status.st_mode), "")


def _sentence(path: str | Path, kind: str) -> str:
    return f"{path}: it is {kind}, which Stagescope never makes and never opens; find out who made it, and remove it"


def opened(folder: Path, name: str) -> IO[bytes]:
    """A regular file of a folder, to be read; a link on the way to it, or anything else in its place, is refused."""
    path = folder
    for part in name.split("/"):
        path = path / part
        if kind := _kind(os.lstat(path)):
            raise StoreError(_sentence(path, kind))
    return open(path, "rb", opener=no_link)


def read(folder: Path, name: str) -> bytes:
    with store_errors(folder / name), opened(folder, name) as file:
        return file.read()


def no_link(path: str, flags: int) -> int:
    """For `open`: follow no link, and wait for nobody at the other end of a FIFO."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def sha256(file: Path | IO[bytes]) -> str:
    if isinstance(file, Path):
        with open(file, "rb") as stream:
            return sha256(stream)
    return hashlib.file_digest(file, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]


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
        with suppress(FileNotFoundError):  # left by a crash; never written through, it may be a link
            os.unlink(fresh)
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        try:
            _write_synced(handle, data)
            os.replace(fresh, path)
        except OSError:
            os.unlink(fresh)
            raise
        sync(path.parent)


def _write_synced(handle: int, data: bytes) -> None:
    with open(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def publish(path: Path, data: bytes) -> None:
    """Write a file among the user's own: whole or not at all, through a name that nobody else has."""
    check_target(path)
    with store_errors(path):
        handle, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            _write_synced(handle, data)
            os.chmod(fresh, 0o666 & ~umask())
            os.replace(fresh, path)
        except OSError:
            os.unlink(fresh)
            raise


def check_target(path: Path) -> None:
    """Refuse to replace a link, a device or a FIFO: only regular files are replaced."""
    with store_errors(path), suppress(FileNotFoundError):
        if kind := _kind(os.lstat(path)):
            raise InputError(f"{path} is {kind}, and only a regular file is ever replaced; choose another file")


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class Lock:
    """An advisory lock on a folder or a file; it ends with the process, so a killed run is never left locked."""

    def __init__(self, path: Path) -> None:
        flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        self._handle: int | None = os.open(path, flags, 0o666)
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
