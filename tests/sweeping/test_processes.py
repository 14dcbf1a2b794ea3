"""Sweeps on real worker processes: killed at random, and on a scheduler started by hand."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import stagescope as ss
from stagescope.core.errors import StagescopeError
from validation.sweep_killing import Hunt, audit, unlike

FLOWS = ("focus-dilution", "--grid", "pi.0=.4,.5,.6", "--grid", "persistence=.4:.7:4")


@pytest.mark.long
def test_workers_and_client_are_killed_at_random(tmp_path):
    hunt = Hunt(tmp_path / "sweep", FLOWS, workers=2, seed=3)
    hunt.run(kills=2, client_kills=1)
    found = audit(hunt.folder, points=12)
    assert found.holds, str(found)
    assert (hunt.kills, hunt.client_kills) == (2, 1)
    assert len(ss.load_sweep(hunt.folder)) == 12
    assert not unlike(hunt.folder, 3)


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers as a person starts them, on loopback."""
    started: list[subprocess.Popen] = []

    def start(*words: str) -> subprocess.Popen:
        process = subprocess.Popen([sys.executable, "-m", "dask", *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        started.append(process)
        return process

    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    assert scheduler.stderr is not None
    address = next(found.group(1) for line in scheduler.stderr if (found := re.search(r"(tcp://127\.0\.0\.1:\d+)", line)))
    threading.Thread(target=scheduler.stderr.read, daemon=True).start()
    workers = [start("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard") for _ in range(2)]
    for worker in workers:
        threading.Thread(target=worker.stderr.read, daemon=True).start()
    yield address, scheduler, workers
    for process in reversed(started):
        process.kill()
        process.wait()


@pytest.mark.long
def test_a_second_scheduler_and_the_death_of_one_of_its_workers(cluster, tmp_path):
    address, scheduler, workers = cluster
    folder = tmp_path / "sweep"
    killed = threading.Event()

    def kill() -> None:
        """End the first worker while it is at a point."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            for path in (folder / "attempts").glob("*.jsonl"):
                if f'"pid":{workers[0].pid},' in path.read_text():
                    os.kill(workers[0].pid, signal.SIGKILL)
                    killed.set()
                    return
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    grid = {"pi.0": ".4,.5,.6", "persistence": ".4:.7:4"}
    made = ss.sweep("focus-dilution", grid=grid, scheduler=address, out=folder, progress=False)
    thread.join()
    assert killed.is_set()
    assert len(made) == 12
    assert not made.failed
    assert audit(Path(folder), points=12).holds
    watch = threading.Thread(target=lambda: (wait_for_rows(folder, 13), scheduler.kill()))
    watch.start()
    with pytest.raises(StagescopeError, match="the scheduler is gone"):
        ss.sweep("focus-dilution", grid={**grid, "persistence": ".1:.8:30"}, scheduler=address, out=folder, progress=False)
    watch.join()
    assert len(ss.load_sweep(folder)) >= 13


def wait_for_rows(folder: Path, count: int) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until and len(ss.load_sweep(folder)) < count:
        time.sleep(0.05)


@pytest.mark.long
def test_own_claims_on_worker_processes(tmp_path):
    """The command imports the module from its folder, and so do its workers; a second call must name it again."""
    (tmp_path / "mine.py").write_text(
        "import stagescope as ss\n"
        "CLAIM = ss.Claim(tag='own:end', statement='It ends', regime=lambda e: ss.Regime(True, 'any run'),\n"
        "    compare=lambda e: ss.Comparison('t > 0', e.run.time[-1], 'exact', e.run.time[-1] > 0, 'the end'))\n"
    )
    words = [sys.executable, "-P", "-m", "stagescope", "sweep", "scan-snap", "--until", ".01", "--frames", "3", "--workers", "1"]
    words += ["--grid", "rate_y=1,2", "--out", "sweep", "--quiet"]

    def call(*more):
        return subprocess.run([*words, *more], cwd=tmp_path, capture_output=True, text=True)

    done = call("--claims", "mine:CLAIM")
    assert (done.returncode, done.stderr) == (0, "")
    assert ss.load_sweep(tmp_path / "sweep").column("own:end") == ["confirmed"] * 2
    again = call()
    assert again.returncode == 2
    assert "give --claims mine:CLAIM again" in again.stderr
