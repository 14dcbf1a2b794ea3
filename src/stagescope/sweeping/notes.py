"""Notes on a sweep besides its table, one sentence each; None where there is nothing to note."""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stagescope.sweeping.axes import Axis, Cell, Scale
from stagescope.sweeping.columns import Rules, outdated
from stagescope.sweeping.plan import NamedSweep, Plan, Point, color_of
from stagescope.sweeping.refine import sharpness
from stagescope.sweeping.rows import Rows, reached_end

if TYPE_CHECKING:
    from stagescope.sweeping.table import Sweep


def replaced(named: NamedSweep | None, grid: bool, table: bool) -> str | None:
    """What of a preset was not taken, where it is more than the grids of the same names."""
    if named is not None and named.table is not None and (grid or table):
        return f"the preset's table is replaced by the {'table' if table else 'grids'} given"
    if named is not None and named.grid and table:
        return "the preset's grids are replaced by the table given"
    return None


def damage(rows: Rows, missing: Sequence[Point]) -> str | None:
    """Damaged and lost rows, if points are missing now; damaged lines of points that were computed again do not matter."""
    found = rows.problems() if missing else []
    if not found:
        return None
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{found[0]}{more}; points without an intact row are computed again"


def journal_damage(rows: Rows, size: int | None) -> str | None:
    """A journal that is damaged, or shorter than the plan says: rows may be lost that it would name."""
    wrong = rows.journal.damaged or rows.journal.size < (size or 0)
    return f"{rows.journal.folder}: damaged; it is written again from the rows that are intact" if wrong else None


def renewed(number: int, judged: bool) -> str:
    """What `--remeasure` did, also if that is nothing."""
    if number:
        return f"{count(number, 'row')} renewed by the claims and rules of today"
    why = "all were judged by the claims and rules of today" if judged else "this sweep judges no claims"
    return f"0 rows renewed: {why}"


def merged(asked: Plan, every: Sequence[Point]) -> str | None:
    """Lines of a table that name the same point."""
    twice = sum(map(len, asked.grids)) - len(every)
    if not twice or len(asked.grids) > 1 or all(grid.lines is None for grid in asked.grids):
        return None
    return f"{count(twice, 'repeated point')} of the table merged"


def without_run(rows: Rows, every: Sequence[Point], folder: Path) -> str | None:
    """Rows from before `--keep-runs`."""
    done = [point.digest for point in every if point.digest in rows.current and reached_end(rows.current[point.digest])]
    bare = sum(not (folder / "runs" / digest).is_dir() for digest in done)
    if not bare:
        return None
    return f"{count(bare, 'row')} committed before without --keep-runs: no run stored; `Sweep.recreate` makes one"


def outdated_rows(rows: Rows, every: Sequence[Point], rules: Rules) -> str | None:
    """Rows whose claims were judged by rules that are no longer in force."""
    known = (rows.current.get(point.digest) for point in every)
    older = sum(row is not None and outdated(row, rules) for row in known)
    if not older:
        return None
    return f"{count(older, 'row')} judged by older rules; --remeasure computes them again"


def boundary(axes: Sequence[Axis], scales: Sequence[Scale], said: Mapping[Cell, Hashable]) -> str:
    """How well a refinement knows where neighbours differ."""
    apart = sharpness(scales, said)
    if apart is None:
        return "no neighbours differ: there is nothing to refine"
    shares = [
        f"{100 * share:.2g} % of {axis.name}{' (of its logarithm)' if axis.kind.startswith('log') else ''}"
        for axis, share in zip(axes, apart, strict=True)
        if share is not None
    ]
    return f"neighbours that differ are at most {' and '.join(shares)} apart"


def same_seeds(made: "Sweep") -> str | None:
    """A note where all seeds give the same rows in every cell."""
    if "numbers" not in made.plan.measures:
        return None
    cells = [[row for row in rows if reached_end(row)] for rows in made.cells.values()]
    several = [rows for rows in cells if len(rows) > 1]
    parts = ("events", "numbers", "verdicts")
    if not several or any(row.get(part) != rows[0].get(part) for rows in several for row in rows for part in parts):
        return None
    return "all seeds of a cell give the same values: nothing in these runs is random"


def first_column(made: "Sweep") -> str | None:
    """The column to look at first: the preset's, else the first event that some runs reached and others did not."""
    if (color := color_of(made.plan.study, made.plan.preset)) in made.columns:
        return color
    done = [row for row in made.rows if reached_end(row)]
    names = list(dict.fromkeys(name for row in done for name in row.get("events") or ()))
    reached = {name: sum((row.get("events") or {}).get(name) is not None for row in done) for name in names}
    parting = [name for name in names if 0 < reached[name] < len(done)]
    numbers = [name for row in done[:1] for name in row.get("numbers") or ()]
    return next(iter((*parting, *names, *numbers)), None)


def count(number: int, what: str) -> str:
    """Three rows, one row."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
