"""A ledger: the claims that speak of a run, with their verdicts."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagescope.runs.run import Run
from stagescope.theory.claim import Claim, Verdict

if TYPE_CHECKING:
    from rich.table import Table

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

    def table(self) -> "Table":
        """For the terminal."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, expand=False, pad_edge=False)
        for name in ("claim", "predicted", "measured", "tolerance", "verdict"):
            table.add_column(name, overflow="fold")
        for row in self.verdicts:
            claim = Text(row.statement)
            claim.append(f"\n{row.reason}", style="dim")
            numbers = (_number(row.predicted), _number(row.measured), _number(row.tolerance))
            table.add_row(claim, *map(Text, numbers), Text(row.verdict, style=_STYLE[row.verdict]))
        return table

    def summary(self) -> str:
        counts = Counter(row.verdict for row in self.verdicts)
        return ", ".join(f"{counts[name]} {name}" for name in _STYLE if counts[name])

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=110, no_color=True)
        with console.capture() as text:
            console.print(self.table())
        return text.get() + self.summary()


def _number(value: float | str | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.4g}"
