"""Integrations and CPU seconds of the README's five commands on one run, each in a process of its own.

`python -m benchmarks.kept_readings`: with nothing kept (`fresh`), with an empty cache (`first`), and once more (`again`).
One thread. The cache is a new one, with the kernels that are compiled already. Version 0.2 integrated 25 times, each time.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from stagescope.cli.entry import main as command
from stagescope.core.caches import FRESH, VARIABLE, cache_folder

COMMANDS = (
    ("run", "focus-dilution", "--preset", "ref", "--overwrite", "--quiet", "--out", "ref"),
    ("stages", "ref"),
    ("ladder", "ref", "--quiet"),
    ("check", "ref", "--quiet"),
    ("report", "ref", "--quiet", "--out", "page.html"),
)
COLUMNS = {"fresh": "1", "first": "", "again": ""}
"""Values of STAGESCOPE_FRESH."""
HEAVY = ("jax", "numba")


def count(words: list[str]) -> None:
    """Run a command, then say how often it integrated and which heavy packages it loaded."""
    sys.argv[1:] = words
    try:
        command()
    except SystemExit as end:
        if end.code:
            raise
    kept = sys.modules.get("stagescope.flow.kept")
    print(
        f"\n{0 if kept is None else kept.counts['integrated']} {'+'.join(name for name in HEAVY if name in sys.modules) or '-'}"
    )


def measured(words: tuple[str, ...], folder: Path, fresh: str) -> tuple[int, float, str]:
    """Integrations, CPU seconds and heavy packages of a command in a process of its own."""
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", VARIABLE: str(folder / "cache"), FRESH: fresh}
    alone["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), alone.get("PYTHONPATH", "")])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call = [sys.executable, "-m", "benchmarks.kept_readings", *words]
    printed = subprocess.run(call, check=True, capture_output=True, env=alone, cwd=folder, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    *_, integrated, heavy = printed.split()
    return int(integrated), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, heavy


def main() -> None:
    if len(sys.argv) > 1:
        count(sys.argv[1:])
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        place = folder / "cache" / "stagescope"
        place.mkdir(parents=True)
        if (kernels := cache_folder("numba")) is not None:
            (place / "numba").symlink_to(kernels)
        rows = {words[0]: {} for words in COMMANDS}
        for column, fresh in COLUMNS.items():
            for words in COMMANDS:
                rows[words[0]][column] = measured(words, folder, fresh)
    print(f"{'':<8}" + "".join(f"{column:>26}" for column in COLUMNS))
    for name, row in rows.items():
        print(f"{name:<8}" + "".join(f"{number:>6} {seconds:>6.2f} s {heavy:>10}" for number, seconds, heavy in row.values()))
    sums = [(sum(row[column][0] for row in rows.values()), sum(row[column][1] for row in rows.values())) for column in COLUMNS]
    print(f"{'all':<8}" + "".join(f"{number:>6} {seconds:>6.2f} s {'':>10}" for number, seconds in sums))


if __name__ == "__main__":
    main()
