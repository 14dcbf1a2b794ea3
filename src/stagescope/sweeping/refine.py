"""Adaptive refinement: new cells only where neighbouring cells differ.

Each round halves, along every ordered axis, the boxes whose cells do not all say the same. So a boundary is enclosed in boxes
that shrink by two in a round: from a grid of n intervals, r rounds bring it to 1 / (n 2^r) of the axis. What lies inside a box
whose cells agree is never seen: begin with a grid fine enough for the smallest region that matters.
"""

from collections.abc import Hashable, Mapping, Sequence
from itertools import product

from stagescope.sweeping.boxes import Cell, Scale, leaves, middles_of


def refine(scales: Sequence[Scale], signatures: Mapping[Cell, Hashable]) -> list[Cell]:
    """The cells of the next round, none of them known yet; empty where nothing differs or nothing is left between.

    Args:
        scales: one for each axis.
        signatures: what each known cell says, such as which events occurred; a failed cell says that it failed.

    Example:
        refine([Scale("linear", (0.0, 1.0))], {(0.0,): "focus", (1.0,): "defocus"})  # [(0.5,)]
    """
    found: dict[Cell, None] = {}
    for box, cells in leaves(scales, signatures):
        if len({signatures[cell] for cell in cells}) > 1:
            sides = zip(box, middles_of(scales, box), strict=True)
            steps = [dict.fromkeys((low, high) if mid is None else (low, mid, high)) for (low, high), mid in sides]
            found.update(dict.fromkeys(cell for cell in product(*steps) if cell not in signatures and not _given(scales, cell)))
    return list(found)


def _given(scales: Sequence[Scale], cell: Cell) -> bool:
    """Whether a cell is one of the grid: if it is missing there, it is a hole, which refinement does not fill."""
    return all(value in scale.values for scale, value in zip(scales, cell, strict=True))
