"""Axes of a sweep, one swept option each, and the space between their values: boxes with cells at their corners."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from stagescope.core.errors import InputError, unknown
from stagescope.core.options import field_name
from stagescope.readings.study import Study

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
        between = math.sqrt(low) * math.sqrt(high) if self.kind in ("log", "log integer") else low + (high - low) / 2
        if self.kind in ("integer", "log integer"):
            between = round(between)
        # Without the last digits that only rounding made: half-way from .2 to .4 is .3. A grid has twelve digits, and so
        # half-way ten: the middle of 10^-1.5 and 10^1.5 is 1.
        elif low < (short := float(f"{between:.10g}")) < high:
            between = short
        return between if low < between < high else None

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
    sides = {
        tuple(cell[i] for i in tight)
        for cell in cells
        if all(box[i][0] < cell[i] < box[i][1] for i in free)  # type: ignore[operator]
    }
    return all(ends in sides for ends in product(*(dict.fromkeys(box[i]) for i in tight)))


Value = float | int | str | bool | None
"""One value of a swept option."""
MOST_POINTS = 1_000_000
"""Of a sweep unless it is meant, and of one axis."""
FORMS = "a list a,b,c, equally spaced lo:hi:n, or geometrically lo:hi:n:log"


class Axis(BaseModel):
    """One swept option: an element of a list is `pi.0`. `kind` says how its values lie, and so what lies half-way."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: Kind
    values: tuple[Value, ...]


def grid_axis(study: Study, name: str, given: str | Sequence[Value]) -> Axis:
    """An axis as `--grid` or Python gives it: text in one of three forms, or the values themselves."""
    name = field_name(name)
    parts = _parts(_kind(study, name))
    spaced = isinstance(given, str) and ":" in given and bool({int, float} & parts)
    if isinstance(given, str):
        raw: list[Any] = _spaced(name, given) if spaced else [word.strip() for word in given.split(",") if word.strip()]
        raw = [round(value) for value in raw] if spaced and float not in parts else raw
    else:
        raw = [given] if isinstance(given, int | float) else list(given)
    values = checked(study, name, raw)
    if len(set(values)) < len(values) and not spaced:
        raise InputError(f"grid {name}={given}: a value is given twice")
    log = isinstance(given, str) and spaced and given.endswith(":log")
    return Axis(name=name, kind=kind_of(values, log), values=ordered(values))


def checked(study: Study, name: str, raw: Sequence[Any], where: Callable[[int], str] = lambda place: "") -> list[Value]:
    """Values of the option's own type and within its limits; at least one. `where` names the place of a value in errors."""
    if not raw:
        raise InputError(f"grid {name} is empty; give {FORMS}")
    option, place = split(name)
    kind, limits = _kind(study, name), study.options.model_fields[option].metadata
    annotated: Any = Annotated[(kind, *limits)] if limits and place is None else kind
    adapter, values = TypeAdapter(annotated, config=ConfigDict(allow_inf_nan=False)), []
    for place, raw_value in enumerate(raw):
        try:
            value = adapter.validate_python(None if isinstance(raw_value, str) and raw_value.lower() == "none" else raw_value)
        except ValidationError as error:
            problem = error.errors()[0]["msg"].replace("Input should", "must")
            raise InputError(f"{where(place) or 'grid '}{name}: {problem}, got {raw_value!r}") from None
        # -0 is 0, and the same point
        values.append(value + 0.0 if isinstance(value, float) else study.options.anchored(name, value))
    return values


def _spaced(name: str, text: str) -> list[float]:
    parts = text.split(":")
    try:
        low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
        if len(parts) > 4 or (len(parts) == 4 and parts[3] != "log"):
            raise ValueError
    except (ValueError, IndexError):
        raise InputError(f"grid {name}={text} is none of: {FORMS}") from None
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"grid {name}={text}: ends must be finite")
    if not 1 <= count <= MOST_POINTS:
        empty = "is empty" if count < 1 else f"has more than {MOST_POINTS:,} values"
        raise InputError(f"grid {name}={text} {empty}; the number of values n in lo:hi:n is from 1 to {MOST_POINTS:,}")
    if (count == 1) != (low == high):
        raise InputError(f"grid {name}={text}: {count} value{'s' if count > 1 else ''} from {low:g} to {high:g}")
    if count == 1:
        return [low]
    if len(parts) == 3:
        size = max(abs(low), abs(high))
        return [low, *(_clean(low + (high - low) * i / (count - 1), size) for i in range(1, count - 1)), high]
    if min(low, high) <= 0:
        raise InputError(f"grid {name}={text}: geometric spacing needs ends above 0")
    between = [low * (high / low) ** (i / (count - 1)) for i in range(1, count - 1)]
    return [low, *(_clean(value, value) for value in between), high]


def _clean(value: float, size: float) -> float:
    """Without the digits that only rounding made, as a person would type it: .1:.9:9 has .3, not .30000000000000004.

    They are counted from the larger end, so that a grid through 0 has 0 itself.
    """
    short = float(f"{value:.12g}")
    return 0.0 if abs(short) < 1e-13 * size else short


def kind_of(values: Sequence[Value], log: bool = False) -> Kind:
    """How the values of an axis lie: numbers have an order and a middle, words and switches do not."""
    if any(value is None or isinstance(value, bool | str) for value in values):
        return "categorical"
    if all(isinstance(value, int) for value in values):
        return "log integer" if log else "integer"
    return "log" if log else "linear"


def ordered(values: Iterable[Value]) -> tuple[Value, ...]:
    """Each once: numbers ascending, categories as they came."""
    unique = list(dict.fromkeys(values))
    return tuple(unique) if kind_of(unique) == "categorical" else tuple(sorted(unique))  # type: ignore[type-var]


def merged(axes: Sequence[Axis]) -> Axis:
    """One axis that holds the values of several of the same name."""
    values = ordered(value for axis in axes for value in axis.values)
    log = all(axis.kind.startswith("log") for axis in axes)
    return Axis(name=axes[0].name, kind=kind_of(values, log), values=values)


def spelled(value: Value) -> str:
    """A value as a person writes it."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def split(name: str) -> tuple[str, int | None]:
    """`pi.0` is element 0 of the option pi."""
    option, dot, place = name.partition(".")
    return option, int(place) if dot and place.isdecimal() else (-1 if dot else None)


def _kind(study: Study, name: str) -> Any:
    """The type of one value of a swept option; an error where it has none."""
    option, place = split(name)
    fields = study.options.model_fields
    if option not in fields:
        raise unknown(f"option of {study.name}", option, fields)
    kind = fields[option].annotation
    if Path in _parts(kind):
        raise InputError(f"{name} is a file and cannot be swept; sweep each file into a folder of its own")
    if get_origin(kind) is not tuple:
        if place is not None:
            raise InputError(f"{option} is no list, so {name} cannot be swept; sweep {option}")
        return kind
    if place is None or place < 0:
        raise InputError(f"{option} is a list, so {name} cannot be swept; sweep its elements {option}.0, {option}.1, ...")
    return get_args(kind)[0]


def _parts(kind: Any) -> set[Any]:
    """The types of `float | None` and the like."""
    return {kind, *get_args(kind)}
