"""The plan of a sweep: the options that stay, the grids that were asked for, files, and what to measure; its points.

At the end, `requested`: the arguments of a call, checked and made into a plan before anything runs.
"""

import csv
import json
import math
import os
import platform
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

import stagescope
from stagescope.claims.own import own_claims, source_digest
from stagescope.core.errors import InputError, NotARun, shortened, unknown
from stagescope.core.options import Options, Unused, field_name, option
from stagescope.core.spec import Json, digest
from stagescope.readings.registry import studies
from stagescope.readings.registry import study as study_named
from stagescope.readings.study import NamedSweep, Study
from stagescope.runs.files import read, replace, sha256, store_errors
from stagescope.runs.manifest import sealed
from stagescope.sweeping.axes import MOST_POINTS, Axis, Value, checked, grid_axis, kind_of, merged, ordered, split


def preset_of(study: str, name: str | None) -> NamedSweep | None:
    """The named sweep; None where the name is a preset of the study alone, or none is given."""
    if name is None:
        return None
    of_study = studies()[study]
    if name not in {**of_study.sweeps, **of_study.presets}:
        raise unknown(f"preset of {study}", name, {**of_study.sweeps, **of_study.presets})
    return of_study.sweeps.get(name)


def color_of(study: str, name: str | None) -> str | None:
    """The column that answers the question of a named sweep; None of any other, also of one that is no longer there."""
    of_study = studies().get(study)
    named = of_study and of_study.sweeps.get(name or "")
    return named.color if named else None


def file_hashes(several: Iterable[Options]) -> dict[str, str]:
    """SHA-256 of every file that some options name, by its path."""
    hashes: dict[str, str] = {}
    for options in several:
        for name, parts in options.files().items():
            for path in parts.values():
                if not path.is_file():
                    raise InputError(f"{option(name)} {path}: No such file")
                if str(path) not in hashes:
                    with store_errors(path):
                        hashes[str(path)] = sha256(path)
    return hashes


def known_files(options: Options, hashes: Mapping[str, str]) -> Json:
    """Options that name files, by what is in them instead of where they lie."""
    return {name: {part: hashes[str(path)] for part, path in parts.items()} for name, parts in options.files().items()}


def changed_file(hashes: Mapping[str, str]) -> str | None:
    """What is wrong with the first file that is not as it was; None where all are."""
    for name, expected in hashes.items():
        path = Path(name)
        if not path.is_file():
            return f"{path}, which this sweep reads, is missing"
        with store_errors(path):
            if sha256(path) != expected:
                return f"{path} was changed since this sweep began"
    return None


