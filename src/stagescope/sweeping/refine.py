"""Adaptive refinement: new cells only where neighbouring cells differ.

Each round halves, along every ordered axis, the boxes whose cells do not all say the same. So a boundary is enclosed in boxes
that shrink by two in a round: from a grid of n intervals, r rounds bring it to 1 / (n 2^r) of the axis. What lies inside a box
whose cells agree is never seen: begin with a grid fine enough for the smallest region that matters.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import product

from stagescope.core.errors import InputError, unknown
from stagescope.sweeping.axes import Axis, Box, Cell, Scale, leaves, middles_of
from stagescope.sweeping.columns import columns_of
from stagescope.sweeping.plan import Plan
from stagescope.sweeping.rows import Row, reached_end
from stagescope.sweeping.table import Sweep


def signatures(sweep: Sweep, column: str | None) -> dict[Cell, Hashable]:
    """The signature of every cell: the one that most of its seeds have."""
    by_cell = {}
    for cell, rows in sweep.cells.items():
        counts = Counter(_signature(sweep, row, column) for row in rows)
        by_cell[cell] = max(counts, key=lambda signature, counts=counts: (counts[signature], repr(signature)))
    return by_cell


def _signature(sweep: Sweep, row: Row, by: str | None) -> Hashable:
    """By default which events occurred, and the verdicts; by a column: a word itself, a number by its sign or its absence."""
    if not reached_end(row):
        return row["status"]
    if by is None:
        occurred = tuple(name for name, t in (row.get("events") or {}).items() if t is not None)
        columns = (sweep.column_of(name) for name in sweep.columns)
        return occurred, tuple((column.name, column.read(row)) for column in columns if column.part == "verdicts")
    value = sweep.column_of(by).read(row)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "above 0" if value > 0 else "below 0" if value < 0 else "0"
    return value


def refine(scales: Sequence[Scale], signatures: Mapping[Cell, Hashable]) -> list[Cell]:
    """The cells of the next round, none of them known yet; empty where nothing differs or nothing is left between.

    Args:
        scales: one for each axis.
        signatures: what each known cell says, such as which events occurred; a failed cell says that it failed.

    Example:
        refine([Scale("linear", (0.0, 1.0))], {(0.0,): "focus", (1.0,): "defocus"})  # [(0.5,)]
    """
    cells: dict[Cell, None] = {}
    for box in _mixed(scales, signatures):
        sides = zip(box, middles_of(scales, box), strict=True)
        steps = [dict.fromkeys((low, high) if mid is None else (low, mid, high)) for (low, high), mid in sides]
        for cell in product(*steps):
            # a cell of the grid that is missing is a hole, which refinement does not fill
            on_grid = all(value in scale.values for scale, value in zip(scales, cell, strict=True))
            if cell not in signatures and not on_grid:
                cells[cell] = None
    return list(cells)


def _mixed(scales: Sequence[Scale], signatures: Mapping[Cell, Hashable]) -> list[Box]:
    """Boxes whose cells do not all say the same."""
    return [box for box, cells in leaves(scales, signatures) if len({signatures[cell] for cell in cells}) > 1]


def sharpness(scales: Sequence[Scale], signatures: Mapping[Cell, Hashable]) -> list[float | None] | None:
    """How far apart neighbours are at most that differ, as shares of each axis, of its logarithm where it is logarithmic.

    None for an axis without extent, and in place of all where no neighbours differ.
    """
    mixed = _mixed(scales, signatures)
    if not mixed:
        return None
    return [max(scale.share(*box[place]) for box in mixed) if scale.extended else None for place, scale in enumerate(scales)]


def boundary(axes: Sequence[Axis], scales: Sequence[Scale], signatures: Mapping[Cell, Hashable]) -> str:
    """How well a refinement knows where neighbours differ."""
    widths = sharpness(scales, signatures)
    if widths is None:
        return "no neighbours differ: there is nothing to refine"
    shares = [
        f"{100 * share:.2g} % of {axis.name}{' (of its logarithm)' if axis.kind.startswith('log') else ''}"
        for axis, share in zip(axes, widths, strict=True)
        if share is not None
    ]
    return f"neighbours that differ are at most {' and '.join(shares)} apart"


def check_column(by: str, plan: Plan, rows: Sequence[Row]) -> None:
    """Refuse to refine by a column that no run has, as early as possible: before there are rows, or at the first."""
    rows = [row for row in rows if reached_end(row)]
    columns = columns_of(plan.axes, rows)
    if by in columns and columns[by].part is None and by != "status":
        raise InputError(f"refine_by {by!r} is nothing that a run shows; choose an event, a stage, a claim or a number")
    kinds = {name.rstrip("0123456789.") for name in columns}
    late = by.startswith(("stage ", "duration ")) or by.rstrip("0123456789.") in kinds  # others may have it: a stage, a cycle, E4
    if rows and by not in columns and not (late and "events" in plan.measures):
        raise unknown("column of this sweep", by, columns)
