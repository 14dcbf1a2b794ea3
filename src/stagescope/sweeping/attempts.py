"""Attempts: a line whenever a worker begins a point, so that the workers lost on a point can be counted."""

import json
import os
import socket
import time
from collections import Counter
from pathlib import Path

from stagescope.runs.files import store_errors
from stagescope.spec import canonical
from stagescope.sweeping.lines import Lines


class Attempts:
    """Attempts on points by all processes of one call of `sweep`; a process appends to a file of its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder / "attempts"
        self._path = self.folder / f"{name}.jsonl"
        self._lines = Lines(self.folder)
        self._counts: Counter[tuple[str, str]] = Counter()
        self._handle: int | None = None

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
        with store_errors(self._path):
            if self._handle is None:
                self.folder.mkdir(exist_ok=True)
                self._handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            os.write(self._handle, line + b"\n")

    def close(self) -> None:
        """Let go of the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
