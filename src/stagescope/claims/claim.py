"""A claim is a sentence of a paper that can be put to a run; a verdict is what came of it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from stagescope.errors import StagescopeError
from stagescope.runs.run import Run

Outcome = Literal["confirmed", "violated", "inconclusive", "not applicable"]


@dataclass(frozen=True)
class Regime:
    """Whether a run meets a claim's assumptions. `applies` is False where the claim speaks of something else altogether."""

    holds: bool
    sentence: str
    applies: bool = True


@dataclass(frozen=True)
class Comparison:
    """What was predicted and measured; `holds` is None where the run cannot decide."""

    predicted: float | str
    measured: float | str | None
    tolerance: float | str
    holds: bool | None
    reason: str


@dataclass(frozen=True)
class Verdict:
    """One row of a ledger. `shown` names where a run shows it, as `Claim.shown` does."""

    tag: str
    statement: str
    regime: str
    predicted: float | str | None
    measured: float | str | None
    tolerance: float | str | None
    verdict: Outcome
    reason: str
    shown: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A tagged statement with a regime, decided first, and a comparison, made only inside it.

    `shown` says where in a run a reader sees what the claim speaks of: from the first of the events or stages named to the
    last. "focus*" stands for all names that begin so; "start" and "end" are those of the run.
    """

    tag: str
    statement: str
    regime: Callable[[Any], Regime]
    compare: Callable[[Any], Comparison]
    shown: tuple[str, ...] = ()

    def judge(self, run: Run, evidence: Any) -> Verdict:
        """The verdict on a run. A run that did not reach its end can never confirm anything.

        What cannot be computed for one claim (a solve that fails, a model too large) leaves that claim undecided, no other.
        """
        regime = Regime(False, "not decided")
        try:
            regime = self.regime(evidence)
            return self._decide(run, evidence, regime)
        except StagescopeError as error:
            why = f"not computed: {error}"
            return Verdict(self.tag, self.statement, regime.sentence, None, None, None, "inconclusive", why, self.shown)

    def _decide(self, run: Run, evidence: Any, regime: Regime) -> Verdict:
        def row(verdict: Outcome, reason: str, found: Comparison | None = None) -> Verdict:
            numbers = (found.predicted, found.measured, found.tolerance) if found else (None, None, None)
            return Verdict(self.tag, self.statement, regime.sentence, *numbers, verdict, reason, self.shown)

        if not regime.applies:
            return row("not applicable", regime.sentence)
        if not run.done:
            return row("inconclusive", f"the run is {run.status}: {run.reason or 'it did not reach its end'}")
        found = self.compare(evidence)
        if not regime.holds:  # the numbers are shown, but they decide nothing
            return row("inconclusive", f"out of regime: {regime.sentence} ({found.reason})", found)
        if found.holds is None:
            return row("inconclusive", found.reason, found)
        return row("confirmed" if found.holds else "violated", found.reason, found)
