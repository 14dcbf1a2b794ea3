"""Every claim on inputs of its regime and on its nulls, drawn by seed; the tables of docs/how-sure.md.

    python -m validation.calibration [STUDY ...]
    python -m validation.calibration --renew STUDY ...

Draws are kept in `validation/draws/`, so that a call that was interrupted goes on. The counts are written to
`calibration.json` of the paper. The rules of the claims were frozen before FIRST was drawn. With --renew only claims are drawn
that are new or have other rules than in the table, on seeds of their own; the lines of the others stay.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from stagescope.claims.calibration import Calibration, Line, NullCounts
from stagescope.papers.calibrate import calibrate, with_nulls
from stagescope.papers.registry import paper_of, studies
from validation import how_sure

FIRST, AGAIN = 120_000, {"scan-snap": 150_000, "focus-dilution": 160_000, "linear-icl": 230_000, "markov-icl": 240_000}
"""First seed, and that of a study whose rules were changed after a first table."""
RENEWED = {"focus-dilution": 410_000, "incremental": 190_000, "linear-icl": 250_000, "markov-icl": 260_000}
"""First seed of claims that were added or changed later."""
DRAWS, ON_TEXT, ON_RENEWAL, WORKERS = (80, 80), (45, 30), 30, 2
"""Draws of each family of inputs and of each null, those of a study on text and of a renewal, and processes."""
FEWER = {"linear-icl": (22, 22), "markov-icl": (19, 19)}
"""Draws of studies that were added later."""
KEEP = Path(__file__).parent / "draws"


def main(names: Iterable[str] = ()) -> bool:
    """The tables of all studies, or of some; whether every claim is calibrated."""
    KEEP.mkdir(exist_ok=True)
    good = True
    for name in names or studies():
        draws, nulls = ON_TEXT if name.startswith("text-") else FEWER.get(name, DRAWS)
        first = AGAIN.get(name, FIRST)
        found = calibrate(name, draws, first, nulls=nulls, keep=KEEP / f"{name}-{first}.jsonl", workers=WORKERS)
        good &= _written(name, found)
    how_sure.main()
    return good


def renew(names: Iterable[str]) -> bool:
    """Draws of the claims whose rules are not those of the table; whether every claim is calibrated."""
    KEEP.mkdir(exist_ok=True)
    good = True
    for name in names:
        claims = with_nulls(studies()[name])
        table = {line["tag"]: _line(line) for line in how_sure.counts()[name]["claims"]}
        changed = [claim for claim in claims if claim.tag not in table or table[claim.tag].rules != claim.rules]
        first, keep = RENEWED[name], KEEP / f"{name}-{RENEWED[name]}.jsonl"
        draws, nulls = FEWER.get(name, (ON_RENEWAL, ON_RENEWAL))
        found = calibrate(name, draws, first, nulls=nulls, claims=changed, keep=keep)
        lines = table | {line.tag: line for line in found.lines}
        good &= _written(name, replace(found, lines=tuple(lines[claim.tag] for claim in claims)))
    how_sure.main()
    return good


def _line(stored: dict[str, Any]) -> Line:
    names = [each.name for each in fields(Line)]
    nulls = tuple(NullCounts(**null) for null in stored["nulls"])
    return Line(**{name: stored[name] for name in names if name != "nulls"}, nulls=nulls)


def _written(name: str, found: Calibration) -> bool:
    """Show a table and put its counts into the file of all; whether it meets its bars."""
    Console(width=150).print(found.text())
    path = how_sure.PAPERS / paper_of(name).name.replace("-", "_") / "calibration.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    table = {key: value for key, value in found.json().items() if key != "study"}
    path.write_text(json.dumps({**known, name: table}, indent=1, sort_keys=True) + "\n")
    return found.holds


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(0 if (renew(words[1:]) if words[:1] == ["--renew"] else main(words)) else 1)
