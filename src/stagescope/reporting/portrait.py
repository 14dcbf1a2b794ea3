"""A portrait: everything a page says about one run. What cannot be computed is left out, and a note says why."""

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from stagescope.claims.claim import Claim
from stagescope.claims.ledger import Ledger
from stagescope.claims.reference import Reference
from stagescope.corpora.known import folders
from stagescope.errors import StagescopeError, unknown
from stagescope.landscape.ladder import BATCHES, drawn_afresh
from stagescope.papers.reading import Reading, reading
from stagescope.papers.registry import paper_of, studies
from stagescope.reporting.prediction import path_of, with_predicted_loss
from stagescope.reporting.provenance import provenance
from stagescope.runs.run import Run
from stagescope.views.any_run import any_views
from stagescope.views.view import Maker, Portrait, View

Found = TypeVar("Found")
PARTS = ("views", "stages", "ledger", "ladder", "prediction")
SKIPPED = ("ledger", "ladder", "prediction")
"""Parts that can be slow and may be left out."""
_ABSOLUTE = re.compile(r"(?<![^\s'\"(=])/[^\s,;:'\"()]+")
"""An absolute path in a sentence."""
LARGE = 500
"""Parameters from which the general search for critical points takes minutes."""


def portrait(
    run: Run,
    name: str | None = None,
    *,
    skip: Collection[str] = (),
    claims: Sequence[Claim] = (),
    done: Callable[[str], None] = lambda part: None,
) -> Portrait:
    """Views, stages, ledger, ladder and prediction of a run; `skip` leaves out some of `SKIPPED`, `done` gets each part's name.

    The ledger has the claims of the run's paper, then your own `claims`. It never raises for what a run is: one that failed,
    was interrupted, has a single frame or numbers that are not finite has a portrait of what there is.
    """
    skip = skipped(skip)
    notes: list[str] = _condition(run)
    views = _views(run, notes)
    done("views")
    seen = reading(run)
    found = _tried("stages", lambda: seen.told_stages, notes) if run.frames else None
    notes += [f"{name}: {note}" for name, note in (found.notes if found else {}).items() if found and name not in found.events]
    done("stages")
    read = seen.kind is not None and run.frames > 0
    judged = read or (bool(claims) and run.frames > 0)
    why = str(seen.unread("claims"))
    if not judged and not any(why in note for note in notes):
        notes.append(why)
    if judged and "ledger" in skip:
        notes.append(_as_asked("ledger", "check"))
    ledger = _tried("the ledger", lambda: _judged(seen, claims), notes) if judged and "ledger" not in skip else None
    done("ledger")
    why = no_ladder(run, skip)
    if why is not None:
        notes.append(why)
    ladder = _tried("the saddle ladder", lambda: seen.ladder, notes) if why is None else None
    done("ladder")
    path = _tried("the prediction", lambda: path_of(seen, skip, notes), notes)
    views = views if path is None else with_predicted_loss(views, path, run)
    done("prediction")
    words = _tried("the explanation", lambda: seen.explained, notes) if run.frames else None
    clean = tuple(_without_path(note, run) for note in notes)
    shown = replace(run, reason=_without_path(run.reason, run))
    facts = {"explained": words, "reference": reference_of(run)}
    return Portrait(name or named(run), shown, views, found, ledger, ladder, provenance(shown), clean, path, **facts)


def reference_of(run: Run) -> Reference | None:
    """The paper of a run that was made by a study."""
    return paper_of(run.study).reference if run.study in studies() else None


def skipped(skip: Collection[str]) -> tuple[str, ...]:
    """The parts to leave out, checked; a single one may be given as it is."""
    parts = (skip,) if isinstance(skip, str) else tuple(skip)
    for part in parts:
        if part not in SKIPPED:
            raise unknown("part to skip", part, SKIPPED)
    return parts


def named(run: Run) -> str:
    """A short name: that of its folder, or what it is."""
    if run.path is not None:
        return run.path.resolve().name
    return f"{run.study or run.type}" + ("" if run.seed is None else f", seed {run.seed}")


