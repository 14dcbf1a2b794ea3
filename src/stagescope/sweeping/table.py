"""A sweep as a table: rows, columns by name, statistics over seeds, CSV."""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagescope.errors import InputError, unknown
from stagescope.runs.files import publish
from stagescope.sweeping.axes import Axis, Value, ordered, spelled
from stagescope.sweeping.plan import Plan, load_plan
from stagescope.sweeping.rows import Row, Rows, reached_end

if TYPE_CHECKING:
    import numpy as np

    from stagescope.runs.run import Run

Cell = tuple[Value, ...]
STAGES = "stages"
CONFIDENCE, RESAMPLES = 0.95, 2000


@dataclass(frozen=True)
class Sweep:
    """What a sweep has committed. A row is a point (one full config and seed); rows that differ only in seed are a cell.

    `damaged` names stored lines whose bytes are not those that were committed; their points count as not computed.
    """

    folder: Path
    plan: Plan
    rows: tuple[Row, ...]
    damaged: tuple[str, ...] = ()

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """What was swept, with the values that were asked for; refinement adds rows between them."""
        return self.plan.axes

    @property
    def failed(self) -> tuple[Row, ...]:
        """Rows of runs that did not reach their end, with status and reason."""
        return tuple(row for row in self.rows if not reached_end(row))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        names = " x ".join(axis.name for axis in self.axes)
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"<Sweep {self.plan.study} over {names}: {len(self)} rows in {len(self.cells)} cells{failed}>"

    @cached_property
    def _groups(self) -> dict[str, Callable[[Row], Any]]:
        """Every column with how to read it from a row; one name is one thing."""
        found: dict[str, Callable[[Row], Any]] = {axis.name: _part("at", axis.name) for axis in self.axes}
        found |= {name: _whole(name) for name in ("seed", "status", "reason")}
        found |= {name: _part("events", name) for name in self._names("events")}
        found[STAGES] = lambda row: " > ".join(row["stages"]) if row.get("stages") is not None else None
        found |= {f"stage {name}": _part("starts", name) for name in self._names("starts")}
        found |= {f"duration {name}": _part("durations", name) for name in self._names("durations")}
        found |= {name: _part("verdicts", name) for name in self._names("verdicts")}
        found |= {name: _part("numbers", name) for name in self._names("numbers")}
        return found | {name: _whole(name) for name in ("seconds", "digest")}

    def _names(self, part: str) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row.get(part) or ()))

    @property
    def columns(self) -> tuple[str, ...]:
        """Axes, seed, status, reason, events, stages, claims by tag, numbers, seconds, digest.

        `stages` are their names in order; `stage NAME` is when it first began, `duration NAME` how long it lasted in all.
        """
        return tuple(self._groups)

    def column(self, name: str) -> list[Any]:
        """One value a row, None where a row has none: an event that was not reached, or a run that failed."""
        read = self.reader(name)
        return [read(row) for row in self.rows]

    def reader(self, name: str) -> Callable[[Row], Any]:
        """How to read a column from a row."""
        if name not in self._groups:
            raise unknown("column of this sweep", name, self._groups)
        return self._groups[name]

    def cell(self, row: Row) -> Cell:
        return tuple(row["at"][axis.name] for axis in self.axes)

    @cached_property
    def cells(self) -> dict[Cell, list[Row]]:
        """Rows by their values on the axes, each cell's in the order of seeds."""
        found: dict[Cell, list[Row]] = {}
        for row in self.rows:
            found.setdefault(self.cell(row), []).append(row)
        return found

    def statistics(self, name: str, by: Sequence[str] | None = None, confidence: float = CONFIDENCE) -> list[dict[str, Any]]:
        """One entry for every combination of the axes in `by` (default: all of them, so for every cell).

        Of numbers: `mean` and `median` with bootstrap intervals over the rows that have one (`known` of `rows`), None where
        there is no more than one row. Of words and verdicts: the `share` of each, with its interval.
        """
        read, names = self.reader(name), [axis.name for axis in self.axes] if by is None else list(by)
        for each in names:
            if each not in {axis.name for axis in self.axes}:
                raise unknown("axis of this sweep", each, [axis.name for axis in self.axes])
        groups: dict[tuple[Value, ...], list[Any]] = {}
        for row in self.rows:
            groups.setdefault(tuple(row["at"][each] for each in names), []).append(read(row))
        return [
            {"at": dict(zip(names, place, strict=True)), "rows": len(values), **_statistics(values, confidence)}
            for place, values in groups.items()
        ]

    def find(self, at: Mapping[str, Value], seed: int | None = None) -> Row:
        """The row of a point by its values on the axes; any not given must have one value only."""
        for name in at:
            if name not in {axis.name for axis in self.axes}:
                raise unknown("axis of this sweep", name, [axis.name for axis in self.axes])
        found = [row for row in self.rows if all(_same(row["at"][name], value) for name, value in at.items())]
        if not found:
            raise InputError(f"no row at {_at(at)}; {self._nearest(at)}")
        cells = list(dict.fromkeys(self.cell(row) for row in found))
        if len(cells) > 1:
            free = [axis.name for axis in self.axes if axis.name not in at]
            raise InputError(f"{len(cells)} cells are at {_at(at) or 'any place'}; say also {', '.join(free)}")
        if seed is None:
            return found[0]
        matching = [row for row in found if row["seed"] == seed]
        if not matching:
            raise InputError(
                f"no row with seed {seed} at {_at(at)}; there are seeds {', '.join(str(row['seed']) for row in found)}"
            )
        return matching[0]

    def _nearest(self, at: Mapping[str, Value]) -> str:
        said = []
        for name, value in at.items():
            known = ordered(row["at"][name] for row in self.rows)
            if not any(_same(value, each) for each in known):
                shown = ", ".join(map(spelled, known[:8])) + (", ..." if len(known) > 8 else "")
                said.append(f"{name} has {shown}")
        return "; ".join(said) or "each value occurs, but not all of them together"

    def recreate(
        self, row: Row, out: str | Path | None = None, *, overwrite: bool = False, progress: bool | None = None
    ) -> "Run":
        """The run of a row, computed again from its config; `out` stores it."""
        from stagescope.studies.table import study

        found = study(row["study"])
        options = found.configured(None, **row["config"])
        return found.run(options, seed=row["seed"], out=out, overwrite=overwrite, progress=progress)

    def csv(self) -> str:
        """One line a row; what a row does not have is empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        readers = [self._groups[name] for name in self.columns]
        writer.writerows([_cell_text(read(row)) for read in readers] for row in self.rows)
        return text.getvalue()

    def write_csv(self, path: str | Path | None = None) -> Path:
        """Write the table; default: table.csv in the sweep's folder."""
        path = self.folder / "table.csv" if path is None else Path(path)
        publish(path, self.csv().encode())
        return path


