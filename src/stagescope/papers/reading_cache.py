"""Which reading of a run is known already: its own, one of a copy of it, or one of a stored run that was read lately."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from stagescope.claims.claim import Claim, Verdict
from stagescope.errors import InputError, StagescopeError, message
from stagescope.fields.field import Field, Objective
from stagescope.progress import progress_for
from stagescope.runs.run import Run
from stagescope.spec import canonical, types_of
from stagescope.threads import one_blas_thread

if TYPE_CHECKING:
    from stagescope.papers.reading import Reading


KEPT = 4
"""Readings that a run keeps: its own, and those of copies of it that `dataclasses.replace` made."""
BUDGET = 2**23
"""Parameters in all frames of all stored runs that are kept, 64 MB: what a reading computes takes a few times as much."""

_recent: "tuple[Reading, ...]" = ()
"""Readings of stored runs, the last first, so that a run that is opened again is not read again."""


def known(run: Run, what: Objective | Field | None) -> "list[Reading]":
    """Readings of the same arrays by the same law; they may differ in how the run ended."""
    own: list[Reading] = run.memo.setdefault("readings", [])
    return [each for each in (*own, *_recent) if each.what is what and _same_arrays(each.run, run)]


def keep(made: "Reading", run: Run) -> None:
    """Keep a reading with a run as long as the run lives, and beyond that where it may be of use to others."""
    global _recent
    own: list[Reading] = run.memo.setdefault("readings", [])
    if not any(each is made for each in own):
        own.insert(0, made)
        del own[KEPT:]
    # Only what is small, and follows from the bytes of a stored run: it is of a paper, and without a text. A text may be found
    # at one time and not at another; an objective of your own is no part of a stored run.
    stored = made.kind is not None and made.run.spec["field"] is not None and _origin(made.run.params) is not None
    lasting = stored and _size(made.run) <= BUDGET and "TextCorpus" not in types_of(made.run.spec)
    if not lasting or any(each is made for each in _recent):
        return
    kept, left = [made], BUDGET - _size(made.run)
    for each in _recent:
        left -= _size(each.run)
        if left < 0:
            break
        kept.append(each)
    _recent = tuple(kept)  # replaced at once: another thread may be looking at the one before


def _size(run: Run) -> int:
    return run.frames * sum(math.prod(shape) for shape in run.spec["blocks"].values())


def _same_arrays(read: Run, run: Run) -> bool:
    """Whether a run that was read has the arrays of another, and was made in the same way."""
    arrays = _same_numbers(read.params, run.params) and _same_numbers(read.series, run.series)
    spec = read.spec is run.spec or (read.params is not run.params and read.spec == run.spec)
    return arrays and spec and all(getattr(read, part) == getattr(run, part) for part in ("clock", "seed", "study", "config"))


def _same_numbers(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> bool:
    """Whether two sets of arrays are the same, known without a look at them: one object, or read from the same stored bytes."""
    return one is other or (_origin(one) is not None and _origin(one) == _origin(other))


def _origin(arrays: Mapping[str, np.ndarray]) -> str | None:
    return getattr(arrays, "origin", None)  # a run may be given plain dictionaries


def ending(run: Run) -> tuple[str, str]:
    """What a ledger says of how a run ended: the reason only where it did not reach its end."""
    return run.status, "" if run.done else run.reason


def only_objective(run: Run) -> Objective | Field | None:
    """The objective of a run for which one was given; None for two, because nobody knows which is meant."""
    given = _objectives(run)
    return given[0] if len(given) == 1 else None


def keep_objective(run: Run, what: Objective | Field | None) -> None:
    """Note that an objective was given for a run; more than two are not told apart."""
    given = _objectives(run)
    if what is not None and len(given) < 2 and not any(each is what for each in given):
        run.memo["objectives"].append((run.spec, what))


def _objectives(run: Run) -> list[Objective | Field]:
    """The objectives that were given for a run so far."""
    return [what for spec, what in run.memo.setdefault("objectives", []) if spec is run.spec]


Made = TypeVar("Made")


class Companions:
    """What functions gave for their arguments, such as runs from smaller starts or with other seeds.

    A claim states their cost in `Claim.cost`. A failure is remembered too, and raised again.
    """

    def __init__(self) -> None:
        self._made: dict[bytes, Any] = {}

    def get(self, make: Callable[..., Made], *arguments: Any) -> Made:
        """What `make(*arguments)` gives; made once for the same function and arguments.

        `make` is a function or method with a name; the arguments are texts, finite numbers, or lists or dictionaries of them.
        """
        key = _key(make, arguments)
        if key not in self._made:
            try:
                self._made[key] = make(*arguments)
            except StagescopeError as error:
                self._made[key] = error
        if isinstance(self._made[key], StagescopeError):
            raise self._made[key]
        return self._made[key]

    def each(self, make: Callable[..., Made], values: Iterable[Any]) -> "list[Made | StagescopeError]":
        """What `make(value)` gives for each value, for a claim over several runs; the error where one could not be made."""
        found: list[Made | StagescopeError] = []
        for value in values:
            try:
                found.append(self.get(make, value))
            except StagescopeError as error:
                found.append(error)
        return found


def _key(make: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """The name and module of a function with its arguments."""
    name, module = getattr(make, "__qualname__", None), getattr(make, "__module__", None)
    if name is None or module is None or name.endswith("<lambda>"):
        raise InputError(f"a companion is made by a function or method with a name, not by {make!r}; define one with `def`")
    try:
        return canonical([module, name, *arguments])
    except (TypeError, ValueError) as error:
        wanted = "texts, finite numbers, or lists or dictionaries of them"
        raise InputError(f"the arguments of the companion {name!r} must be {wanted}: {message(error)}") from None


class Verdicts:
    """What was found of the claims that were put to a reading so far."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Claim, Verdict]] = {}

    def of(self, claims: tuple[Claim, ...], here: "Reading") -> tuple[Verdict, ...]:
        """The verdicts of some claims; see `Reading.judge`."""
        new = [claim for claim in claims if id(claim) not in self._found]
        evidence = None
        try:
            evidence = here.evidence if new else None
        except StagescopeError:
            raise
        except (Exception, SystemExit) as error:
            self._found |= {id(claim): (claim, claim.without_evidence(error)) for claim in new}
        with one_blas_thread(), progress_for(here.progress) as bar:  # matrices are small: more threads only cost
            for claim in bar.each(new, "claims", "claims"):
                if id(claim) not in self._found:
                    self._found[id(claim)] = claim, claim.judge(here.run, evidence)
        return tuple(self._found[id(claim)][1] for claim in claims)

    def elsewhere(self, row: Verdict, here: "Reading") -> Verdict:
        """A verdict with that of a run beside this one, where the claim names options with which it can be decided."""
        if row.elsewhere is None:
            return row
        claim = next((claim for claim, _ in self._found.values() if claim.tag == row.tag), None)
        if claim is None:  # a row that another kind of evidence decided
            return row
        try:
            beside = here.companion(here.beside, dict(row.elsewhere.options))
            found = beside.judge([claim]).verdicts[0]
        except Exception as error:  # a run with other options may fail in any way; this one's ledger stands
            found = claim.without_evidence(error)
        return replace(row, elsewhere=replace(row.elsewhere, verdict=found))
