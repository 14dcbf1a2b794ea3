"""Every claim on inputs of its regime and on its nulls, drawn by seed; the tables of docs/how-sure.md.

    python -m validation.calibration [STUDY ...] [--first 600000] [--draws 30]
    python -m validation.calibration --renew [STUDY ...] --first SEED [--only TAG ...]

Draws are kept in `validation/draws/`, so that a call that was interrupted goes on. The counts are written to
`calibration.json` of the paper, with the first seed. Rules are frozen in a commit before their seeds are drawn. With --renew only
claims are drawn that are new or have other rules than in the table, on seeds of their own; the lines of the others stay.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from stagescope.claims.calibration import Calibration, Line, NullCounts
from stagescope.readings.calibrate import calibrate, with_nulls
from stagescope.readings.registry import paper_of, studies
from validation import how_sure

FIRST, DRAWS = 600_000, 30
"""First seed, and draws of each family of inputs and of each null."""
KEEP = Path(__file__).parent / "draws"


def main(words: Sequence[str] = ()) -> bool:
    """The tables of all studies, or of some; whether every claim is calibrated."""
    parser = argparse.ArgumentParser(prog="validation.calibration", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("studies", nargs="*", metavar="STUDY", help="default: all")
    parser.add_argument("--first", type=int, default=FIRST, help="first seed; draw only after the rules are frozen")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of each family of inputs and of each null")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--renew", action="store_true", help="draw only claims whose rules are not those of the table")
    parser.add_argument("--only", nargs="+", default=[""], metavar="TAG", help="with --renew: claims whose tags begin so")
    given = parser.parse_args(words)
    KEEP.mkdir(exist_ok=True)
    good, commit = True, how_sure.commit()  # of the rules that judge, not of what is committed meanwhile
    for name in given.studies or studies():
        claims = with_nulls(studies()[name])
        table = {line["tag"]: _line(line) for line in how_sure.counts().get(name, {"claims": []})["claims"]}
        new = [claim for claim in claims if claim.tag not in table or table[claim.tag].rules != claim.rules]
        changed = [claim for claim in new if claim.tag.startswith(tuple(given.only))]
        keep = KEEP / f"{name}-{given.first}.jsonl"
        drawn = changed if given.renew else ()
        counts = calibrate(name, given.draws, given.first, claims=drawn, keep=keep, workers=1 if given.renew else given.workers)
        lines = (table if given.renew else {}) | {line.tag: line for line in counts.lines}
        drawn_now = {"commit": commit, "draws": given.draws, "first": given.first}
        if given.renew:
            drawn_now["claims"] = [claim.tag for claim in changed]
        listed = tuple(lines[claim.tag] for claim in claims if claim.tag in lines)
        good &= _written(name, replace(counts, lines=listed), drawn_now, given.renew)
    how_sure.main()
    return good


def _line(stored: dict[str, Any]) -> Line:
    names = [each.name for each in fields(Line)]
    nulls = tuple(NullCounts(**null) for null in stored["nulls"])
    return Line(**{name: stored[name] for name in names if name != "nulls"}, nulls=nulls)


def _written(name: str, found: Calibration, drawn: dict[str, Any], renewed: bool) -> bool:
    """Show a table and put its counts into the file of all, with what was drawn when; whether it meets its bars."""
    Console(width=150).print(found.text())
    path = how_sure.PAPERS / paper_of(name).name.replace("-", "_") / "calibration.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    table = {key: value for key, value in found.json().items() if key != "study"}
    table["drawn"] = [*known.get(name, {}).get("drawn", []), drawn] if renewed else [drawn]
    path.write_text(json.dumps({**known, name: table}, indent=1, sort_keys=True) + "\n")
    return found.holds


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
