"""What all phase diagrams share: where values lie, colours of cells, ticks, titles."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stagescope.diagrams.areas import Ruler
from stagescope.diagrams.numbers import EMPTY, OTHER
from stagescope.diagrams.scale import ValueScale, mark_text
from stagescope.reporting.static_draw import plain
from stagescope.sweeping.boxes import Scale
from stagescope.views.figure import Numbers
from stagescope.views.palette import CATEGORIES, colour_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEFT = "#9b9b9b"
"""Categories that have no colour of their own."""
START = "#e6a3b3"
"""What was there at the start: on neither map of colours."""
FOOT = 0.1
"""Share of the ramp of numbers that is left out: its pale end is the colour of the paper, and of cells that do not exist."""
FIXED = {"confirmed": CATEGORIES[2], "violated": CATEGORIES[1], "inconclusive": CATEGORIES[4], "not applicable": LEFT}
LETTER, LINE = 0.072, 0.17
"""Inches of a letter and of a line beside an axis."""
LETTERS_PER_INCH = 15.5
"""Of a legend."""


def ruler(axis: Mapping[str, Any]) -> Ruler:
    return Ruler(Scale(axis["kind"], tuple(axis["values"])))


def all_cells(numbers: Numbers) -> list[dict[str, Any]]:
    return [cell for panel in numbers["panels"] for cell in panel["cells"]]


def at_text(values: Mapping[str, Any]) -> str:
    return plain(", ".join(f"{name} = {word(value)}" for name, value in values.items()), 60)


def word(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def folded(text: str, width: int, lines: int = 4) -> str:
    """In lines of a width; of what is too long the middle is left out, because lists of stages differ in their ends."""
    room = width * lines
    half = (room - 3) // 2 - width // 4  # lines break at words, so that not all of the room is used
    first, last = text[:half].rpartition(" ")[0] or text[:half], text[-half:].partition(" ")[2] or text[-half:]  # whole words
    whole = text if len(text) <= room - width // 2 else f"{first} … {last}"
    return "\n".join(plain(line, width + 1) for line in textwrap.wrap(whole, width)) or plain(text)


def distinct(names: Sequence[str], width: int) -> list[str]:
    """Names folded; where shortened ones would be the same, each has its number among them, as it has in the numbers."""
    found = [folded(name, width) for name in names]
    return [folded(f"{i + 1}. {name}", width) if found.count(found[i]) > 1 else found[i] for i, name in enumerate(names)]


def title(numbers: Numbers, inches: float) -> str:
    """What is drawn, where other axes are cut, and what a reader must know, in lines that fit a width."""
    free = numbers["panels"][0]["at"] if len(numbers["panels"]) == 1 else {}
    cut = at_text({**numbers["at"], **free})
    width = int(12.5 * inches)  # letters of a title per inch
    said = [f"{numbers['study']}: {numbers['color']}{_statistic(numbers)}", cut, *numbers["notes"]]
    return "\n".join(folded(line, width) for line in said if line)


def axis_name(axis: Mapping[str, Any]) -> str:
    return plain(axis["name"]) + (" (values at equal distances)" if ruler(axis).ordinal else "")


def _statistic(numbers: Numbers) -> str:
    counts = sorted({cell["rows"] for cell in all_cells(numbers)})
    if counts[-1] == 1:
        return ""
    seeds = f"{counts[-1]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    if numbers["kind"] != "word":
        return f", median of {seeds}"
    known = any(cell["known"] for cell in all_cells(numbers))
    return f", most frequent of {seeds}" if known and numbers["y"] is not None else f", {seeds}"


class NumberColors:
    """Colours of numbers: the darker the higher, or around zero where both signs occur."""

    def __init__(self, values: Sequence[float]) -> None:
        self.scale = ValueScale(values)
        signed = self.scale.signed
        self.map = colour_map(signed, 0.0 if signed else FOOT)

    def __call__(self, value: float) -> Any:
        return self.map(self.scale.place(value))


class NameColors:
    def __init__(self, names: Sequence[str]) -> None:
        free = iter(CATEGORIES)
        fixed = FIXED if set(names) <= FIXED.keys() else {}
        self.of = {name: fixed.get(name) or (LEFT if name == OTHER else next(free)) for name in names}

    def __call__(self, value: str) -> Any:
        return self.of.get(value, LEFT)


def label_of(numbers: Numbers) -> str:
    return plain(numbers["color"], 50) + (f" (in {plain(' or '.join(numbers['clocks']))})" if numbers["clocks"] else "")


def scaled_values(numbers: Numbers) -> list[float]:
    """The values that a scale of numbers is made for; what was there at the start is on none."""
    return [cell["value"] for cell in all_cells(numbers) if cell["value"] is not None and not cell.get("start")]


Colors = NumberColors | NameColors


def colors_of(numbers: Numbers) -> Colors:
    return NameColors(numbers["categories"]) if numbers["kind"] == "word" else NumberColors(scaled_values(numbers))


def ticks(axes: "Axes", axis: Any, ruler: Ruler, letter: str, length: float) -> None:
    """Ticks at the values of the grid where their labels fit into `length` inches; else at round numbers or powers of ten."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    values = ruler.scale.values
    if ruler.log:
        getattr(axes, f"set_{letter}scale")("log")
    getattr(axes, f"set_{letter}lim")(*map(ruler.on_axis, ruler.reach))
    named = ruler.scale.kind == "categorical"
    texts = [plain(str(value) if named else word(value), 24) for value in values]
    first, last = ruler.reach
    inches = [(ruler.place(value) - first) / (last - first) * length for value in values]
    turned = letter == "x" and named and max(map(len, texts)) > 6
    rooms = [LETTER * len(text) + 0.08 if letter == "x" and not turned else LINE for text in texts]
    kept = _apart(inches, rooms)
    if not named and not ruler.ordinal and (len(values) > 12 or len(kept) < len(values)):
        if ruler.log:
            marks = ValueScale([ruler.on_axis(first), ruler.on_axis(last)]).marks(max(2, int(length / 0.5)))
            axis.set_ticks(marks, [mark_text(mark) for mark in marks])
            axis.set_minor_formatter(NullFormatter())
        return
    axis.set_major_locator(FixedLocator([ruler.place_on_axis(values[i]) for i in kept]))
    axis.set_major_formatter(FuncFormatter(lambda _, at: texts[kept[at]] if at is not None and at < len(kept) else ""))
    rest = [ruler.place_on_axis(value) for i, value in enumerate(values) if i not in kept]
    axis.set_minor_locator(FixedLocator(rest) if rest else NullLocator())
    axis.set_minor_formatter(NullFormatter())
    if turned:
        axis.set_tick_params(rotation=30)


def _apart(places: Sequence[float], rooms: Sequence[float]) -> list[int]:
    """Which labels to write, from the first on, so that none touches the one before."""
    kept: list[int] = []
    for i, (place, room) in enumerate(zip(places, rooms, strict=True)):
        if not kept or place - places[kept[-1]] >= (room + rooms[kept[-1]]) / 2:
            kept.append(i)
    return kept


def present(numbers: Numbers) -> dict[str, str]:
    """The categories that are drawn, in their order, with their labels in the legend."""
    seen = {name for cell in all_cells(numbers) for name in cell["shares"]}
    own = {name: name or EMPTY for name in numbers["categories"] if name in seen and name != OTHER}
    rest = len(seen - own.keys())
    return {**own, OTHER: f"{rest} other{'s' if rest > 1 else ''}"} if rest else own
