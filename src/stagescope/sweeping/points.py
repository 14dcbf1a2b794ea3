"""Points of a plan: one full config and seed each, known by the digest of both."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stagescope.errors import InputError
from stagescope.options import Options, Unused
from stagescope.papers.registry import study as study_named
from stagescope.papers.study import Study
from stagescope.spec import digest
from stagescope.sweeping.axes import Value, split
from stagescope.sweeping.inputs import known_files
from stagescope.sweeping.plan import Plan


@dataclass(frozen=True)
class Point:
    """One run to be made: `config` holds the options that are not the study's defaults, `retry` counts tries.

    `renew` replaces a row that reached its end and was judged by older rules.
    """

    digest: str
    seed: int
    at: Mapping[str, Value]
    config: Mapping[str, Any]
    retry: int = field(default=0, compare=False)
    renew: bool = field(default=False, compare=False)


def fixed_options(options: Options, swept: tuple[str, ...]) -> dict[str, Any]:
    """Options that stay, as JSON, paths absolute; a list whose elements are swept is their base."""
    whole = {name for name in swept if split(name)[1] is None}
    places = {name: options.anchored(name, getattr(options, name)) for name in type(options).model_fields}
    return {name: value for name, value in options.model_copy(update=places).model_dump(mode="json").items() if name not in whole}


def points(plan: Plan, cells: "Iterator[tuple[dict[str, Value], tuple[int, ...]]] | None" = None) -> Iterator[Point]:
    """The points of a plan's grids, or of the cells given, each once.

    An option that a study got after the plan was made is not part of a point's name while it has its default.
    """
    study, seen = study_named(plan.study), set()
    base, defaults = study.configured(None, **plan.fixed), study.options().model_dump(mode="json")
    asked = (cell for grid in plan.grids for cell in grid.cells()) if cells is None else cells
    for at, seeds in asked:
        options = _without_unused(study, options_at(study, base, plan.fixed, at), at)[0]
        body = options.model_dump(mode="json")
        config = {name: value for name, value in body.items() if value != defaults[name]}
        known = {name: value for name, value in body.items() if name in plan.fixed or name in config or name in at}
        key = {"study": plan.study, "options": {**known, **known_files(options, plan.files)}}
        for seed in seeds:
            name = digest({**key, "seed": seed})
            if name not in seen:
                seen.add(name)
                yield Point(name, seed, at, config)


def options_at(study: Study, base: Options, fixed: Mapping[str, Any], at: Mapping[str, Value]) -> Options:
    """The options of a cell."""
    changes: dict[str, Any] = {}
    elements: dict[str, dict[int, Value]] = {}
    for name, value in at.items():
        option, place = split(name)
        if place is None:
            changes[option] = value
        else:
            elements.setdefault(option, {})[place] = value
    for option, parts in elements.items():
        changes[option] = base.with_elements(option, parts)
    return study.configured(None, **{**fixed, **changes})


def _without_unused(
    study: Study, options: Options, at: Mapping[str, Value]
) -> tuple[Options, dict[str, InputError], InputError | None]:
    """Options with the fixed ones that have no effect at their defaults, the error of each, and why they cannot run yet.

    A cell is the same point with and without them. What is swept stays as it is: where it has no effect, the run says so.
    """
    swept, left = {split(name)[0] for name in at}, {}
    while True:
        try:
            study.check_use(options)
            return options, left, None
        except Unused as error:
            if error.name in swept:
                return options, left, error
            left[error.name] = error
            options = options.model_copy(update={error.name: type(options).model_fields[error.name].default})
        except InputError as error:
            return options, left, error


def check_effect(plan: Plan) -> None:
    """Refuse what has no effect on any point, fixed or swept, such as a step size where every point is a flow."""
    study = study_named(plan.study)
    base = study.configured(None, **plan.fixed)
    for grid in plan.grids:
        waiting = {split(name)[0] for name in grid.names} | {name for name in plan.fixed if _changed(study, base, name)}
        errors: dict[str, InputError] = {}
        for at, _ in grid.cells():
            options = options_at(study, base, plan.fixed, at)
            given = {name for name in waiting if _changed(study, options, name)}
            _, left, error = _without_unused(study, options, at)
            if error is None:
                waiting -= given - left.keys()
                errors |= left
            else:
                errors = {**dict.fromkeys(given, error), **errors}
            if not waiting:
                break
        for name, error in errors.items():
            if name in waiting:
                own = isinstance(error, Unused) and error.name == name
                raise InputError(f"no point of this sweep {'uses it' if own else 'can run'}: {error}")


def _changed(study: Study, options: Options, name: str) -> bool:
    return getattr(options, name) != study.options.model_fields[name].default
