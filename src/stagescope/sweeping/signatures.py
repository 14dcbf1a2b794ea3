"""The value of a cell that refinement compares with its neighbours."""

from collections import Counter
from collections.abc import Hashable, Sequence

from stagescope.sweeping.rows import Row, reached_end
from stagescope.sweeping.table import Cell, Sweep


def signatures(sweep: Sweep, by: str | None) -> dict[Cell, Hashable]:
    """The signature of every cell: the one that most of its seeds have."""
    return {cell: _most(sweep, rows, by) for cell, rows in sweep.cells.items()}


def _most(sweep: Sweep, rows: Sequence[Row], by: str | None) -> Hashable:
    counted = Counter(_signature(sweep, row, by) for row in rows)
    return max(counted, key=lambda each: (counted[each], repr(each)))


def _signature(sweep: Sweep, row: Row, by: str | None) -> Hashable:
    """By default which events occurred, and the verdicts; by a column: a word itself, a number by its sign or its absence."""
    if not reached_end(row):
        return row["status"]
    if by is None:
        reached = tuple(name for name, when in (row.get("events") or {}).items() if when is not None)
        return reached, tuple((column.name, column.read(row)) for column in sweep.verdict_columns)
    value = sweep.column_of(by).read(row)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "above 0" if value > 0 else "below 0" if value < 0 else "0"
    return value
