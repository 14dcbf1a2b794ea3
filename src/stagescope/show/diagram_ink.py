"""Ink of a phase diagram. Over two axes every cell is the area it covers; over one, medians with their intervals.

Words over one axis are a row for each category with shares of seeds. Cells without a median stand in lanes of their own: above
the values those that a longer run might give one, below them those that were there at the start, failed, or have none. A curve
is broken there, and its interval open upwards where it has no end.
"""

import math
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.core.spec import Json
from stagescope.show.diagram_areas import Ruler, ValueScale, areas, mark_text, powers, steps
from stagescope.show.diagram_numbers import AT_START, EMPTY, OTHER, disagree
from stagescope.show.static_draw import plain
from stagescope.sweeping.axes import Scale
from stagescope.sweeping.columns import CLOCKED
from stagescope.views.figure import CATEGORIES, COLORS, GREY, Numbers, colour_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

UNCOLOURED = "#9b9b9b"
"""Categories that have no colour of their own."""
START = "#e6a3b3"
"""What was there at the start: on neither map of colours."""
FIXED = {"confirmed": CATEGORIES[2], "violated": CATEGORIES[1], "inconclusive": CATEGORIES[4], "not applicable": UNCOLOURED}


def ruler(axis: Json) -> Ruler:
    return Ruler(Scale(axis["kind"], tuple(axis["values"])))


def all_cells(numbers: Numbers) -> list[dict[str, Any]]:
    return [cell for panel in numbers["panels"] for cell in panel["cells"]]


def at_text(values: Json) -> str:
    return plain(", ".join(f"{name} = {word(value)}" for name, value in values.items()), 60)


