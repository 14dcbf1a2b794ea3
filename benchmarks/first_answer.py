"""Shell to finished small run, and --help: CPU seconds of fresh processes with warm caches (bar: 2 s and .5 s)."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = Path(sys.executable).parent / "stagescope"
TIMES = 7


def cpu_seconds(*arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([COMMAND, *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = ["run", "scan-snap", "--preset", "syn-small-flow", "--quiet", "--overwrite", "--out", os.path.join(folder, "run")]
        cpu_seconds(*run)
        runs = sorted(cpu_seconds(*run) for _ in range(TIMES))
        helps = sorted(cpu_seconds("--help") for _ in range(TIMES))
    print(f"finished small run: median {runs[TIMES // 2]:.2f} s of CPU (least {runs[0]:.2f})")
    print(f"--help: median {helps[TIMES // 2]:.2f} s of CPU (least {helps[0]:.2f})")
    print(json.dumps({"run_seconds": runs[TIMES // 2], "help_seconds": helps[TIMES // 2], "run_least": runs[0]}))


if __name__ == "__main__":
    main()
