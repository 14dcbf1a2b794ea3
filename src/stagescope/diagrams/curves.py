"""Ink of a phase diagram over one axis: medians with their intervals, or a row for each category with shares of seeds.

Cells without a median stand in lanes of their own: above the values those that a longer run might give one, below them those
that were there at the start, failed, or have none. A curve is broken there, and its interval open upwards where it has no end.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.diagrams import style
from stagescope.diagrams.areas import Ruler
from stagescope.diagrams.scale import ValueScale, mark_text, powers, steps
from stagescope.diagrams.texts import AT_START
from stagescope.sweeping.columns import CLOCKED
from stagescope.views.figure import COLORS, GREY, Numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

WIDTH = 5.6
LANE = 0.075
"""Height of a lane, as a share of that of the values."""
NAME = 44
"""Letters of a line beside a row."""
MARKS = {"not reached": "^", "in progress": "^", "start": "D", "failed": "x", "none": "|"}
ABOVE, BELOW = CLOCKED, ("start", "failed", "none")


def draw_curves(numbers: Numbers) -> "Drawing":
    from matplotlib import pyplot

    words = numbers["kind"] == "word"
    names = style.distinct(list(style.present(numbers).values()), NAME) if words else []
    height = 1.9 + sum(0.16 + 0.14 * (1 + name.count("\n")) for name in names) if words else 3.4
    drawing, axes = pyplot.subplots(figsize=(WIDTH, height), layout="constrained")
    x = style.ruler(numbers["x"])
    if words:
        _share_dots(axes, numbers, names, x)
    else:
        _value_curves(axes, numbers, x)
    style.ticks(axes, axes.xaxis, x, "x", 3.0 if words else 4.6)
    axes.set_xlabel(style.axis_name(numbers["x"]))
    handles = axes.get_legend_handles_labels()[0]
    if handles:
        width = int(style.LETTERS_PER_INCH * WIDTH) - 4
        longest = max(len(str(handle.get_label())) for handle in handles)
        columns = max(1, min(4, len(handles), width // (longest + 3)))
        drawing.set_figheight(height + 0.16 * max(0, -(-len(handles) // columns) - 2))
        drawing.legend(handles=handles, loc="outside lower left", ncols=columns)
    drawing.suptitle(style.title(numbers, WIDTH), fontsize=9.5, x=0.01, ha="left")
    return drawing


def state(cell: Mapping[str, Any]) -> str | None:
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
        _curve(axes, cells, across, color, (low, high), joined=x.scale.kind != "categorical")
        if len(panels) > 1:
            axes.plot([], [], "o-", ms=3, color=color, label=style.at_text(panel["at"]))
        for kinds, lanes, first, step in ((ABOVE, above, 1 - share / 2, -share), (BELOW, below, share / 2, share)):
            if panel in lanes:
                _lane(axes, cells, across, color, kinds, first + step * lanes.index(panel))
    if any(cell["interval"] for cell in style.all_cells(numbers)):
        said = f"{numbers['confidence']:.0%} bootstrap interval of the median"
        axes.fill_between([], [], color=GREY, alpha=0.3, lw=0, label=said)
    for kind, said in {**numbers["lacks"], "start": AT_START, "failed": "failed"}.items():
        if any(state(cell) == kind for cell in style.all_cells(numbers)):
            axes.plot([], [], MARKS[kind], color=GREY, ms=5, mfc="none", ls="", label=style.folded(said, 80))
    axes.set_ylabel(style.label_of(numbers))


def _limits(axes: "Axes", numbers: Numbers, above: int, below: int) -> tuple[float, float]:
    """Scale and ends of the axis of values, with room for lanes; returns where the values end."""
    from matplotlib.ticker import NullLocator

    values = style.scaled_values(numbers)
    scale = ValueScale(values)
    if scale.log and scale.signed:
        axes.set_yscale("symlog", linthresh=scale.least)
        marks = scale.marks()
        axes.set_yticks(marks, [mark_text(mark) for mark in marks])
    elif scale.log:
        axes.set_yscale("log")
    elif not values:
        axes.set_yticks([])
    spans = [end for cell in style.all_cells(numbers) for end in cell["interval"] or () if end is not None]
    known = [value for value in [*values, *spans] if value > 0 or not scale.log or scale.signed] or [0.0, 1.0]
    transform = axes.yaxis.get_transform()
    low, high = transform.transform([min(known), max(known)])
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
    axes: "Axes", cells: Sequence[Mapping[str, Any]], across: np.ndarray, color: str, ends: tuple[float, float], joined: bool
) -> None:
    height = np.array([np.nan if state(cell) is not None else cell["value"] for cell in cells], float)
    spans = [cell["interval"] or (value, value) for cell, value in zip(cells, height, strict=True)]
    low, high = np.array([[span[0], ends[1] if span[1] is None else span[1]] for span in spans], float).T
    low = np.maximum(low, ends[0])
    axes.plot(across, height, f"o{'-' if joined else ''}", ms=3, color=color, zorder=3)
    if joined:
        axes.fill_between(across, low, high, color=color, alpha=0.18, lw=0, zorder=1)
    else:
        axes.vlines(across, low, high, color=color, alpha=0.5, lw=3, zorder=1)


def _lane(
    axes: "Axes", cells: Sequence[Mapping[str, Any]], across: np.ndarray, color: str, kinds: Sequence[str], height: float
) -> None:
    for kind in kinds:
        chosen = across[[state(cell) == kind for cell in cells]]
        place = np.full(len(chosen), height)
        axes.plot(chosen, place, MARKS[kind], color=color, ms=5, mfc="none", transform=axes.get_xaxis_transform(), zorder=4)


def _share_dots(axes: "Axes", numbers: Numbers, labels: Sequence[str], x: Ruler) -> None:
    """A row for each category; the area of a dot is the share of seeds."""
    colors, names, cells = style.NameColors(numbers["categories"]), list(style.present(numbers)), style.all_cells(numbers)
    for cell in cells:
        at = x.place_on_axis(cell["x"])
        for name, share in cell["shares"].items():
            row = names.index(name) if name in names else len(names) - 1
            axes.scatter(at, row, s=44 * share["share"], color=colors(name), lw=0, zorder=3)
        if cell["failed"]:
            axes.plot(at, -0.8, MARKS["failed"], color=GREY, ms=2.5 + 2.5 * cell["failed"] / cell["rows"])
        elif cell["lack"]:
            axes.plot(at, -0.8, MARKS["none"], color=GREY, ms=5)
    axes.set_yticks(range(len(names)), labels)
    marked = any(cell["failed"] or cell["lack"] for cell in cells)
    axes.set_ylim(-1.1 if marked else -0.6, max(len(names), 1) - 0.4)
    if any(len(cell["shares"]) > 1 for cell in cells):
        axes.scatter([], [], s=22, color=GREY, lw=0, label="area: share of seeds")
    if any(cell["failed"] for cell in cells):
        some = any(0 < cell["failed"] < cell["rows"] for cell in cells)
        axes.plot([], [], MARKS["failed"], ls="", color=GREY, label="failed (small: some of the seeds)" if some else "failed")
    if "none" in numbers["lacks"]:
        axes.plot([], [], MARKS["none"], ls="", color=GREY, label=numbers["lacks"]["none"])
