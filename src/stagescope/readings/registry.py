"""All papers: our own by scanning this package, other people's by their entry points `stagescope.papers`.

A paper that cannot be used is left out with one sentence in `problems`, and affects no other.
"""

import json
import pkgutil
import traceback
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stagescope
from stagescope.claims.inputs import Rates
from stagescope.claims.reference import GENERAL, Tag
from stagescope.core.errors import InputError, unknown
from stagescope.core.ids import named_object, type_id
from stagescope.readings.checking import check_owner, check_paper, fields, split_target
from stagescope.readings.paper import Kind, Paper
from stagescope.readings.study import Study

if TYPE_CHECKING:
    from stagescope.runs.run import Run

GROUP = "stagescope.papers"
FOLDERS = [str(Path(stagescope.__file__).parent / "papers")]
"""Where papers of ours are. Each is loaded by its name: no part of lower rank imports their package."""
_PROCESSES = ("stagescope.processes.markov_chain", "stagescope.corpora.corpus")
"""Modules of the core whose types a spec may name."""


@cache
def _load_all() -> tuple[dict[str, Paper], tuple[str, ...]]:
    """Papers by name, and a sentence for each that was left out."""
    papers: dict[str, Paper] = {}
    problems: list[str] = []
    sources: dict[str, str] = {}
    # Where papers may be, ours first; the package of those that are not ours; and how each is loaded.
    places: list[tuple[str, str | None, Callable[[], Any]]] = [
        (module, None, partial(named_object, f"{module}:PAPER")) for module in _our_modules()
    ]
    entries = sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))
    places += [(entry.value, entry.value.partition(":")[0].partition(".")[0], entry.load) for entry in entries]
    for source, package, load in places:
        try:
            paper = _checked(load(), package, papers, sources)
            papers[paper.name], sources[paper.name] = paper, source
        except (Exception, SystemExit) as error:  # whatever one paper raises must not stop the others
            problems.append(f"the paper at {source} was left out: {_sentence(error)}")
    return papers, tuple(problems)


def _our_modules() -> list[str]:
    inside = pkgutil.iter_modules(FOLDERS, f"{GROUP}.")
    return [module.name for module in inside if module.ispkg]


def _sentence(error: BaseException) -> str:
    lines = str(error).splitlines() or [""]
    return lines[0] if isinstance(error, InputError) else f"{type(error).__name__}: {lines[0]}"


def _checked(paper: Any, package: str | None, papers: Mapping[str, Paper], sources: Mapping[str, str]) -> Paper:
    """A paper that is well made and shares no name with those before it, which are at `sources`."""
    check_paper(paper)
    for earlier in papers.values():
        for kind, names in _names(paper).items():
            for name in names & _names(earlier)[kind]:
                raise InputError(f"the paper at {sources[earlier.name]} has the {kind} {name!r} already; rename yours")
    check_owner(paper, package)
    return paper


def package_of(error: BaseException) -> str | None:
    """The package of somebody else's paper in which an error was raised; None for any other error."""
    packages = {entry.value.partition(":")[0].partition(".")[0] for entry in entry_points(group=GROUP)}
    parts = {part for frame in traceback.extract_tb(error.__traceback__) for part in Path(frame.filename).parts}
    if isinstance(error, ImportError) and error.name:
        parts.add(error.name.partition(".")[0])
    return min(packages & parts, default=None)


def _names(paper: Paper) -> dict[str, set[str]]:
    """What no two papers may share."""
    return {
        "name": {paper.name},
        "study": {study.name for study in paper.studies},
        "tag": set(paper.tags),
        "type of field": {type_id(*target) for target in fields(paper)},
    }


def is_ours(name: str) -> bool:
    """Is this the name of a paper of this package?"""
    return name in {module.rpartition(".")[2].replace("_", "-") for module in _our_modules()}


@cache
def _load_one(name: str) -> Paper | None:
    """A paper of this package, loaded without any other; None where there is none of this name, or `problems` says why not."""
    if not is_ours(name):
        return None
    try:
        return _checked(named_object(f"{GROUP}.{name.replace('-', '_')}:PAPER"), None, {}, {})
    except (Exception, SystemExit):
        return None


