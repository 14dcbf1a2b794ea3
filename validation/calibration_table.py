"""The calibration table: counts of verdicts for each claim on its inputs and nulls, judged against the bars."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stagescope.claims.claim import Claim

MOST = 4 / 30
"""Largest share of nulls on which a claim may be confirmed, and of inputs in regime on which it may be violated."""
POOLED = 0.05
"""The same over all claims of a study together."""
DECIDED = 0.6
"""Least share of the inputs in regime that are decided; a claim below it is marked `rare` and not counted."""
PAGE = Path(__file__).parents[1] / "docs" / "calibration.json"


@dataclass(frozen=True)
class Line:
    """One claim: counts on the inputs it applies to, and on its nulls."""

    tag: str
    kind: str | None
    rules: int
    rare: bool
    applies: int
    in_regime: int
    confirmed: int
    violated: int
    open: int
    nulls: tuple[str, ...]
    null_draws: int
    null_confirmed: int
    null_violated: int
    drawn: int
    failed: int
    cost: str

    @property
    def problems(self) -> list[str]:
        """Which bars it misses; an identity has none but its violations."""
        found = []
        if self.in_regime and self.violated > MOST * self.in_regime:
            found.append(f"violated on {self.violated} of {self.in_regime} inputs in regime")
        if self.kind == "identity":
            return found
        if not self.nulls:
            found.append("no null")
        if self.null_confirmed > MOST * max(self.null_draws, 1):
            found.append(f"confirmed on {self.null_confirmed} of {self.null_draws} nulls")
        if not self.rare and self.confirmed + self.violated < DECIDED * self.in_regime:
            found.append(f"decided on {self.confirmed + self.violated} of {self.in_regime} inputs in regime")
        if not self.rare and self.in_regime == 0:
            found.append("never in regime")
        return found


def table(claims: Sequence[Claim], rows: Sequence[dict[str, Any]]) -> list[Line]:
    return [_line(claim, rows) for claim in claims]


def _line(claim: Claim, rows: Sequence[dict[str, Any]]) -> Line:
    inputs = [row for row in rows if row["role"] == "input"]
    mine = {null.name for null in claim.nulls}
    nulls = [row for row in rows if row["role"] == "null" and row["family"] in mine]
    seen = [row["verdicts"][claim.tag] for row in inputs if claim.tag in row.get("verdicts", {})]
    applies = [each for each in seen if each["verdict"] != "not applicable"]
    inside = [each for each in applies if each["in_regime"]]
    counts = Counter(each["verdict"] for each in inside)
    null = Counter(row["verdicts"][claim.tag]["verdict"] for row in nulls if claim.tag in row.get("verdicts", {}))
    return Line(
        claim.tag,
        claim.kind,
        claim.rules,
        claim.rare,
        len(applies),
        len(inside),
        counts["confirmed"],
        counts["violated"],
        counts["inconclusive"],
        tuple(null.name for null in claim.nulls),
        null.total(),
        null["confirmed"],
        null["violated"],
        len(inputs),
        sum("failed" in row for row in (*inputs, *nulls)),
        claim.cost,
    )


def pooled(lines: Sequence[Line]) -> tuple[float, float]:
    """Share of nulls confirmed and of inputs in regime violated, over all claims that can fail."""
    judged = [line for line in lines if line.kind != "identity"]
    nulls, inside = (sum(getattr(line, name) for line in judged) for name in ("null_draws", "in_regime"))
    wrong, violated = (sum(getattr(line, name) for line in judged) for name in ("null_confirmed", "violated"))
    return wrong / max(nulls, 1), violated / max(inside, 1)


def written(study: str, lines: Sequence[Line], page: Path = PAGE) -> bool:
    """Print the table of a study and keep it for the page; whether every bar is met."""
    print(f"\n{study}\n{'claim':<26}{'kind':<12}{'regime':>9}{'yes':>5}{'no':>5}{'open':>5}{'null yes':>11}{'null no':>9}")
    for line in lines:
        share, null = f"{line.in_regime}/{line.applies}", f"{line.null_confirmed}/{line.null_draws}"
        numbers = f"{share:>9}{line.confirmed:>5}{line.violated:>5}{line.open:>5}{null:>11}{line.null_violated:>9}"
        print(f"{line.tag:<26}{line.kind or '-':<12}{numbers}  {'rare ' if line.rare else ''}{'; '.join(line.problems)}")
    wrong, violated = pooled(lines)
    print(f"pooled: confirmed on {wrong:.1%} of nulls, violated on {violated:.1%} of inputs in regime (at most {POOLED:.0%})")
    known = json.loads(page.read_text()) if page.exists() else {}
    known[study] = {"claims": [asdict(line) for line in lines], "null_confirmed": wrong, "violated": violated}
    page.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    return not any(line.problems for line in lines) and wrong <= POOLED
