"""A sweep as a table: rows, columns by name, also predicted ones, statistics over seeds, CSV; and a check of what is stored."""

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stagescope
from stagescope.core.errors import InputError, NotARun, StagescopeError, StoreError, first_names, message, unknown
from stagescope.core.markup import block, note, number, table, title
from stagescope.core.progress import progress_for
from stagescope.core.spreadsheet import cell
from stagescope.readings.registry import stored_study
from stagescope.runs.files import foreign, publish
from stagescope.runs.store import verify
from stagescope.sweeping.axes import Axis, Value, ordered, spelled
from stagescope.sweeping.columns import CONFIDENCE, Column, Lack, columns_of, summarised
from stagescope.sweeping.plan import FILE, Plan, changed_file, load_plan
from stagescope.sweeping.rows import Row, Rows, fits, misfits, reached_end

if TYPE_CHECKING:
    from stagescope.runs.run import Run

PREFIX = "predicted "
PREDICTED_FILE = "predicted.json"
Paths = dict[str, dict[str, Any]]
"""By the digest of a row: `events` with the time of each, or null if it does not come, or the `reason` why nothing is predicted.

Events of which the path cannot say whether they come are left out.
"""


def predictions(folder: Path, rows: Sequence[Row]) -> Paths:
    """The prediction of every row, a second or more each; those made before by this version are kept in the sweep's folder."""
    paths = _stored_paths(folder / PREDICTED_FILE)
    remaining = [row for row in rows if row["digest"] not in paths]
    with progress_for(None) as bar:
        for row in bar.each(remaining, "predicting", "points"):
            paths[row["digest"]] = _predicted(row)
    if remaining and folder.is_dir():
        publish(folder / PREDICTED_FILE, json.dumps({"version": stagescope.__version__, "paths": paths}).encode())
    return paths


def _predicted(row: Row) -> dict[str, Any]:
    from stagescope.readings.predicting import UNTIL, planned_path

    try:
        study = stored_study(row["study"])
        path = planned_path(study.setup(study.configured(None, **row["config"]), row["seed"]))
    except StagescopeError as error:
        return {"reason": message(error)}
    return {"events": {name: event.t for name, event in path.events.items() if event.t is not None or event.beyond >= UNTIL}}


def _stored_paths(file: Path) -> Paths:
    """What an earlier call of this version has found; a file that is none of ours counts for nothing."""
    try:
        paths = json.loads(file.read_text())
        if paths["version"] == stagescope.__version__:
            return {digest: path for digest, path in paths["paths"].items() if _is_path(path)}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass
    return {}


def _is_path(path: Any) -> bool:
    events = path.get("events", {}) if isinstance(path, dict) else None
    return isinstance(events, dict) and all(t is None or isinstance(t, int | float) for t in events.values())


def predicted_columns(paths: Mapping[str, Mapping[str, Any]]) -> dict[str, Column]:
    """One column an event of any point; an error says why where nothing is predicted of any."""
    names = dict.fromkeys(name for path in paths.values() for name in path.get("events", {}))
    if not names:
        reasons = dict.fromkeys(path.get("reason", "it has no rows") for path in paths.values())
        raise InputError(f"nothing is predicted of this sweep: {next(iter(reasons), 'it has no rows')}")
    return {f"{PREFIX}{name}": _column(paths, name) for name in names}


def _column(paths: Mapping[str, Mapping[str, Any]], name: str) -> Column:
    """Not of the run, so a run that failed has a value too. An event that does not come is later than all others."""

    def events(row: Row) -> Mapping[str, Any]:
        return paths.get(row["digest"], {}).get("events", {})

    def lacks(row: Row) -> Lack:
        return "not reached" if name in events(row) else "none"

    from stagescope.readings.predicting import UNTIL

    return Column(f"{PREFIX}{name}", "time", None, lambda row: events(row).get(name), lacks, horizon=UNTIL)


Cell = tuple[Value, ...]


