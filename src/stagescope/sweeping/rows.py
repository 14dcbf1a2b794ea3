"""Rows of a sweep on disk: append-only, checksummed, one file per writing process, and exactly one row that counts for a point.

A line is `{"check": ..., "row": {...}}` with the first digits of the SHA-256 of the row's bytes. A row is committed once its
line is whole, newline included: a line cut short by a crash never was. Nothing is ever rewritten. Who commits holds the
sweep's lock and has read what the others committed, so a point cannot get two rows, whoever computed it twice.
"""

import fcntl
import hashlib
import json
import os
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stagescope.runs.files import store_errors, sync
from stagescope.runs.run import DONE

Row = dict[str, Any]
"""What a point gave: `digest`, `study`, `seed`, `at`, `config`, `status`, `reason`, and what was measured."""

_OPEN, _MIDDLE, _CLOSE = b'{"check":"', b'","row":', b"}"
_DIGITS = 16
_START = len(_OPEN) + _DIGITS + len(_MIDDLE)


def reached_end(row: Row) -> bool:
    """Whether the run of a point reached its end; one that diverged, timed out or raised did not, and may be retried."""
    return row["status"] in DONE


def outcome(status: str, reason: str) -> str:
    """How a point ended, in one sentence; the status is left out where the reason contains it."""
    return reason if reason.startswith(status) else f"{status}: {reason}" if reason else status


def line_of(row: Row) -> bytes:
    """The stored line of a row."""
    body = json.dumps(row, separators=(",", ":"), allow_nan=False).encode()
    return _OPEN + _check(body) + _MIDDLE + body + _CLOSE + b"\n"


def _shown(line: bytes) -> tuple[str, int] | None:
    """Digest and try that a damaged line still shows."""
    name, retry = re.search(rb'"digest":"([0-9a-f]{64})"', line), re.search(rb'"retry":(\d+)', line)
    return (name.group(1).decode(), int(retry.group(1))) if name and retry else None


def row_of(line: bytes) -> Row | None:
    """The row of a stored line without its newline; None if its bytes are not those that were committed."""
    body = line[_START : -len(_CLOSE)]
    whole = line.startswith(_OPEN) and line[_START - len(_MIDDLE) : _START] == _MIDDLE and line.endswith(_CLOSE)
    if not whole or line[len(_OPEN) : len(_OPEN) + _DIGITS] != _check(body):
        return None
    return json.loads(body)


def _check(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_DIGITS].encode()


class Lines:
    """Whole lines of all files of a folder with one suffix; each call of `fresh` gives those added since the last one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, tuple[int, int]] = {}

    def fresh(self) -> Iterator[tuple[str, int, bytes]]:
        """(file, line number from 1, bytes) of what was added; a last line without newline waits until it is whole."""
        with store_errors(self._folder):
            entries = sorted(os.scandir(self._folder), key=lambda entry: entry.name) if self._folder.is_dir() else []
            for entry in entries:
                offset, number = self._read.get(entry.name, (0, 0))
                if not entry.name.endswith(".jsonl") or entry.stat().st_size <= offset:
                    continue
                with open(entry.path, "rb") as file:
                    file.seek(offset)
                    whole = file.read().rpartition(b"\n")[0]
                for line in whole.split(b"\n") if whole else ():
                    number += 1
                    offset += len(line) + 1
                    yield entry.name, number, line
                self._read[entry.name] = offset, number


class Rows:
    """The rows that count, by digest, and what was found damaged. Reading takes no lock and changes nothing.

    `lost` are digest and try that damaged lines still show, None where one shows none.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "rows"
        self.current: dict[str, Row] = {}
        self.damaged: list[str] = []
        self.lost: list[tuple[str, int] | None] = []
        self._lines = Lines(self.folder)

    def refresh(self) -> "Rows":
        """Read what was committed since the last time. Of a point that was retried, the last try counts."""
        for name, number, line in self._lines.fresh():
            row = row_of(line)
            if row is None:
                self.damaged.append(f"{self.folder / name}, line {number}")
                self.lost.append(_shown(line))
                continue
            known = self.current.get(row["digest"])
            if known is None or (row["retry"] > known["retry"] and (reached_end(row) or not reached_end(known))):
                self.current[row["digest"]] = row
        return self

    def has(self, digest: str, retry: int, renew: bool = False) -> bool:
        """Whether a point has its row: of this try of it, or of a later one, or one that reached its end and is not renewed."""
        known = self.current.get(digest)
        return known is not None and (known["retry"] >= retry or (reached_end(known) and not renew))


class RowWriter:
    """Commits rows of one process, into a file that no other process writes."""

    def __init__(self, folder: Path) -> None:
        self.rows = Rows(folder)
        self.name = uuid.uuid4().hex
        self._lock = folder / "lock"
        self._handle: int | None = None

    @contextmanager
    def locked(self) -> Iterator[Rows]:
        """Hold the sweep's lock, knowing every committed row; it ends with the process, however that ends."""
        with store_errors(self._lock):
            handle = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield self.rows.refresh()
            finally:
                os.close(handle)

    def commit(self, rows: Sequence[Row]) -> list[Row]:
        """Append rows of points that have none and push them to the disk; returns those that were taken."""
        if not rows:
            return []
        with self.locked() as known:
            taken = [row for row in rows if not known.has(row["digest"], row["retry"], row.get("renew", False))]
            now = time.time()
            self._append(b"".join(line_of({**row, "committed": now}) for row in taken))
            known.refresh()
        return taken

    def close(self) -> None:
        """Let go of the file; a later commit opens it again."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _append(self, data: bytes) -> None:
        """Write at the end of this process's file; what a full disk cut short is taken back, or later lines would follow it."""
        if not data:
            return
        path = self.rows.folder / f"{self.name}.jsonl"
        with store_errors(path):
            if self._handle is None:
                path.parent.mkdir(exist_ok=True)
                self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
                sync(path.parent)
            size = os.fstat(self._handle).st_size
            try:
                written = os.write(self._handle, data)
                while written < len(data):
                    written += os.write(self._handle, data[written:])
                os.fsync(self._handle)
            except OSError:
                os.ftruncate(self._handle, size)
                raise
