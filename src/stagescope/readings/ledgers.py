"""Which claim holds where: the verdicts of a study's presets side by side."""

import json
from pathlib import Path
from typing import Any

from stagescope.claims.ledger import Ledger
from stagescope.core.progress import Progress
from stagescope.readings.reading import check
from stagescope.readings.study import Study
from stagescope.runs.files import publish, store_errors

_MARK = {"confirmed": "yes", "violated": "NO", "inconclusive": "?", "not applicable": "-"}


def ledgers(study: Study, progress: Progress) -> dict[str, Ledger]:
    """The ledger of every preset that the study names."""
    presets = progress.each(study.ledger, "ledger", "runs")
    return {preset: check(study.run(study.configured(preset), progress=False)) for preset in presets}


def write_ledgers(by_preset: dict[str, Ledger], out: Path) -> Path | None:
    """ledger.json with every row, ledger.md with the verdicts side by side and the reasons below; no files for no ledgers."""
    if not by_preset:
        return None
    body: dict[str, Any] = {preset: ledger.json() for preset, ledger in by_preset.items()}
    with store_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        publish(out / "ledger.json", (json.dumps(body, indent=1, allow_nan=False) + "\n").encode())
        publish(out / "ledger.md", _markdown(by_preset).encode())
    return out / "ledger.md"


def _markdown(by_preset: dict[str, Ledger]) -> str:
    presets = list(by_preset)
    marks = {preset: {row.statement: _MARK[row.verdict] for row in ledger} for preset, ledger in by_preset.items()}
    statements = dict.fromkeys(row.statement for ledger in by_preset.values() for row in ledger)
    lines = ["# Which claim holds where", "", "yes: confirmed, NO: violated, ?: inconclusive, -: not applicable.", ""]
    lines += ["| claim | " + " | ".join(presets) + " |", "|---" * (len(presets) + 1) + "|"]
    for statement in statements:  # presets of different kinds have different claims
        cells = [marks[preset].get(statement, "-") for preset in presets]
        lines.append("| " + statement.replace("|", "\\|") + " | " + " | ".join(cells) + " |")
    for preset in presets:
        lines += ["", f"## {preset}", ""]
        lines += [f"- **{row.verdict}** {row.statement}: {row.reason}" for row in by_preset[preset]]
    return "\n".join(lines) + "\n"
