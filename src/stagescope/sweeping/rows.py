"""Rows of a sweep on disk: append-only, checksummed, one file per writing process, and exactly one row that counts for a point.

A row is committed once its line is whole. Then the journal names it: a row that the journal names and that is not there any
more was lost. No row is ever rewritten. Who commits holds the sweep's lock and has read what the others committed, so a point
cannot get two rows, whoever computed it twice.
"""

import fcntl
import hashlib
import json
import os
import re
import socket
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from stagescope.core.spec import canonical
from stagescope.runs.files import no_link, store_errors, sync
from stagescope.runs.run import DONE
from stagescope.sweeping.axes import Axis

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
    intact = line.startswith(_OPEN) and line[_START - len(_MIDDLE) : _START] == _MIDDLE and line.endswith(_CLOSE)
    if not intact or line[len(_OPEN) : len(_OPEN) + _DIGITS] != _check(body):
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
            exists = self._folder.is_dir() and not self._folder.is_symlink()
            for entry in sorted(os.scandir(self._folder), key=lambda entry: entry.name) if exists else ():
                offset, number = self._read.get(entry.name, (0, 0))
                ours = entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False)
                if not ours or entry.stat().st_size <= offset:
                    continue
                with open(entry.path, "rb", opener=no_link) as file:
                    file.seek(offset)
                    lines = file.read().rpartition(b"\n")[0]
                for line in lines.split(b"\n") if lines else ():
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

    def __init__(self, path: Path, durable: bool = True) -> None:
        self.path, self._durable = path, durable
        self._handle: int | None = None

    def append(self, data: bytes) -> None:
        """Write at the end, pushed to the disk if durable; what a full disk cut short is taken back, or later lines follow it."""
        with store_errors(self.path):
            if self._handle is None:
                self.path.parent.mkdir(exist_ok=True)
                self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
                sync(self.path.parent)
            size = os.fstat(self._handle).st_size
            try:
                count = os.write(self._handle, data)
                while count < len(data):
                    count += os.write(self._handle, data[count:])
                if self._durable:
                    os.fsync(self._handle)
            except OSError:
                os.ftruncate(self._handle, size)
                raise

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


class Attempts:
    """Attempts on points by all processes of one call of `sweep`; a process appends to a file of its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder / "attempts"
        self._file = AppendFile(self.folder / f"{name}.jsonl", durable=False)
        self._lines = Lines(self.folder)
        self._counts: Counter[tuple[str, str]] = Counter()
        self.close = self._file.close

    def count(self, call: str, digest: str) -> int:
        """How often a point was begun in a call, as last read."""
        return self._counts[call, digest]

    def refresh(self) -> None:
        """Read what was begun since the last time. A line that was cut short or damaged is ignored."""
        for _, _, line in self._lines.fresh():
            try:
                entry = json.loads(line)
                self._counts[entry["call"], entry["digest"]] += 1
            except (ValueError, TypeError, KeyError, RecursionError):
                continue

    def begin(self, call: str, digest: str) -> None:
        """Note the start of a point. It may be lost in a crash of the machine: it only serves to count lost workers."""
        line = canonical({"digest": digest, "call": call, "time": time.time(), "pid": os.getpid(), "host": socket.gethostname()})
        self._file.append(line + b"\n")


Whole = Annotated[int, Field(ge=0, lt=2**63)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Scalar = bool | Integer | Number | str | None
Numbers = dict[str, Integer | Number | bool | None] | None


class _Row(BaseModel):
    """What is used of a row; rows of version 0.1.0 have this shape too."""

    model_config = ConfigDict(strict=True)

    digest: str
    retry: Whole
    status: str
    reason: str
    renew: bool = False
    study: str = ""
    seed: Whole = 0
    at: dict[str, Scalar] = {}
    config: dict[str, Any] = {}
    clock: str | None = None
    version: str = ""
    end: Integer | Number | None = None
    seconds: Integer | Number | None = None
    started: Integer | Number | None = None
    committed: Integer | Number = 0
    events: Numbers = None
    starts: Numbers = None
    durations: Numbers = None
    numbers: Numbers = None
    stages: list[str] | None = None
    verdicts: dict[str, str] | None = None
    rules: dict[str, Integer] | None = None
    own: dict[str, str] | None = None
    measures: dict[str, dict[str, Scalar | list[Any] | dict[str, Any]]] | None = None


def fits(row: dict[str, Any], axes: Sequence[Axis]) -> bool:
    """Whether a row can stand in the table of a sweep over these axes."""
    if not {"study", "seed", "at", "config"} <= row.keys():
        return False
    values = row["at"]
    return all(axis.name in values and (axis.kind == "categorical" or type(values[axis.name]) in (int, float)) for axis in axes)


Row = dict[str, Any]
"""What a point gave: `digest`, `study`, `seed`, `at`, `config`, `status`, `reason`, and what was measured."""


def reached_end(row: Row) -> bool:
    """Whether the run of a point reached its end; one that diverged, timed out or raised did not, and may be retried."""
    return row["status"] in DONE


def outcome(status: str, reason: str) -> str:
    """How a point ended, in one sentence; the status is left out where the reason contains it."""
    return reason if reason.startswith(status) else f"{status}: {reason}" if reason else status


def counted(number: int, what: str) -> str:
    """Three rows, one row."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


