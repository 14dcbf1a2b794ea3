"""What the sweep engine costs: scaling, overhead per cheap point, figure 6 against `reproduce`, runs that refinement saves.

`python -m benchmarks.sweep`; `--points N` for a smaller first part. Every sweep is a command in a process of its own; CPU time
is that of the command and all processes under it. Run it on idle cores: scaling means nothing on busy ones.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import stagescope as ss
from stagescope.papers.scan_snap.study import MEDIUM_LAST, MEDIUM_RATIO, MEDIUM_Z

CHEAP_POINTS = 2000
CODE = "from stagescope.cli.main import main; main()"


def command(*words: object) -> tuple[float, float]:
    """Run a command: wall seconds, and CPU seconds of it and of all its descendants that have ended."""
    before, began = os.times(), time.monotonic()
    subprocess.run([sys.executable, "-c", CODE, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
    seconds, after = time.monotonic() - began, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, used


def scaling(points: int, folder: Path) -> dict[str, float]:
    """A focus-dilution grid over pi_0 and persistence with events and verdicts, on one worker and on two."""
    side = max(2, math.isqrt(points))
    grids = ("--grid", f"pi.0=.3:.7:{side}", "--grid", f"persistence=.1:.8:{side}")
    found = {}
    for workers in (1, 2):
        out = folder / f"grid-{workers}"
        words = (
            "sweep",
            "focus-dilution",
            *grids,
            "--measure",
            "events",
            "verdicts",
            "--workers",
            workers,
            "--out",
            out,
            "--quiet",
        )
        found[workers], _ = command(*words)
        rows = ss.load_sweep(out).rows
        assert len(rows) == side**2
        print(f"{len(rows)} points with events and verdicts, {workers} workers: {found[workers]:.0f} s", flush=True)
    return {"grid_points": side**2, "seconds_1_worker": found[1], "seconds_2_workers": found[2], "scaling": found[1] / found[2]}


def overhead(folder: Path) -> dict[str, float]:
    """Wall time of one worker on cheap points, beyond what they take themselves and beyond starting up, for each point."""
    spent, took = [], []
    for count in (CHEAP_POINTS // 10, CHEAP_POINTS + CHEAP_POINTS // 10):
        out = folder / f"cheap-{count}"
        words = ("scan-snap", "--until", 1, "--frames", 10, "--grid", f"rate_y=1:2:{count}", "--measure", "numbers")
        seconds, _ = command("sweep", *words, "--workers", 1, "--out", out, "--quiet")
        took.append(seconds)
        spent.append(sum(row["seconds"] for row in ss.load_sweep(out).rows))
    beyond = ((took[1] - spent[1]) - (took[0] - spent[0])) / CHEAP_POINTS
    print(
        f"overhead {1000 * beyond:.2f} ms a point; points take {1000 * (spent[1] - spent[0]) / CHEAP_POINTS:.2f} ms", flush=True
    )
    return {"overhead_ms": 1000 * beyond, "cheap_point_ms": 1000 * (spent[1] - spent[0]) / CHEAP_POINTS}


def figure_six(folder: Path) -> dict[str, float]:
    """The 640 runs of figure 6 as a sweep and as `reproduce` makes them: CPU time and the largest difference of a cell.

    Both are run twice and the second is taken: the first may compile.
    """
    cpu = {}
    for turn in range(2):
        _, cpu["sweep"] = command("sweep", "scan-snap", "--preset", "figure-6", "--out", folder / f"six-{turn}", "--quiet")
        _, cpu["reproduce"] = command("reproduce", "scan-snap", "--figure", "6", "--out", folder / "figures", "--quiet")
    drawn = json.loads((folder / "figures" / "figure6.json").read_text())["cells"]
    gaps = [abs(mean - drawn[name][0]) for name, mean in cell_means(ss.load_sweep(folder / "six-1")).items()]
    assert len(gaps) == len(drawn)
    print(f"figure 6: CPU {cpu['sweep']:.1f} s against {cpu['reproduce']:.1f} s, largest difference {max(gaps):.1e}", flush=True)
    ratio = cpu["sweep"] / cpu["reproduce"]
    return {"figure6_cpu": cpu["sweep"], "reproduce_cpu": cpu["reproduce"], "figure6_cpu_ratio": ratio, "figure6_gap": max(gaps)}


def cell_means(sweep: ss.Sweep) -> dict[str, float]:
    """Mean entropy by number of queries, eta_Z and eta_Y/eta_Z, named as in the figure's numbers."""
    means = {}
    for entry in sweep.statistics("entropy", by=["num_last", "rate_z", "rate_y"]):
        last, z, y = entry["at"].values()
        names = [f"{last}|{z0}|{r}" for z0 in MEDIUM_Z for r in MEDIUM_RATIO if (z0, z0 * r) == (z, y) and last in MEDIUM_LAST]
        means[names[0]] = entry["mean"]
    return means


def boundary(folder: Path) -> dict[str, float]:
    """Where focus becomes defocus over (pi_0, persistence), by refinement: real flows; in theory at persistence 0 everywhere.

    `boundary_width` is the widest gap, at any pi_0, between runs that go one way and runs that go the other, as a share of the
    axis; `boundary_runs` the runs it took as a share of a full grid with steps of 1 %.
    """
    low, high, out = -0.05, 0.6, folder / "boundary"
    grids = ("--grid", "pi.0=.3:.7:9", "--grid", f"persistence={low}:{high}:9", "--until", 300, "--frames", 60)
    command(
        "sweep",
        "focus-dilution",
        *grids,
        "--measure",
        "numbers",
        "--refine",
        4,
        "--refine-by",
        "first_move",
        "--out",
        out,
        "--quiet",
    )
    found = ss.load_sweep(out)
    columns: dict[float, list[tuple[float, float]]] = {}
    for row in found.rows:
        columns.setdefault(row["at"]["pi.0"], []).append((row["at"]["persistence"], row["numbers"]["first_move"]))
    gaps = []
    for column in columns.values():
        below, above = (max(at for at, moved in column if moved < 0), min(at for at, moved in column if moved > 0))
        assert below < 0 < above
        gaps.append((above - below) / (high - low))
    share = len(found) / 101**2
    print(
        f"focus and defocus: {len(found)} runs, {100 * share:.1f} % of 101 x 101; boundary to {100 * max(gaps):.2f} % of its axis"
    )
    return {"boundary_width": max(gaps), "boundary_runs": share}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=400, help="points of the grid, about")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        found = {**figure_six(folder), **boundary(folder), **overhead(folder), **scaling(asked.points, folder)}
    print(json.dumps({name: round(value, 4) if value > 1e-4 else value for name, value in found.items()}))


if __name__ == "__main__":
    main()
