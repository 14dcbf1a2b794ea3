"""The plan of a sweep, and its points: the options that stay, the grids that were asked for, files, and what to measure."""

import json
import math
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from stagescope.errors import InputError, NotARun, shortened, unknown
from stagescope.options import Options, Unused, option
from stagescope.papers.registry import studies
from stagescope.papers.registry import study as study_named
from stagescope.papers.study import NamedSweep, Study
from stagescope.runs.files import read, replace, sha256, store_errors
from stagescope.runs.manifest import sealed
from stagescope.spec import Json, digest
from stagescope.sweeping.axes import Axis, Value, kind_of, merged, ordered, split


def preset_of(study: str, name: str | None) -> NamedSweep | None:
    """The named sweep; None where the name is a preset of the study alone, or none is given."""
    if name is None:
        return None
    found = studies()[study]
    if name not in {**found.sweeps, **found.presets}:
        raise unknown(f"preset of {study}", name, {**found.sweeps, **found.presets})
    return found.sweeps.get(name)


def color_of(study: str, name: str | None) -> str | None:
    """The column that answers the question of a named sweep; None of any other, also of one that is no longer there."""
    found = studies().get(study)
    named = found and found.sweeps.get(name or "")
    return named.color if named else None


def file_hashes(chosen: Iterable[Options]) -> dict[str, str]:
    """SHA-256 of every file that some options name, by its path."""
    found: dict[str, str] = {}
    for options in chosen:
        for name, parts in options.files().items():
            for path in parts.values():
                if not path.is_file():
                    raise InputError(f"{option(name)} {path}: No such file")
                if str(path) not in found:
                    with store_errors(path):
                        found[str(path)] = sha256(path)
    return found


def known_files(options: Options, hashes: Mapping[str, str]) -> Json:
    """Options that name files, by what is in them instead of where they lie."""
    return {name: {part: hashes[str(path)] for part, path in parts.items()} for name, parts in options.files().items()}


def changed_file(hashes: Mapping[str, str]) -> str | None:
    """What is wrong with the first file that is not as it was; None where all are."""
    for name, known in hashes.items():
        path = Path(name)
        if not path.is_file():
            return f"{path}, which this sweep reads, is missing"
        with store_errors(path):
            if sha256(path) != known:
                return f"{path} was changed since this sweep began"
    return None


SCHEMA = 3
"""Of sweep.json."""
FILE, CALL = "sweep.json", "call"
Measure = str
MEASURES: tuple[Measure, ...] = ("events", "verdicts", "numbers")


class Grid(BaseModel):
    """Cells that were asked for: the product of axes, or the lines of a table, or both; each at every seed.

    A line of a table may name a seed of its own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    lines: tuple[tuple[Value, ...], ...] | None = None
    line_seeds: tuple[int, ...] | None = None
    columns: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _even(self) -> "Grid":
        """Every line of a table has a value for each column, and a seed if any has."""
        lines, seeds = self.lines or (), self.line_seeds
        if any(len(line) != len(self.columns) for line in lines) or (seeds is not None and len(seeds) != len(lines)):
            raise ValueError("lines of several lengths")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.columns, *(axis.name for axis in self.axes))

    def __len__(self) -> int:
        seeds = len(self.seeds) if self.line_seeds is None else 1
        lines = 1 if self.lines is None else len(self.lines)
        return math.prod(len(axis.values) for axis in self.axes) * seeds * lines

    def cells(self) -> Iterator[tuple[dict[str, Value], tuple[int, ...]]]:
        """(values by option, seeds) of every cell."""
        for place, line in enumerate(((),) if self.lines is None else self.lines):
            seeds = self.seeds if self.line_seeds is None else (self.line_seeds[place],)
            for values in product(*(axis.values for axis in self.axes)):
                yield dict(zip(self.names, (*line, *values), strict=True)), seeds

    def every_axis(self) -> tuple[Axis, ...]:
        """Axes of the table's columns, then those of the grid."""
        found = []
        for place, name in enumerate(self.columns):
            values = ordered(line[place] for line in self.lines or ())
            found.append(Axis(name=name, kind=kind_of(values), values=values))
        return (*found, *self.axes)


