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

    most: float = 4 / 30  # largest share of nulls confirmed, and of inputs in regime violated, of one claim
    pooled: float = 0.05  # largest share of nulls confirmed, of all claims together
    decided: float = 0.6  # least share of the inputs in regime that are decided; below it a claim is rare and not counted


BARS = Bars()


@dataclass(frozen=True)
class Line:
    """One claim: counts on the inputs it applies to, and on its nulls."""

    tag: str
    kind: str | None
    rules: int
    rare: bool
    cost: str
    nulls: tuple[str, ...]
    applies: int
    in_regime: int
    confirmed: int
    violated: int
    open: int
    null_draws: int
    null_confirmed: int
    null_violated: int

    @classmethod
    def of(cls, claim: Claim, draws: Sequence[Draw]) -> "Line":
        mine = {null.name for null in claim.nulls}
        inputs = _verdicts(claim, (draw for draw in draws if draw["role"] == "input"))
        nulls = _verdicts(claim, (draw for draw in draws if draw["role"] == "null" and draw["family"] in mine))
        applies = [each for each in inputs if each["verdict"] != "not applicable"]
        inside = [each for each in applies if each["in_regime"]]
        seen, null = (Counter(each["verdict"] for each in some) for some in (inside, nulls))
        counts = (len(applies), len(inside), seen["confirmed"], seen["violated"], seen["inconclusive"])
        names = tuple(null.name for null in claim.nulls)
        about = (claim.tag, claim.kind, claim.rules, claim.rare, claim.cost, names)
        return cls(*about, *counts, null.total(), null["confirmed"], null["violated"])

    @property
    def problems(self) -> list[str]:
        """Which bars it misses. An identity needs no null; of a claim that is rarely decided only mistakes count."""
        found, decided = [], self.confirmed + self.violated
        if self.violated > BARS.most * self.in_regime:
            found.append(f"violated on {self.violated} of {self.in_regime} inputs in regime")
        if self.kind == "identity":
            return found
        if not self.nulls:
            found.append("no null")
        if self.null_confirmed > BARS.most * self.null_draws:
            found.append(f"confirmed on {self.null_confirmed} of {self.null_draws} nulls")
        if not self.rare and (not self.in_regime or decided < BARS.decided * self.in_regime):
            found.append(f"decided on {decided} of {self.in_regime} inputs in regime")
        return found


def _verdicts(claim: Claim, draws: Iterable[Draw]) -> list[Mapping[str, Any]]:
    return [draw["verdicts"][claim.tag] for draw in draws if claim.tag in draw.get("verdicts", {})]


@dataclass(frozen=True)
class Calibration:
    """The table of a study: a line for each claim, and draws that could not be made or judged, with the reason."""

    study: str
    lines: tuple[Line, ...]
    failed: tuple[str, ...] = ()

    @classmethod
    def of(cls, study: str, claims: Iterable[Claim], draws: Sequence[Draw]) -> "Calibration":
        failed = (f"{draw['family']}, seed {draw['seed']}: {draw['failed']}" for draw in draws if "failed" in draw)
        return cls(study, tuple(Line.of(claim, draws) for claim in claims), tuple(failed))

    @property
    def null_confirmed(self) -> float:
        """The share of nulls confirmed, over all claims that can fail."""
        return self._share("null_confirmed", "null_draws")

    @property
    def violated(self) -> float:
        """The share of inputs in regime violated, over all claims that can fail."""
        return self._share("violated", "in_regime")

    def _share(self, part: str, whole: str) -> float:
        judged = [line for line in self.lines if line.kind != "identity"]
        return sum(getattr(line, part) for line in judged) / max(1, sum(getattr(line, whole) for line in judged))

    @property
    def holds(self) -> bool:
        """Whether every bar is met."""
        return not self.failed and not any(line.problems for line in self.lines) and self.null_confirmed <= BARS.pooled

    def json(self) -> dict[str, Any]:
        lines = [{**asdict(line), "problems": line.problems} for line in self.lines]
        pooled = {"null_confirmed": self.null_confirmed, "violated": self.violated}
        return {"study": self.study, "claims": lines, **pooled, "failed": list(self.failed)}

    def text(self) -> "Table":
        """For the terminal: one claim a row."""
        from rich import box
        from rich.table import Table

        heads = ("claim", "in regime", "confirmed", "violated", "open", "nulls confirmed", "what is wrong")
        table = Table(*heads, box=box.SIMPLE_HEAD, caption=self.summary(), caption_justify="left")
        for line in self.lines:
            null = f"{line.null_confirmed} of {line.null_draws}" if line.nulls else "-"
            said = "; ".join((*(["rarely decided"] if line.rare else []), *line.problems))
            numbers = map(str, (line.confirmed, line.violated, line.open))
            table.add_row(line.tag, f"{line.in_regime} of {line.applies}", *numbers, null, said)
        return table

    def summary(self) -> str:
        said = f"all claims: confirmed on {self.null_confirmed:.1%} of nulls, violated on {self.violated:.1%} of inputs in regime"
        return said + (f"; {len(self.failed)} draws failed, the first: {self.failed[0]}" if self.failed else "")