SCHEMA = 3
"""Of sweep.json."""
FILE, CALL = "sweep.json", "call"
Measure = str
MEASURES: tuple[Measure, ...] = ("events", "verdicts", "numbers")
DEFAULT_MEASURES: tuple[Measure, ...] = ("events", "numbers")
Axes = Mapping[str, str | Sequence[Value]]
Table = str | Path | Sequence[Mapping[str, Any]]
Seeds = int | str | Sequence[int]


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
        axes = []
        for place, name in enumerate(self.columns):
            values = ordered(line[place] for line in self.lines or ())
            axes.append(Axis(name=name, kind=kind_of(values), values=values))
        return (*axes, *self.axes)


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
        by_name: dict[str, list[Axis]] = {}
        for axis in (axis for grid in self.grids for axis in grid.every_axis()):
            by_name.setdefault(axis.name, []).append(axis)
        return tuple(map(merged, by_name.values()))

    def extended(self, other: "Plan", remeasure: bool = False) -> "Plan":
        """The same sweep with another call's grids; an error if the other call is of another sweep.

        With `remeasure` the module of the caller's own claims may have changed.
        """
        if self.claims == other.claims and self.claims_digest != other.claims_digest and not remeasure:
            raise InputError(
                f"the claims {self.claims} have changed since they judged this sweep; --remeasure judges its rows again, "
                "or choose another --out"
            )
        for name, mine, theirs in self._identity(other):
            if mine != theirs:
                raise InputError(
                    f"the output folder holds another sweep: {name} is {_brief(mine)} there and {_brief(theirs)} here; "
                    "choose another --out"
                )
        added = tuple(grid for grid in other.grids if grid not in self.grids)
        files = {**self.files, **other.files}
        changed = {"files": files, "versions": other.versions, "claims_digest": other.claims_digest}
        return self.model_copy(update={"grids": (*self.grids, *added), **changed})

    def _identity(self, other: "Plan") -> Iterator[tuple[str, Any, Any]]:
        yield "study", self.study, other.study
        mine, theirs = ({name for grid in plan.grids for name in grid.names} for plan in (self, other))
        if other.grids:
            yield "what is swept", sorted(mine), sorted(theirs)
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
        body = json.loads(data)
        schema = body["schema_version"]
        if schema > SCHEMA:
            raise InputError(f"{path}: schema version {schema} is newer than {SCHEMA}; update stagescope to read this sweep")
        if schema < SCHEMA:
            raise InputError(f"{path}: schema version {schema} is older than {SCHEMA}; Stagescope 0.2 reads sweeps of version 2")
        body.pop("digest")
        plan = Plan.model_validate(body)
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
    values: Mapping[str, Value]
    config: Mapping[str, Any]
    retry: int = field(default=0, compare=False)
    renew: bool = field(default=False, compare=False)


def points(plan: Plan, cells: "Iterator[tuple[dict[str, Value], tuple[int, ...]]] | None" = None) -> Iterator[Point]:
    """The points of a plan's grids, or of the cells given, each once.

    An option that a study got after the plan was made is not part of a point's name while it has its default.
    """
    study, digests = study_named(plan.study), set()
    base, defaults = study.configured(None, **plan.fixed), study.options().model_dump(mode="json")
    requested_cells = (cell for grid in plan.grids for cell in grid.cells()) if cells is None else cells
    for values, seeds in requested_cells:
        options = _without_unused(study, options_at(study, base, plan.fixed, values), values)[0]
        body = options.model_dump(mode="json")
        config = {name: value for name, value in body.items() if value != defaults[name]}
        named_options = {name: value for name, value in body.items() if name in plan.fixed or name in config or name in values}
        key = {"study": plan.study, "options": {**named_options, **known_files(options, plan.files)}}
        for seed in seeds:
            name = digest({**key, "seed": seed})
            if name not in digests:
                digests.add(name)
                yield Point(name, seed, values, config)


def options_at(study: Study, base: Options, fixed: Mapping[str, Any], values: Mapping[str, Value]) -> Options:
    """The options of a cell."""
    changes: Json = {}
    elements: dict[str, dict[int, Value]] = {}
    for name, value in values.items():
        option, place = split(name)
        if place is None:
            changes[option] = value
        else:
            elements.setdefault(option, {})[place] = value
    for option, parts in elements.items():
        changes[option] = base.with_elements(option, parts)
    return study.configured(None, **{**fixed, **changes})


def _without_unused(
    study: Study, options: Options, values: Mapping[str, Value]
) -> tuple[Options, dict[str, InputError], InputError | None]:
    """Options with the fixed ones that have no effect at their defaults, the error of each, and why they cannot run yet.

    A cell is the same point with and without them. What is swept stays as it is: where it has no effect, the run says so.
    """
    swept, unused = {split(name)[0] for name in values}, {}
    while True:
        try:
            study.check_use(options)
            return options, unused, None
        except Unused as error:
            if error.name in swept:
                return options, unused, error
            unused[error.name] = error
            options = options.model_copy(update={error.name: type(options).model_fields[error.name].default})
        except InputError as error:
            return options, unused, error


