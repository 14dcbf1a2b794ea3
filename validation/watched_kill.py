"""SIGKILL at 50 random instants of programs that record as fast as they can: no record that was said to be committed is lost.

A program resumes its run, records frames of about 5 KB, and prints the step of the last record after each commit. After each kill
the folder is verified, every record in it is compared bit for bit with what the program recorded, and the last step must not be
before the last that was printed.
"""

import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from stagescope.runs.recorder import Recorder
from stagescope.runs.store import load, verify

KILLS = 50
PER_RUN = 5
"""How often one run is killed before the next begins."""
LONGEST = 1.5
"""Seconds from the first record of a program to its kill, at most: enough for several chunks of 1 MiB."""
ARRAYS = {
    "loss": (),
    "lag_mass": (2, 4, 32),
    "type_mass": (2, 4, 33),
    "pattern": (2, 4, 12, 6),
    "entropy": (2, 4),
    "sink": (2, 4),
}
"""Shapes of a record: 4.6 KB in single precision."""


def record_of(step: int) -> dict[str, np.ndarray]:
    """The arrays of a step, which anybody can make again."""
    rng = np.random.default_rng(step)
    return {name: np.asarray(rng.random(shape, np.float32)) for name, shape in ARRAYS.items()}


def program(folder: str) -> None:
    """Record until killed; print what is committed."""
    recorder = Recorder(folder, every=7, resume=True)
    print(-1 if recorder.last is None else recorder.last, flush=True)
    for step in itertools.count(len(recorder.steps)):
        recorder.record(step, **record_of(step))
        if step % 7 == 0:
            recorder.commit()
            print(step, flush=True)


@dataclass
class Tally:
    kills: int = 0
    before_first: int = 0
    records: int = 0
    lost: int = 0
    wrong: int = 0
    damaged: int = 0
    not_resumed: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return self.kills >= KILLS and self.lost == self.wrong == self.damaged == self.not_resumed == 0


def main() -> bool:
    rng, tally = random.Random(19), Tally()
    with tempfile.TemporaryDirectory() as scratch:
        for number in itertools.count():
            if tally.kills >= KILLS:
                break
            _hunt(Path(scratch) / f"run-{number}", rng, tally)
    print("kills  before the first commit  records kept  committed and lost  not bitwise equal  damaged  not resumed")
    left = f"{tally.kills:>5}  {tally.before_first:>23}  {tally.records:>12}  {tally.lost:>18}  {tally.wrong:>17}"
    print(f"{left}  {tally.damaged:>7}  {tally.not_resumed:>11}")
    print("\n".join(tally.notes), end="\n" if tally.notes else "")
    return tally.holds


def _hunt(folder: Path, rng: random.Random, tally: Tally) -> None:
    """Kill one run a few times, each program going on where the one before was killed; then finish it."""
    kept = 0
    for _ in range(PER_RUN):
        said = _kill(folder, rng)
        tally.kills += 1
        if not said or said[0] != kept - 1:
            tally.not_resumed += 1
            tally.notes.append(f"{folder.name}: {kept} records were kept, and the next program said {said[:1]}")
        if not folder.exists() and said == [-1]:
            tally.before_first += 1
            continue
        before, kept = kept, _judge(folder, said, tally)
        tally.records += kept - before
    if folder.exists():
        with Recorder(folder, resume=True) as recorder:
            recorder.record(kept, **record_of(kept))
        _judge(folder, [kept], tally)


def _kill(folder: Path, rng: random.Random) -> list[int]:
    """Start a program, kill it at a random instant after it opened its run; returns what it printed."""
    command = [sys.executable, "-c", "import sys; from validation.watched_kill import program; program(sys.argv[1])", str(folder)]
    process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    time.sleep(rng.uniform(0, LONGEST) if rng.random() < 0.8 else rng.uniform(0, 0.05))
    process.send_signal(signal.SIGKILL)
    lines += process.communicate()[0].splitlines(keepends=True)
    return [int(line) for line in lines if line.endswith("\n")]


def _judge(folder: Path, said: list[int], tally: Tally) -> int:
    """Compare what is on disk with what was recorded; returns how many records there are."""
    if problems := verify(folder):
        tally.damaged += 1
        tally.notes.append(f"{folder.name}: {problems[0]}")
        return 0
    run = load(folder)
    last = int(run.step[-1])
    tally.lost += max(0, said[-1] - last) if said else 0
    made = [record_of(step) for step in range(run.frames)]
    same = run.step.tolist() == list(range(run.frames))
    same = same and all(run.series[name].tobytes() == np.array([one[name] for one in made]).tobytes() for name in ARRAYS)
    tally.wrong += not same
    return run.frames


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
