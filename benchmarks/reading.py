"""Reading: `check` in a fresh process and again, a warm sweep point, a report twice, the first answer, and --help.

`python -m benchmarks.reading`. CPU seconds, one thread, minima. Claims of version 0.1.0 and those that came later are rows of
their own: the later ones follow the saddle path of the start. Seconds are also given for the core on which the bars were
measured (`scaled`): the ratio is that of calls of the gradient's kernel, which no version since has changed for four tokens.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import stagescope as ss
from benchmarks.timing import least
from stagescope.core.caches import FRESH
from stagescope.core.threads import one_blas_thread
from stagescope.papers.focus_dilution.kernel import gradient, hold

LATER = ("predicted-sequence", "predicted-times", "critical-scale", "lambda-c", "delta-law", "recurrence")
"""Claims that version 0.1.0 did not have."""
CALLS, CALLS_SECONDS = 20_000, 0.0273
"""Calls of the kernel, and what they take on the core of the bars, where `evolve` on ref took .050 s in version 0.1.0."""
BARS = {"check": 2.3, "again": 0.01, "point": 0.4, "first_answer": 1.0, "help": 0.3, "report": 0.15}


def fresh(*words: object, times: int = 3) -> float:
    """The least CPU time of a process; the first one may compile and is not counted."""
    found, alone = [], {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    for _ in range(times + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *map(str, words)], check=True, capture_output=True, env=alone)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found[1:])


def judged(run: ss.Run) -> object:
    """The claims of version 0.1.0 on a run: without those that came later, and without the path they follow."""
    read = ss.reading(run)
    evidence = replace(read.evidence)
    vars(evidence)["predicted"] = None, "the path is left out"
    return [claim.judge(read.run, evidence) for claim in read.kind.claims() if claim.tag.removeprefix("FD:") not in LATER]  # pyright: ignore


def kernel_calls() -> None:
    held = hold((4, 8, 8), 4.0, np.array([0.5, 0.25, 0.15, 0.10]), np.full((4, 4), 0.25))
    theta, out = np.full(192, 0.1), np.empty(192)
    for _ in range(CALLS):
        gradient(theta, out, held)


def ref(seed: int = 0, out: Path | None = None) -> ss.Run:
    return ss.run_study("focus-dilution", "ref", seed=seed, out=out, progress=False)


def report_ratio(folder: Path) -> float:
    """The CPU time of a second report of ten runs over that of the first."""
    runs = [folder / f"seed-{seed}" for seed in range(10)]
    for seed, out in enumerate(runs):
        ref(seed, out)
    first, second = (least(lambda: ss.report(runs, folder / "page.html", progress=False), 1) for _ in range(2))
    return second / first


@one_blas_thread()
def main() -> None:
    if sys.argv[1:2] == ["--judge"]:
        judged(ss.load(sys.argv[2]))
        return
    os.environ[FRESH] = "1"  # what is computed is measured; benchmarks.kept_readings measures what is kept
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        run = folder / "ref"
        ref(0, run)
        small = ("run", "scan-snap", "--preset", "syn-small-flow", "--quiet", "--overwrite", "--out", folder / "small")
        found = {
            "check": fresh("-m", "benchmarks.reading", "--judge", run),
            "check_all_claims": fresh("-m", "stagescope", "check", run, "--quiet"),
            "first_answer": fresh("-m", "stagescope", *small),
            "help": fresh("-m", "stagescope", "--help"),
            "evolve": least(ref),
            "point": least(lambda: judged(ref())),
            "point_all_claims": least(lambda: ss.check(ref()), 3),
            "again": least(lambda: ss.check(run)),
        }
        kernel_calls()
        ratio, report = least(kernel_calls) / CALLS_SECONDS, report_ratio(folder)
    for name, seconds in found.items():
        bar = f"   bar {BARS[name]:g} s" if name in BARS else ""
        print(f"{name.replace('_', ' '):<18} {seconds:7.3f} s   scaled {seconds / ratio:7.3f} s{bar}")
    print(f"report of 10 runs, second call over first: {report:.3f}   bar {BARS['report']:g}")
    print(json.dumps({**{name: round(seconds, 4) for name, seconds in found.items()}, "core": ratio, "report": round(report, 4)}))


if __name__ == "__main__":
    main()
