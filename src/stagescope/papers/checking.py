"""Is the object of a paper well made? Each mistake is an `InputError` of one sentence. Nothing of the paper is imported."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from stagescope.claims.reference import GENERAL, Reference, Tag
from stagescope.errors import InputError, unknown
from stagescope.ids import type_id
from stagescope.options import Options
from stagescope.papers.paper import FORMS, Cost, Kind, Paper
from stagescope.papers.playable import Playable, Slider
from stagescope.papers.study import Boundary, NamedSweep, Study

OPTIONAL: Any = Callable | None  # pyright: ignore[reportOperatorIssue]


def check_paper(paper: Any) -> Paper:
    """The paper, where each of its columns has the type that `Paper` states and names only what exists."""
    if not isinstance(paper, Paper):
        raise InputError(f"it is of type {type(paper).__name__}, not a stagescope Paper")
    _expect(
        "it",
        paper,
        name=str,
        reference=Reference,
        about_text=OPTIONAL,
        watched=Callable,
        tags=(Mapping, Tag),
        studies=(tuple, Study),
        forms=Mapping,
    )
    for form, targets in paper.forms.items():
        if form not in FORMS:
            raise unknown("form of loss", str(form), FORMS)
        _check(f"it has the form {form!r}, which", targets, tuple)
        for target in targets:
            split_target(target)
    for study in paper.studies:
        _check_study(study)
    if len({study.name for study in paper.studies}) < len(paper.studies):
        raise InputError("two of its studies have the same name; rename one of them")
    for tag in sorted(set(paper.tags) & set(GENERAL)):
        raise InputError(f"the tag {tag!r} is one of Stagescope's own; rename it")
    for identity, count in Counter(type_id(*target) for target in fields(paper)).items():
        if count > 1:
            raise InputError(f"it names the type of field {identity!r} {count} times; name it in one kind")
    return paper


def check_owner(paper: Paper, package: str | None) -> None:
    """Types of field belong to a paper, and those of somebody else's paper to its `package`."""
    for module, name in fields(paper):
        if package is not None and module.partition(".")[0] != package:
            raise InputError(f"the type of field '{module}:{name}' is not of its package {package!r}; name types of that package")
        if "/" not in type_id(module, name):
            raise InputError(f"the type of field '{module}:{name}' is not in the package of a paper; move it there")


def fields(paper: Paper) -> Iterator[tuple[str, str]]:
    """Module and name of each type of field."""
    return (split_target(field) for study in paper.studies for kind in study.kinds for field in kind.fields)


def split_target(target: Any) -> tuple[str, str]:
    """Module and name of a type."""
    module, _, name = target.partition(":") if isinstance(target, str) else ("", "", "")
    if not all(part.isidentifier() for part in (*module.split("."), name)):
        raise InputError(f"{target!r:.60} does not name a type; write it as 'package.module:Type'")
    return module, name


def _check_study(study: Study) -> None:
    it = f"its study {study.name!r:.60}"
    if not (isinstance(study.options, type) and issubclass(study.options, Options)):
        raise InputError(f"{it} has the options {study.options!r:.60}; expected a type derived from Options")
    _expect(
        it,
        study,
        name=str,
        title=str,
        presets=(Mapping, Mapping),
        preset_notes=(Mapping, str),
        setup=Callable,
        check_use=Callable,
        kinds=(tuple, Kind),
        tags=(tuple, str),
        figures=Callable,
        ledger=(tuple, str),
        numbers=Callable,
        types=(tuple, str),
        many=OPTIONAL,
        sweeps=(Mapping, NamedSweep),
        tour=(Mapping, str),
        measures=Mapping,
        inputs=Callable,
        boundaries=(Mapping, Boundary),
    )
    for name, boundary in study.boundaries.items():
        _expect(f"the boundary {name!r} of {it}", boundary, title=str, axes=(tuple, str), line=Callable)
    for name, measure in study.measures.items():
        _check(f"{it} has the measure {name!r}, which", measure, Callable)
    for kind in study.kinds:
        _check(f"a kind of {it} has an explain, which", kind.explain, Callable)
        _expect(
            f"a kind of {it}",
            kind,
            fields=(tuple, str),
            read=Callable,
            claims=Callable,
            views=Callable,
            cost=Cost,
            path=OPTIONAL,
            descent=OPTIONAL,
            rung=OPTIONAL,
        )
    for name, sweep in study.sweeps.items():
        _expect(f"the sweep {name!r} of {it}", sweep, options=Mapping, grid=Mapping, measures=(tuple, str), table=OPTIONAL)
    # Presets and named sweeps set options that exist, because a misspelt one would be ignored; presets that are named exist.
    for preset, values in (*study.presets.items(), *((name, sweep.options) for name, sweep in study.sweeps.items())):
        _check_names(f"option of {study.name} in its preset {preset!r}:", values, study.options.model_fields)
    swept = [sweep.preset for sweep in study.sweeps.values() if sweep.preset is not None]
    named = {"preset_notes": study.preset_notes, "ledger": study.ledger, "tour": study.tour, "sweeps": swept}
    for column, presets in named.items():
        _check_names(f"preset of {study.name} in its {column}:", presets, study.presets)
    if study.play is not None:
        _check_play(study, study.play)


def _check_play(study: Study, play: Playable) -> None:
    """Sliders and fixed options of a study that can be played are options that exist."""
    it = f"the play of its study {study.name!r:.60}"
    _check(it, play, Playable)
    _expect(it, play, script=str, sliders=(tuple, Slider), fixed=Mapping, draws=OPTIONAL, constants=Callable)
    names = (*(slider.option.partition(".")[0] for slider in play.sliders), *play.fixed)
    _check_names(f"option of {study.name} in its play:", names, {*study.options.model_fields, "seed"})
    for slider in play.sliders:
        if not slider.low < slider.high or (slider.log and slider.low <= 0):
            raise InputError(f"{it} has the slider {slider.option!r} from {slider.low:g} to {slider.high:g}; expected low < high")


def _check_names(what: str, names: Iterable[Any], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise unknown(what, str(name), known)


def _expect(it: str, holder: Any, **columns: Any) -> None:
    for column, expected in columns.items():
        _check(f"{it} has a column {column!r} that", getattr(holder, column), expected)


def _check(where: str, value: Any, expected: Any) -> None:
    """Raises for a value that is not of the type expected: a type, or a container with the type of what is in it.

    A list may stand for a tuple. `where` is the beginning of the sentence.
    """
    container, item = expected if isinstance(expected, tuple) else (expected, object)
    if not isinstance(value, (tuple, list) if container is tuple else container):
        word = "function" if container in (Callable, OPTIONAL) else container.__name__
        raise InputError(f"{where} is {value!r:.60}; expected a {word}")
    if item is object:
        return
    for name in value if container is Mapping else ():
        if not isinstance(name, str):
            raise InputError(f"{where} has the name {name!r:.60}; expected text")
    for part in value.values() if container is Mapping else value:
        if not isinstance(part, item):
            raise InputError(f"{where} has {part!r:.60} in it; expected a {item.__name__}")
