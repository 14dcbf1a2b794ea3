"""Where values lie on a scale, and which part of a diagram a cell covers.

Every leaf box between cells is cut in four; each quarter belongs to the cell at its corner. On a plain grid a cell so covers
everything that is nearer to it than to its neighbours along either axis; where a refinement put cells between, all of them
shrink. Cells at the rim reach half a step outwards. A quarter whose corner is a cell of the grid that does not exist stays
blank.
"""

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any, NamedTuple

from stagescope.sweeping.axes import Cell, Leaf, Scale, leaves


class ValueScale:
    """Scale of the values that are shown. Where both signs occur, zero is in the middle; `log` counts decades of their sizes.

    It is logarithmic where the largest value is more than 10 times the smallest, or 100 times in size where signs differ.
    """

    def __init__(self, values: Sequence[float]) -> None:
        self.low, self.high = (min(values), max(values)) if values else (0.0, 1.0)
        self.constant = self.low == self.high
        self.signed = self.low < 0 < self.high
        sizes = [abs(value) for value in values if value] or [1.0]
        self.size = max(sizes)
        self.least = max(min(sizes), 1e-12 * self.size)  # below that, sizes may be rounding
        self.log = self.size > 100 * self.least if self.signed else 0 < 10 * self.low < self.high
        if self.signed:
            self.low, self.high = -self.size, self.size

    def place(self, value: float) -> float:
        """0 at the lowest, 1 at the highest."""
        if self.signed and self.log:
            far = math.log(max(abs(value) / self.least, 1.0)) / math.log(self.size / self.least)
            # the part next to zero is left out, so that the sign of the smallest size can be seen
            return 0.5 + 0.5 * math.copysign(0.3 + 0.7 * far, value) if value else 0.5
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return 0.5 if self.constant else (value - self.low) / (self.high - self.low)

    def marks(self, count: int = 6) -> list[float]:
        """Round values to write beside the scale, ascending, few enough to be read."""
        if self.signed and self.log:
            sizes = powers(self.least, self.size, max(count // 2, 1))
            return [*(-mark for mark in reversed(sizes)), 0.0, *sizes]
        if self.log:
            return powers(self.low, self.high, count)
        return steps(self.low, self.high, count)


def powers(low: float, high: float, count: int) -> list[float]:
    """1, 2 and 5 of every decade where that is not too much, else powers of ten, else some of them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for leading in ((1, 2, 5), (1, 3), (1,)):
        numbers = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in leading]
        numbers = [mark for mark in numbers if low * (1 - 1e-9) <= mark <= high * (1 + 1e-9)]
        if len(numbers) <= count:
            return numbers
    return numbers[:: -(-len(numbers) // count)]


def steps(low: float, high: float, count: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    if not low < high:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((digit * power for digit in (1, 2, 5) if digit * power >= raw), 10 * power)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def mark_text(value: float) -> str:
    """A mark as matplotlib sets it: powers of ten as such where digits would be many."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.6g}"
    digits, power = f"{value:.3e}".split("e")
    digits = digits.rstrip("0").rstrip(".")
    lead = {"1": "", "-1": "-"}.get(digits, rf"{digits}\cdot ")
    return rf"${lead}10^{{{int(power)}}}$"


CLOSE, UNEVEN = 0.05, 3.0
"""Values are drawn at equal distances if a gap is below the share CLOSE of the axis and another is UNEVEN times as large."""


class Rect(NamedTuple):
    """In the places of the two axes: values, their decimal logarithms, or numbers of categories."""

    left: float
    right: float
    bottom: float
    top: float


@dataclass(frozen=True)
class Ruler:
    """Where the values of a scale lie on paper."""

    scale: Scale

    @cached_property
    def log(self) -> bool:
        """Logarithmic, or given one by one in about equal ratios."""
        kind, values = self.scale.kind, self.scale.values
        if kind in ("log", "log integer"):
            return True
        if kind == "categorical" or len(values) < 3 or values[0] <= 0 or values[-1] < 8 * values[0]:
            return False
        return _uneven([math.log(value) for value in values]) < _uneven(values)

    @cached_property
    def ordinal(self) -> bool:
        """At equal distances: values so uneven that some cells would be slivers."""
        values = self.scale.values
        if self.scale.kind == "categorical" or self.log or len(values) < 3:
            return False
        nearest = min(after - before for before, after in pairwise(values))
        return nearest < CLOSE * (values[-1] - values[0]) and _uneven(values) > UNEVEN

    def place(self, value: Any) -> float:
        values = self.scale.values
        if self.scale.kind == "categorical":
            return float(values.index(value))
        if self.ordinal:  # a value between two of the grid lies between them in proportion
            index = min(max(bisect_right(values, value) - 1, 0), len(values) - 2)
            return index + (value - values[index]) / (values[index + 1] - values[index])
        return math.log10(value) if self.log else float(value)

    def value(self, place: float) -> float:
        """The number that lies at a place; the scale is one of numbers."""
        values = self.scale.values
        if self.ordinal:
            index = min(max(int(place), 0), len(values) - 2)
            return values[index] + (place - index) * (values[index + 1] - values[index])
        return 10.0**place if self.log else place

    def on_axis(self, place: float) -> float:
        """A place as plots know it, which take logarithms themselves."""
        return 10.0**place if self.log else place

    def place_on_axis(self, value: Any) -> float:
        return self.on_axis(self.place(value))

    @cached_property
    def reach(self) -> tuple[float, float]:
        """Where the outermost cells end, half a step beyond the first and the last value."""
        places = [self.place(value) for value in self.scale.values]
        if len(places) == 1 or self.scale.kind == "categorical":
            # half the width of the only value: of a category or a zero, a tenth of a number, or .15 decades
            number = self.scale.kind in ("linear", "integer")
            half = 0.15 if self.log else (number and 0.1 * abs(places[0])) or 0.5
            return places[0] - half, places[-1] + half
        return places[0] - (places[1] - places[0]) / 2, places[-1] + (places[-1] - places[-2]) / 2


def _uneven(values: Sequence[float]) -> float:
    """The largest gap between neighbours over the smallest."""
    gaps = [after - before for before, after in pairwise(values)]
    return max(gaps) / min(gaps)


def areas(x: Ruler, y: Ruler, cells: Collection[Cell]) -> dict[Cell, list[Rect]]:
    """The rectangles of each cell (x, y), joined where they touch along a whole side."""
    by_cell: dict[Cell, list[Rect]] = {cell: [] for cell in cells}
    existing = frozenset(cells)
    for leaf in leaves((x.scale, y.scale), cells):
        parts = (_parts(x, *leaf.box[0]), _parts(y, *leaf.box[1]))
        for (column, left, right), (row, bottom, top) in product(*parts):
            owner = _owner((x, y), (column, row), leaf, existing)
            if owner is not None:
                by_cell[owner].append(Rect(left, right, bottom, top))
    rows = {cell: _merged(rects, "left", "right", slice(2, 4)) for cell, rects in by_cell.items() if rects}
    return {cell: _merged(rects, "bottom", "top", slice(0, 2)) for cell, rects in rows.items()}


def _parts(ruler: Ruler, low: Any, high: Any) -> list[tuple[Any, float, float]]:
    """The halves of a side: whose they are, and from where to where."""
    first, last = ruler.reach
    if low == high:
        centre = ruler.place(low)
        return [(low, centre - 0.5, centre + 0.5)] if ruler.scale.kind == "categorical" else [(low, first, last)]
    start = first if low == ruler.scale.values[0] else ruler.place(low)
    stop = last if high == ruler.scale.values[-1] else ruler.place(high)
    middle = (ruler.place(low) + ruler.place(high)) / 2
    return [(low, start, middle), (high, middle, stop)]


def _owner(rulers: tuple[Ruler, Ruler], corner: Cell, leaf: Leaf, existing: frozenset[Cell]) -> Cell | None:
    """The cell at a corner. The nearest replaces one that refinement has not reached yet; a gap in the table stays empty."""
    if corner in existing:
        return corner
    if all(value in ruler.scale.values for ruler, value in zip(rulers, corner, strict=True)):
        return None

    def far(cell: Cell) -> float:
        sides = zip(rulers, cell, corner, leaf.box, strict=True)
        return sum(
            abs(ruler.place(value) - ruler.place(end)) / ((ruler.place(side[1]) - ruler.place(side[0])) or 1.0)
            for ruler, value, end, side in sides
        )

    return min(leaf.cells, key=far, default=None)


def _merged(rects: Iterable[Rect], low: str, high: str, across: slice) -> list[Rect]:
    """Neighbours along one axis, from `low` to `high`, made one where they are alike `across` it."""
    merged: list[Rect] = []
    for rect in sorted(rects, key=lambda r: (r[across], getattr(r, low))):
        if merged and merged[-1][across] == rect[across] and getattr(merged[-1], high) == getattr(rect, low):
            merged[-1] = merged[-1]._replace(**{high: getattr(rect, high)})
        else:
            merged.append(rect)
    return merged
