"""Write the tables of docs/how-sure.md: `python -m validation.how_sure`.

They are those of `calibration.json` of each paper, and of `replay_nulls.json` for falsified runs.
"""

import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from stagescope.claims.calibration import BARS
from stagescope.readings.registry import studies
from validation.nulls.falsified import CLAIMED, FALSIFIED

DOCS = Path(__file__).parents[1] / "docs"
PAPERS = DOCS.parent / "src" / "stagescope" / "papers"
FALSIFIED_COUNTS = Path(__file__).parent / "replay_nulls.json"
BEGIN, END = "<!-- tables: made by `python -m validation.how_sure` -->", "<!-- end of tables -->"
FALSIFIED_BEGIN, FALSIFIED_END = "<!-- falsified: made by `python -m validation.replay_nulls` -->", "<!-- end of falsified -->"
DECIDED = {"confirmed": "confirmed", "violated": "violated", "inconclusive": "undecided"}
JUDGES = {"command": "by `stagescope check --json`, each in a process of its own", "check": "by `ss.check` of each folder"}
HEAD = """| claim | kind | in regime | confirmed | violated | undecided | nulls (in regime): confirmed, violated |
|---|---|---|---|---|---|---|"""


def commit() -> str:
    """Of the sources: what judges. Sources that were changed since are named, so that their rows are never taken for others."""
    git = partial(subprocess.run, cwd=DOCS, capture_output=True, text=True, check=True)
    last = git(["git", "log", "-1", "--format=%h", "--", "../src"]).stdout.strip()
    return last + (
        "-changed" if git(["git", "status", "--porcelain", "--", "../src", ":!../src/**/calibration.json"]).stdout.strip() else ""
    )


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
        together = f"Together: confirmed on {body['null_confirmed']:.1%} of nulls, violated on {body['violated']:.1%} of inputs."
        older = drawn_by_other_rules(study, body["claims"])
        due = f" Drawn by rules that have changed since, so that `check` does not show it: {', '.join(older)}." if older else ""
        parts.append(f"### {study}\n\n{HEAD}\n{rows}\n\n{together} {_missed(body)}{due}{_drawn(body)}")
    return "\n\n".join(parts)


def _drawn(body: dict[str, Any]) -> str:
    """How many draws of each family, from which seed, judged by which sources."""
    parts = []
    for drawn in body.get("drawn", ()):
        only = f"of {', '.join(drawn['claims'])} " if "claims" in drawn else ""
        parts.append(
            f" {drawn['draws']} draws {only}from seed {drawn['first']}, judged by the sources of commit {drawn['commit']}."
        )
    return "".join(parts)


def _missed(body: dict[str, Any]) -> str:
    """Which claims miss a bar, and how."""
    found = [f"{line['tag']} ({'; '.join(line['problems'])})" for line in body["claims"] if line["problems"]]
    return f"Bars that are missed: {', '.join(found)}." if found else "Every claim meets its bars."


def drawn_by_other_rules(study: str, lines: list[dict[str, Any]]) -> list[str]:
    """Claims of a table whose rules have changed since: `python -m validation.calibration --renew STUDY` draws them again."""
    rules = {claim.tag: claim.rules for claim in studies()[study].claims()}
    return [line["tag"] for line in lines if rules.get(line["tag"]) != line["rules"]]


def _row(line: dict[str, Any]) -> str:
    inside = f"{line['in_regime']} of {line['applies']}"
    nulls = "; ".join(f"{n['name']} ({n['in_regime']} of {n['draws']}): {n['confirmed']}, {n['violated']}" for n in line["nulls"])
    cells = (line["tag"], line["kind"] or "-", inside, line["confirmed"], line["violated"], line["open"], nulls or "-")
    return f"| {' | '.join(map(str, cells))} |"


def pooled(body: dict[str, Any]) -> float:
    """The share of pairs of a claim and a null, without jitter, that are confirmed."""
    lines = body["claims"].values()
    pairs = len(CLAIMED) * sum(sum(line["true"].values()) for line in lines)
    return sum(line[null] for line in lines for null in CLAIMED) / max(1, pairs)


def misses(body: dict[str, Any]) -> list[str]:
    """Claims that more than 4 of 30 of a null confirm, and the share of all if it is above 5 %."""
    shares = [(tag, null, line[null], sum(line["true"].values())) for tag, line in body["claims"].items() for null in CLAIMED]
    over = [f"{tag} on {count} of {draws}, {null}" for tag, null, count, draws in shares if count > BARS.per_claim * draws]
    return over + ([f"{pooled(body):.1%} of all pairs"] if pooled(body) > BARS.pooled else [])


def falsified_tables(studies: dict[str, Any]) -> str:
    """One table for each study: verdicts on true runs, then how many of each null are confirmed."""
    head = f"| claim | true runs: confirmed, violated, undecided | {' | '.join(FALSIFIED)} |\n|{'---|' * (2 + len(FALSIFIED))}"
    parts = []
    for study, body in sorted(studies.items()):
        lines = {tag: [line["true"].get(verdict, 0) for verdict in DECIDED] for tag, line in sorted(body["claims"].items())}
        rows = [
            f"| {tag} | {', '.join(map(str, true))} | {' | '.join(str(body['claims'][tag][null]) for null in FALSIFIED)} |"
            for tag, true in lines.items()
        ]
        rows.append(f"| any of them | - | {' | '.join(str(body['any'][null]) for null in FALSIFIED)} |")
        true = ", ".join(f"{body['true'].get(verdict, 0)} {word}" for verdict, word in DECIDED.items())
        count, first, last = len(body["seeds"]), min(body["seeds"]), max(body["seeds"])
        said = f"{count} draw{'s' if count > 1 else ''}, seeds {first} to {last}; all claims on true runs: {true}. "
        said += f"Of all pairs of a claim above and a null, without jitter, {pooled(body):.1%} are confirmed."
        said += f" Missed bars: {len(misses(body))}."
        parts.append(f"#### {study}\n\n{head}\n" + "\n".join(rows) + f"\n\n{said}")
    return "\n\n".join(parts)


def _between(text: str, begin: str, end: str, new: str) -> str:
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n\n{new}\n\n{end}{rest.partition(end)[2]}"


def page(text: str, found: dict[str, Any]) -> str:
    """The page with its tables renewed."""
    drawn = json.loads(FALSIFIED_COUNTS.read_text())
    said = f"Judged {JUDGES[drawn['by']]}, with the sources of commit {drawn['commit']}.\n\n{falsified_tables(drawn['studies'])}"
    return _between(_between(text, BEGIN, END, tables(found)), FALSIFIED_BEGIN, FALSIFIED_END, said)


def main() -> bool:
    """Renew the page; whether every claim was drawn by the rules in force."""
    path, found = DOCS / "how-sure.md", counts()
    path.write_text(page(path.read_text(), found))
    return not any(drawn_by_other_rules(study, body["claims"]) for study, body in found.items())


if __name__ == "__main__":
    main()
