"""Kill runs and resume them: the process side of the crash checks, shared by tests/test_resume.py and validation/kill.py.

A reference run gives the arrays and how long they take. A victim is the same command, killed at a random instant after its
folder appeared; it is opened, its checkpoint looked at, then resumed by the command or from Python, perhaps killed again, and
finished.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, fields
from pathlib import Path

import safetensors.numpy

from stagescope.runs import manifest as manifests
from stagescope.runs.store import load

KINDS = {
    "flow": ("--num-last", "60", "--until", "3000", "--rtol", "1e-12", "--frames", "80"),
    "heavy-ball": ("--optimizer", "heavy-ball", "--steps", "500000"),
    "adam": ("--optimizer", "adam", "--lr", "0.01", "--steps", "400000"),
}
"""Options of `stagescope run scan-snap` for runs of three seconds or more of work each."""
GRACE = 1.0
"""A kill within so many seconds after the folder appeared may find no checkpoint but that of the start."""
PATIENCE = 120.0
RESTART = 100
"""Evaluations between two restarts of the flow, which would have none by default: it takes seconds."""
_RESTARTS = f"from stagescope.flow import flow; flow.FEWEST = flow.MOST = {RESTART}"
_COMMAND = (sys.executable, "-c", f"{_RESTARTS}; from stagescope.cli.main import main; main()")
_PYTHON = (sys.executable, "-c", "import sys, stagescope as ss; ss.resume(sys.argv[1], progress=False)")
_ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
"""The same thread setup for every command: bits are promised for one setup. Python sets BLAS threads by itself."""


class Unexpected(AssertionError):
    """A process did not do what every process here must do; the message says what it said."""


def spawn(*arguments: str | Path) -> subprocess.Popen[str]:
    """Start a command of the command line; `python FOLDER` resumes a run from Python, with as many BLAS threads as there are."""
    python = arguments[0] == "python"
    words = [*_PYTHON, str(arguments[1])] if python else [*_COMMAND, *map(str, arguments)]
    environment = {**os.environ, **_ONE_THREAD}
    if python:
        del environment["OPENBLAS_NUM_THREADS"]
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    """Wait for a command and require its exit code; returns what it said on standard error."""
    _, said = process.communicate(timeout=PATIENCE)
    if process.returncode != code:
        raise Unexpected(f"exit code {process.returncode}, expected {code}: {said}")
    return said


def wait_for_commit(process: subprocess.Popen[str], folder: Path, before: int | None) -> None:
    """Until the run's manifest is there, or is another one than `before`: the process has begun its work."""
    deadline = time.monotonic() + PATIENCE
    while last_commit(folder) == before and process.poll() is None:
        if time.monotonic() > deadline:
            raise Unexpected(f"nothing was committed to {folder} in {PATIENCE:g} s")
        time.sleep(0.002)


def last_commit(folder: Path) -> int | None:
    """A number that changes with every commit."""
    path = folder / manifests.NAME
    return path.stat().st_ino if path.exists() else None


def run_arguments(kind: str, folder: Path) -> tuple[str | Path, ...]:
    return ("run", "scan-snap", *KINDS[kind], "--quiet", "--out", folder)


@dataclass(frozen=True)
class Reference:
    """An uninterrupted run: its arrays, and the seconds from its first commit to its last."""

    kind: str
    arrays: dict[str, bytes]
    seconds: float


def reference(kind: str, folder: Path) -> Reference:
    finish(spawn(*run_arguments(kind, folder)))
    times = [event["time"] for event in events(folder)]
    return Reference(kind, arrays(folder), times[-1] - times[0])


def arrays(folder: Path) -> dict[str, bytes]:
    """Every recorded array, bit for bit."""
    run = load(folder)
    found = {**run.series, **run.params}
    return {f"{name} {values.dtype} {values.shape}": values.tobytes() for name, values in found.items()}


def events(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / manifests.EVENTS).read_text().splitlines()]


def position(folder: Path) -> float:
    """Where the last checkpoint of a run is, on its own clock: 0 is the start."""
    checkpoint = manifests.read(folder).checkpoint
    return float(safetensors.numpy.load_file(folder / str(checkpoint))["position"])


@dataclass
class Tally:
    """What became of the victims of one kind."""

    runs: int = 0
    kills: int = 0
    opened: int = 0
    from_checkpoint: int = 0
    from_zero: int = 0
    in_grace: int = 0
    too_late: int = 0
    equal: int = 0
    notes: list[str] = field(default_factory=list)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(Tally)))

    @property
    def holds(self) -> bool:
        """Every victim opened, none started over unless killed at once, and all end as the uninterrupted run."""
        accounted = self.from_checkpoint + self.from_zero + self.too_late == self.kills == self.opened
        return accounted and self.from_zero == self.in_grace and self.equal == self.runs


def victim(reference: Reference, folder: Path, kills: int, rng: random.Random) -> Tally:
    """One run, killed up to so many times and resumed each time, until it is done."""
    tally, arguments, frames = Tally(runs=1), run_arguments(reference.kind, folder), []
    for _ in range(kills):
        if not _kill(arguments, folder, rng.uniform(0, 0.6 * reference.seconds), tally):
            break
        frames.append(load(folder).frames)
        arguments = _resuming(folder, rng)
    if not load(folder).done:
        finish(spawn(*_resuming(folder, rng)))
    resumed = [event["frames"] for event in events(folder) if event["event"] == "resumed"]
    if resumed != frames:
        raise Unexpected(f"{folder} was killed with {frames} frames committed, but resumed with {resumed}")
    tally.equal += arrays(folder) == reference.arrays
    return tally


def _resuming(folder: Path, rng: random.Random) -> tuple[str | Path, ...]:
    """Arguments of `spawn` that resume a run: by the command, or from Python."""
    return ("python", folder) if rng.random() < 0.5 else ("resume", folder, "--quiet")


def _kill(arguments: tuple[str | Path, ...], folder: Path, delay: float, tally: Tally) -> bool:
    """Start a command and kill it `delay` seconds after its first commit; False if the run got done before."""
    before = last_commit(folder)
    process = spawn(*arguments)
    wait_for_commit(process, folder, before)
    began = time.monotonic()
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    lived = time.monotonic() - began
    process.communicate()
    if process.returncode != -signal.SIGKILL:
        if process.returncode != 0:
            raise Unexpected(f"exit code {process.returncode} before it was killed")
        return False
    tally.kills += 1
    run = load(folder)
    tally.opened += 1
    if run.done:
        tally.too_late += 1
        return False
    if position(folder) > 0:
        tally.from_checkpoint += 1
    else:
        tally.from_zero += 1
        tally.in_grace += lived < GRACE
        if lived >= GRACE:
            log = [(event["event"], round(event["time"] - events(folder)[0]["time"], 2)) for event in events(folder)]
            tally.notes.append(f"{folder.name}: `{arguments[0]}` lived {lived:.2f} s without a checkpoint after the start; {log}")
    return True