class Plan(BaseModel):
    """What a sweep is (study, fixed options, measures, own claims) and the grids that calls have asked for, in their order.

    `claims` is the "module:NAME" that the caller gave, `claims_digest` the SHA-256 of that module's file. Nothing is imported
    because a plan names it: each call gives the name again. `journal` is how many bytes the journal of committed rows had when
    the plan was written; None before any.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = SCHEMA
    id: str
    study: str
    preset: str | None
    fixed: Json
    files: dict[str, str]
    measures: tuple[Measure, ...]
    grids: tuple[Grid, ...]
    versions: dict[str, str]
    claims: str | None = None
    claims_digest: str | None = None
    journal: int | None = None

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Every axis with all values that were asked for; a later call may have named them in another order."""
        found: dict[str, list[Axis]] = {}
        for axis in (axis for grid in self.grids for axis in grid.every_axis()):
            found.setdefault(axis.name, []).append(axis)
        return tuple(map(merged, found.values()))

    def extended(self, asked: "Plan", remeasure: bool = False) -> "Plan":
        """The same sweep with another call's grids; an error if the other call is of another sweep.

        With `remeasure` the module of the caller's own claims may have changed.
        """
        if self.claims == asked.claims and self.claims_digest != asked.claims_digest and not remeasure:
            raise InputError(
                f"the claims {self.claims} have changed since they judged this sweep; --remeasure judges its rows again, "
                "or choose another --out"
            )
        for name, mine, other in self._identity(asked):
            if mine != other:
                raise InputError(
                    f"the output folder holds another sweep: {name} is {_brief(mine)} there and {_brief(other)} here; "
                    "choose another --out"
                )
        added = tuple(grid for grid in asked.grids if grid not in self.grids)
        files = {**self.files, **asked.files}
        changed = {"files": files, "versions": asked.versions, "claims_digest": asked.claims_digest}
        return self.model_copy(update={"grids": (*self.grids, *added), **changed})

    def _identity(self, other: "Plan") -> Iterator[tuple[str, Any, Any]]:
        yield "study", self.study, other.study
        mine, asked = ({name for grid in plan.grids for name in grid.names} for plan in (self, other))
        if other.grids:
            yield "what is swept", sorted(mine), sorted(asked)
        for name in sorted(self.fixed | other.fixed):
            yield f"the option {name}", self.fixed.get(name), other.fixed.get(name)
        for name in sorted(self.files.keys() & other.files.keys()):
            yield f"the content of {name}", self.files[name], other.files[name]
        yield "what is measured", " ".join(self.measures), " ".join(other.measures)
        yield "--claims", self.claims, other.claims

    def text(self) -> bytes:
        """One JSON file in one exact form, with its own digest: any changed byte is seen."""
        return sealed(self)

    def save(self, folder: Path) -> None:
        replace(folder / FILE, self.text())


def _brief(value: Any) -> str:
    return shortened(", ".join(map(str, value)) if isinstance(value, list) else str(value), 80)


def new_id() -> str:
    return uuid.uuid4().hex


def load_plan(folder: Path) -> Plan:
    """The plan stored in a folder; one whose bytes are not those that were written is refused."""
    path = folder / FILE
    if not os.path.lexists(path):
        raise NotARun(f"{folder} holds no sweep (it has no {FILE}); `stagescope sweep` makes one")
    data = read(folder, FILE)
    try:
        found = json.loads(data)
        version = found["schema_version"]
        if version > SCHEMA:
            raise InputError(f"{path}: schema version {version} is newer than {SCHEMA}; update stagescope to read this sweep")
        if version < SCHEMA:
            raise InputError(f"{path}: schema version {version} is older than {SCHEMA}; Stagescope 0.2 reads sweeps of version 2")
        found.pop("digest")
        plan = Plan.model_validate(found)
        if not plan.grids or plan.text() != data:
            raise ValueError("not the bytes that were written")
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise NotARun(f"{path} is damaged; restore it from a copy, or sweep into another folder") from None
    return plan


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


def fixed_options(options: Options, swept: tuple[str, ...]) -> Json:
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
    changes: Json = {}
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