def papers() -> dict[str, Paper]:
    """All papers by name."""
    return _load_all()[0]


def cite(name: str) -> str:
    """What to cite for a study, with the statements of its paper that the code uses.

    Args:
        name: the study.

    Returns:
        Text: the reference, then the statements by tag.

    Examples:
        >>> print(ss.cite("scan-snap").splitlines()[0][:60])
        Yuandong Tian, Yiping Wang, Beidi Chen, Simon Du: Scan and S
    """
    paper = paper_of(study(name).name)
    tags = [f"{tag:<24} {entry.number}: {entry.says}" for tag, entry in paper.tags.items()]
    return "\n".join([paper.reference.text, "", paper.reference.bibtex, "", *tags])


def problems() -> tuple[str, ...]:
    """One sentence for each paper that is installed and was left out."""
    return _load_all()[1]


def studies() -> dict[str, Study]:
    """All studies by name, in alphabetical order.

    Examples:
        >>> list(ss.studies())[:3]
        ['focus-dilution', 'incremental', 'linear-icl']
    """
    by_name = {study.name: study for paper in papers().values() for study in paper.studies}
    return dict(sorted(by_name.items()))


def study(name: str) -> Study:
    """A study by name. Where it is that of a paper of ours, no other paper is loaded.

    Args:
        name: the study.

    Examples:
        >>> ss.study("scan-snap").title
        'Scan and snap: common tokens are dropped, distinct ones win, attention freezes'
    """
    paper = _load_one(name)
    for of_study in paper.studies if paper is not None else ():
        if of_study.name == name:
            return of_study
    if name not in studies():
        raise unknown("study", name, studies(), more=problems())
    return studies()[name]


def stored_study(name: str) -> Study:
    """The study of a stored sweep."""
    if name not in studies():
        problem = f"this sweep is of the study {name!r}, which belongs to a package that is not installed"
        raise InputError("; ".join((f"{problem}; install the package of its paper", *problems())))
    return studies()[name]


def paper_of(study: str) -> Paper:
    """The paper that a study belongs to."""
    return next(paper for paper in papers().values() if study in {of_study.name for of_study in paper.studies})


def _read_as(identity: str) -> tuple[Kind, str, Study] | None:
    """How runs of a type of field are read, the module that has the type, and the study; None for a type of no paper."""
    owner, _, _ = identity.rpartition("/")
    return _kinds(owner).get(identity) if owner else None


@cache
def _kinds(owner: str) -> dict[str, tuple[Kind, str, Study]]:
    """That of each type of field: of a paper of ours alone where it is the owner, otherwise of all papers."""
    paper = _load_one(owner)
    among = studies().values() if paper is None else paper.studies
    targets = ((kind, *split_target(field), of_study) for of_study in among for kind in of_study.kinds for field in kind.fields)
    return {type_id(module, name): (kind, module, study) for kind, module, name, study in targets}


