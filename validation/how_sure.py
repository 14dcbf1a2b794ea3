"""Write the tables of docs/how-sure.md from the `calibration.json` of each paper: `python -m validation.how_sure`."""

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
PAPERS = DOCS.parent / "src" / "stagescope" / "papers"
BEGIN, END = "<!-- tables: made by `python -m validation.how_sure` -->", "<!-- end of tables -->"
HEAD = """| claim | kind | in regime | confirmed | violated | undecided | nulls (in regime): confirmed, violated |
|---|---|---|---|---|---|---|"""


def counts() -> dict[str, Any]:
    """What is stored of every study."""
    return {
        study: body for path in sorted(PAPERS.glob("*/calibration.json")) for study, body in json.loads(path.read_text()).items()
    }


def tables(found: dict[str, Any]) -> str:
    """One table for each study."""
    parts = []
    for study, body in sorted(found.items()):
        rows = "\n".join(map(_row, body["claims"]))
        pooled = f"Together: confirmed on {body['null_confirmed']:.1%} of nulls, violated on {body['violated']:.1%} of inputs."
        parts.append(f"### {study}\n\n{HEAD}\n{rows}\n\n{pooled} {_missed(body)}")
    return "\n\n".join(parts)


def _missed(body: dict[str, Any]) -> str:
    """Which claims miss a bar, and how."""
    found = [f"{line['tag']} ({'; '.join(line['problems'])})" for line in body["claims"] if line["problems"]]
    return f"Bars that are missed: {', '.join(found)}." if found else "Every claim meets its bars."


def _row(line: dict[str, Any]) -> str:
    inside = f"{line['in_regime']} of {line['applies']}"
    nulls = "; ".join(f"{n['name']} ({n['in_regime']} of {n['draws']}): {n['confirmed']}, {n['violated']}" for n in line["nulls"])
    cells = (line["tag"], line["kind"] or "-", inside, line["confirmed"], line["violated"], line["open"], nulls or "-")
    return f"| {' | '.join(map(str, cells))} |"


def page(text: str, found: dict[str, Any]) -> str:
    """The page with its tables renewed."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n{tables(found)}\n\n{END}{after}"


def main() -> bool:
    path = DOCS / "how-sure.md"
    path.write_text(page(path.read_text(), counts()))
    return True


if __name__ == "__main__":
    main()
