"""Points of a plan: one full config and seed each, known by the digest of both."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stagescope.described import digest
from stagescope.errors import InputError
from stagescope.runs.files import sha256, told
from stagescope.studies.study import Options, Study
from stagescope.studies.table import study as study_named
from stagescope.sweeping.axes import Value, split
from stagescope.sweeping.plan import Plan


@dataclass(frozen=True)
class Point:
    """One run to be made: `config` holds the options that are not the study's defaults, `retry` counts tries after failures."""

    digest: str
    seed: int
    at: Mapping[str, Value]
    config: Mapping[str, Any]
    retry: int = field(default=0, compare=False)


def fixed_options(options: Options, swept: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, str]]:
    """Options that stay, as JSON, and the SHA-256 of each file among them; a list whose elements are swept is their base."""
    whole = {name for name in swept if split(name)[1] is None}
    fixed, files = {}, {}
    for name, value in options.model_dump(mode="json").items():
        if name in whole:
            continue
        if isinstance(getattr(options, name), Path):
            path = getattr(options, name).resolve()
            with told(path):
                files[name] = sha256(path)
            value = str(path)
        fixed[name] = value
    return fixed, files


def points(plan: Plan, cells: "Iterator[tuple[dict[str, Value], tuple[int, ...]]] | None" = None) -> Iterator[Point]:
    """The points of a plan's grids, or of the cells given, each once."""
    study, seen = study_named(plan.study), set()
    base = study.configured(None, **plan.fixed)
    asked = (cell for grid in plan.grids for cell in grid.cells()) if cells is None else cells
    for at, seeds in asked:
        options = options_at(study, base, plan.fixed, at)
        body = options.model_dump(mode="json")
        config = {name: value for name, value in body.items() if value != _defaults(study)[name]}
        key = {"study": plan.study, "options": {**body, **plan.files}}  # a file is known by its bytes, not by where it lies
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


_DEFAULTS: dict[str, dict[str, Any]] = {}


def _defaults(study: Study) -> dict[str, Any]:
    if study.name not in _DEFAULTS:
        _DEFAULTS[study.name] = study.options().model_dump(mode="json")
    return _DEFAULTS[study.name]


def check_effect(plan: Plan) -> None:
    """Refuse an axis that has no effect on any point, such as a step size where every point is a flow."""
    study = study_named(plan.study)
    base = study.configured(None, **plan.fixed)
    for grid in plan.grids:
        for axis in grid.every_axis():
            option = split(axis.name)[0]
            first: InputError | None = None
            for at, _ in grid.cells():
                options = options_at(study, base, plan.fixed, at)
                if getattr(options, option) == getattr(study.options(), option):
                    continue
                try:
                    study.check_use(options)
                except InputError as error:
                    first = first or error
                    continue
                first = None
                break
            if first is not None:
                raise InputError(f"no point of this sweep can run: {first}")