def check_effect(plan: Plan) -> None:
    """Refuse what has no effect on any point, fixed or swept, such as a step size where every point is a flow."""
    study = study_named(plan.study)
    base = study.configured(None, **plan.fixed)
    for grid in plan.grids:
        waiting = {split(name)[0] for name in grid.names} | {name for name in plan.fixed if _changed(study, base, name)}
        errors: dict[str, InputError] = {}
        for values, _ in grid.cells():
            options = options_at(study, base, plan.fixed, values)
            changed_names = {name for name in waiting if _changed(study, options, name)}
            _, unused, error = _without_unused(study, options, values)
            if error is None:
                waiting -= changed_names - unused.keys()
                errors |= unused
            else:
                errors = {**dict.fromkeys(changed_names, error), **errors}
            if not waiting:
                break
        for name, error in errors.items():
            if name in waiting:
                has_no_effect = isinstance(error, Unused) and error.name == name
                raise InputError(f"no point of this sweep {'uses it' if has_no_effect else 'can run'}: {error}")


def _changed(study: Study, options: Options, name: str) -> bool:
    return getattr(options, name) != study.options.model_fields[name].default


def versions() -> dict[str, str]:
    """What must be the same on client and workers: Python as it pickles, the others exactly."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"python": python, "stagescope": stagescope.__version__, "numpy": version("numpy"), "dask": version("dask")}


def requested(
    study: Study,
    preset: str | None,
    *,
    grid: Axes | None = None,
    table: Table | None = None,
    seeds: Seeds | None = None,
    measures: Sequence[str] | None = None,
    claims: str | None = None,
    options: Mapping[str, Any] | None = None,
    stored: Plan | None = None,
    yes: bool = False,
) -> Plan:
    """A plan from a caller's words. Without grids it is that of the sweep preset named, or of the sweep already stored."""
    named = preset_of(study.name, preset)
    options = dict(options or {})
    chosen_measures = _chosen_measures(measures, (*MEASURES, *study.measures), named, stored, claims)
    if stored is not None:
        _check_same(stored, study, chosen_measures, claims)
    digest = None if claims is None else _own_digest(study, claims, chosen_measures)
    if stored is not None and preset is None and not (grid or table or options):
        if wrong := changed_file(stored.files):  # points are known by the bytes of their files
            raise InputError(f"{wrong}; restore it, or sweep into another folder")
        changes = {"grids": _reseeded(stored, seeds), "versions": versions(), "claims_digest": digest}
        plan = stored.model_copy(update=changes)
        check_count(sum(map(len, plan.grids)), yes)
        return plan
    requested_grid = _grids(study, named, grid, table, seeds, options)
    swept = requested_grid.names if requested_grid else stored.grids[0].names if stored is not None else ()
    if not swept:
        raise InputError("nothing to sweep: give --grid NAME=VALUES or --table FILE, or a --preset with grids of its own")
    for name in swept:
        if split(name)[0] in options and split(name)[1] is None:
            raise InputError(f"{name} is both swept and fixed at {options[name]}; leave out one of them")
    base = study.configured(named.preset if named else preset, **{**(named.options if named else {}), **options})
    grids: tuple[Grid, ...] = (requested_grid,) if requested_grid else _reseeded(stored, seeds) if stored is not None else ()
    # options that stay, as JSON, paths absolute; a list whose elements are swept is their base
    swept_options = {name for name in swept if split(name)[1] is None}
    base = base.model_copy(update={name: base.anchored(name, getattr(base, name)) for name in type(base).model_fields})
    fixed = base.model_dump(mode="json")
    plan = Plan(
        id=stored.id if stored is not None else new_id(),
        study=study.name,
        preset=preset,
        fixed={name: value for name, value in fixed.items() if name not in swept_options},
        files=_files(base, grids),
        measures=chosen_measures,
        grids=grids,
        versions=versions(),
        claims=claims,
        claims_digest=digest,
    )
    check_count(sum(map(len, plan.grids)), yes)
    check_effect(plan)
    return plan


def check_count(count: int, yes: bool) -> None:
    if count > MOST_POINTS and not yes:
        raise InputError(f"{count:,} points are more than {MOST_POINTS:,}; make the grid coarser, or add --yes to compute them")


