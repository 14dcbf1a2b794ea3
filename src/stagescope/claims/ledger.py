"""A ledger: the claims on a run, with their verdicts."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stagescope.claims.claim import Claim, Elsewhere, Outcome, Verdict
from stagescope.core.errors import needed, unknown
from stagescope.core.markup import block, folded, note, table, title

if TYPE_CHECKING:
    import pandas
    from rich.text import Text

    from stagescope.runs.run import Run

_RANK: tuple[Outcome, ...] = ("violated", "confirmed", "inconclusive", "not applicable")
_STYLE: dict[Outcome, str] = {"confirmed": "green", "violated": "bold red", "inconclusive": "yellow", "not applicable": "dim"}
COLUMNS = (
    *("verdict", "statement", "kind", "group", "predicted", "predicted_error", "measured", "measured_error", "tolerance", "unit"),
    *("reason", "regime", "in_regime", "calibrated", "cost", "error"),
)
"""Of a ledger as a table."""
_SYMBOL: dict[Outcome, str] = {"confirmed": "✓", "violated": "✗", "inconclusive": "?", "not applicable": "–"}
VERDICT_WIDTH = 15
"""Columns of a verdict on the terminal; the rest of a row is beside it."""
MUST = {
    "sign": "it must have the sign of the prediction",
    "order": "the order must be this one",
    "exact": "it must be the same",
    "the same class": "it must be the same",
    "at least": "it must be at least the prediction",
    "at most": "it must be at most the prediction",
    "above": "it must be above the prediction",
    "below": "it must be below the prediction",
    "bound": "it must stay inside the bound",
    "all": "it must hold for all",
}
"""What a tolerance in words asks of the measurement."""
UNCALIBRATED = "no null (an input on which the claim is false) is known yet"


@dataclass(frozen=True)
class Ledger:
    """Verdicts on one run; iterate over it, print it, or take its `json()`.

    Examples:
        >>> ledger = ss.check(snap)
        >>> print(ledger.summary())
        4 confirmed, 2 inconclusive, 11 not applicable (17 groups of 24 claims)
    """

    status: str
    clock: str
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...] = ()
    """What must be known before a verdict is believed."""

    @classmethod
    def of(cls, run: "Run", claims: Iterable[Claim], evidence: Any) -> "Ledger":
        return cls(run.status, run.clock, tuple(claim.judge(run, evidence) for claim in claims))

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def __getitem__(self, tag: str) -> Verdict:
        """The verdict on one claim, by its tag: `ledger["FD:origin"]`."""
        verdict = next((row for row in self.verdicts if row.tag == tag), None)
        if verdict is None:
            raise unknown("claim of this ledger", tag, [row.tag for row in self.verdicts])
        return verdict

    def to_pandas(self) -> "pandas.DataFrame":
        """One row a claim, by its tag (needs the extra `stagescope[pandas]`)."""
        pandas = needed("pandas", "pandas", "ledger.to_pandas()")
        return pandas.DataFrame(
            {name: [getattr(row, name) for row in self.verdicts] for name in COLUMNS},
            index=pandas.Index([row.tag for row in self.verdicts], name="tag"),
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: a claim a row; those that do not apply are folded."""
        heads = ("verdict", "claim", "predicted", "measured", "tolerance", "reason")
        rows = [_cells(row) for row in self.verdicts if row.verdict != "not applicable"]
        not_applicable = [_cells(row) for row in self.verdicts if row.verdict == "not applicable"]
        return block(
            title("Ledger", self.summary()),
            *map(note, self.notes),
            table(heads, rows) if rows else "",
            folded(f"{_claims(len(not_applicable))} not applicable", table(heads, not_applicable)) if not_applicable else "",
            *map(note, self.remarks()),
        )

    def json(self) -> dict[str, Any]:
        notes = {"notes": list(self.notes)} if self.notes else {}
        return {"status": self.status, "clock": self.clock, **notes, "claims": [verdict.json() for verdict in self.verdicts]}

    def text(self) -> "Text":
        """For the terminal: the verdict and the sentence, then the numbers and the reason, indented.

        Claims that do not apply for one and the same reason are one entry, after the others.
        """
        from rich.text import Text

        text = Text()
        for sentence in self.notes:
            text.append(f"{sentence}\n", style="yellow")
        by_reason: dict[str, list[str]] = {}
        for row in self.verdicts:
            if row.verdict == "not applicable" and (row.elsewhere is None or row.elsewhere.verdict is None):
                by_reason.setdefault(row.reason, []).append(row.tag)
        for row in self.verdicts:
            if len(by_reason.get(row.reason, ())) > 1:
                continue
            text.append(f"{row.verdict:<{VERDICT_WIDTH}}", style=_STYLE[row.verdict]).append(row.statement, style="bold")
            text.append(f"  [{row.tag}]\n", style="dim")
            if row.measured is not None and not (isinstance(row.measured, str) and row.measured in row.reason):
                text.append(f"{'':<{VERDICT_WIDTH}}{_numbers(row)}\n")
            lines, place = [row.reason, row.cost and f"beside this run: {row.cost}"], row.elsewhere
            if place and place.verdict:
                lines.append(f"with {_options(place)}: {place.verdict.verdict}; {place.verdict.reason}")
            for line in filter(None, lines):
                text.append(f"{'':<{VERDICT_WIDTH}}{line}\n", style="dim")
        for reason, tags in by_reason.items():
            if len(tags) > 1:
                text.append(f"{'not applicable':<{VERDICT_WIDTH}}", style="dim").append(f"{reason}\n")
                text.append(f"{'':<{VERDICT_WIDTH}}{_claims(len(tags))}: {', '.join(tags)}\n", style="dim")
        text.append(self.summary())
        for remark in self.remarks():
            text.append(f"\n{remark}", style="dim")
        return text

    def counts(self) -> Counter[Outcome]:
        """How many groups of predictions and patterns have each verdict; a claim without a group is a group by itself.

        A group is violated where one of its claims is, and otherwise has the first of the verdicts confirmed, inconclusive,
        not applicable that one of them has.
        """
        groups: dict[str, list[Outcome]] = {}
        for place, row in enumerate(self.verdicts):
            groups.setdefault(row.group or f"{place}", []).append(row.verdict)
        return Counter(min(outcomes, key=_RANK.index) for outcomes in groups.values())

    def summary(self) -> str:
        """How many groups of predictions and patterns have each verdict; the unit is said where a group has several claims."""
        counts, claims = self.counts(), len(self.verdicts)
        text = ", ".join(f"{counts[name]} {name}" for name in _STYLE if counts[name])
        groups = f"{counts.total()} group{'' if counts.total() == 1 else 's'}"
        return text + (f" ({groups} of {claims} claims)" if claims > counts.total() else "")

    def remarks(self) -> tuple[str, ...]:
        """What a reader must know of the claims themselves, one sentence each."""
        broken = [row.tag for row in self.verdicts if row.error is not None]
        plain = sum(not row.calibrated for row in self.verdicts)
        remarks = []
        if broken:
            remarks.append(f"{_claims(len(broken))} met an error in the code, which must be corrected: {', '.join(broken)}")
        if self.counts().total() < len(self.verdicts):
            remarks.append("claims that rest on one measurement are a group, and count as one")
        if plain:
            remarks.append(f"{_claims(plain)} {'is' if plain == 1 else 'are'} uncalibrated: {UNCALIBRATED}")
        companions = tuple(row.elsewhere.verdict for row in self.verdicts if row.elsewhere and row.elsewhere.verdict)
        if companions:
            decided = replace(self, verdicts=companions).summary()
            remarks.append(f"claims that this run cannot decide, with other options: {decided}")
        places: dict[str, list[str]] = {}
        for row in self.verdicts:
            if row.elsewhere is not None and row.elsewhere.verdict is None:
                places.setdefault(_options(row.elsewhere), []).append(row.tag)
        for options, tags in places.items():
            remarks.append(f"may be decided by a run with {options}, which `check --elsewhere` makes: {', '.join(tags)}")
        if rates := [row.rates for row in self.verdicts if row.rates is not None and row.verdict != "not applicable"]:
            nulls = f"confirmed on {sum(rate.null_confirmed for rate in rates):,} of {sum(rate.nulls for rate in rates):,} nulls"
            inputs = f"violated on {sum(rate.violated for rate in rates):,} of {sum(rate.inputs for rate in rates):,} inputs"
            remarks.append(f"calibration of the claims that apply here: {nulls}, {inputs} in regime")
        return tuple(remarks)

    def __str__(self) -> str:
        return self.text().plain


