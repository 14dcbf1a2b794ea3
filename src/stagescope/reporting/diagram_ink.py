"""What all phase diagrams share: where values lie, colours of cells, ticks, titles."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stagescope.figures.figure import COLORS, Numbers
from stagescope.reporting.areas import Ruler
from stagescope.reporting.diagram_numbers import EMPTY, OTHER
from stagescope.reporting.static_draw import plain
from stagescope.sweeping.boxes import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEFT = "#9b9b9b"
"""Categories that have no colour of their own."""
FIXED = {"confirmed": COLORS[2], "violated": COLORS[1], "inconclusive": COLORS[4], "not applicable": "#c9c9c9"}
DECADES = 10.0
"""Ratio of the largest to the smallest value from which colours are logarithmic."""
MOST_TICKS = 12


def ruler(axis: Mapping[str, Any]) -> Ruler:
    return Ruler(Scale(axis["kind"], tuple(axis["values"])))


def all_cells(numbers: Numbers) -> list[dict[str, Any]]:
    return [cell for panel in numbers["panels"] for cell in panel["cells"]]


def at_text(values: Mapping[str, Any]) -> str:
    return plain(", ".join(f"{name} = {word(value)}" for name, value in values.items()), 60)


def word(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def title(numbers: Numbers) -> str:
    free = numbers["panels"][0]["at"] if len(numbers["panels"]) == 1 else {}
    cut = at_text({**numbers["at"], **free})
    seeds = max(cell["rows"] for cell in all_cells(numbers))
    which = "median of " if numbers["kind"] == "number" else "most frequent of " if numbers["y"] is not None else ""
    said = f", {which}{seeds} seeds" if seeds > 1 else ""
    return plain(f"{numbers['study']}: {numbers['color']}{said}", 90) + (f"\n{cut}" if cut else "")


class NumberColors:
    """Colours of numbers: linear or logarithmic from the smallest to the largest, around zero where both signs occur."""

    def __init__(self, values: Sequence[float]) -> None:
        import matplotlib
        from matplotlib.colors import LogNorm, Normalize

        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        self.constant = low == high
        self.log = low > 0 and high > DECADES * low
        if low < 0 < high:
            size = max(-low, high)
            self.norm: Normalize = Normalize(-size, size)
        elif self.log:
            self.norm = LogNorm(low, high)
        else:
            self.norm = Normalize(low, high if high > low else low + 1.0)
        self.map = matplotlib.colormaps["PuOr_r" if low < 0 < high else "viridis"]

    def __call__(self, value: float) -> Any:
        return self.map(0.35) if self.constant else self.map(self.norm(value))


class NameColors:
    def __init__(self, names: Sequence[str]) -> None:
        free = iter(COLORS)
        fixed = FIXED if set(names) <= FIXED.keys() else {}
        self.of = {name: fixed.get(name) or (LEFT if name == OTHER else next(free)) for name in names}

    def __call__(self, value: str) -> Any:
        return self.of.get(value, LEFT)


def round_marks(low: float, high: float) -> list[float]:
    """1, 2 and 5 in every decade of a range; powers of ten alone where that would be many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    leading = (1, 2, 5) if len(powers) <= 4 else (1,)
    return [digit * 10.0**power for power in powers for digit in leading if low <= digit * 10.0**power <= high]


def label_of(numbers: Numbers) -> str:
    return plain(numbers["color"], 50) + (f" (in {plain(numbers['clock'])})" if numbers["clock"] else "")


def colors_of(numbers: Numbers) -> "NumberColors | NameColors":
    if numbers["kind"] == "number":
        return NumberColors([cell["value"] for cell in all_cells(numbers) if cell["value"] is not None])
    return NameColors(numbers["categories"])


def ticks(axes: "Axes", axis: Any, ruler: Ruler, letter: str) -> None:
    """Values of the grid where they fit; on a logarithmic axis powers of ten if the values are many."""
    values = ruler.scale.values
    if ruler.log:
        getattr(axes, f"set_{letter}scale")("log")
    getattr(axes, f"set_{letter}lim")(*map(ruler.on_axis, ruler.reach))
    if ruler.scale.kind == "categorical":
        step = -(-len(values) // 30)
        axis.set_ticks(range(0, len(values), step), [plain(str(value), 24) for value in values[::step]])
        if letter == "x" and max(len(str(value)) for value in values) > 6:
            axis.set_tick_params(rotation=30)
    elif len(values) <= MOST_TICKS // 2 or (len(values) <= MOST_TICKS and max(len(word(v)) for v in values) < 4):
        axis.set_ticks(values, [word(value) for value in values])
        axis.set_ticks([], minor=True)


def present(numbers: Numbers) -> dict[str, str]:
    """The categories that are drawn, in their order, with what is said of them."""
    seen = {name for cell in all_cells(numbers) for name in cell["shares"]}
    own = {name: name or EMPTY for name in numbers["categories"] if name in seen and name != OTHER}
    rest = len(seen - own.keys())
    return {**own, OTHER: f"{rest} other{'s' if rest > 1 else ''}"} if rest else own