def load_sweep(folder: str | Path) -> Sweep:
    """A sweep from its folder, also while it is being computed or after it was interrupted."""
    folder = Path(folder)
    plan = load_plan(folder)
    rows = Rows(folder).refresh()
    names = [axis.name for axis in plan.axes]
    places = {axis.name: {value: place for place, value in enumerate(axis.values)} for axis in plan.axes}

    def order(row: Row) -> tuple[Any, ...]:
        """Numbers by size, categories in the order they were given."""
        values = (row["at"][name] for name in names)
        keys = (
            (0, value) if isinstance(value, int | float) and not isinstance(value, bool) else (1, places[name].get(value, 0))
            for name, value in zip(names, values, strict=True)
        )
        return (*keys, row["seed"])

    return Sweep(folder, plan, tuple(sorted(rows.current.values(), key=order)), tuple(rows.damaged))


def _part(part: str, name: str) -> Callable[[Row], Any]:
    return lambda row: (row.get(part) or {}).get(name)


def _whole(name: str) -> Callable[[Row], Any]:
    return lambda row: row.get(name)


def _same(one: Value, other: Value) -> bool:
    """Equal, or as near as a person types a number."""
    both = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-12) if both else one == other  # type: ignore[arg-type]


def _at(at: Mapping[str, Value]) -> str:
    return ", ".join(f"{name}={spelled(value)}" for name, value in at.items())


def _cell_text(value: Any) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def _statistics(values: list[Any], confidence: float) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        import numpy as np

        array = np.asarray(known, dtype=float)
        found = {"mean": float(np.mean(array)), "median": float(np.median(array))}
        intervals = {f"{name}_interval": _interval(array, getattr(np, name), confidence) for name in found}
        return {"known": len(known), **found, **intervals}
    shares = {}
    for value in dict.fromkeys(known):
        import numpy as np

        hits = np.asarray([each == value for each in known], dtype=float)
        shares[str(value)] = {"share": float(hits.mean()), "interval": _interval(hits, np.mean, confidence)}
    return {"known": len(known), "shares": shares}


def _interval(values: Any, statistic: Callable[..., Any], confidence: float) -> tuple[float, float] | None:
    """Percentile bootstrap over the seeds of a cell, from the same draws for every cell: the same rows, the same interval."""
    import numpy as np

    if len(values) < 2:
        return None
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    tail = (1 - confidence) / 2
    low, high = np.percentile(statistic(values[resamples(len(values))], axis=1), [100 * tail, 100 * (1 - tail)])
    return float(low), float(high)


@cache
def resamples(n: int) -> "np.ndarray":
    """The draws behind the bootstrap intervals of n rows: which row each resample takes, from a fixed generator."""
    import numpy as np

    found = np.random.default_rng(0).integers(0, n, (RESAMPLES, n))
    found.setflags(write=False)
    return found