@dataclass(frozen=True)
class Sweep:
    """What a sweep has committed. A row is a point (one full config and seed); rows that differ only in seed are a cell.

    `damaged` names rows whose bytes are not those that were committed, or that are gone; their points count as not computed.
    `renewed` is how many rows the call of `sweep` that returned this judged again because of `remeasure`.

    Examples:
        >>> table = ss.sweep("linear-icl", grid={"context": "10,20"}, seeds=1, out="swept", workers=1, until=20.0, progress=False)
        >>> len(table.rows), table.column("status")
        (2, ['finished', 'finished'])
    """

    folder: Path
    plan: Plan
    rows: tuple[Row, ...]
    damaged: tuple[str, ...] = ()
    renewed: int = 0

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """What was swept, with the requested values; refinement adds rows between them."""
        return self.plan.axes

    @cached_property
    def _axis_names(self) -> list[str]:
        return [axis.name for axis in self.axes]

    @property
    def failed(self) -> tuple[Row, ...]:
        """Rows of runs that did not reach their end, with status and reason."""
        return tuple(row for row in self.rows if not reached_end(row))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        names = " x ".join(self._axis_names)
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"<Sweep {self.plan.study} over {names}: {len(self)} rows in {len(self.cells)} cells{failed}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: what was swept, some rows, and which columns there are."""
        axes = [(axis.name, str(len(axis.values)), ", ".join(map(spelled, axis.values))) for axis in self.axes]
        results = [name for name, column in self._results.items() if column.part in ("events", "verdicts", "numbers")]
        names = [*self._axis_names, "seed", "status", *results[:6]]
        values = [[self._results[name].read(row) for name in names] for row in self.rows[:10]]
        rows = [[number(value) if isinstance(value, float) or value is None else str(value) for value in row] for row in values]
        hidden = f"{len(self) - len(rows)} more rows; " if len(self) > len(rows) else ""
        columns = f"{hidden}columns: {', '.join(self._results)}"
        return block(title("Sweep", repr(self)), table(("axis", "values", ""), axes), table(names, rows), note(columns))

    @cached_property
    def _results(self) -> dict[str, Column]:
        return columns_of(self.axes, self.rows)

    @property
    def _columns(self) -> dict[str, Column]:
        computed = "_predicted" in vars(self)  # they are computed when one of them is first asked for
        return {**self._results, **(self._predicted if computed else {})}

    @cached_property
    def _predicted(self) -> dict[str, Column]:
        return predicted_columns(predictions(self.folder, self.rows))

    @property
    def columns(self) -> tuple[str, ...]:
        """Axes, seed, status, reason, events, stages, claims by tag, numbers, clock, end, seconds, version, config, digest.

        Numbers are followed by what the study's own measures gave, as MEASURE.KEY.
        `last stage` is the name of the last one, `stages` are their names in order; `stage NAME` is when it first began,
        `duration NAME` how long it lasted in all. `end` is where the run ended on its `clock`,
        `config` every option that is not the study's default, as JSON. `predicted EVENT` are the last, once one was asked for.
        """
        return tuple(self._columns)

    def column(self, name: str) -> list[Any]:
        """One value a row as it was recorded, None where there is none, such as an event that was not reached.

        Also of runs that failed; `statistics` leaves those out.
        """
        read = self.column_of(name).read
        return [read(row) for row in self.rows]

    def column_of(self, name: str) -> Column:
        """A column: its kind, and how to read it from a row; the first that is predicted computes all of these."""
        if name.startswith(PREFIX) and name not in self._results:
            _ = self._predicted
        if name not in self._columns:
            if ":" in name and "verdicts" not in self.plan.measures:
                raise InputError(f"{name} was not judged in this sweep; claims need --measure verdicts, in another folder")
            slip = name.casefold().startswith("predict")
            predicted_names = [f"{PREFIX}{event}" for event, column in self._results.items() if slip and column.part == "events"]
            raise unknown("column of this sweep", name, [*self._columns, *predicted_names])
        return self._columns[name]

    @cached_property
    def missing(self) -> int:
        """The number of requested points without a row."""
        cells = (cell for grid in self.plan.grids for cell in grid.cells())
        requested_points = {(*(values[name] for name in self._axis_names), seed) for values, seeds in cells for seed in seeds}
        return len(requested_points - {(*self.cell(row), row["seed"]) for row in self.rows})

    def cell(self, row: Row) -> Cell:
        return tuple(row["at"][name] for name in self._axis_names)

    @cached_property
    def cells(self) -> dict[Cell, list[Row]]:
        """Rows by their values on the axes, each cell's in the order of seeds."""
        return self._grouped(self._axis_names)

    def _grouped(self, names: Sequence[str]) -> dict[Cell, list[Row]]:
        by_cell: dict[Cell, list[Row]] = {}
        for row in self.rows:
            by_cell.setdefault(tuple(row["at"][name] for name in names), []).append(row)
        return by_cell

    def _check_axes(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._axis_names:
                raise unknown("axis of this sweep", name, self._axis_names)

    def statistics(self, name: str, by: Sequence[str] | None = None, confidence: float = CONFIDENCE) -> list[dict[str, Any]]:
        """One entry for every combination of the axes in `by` (default: all of them, so for every cell), all with equal keys.

        `rows` counts them, `failed` those that did not reach their end and are left out, `known` those with a value. Of times
        and numbers: `mean` and `median` with bootstrap intervals, None of no more than one row. `beyond` counts times that had
        not come by the end of their runs: for the median they are later than all others, and it is None where it is among
        them, as is the upper end of its interval; a mean is None then. Of words and verdicts: the `share` of each.
        """
        column, names = self.column_of(name), self._axis_names if by is None else list(by)
        self._check_axes(names)
        return [
            {"at": dict(zip(names, place, strict=True)), **summarised(column, rows, confidence)}
            for place, rows in self._grouped(names).items()
        ]

    def find(self, at: Mapping[str, Value], seed: int | None = None) -> Row:
        """The row of a point by its values on the axes; any not given must have one value only."""
        self._check_axes(at)
        exactly = [row for row in self.rows if all(row["at"][name] == value for name, value in at.items())]
        rows = exactly or [row for row in self.rows if all(same(row["at"][name], value) for name, value in at.items())]
        if not rows:
            raise InputError(f"no row at {_place(at)}; {self._nearest(at)}")
        cells = list(dict.fromkeys(self.cell(row) for row in rows))
        if len(cells) > 1:
            free = [name for name in self._axis_names if name not in at]
            raise InputError(f"{len(cells)} cells are at {_place(at) or 'any place'}; say also {', '.join(free)}")
        if seed is None:
            return rows[0]
        matching = [row for row in rows if row["seed"] == seed]
        if not matching:
            seeds = ", ".join(str(row["seed"]) for row in rows)
            raise InputError(f"no row with seed {seed} at {_place(at)}; there are seeds {seeds}")
        return matching[0]

    def _nearest(self, at: Mapping[str, Value]) -> str:
        sentences = []
        for name, value in at.items():
            values = ordered(row["at"][name] for row in self.rows)
            if not any(same(value, row_value) for row_value in values):
                sentences.append(f"{name} has {first_names(map(spelled, values), 8)}")
        return "; ".join(sentences) or "each value occurs, but not all of them together"

    def recreate(
        self, row: Row, out: str | Path | None = None, *, overwrite: bool = False, progress: bool | None = None
    ) -> "Run":
        """The run of a row, computed again from its config; `out` stores it."""

        of_study = stored_study(row["study"])
        options = of_study.configured(None, **row["config"])
        read = {str(path) for parts in options.files().values() for path in parts.values()}
        if wrong := changed_file({path: digest for path, digest in self.plan.files.items() if path in read}):
            raise InputError(f"{wrong}, so this would be another run; restore it")
        return of_study.run(options, seed=row["seed"], out=out, overwrite=overwrite, progress=progress)

    def csv(self, *, predicted: bool = False) -> str:
        """One line a row; what a row does not have is empty. A text that a spreadsheet would run begins with '.

        With `predicted`, columns of what the saddle path from each start predicts follow; they take a second or more a row.
        """
        if predicted:
            _ = self._predicted
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(map(cell, self.columns))
        readers = [column.read for column in self._columns.values()]
        writer.writerows([cell(read(row)) for read in readers] for row in self.rows)
        return text.getvalue()

    def write_csv(self, path: str | Path | None = None, *, predicted: bool = False) -> Path:
        """Write the table; default: table.csv in the sweep's folder."""
        path = self.folder / "table.csv" if path is None else Path(path)
        publish(path, self.csv(predicted=predicted).encode())
        return path


def load_sweep(folder: str | Path) -> Sweep:
    """A sweep from its folder, also while it is being computed or after it was interrupted.

    Args:
        folder: of the sweep.

    Examples:
        >>> _ = ss.sweep("linear-icl", grid={"context": "10,20"}, seeds=1, out="swept", workers=1, until=20.0, progress=False)
        >>> len(ss.load_sweep("swept").rows)
        2
    """
    folder = Path(folder)
    plan = load_plan(folder)
    rows = Rows(folder).refresh()
    places = {axis.name: {value: place for place, value in enumerate(axis.values)} for axis in plan.axes}

    def order(row: Row) -> tuple[Any, ...]:
        """Numbers by size, categories in the order they were given."""
        values = ((row["at"][name], ranks) for name, ranks in places.items())
        keys = ((0, value) if _is_number(value) else (1, ranks.get(value, 0)) for value, ranks in values)
        return (*keys, row["seed"])

    fitting = [row for row in rows.current.values() if fits(row, plan.axes)]
    return Sweep(folder, plan, tuple(sorted(fitting, key=order)), (*rows.damaged, *rows.gone(), *misfits(rows, plan.axes)))


def same(one: Value, other: Value) -> bool:
    """Equal, or as near as a person types a number."""
    numeric = _is_number(one) and _is_number(other)
    return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-12) if numeric else one == other  # type: ignore[arg-type]


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _place(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{name}={spelled(value)}" for name, value in values.items())


def verify_sweep(folder: str | Path) -> list[str]:
    """One sentence for everything damaged, missing or foreign in a sweep; an empty list: it is as it was committed.

    A damaged row whose point was computed again is no problem any more. `table.csv` is not checked: each call of `sweep`
    writes it again from the rows.
    """
    folder = Path(folder)
    if not os.path.lexists(folder / FILE):
        load_plan(folder)  # says what is there instead
    problems = foreign(folder)
    try:
        plan, rows = load_plan(folder), Rows(folder).refresh()
    except StoreError as damage:
        return list(dict.fromkeys([*problems, str(damage)]))
    journal = rows.journal
    problems += [*rows.problems(), *misfits(rows, plan.axes), *journal.damaged]
    if plan.journal is not None and journal.size < plan.journal:
        problems.append(f"{journal.folder}: {plan.journal - journal.size} bytes that were committed are gone")
    # a call that was killed leaves a hidden folder beside the runs that were kept, which is no run yet
    runs = [] if (folder / "runs").is_symlink() else (folder / "runs").glob("[!.]*")
    for run in sorted(path for path in runs if not path.is_symlink()):
        try:
            problems += verify(run)
        except NotARun as missing:
            problems.append(str(missing))
    return list(dict.fromkeys(problems))
