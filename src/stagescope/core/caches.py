"""Caches on disk: folders of this user alone, and entries that are served only if their bytes are those that were written.

A cache may always fail. A damaged entry is removed, a line says so, and it is made again; what cannot be written is not kept.
"""

import atexit
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

VARIABLE = "STAGESCOPE_CACHE"
"""The folder to keep caches in, before XDG_CACHE_HOME and ~/.cache. A process without such a folder sets it for its workers."""
FRESH = "STAGESCOPE_FRESH"
"""Set to 1: what readings have kept is neither used nor added to, as with `--fresh`."""
READINGS = "readings"
"""The folder of what readings have kept."""
BOUND = 2**28
"""Bytes that readings keep in all, 256 MB: those of about a dozen runs of the README, 20 MB each, nearly all of it flows."""
_SEAL = hashlib.sha256().digest_size
Decoded = TypeVar("Decoded")


def cache_folder(kind: str) -> Path | None:
    """The folder of one kind of cached files, private to this user.

    A temporary one where none can be kept, with what is in one that can only be read. None where there is not even that.
    """
    try:
        return _private(_base(), kind)
    except (OSError, RuntimeError) as error:
        return _temporary(kind, error)


def _base() -> Path:
    """A relative path is ignored, as the XDG rules ask: what lies in the current folder may be somebody else's."""
    for folder in (os.environ.get(VARIABLE), os.environ.get("XDG_CACHE_HOME")):
        if folder and os.path.isabs(folder):
            return Path(folder)
    home = Path.home()
    if not home.is_absolute():
        raise RuntimeError(f"the home folder {str(home)!r} is not an absolute path")
    return home / ".cache"


def _private(base: Path, kind: str) -> Path:
    """`base`/stagescope/`kind`, each of mode 0700 and owned by this user, and a place that can be written to."""
    base.mkdir(parents=True, exist_ok=True)
    parent = base / "stagescope"
    for folder in (parent, parent / kind):
        folder.mkdir(exist_ok=True, mode=0o700)
        status = folder.stat()
        if status.st_uid != os.getuid():
            raise RuntimeError(f"{folder} belongs to another user")
        if status.st_mode & 0o777 != 0o700:
            folder.chmod(0o700)
    if not os.access(parent / kind, os.W_OK):
        raise RuntimeError(f"{parent / kind} cannot be written")
    return parent / kind


def _temporary(kind: str, reason: Exception) -> Path | None:
    """A cache until this process ends, which its workers share."""
    try:
        base = Path(tempfile.mkdtemp(prefix="stagescope-"))
        _link_kept(base / "stagescope")
        folder = _private(base, kind)
    except (OSError, RuntimeError):
        return None
    os.environ[VARIABLE] = str(base)
    atexit.register(_remove, base, os.getpid())
    say(f"no cache can be kept ({reason}); a temporary one is used. To keep it, set {VARIABLE} to a folder of yours")
    return folder


def _link_kept(temporary: Path) -> None:
    """What the cache of this user has that can only be read is read through links, which are replaced by what is made anew."""
    with suppress(OSError, RuntimeError):
        source = _base() / "stagescope"
        status = source.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o077:
            return
        for folder, _, names in os.walk(source):
            place = temporary / os.path.relpath(folder, source)
            place.mkdir(mode=0o700)
            for name in names:
                os.symlink(os.path.join(folder, name), place / name)


def _remove(folder: Path, owner: int) -> None:
    """Not in a process that was forked from the one that made the folder."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def say(sentence: str) -> None:
    print(f"stagescope: {sentence}", file=sys.stderr, flush=True)


def read_entry(path: Path) -> bytes | None:
    """What was written under this name; None if there is nothing, or if it is damaged: then it is removed."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    body = data[:-_SEAL]
    if data[len(body) :] == _seal(path, body):
        return body
    say(f"the cache file {path} is damaged; it is removed and made again")
    with suppress(OSError):  # the next one to write it replaces it
        path.unlink(missing_ok=True)
    return None


def write_entry(path: Path, body: bytes) -> None:
    """Keep an entry, if that is possible; it appears whole or not at all."""
    fresh = path.with_name(f"{path.name}.{uuid.uuid4().hex}.new")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            fresh.write_bytes(body + _seal(path, body))
            os.replace(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)


def _seal(path: Path, body: bytes) -> bytes:
    """The name is part of it, so that no entry is taken for another one."""
    seal = hashlib.sha256(path.name.encode() + b"\0")
    seal.update(body)
    return seal.digest()


def fresh() -> bool:
    """Whether nothing that is kept is to be used."""
    return os.environ.get(FRESH, "") not in ("", "0")


def kept(name: str, decoded: Callable[[bytes], Decoded]) -> Decoded | None:
    """What a reading has kept under a name, decoded; None where there is nothing, or where it is damaged or forged."""
    if fresh() or (folder := cache_folder(READINGS)) is None or (body := read_entry(folder / name)) is None:
        return None
    try:
        decoded_entry = decoded(body)
    except Exception as error:  # whole, but not what this package writes
        say(f"the cache file {folder / name} holds no answer ({type(error).__name__}); it is removed and made again")
        with suppress(OSError):
            (folder / name).unlink(missing_ok=True)
        return None
    with suppress(OSError):
        os.utime(folder / name)  # the time of its last use
    return decoded_entry


def keep(name: str, body: bytes) -> None:
    """Keep what a reading computed; what was not used for longest goes where all of it is above the bound."""
    if fresh() or len(body) > BOUND or (folder := cache_folder(READINGS)) is None:
        return
    write_entry(folder / name, body)
    with suppress(OSError):
        entries = sorted((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in os.scandir(folder))
        excess = sum(size for _, size, _ in entries) - BOUND
        for _, size, path in entries:
            if excess <= 0:
                break
            with suppress(OSError):  # another process may have removed it
                os.unlink(path)
            excess -= size


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@cache
def code_stamp() -> str:
    """A digest of what the numbers of this process come from: sources of this package, installed packages with their versions,
    Python, and what this processor can do."""
    installed: set[str] = set()
    for folder in sys.path:
        with suppress(OSError):
            installed.update(name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info")))
    parts = [sources_stamp(Path(__file__).parent), *sorted(installed), sys.version, processor()]
    return digest_of("\0".join(parts).encode())


@cache
def sources_stamp(folder: Path) -> str:
    """A digest of path, size and time of change of every file of a package."""
    return digest_of("\0".join(sorted(_sources(str(folder)))).encode())


def _sources(folder: str) -> Iterator[str]:
    with os.scandir(folder) as listing:
        for entry in listing:
            if entry.is_dir():
                yield from () if entry.name == "__pycache__" else _sources(entry.path)
            else:
                status = entry.stat()
                yield f"{entry.path} {status.st_size} {status.st_mtime_ns}"


@cache
def processor() -> str:
    """A short name for what this processor can do: machine code for another one may not run here."""
    able = platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            able += next((line for line in file if line.startswith(("flags", "Features"))), "")
    except OSError:
        able += platform.processor()
    return hashlib.sha256(able.encode()).hexdigest()[:16]
