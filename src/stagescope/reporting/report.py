"""Write the report of some runs: one HTML file that works from disk, without a network."""

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from pathlib import Path

from stagescope.claims.own import Claims, own_claims
from stagescope.errors import InputError
from stagescope.fields.field import Field
from stagescope.fields.objective import Objective
from stagescope.papers.reading import reading
from stagescope.progress import progress_for
from stagescope.reporting.forks import with_distances
from stagescope.reporting.page import GENERATOR, page
from stagescope.reporting.portrait import PARTS, named, portrait, skipped
from stagescope.runs.files import check_target, publish
from stagescope.runs.run import Run
from stagescope.runs.store import load
from stagescope.views.view import Portrait

HEAD = 4000
"""Bytes at the start of a file that tell whether it is a report."""


def report(
    runs: Run | str | Path | Iterable[Run | str | Path],
    path: str | Path = "report.html",
    *,
    exact: bool = False,
    title: str | None = None,
    skip: str | Sequence[str] = (),
    claims: Claims = (),
    objective: Objective | Field | None = None,
    progress: bool | None = None,
) -> Path:
    """One offline page in which to watch runs learn; returns its path.

    Runs, or their folders, of one kind of model on one clock share a scrubber and are shown side by side; others get a tab of
    their own. An earlier report at `path` is replaced, no other file ever is.

    Args:
        runs: a run, a folder of one, or several of them.
        path: the file, ending in .html.
        exact: embed matrices as float32 instead of 8 bits a cell; the file grows about tenfold.
        title: of the page; default: the names of the runs.
        skip: what to leave out because it takes long: "ledger", "ladder", "prediction", or several of them.
        claims: your own, put to every run after those of its paper: a `Claim`, several, or "module:NAME" of some.
        objective: your own, for runs that move it: their page then has a saddle ladder.
        progress: show a bar; default: on a terminal.

    Example:
        ss.report(ss.run_study("scan-snap", preset="syn-small-flow"), "scan-snap.html")
    """
    return noted_report(runs, path, exact=exact, title=title, skip=skip, claims=claims, objective=objective, progress=progress)[0]


def noted_report(
    runs: Run | str | Path | Iterable[Run | str | Path],
    path: str | Path,
    *,
    exact: bool = False,
    title: str | None = None,
    skip: str | Sequence[str] = (),
    claims: Claims = (),
    objective: Objective | Field | None = None,
    progress: bool | None = None,
) -> tuple[Path, tuple[str, ...]]:
    """The same, with what the page notes of its runs, by name where there are several."""
    target = html_target(Path(path))
    skip, own = skipped(skip), own_claims(claims)
    if not isinstance(runs, Iterable) or isinstance(runs, str):
        runs = [runs]
    opened = [_opened(run) for run in runs]
    if not opened:
        raise InputError("no run to report on; give at least one run or the folder of one")
    _tell(objective, opened)
    with progress_for(progress) as bar:
        bar.begin("report", len(opened) * (len(PARTS) + 1), "parts")
        finished = count(1)

        def done(_: str = "") -> None:
            bar.update(next(finished))

        named_runs = zip(opened, names(opened), strict=True)
        portraits = [portrait(run, name, skip=skip, claims=own, done=done) for run, name in named_runs]
        write(with_distances(portraits), target, exact=exact, title=title, done=done)
    several = len(portraits) > 1
    return target, tuple(f"{found.name}: {note}" if several else note for found in portraits for note in found.notes)


def _tell(objective: Objective | Field | None, runs: Sequence[Run]) -> None:
    """Give an objective to the readings of the runs that move one."""
    own = [run for run in runs if run.type == "own"]
    if objective is not None and not own:
        raise InputError("no run here moves an objective of your own: leave it out")
    for run in own if objective is not None else ():
        reading(run, objective)


def write(
    portraits: Sequence[Portrait],
    path: Path,
    *,
    exact: bool = False,
    title: str | None = None,
    done: Callable[[], None] = lambda: None,
) -> Path:
    """The page of portraits that are made already; `done` is called after each."""
    target = html_target(path)
    publish(target, page(portraits, title, exact=exact, done=done).encode())
    return target


def names(runs: Sequence[Run]) -> list[str]:
    """A name for each run; where two are alike, with the folder above it, or a number."""
    plain = [named(run) for run in runs]
    longer = [
        f"{run.path.resolve().parent.name}/{name}" if run.path and plain.count(name) > 1 else name
        for run, name in zip(runs, plain, strict=True)
    ]
    return [
        f"{name} ({longer[: place + 1].count(name)})" if longer.count(name) > 1 else name for place, name in enumerate(longer)
    ]


def _opened(what: Run | str | Path) -> Run:
    if not isinstance(what, Run | str | Path):
        raise InputError(f"{what!r} is no run; give a run, the folder of one, or several of them")
    run = what if isinstance(what, Run) else load(what)
    if not run.frames:
        raise InputError(f"{run.path or run!r}: the run has no frame yet, so there is nothing to show")
    return run


def html_target(path: Path) -> Path:
    """Where a page goes, checked before anything that takes long."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it, such as {path / 'report.html'}")
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: a report is an HTML file; choose a name that ends in .html, such as {path.name}.html")
    folder = path.parent
    if not folder.is_dir():
        raise InputError(f"{path}: the folder {folder} does not exist; create it first")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path}: no permission to write into {folder}; choose another place")
    check_target(path)
    if path.exists() and not _is_report(path):
        raise InputError(f"{path} exists and is no report of Stagescope; choose another name or remove it")
    return path


def _is_report(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return GENERATOR.encode() in file.read(HEAD)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}), so it is not replaced; choose another name") from None
