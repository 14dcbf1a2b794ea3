"""A ledger: the claims on a run, with their verdicts."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagescope.claims.claim import Claim, Elsewhere, Outcome, Verdict
from stagescope.runs.run import Run

if TYPE_CHECKING:
    from rich.text import Text

_RANK: tuple[Outcome, ...] = ("violated", "confirmed", "inconclusive", "not applicable")
_STYLE: dict[Outcome, str] = {"confirmed": "green", "violated": "bold red", "inconclusive": "yellow", "not applicable": "dim"}
VERDICT_WIDTH = 15
"""Columns of a verdict on the terminal; the rest of a row is beside it."""
UNCALIBRATED = "no null (an input on which the claim is false) is known yet"


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
            text.append(f"{row.verdict:<{VERDICT_WIDTH}}", style=_STYLE[row.verdict]).append(row.statement, style="bold")
            text.append(f"  [{row.tag}{_aside(row)}]\n", style="dim")
            if row.measured is not None:
                unit = f" ({row.unit})" if row.unit else ""
                predicted, measured = _number(row.predicted, row.predicted_error), _number(row.measured, row.measured_error)
                text.append(
                    f"{'':<{VERDICT_WIDTH}}predicted {predicted}, measured {measured}, tolerance {_number(row.tolerance)}{unit}\n"
                )
            text.append(f"{'':<{VERDICT_WIDTH}}{row.reason}\n", style="dim")
            if row.elsewhere is not None:
                text.append(f"{'':<{VERDICT_WIDTH}}{_elsewhere(row.elsewhere)}\n", style="dim")
        text.append(self.summary())
        for remark in self.remarks():
            text.append(f"\n{remark}", style="dim")
        return text

    def counts(self) -> Counter[Outcome]:
        """How many groups of predictions and patterns have each verdict; a claim without a group is a group by itself.

        Identities cannot fail and are not counted, nor are claims that are rarely decided. A group is violated where one of
        its claims is, and otherwise has the first of the verdicts confirmed, inconclusive, not applicable that one of them has.
        """
        groups: dict[str, list[Outcome]] = {}
        for place, row in enumerate(self.verdicts):
            if row.counted:
                groups.setdefault(row.group or f"{place}", []).append(row.verdict)
        return Counter(min(found, key=_RANK.index) for found in groups.values())

    def summary(self) -> str:
        """How many predictions and patterns have each verdict, and how many identities hold."""
        counts = self.counts()
        own = [row.verdict for row in self.verdicts if row.kind == "identity" and row.verdict != "not applicable"]
        said = [", ".join(f"{counts[name]} {name}" for name in _STYLE if counts[name])]
        if (inside := sum(row.counted for row in self.verdicts)) > (groups := counts.total()):
            said[0] += f" ({groups} groups of {inside} claims)"
        if own:
            said.append(f"{own.count('confirmed')} of {len(own)} identities hold")
        return "; ".join(part for part in said if part)

    def remarks(self) -> tuple[str, ...]:
        """What a reader must know of the claims themselves, one sentence each."""
        broken = [row.tag for row in self.verdicts if row.error is not None]
        plain = sum(not row.calibrated for row in self.verdicts)
        rare = [row.tag for row in self.verdicts if row.rare and row.verdict != "not applicable"]
        found = (
            [f"{_claims(len(broken))} met an error in the code, which must be corrected: {', '.join(broken)}"] if broken else []
        )
        if plain:
            found.append(f"{_claims(plain)} {'is' if plain == 1 else 'are'} uncalibrated: {UNCALIBRATED}")
        beside = Counter(row.elsewhere.verdict.verdict for row in self.verdicts if row.elsewhere and row.elsewhere.verdict)
        if beside:
            counted = ", ".join(f"{count} {name}" for name, count in beside.items())
            found.append(f"claims that this run cannot decide, with other options: {counted}")
        if rare:
            found.append(f"{_claims(len(rare))} rarely decided and not counted: {', '.join(rare)}")
        return tuple(found)

    def __str__(self) -> str:
        return self.text().plain


def _aside(row: Verdict) -> str:
    """What a row is, where it is not counted."""
    return ", identity" if row.kind == "identity" else ", rarely decided" if row.rare else ""


def _elsewhere(place: Elsewhere) -> str:
    """Where the claim is decided, and how, in one line."""
    options = " ".join(f"--{name.replace('_', '-')} {_option(value)}" for name, value in place.options.items())
    if place.verdict is None:
        return f"may be decided with {options}; `check --elsewhere` makes that run"
    return f"with {options}: {place.verdict.verdict}; {place.verdict.reason}"


def _option(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _number(value: float | str | None, error: float | None = None) -> str:
    if value is None:
        return "-"
    text = value if isinstance(value, str) else f"{value:.4g}"
    return f"{text} ± {error:.2g}" if error else text


def _claims(count: int) -> str:
    return f"{count} claim{'' if count == 1 else 's'}"
