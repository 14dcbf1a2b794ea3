"""Is the object of a paper well made? Each mistake is an `InputError` of one sentence. Nothing of the paper is imported."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from stagescope.claims.reference import GENERAL, Reference, Tag
from stagescope.errors import InputError, unknown
from stagescope.ids import type_id
from stagescope.options import Options
from stagescope.papers.paper import FORMS, Cost, Kind, Paper
from stagescope.papers.playable import Playable, Slider
from stagescope.papers.study import Boundary, NamedSweep, Study


def check_paper(paper: Any) -> Paper:
    """The paper, where each of its columns has the type that `Paper` states and names only what exists."""
    if not isinstance(paper, Paper):
        raise InputError(f"it is of type {type(paper).__name__}, not a stagescope Paper")
    _expect("it", paper, name=_is(str), reference=_is(Reference), about_text=_optional, watched=_call)
    _expect("it", paper, tags=_mapping(Tag), studies=_several(Study), forms=_is(Mapping))
    for form, targets in paper.forms.items():
        if form not in FORMS:
            raise unknown("form of loss", str(form), FORMS)
        _is(tuple, list)(f"it has the form {form!r}, which", targets)
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
    _expect(it, study, name=_is(str), title=_is(str), presets=_mapping(Mapping), setup=_call, check_use=_call)
    if not (isinstance(study.options, type) and issubclass(study.options, Options)):
        raise InputError(f"{it} has the options {study.options!r:.60}; expected a type derived from Options")
    _expect(
        it,
        study,
        kinds=_several(Kind),
        tags=_several(str),
        figures=_call,
        ledger=_several(str),
        numbers=_call,
        types=_several(str),
    )
    _expect(it, study, many=_optional, sweeps=_mapping(NamedSweep), tour=_mapping(str), measures=_is(Mapping), inputs=_call)
    _expect(it, study, boundaries=_mapping(Boundary))
    for name, boundary in study.boundaries.items():
        _expect(f"the boundary {name!r} of {it}", boundary, title=_is(str), axes=_several(str), line=_call)
    for name, measure in study.measures.items():
        _call(f"{it} has the measure {name!r}, which", measure)
    for kind in study.kinds:
        _expect(f"a kind of {it}", kind, fields=_several(str), read=_call, claims=_call, views=_call, cost=_is(Cost))
        _call(f"a kind of {it} has an explain, which", kind.explain)
        _expect(f"a kind of {it}", kind, path=_optional, rung=_optional)
    for name, sweep in study.sweeps.items():
        _expect(
            f"the sweep {name!r} of {it}", sweep, options=_is(Mapping), grid=_is(Mapping), measures=_several(str), table=_optional
        )
    _check_presets(study)
    _check_play(study)


def _check_play(study: Study) -> None:
    """Sliders and fixed options of a study that can be played are options that exist."""
    play, it = study.play, f"the play of its study {study.name!r:.60}"
    if play is None:
        return
    _is(Playable)(it, play)
    _expect(it, play, script=_is(str), sliders=_several(Slider), fixed=_is(Mapping), draws=_optional, constants=_call)
    known = {*study.options.model_fields, "seed"}
    for name in (*(slider.option.partition(".")[0] for slider in play.sliders), *play.fixed):
        if name not in known:
            raise unknown(f"option of {study.name} in its play:", str(name), known)
    for slider in play.sliders:
        if not slider.low < slider.high or (slider.log and slider.low <= 0):
            raise InputError(f"{it} has the slider {slider.option!r} from {slider.low:g} to {slider.high:g}; expected low < high")


def _check_presets(study: Study) -> None:
    """Presets and named sweeps set options that exist, because a misspelt one would be ignored; presets that are named exist."""
    chosen = [*study.presets.items(), *((name, sweep.options) for name, sweep in study.sweeps.items())]
    for preset, values in chosen:
        for name in values:
            if name not in study.options.model_fields:
                raise unknown(f"option of {study.name} in its preset {preset!r}:", str(name), study.options.model_fields)
    named = {"ledger": study.ledger, "tour": study.tour, "sweeps": [sweep.preset for sweep in study.sweeps.values()]}
    for column, presets in named.items():
        for preset in presets:
            if preset is not None and preset not in study.presets:
                raise unknown(f"preset of {study.name} in its {column}:", str(preset), study.presets)


Check = Callable[[str, Any], None]
"""Raises for a value that is not of the type expected; the text is the beginning of the sentence."""


def _expect(it: str, holder: Any, **columns: Check) -> None:
    for column, check in columns.items():
        check(f"{it} has a column {column!r} that", getattr(holder, column))


def _is(*types: type) -> Check:
    def check(where: str, value: Any) -> None:
        if not isinstance(value, types):
            raise InputError(f"{where} is {value!r:.60}; expected a {types[0].__name__}")

    return check


def _call(where: str, value: Any) -> None:
    if not callable(value):
        raise InputError(f"{where} is {value!r:.60}; expected a function")


def _optional(where: str, value: Any) -> None:
    if value is not None:
        _call(where, value)


def _several(kind: type) -> Check:
    def check(where: str, value: Any) -> None:
        _is(tuple, list)(where, value)
        _check_all(where, value, kind)

    return check


def _mapping(kind: type) -> Check:
    def check(where: str, value: Any) -> None:
        _is(Mapping)(where, value)
        for name in value:
            if not isinstance(name, str):
                raise InputError(f"{where} has the name {name!r:.60}; expected text")
        _check_all(where, value.values(), kind)

    return check


def _check_all(where: str, values: Iterable[Any], kind: type) -> None:
    for value in values:
        if not isinstance(value, kind):
            raise InputError(f"{where} has {value!r:.60} in it; expected a {kind.__name__}")
