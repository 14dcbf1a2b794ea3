"""Ink of a phase diagram over two axes: every cell as the area it covers. Draws the numbers of `diagram_numbers` alone."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stagescope.figures.figure import GREY, Numbers
from stagescope.reporting.areas import Rect, Ruler, areas
from stagescope.reporting.diagram_ink import (
    NameColors,
    NumberColors,
    all_cells,
    at_text,
    colors_of,
    label_of,
    present,
    round_marks,
    ruler,
    ticks,
    title,
)
from stagescope.reporting.static_draw import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

ABSENT = "#e3e3e3"
INK = "#1b1d22"
LONGEST = 92
"""Characters of a category in the legend."""


def draw_maps(numbers: Numbers) -> "Drawing":
    from matplotlib import pyplot

    panels = numbers["panels"]
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    size = (5.4, 4.0) if len(panels) == 1 else (1.0 + 2.9 * columns, 0.7 + 2.7 * rows)
    drawing, grid = pyplot.subplots(rows, columns, figsize=size, squeeze=False, sharex=True, sharey=True, layout="constrained")
    colors = colors_of(numbers)
    x, y = ruler(numbers["x"]), ruler(numbers["y"])
    for axes, panel in zip(grid.flat, panels, strict=False):
        _map(axes, panel["cells"], x, y, colors)
        axes.set_title(at_text(panel["at"]) if len(panels) > 1 else "")
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel(plain(numbers["y"]["name"]))
    for place, axes in enumerate(grid.flat):
        if place + columns >= len(panels) and place < len(panels):
            axes.set_xlabel(plain(numbers["x"]["name"]))
            axes.tick_params(labelbottom=True)
    _keys(drawing, numbers, colors, list(grid.flat)[: len(panels)])
    drawing.suptitle(title(numbers), fontsize=9.5, x=0.01, ha="left")
    return drawing


def _map(axes: "Axes", cells: Sequence[Mapping[str, Any]], x: Ruler, y: Ruler, colors: "NumberColors | NameColors") -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    found = areas(x, y, [(cell["x"], cell["y"]) for cell in cells])
    plain_patches, shades, hatched = [], [], []
    for cell in cells:
        for rect in found.get((cell["x"], cell["y"]), ()):
            patch = _patch(rect, x, y)
            if cell["value"] is None and cell["failed"]:
                hatched.append(patch)
            else:
                plain_patches.append(patch)
                shades.append(ABSENT if cell["value"] is None else colors(cell["value"]))
    everything = PatchCollection([*plain_patches, *hatched], facecolors="none", edgecolors=GREY, linewidths=1.2, zorder=0.9)
    axes.add_collection(everything)  # of it shows what borders on blank: a pale cell is not taken for one that does not exist
    # the thin edge closes the hairlines that readers of PDF leave between neighbours
    axes.add_collection(PatchCollection(plain_patches, facecolors=shades, edgecolors=shades, linewidths=0.25, zorder=1))
    if hatched:
        whole = Path.make_compound_path(*(patch.get_patch_transform().transform_path(patch.get_path()) for patch in hatched))
        axes.add_patch(PathPatch(whole, facecolor="white", edgecolor=GREY, hatch="//////", lw=0, zorder=2))
    torn = [cell for cell in cells if disagree(cell)]
    places = [x.place_on_axis(cell["x"]) for cell in torn], [y.place_on_axis(cell["y"]) for cell in torn]
    axes.plot(*places, "o", ms=2.3, color=INK, mec="white", mew=0.5, zorder=3)
    ticks(axes, axes.xaxis, x, "x")
    ticks(axes, axes.yaxis, y, "y")
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(0.6)


def disagree(cell: Mapping[str, Any]) -> bool:
    """Whether seeds of a cell say different things: other categories, or a value for some of them only."""
    return cell["value"] is not None and (cell["known"] < cell["rows"] or len(cell.get("shares", ())) > 1)


def _patch(rect: Rect, x: Ruler, y: Ruler) -> Any:
    from matplotlib.patches import Rectangle

    left, right, bottom, top = x.on_axis(rect.left), x.on_axis(rect.right), y.on_axis(rect.bottom), y.on_axis(rect.top)
    return Rectangle((left, bottom), right - left, top - bottom)


def _keys(drawing: "Drawing", numbers: Numbers, colors: "NumberColors | NameColors", grid: Sequence["Axes"]) -> None:
    """The bar of colours or the list of categories, and what hatching, grey and dots mean."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.patches import Patch

    cells = all_cells(numbers)
    handles: list[Any] = []
    if isinstance(colors, NameColors):
        handles += [Patch(color=colors.of[name], label=plain(said, LONGEST)) for name, said in present(numbers).items()]
    elif any(cell["value"] is not None for cell in cells):
        if colors.constant:
            value = next(cell["value"] for cell in cells if cell["value"] is not None)
            handles.append(Patch(color=colors(value), label=f"{value:.5g} everywhere"))
        else:
            bar = drawing.colorbar(ScalarMappable(colors.norm, colors.map), ax=list(grid), fraction=0.06, pad=0.02, aspect=28)
            bar.set_label(label_of(numbers))
            bar.outline.set_linewidth(0.4)  # pyright: ignore[reportCallIssue]
            if colors.log:
                marks = round_marks(colors.norm.vmin or 1.0, colors.norm.vmax or 1.0)
                bar.set_ticks(marks, labels=[f"{mark:g}" for mark in marks], minor=False)
                bar.minorticks_off()
    handles += _marks(numbers, cells)
    if handles:
        short = all(len(handle.get_label()) < 24 for handle in handles)
        columns = (min(4, len(handles)) if len(grid) == 1 else min(6, len(handles))) if short else 1
        drawing.legend(handles=handles, loc="outside lower left", ncols=columns, handlelength=1.4, handleheight=1.1)


def _marks(numbers: Numbers, cells: Sequence[Mapping[str, Any]]) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    found: list[Any] = []
    if any(cell["value"] is None and not cell["failed"] for cell in cells):
        found.append(Patch(color=ABSENT, label=numbers["absent"]))
    broken = [cell for cell in cells if cell["value"] is None and cell["failed"]]
    if broken:
        reasons = Counter(reason for cell in broken for reason in cell["reasons"])
        most, more = reasons.most_common(1)[0][0], len(reasons) - 1
        label = plain(most, LONGEST - 20) + (f" (and {more} other reason{'s' if more > 1 else ''})" if more else "")
        found.append(Patch(facecolor="white", edgecolor=GREY, hatch="//////", lw=0.5, label=label))
    if any(map(disagree, cells)):
        found.append(Line2D([], [], ls="", marker="o", ms=3, color=INK, label="seeds disagree"))
    return found
