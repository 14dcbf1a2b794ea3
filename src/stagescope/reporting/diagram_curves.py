"""Ink of a phase diagram over one axis: medians with their intervals, or a row for each category with shares of seeds."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.figures.figure import COLORS, GREY, Numbers
from stagescope.reporting.areas import Ruler
from stagescope.reporting.diagram_ink import DECADES, NameColors, all_cells, at_text, label_of, present, ruler, ticks, title
from stagescope.reporting.static_draw import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


def draw_curves(numbers: Numbers) -> "Drawing":
    from matplotlib import pyplot

    numeric = numbers["kind"] == "number"
    names = [] if numeric else list(present(numbers))
    drawing, axes = pyplot.subplots(figsize=(5.6, 3.4 if numeric else 1.9 + 0.3 * len(names)), layout="constrained")
    x = ruler(numbers["x"])
    if numeric:
        _value_curves(axes, numbers, x)
    else:
        _share_dots(axes, numbers, names, x)
    ticks(axes, axes.xaxis, x, "x")
    axes.set_xlabel(plain(numbers["x"]["name"]))
    handles = axes.get_legend_handles_labels()[0]
    if handles:
        short = all(len(str(handle.get_label())) < 24 for handle in handles)
        drawing.legend(handles=handles, loc="outside lower left", ncols=min(4, len(handles)) if short else 1)
    drawing.suptitle(title(numbers), fontsize=9.5, x=0.01, ha="left")
    return drawing


def _value_curves(axes: "Axes", numbers: Numbers, x: Ruler) -> None:
    """Medians with their intervals; below them where runs failed or have no value."""
    panels = numbers["panels"]
    values = [cell["value"] for cell in all_cells(numbers) if cell["value"] is not None]
    for color, panel in zip(COLORS, panels, strict=False):
        cells = sorted(panel["cells"], key=lambda cell: x.place(cell["x"]))
        across = np.array([x.place_on_axis(cell["x"]) for cell in cells])
        height = np.array([np.nan if cell["value"] is None else cell["value"] for cell in cells])
        spans = [cell["interval"] or (cell["value"], cell["value"]) for cell in cells]
        low, high = np.array([[np.nan if end is None else end for end in span] for span in spans]).T
        joined = "" if x.scale.kind == "categorical" else "-"
        named = at_text(panel["at"]) if len(panels) > 1 else None
        axes.plot(across, height, f"o{joined}", ms=3, color=color, label=named, zorder=3)
        if joined:
            axes.fill_between(across, low, high, color=color, alpha=0.18, lw=0, zorder=1)
        else:
            axes.vlines(across, low, high, color=color, alpha=0.5, lw=3, zorder=1)
        _rug(axes, numbers, cells, across, color)
    if any(cell["interval"] for cell in all_cells(numbers)):
        said = f"{numbers['confidence']:.0%} bootstrap interval of the median"
        axes.fill_between([], [], color=GREY, alpha=0.3, lw=0, label=said)
    if values and min(values) > 0 and max(values) > DECADES * min(values):
        axes.set_yscale("log")
    if not values:
        axes.set_yticks([])
    axes.set_ylabel(label_of(numbers))


def _rug(axes: "Axes", numbers: Numbers, cells: Sequence[Mapping[str, Any]], across: np.ndarray, color: str) -> None:
    """Marks at the foot of the plot, outside of its values."""
    foot = axes.get_xaxis_transform()
    known = {handle.get_label() for handle in axes.get_legend_handles_labels()[0]}
    for mark, label, chosen in (
        ("x", "failed", [cell["value"] is None and bool(cell["failed"]) for cell in cells]),
        ("|", numbers["absent"], [cell["value"] is None and not cell["failed"] for cell in cells]),
    ):
        if any(chosen):
            shown = None if label in known else label
            low = np.full(sum(chosen), 0.03)
            axes.plot(across[chosen], low, mark, color=color, ms=5, transform=foot, clip_on=False, label=shown)


def _share_dots(axes: "Axes", numbers: Numbers, names: Sequence[str], x: Ruler) -> None:
    """A row for each category; the area of a dot is the share of seeds."""
    colors = NameColors(numbers["categories"])
    for cell in all_cells(numbers):
        at = x.place_on_axis(cell["x"])
        for name, share in cell["shares"].items():
            row = names.index(name) if name in names else len(names) - 1
            axes.scatter(at, row, s=44 * share["share"], color=colors(name), lw=0, zorder=3)
        if not cell["shares"]:
            axes.plot(at, -0.8, "x" if cell["failed"] else "|", color=GREY, ms=5)
    axes.set_yticks(range(len(names)), [plain(said, 48) for said in present(numbers).values()])
    axes.set_ylim(-1.1 if any(not cell["shares"] for cell in all_cells(numbers)) else -0.6, max(len(names), 1) - 0.4)
    if any(len(cell["shares"]) > 1 for cell in all_cells(numbers)):
        axes.scatter([], [], s=22, color=GREY, lw=0, label="area: share of seeds")
    if any(not cell["shares"] and cell["failed"] for cell in all_cells(numbers)):
        axes.plot([], [], "x", color=GREY, label="failed")
    if any(not cell["shares"] and not cell["failed"] for cell in all_cells(numbers)):
        axes.plot([], [], "|", color=GREY, label=numbers["absent"])