class Rows:
    """The rows that count, by digest, and what was found damaged. Reading takes no lock and changes nothing.

    `damaged` are the places of lines whose bytes are not those that were committed, each with the point and the try that it
    still shows, or None.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "rows"
        self.current: dict[str, Row] = {}
        self.damaged: dict[str, tuple[str, int] | None] = {}
        self.journal = Journal(folder)
        self._lines = Lines(self.folder)
        self._tries: dict[str, int] = {}

    def refresh(self) -> "Rows":
        """Read what was committed since the last time. Of a point that was retried, the last try counts."""
        self.journal.refresh()  # before the rows: what it names is there already
        for name, number, line in self._lines.fresh():
            row = row_of(line)
            try:
                _Row.model_validate(row)
            except ValidationError:
                # digest and try that a damaged line still shows
                point, retry = re.search(rb'"digest":"([0-9a-f]{64})"', line), re.search(rb'"retry":(\d{1,9})\b', line)
                legible = (point.group(1).decode(), int(retry.group(1))) if point and retry else None
                self.damaged[f"{self.folder / name}, line {number}"] = legible
                continue
            before = self.current.get(row["digest"])
            if before is None or (row["retry"] > before["retry"] and (reached_end(row) or not reached_end(before))):
                self.current[row["digest"]] = row
            self._tries[row["digest"]] = max(row["retry"], self._tries.get(row["digest"], 0))
        return self

    @property
    def lost(self) -> dict[str, int]:
        """Points by digest whose last committed try is not there, or not intact, and that try."""
        named = [*self.journal.tries.items(), *filter(None, map(self._point, self.damaged.values()))]
        return dict(sorted((digest, retry) for digest, retry in named if self._tries.get(digest, -1) < retry))

    def _point(self, legible: tuple[str, int] | None) -> tuple[str, int] | None:
        """The point of a damaged line, unless its name is damaged too: one that nothing else names."""
        tries = self.journal.tries
        return legible if legible and (not tries or legible[0] in tries or legible[0] in self._tries) else None

    def unnamed(self) -> dict[str, int]:
        """Intact tries that the journal does not name: of a process that was killed in between."""
        return {digest: retry for digest, retry in self._tries.items() if self.journal.tries.get(digest, -1) < retry}

    def problems(self) -> list[str]:
        """Damage that matters, a sentence each: of a point that was computed again since, nothing is lost."""
        lost, sentences = self.lost, []
        for place, legible in self.damaged.items():
            point = self._point(legible)
            if (lost or not self.journal.tries) if point is None else point[0] in lost:
                sentences.append(f"{place}: damaged, its bytes are not those that were committed")
        return sentences + self.gone()

    def gone(self) -> list[str]:
        """Committed rows of which no line is left, a sentence each."""
        digests = {point[0] for point in map(self._point, self.damaged.values()) if point is not None}
        return [f"{self.folder}: the committed row of point {digest} is gone" for digest in self.lost if digest not in digests]

    def has(self, digest: str, retry: int, renew: bool = False) -> bool:
        """Whether a point has its row: of this try of it, or of a later one, or one that reached its end and is not renewed."""
        row = self.current.get(digest)
        return row is not None and (row["retry"] >= retry or (reached_end(row) and not renew))


def misfits(rows: Rows, axes: Sequence[Axis]) -> list[str]:
    """Rows that do not belong to a sweep over these axes, a sentence each."""
    wrong = (digest for digest, row in rows.current.items() if not fits(row, axes))
    return [f"{rows.folder}: the row of point {digest} is not one of this sweep" for digest in wrong]


class Journal:
    """Which tries of which points were committed, in checked lines like those of rows, one file per writing process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "journal"
        self.tries: dict[str, int] = {}
        self.damaged: list[str] = []
        self._lines = Lines(self.folder)

    @property
    def size(self) -> int:
        """Bytes of its whole lines."""
        return self._lines.size

    def refresh(self) -> None:
        for name, number, line in self._lines.fresh():
            entry = row_of(line)
            try:
                for digest, retry in _NAMED.validate_python(entry):
                    self.tries[digest] = max(retry, self.tries.get(digest, 0))
            except ValidationError:
                self.damaged.append(f"{self.folder / name}, line {number}: damaged, its bytes are not those that were committed")


