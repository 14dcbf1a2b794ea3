"""A claim is a sentence of a paper, or of your own, that can be tested on a run; a verdict is the result of the test."""

import math
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from stagescope.claims.comparison import Comparison, OverRuns, Regime
from stagescope.claims.inputs import Inputs, Rates
from stagescope.core.errors import InputError, StagescopeError, message, raised_at
from stagescope.detect.stage import BROKEN

if TYPE_CHECKING:
    from stagescope.runs.run import Run

Outcome = Literal["confirmed", "violated", "inconclusive", "not applicable"]
Sort = Literal["prediction", "pattern"]


@dataclass(frozen=True)
class Elsewhere:
    """Where a claim that this run cannot decide is decided: options of the study to change, and the verdict found there.

    `verdict` is None until `check(run, elsewhere=True)` has made the companion run.
    """

    options: Mapping[str, Any]
    verdict: "Verdict | None" = None


@dataclass(frozen=True)
class Verdict:
    """One row of a ledger. `shown`, `kind`, `group` and `rules` are those of the claim, the numbers of its comparison.

    `calibrated` is False where the claim has no null: no input is known on which it must not be confirmed. `rates` says how
    often it was violated on inputs in its regime and confirmed on nulls, where its paper has counted that. `error` is the type
    of an error that the claim or its evidence raised and that is not one of Stagescope's: their code has a mistake.
    `cost` names the companion runs that the verdict rests on, `over_runs` has the numbers of several runs where it is about them.

    Examples:
        >>> verdict = ss.check(snap).verdicts[0]
        >>> verdict.tag, verdict.verdict
        ('SnS:theorem-2-distinct', 'confirmed')
    """

    tag: str
    statement: str
    regime: str
    predicted: float | str | None
    measured: float | str | None
    tolerance: float | str | None
    verdict: Outcome
    reason: str
    shown: tuple[str, ...] = ()
    predicted_error: float | None = None
    measured_error: float | None = None
    unit: str | None = None
    kind: Sort | None = None
    group: str | None = None
    calibrated: bool = False
    error: str | None = None
    rules: int = 1
    in_regime: bool = False
    elsewhere: Elsewhere | None = None
    cost: str = ""
    over_runs: OverRuns | None = None
    rates: Rates | None = None

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A tagged statement with a regime, decided first, and a comparison, made only inside it.

    Args:
        tag: a short name, such as "SnS:lemma-1". One of your own needs no table.
        statement: the sentence.
        regime: a function of the evidence that returns a `Regime`.
        compare: a function of the evidence that returns a `Comparison`.
        shown: where in a run a reader sees it: from the first of the events or stages named to the last. "focus*" stands for
            all names that begin so; "start" and "end" are those of the run.
        kind: "prediction" of a number, or "pattern".
        null: `Inputs`, one or several, on which the statement is false by construction. A claim without is uncalibrated.
        group: claims of one group rest on the same measurement and count as one.
        rules: the version of how it is judged; raise it when regime, comparison or tolerance change.
        elsewhere: a function of the evidence of a run that is out of regime. It returns the options of the study to change
            so that a run beside this one is in regime, or None.
        cost: the companion runs that it makes, and how long they take beside the run, such as "2 flows, each twice as long".

    The evidence is `ss.reading(run).evidence`: what the paper of the run prepares for its claims, and the reading itself for
    a run of no paper. It always has the run as `run`, which a paper may have replayed with more frames.

    Examples:
        >>> def has_loss(evidence):
        ...     found = "loss" in evidence.run.series
        ...     return ss.Regime(found, "applies to runs with a loss", applies=found)
        >>> def falls(evidence):
        ...     rise = float(np.diff(evidence.run.series["loss"]).max())
        ...     return ss.Comparison(0.0, rise, 0.0, rise <= 0, f"the largest rise of the loss is {rise:.2g}")
        >>> own = ss.Claim(tag="own:falls", statement="The loss never rises", regime=has_loss, compare=falls)
        >>> curve = ss.from_arrays(step=range(20), loss=[1 / (k + 1) for k in range(20)])
        >>> print(ss.check(curve, claims=[own]).verdicts[0].verdict)
        confirmed
    """

    tag: str
    statement: str
    regime: Callable[[Any], Regime]
    compare: Callable[[Any], Comparison]
    shown: tuple[str, ...] = ()
    kind: Sort | None = None
    null: Inputs | tuple[Inputs, ...] = ()
    group: str | None = None
    rules: int = 1
    elsewhere: Callable[[Any], Mapping[str, Any] | None] | None = None
    cost: str = ""

    def __post_init__(self) -> None:
        for name in ("tag", "statement"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise InputError(f"the {name} of a claim is {getattr(self, name)!r}; give a text")
        for name in ("regime", "compare", *(["elsewhere"] if self.elsewhere is not None else [])):
            if not callable(getattr(self, name)):
                raise InputError(f"the claim {self.tag}: {name} is {getattr(self, name)!r}; give a function")
        if self.kind is not None and self.kind not in get_args(Sort):
            raise InputError(f"the claim {self.tag}: kind is {self.kind!r}; choose among {', '.join(get_args(Sort))}")
        if self.group is not None and not isinstance(self.group, str):
            raise InputError(f"the claim {self.tag}: group is of type {type(self.group).__name__}; give a text")
        names = (self.shown,) if isinstance(self.shown, str) else self.shown  # one name may be given as a text
        if not isinstance(names, Iterable):
            raise InputError(f"the claim {self.tag}: shown is of type {type(names).__name__}; give names of events or stages")
        object.__setattr__(self, "shown", tuple(names))
        for name in self.shown:
            if not isinstance(name, str):
                raise InputError(f"the claim {self.tag}: shown has a {type(name).__name__}; give names of events or stages")
        nulls = self.null if isinstance(self.null, Iterable) else (self.null,)
        object.__setattr__(self, "null", tuple(nulls))
        for null in self.nulls:
            if not isinstance(null, Inputs):
                raise InputError(f"the claim {self.tag}: null is {null!r}; give ss.Inputs(name, sentence, make), or several")

    @property
    def nulls(self) -> tuple[Inputs, ...]:
        return (self.null,) if isinstance(self.null, Inputs) else self.null

    def judge(self, run: "Run", evidence: Any) -> Verdict:
        """The verdict on a run. A run that did not reach its end confirms nothing; for a broken one nothing is computed.

        A claim that raises an error is inconclusive and says why; no other claim is affected.
        """
        regime = Regime(False, "not decided")
        if run.status in BROKEN:
            return self._row(regime, "inconclusive", _unfinished(run))
        try:
            regime = self._returned("regime", self.regime(evidence), Regime)
            return self._decide(run, evidence, regime)
        except (Exception, SystemExit) as error:  # a claim of the user's own may raise anything, or leave the program
            return self._failed(regime, f"the claim {self.tag}", error)

    def without_evidence(self, error: BaseException) -> Verdict:
        """The row of a claim whose evidence could not be computed."""
        return self._failed(Regime(False, "not decided"), "the evidence of the claim", error)

    def out_of_regime(self, reason: str) -> Verdict:
        """The row of a claim that is about another kind of run; nothing is computed."""
        return self._row(Regime(False, reason), "inconclusive", f"out of regime: {reason}")

    def _failed(self, regime: Regime, what: str, error: BaseException) -> Verdict:
        if isinstance(error, StagescopeError):
            return self._row(regime, "inconclusive", f"not computed: {message(error)}")
        # Where it was raised: the file by its last name, and the line; that of the claim where the package raised it.
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
        user_frames = [frame for frame in frames if Path(__file__).parents[1] not in Path(frame.filename).parents]
        reason = f"{what} raised {type(error).__name__}: {message(error)}{raised_at(user_frames or frames)}"
        return self._row(regime, "inconclusive", reason, error=type(error).__name__)

    def _decide(self, run: "Run", evidence: Any, regime: Regime) -> Verdict:
        if not regime.applies:
            return self._with_options(evidence, self._row(regime, "not applicable", regime.sentence), regime.elsewhere)
        if not run.done:
            return self._row(regime, "inconclusive", _unfinished(run))
        if not regime.holds:
            return self._outside(evidence, regime)
        comparison = self._returned("compare", self.compare(evidence), Comparison)
        if comparison.holds is None:
            return self._row(regime, "inconclusive", comparison.reason, comparison)
        for name in ("predicted", "measured"):
            value = getattr(comparison, name)
            if isinstance(value, float) and not math.isfinite(value):
                reason = f"the {name} number is {value}, which decides nothing ({comparison.reason})"
                return self._row(regime, "inconclusive", reason, comparison)
        return self._row(regime, "confirmed" if comparison.holds else "violated", comparison.reason, comparison)

    def _outside(self, evidence: Any, regime: Regime) -> Verdict:
        """Out of regime the numbers are shown, unless they cost companion runs, but decide nothing."""
        reason = f"out of regime: {regime.sentence}"
        row = self._row(regime, "inconclusive", reason)
        if not self.cost:
            comparison = self._returned("compare", self.compare(evidence), Comparison)
            measured = (
                "" if comparison.measured is None else f" ({comparison.reason})"
            )  # why there is no number is said by the regime
            row = self._row(regime, "inconclusive", reason + measured, comparison)
        return self._with_options(evidence, row)

    def _with_options(self, evidence: Any, row: Verdict, wanted: bool = True) -> Verdict:
        """A row with the options of the companion run that decides it, where they are wanted and the claim names some."""
        options = self.elsewhere(evidence) if wanted and self.elsewhere is not None else None
        return replace(row, elsewhere=Elsewhere(dict(options))) if options else row

    def _returned(self, name: str, value: Any, expected: type) -> Any:
        if not isinstance(value, expected):
            raise TypeError(f"{name} returned a value of type {type(value).__name__}, not a {expected.__name__}")
        return value

    def _row(
        self, regime: Regime, verdict: Outcome, reason: str, comparison: Comparison | None = None, error: str | None = None
    ) -> Verdict:
        names = ("predicted", "measured", "tolerance", "predicted_error", "measured_error", "unit", "over_runs")
        return Verdict(
            tag=self.tag,
            statement=self.statement,
            regime=regime.sentence,
            verdict=verdict,
            reason=reason,
            shown=self.shown,
            kind=self.kind,
            group=self.group,
            calibrated=bool(self.nulls),
            error=error,
            rules=self.rules,
            in_regime=regime.holds,
            cost=self.cost if regime.holds and comparison is not None else "",
            **{name: getattr(comparison, name, None) for name in names},
        )


@dataclass(frozen=True)
class ClaimTable:
    """The claims of a paper as their code is defined: `@claim(TAG, regime)` stands above the function that compares.

    All else that a claim needs is in `words`, or given to the decorator; `tested` are the claims that have their code.
    """

    words: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tested: dict[str, Claim] = field(default_factory=dict)

    def __call__(self, tag: str, regime: Callable[[Any], Any], **more: Any) -> Callable[[Any], Any]:
        def add(compare: Any) -> Any:
            self.tested[tag] = Claim(tag=tag, regime=regime, compare=compare, **{**self.words.get(tag, {}), **more})
            return compare

        return add

    @property
    def claims(self) -> tuple[Claim, ...]:
        """In the order of the words, or of their code where there are none."""
        return tuple(self.tested[tag] for tag in self.words or self.tested if tag in self.tested)


def _unfinished(run: "Run") -> str:
    return f"the run is {run.status}: {run.reason or 'it did not reach its end'}"
