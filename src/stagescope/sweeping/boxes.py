"""The space between the cells of a sweep: boxes with cells at their corners, halved where a refinement put cells inside.

A sweep begins with a grid. Its boxes lie between neighbouring values of every axis. Refinement puts cells into the middle of a
box and of its sides, which makes smaller boxes: a tree of boxes, and the smallest are its leaves. An axis without an order, or
of a single value, has no extent: boxes lie at each of its values and never between them.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any, Literal, NamedTuple

Kind = Literal["linear", "log", "integer", "log integer", "categorical"]
Cell = tuple[Hashable, ...]
"""One value for each axis."""
Interval = tuple[Any, Any]
"""Lower and upper end along one axis; both the same where the axis has no extent."""
Box = tuple[Interval, ...]


@dataclass(frozen=True)
class Scale:
    """How the values of one axis lie, and the values the sweep began with: in ascending order, categories in their own."""

    kind: Kind
    values: tuple[Any, ...]

    def middle(self, low: Any, high: Any) -> Any:
        """The value half-way between two; None if there is none: between categories, neighbouring integers, equal values."""
        if self.kind == "categorical" or low == high:
            return None
        found = math.sqrt(low) * math.sqrt(high) if self.kind in ("log", "log integer") else low + (high - low) / 2
        found = round(found) if self.kind in ("integer", "log integer") else _clean(low, found, high)
        return found if low < found < high else None

    @property
    def extended(self) -> bool:
        """Whether anything lies between its values."""
        return self.kind != "categorical" and len(self.values) > 1

    def share(self, low: Any, high: Any) -> float:
        """The length of an interval as a share of the axis."""
        first, last = self.values[0], self.values[-1]
        if self.kind in ("log", "log integer"):
            return math.log(high / low) / math.log(last / first)
        return (high - low) / (last - first)

    @cached_property
    def intervals(self) -> list[Interval]:
        """Between neighbouring values; for categories, and for a single value, at each."""
        if not self.extended:
            return [(value, value) for value in self.values]
        return list(pairwise(self.values))

    def around(self, value: Any) -> range:
        """Numbers of the intervals a value belongs to: two where it is the end of both, none where it is outside."""
        if not self.extended:
            return range(*((place := self.values.index(value)), place + 1)) if value in self.values else range(0)
        if not self.values[0] <= value <= self.values[-1]:
            return range(0)
        first = max(bisect_left(self.values, value) - 1, 0)
        return range(first, min(bisect_right(self.values, value), len(self.intervals)))


def _clean(low: float, middle: float, high: float) -> float:
    """Without the last digits that only rounding made: half-way from .2 to .4 is .3.

    A grid has twelve digits, and so half-way ten: the middle of 10^-1.5 and 10^1.5 is 1.
    """
    short = float(f"{middle:.10g}")
    return short if low < short < high else middle


class Leaf(NamedTuple):
    """A box that is not halved, with all cells in it: at its corners and, where its neighbours are halved, on its sides."""

    box: Box
    cells: list[Cell]


def leaves(scales: Sequence[Scale], cells: Iterable[Cell]) -> Iterator[Leaf]:
    """All boxes that are not halved; those without any cell are left out."""
    inside: dict[tuple[int, ...], list[Cell]] = {}
    for cell in cells:
        for place in product(*(scale.around(value) for scale, value in zip(scales, cell, strict=True))):
            inside.setdefault(place, []).append(cell)
    for place in sorted(inside):
        yield from _halved(scales, tuple(scale.intervals[i] for scale, i in zip(scales, place, strict=True)), inside[place])


def _halved(scales: Sequence[Scale], box: Box, cells: list[Cell]) -> Iterator[Leaf]:
    middles = middles_of(scales, box)
    if not _is_halved(box, middles, cells):
        yield Leaf(box, cells)
        return
    parts = [(side,) if mid is None else ((side[0], mid), (mid, side[1])) for side, mid in zip(box, middles, strict=True)]
    for part in product(*parts):
        yield from _halved(scales, part, [cell for cell in cells if _within(cell, part)])


def _within(cell: Cell, box: Box) -> bool:
    return all(low == value or low < value <= high for value, (low, high) in zip(cell, box, strict=True))  # type: ignore[operator]


def middles_of(scales: Sequence[Scale], box: Box) -> list[Any]:
    return [scale.middle(*side) for scale, side in zip(scales, box, strict=True)]


def _is_halved(box: Box, middles: Sequence[Any], cells: Sequence[Cell]) -> bool:
    """Whether cells lie strictly between the ends of every side that has a middle.

    A side of two neighbouring integers has none: then they must lie so at both of its ends, or they are of a neighbour.
    """
    free = [i for i, middle in enumerate(middles) if middle is not None]
    tight = [i for i, middle in enumerate(middles) if middle is None]
    if not free:
        return False
    found = {
        tuple(cell[i] for i in tight)
        for cell in cells
        if all(box[i][0] < cell[i] < box[i][1] for i in free)  # type: ignore[operator]
    }
    return all(ends in found for ends in product(*(dict.fromkeys(box[i]) for i in tight)))