_NAMED = TypeAdapter(list[tuple[str, Whole]])


class RowWriter:
    """Commits rows of one process, into files that no other process writes."""

    def __init__(self, folder: Path) -> None:
        self.rows = Rows(folder)
        self.name = uuid.uuid4().hex
        self._lock = folder / "lock"
        self._committed = AppendFile(self.rows.folder / f"{self.name}.jsonl")
        self._named = AppendFile(self.rows.journal.folder / f"{self.name}.jsonl")

    @contextmanager
    def locked(self) -> Iterator[Rows]:
        """Hold the sweep's lock, knowing every committed row; it ends with the process, however that ends."""
        with store_errors(self._lock):
            handle = no_link(str(self._lock), os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield self.rows.refresh()
            finally:
                os.close(handle)

    def commit(self, rows: Sequence[Row]) -> list[Row]:
        """Append rows of points that have none and push them to the disk; returns those that were taken."""
        if not rows:
            return []
        with self.locked() as current:
            new_rows = [row for row in rows if not current.has(row["digest"], row["retry"], row.get("renew", False))]
            now = time.time()
            if new_rows:
                self._committed.append(b"".join(line_of({**row, "committed": now}) for row in new_rows))
                self._named.append(line_of([(row["digest"], row["retry"]) for row in new_rows]))
            current.refresh()
        return new_rows

    def settle(self) -> int:
        """Name every intact row in the journal, which is written anew if it was damaged; returns its size, for the plan."""
        with self.locked() as current:
            tries = current.unnamed()
            if current.journal.damaged:
                tries = {**current.journal.tries, **tries}
            if tries or not current.journal.size:
                self._named.append(line_of(list(tries.items())))
            if current.journal.damaged:
                for path in current.journal.folder.glob("*.jsonl"):
                    if path != self._named.path:
                        path.unlink()
            fresh = Journal(current.folder.parent)
            fresh.refresh()
            current.journal = fresh
            return fresh.size

    def close(self) -> None:
        """Let go of the files; a later commit opens them again."""
        self._committed.close()
        self._named.close()
