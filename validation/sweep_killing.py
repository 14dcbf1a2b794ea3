"""A sweep whose workers and client are SIGKILLed at random: one row per point, none lost, none computed after its commit."""

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from stagescope.readings.registry import study
from stagescope.sweeping.plan import Point
from stagescope.sweeping.rows import row_of
from stagescope.sweeping.table import load_sweep
from stagescope.sweeping.worker import measured

POINTS, WORKERS, KILLS, CLIENT_KILLS = 64, 4, 50, 2
ARGUMENTS = ("focus-dilution", "--grid", "pi.0=.35:.65:8", "--grid", "persistence=.3:.7:8", "--measure", "events", "verdicts")
COMPARED = 8
PATIENCE = 300.0
"""Seconds without any progress after which a hunt has failed."""


@dataclass
class Audit:
    """What a sweep's folder shows in the end."""

    points: int
    rows: Counter[str] = field(default_factory=Counter)
    damaged: int = 0
    attempts: int = 0
    late: int = 0
    failed: int = 0

    @property
    def holds(self) -> bool:
        """Exactly one committed row for every point, with its result, and no attempt on a point after its commit."""
        single = len(self.rows) == self.points and set(self.rows.values()) == {1}
        return single and not (self.damaged or self.late or self.failed)

    def __str__(self) -> str:
        lost, twice = self.points - len(self.rows), sum(count > 1 for count in self.rows.values())
        begun = f"{self.attempts} begun, {self.late} of them after their commit"
        bad = f"{lost} lost, {twice} with two rows, {self.failed} failed, {self.damaged} damaged lines"
        return f"{self.points} points: {begun}; {bad}"


def audit(folder: Path, points: int) -> Audit:
    found, committed = Audit(points), {}
    for path in sorted((folder / "rows").glob("*.jsonl")):
        for line in path.read_bytes().split(b"\n")[:-1]:
            row = row_of(line)
            if row is None:
                found.damaged += 1
            else:
                found.rows[row["digest"]] += 1
                committed[row["digest"]] = row["committed"]
                found.failed += row["status"] != "finished"
    for path in sorted((folder / "attempts").glob("*.jsonl")):
        for line in path.read_bytes().split(b"\n")[:-1]:
            entry = json.loads(line)
            found.attempts += 1
            found.late += entry["time"] > committed.get(entry["digest"], float("inf"))
    return found


def unlike(folder: Path, count: int) -> list[str]:
    """Digests of those among `count` rows whose results are not the ones that the point gives here, undisturbed."""
    sweep = load_sweep(folder)
    of, found = study(sweep.plan.study), []
    for row in random.Random(0).sample(sweep.rows, count):
        again = measured(of, Point(row["digest"], row["seed"], row["at"], row["config"]), sweep.plan.measures)
        if any(row.get(part) != again.get(part) for part in ("status", "end", "events", "durations", "verdicts", "numbers")):
            found.append(row["digest"])
    return found


class Hunt:
    """One sweep from start to end, with kills on the way."""

    def __init__(self, folder: Path, arguments: tuple[str, ...], workers: int, seed: int) -> None:
        self.folder, self._rng = folder, random.Random(seed)
        self._command = ("sweep", *arguments, "--workers", str(workers), "--out", str(folder), "--quiet")
        self.kills = self.client_kills = 0

    def run(self, kills: int, client_kills: int) -> None:
        """Kill workers `kills` times and the client `client_kills` times in between, or until the sweep is done."""
        at = set(self._rng.sample(range(1, kills), client_kills))
        client = self._start()
        while client.poll() is None:
            if self.kills >= kills:
                client.wait(timeout=4 * PATIENCE)
            elif not self._wait_for_attempt(client):
                continue
            elif self.kills in at:
                at.remove(self.kills)
                client.send_signal(signal.SIGKILL)
                client.wait()
                self.client_kills += 1
                client = self._start()
            else:
                self.kills += self._kill_worker(client)
        if client.returncode:
            raise AssertionError(f"the sweep ended with exit code {client.returncode}: {client.communicate()[1]}")

    def _start(self) -> "subprocess.Popen[str]":
        code = "from stagescope.cli.main import main; main()"
        return subprocess.Popen([sys.executable, "-c", code, *self._command], stderr=subprocess.PIPE, text=True)

    def _attempts(self) -> int:
        return sum(path.read_bytes().count(b"\n") for path in (self.folder / "attempts").glob("*.jsonl"))

    def _wait_for_attempt(self, client: "subprocess.Popen[str]") -> bool:
        """Wait until one more point is begun, then a random moment; False if the sweep ended before."""
        before, until = self._attempts(), time.monotonic() + PATIENCE
        while self._attempts() == before:
            if client.poll() is not None:
                return False
            if time.monotonic() > until:
                raise AssertionError(f"no point was begun for {PATIENCE:g} s")
            time.sleep(0.02)
        time.sleep(self._rng.uniform(0, 0.5))
        return client.poll() is None

    def _kill_worker(self, client: "subprocess.Popen[str]") -> bool:
        """Kill any worker, be it starting, computing, committing or idle."""
        try:
            family = psutil.Process(client.pid).children()
            workers = [child for child in family if any("spawn_main" in word for word in child.cmdline())]
            self._rng.choice(workers).kill()
        except (psutil.Error, IndexError):
            return False
        return True


def main() -> bool:
    kills = client_kills = 0
    held = True
    with tempfile.TemporaryDirectory() as scratch:
        while kills < KILLS or client_kills < CLIENT_KILLS:
            hunt = Hunt(Path(scratch) / f"sweep-{kills}", ARGUMENTS, WORKERS, seed=kills)
            hunt.run(max(KILLS - kills, 3), max(CLIENT_KILLS - client_kills, 0))
            found, other = audit(hunt.folder, POINTS), unlike(hunt.folder, COMPARED)
            compared = f"{len(other)} of {COMPARED} rows unlike an undisturbed run"
            print(f"{hunt.kills} workers and {hunt.client_kills} clients killed; {found}; {compared}", flush=True)
            kills, client_kills = kills + hunt.kills, client_kills + hunt.client_kills
            held = held and found.holds and not other
            if not hunt.kills:
                raise AssertionError("a sweep ended before anything could be killed")
    print(f"in all {kills} workers and {client_kills} clients killed")
    return held


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
