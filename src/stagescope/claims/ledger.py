"""A ledger: the claims that speak of a run, with their verdicts."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagescope.claims.claim import Claim, Verdict
from stagescope.runs.run import Run

if TYPE_CHECKING:
    from rich.text import Text

_STYLE = {"confirmed": "green", "violated": "bold red", "inconclusive": "yellow", "not applicable": "dim"}


@dataclass(frozen=True)
class Ledger:
    """Verdicts on one run; iterate over it, print it, or take its `json()`."""

    status: str
    clock: str
    verdicts: tuple[Verdict, ...]

    @classmethod
    def of(cls, run: Run, claims: Iterable[Claim], evidence: Any) -> "Ledger":
        return cls(run.status, run.clock, tuple(claim.judge(run, evidence) for claim in claims))

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def json(self) -> dict[str, Any]:
        return {"status": self.status, "clock": self.clock, "claims": [verdict.json() for verdict in self.verdicts]}

    def text(self) -> "Text":
        """For the terminal: the verdict and the sentence, then the numbers and the reason, indented."""
        from rich.text import Text

        text = Text()
        for row in self.verdicts:
            text.append(f"{row.verdict:<15}", style=_STYLE[row.verdict]).append(row.statement, style="bold")
            text.append(f"  [{row.tag}]\n", style="dim")
            if row.measured is not None:
                numbers = (_number(row.predicted), _number(row.measured), _number(row.tolerance))
                text.append(f"{'':<15}predicted {numbers[0]}, measured {numbers[1]}, tolerance {numbers[2]}\n")
            text.append(f"{'':<15}{row.reason}\n", style="dim")
        return text.append(self.summary())

    def summary(self) -> str:
        counts = Counter(row.verdict for row in self.verdicts)
        return ", ".join(f"{counts[name]} {name}" for name in _STYLE if counts[name])

    def __str__(self) -> str:
        return self.text().plain


def _number(value: float | str | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.4g}"
