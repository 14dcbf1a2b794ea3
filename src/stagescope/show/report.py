"""Write the report of some runs: one HTML file that works from disk, without a network; forks show how far apart they are."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import count
from pathlib import Path
from typing import overload

import numpy as np

from stagescope.claims.own import Claims, own_claims
from stagescope.core.errors import InputError, first_names
from stagescope.core.markup import escaped
from stagescope.core.progress import progress_for
from stagescope.core.spec import digest
from stagescope.flow.field import Field, Objective
from stagescope.readings.fork_difference import fork_difference
from stagescope.readings.reading import reading
from stagescope.readings.rebuild import forked
from stagescope.runs.files import check_target, publish
from stagescope.runs.run import Run
from stagescope.runs.store import load
from stagescope.show.page import GENERATOR, page
from stagescope.show.portrait import PARTS, named, portrait, skipped
from stagescope.views.curves import curves
from stagescope.views.view import Curve, Portrait

Runs = Run | str | Path | Iterable[Run | str | Path]
ABOUT = "|theta of the fork - theta of its parent| over |theta of its parent|, at equal times from the fork on."


def with_distances(portraits: Sequence[Portrait]) -> list[Portrait]:
    """Each fork whose parent is on the page has a view of the distance between both."""
    parents = {digest(page_portrait.run.spec): page_portrait.run for page_portrait in portraits}
    portraits_with_views = []
    for page_portrait in portraits:
        parent = None if forked(page_portrait.run) is None else parents.get(page_portrait.run.spec["dynamics"]["parent"])
        if parent is not None:  # the distance at the frames after the fork at which there is one
            difference = fork_difference(parent, page_portrait.run)
            frames = np.flatnonzero(difference.distance > 0)
            if len(frames):
                curve = Curve("distance", difference.relative[frames])
                view = curves("fork", "Distance from the parent", ABOUT, "relative distance", [curve], log=True, frames=frames)
                page_portrait = replace(page_portrait, views=(*page_portrait.views, view))
        portraits_with_views.append(page_portrait)
    return portraits_with_views


@dataclass(frozen=True)
class Page:
    """A report that was not written to a file: a notebook shows it, `save` writes it. `notes` say what its runs lack.

    Examples:
        >>> page = ss.report(run, skip=("ledger", "ladder", "prediction"))
        >>> page.save("run.html").name
        'run.html'
    """

    html: str = field(repr=False)
    title: str
    notes: tuple[str, ...] = ()

    def save(self, path: str | Path) -> Path:
        """Write the page; an earlier report is replaced, no other file ever is."""
        target = html_target(Path(path))
        publish(target, self.html.encode())
        return target

    def _repr_html_(self) -> str:
        """The page in a frame of its own, which may run its scripts and save files, and reaches nothing of the notebook."""
        frame = "width:100%;height:min(90vh, 900px);border:1px solid rgba(128,128,128,.4);border-radius:6px"
        allowed = 'sandbox="allow-scripts allow-downloads"'
        return f'<iframe {allowed} title="{escaped(self.title)}" style="{frame}" srcdoc="{escape(self.html)}"></iframe>'


@overload
def report(
    runs: Runs,
    path: str | Path,
    *,
    exact: bool = ...,
    title: str | None = ...,
    skip: str | Sequence[str] = ...,
    claims: Claims = ...,
    objective: Objective | Field | None = ...,
    progress: bool | None = ...,
) -> Path: ...


@overload
def report(
    runs: Runs,
    path: None = None,
    *,
    exact: bool = ...,
    title: str | None = ...,
    skip: str | Sequence[str] = ...,
    claims: Claims = ...,
    objective: Objective | Field | None = ...,
    progress: bool | None = ...,
) -> Page: ...


def report(
    runs: Runs,
    path: str | Path | None = None,
    *,
    exact: bool = False,
    title: str | None = None,
    skip: str | Sequence[str] = (),
    claims: Claims = (),
    objective: Objective | Field | None = None,
    progress: bool | None = None,
) -> Path | Page:
    """One offline page in which to watch runs learn; returns its path, or without a path the page itself, which a notebook shows.

    Runs, or their folders, of one kind of model on one clock share a scrubber and are shown side by side; others get a tab of
    their own. An earlier report at `path` is replaced, no other file ever is.

    Args:
        runs: a run, a folder of one, or several of them.
        path: the file, ending in .html; without one nothing is written, and a notebook shows the page in the cell.
        exact: embed matrices as float32 instead of 8 bits a cell; the file grows about tenfold.
        title: of the page; default: the names of the runs.
        skip: what to leave out because it takes long: "ledger", "ladder", "prediction", or several of them.
        claims: your own, put to every run after those of its paper: a `Claim`, several, or "module:NAME" of some.
        objective: your own, for runs that move it: their page then has a saddle ladder.
        progress: show a bar; default: on a terminal.

    Returns:
        The file, or without a path the page.

    Examples:
        >>> ss.report(snap, "snap.html", skip="ledger").name
        'snap.html'
    """
    target = None if path is None else html_target(Path(path))
    skip, extra_claims = skipped(skip), own_claims(claims)
    if not isinstance(runs, Iterable) or isinstance(runs, str):
        runs = [runs]
    loaded = []
    for run_or_folder in runs:
        if not isinstance(run_or_folder, Run | str | Path):
            raise InputError(f"{run_or_folder!r} is no run; give a run, the folder of one, or several of them")
        loaded.append(run := run_or_folder if isinstance(run_or_folder, Run) else load(run_or_folder))
        if not run.frames:
            raise InputError(f"{run.path or run!r}: the run has no frame yet, so there is nothing to show")
    if not loaded:
        raise InputError("no run to report on; give at least one run or the folder of one")
    if objective is not None:
        moving = [run for run in loaded if run.type == "own"]
        if not moving:
            raise InputError("no run here moves an objective of your own: leave it out")
        for run in moving:
            reading(run, objective)
    with progress_for(progress) as bar:
        bar.begin("report", len(loaded) * (len(PARTS) + 1), "parts")
        finished = count(1)

        def done(_: str = "") -> None:
            bar.update(next(finished))

        named_runs = zip(loaded, names(loaded), strict=True)
        portraits = [portrait(run, name, skip=skip, claims=extra_claims, done=done) for run, name in named_runs]
        html = page(with_distances(portraits), title, exact=exact, done=done)
    several = len(portraits) > 1
    notes = tuple(
        f"{page_portrait.name}: {note}" if several else note for page_portrait in portraits for note in page_portrait.notes
    )
    html_page = Page(html, title or first_names(page_portrait.name for page_portrait in portraits), notes)
    return html_page if target is None else html_page.save(target)


def write(
    portraits: Sequence[Portrait],
    path: Path,
    title: str | None = None,
) -> Path:
    """The page of portraits that are made already."""
    target = html_target(path)
    publish(target, page(portraits, title).encode())
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
    if path.exists():
        try:
            with open(path, "rb") as file:
                head = file.read(4000)
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror}), so it is not replaced; choose another name") from None
        if GENERATOR.encode() not in head:
            raise InputError(f"{path} exists and is no report of Stagescope; choose another name or remove it")
    return path
