"""What the cells of a sweep say, for its page: statistics of every column, and areas over every two axes.

A cell of the page is a cell of the sweep, whichever axes are drawn, because all others are cut. So everything a reader may
choose is computed here, once, and the viewer only draws.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from stagescope.diagrams.areas import Rect, Ruler, areas
from stagescope.diagrams.numbers import cell_of, disagree
from stagescope.reporting.blocks import Blocks
from stagescope.sweeping.boxes import Cell, Scale
from stagescope.sweeping.columns import CLOCKED, Column
from stagescope.sweeping.rows import Row
from stagescope.sweeping.statistics import Interval
from stagescope.sweeping.table import Sweep

LACKS = (None, "failed", *CLOCKED, "none")
"""Why a cell has no value, by the number that travels; `viewer/sweep.js` has the same list."""
TORN, START = 8, 16
"""Added to that number: seeds disagree, the event was there at the start."""


def statistics(column: Column, cells: Sequence[Sequence[Row]], codes: Mapping[str, int], blocks: Blocks) -> dict[str, Any]:
    """What the cells say in a column; `codes` are the numbers of its words."""
    said = [cell_of(column, rows) for rows in cells]
    states = [LACKS.index(one["lack"]) + TORN * disagree(one) + START * bool(one.get("start")) for one in said]
    found: dict[str, Any] = {"states": blocks.u8(np.array(states, np.uint8))}
    if column.kind == "word":
        values = np.array([codes.get(one["value"], -1) for one in said], int)
        return found | {"values": blocks.i32(values), "shares": _shares([one["shares"] for one in said], codes, blocks)}
    values = np.array([one["value"] for one in said], float)
    intervals = np.array([_ends(one["interval"]) for one in said], float)
    known = not np.all(np.isnan(intervals))
    return found | {"values": blocks.f64(values), "intervals": blocks.f64(intervals) if known else None}


def _ends(interval: Interval | None) -> tuple[float, float]:
    if interval is None:
        return np.nan, np.nan
    return interval[0], np.inf if interval[1] is None else interval[1]


def _shares(said: Sequence[Mapping[str, Any]], codes: Mapping[str, int], blocks: Blocks) -> dict[str, Any] | None:
    """Cell, word, share and its interval, the largest first, where a cell has several words."""
    found = [
        (cell, codes[word], one["share"], *_ends(one["interval"]))
        for cell, shares in enumerate(said)
        if len(shares) > 1
        for word, one in sorted(shares.items(), key=lambda item: -item[1]["share"])
    ]
    return blocks.f64(np.array(found, float)) if found else None


def all_areas(sweep: Sweep, cells: Sequence[Cell], blocks: Blocks) -> list[dict[str, Any]]:
    """For every two axes the areas of all cells, each among those of its cut: how many each has, and where they lie."""
    rulers = [Ruler(Scale(axis.kind, axis.values)) for axis in sweep.axes]
    found = []
    for x, y in combinations(range(len(rulers)), 2):
        cuts: dict[Cell, list[Cell]] = {}
        for cell in cells:
            cuts.setdefault(tuple(value for i, value in enumerate(cell) if i not in (x, y)), []).append(cell)
        rects: dict[Cell, list[Rect]] = {}
        for members in cuts.values():
            covered = areas(rulers[x], rulers[y], [(cell[x], cell[y]) for cell in members])
            rects |= {cell: covered.get((cell[x], cell[y]), []) for cell in members}
        counts = np.array([len(rects[cell]) for cell in cells], int)
        places = np.array([rect for cell in cells for rect in rects[cell]], float)
        found.append({"axes": [x, y], "counts": blocks.i32(counts), "rects": blocks.f64(places)})
    return found