def _without_path(text: str, run: Run) -> str:
    """A page is made to be sent: of where a run or another file is stored it says the last name alone."""
    places = set() if run.path is None else {str(run.path.resolve()), str(run.path.absolute()), str(run.path)}
    for path in sorted(places, key=len, reverse=True):
        text = text.replace(path, named(run)) if os.sep in path else text
    files = {
        value
        for value in (*(run.config or {}).values(), *_strings([run.spec["field"], run.spec.get("source")]))
        if isinstance(value, str)
    }
    files |= set(map(str, (*folders(), Path.cwd())))
    for path in sorted(files, key=len, reverse=True):  # they may hold blanks, where the pattern would end
        text = text.replace(path, Path(path).name) if Path(path).is_absolute() and Path(path).name else text
    return _ABSOLUTE.sub(lambda found: Path(found[0]).name, text)


def _strings(described: Any) -> Iterator[str]:
    """All texts in a description."""
    if isinstance(described, str):
        yield described
    elif isinstance(described, dict | list):
        for item in described.values() if isinstance(described, dict) else described:
            yield from _strings(item)


def _judged(seen: Reading, claims: Sequence[Claim]) -> Ledger:
    """The ledger; what could not be computed for a claim may name a file."""
    found, run = seen.check(claims), seen.run
    return replace(found, verdicts=tuple(replace(row, reason=_without_path(row.reason, run)) for row in found))


def _condition(run: Run) -> list[str]:
    """What a reader must know before believing the rest."""
    notes = []
    if not run.done:
        why = run.reason or "it did not reach its end"
        notes.append(f"the run is {run.status}: {why}; nothing after its last frame is known")
    if run.frames == 0:
        notes.append("no frame was recorded: there is nothing to show")
    elif run.frames == 1:
        notes.append("a single frame was recorded: nothing is seen to move")
    return notes


def _views(run: Run, notes: list[str]) -> tuple[View, ...]:
    if run.frames == 0:
        return ()
    seen = reading(run)
    listed = _tried("the views of its model", lambda: seen.views, notes)
    if listed is None:
        listed = any_views(seen)
    made = [_tried(f"a view ({_what(maker)})", maker, notes) for maker in listed]
    return tuple(view for view in made if view is not None)


def _what(maker: Maker) -> str:
    function = getattr(maker, "func", maker)
    return getattr(function, "__name__", "view").strip("_").replace("_", " ")


def _tried(what: str, make: Callable[[], Found], notes: list[str]) -> Found | None:
    """What `make` makes; None and a note where it fails.

    Every error is caught: numbers that are not finite break solvers and fits in many ways, and the page that says so is
    what its reader needs then.
    """
    try:
        return make()
    except StagescopeError as error:
        notes.append(f"{what} could not be computed: {error}")
    except Exception as error:
        notes.append(f"{what} could not be computed: {type(error).__name__}: {error}")
    return None


def _as_asked(part: str, command: str) -> str:
    return f"the {part} was left out as asked; `stagescope {command}` on the folder of the run computes it"


def no_ladder(run: Run, skip: Collection[str] = ()) -> str | None:
    """Why a run has no saddle ladder on the page; None where one is computed."""
    seen, size = reading(run), sum(run.params[name][0].size for name in run.params) if run.frames else 0
    if run.frames < 2:
        return "a saddle ladder needs more than one frame"
    if run.spec["field"] is None:
        return "a saddle ladder needs a law of motion, and this run was recorded elsewhere"
    if seen.type == "own" and seen.what is None:
        return "the saddle ladder needs your objective: ss.report(run, objective=...), or --objective MODULE:NAME of `report`"
    if _on_batches(seen):
        return f"there is no saddle ladder: {BATCHES}"
    if "ladder" in skip:
        return _as_asked("ladder", "ladder")
    if not seen.has_own_ladder and (size > LARGE or seen.cost.slow_ladder):
        how = "`stagescope ladder` on the folder of the run says how long, and computes it"
        return f"the saddle ladder of {size:,} parameters takes from minutes to hours and was left out; {how}"
    return None


def _on_batches(seen: Reading) -> bool:
    """Whether critical points would be searched on batches; False also for a law that cannot be built, which the ladder says."""
    try:
        return not seen.has_own_ladder and drawn_afresh(seen.field)
    except StagescopeError:
        return False
