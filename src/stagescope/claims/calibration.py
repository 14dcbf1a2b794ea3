"""Calibration of claims: how often each is confirmed, violated or left open on inputs of its regime and on its nulls."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from stagescope.claims.claim import Claim

if TYPE_CHECKING:
    from rich.table import Table

Draw = Mapping[str, Any]
"""One draw: `role` ("input" or "null"), `family`, `seed`, and `verdicts` by tag or `failed` with a reason."""


@dataclass(frozen=True)
class Bars:
    """What a calibrated claim must meet."""

    per_claim: float = 4 / 30  # largest share of nulls confirmed, and of inputs in regime violated, of one claim
    pooled: float = 0.05  # the same of all claims together
    tested: float = 1 / 3  # least share of the draws of some null that are in the claim's regime, so that it is put to a test
    decided: float = 0.6  # least share of the inputs in regime that are decided


BARS = Bars()


@dataclass(frozen=True)
class NullCounts:
    """One null of a claim: draws, those in the claim's regime, and how they were judged."""

    name: str
    draws: int
    in_regime: int
    confirmed: int
    violated: int

    @classmethod
    def of(cls, name: str, verdicts: Sequence[Mapping[str, Any]]) -> "NullCounts":
        counts = Counter(verdict["verdict"] for verdict in verdicts)
        inside = sum(verdict["in_regime"] for verdict in verdicts)
        return cls(name, len(verdicts), inside, counts["confirmed"], counts["violated"])


@dataclass(frozen=True)
class Line:
    """One claim: counts on the inputs it applies to, and on its nulls."""

    tag: str
    kind: str | None
    rules: int
    cost: str
    applies: int
    in_regime: int
    confirmed: int
    violated: int
    open: int
    nulls: tuple[NullCounts, ...]

    @classmethod
    def of(cls, claim: Claim, draws: Sequence[Draw]) -> "Line":
        inputs = _verdicts(claim, (draw for draw in draws if draw["role"] == "input"))
        applies = [verdict for verdict in inputs if verdict["verdict"] != "not applicable"]
        inside = [verdict for verdict in applies if verdict["in_regime"]]
        tally = Counter(verdict["verdict"] for verdict in inside)
        counts = (len(applies), len(inside), tally["confirmed"], tally["violated"], tally["inconclusive"])
        nulls = []
        for null in claim.nulls:
            null_draws = (draw for draw in draws if draw["role"] == "null" and draw["family"] == null.name)
            nulls.append(NullCounts.of(null.name, _verdicts(claim, null_draws)))
        return cls(claim.tag, claim.kind, claim.rules, claim.cost, *counts, tuple(nulls))

    def nulls_total(self, outcome: str) -> int:
        """A count over all nulls of the claim."""
        return sum(getattr(null, outcome) for null in self.nulls)

    @property
    def problems(self) -> list[str]:
        """Which bars it misses."""
        sentences, decided = [], self.confirmed + self.violated
        if self.violated > BARS.per_claim * self.in_regime:
            sentences.append(f"violated on {self.violated} of {self.in_regime} inputs in regime")
        if not self.nulls:
            sentences.append("no null")
        sentences += [
            f"confirmed on {null.confirmed} of {null.draws} draws of {null.name}"
            for null in self.nulls
            if null.confirmed > BARS.per_claim * null.draws
        ]
        if self.nulls and all(null.in_regime < BARS.tested * null.draws for null in self.nulls):
            sentences.append(
                f"no null tests it: in regime on {self.nulls_total('in_regime')} of {self.nulls_total('draws')} draws"
            )
        if not self.in_regime or decided < BARS.decided * self.in_regime:
            sentences.append(f"decided on {decided} of {self.in_regime} inputs in regime")
        return sentences


def _verdicts(claim: Claim, draws: Iterable[Draw]) -> list[Mapping[str, Any]]:
    return [draw["verdicts"][claim.tag] for draw in draws if claim.tag in draw.get("verdicts", {})]


@dataclass(frozen=True)
class Calibration:
    """The table of a study: a line for each claim, and draws that could not be made or judged, with the reason.

    Examples:
        >>> table = ss.Calibration("my-study", lines=())
        >>> table.study, table.failed
        ('my-study', ())
    """

    study: str
    lines: tuple[Line, ...]
    failed: tuple[str, ...] = ()

    @classmethod
    def of(cls, study: str, claims: Iterable[Claim], draws: Sequence[Draw]) -> "Calibration":
        failed = (f"{draw['family']}, seed {draw['seed']}: {draw['failed']}" for draw in draws if "failed" in draw)
        return cls(study, tuple(Line.of(claim, draws) for claim in claims), tuple(failed))

    @property
    def null_confirmed(self) -> float:
        """The share of nulls confirmed, over all claims."""
        confirmed, draws = (sum(line.nulls_total(outcome) for line in self.lines) for outcome in ("confirmed", "draws"))
        return confirmed / max(1, draws)

    @property
    def violated(self) -> float:
        """The share of inputs in regime violated, over all claims."""
        return sum(line.violated for line in self.lines) / max(1, sum(line.in_regime for line in self.lines))

    @property
    def holds(self) -> bool:
        """Whether every bar is met."""
        pooled = max(self.null_confirmed, self.violated) <= BARS.pooled
        return not self.failed and not any(line.problems for line in self.lines) and pooled

    def json(self) -> dict[str, Any]:
        lines = [{**asdict(line), "problems": line.problems} for line in self.lines]
        pooled = {"null_confirmed": self.null_confirmed, "violated": self.violated}
        return {"study": self.study, "claims": lines, **pooled, "failed": list(self.failed)}

    def text(self) -> "Table":
        """For the terminal: one claim a row."""
        from rich import box
        from rich.table import Table

        heads = ("in regime", "yes", "no", "open", "nulls: yes, no", "what is wrong")
        table = Table(box=box.SIMPLE_HEAD, caption=self.summary(), caption_justify="left", pad_edge=False)
        table.add_column("claim", no_wrap=True)
        for head in heads:
            table.add_column(head)
        for line in self.lines:
            yes, no, draws = (line.nulls_total(outcome) for outcome in ("confirmed", "violated", "draws"))
            null = f"{yes}, {no} of {draws}" if line.nulls else "-"
            numbers = map(str, (line.confirmed, line.violated, line.open))
            table.add_row(line.tag, f"{line.in_regime} of {line.applies}", *numbers, null, "; ".join(line.problems))
        return table

    def summary(self) -> str:
        nulls = f"confirmed on {self.null_confirmed:.1%} of nulls, " if any(line.nulls for line in self.lines) else ""
        sentence = f"all claims: {nulls}violated on {self.violated:.1%} of inputs in regime"
        return sentence + (f"; {len(self.failed)} draws failed, the first: {self.failed[0]}" if self.failed else "")
