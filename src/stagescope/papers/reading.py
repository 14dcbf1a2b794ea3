"""The reading of a run: everything the laboratory can say about it, each part computed when first asked for, and once."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeVar

from stagescope.claims.claim import Claim
from stagescope.claims.ledger import Ledger
from stagescope.detect.stage import Stages
from stagescope.errors import InputError
from stagescope.fields.field import Field
from stagescope.fields.objective import Objective
from stagescope.landscape.ladder import Ladder, field_ladder, search_cost
from stagescope.papers.paper import Cost, Kind
from stagescope.papers.rebuild import field_of
from stagescope.papers.registry import kind_of, missing
from stagescope.runs.run import Run
from stagescope.spec import canonical
from stagescope.views.any_run import any_views
from stagescope.views.view import Maker

Made = TypeVar("Made")


class Reading:
    """What can be said about one run. Papers subclass it for their kinds of runs; a run of no paper is read by this class.

    `run` is the run, `field` its law of motion built again from the spec. Subclasses give `curves` (observables at a
    resolution that does not depend on how densely the run was recorded), `stages`, `evidence` (what claims look at) and, where
    the model has one of its own, `own_ladder`.
    """

    progress: bool | None = False

    def __init__(self, run: Run, kind: Kind | None = None, what: Objective | Field | None = None) -> None:
        self.run, self.kind, self.what = run, kind, what
        self._companions: dict[bytes, Any] = {}

    @cached_property
    def field(self) -> Field:
        return field_of(self.run.spec, self.what)

    @cached_property
    def law(self) -> Any:
        """The objective that the run descends, or the field where it is no gradient."""
        return self.field.objective or self.field

    @cached_property
    def curves(self) -> Any:
        raise self.unread("observables")

    @cached_property
    def stages(self) -> Stages:
        raise self.unread("stages")

    @cached_property
    def evidence(self) -> Any:
        """What the claims on this run look at; it has the run as `run`."""
        return self

    @cached_property
    def ledger(self) -> Ledger:
        """The verdicts of the paper's claims."""
        claims = () if self.kind is None else self.kind.claims()
        if not claims:
            raise self.unread("claims")
        return self.judge(claims)

    def judge(self, claims: Iterable[Claim]) -> Ledger:
        return Ledger.of(self.run, claims, self.evidence)

    @property
    def has_own_ladder(self) -> bool:
        """Whether the model has a ladder of its own; otherwise critical points are searched for."""
        return False

    def own_ladder(self) -> Ladder:
        """The ladder that only this kind of run has."""
        raise InputError(f"runs of {self.type!r} have no ladder of their own")

    @cached_property
    def ladder(self) -> Ladder:
        """The critical points the run passed."""
        if self.has_own_ladder and self.what is None:
            return self.own_ladder()
        return field_ladder(self.run, self.field, progress=self.progress)

    @property
    def ladder_cost(self) -> tuple[float, str]:
        """Seconds that the search for critical points may take, and the sentence that says what is searched."""
        return (0.0, "") if self.has_own_ladder else search_cost(self.run, self.field)

    @cached_property
    def views(self) -> list[Maker]:
        """What a page shows of the run, each made when called."""
        return any_views(self) if self.kind is None else self.kind.views(self)

    def companion(self, make: Callable[..., Made], *arguments: Any) -> Made:
        """What `make(*arguments)` gives, such as a run beside this one; made once for the same name and arguments."""
        key = canonical([make.__qualname__, *arguments])
        if key not in self._companions:
            self._companions[key] = make(*arguments)
        return self._companions[key]

    @property
    def type(self) -> str:
        """The id of the type of field."""
        return self.run.type

    def unread(self, what: str) -> InputError:
        """Why there are no stages or claims: the package of the paper is missing, or no paper has them for such runs."""
        return missing(self.type) or InputError(f"no {what} are written for runs of {self.type!r}")

    @property
    def cost(self) -> Cost:
        return Cost() if self.kind is None else self.kind.cost


def reading(run: Run, what: Objective | Field | None = None) -> Reading:
    """The reading of a run, the same object each time; `what` is your own objective where the run moves one."""
    known = run.memo.get("reading")
    if known is not None and _same(known.run, run) and (what is None or known.what is what):
        return known
    kind = kind_of(run.type)
    made = Reading(run, kind, what) if kind is None or what is not None else kind.read(run)
    made.kind = kind
    run.memo["reading"] = made
    return made


def _same(read: Run, run: Run) -> bool:
    """Whether a run that was read has the arrays, the spec and the end of another."""
    parts = ("params", "series", "spec")
    return read.status == run.status and all(getattr(read, part) is getattr(run, part) for part in parts)


def stages(run: Run) -> Stages:
    """Events and stages of a run; an event that was not reached is None."""
    return reading(run).stages


def check(run: Run, claims: Iterable[Claim] = ()) -> Ledger:
    """The ledger: every claim on this kind of run with its verdict, then your own `claims`."""
    found, own = reading(run), tuple(claims)
    if not own:
        return found.ledger
    written = found.ledger.verdicts if found.kind is not None and found.kind.claims() else ()
    return Ledger(run.status, run.clock, (*written, *found.judge(own)))


def saddle_ladder(run: Run, what: Objective | Field | None = None, progress: bool | None = False) -> Ladder:
    """The critical points a run passed, what opens at each, and when it was and should have been left.

    A model that is known to pass critical points of small models inside it has a ladder of its own. Any other run, also of
    your own objective, which then is given as `what`, is searched for critical points where it is slow: `progress` shows how
    far that is.
    """
    found = reading(run, what)
    found.progress = progress
    return found.ladder