def _check_same(stored: Plan, study: Study, measures: tuple[Measure, ...], claims: str | None) -> None:
    """Refuse what would be ignored in a stored sweep.

    A stored name of claims is never imported by itself: somebody else may have written it.
    """
    if study.name != stored.study:
        raise InputError(f"the output folder holds a sweep of {stored.study}, not of {study.name}; choose another --out")
    if measures != stored.measures:
        has, wants = " ".join(stored.measures), " ".join(measures)
        raise InputError(f"what is measured is {has} in this sweep, not {wants}: another --out is needed for {wants}")

    if stored.claims is not None and claims is None:
        raise InputError(
            f"this sweep has claims of its own, {stored.claims}; give --claims {stored.claims} again if you trust that module"
        )
    if stored.claims != claims:
        has = stored.claims or "no claims of its own"
        raise InputError(f"this sweep has {has}, not {claims}: another --out is needed for {claims}")


def _own_digest(study: Study, claims: str, measures: tuple[Measure, ...]) -> str:
    """The digest of the caller's own claims, which must have columns of their own in the table."""
    if not isinstance(claims, str):
        raise InputError("the claims of a sweep are imported by its workers: give them as 'module:NAME'")
    if "verdicts" not in measures:
        raise InputError(f"--claims {claims} has no effect without --measure verdicts")
    tags = [claim.tag for claim in (*study.claims(), *own_claims(claims))]
    if twice := [tag for tag in dict.fromkeys(tags) if tags.count(tag) > 1]:
        raise InputError(f"{claims}: the tag {twice[0]} is taken; in a sweep each claim needs a tag of its own")
    return source_digest(claims)


def _files(base: Options, grids: Sequence[Grid]) -> dict[str, str]:
    """The files of every point by path; two texts on an axis must differ, or one point would have two places.

    Each word that is swept may name a file.
    """
    axes = [axis for grid in grids for axis in grid.every_axis()]
    words = [{axis.name: value} for axis in axes for value in axis.values if isinstance(value, str)]
    hashes = file_hashes(base.model_copy(update=changes) for changes in ({}, *words))
    for axis in (axis for grid in grids for axis in grid.every_axis() if grid.lines is None):
        first_values: dict[str, Value] = {}
        for value in (value for value in axis.values if isinstance(value, str)):
            parts = known_files(base.model_copy(update={axis.name: value}), hashes).get(axis.name)
            if parts is not None and first_values.setdefault(str(parts), value) != value:
                raise InputError(f"{axis.name}: {first_values[str(parts)]} and {value} have the same bytes; give one of them")
    return hashes


def _grids(
    study: Study,
    named: NamedSweep | None,
    grid: Axes | None,
    table: Table | None,
    seeds: Seeds | None,
    options: Mapping[str, Any],
) -> Grid | None:
    """The caller's grid on top of that of the sweep preset; a table on either side replaces the preset's whole."""
    if named is not None and table is None:
        if named.table is None:
            by_option = {field_name(name): values for name, values in (grid or {}).items()}
            grid = {**{name: values for name, values in named.grid.items() if name not in options}, **by_option}
        elif not grid:
            table = named.table()
        seeds = named.seeds if seeds is None else seeds
    if not grid and table is None:
        return None
    axes = tuple(grid_axis(study, name, values) for name, values in (grid or {}).items())
    columns, lines, line_seeds = _lines(study, table) if table is not None else ((), None, None)
    names = (*columns, *(axis.name for axis in axes))
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{name} is swept twice; give it once")
    if line_seeds is not None and seeds is not None:
        raise InputError(f"the table has a column seed; leave out --seeds {seeds}")
    return Grid(axes=axes, seeds=_seeds(1 if seeds is None else seeds), lines=lines, line_seeds=line_seeds, columns=columns)


