"""Is the object of a paper well made? Each mistake is an `InputError` of one sentence. Nothing of the paper is imported."""

import builtins
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib import import_module
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from stagescope.claims.reference import GENERAL
from stagescope.core.errors import InputError, unknown
from stagescope.core.ids import type_id
from stagescope.core.options import Options
from stagescope.readings.paper import FORMS, Paper
from stagescope.readings.playable import Playable
from stagescope.readings.study import Study


def check_paper(paper: Any) -> Paper:
    """The paper, where each of its columns has the type that `Paper` states and names only what exists."""
    if not isinstance(paper, Paper):
        raise InputError(f"it is of type {type(paper).__name__}, not a stagescope Paper")
    _check_columns("it", paper)
    for form, targets in paper.forms.items():
        if form not in FORMS:
            raise unknown("form of loss", str(form), FORMS)
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
    _check_columns(it, study)
    for name, boundary in study.boundaries.items():
        _check_columns(f"the boundary {name!r} of {it}", boundary)
    for kind in study.kinds:
        _check_columns(f"a kind of {it}", kind)
    for name, sweep in study.sweeps.items():
        _check_columns(f"the sweep {name!r} of {it}", sweep)
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
    _check_columns(it, play)
    names = (*(slider.option.partition(".")[0] for slider in play.sliders), *play.fixed)
    _check_names(f"option of {study.name} in its play:", names, {*study.options.model_fields, "seed"})
    for slider in play.sliders:
        if not slider.low < slider.high or (slider.log and slider.low <= 0):
            raise InputError(f"{it} has the slider {slider.option!r} from {slider.low:g} to {slider.high:g}; expected low < high")


def _check_names(kind: str, names: Iterable[Any], existing: Collection[str]) -> None:
    for name in names:
        if name not in existing:
            raise unknown(kind, str(name), existing)


def _check_columns(it: str, holder: Any) -> None:
    """Each column has the type that its class states. Types that are imported only to be checked stand for anything."""
    stated = defaultdict(lambda: object, vars(builtins) | vars(import_module(type(holder).__module__)) | globals())
    for column, hint in get_type_hints(type(holder), localns=stated).items():
        if wrong := _wrong(getattr(holder, column), hint):
            raise InputError(f"{it} has a column {column!r} that {wrong}")


def _wrong(value: Any, hint: Any) -> str:
    """What is wrong with a value that should be of a type, or with what is in it; empty where nothing is.

    A list may stand for a tuple.
    """
    choices = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    kinds = tuple(get_origin(choice) or choice for choice in choices)
    if Any in kinds:
        return ""
    if not isinstance(value, (*kinds, list) if tuple in kinds else kinds):
        return f"is {value!r:.60}; expected a {'function' if Callable in kinds else kinds[0].__name__}"
    if kinds not in ((Mapping,), (tuple,)):
        return ""
    for name in value if kinds == (Mapping,) else ():
        if not isinstance(name, str):
            return f"has the name {name!r:.60}; expected text"
    of_parts = get_args(hint)[-1 if kinds == (Mapping,) else 0]
    for part in value.values() if kinds == (Mapping,) else value:
        if wrong := _wrong(part, of_parts):
            return f"has {part!r:.60} in it; {wrong.partition('; ')[2]}"
    return ""