def _numbers(row: Verdict) -> str:
    """Prediction, measurement and tolerance in one line."""
    unit = f" ({row.unit})" if row.unit else ""
    numbers = f"predicted {_number(row.predicted, row.predicted_error)}, measured {_number(row.measured, row.measured_error)}"
    if isinstance(row.tolerance, str):
        return f"{numbers}{unit}; {MUST.get(row.tolerance, row.tolerance)}"
    return f"{numbers}, tolerance {_number(row.tolerance)}{unit}"


def _options(place: Elsewhere) -> str:
    """As a shell takes them, and which to leave out: "--until 120 (leave out --length)"."""
    from stagescope.core.options import option, option_words  # a ledger that is kept is shown without what checks options

    unset = [name for name, value in place.options.items() if value is None or value is False or value in ((), [])]
    words = [word for name, value in place.options.items() if name not in unset for word in option_words(name, value)]
    omitted = f"(leave out {' '.join(map(option, unset))})" if unset else ""
    return " ".join(filter(None, (shlex.join(words), omitted)))


def _number(value: float | str | None, error: float | None = None) -> str:
    if value is None:
        return "-"
    text = value if isinstance(value, str) else f"{value:.4g}"
    return f"{text} ± {error:.2g}" if error else text


def _cells(row: Verdict) -> tuple[str, ...]:
    """A row of the table in a notebook."""
    tolerance = f"{_number(row.tolerance)} {row.unit or ''}" if isinstance(row.tolerance, float) else _number(row.tolerance)
    numbers = _number(row.predicted, row.predicted_error), _number(row.measured, row.measured_error), tolerance
    return (f"{_SYMBOL[row.verdict]} {row.verdict}", f"{row.statement} [{row.tag}]", *numbers, row.reason)


def _claims(count: int) -> str:
    return f"{count} claim{'' if count == 1 else 's'}"
