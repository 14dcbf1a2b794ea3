"""Lines on disk, append-only and checksummed: `{"check": ..., "row": ...}` with the first digits of the SHA-256 of the row.

A line counts once it is whole, newline included: a line cut short by a crash was never written.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stagescope.runs.files import no_link, store_errors, sync

_OPEN, _MIDDLE, _CLOSE = b'{"check":"', b'","row":', b"}"
_DIGITS = 16
_START = len(_OPEN) + _DIGITS + len(_MIDDLE)


def line_of(row: Mapping[str, Any] | Sequence[Any]) -> bytes:
    """The stored line of a row, or of an entry of the journal."""
    body = json.dumps(row, separators=(",", ":"), allow_nan=False).encode()
    return _OPEN + _check(body) + _MIDDLE + body + _CLOSE + b"\n"


def row_of(line: bytes) -> Any:
    """What a stored line without its newline holds; None if its bytes are not those that were committed."""
    body = line[_START : -len(_CLOSE)]
    whole = line.startswith(_OPEN) and line[_START - len(_MIDDLE) : _START] == _MIDDLE and line.endswith(_CLOSE)
    if not whole or line[len(_OPEN) : len(_OPEN) + _DIGITS] != _check(body):
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _check(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_DIGITS].encode()


class Lines:
    """Whole lines of all files of a folder with one suffix, no links; a call of `fresh` gives those added since the last one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, tuple[int, int]] = {}

    def fresh(self) -> Iterator[tuple[str, int, bytes]]:
        """(file, line number from 1, bytes) of what was added; a last line without newline waits until it is whole."""
        with store_errors(self._folder):
            there = self._folder.is_dir() and not self._folder.is_symlink()
            for entry in sorted(os.scandir(self._folder), key=lambda entry: entry.name) if there else ():
                offset, number = self._read.get(entry.name, (0, 0))
                ours = entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False)
                if not ours or entry.stat().st_size <= offset:
                    continue
                with open(entry.path, "rb", opener=no_link) as file:
                    file.seek(offset)
                    whole = file.read().rpartition(b"\n")[0]
                for line in whole.split(b"\n") if whole else ():
                    number += 1
                    offset += len(line) + 1
                    yield entry.name, number, line
                self._read[entry.name] = offset, number

    @property
    def size(self) -> int:
        """Bytes of all whole lines read so far."""
        return sum(offset for offset, _ in self._read.values())


class AppendFile:
    """A file that one process appends to, opened when first needed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def append(self, data: bytes) -> None:
        """Write at the end and push to the disk; what a full disk cut short is taken back, or later lines would follow it."""
        with store_errors(self.path):
            if self._handle is None:
                self.path.parent.mkdir(exist_ok=True)
                self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
                sync(self.path.parent)
            size = os.fstat(self._handle).st_size
            try:
                written = os.write(self._handle, data)
                while written < len(data):
                    written += os.write(self._handle, data[written:])
                os.fsync(self._handle)
            except OSError:
                os.ftruncate(self._handle, size)
                raise

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
