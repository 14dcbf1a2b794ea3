"""The arguments of a sweep, checked and made into a plan before anything runs."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stagescope.claims.own import own_claims, source_digest
from stagescope.errors import InputError, unknown
from stagescope.options import Options, field_name
from stagescope.papers.study import Study
from stagescope.runs.files import store_errors
from stagescope.sweeping.axes import MOST_POINTS, Value, checked, grid_axis, split
from stagescope.sweeping.plan import (
    MEASURES,
    Grid,
    Measure,
    NamedSweep,
    Plan,
    changed_file,
    check_effect,
    file_hashes,
    fixed_options,
    known_files,
    new_id,
    preset_of,
)
from stagescope.sweeping.worker import versions

DEFAULT_MEASURES: tuple[Measure, ...] = ("events", "numbers")
Axes = Mapping[str, str | Sequence[Value]]
Table = str | Path | Sequence[Mapping[str, Any]]
Seeds = int | str | Sequence[int]


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
    chosen = _chosen_measures(measures, (*MEASURES, *study.measures), named, stored, claims)
    if stored is not None:
        _check_same(stored, study, chosen, claims)
    digest = None if claims is None else _own_digest(study, claims, chosen)
    if stored is not None and preset is None and not (grid or table or options):
        if wrong := changed_file(stored.files):  # points are known by the bytes of their files
            raise InputError(f"{wrong}; restore it, or sweep into another folder")
        again = {"grids": _reseeded(stored, seeds), "versions": versions(), "claims_digest": digest}
        plan = stored.model_copy(update=again)
        check_count(sum(map(len, plan.grids)), yes)
        return plan
    asked = _grids(study, named, grid, table, seeds, options)
    swept = asked.names if asked else stored.grids[0].names if stored is not None else ()
    if not swept:
        raise InputError("nothing to sweep: give --grid NAME=VALUES or --table FILE, or a --preset with grids of its own")
    for name in swept:
        if split(name)[0] in options and split(name)[1] is None:
            raise InputError(f"{name} is both swept and fixed at {options[name]}; leave out one of them")
    base = study.configured(named.preset if named else preset, **{**(named.options if named else {}), **options})
    grids: tuple[Grid, ...] = (asked,) if asked else _reseeded(stored, seeds) if stored is not None else ()
    plan = Plan(
        id=stored.id if stored is not None else new_id(),
        study=study.name,
        preset=preset,
        fixed=fixed_options(base, swept),
        files=_files(base, grids),
        measures=chosen,
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
        has, given = " ".join(stored.measures), " ".join(measures)
        raise InputError(f"what is measured is {has} in this sweep, not {given}: another --out is needed for {given}")

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
    seen = [claim.tag for claim in (*study.claims(), *own_claims(claims))]
    if twice := [tag for tag in dict.fromkeys(seen) if seen.count(tag) > 1]:
        raise InputError(f"{claims}: the tag {twice[0]} is taken; in a sweep each claim needs a tag of its own")
    return source_digest(claims)


def _files(base: Options, grids: Sequence[Grid]) -> dict[str, str]:
    """The files of every point by path; two texts on an axis must differ, or one point would have two places.

    Each word that is swept may name a file.
    """
    fixed = {name: base.anchored(name, getattr(base, name)) for name in type(base).model_fields}
    axes = [axis for grid in grids for axis in grid.every_axis()]
    words = [{axis.name: value} for axis in axes for value in axis.values if isinstance(value, str)]
    found = file_hashes(base.model_copy(update=changes) for changes in (fixed, *words))
    for axis in (axis for grid in grids for axis in grid.every_axis() if grid.lines is None):
        seen: dict[str, Value] = {}
        for value in (value for value in axis.values if isinstance(value, str)):
            parts = known_files(base.model_copy(update={axis.name: value}), found).get(axis.name)
            if parts is not None and seen.setdefault(str(parts), value) != value:
                raise InputError(f"{axis.name}: {seen[str(parts)]} and {value} have the same bytes; give one of them")
    return found


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
            given = {field_name(name): values for name, values in (grid or {}).items()}
            grid = {**{name: values for name, values in named.grid.items() if name not in options}, **given}
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
    given = {name: [row[key] for row in rows] for name, key in zip(columns, rows[0], strict=True)}
    own = given.pop("seed", None)
    values = {name: checked(study, name, column, _line) for name, column in given.items()}
    seeds = None if own is None else tuple(_seed(each, _line(place)) for place, each in enumerate(own))
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


def _seeds(given: Seeds) -> tuple[int, ...]:
    """5 means 0 to 4; "3,7" and [3, 7] are themselves."""
    if isinstance(given, str) and given.strip().isdigit():
        given = int(given)
    if isinstance(given, int):
        if not 1 <= given <= MOST_POINTS:
            raise InputError(f"seeds is {given}; give how many, at least 1, or a list of seeds like 3,7,11")
        return tuple(range(given))
    found = tuple(_seed(each) for each in (given.split(",") if isinstance(given, str) else given))
    if not found or len(set(found)) < len(found):
        raise InputError(f"seeds {given!r}: give how many, or a list of different seeds like 3,7,11")
    return found


def _seed(value: Any, where: str = "") -> int:
    try:
        found = int(value)
    except (TypeError, ValueError):
        raise InputError(f"{where}seed {value!r} is no whole number") from None
    if not 0 <= found < 2**63:
        raise InputError(f"{where}seed is {found}, but must be >= 0 and below 2^63")
    return found


def _reseeded(stored: Plan, seeds: Seeds | None) -> tuple[Grid, ...]:
    """The stored grids, at other seeds where some are given."""
    if seeds is None:
        return stored.grids
    chosen = _seeds(seeds)
    return tuple(grid if grid.line_seeds is not None else grid.model_copy(update={"seeds": chosen}) for grid in stored.grids)


def _chosen_measures(
    given: Sequence[str] | None,
    known: tuple[Measure, ...],
    named: NamedSweep | None,
    stored: Plan | None,
    claims: str | None = None,
) -> tuple[Measure, ...]:
    """In one order, whatever the caller's, so that the same measures are the same sweep. Own claims need verdicts."""
    if given is None:
        if stored is not None:
            return stored.measures
        usual = named.measures if named is not None else DEFAULT_MEASURES
        given = usual if claims is None else (*usual, "verdicts")
    for name in given:
        if name not in known:
            raise unknown("measure", name, known)
    if not given:
        raise InputError(f"nothing to measure; choose among {', '.join(known)}")
    return tuple(name for name in known if name in given)