def _lines(study: Study, table: Table) -> tuple[tuple[str, ...], tuple[tuple[Value, ...], ...], tuple[int, ...] | None]:
    """Columns, lines and seeds of a table: a CSV file with a column for each option, or mappings."""
    rows = _read_csv(Path(table)) if isinstance(table, str | Path) else [dict(row) for row in table]
    if not rows:
        raise InputError(f"table {table} has no lines" if isinstance(table, str | Path) else "the table has no lines")
    named = [name for name in rows[0] if name is not None]
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values() or set(row) != set(named):  # how the CSV reader shows a line too long or short
            count = f"{len(named)} value{'s' if len(named) > 1 else ''} expected"
            raise InputError(f"line {number} of the table: {count}, one for each of {', '.join(named)}")
    columns = tuple(map(field_name, named))
    if len(set(columns)) < len(columns) or not set(columns) - {"seed"}:
        raise InputError(
            f"a table needs one column for each swept option, each once; this one has {', '.join(columns) or 'none'}"
        )
    by_option = {name: [row[key] for row in rows] for name, key in zip(columns, rows[0], strict=True)}
    seed_column = by_option.pop("seed", None)
    values = {name: checked(study, name, column, _line) for name, column in by_option.items()}
    seeds = None if seed_column is None else tuple(_seed(seed, _line(place)) for place, seed in enumerate(seed_column))
    return tuple(values), tuple(zip(*values.values(), strict=True)), seeds


def _line(place: int) -> str:
    """Where a value of a table stands; its first line holds the names."""
    return f"line {place + 2} of the table: "


def _read_csv(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        raise InputError(f"table {path}: No such file; give a CSV file with a column for each swept option")
    with store_errors(path), open(path, newline="", encoding="utf-8-sig") as file:
        try:
            return list(csv.DictReader(file, skipinitialspace=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f"table {path} cannot be read as CSV: {error}") from None


def _seeds(seeds: Seeds) -> tuple[int, ...]:
    """5 means 0 to 4; "3,7" and [3, 7] are themselves."""
    if isinstance(seeds, str) and seeds.strip().isdigit():
        seeds = int(seeds)
    if isinstance(seeds, int):
        if not 1 <= seeds <= MOST_POINTS:
            raise InputError(f"seeds is {seeds}; give how many, at least 1, or a list of seeds like 3,7,11")
        return tuple(range(seeds))
    numbers = tuple(_seed(seed) for seed in (seeds.split(",") if isinstance(seeds, str) else seeds))
    if not numbers or len(set(numbers)) < len(numbers):
        raise InputError(f"seeds {seeds!r}: give how many, or a list of different seeds like 3,7,11")
    return numbers


def _seed(value: Any, where: str = "") -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise InputError(f"{where}seed {value!r} is no whole number") from None
    if not 0 <= number < 2**63:
        raise InputError(f"{where}seed is {number}, but must be >= 0 and below 2^63")
    return number


def _reseeded(stored: Plan, seeds: Seeds | None) -> tuple[Grid, ...]:
    """The stored grids, at other seeds where some are given."""
    if seeds is None:
        return stored.grids
    new_seeds = _seeds(seeds)
    return tuple(grid if grid.line_seeds is not None else grid.model_copy(update={"seeds": new_seeds}) for grid in stored.grids)


def _chosen_measures(
    measures: Sequence[str] | None,
    known: tuple[Measure, ...],
    named: NamedSweep | None,
    stored: Plan | None,
    claims: str | None = None,
) -> tuple[Measure, ...]:
    """In one order, whatever the caller's, so that the same measures are the same sweep. Own claims need verdicts."""
    if measures is None:
        if stored is not None:
            return stored.measures
        usual = named.measures if named is not None else DEFAULT_MEASURES
        measures = usual if claims is None else (*usual, "verdicts")
    for name in measures:
        if name not in known:
            raise unknown("measure", name, known)
    if not measures:
        raise InputError(f"nothing to measure; choose among {', '.join(known)}")
    return tuple(name for name in known if name in measures)