@cache
def _watched() -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Claims of all papers on watched transformers, and a sentence for each paper whose claims were left out."""
    claims: list[Any] = []
    left_out: list[str] = []
    for paper in papers().values():
        try:
            claims += _tagged(paper)
        except (Exception, SystemExit) as error:  # whatever one paper raises must not stop the others
            left_out.append(f"the claims of the paper {paper.name!r} on watched models were left out: {_sentence(error)}")
    return tuple(claims), tuple(left_out)


def _tagged(paper: Paper) -> tuple[Any, ...]:
    """The claims of a paper on watched models, each with a tag of the paper."""
    from stagescope.claims.claim import Claim

    claims = tuple(paper.watched())
    for claim in claims:
        if not isinstance(claim, Claim):
            raise InputError(f"watched has {claim!r:.60} in it; expected a Claim")
        if claim.tag not in paper.tags:
            raise unknown(f"tag of {paper.name}:", claim.tag, paper.tags)
    if len({claim.tag for claim in claims}) < len(claims):
        raise InputError("two of them have the same tag; rename one of them")
    return claims


def watched_claims() -> tuple[Any, ...]:
    """The claims of all papers on transformers that were trained elsewhere and watched."""
    return _watched()[0]


def watched_problems() -> tuple[str, ...]:
    """One sentence for each paper whose claims on watched models were left out."""
    return _watched()[1]


_WATCHED = Kind(
    fields=(),
    read=lambda run: named_object("stagescope.readings.watched:WatchedReading")(run),
    claims=watched_claims,
    views=lambda reading: named_object("stagescope.watching.views:watched_views")(reading),
    explain=lambda reading: named_object("stagescope.readings.watched:explain")(reading),
)
_SOURCES: Mapping[str, Kind] = {"watched": _WATCHED, "checkpoints": _WATCHED}
"""How runs without a field are read, by the kind of their source. They belong to no paper; other kinds have the free reading."""


def kind_of(identity: str) -> Kind | None:
    """How runs of a type of field, or of a kind of source, are read; None where nothing says so."""
    read_as = _read_as(identity)
    return read_as[0] if read_as else _SOURCES.get(identity)


def claim_rates(identity: str) -> Mapping[tuple[str, int], Rates]:
    """How the claims on runs of a type fared when they were calibrated, by tag and version of the rules.

    They stand in `calibration.json` in the innermost package around the type that has one; a paper without that file has none.
    """
    if identity in _SOURCES:
        return _stored_rates(Path(stagescope.__file__).parent / "watching" / "calibration.json", "watched")
    read_as = _read_as(identity)
    if read_as is None:
        return {}
    _, module, study = read_as
    spec = find_spec(module)
    packages = Path(spec.origin).parents[: module.count(".")] if spec is not None and spec.origin else ()
    path = next((path for folder in packages if (path := folder / "calibration.json").is_file()), None)
    return {} if path is None else _stored_rates(path, study.name)


@cache
def _stored_rates(path: Path, study: str) -> dict[tuple[str, int], Rates]:
    rates = {}
    try:
        for line in json.loads(path.read_text(encoding="utf-8")).get(study, {}).get("claims", ()):
            draws, confirmed = (sum(null[name] for null in line["nulls"]) for name in ("draws", "confirmed"))
            rates[line["tag"], line["rules"]] = Rates(line["in_regime"], line["violated"], draws, confirmed)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} cannot be read ({_sentence(error)}); write it again with `stagescope calibrate`") from None
    return rates


def load_type(identity: str) -> None:
    """Import what a stored spec of this type names: processes of the core, or a paper's field with what its study sets up."""
    if "/" not in identity:
        for module in _PROCESSES:
            import_module(module)
    read_as = _read_as(identity)
    if read_as is None:
        return
    _, module, study = read_as
    try:
        for name in (module, *study.types):
            import_module(name)
    except Exception as error:  # code of the paper runs here
        raise InputError(f"{identity} cannot be used: {module} fails to import ({_sentence(error)})") from error


def missing(identity: str) -> InputError | None:
    """The error for a type that is not there; None for a type that is known to a paper, or imported."""
    from stagescope.core.spec import missing_type

    if _read_as(identity) or missing_type(identity, ()) is None:
        return None
    error = missing_type(identity, problems())
    if error and is_ours(identity.rpartition("/")[0]):
        return InputError("; ".join((f"this version of Stagescope has no type {identity!r}, which this run needs", *problems())))
    return error


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
    checksum: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> "Run":
    """Run a study from Python as `stagescope run` does: `run_study("scan-snap", "syn-small-flow", rate_y=10)`.

    Args:
        name: the study.
        preset: settings by name.
        seed: of the start.
        out: a folder for the run.
        overwrite: replace a run in this folder.
        checksum: end every chunk with a CRC32C.
        progress: show a bar; None shows it on a terminal.
        options: settings that differ from the preset.

    Examples:
        >>> ss.run_study("linear-icl", "merged", until=10.0)
        <Run linear-icl: 200 frames to t=10, finished>
    """
    of_name = study(name)
    choices = of_name.configured(preset, **options)
    return of_name.run(choices, seed=seed, out=out, overwrite=overwrite, checksum=checksum, progress=progress)
