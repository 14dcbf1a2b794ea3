"""All papers: our own by scanning this package, other people's by their entry points `stagescope.papers`.

A paper that cannot be used is left out with one sentence in `problems`, and affects no other.
"""

import pkgutil
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import stagescope.papers
from stagescope.claims.reference import GENERAL, Tag
from stagescope.errors import InputError, unknown
from stagescope.ids import type_id
from stagescope.papers.paper import Kind, Paper
from stagescope.papers.study import Study

if TYPE_CHECKING:
    from stagescope.runs.run import Run

GROUP = "stagescope.papers"


class Found(NamedTuple):
    """Papers by name, and a sentence for each that was left out."""

    papers: dict[str, Paper]
    problems: tuple[str, ...]


@cache
def _found() -> Found:
    papers: dict[str, Paper] = {}
    problems: list[str] = []
    for module in pkgutil.iter_modules(stagescope.papers.__path__, f"{GROUP}."):
        if module.ispkg:
            paper = import_module(module.name).PAPER
            papers[paper.name] = paper
    for entry in entry_points(group=GROUP):
        try:
            paper = _loaded(entry, papers)
            papers[paper.name] = paper
        except Exception as error:  # somebody else's code: whatever it raises must not stop ours
            what = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            problems.append(f"the paper {entry.name!r} of {entry.value} was left out: {what}")
    return Found(papers, tuple(problems))


def _loaded(entry: EntryPoint, papers: dict[str, Paper]) -> Paper:
    paper = entry.load()
    if not isinstance(paper, Paper):
        raise InputError(f"it is of type {type(paper).__name__}, not a stagescope Paper")
    if paper.name in papers:
        raise InputError(f"there is a paper {paper.name!r} already; give it another name")
    taken = {study.name for other in papers.values() for study in other.studies}
    for study in paper.studies:
        if study.name in taken:
            raise InputError(f"there is a study {study.name!r} already; give it another name")
    return paper


def papers() -> dict[str, Paper]:
    """All papers by name."""
    return _found().papers


def problems() -> tuple[str, ...]:
    """One sentence for each paper that is installed and was left out."""
    return _found().problems


def studies() -> dict[str, Study]:
    """All studies by name, in alphabetical order."""
    found = {study.name: study for paper in papers().values() for study in paper.studies}
    return dict(sorted(found.items()))


def study(name: str) -> Study:
    """A study by name."""
    if name not in studies():
        raise unknown("study", name, studies(), more=problems())
    return studies()[name]


def paper_of(study: str) -> Paper:
    """The paper that a study belongs to."""
    return next(paper for paper in papers().values() if study in {each.name for each in paper.studies})


@cache
def _kinds() -> dict[str, tuple[Kind, str]]:
    """For the id of each type of field: how its runs are read, and the module that has the type."""
    found = {}
    for each in studies().values():
        for kind in each.kinds:
            for target in kind.fields:
                module, _, name = target.partition(":")
                found[type_id(module, name)] = (kind, module)
    return found


def kind_of(identity: str) -> Kind | None:
    """How runs of a type of field are read; None where no paper says so."""
    found = _kinds().get(identity)
    return found[0] if found else None


@cache
def _modules() -> dict[str, str]:
    """The module of each type that a paper names, by the id of the type."""
    kinds = [kind for each in studies().values() for kind in each.kinds]
    targets = [target.split(":") for kind in kinds for target in (*kind.fields, *kind.types)]
    return {type_id(module, name): module for module, name in targets}


def load_type(identity: str) -> None:
    """Import the module of a type, where a paper names it: a stored spec can then be built."""
    if identity in _modules():
        import_module(_modules()[identity])


@cache
def tags() -> dict[str, Tag]:
    """Every tagged statement, of all papers."""
    return {**GENERAL, **{name: tag for paper in papers().values() for name, tag in paper.tags.items()}}


def run_study(
    name: str,
    preset: str | None = None,
    *,
    seed: int = 0,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> "Run":
    """Run a study from Python as `stagescope run` does: `run_study("scan-snap", "syn-small-flow", rate_y=10)`."""
    found = study(name)
    chosen = found.configured(preset, **options)
    return found.run(chosen, seed=seed, out=out, overwrite=overwrite, progress=progress)
