"""Every claim on inputs of its regime and on its nulls, drawn by seed; the tables of docs/how-sure.md.

    python -m validation.calibration [STUDY ...]

Draws are kept in `validation/draws/`, so that a call that was interrupted goes on. The counts are written to
docs/calibration.json. The rules of the claims were frozen before FIRST was drawn.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from stagescope.papers.calibrate import calibrate
from stagescope.papers.registry import studies
from validation import how_sure

FIRST, AGAIN = 120_000, {"scan-snap": 150_000, "focus-dilution": 180_000, "incremental": 190_000}
"""First seed, and that of a study whose rules were changed after a first table."""
DRAWS, ON_TEXT, WORKERS = (80, 80), (45, 30), 2
"""Draws of each family of inputs and of each null, those of a study on text, and processes."""
KEEP = Path(__file__).parent / "draws"


def main(names: Iterable[str] = ()) -> bool:
    """The tables of all studies, or of some; whether every claim is calibrated."""
    KEEP.mkdir(exist_ok=True)
    good = True
    for name in names or studies():
        (draws, nulls), first = ON_TEXT if name.startswith("text-") else DRAWS, AGAIN.get(name, FIRST)
        found = calibrate(name, draws, first, nulls=nulls, keep=KEEP / f"{name}-{first}.jsonl", workers=WORKERS)
        Console(width=150).print(found.text())
        known = json.loads(how_sure.COUNTS.read_text()) if how_sure.COUNTS.exists() else {}
        how_sure.COUNTS.write_text(json.dumps({**known, name: found.json()}, indent=1, sort_keys=True) + "\n")
        good &= found.holds
    how_sure.main()
    return good


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