def word(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def folded(text: str, width: int) -> str:
    """In four lines of a width; of what is too long the middle is left out, because lists of stages differ in their ends."""
    room = 4 * width
    half = (room - 3) // 2 - width // 4  # lines break at words, so that not all of the room is used
    first, last = text[:half].rpartition(" ")[0] or text[:half], text[-half:].partition(" ")[2] or text[-half:]  # whole words
    shortened = text if len(text) <= room - width // 2 else f"{first} … {last}"
    return "\n".join(plain(line, width + 1) for line in textwrap.wrap(shortened, width)) or plain(text)


def distinct(names: Sequence[str], width: int) -> list[str]:
    """Names folded; where shortened ones would be the same, each has its number among them, as it has in the numbers."""
    short_names = [folded(name, width) for name in names]
    return [
        folded(f"{i + 1}. {name}", width) if short_names.count(short_names[i]) > 1 else short_names[i]
        for i, name in enumerate(names)
    ]


def title(numbers: Numbers, inches: float) -> str:
    """What is drawn, where other axes are cut, and what a reader must know, in lines that fit a width."""
    free = numbers["panels"][0]["at"] if len(numbers["panels"]) == 1 else {}
    cut = at_text({**numbers["at"], **free})
    width = int(12.5 * inches)  # letters of a title per inch
    counts, some_known = sorted({cell["rows"] for cell in all_cells(numbers)}), any(cell["known"] for cell in all_cells(numbers))
    seeds = f"{counts[-1]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    if numbers["kind"] != "word":
        seeds = f"median of {seeds}"
    elif some_known and numbers["y"] is not None:
        seeds = f"most frequent of {seeds}"
    statistic = "" if counts[-1] == 1 else f", {seeds}"
    lines = [f"{numbers['study']}: {numbers['color']}{statistic}", cut, *numbers["notes"]]
    return "\n".join(folded(line, width) for line in lines if line)


def axis_name(axis: Json) -> str:
    return plain(axis["name"]) + (" (values at equal distances)" if ruler(axis).ordinal else "")


class NumberColors:
    """Colours of numbers: the darker the higher, or around zero where both signs occur."""

    def __init__(self, values: Sequence[float]) -> None:
        self.scale = ValueScale(values)
        signed = self.scale.signed
        # without its pale tenth, the colour of the paper and of cells that do not exist
        self.map = colour_map(signed, 0.0 if signed else 0.1)

    def __call__(self, value: float) -> Any:
        return self.map(self.scale.place(value))


class NameColors:
    def __init__(self, names: Sequence[str]) -> None:
        free = iter(CATEGORIES)
        fixed = FIXED if set(names) <= FIXED.keys() else {}
        self.by_name = {name: fixed.get(name) or (UNCOLOURED if name == OTHER else next(free)) for name in names}

    def __call__(self, value: str) -> Any:
        return self.by_name.get(value, UNCOLOURED)


def label_of(numbers: Numbers) -> str:
    return plain(numbers["color"], 50) + (f" (in {plain(' or '.join(numbers['clocks']))})" if numbers["clocks"] else "")


def scaled_values(numbers: Numbers) -> list[float]:
    """The values that a scale of numbers is made for; what was there at the start is on none."""
    return [cell["value"] for cell in all_cells(numbers) if cell["value"] is not None and not cell.get("start")]


Colors = NumberColors | NameColors


def colors_of(numbers: Numbers) -> Colors:
    return NameColors(numbers["categories"]) if numbers["kind"] == "word" else NumberColors(scaled_values(numbers))


def ticks(axes: "Axes", ruler: Ruler, letter: str, length: float) -> None:
    """Ticks at the values of the grid where their labels fit into `length` inches; else at round numbers or powers of ten."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    values, axis = ruler.scale.values, getattr(axes, f"{letter}axis")
    if ruler.log:
        getattr(axes, f"set_{letter}scale")("log")
    getattr(axes, f"set_{letter}lim")(*map(ruler.on_axis, ruler.reach))
    named = ruler.scale.kind == "categorical"
    texts = [plain(str(value) if named else word(value), 24) for value in values]
    first, last = ruler.reach
    inches = [(ruler.place(value) - first) / (last - first) * length for value in values]
    turned = letter == "x" and named and max(map(len, texts)) > 6
    rooms = [0.072 * len(text) + 0.08 if letter == "x" and not turned else 0.17 for text in texts]  # inches, of a line .17
    labelled: list[int] = []  # labels to write, from the first on, so that none touches the one before
    for i, (place, room) in enumerate(zip(inches, rooms, strict=True)):
        if not labelled or place - inches[labelled[-1]] >= (room + rooms[labelled[-1]]) / 2:
            labelled.append(i)
    if not named and not ruler.ordinal and (len(values) > 12 or len(labelled) < len(values)):
        if ruler.log:
            marks = ValueScale([ruler.on_axis(first), ruler.on_axis(last)]).marks(max(2, int(length / 0.5)))
            axis.set_ticks(marks, [mark_text(mark) for mark in marks])
            axis.set_minor_formatter(NullFormatter())
        return
    axis.set_major_locator(FixedLocator([ruler.place_on_axis(values[i]) for i in labelled]))
    axis.set_major_formatter(
        FuncFormatter(lambda _, place: texts[labelled[place]] if place is not None and place < len(labelled) else "")
    )
    unlabelled = [ruler.place_on_axis(value) for i, value in enumerate(values) if i not in labelled]
    axis.set_minor_locator(FixedLocator(unlabelled) if unlabelled else NullLocator())
    axis.set_minor_formatter(NullFormatter())
    if turned:
        axis.set_tick_params(rotation=30)


def present(numbers: Numbers) -> dict[str, str]:
    """The categories that are drawn, in their order, with their labels in the legend."""
    occurring = {name for cell in all_cells(numbers) for name in cell["shares"]}
    labels = {name: name or EMPTY for name in numbers["categories"] if name in occurring and name != OTHER}
    rare = len(occurring - labels.keys())
    return {**labels, OTHER: f"{rare} other{'s' if rare > 1 else ''}"} if rare else labels


ABSENT = {"not reached": "#e3e3e3", "in progress": "#c8d3dc", "none": "#efe4d0"}
"""Where runs reached their end and there is no value, by why."""
INK = "#1b1d22"
HATCH = "//////"


def draw_maps(numbers: Numbers) -> "Drawing":
    from matplotlib import pyplot

    panels = numbers["panels"]
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    size, inside = (1.0 + 2.9 * columns, 0.7 + 2.7 * rows), (2.5, 1.9)
    if len(panels) == 1:
        size, inside = (5.4, 4.0), (4.0, 2.8)
    drawing, grid = pyplot.subplots(rows, columns, figsize=size, squeeze=False, sharex=True, sharey=True, layout="constrained")
    colors = colors_of(numbers)
    x, y = ruler(numbers["x"]), ruler(numbers["y"])
    for axes, panel in zip(grid.flat, panels, strict=False):
        _map(axes, panel["cells"], x, y, colors)
        if "boundary" in panel:
            # A line of theory, dark in a light one, seen on any colour; where it has no place it is broken.
            line = panel["boundary"]
            ends = [(ruler(numbers[letter]), line[numbers[letter]["name"]]) for letter in ("x", "y")]
            places = [[math.nan if v is None else ruler.place_on_axis(v) for v in values] for ruler, values in ends]
            for color, width in (("white", 3.6), (INK, 1.6)):
                axes.plot(*places, color=color, lw=width, zorder=4)
        ticks(axes, x, "x", inside[0])
        ticks(axes, y, "y", inside[1])
        axes.set_title(at_text(panel["at"]) if len(panels) > 1 else "")
    all_axes = list(grid.flat)
    used_axes = all_axes[: len(panels)]
    for axes in all_axes[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel(axis_name(numbers["y"]))
    for axes in used_axes[-columns:]:
        axes.set_xlabel(axis_name(numbers["x"]))
        axes.tick_params(labelbottom=True)
    _keys(drawing, numbers, colors, used_axes)
    drawing.suptitle(title(numbers, size[0]), fontsize=9.5, x=0.01, ha="left")
    return drawing


def _map(axes: "Axes", cells: Sequence[Json], x: Ruler, y: Ruler, colors: Colors) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    areas_of_cells = areas(x, y, [(cell["x"], cell["y"]) for cell in cells])
    plain_patches, shades, hatched = [], [], []
    for cell in cells:
        for rect in areas_of_cells.get((cell["x"], cell["y"]), ()):
            (x_low, x_high), (y_low, y_high) = map(x.on_axis, rect[:2]), map(y.on_axis, rect[2:])
            patch = Rectangle((x_low, y_low), x_high - x_low, y_high - y_low)
            if cell["lack"] == "failed":
                hatched.append(patch)
            else:
                plain_patches.append(patch)
                shades.append(shade(cell, colors))
    everything = PatchCollection([*plain_patches, *hatched], facecolors="none", edgecolors=GREY, linewidths=1.2, zorder=0.9)
    axes.add_collection(everything)  # of it shows what borders on blank: a pale cell is not taken for one that does not exist
    # the thin edge closes the hairlines that readers of PDF leave between neighbours
    axes.add_collection(PatchCollection(plain_patches, facecolors=shades, edgecolors=shades, linewidths=0.25, zorder=1))
    if hatched:
        outline = Path.make_compound_path(*(patch.get_patch_transform().transform_path(patch.get_path()) for patch in hatched))
        axes.add_patch(PathPatch(outline, facecolor="white", edgecolor=GREY, hatch=HATCH, lw=0, zorder=2))
    torn = [cell for cell in cells if disagree(cell)]
    places = [x.place_on_axis(cell["x"]) for cell in torn], [y.place_on_axis(cell["y"]) for cell in torn]
    axes.plot(*places, "o", ms=2.3, color=INK, mec="white", mew=0.5, zorder=3)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(0.6)


def shade(cell: Json, colors: Colors) -> Any:
    """The colour of a cell that did not fail."""
    if cell["lack"] is not None:
        return ABSENT[cell["lack"]]
    return START if cell.get("start") else colors(cell["value"])


def _keys(drawing: "Drawing", numbers: Numbers, colors: Colors, grid: Sequence["Axes"]) -> None:
    """The bar of colours or the list of categories, and what hatching, grey and dots mean."""
    from matplotlib.patches import Patch

    width = _letters(drawing)
    handles: list[Any] = []
    if isinstance(colors, NameColors):
        label_by_name = present(numbers)
        labels = distinct(list(label_by_name.values()), width)
        handles += [Patch(color=colors.by_name[name], label=label) for name, label in zip(label_by_name, labels, strict=True)]
    elif values := scaled_values(numbers):
        if colors.scale.constant:
            handles.append(Patch(color=colors(values[0]), label=f"{values[0]:.5g} everywhere"))
        else:
            _bar(drawing, numbers, colors, grid)
    handles += _marks(numbers, width)
    if handles:
        columns = _legend(drawing, handles, 4 if len(grid) == 1 else 6, handlelength=1.4, handleheight=1.1)
        lines = sum(1 + handle.get_label().count("\n") for handle in handles) / columns
        drawing.set_figheight(drawing.get_figheight() + 0.15 * max(0.0, lines - 3))


def _letters(drawing: "Drawing") -> int:
    """Letters in a line of a legend."""
    return int(15.5 * drawing.get_figwidth()) - 4


def _legend(drawing: "Drawing", handles: Sequence[Any], limit: int, **looks: float) -> int:
    """A legend below a drawing; returns in how many columns, at most `most`, as the longest line of a label allows."""
    longest = max(len(line) for handle in handles for line in str(handle.get_label()).split("\n"))
    columns = max(1, min(len(handles), limit, _letters(drawing) // (longest + 3)))
    drawing.legend(handles=handles, loc="outside lower left", ncols=columns, **looks)
    return columns


def _bar(drawing: "Drawing", numbers: Numbers, colors: NumberColors, grid: Sequence["Axes"]) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    bar = drawing.colorbar(ScalarMappable(Normalize(0, 1), colors.map), ax=list(grid), fraction=0.06, pad=0.02, aspect=28)
    bar.set_label(label_of(numbers))
    bar.outline.set_linewidth(0.4)  # pyright: ignore[reportCallIssue]
    marks = colors.scale.marks()
    bar.set_ticks([colors.scale.place(mark) for mark in marks], labels=[mark_text(mark) for mark in marks], minor=False)
    bar.minorticks_off()


def _marks(numbers: Numbers, width: int) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    cells = all_cells(numbers)
    handles: list[Any] = []
    if any(cell.get("start") for cell in cells):
        handles.append(Patch(color=START, label=AT_START))
    handles += [Patch(color=ABSENT[lack], label=folded(sentence, width)) for lack, sentence in numbers["lacks"].items()]
    broken = [cell for cell in cells if cell["lack"] == "failed"]
    if broken:
        reasons = Counter(reason for cell in broken for reason in cell["reasons"])
        commonest = reasons.most_common(1)[0][0]
        label = commonest if len(reasons) == 1 else f"failed, for example: {commonest}"
        handles.append(Patch(facecolor="white", edgecolor=GREY, hatch=HATCH, lw=0.5, label=folded(label, width)))
    if line := numbers["panels"][0].get("boundary"):
        handles.append(Line2D([], [], color=INK, lw=1.6, label=folded(f"{line['name']}: {line['title']}", width)))
    if any(map(disagree, cells)):
        some = any(0 < cell["failed"] < cell["rows"] for cell in cells)
        handles.append(
            Line2D([], [], ls="", marker="o", ms=3, color=INK, label=f"seeds disagree{', or some failed' if some else ''}")
        )
    return handles


LANE = 0.075
"""Height of a lane, as a share of that of the values."""
MARKS = {"not reached": "^", "in progress": "^", "start": "D", "failed": "x", "none": "|"}
ABOVE, BELOW = CLOCKED, ("start", "failed", "none")


def draw_curves(numbers: Numbers) -> "Drawing":
    from matplotlib import pyplot

    words = numbers["kind"] == "word"
    names = distinct(list(present(numbers).values()), 44) if words else []
    width, height = 5.6, 1.9 + sum(0.16 + 0.14 * (1 + name.count("\n")) for name in names) if words else 3.4
    drawing, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
    x = ruler(numbers["x"])
    if words:
        _share_dots(axes, numbers, names, x)
    else:
        _value_curves(axes, numbers, x)
    ticks(axes, x, "x", 3.0 if words else 4.6)
    axes.set_xlabel(axis_name(numbers["x"]))
    handles = axes.get_legend_handles_labels()[0]
    if handles:
        columns = _legend(drawing, handles, 4)
        drawing.set_figheight(height + 0.16 * max(0, -(-len(handles) // columns) - 2))
    drawing.suptitle(title(numbers, width), fontsize=9.5, x=0.01, ha="left")
    return drawing


def state(cell: Json) -> str | None:
    """Why a cell stands in a lane; None where it is on the curve."""
    return "start" if cell.get("start") else cell["lack"]


def _value_curves(axes: "Axes", numbers: Numbers, x: Ruler) -> None:
    """Medians with their intervals, and the lanes."""
    panels = numbers["panels"]
    above, below = ([p for p in panels if any(state(c) in kinds for c in p["cells"])] for kinds in (ABOVE, BELOW))
    low, high = _limits(axes, numbers, len(above), len(below))
    share = LANE / (1 + LANE * (len(above) + len(below)))
    for color, panel in zip(COLORS, panels, strict=False):
        cells = sorted(panel["cells"], key=lambda cell: x.place(cell["x"]))
        across = np.array([x.place_on_axis(cell["x"]) for cell in cells])
        _curve(axes, cells, across, color, (low, high), connected=x.scale.kind != "categorical")
        if len(panels) > 1:
            axes.plot([], [], "o-", ms=3, color=color, label=at_text(panel["at"]))
        for kinds, lanes, first, step in ((ABOVE, above, 1 - share / 2, -share), (BELOW, below, share / 2, share)):
            for kind in kinds if panel in lanes else ():
                places = across[[state(cell) == kind for cell in cells]]
                place = np.full(len(places), first + step * lanes.index(panel))
                across_lane = axes.get_xaxis_transform()
                axes.plot(places, place, MARKS[kind], color=color, ms=5, mfc="none", transform=across_lane, zorder=4)
    if any(cell["interval"] for cell in all_cells(numbers)):
        label = f"{numbers['confidence']:.0%} bootstrap interval of the median"
        axes.fill_between([], [], color=GREY, alpha=0.3, lw=0, label=label)
    for kind, label in {**numbers["lacks"], "start": AT_START, "failed": "failed"}.items():
        if any(state(cell) == kind for cell in all_cells(numbers)):
            axes.plot([], [], MARKS[kind], color=GREY, ms=5, mfc="none", ls="", label=folded(label, 80))
    axes.set_ylabel(label_of(numbers))


def _limits(axes: "Axes", numbers: Numbers, above: int, below: int) -> tuple[float, float]:
    """Scale and ends of the axis of values, with room for lanes; returns where the values end."""
    from matplotlib.ticker import NullLocator

    values = scaled_values(numbers)
    scale = ValueScale(values)
    if scale.log and scale.signed:
        axes.set_yscale("symlog", linthresh=scale.least)
        marks = scale.marks()
        axes.set_yticks(marks, [mark_text(mark) for mark in marks])
    elif scale.log:
        axes.set_yscale("log")
    elif not values:
        axes.set_yticks([])
    spans = [end for cell in all_cells(numbers) for end in cell["interval"] or () if end is not None]
    positive = [value for value in [*values, *spans] if value > 0 or not scale.log or scale.signed] or [0.0, 1.0]
    transform = axes.yaxis.get_transform()
    low, high = transform.transform([min(positive), max(positive)])
    air = 0.05 * (high - low) or abs(high) * 0.1 or 0.5
    low, high = low - air, high + air
    lane = LANE * (high - low)
    axes.set_ylim(*transform.inverted().transform([low - below * lane, high + above * lane]))
    first, last = map(float, transform.inverted().transform([low, high]))
    if (above or below) and values and not (scale.log and scale.signed):  # no numbers beside the lanes
        marks = (powers if scale.log else steps)(first, last, 6)
        axes.set_yticks(marks, [mark_text(mark) for mark in marks])
        axes.yaxis.set_minor_locator(NullLocator())
    for end in [last] * bool(above) + [first] * bool(below):
        axes.axhline(end, color=GREY, lw=0.6, alpha=0.6)
    return first, last


def _curve(
    axes: "Axes", cells: Sequence[Json], across: np.ndarray, color: str, ends: tuple[float, float], connected: bool
) -> None:
    height = np.array([np.nan if state(cell) is not None else cell["value"] for cell in cells], float)
    spans = [cell["interval"] or (value, value) for cell, value in zip(cells, height, strict=True)]
    low, high = np.array([[span[0], ends[1] if span[1] is None else span[1]] for span in spans], float).T
    low = np.maximum(low, ends[0])
    axes.plot(across, height, f"o{'-' if connected else ''}", ms=3, color=color, zorder=3)
    if connected:
        axes.fill_between(across, low, high, color=color, alpha=0.18, lw=0, zorder=1)
    else:
        axes.vlines(across, low, high, color=color, alpha=0.5, lw=3, zorder=1)


def _share_dots(axes: "Axes", numbers: Numbers, labels: Sequence[str], x: Ruler) -> None:
    """A row for each category; the area of a dot is the share of seeds."""
    colors, names, cells = NameColors(numbers["categories"]), list(present(numbers)), all_cells(numbers)
    for cell in cells:
        place = x.place_on_axis(cell["x"])
        for name, share in cell["shares"].items():
            row = names.index(name) if name in names else len(names) - 1
            axes.scatter(place, row, s=44 * share["share"], color=colors(name), lw=0, zorder=3)
        if cell["failed"] or cell["lack"]:
            share = cell["failed"] / cell["rows"]
            axes.plot(place, -0.8, MARKS["failed" if share else "none"], color=GREY, ms=2.5 + 2.5 * (share or 1))
    axes.set_yticks(range(len(names)), labels)
    below = any(cell["failed"] or cell["lack"] for cell in cells)
    axes.set_ylim(-1.1 if below else -0.6, max(len(names), 1) - 0.4)
    if any(len(cell["shares"]) > 1 for cell in cells):
        axes.scatter([], [], s=22, color=GREY, lw=0, label="area: share of seeds")
    lanes = {kind: text for kind, text in numbers["lacks"].items() if kind == "none"}
    if any(cell["failed"] for cell in cells):
        some = any(0 < cell["failed"] < cell["rows"] for cell in cells)
        lanes = {"failed": "failed (small: some of the seeds)" if some else "failed", **lanes}
    for kind, text in lanes.items():
        axes.plot([], [], MARKS[kind], ls="", color=GREY, label=text)
