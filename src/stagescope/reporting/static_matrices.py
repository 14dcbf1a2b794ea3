"""Matrices of a run on paper: the same at a few moments of the run, with marks and a bar of colours."""

from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.reporting.static_draw import plain, times
from stagescope.views.figure import COLORS
from stagescope.views.palette import colour_map
from stagescope.views.view import Matrices, Portrait, View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

MOMENTS = 6
"""Frames of a row of small pictures, the first and the last among them."""
PANELS = 4
WIDE = 2.5
"""Columns over rows from which matrices are put one above the other."""
MARK_COLORS = ("white", COLORS[1], COLORS[5], COLORS[3], COLORS[4], COLORS[2])


def moments(portrait: Portrait, view: View, most: int = MOMENTS) -> list[tuple[int, str]]:
    """Places in a view's frames, and what happens there: the start, events that were reached, and the end."""
    time, found = times(portrait, view), portrait.stages
    seen: dict[int, str] = {0: "start"}
    events = {} if found is None else found.events
    for name, when in sorted(((n, w) for n, w in events.items() if w is not None), key=lambda item: item[1]):
        place = int(np.argmin(np.abs(time - when)))
        if 0 < place < len(time) - 1:
            seen[place] = f"{seen[place]}, {name}" if place in seen else name
    if not events and len(time) > 2:
        seen |= {int(place): "" for place in np.linspace(0, len(time) - 1, most)[1:-1]}
    if len(time) > 1:
        seen[len(time) - 1] = "end"
    chosen = sorted(seen)
    if len(chosen) > most:
        chosen = [chosen[i] for i in np.rint(np.linspace(0, len(chosen) - 1, most)).astype(int)]
    return [(place, seen[place]) for place in chosen]


def draw_matrices(portrait: Portrait, view: Matrices, most: int = MOMENTS) -> "Drawing":
    """Moments side by side, or one above the other where matrices are wide; heads in the other direction."""
    from matplotlib import pyplot

    shown, panels = moments(portrait, view, most), min(len(view.panels), PANELS)
    rows, columns = len(view.rows), len(view.columns)
    wide = columns > WIDE * rows
    grid = (len(shown), panels) if wide else (panels, len(shown))
    cell = (1.75, 1.75 * min(2.5, max(0.4, rows / columns)))
    if wide:
        cell = (min(7.0, max(2.6, 0.2 * columns)), min(2.0, max(0.75, 0.2 * rows)))
    size = (max(4.2, grid[1] * cell[0] + 1.3), grid[0] * (cell[1] + 0.4) + 0.9)
    drawing, all_axes = pyplot.subplots(*grid, figsize=size, layout="constrained", squeeze=False, sharex=True, sharey=True)
    image: Any = None
    for number, (place, what) in enumerate(shown):
        for panel in range(panels):
            axes = all_axes[number, panel] if wide else all_axes[panel, number]
            image = matrix_on(axes, view, place, panel)
            when = f"{portrait.run.clock} = {times(portrait, view)[place]:.4g}"
            caption = f"{plain(what, 16)}\n{when}" if what else when
            head = plain(view.panels[panel])
            if wide:
                axes.set_title(caption.replace("\n", ", ") + (f" ({head})" if head else ""), fontsize=8, loc="left")
            else:
                axes.set_title(caption if panel == 0 else "", fontsize=8)
                if number == 0 and head:
                    axes.set_ylabel(head)
    for axes in all_axes[-1]:
        axes.set_xlabel(plain(view.column_axis))
    if not any(view.panels) or wide:
        for row in all_axes:
            row[0].set_ylabel(plain(view.row_axis))
    drawing.colorbar(image, ax=all_axes, shrink=0.8, aspect=25, pad=0.01)
    _key(drawing, view)
    left = f" (first {PANELS} of {len(view.panels)})" if len(view.panels) > PANELS else ""
    drawing.suptitle(plain(view.title, 80) + left, fontsize=9.5, x=0.01, ha="left")
    return drawing


def matrix_on(axes: "Axes", view: Matrices, place: int, panel: int = 0) -> Any:
    """One matrix with its labels, where these are few, and its marks; colours on a square-root scale, as on the page."""
    from matplotlib.colors import FuncNorm, PowerNorm

    diverging = view.low < 0 and view.low == -view.high
    ends: Any = {"vmin": view.low, "vmax": view.high}
    norm = FuncNorm((_square_root, _square), **ends) if diverging else PowerNorm(0.5, **ends)
    image = axes.imshow(view.values[place, panel], cmap=colour_map(diverging), norm=norm, aspect="auto")
    axes.grid(False)
    size = axes.get_window_extent()
    for axis, labels, pixels in ((axes.xaxis, view.columns, size.width), (axes.yaxis, view.rows, size.height)):
        step = max(1, -(-len(labels) // max(2, int(pixels / axes.figure.dpi / 0.15))))
        axis.set_ticks(range(0, len(labels), step), [plain(name, 12) for name in labels[::step]], fontsize=6.5)
    if max(map(len, view.columns)) > 3:
        axes.tick_params(axis="x", rotation=90)
    if view.marks is not None:
        for number, (_, color) in enumerate(zip(view.marks.names, MARK_COLORS, strict=False), 1):
            row, column = np.nonzero(view.marks.cells == number)
            axes.scatter(column, row, s=5, color=color, lw=0.4, edgecolor="black")
    return image


def _square_root(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.sqrt(np.abs(values))


def _square(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.square(values)


def _key(drawing: "Drawing", view: Matrices) -> None:
    if view.marks is None:
        return
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", ls="", color=color, markeredgecolor="black", markersize=4, label=plain(name))
        for name, color in zip(view.marks.names, MARK_COLORS, strict=False)
    ]
    drawing.legend(handles=handles, loc="outside lower center", ncols=len(handles), handletextpad=0.2)
