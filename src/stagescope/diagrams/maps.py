"""Ink of a phase diagram over two axes: every cell as the area it covers. Draws the numbers of `diagram_numbers` alone."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stagescope.diagrams import style
from stagescope.diagrams.areas import Ruler, areas
from stagescope.diagrams.numbers import disagree
from stagescope.diagrams.scale import mark_text
from stagescope.diagrams.texts import AT_START
from stagescope.views.figure import GREY, Numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

ABSENT = {"not reached": "#e3e3e3", "in progress": "#c8d3dc", "none": "#efe4d0"}
"""Where runs reached their end and there is no value, by why."""
INK = "#1b1d22"
HATCH = "//////"


def draw_maps(numbers: Numbers) -> "Drawing":
    from matplotlib import pyplot

    panels = numbers["panels"]
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    size = (5.4, 4.0) if len(panels) == 1 else (1.0 + 2.9 * columns, 0.7 + 2.7 * rows)
    inside = (4.0, 2.8) if len(panels) == 1 else (2.5, 1.9)
    drawing, grid = pyplot.subplots(rows, columns, figsize=size, squeeze=False, sharex=True, sharey=True, layout="constrained")
    colors = style.colors_of(numbers)
    x, y = style.ruler(numbers["x"]), style.ruler(numbers["y"])
    for axes, panel in zip(grid.flat, panels, strict=False):
        _map(axes, panel["cells"], x, y, colors)
        if "boundary" in panel:
            _boundary(axes, panel["boundary"], numbers)
        style.ticks(axes, axes.xaxis, x, "x", inside[0])
        style.ticks(axes, axes.yaxis, y, "y", inside[1])
        axes.set_title(style.at_text(panel["at"]) if len(panels) > 1 else "")
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel(style.axis_name(numbers["y"]))
    for place, axes in enumerate(grid.flat):
        if place + columns >= len(panels) and place < len(panels):
            axes.set_xlabel(style.axis_name(numbers["x"]))
            axes.tick_params(labelbottom=True)
    _keys(drawing, numbers, colors, list(grid.flat)[: len(panels)])
    drawing.suptitle(style.title(numbers, size[0]), fontsize=9.5, x=0.01, ha="left")
    return drawing


def _map(axes: "Axes", cells: Sequence[Mapping[str, Any]], x: Ruler, y: Ruler, colors: style.Colors) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    found = areas(x, y, [(cell["x"], cell["y"]) for cell in cells])
    plain_patches, shades, hatched = [], [], []
    for cell in cells:
        for rect in found.get((cell["x"], cell["y"]), ()):
            left, right, bottom, top = x.on_axis(rect.left), x.on_axis(rect.right), y.on_axis(rect.bottom), y.on_axis(rect.top)
            patch = Rectangle((left, bottom), right - left, top - bottom)
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
        whole = Path.make_compound_path(*(patch.get_patch_transform().transform_path(patch.get_path()) for patch in hatched))
        axes.add_patch(PathPatch(whole, facecolor="white", edgecolor=GREY, hatch=HATCH, lw=0, zorder=2))
    torn = [cell for cell in cells if disagree(cell)]
    places = [x.place_on_axis(cell["x"]) for cell in torn], [y.place_on_axis(cell["y"]) for cell in torn]
    axes.plot(*places, "o", ms=2.3, color=INK, mec="white", mew=0.5, zorder=3)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(0.6)


def _boundary(axes: "Axes", line: Mapping[str, Any], numbers: Numbers) -> None:
    """A line of theory, dark in a light one, seen on any colour; where it has no place it is broken."""
    ends = [(style.ruler(numbers[letter]), line[numbers[letter]["name"]]) for letter in ("x", "y")]
    places = [[math.nan if v is None else ruler.place_on_axis(v) for v in values] for ruler, values in ends]
    for color, width in (("white", 3.6), (INK, 1.6)):
        axes.plot(*places, color=color, lw=width, zorder=4)


def shade(cell: Mapping[str, Any], colors: style.Colors) -> Any:
    """The colour of a cell that did not fail."""
    if cell["lack"] is not None:
        return ABSENT[cell["lack"]]
    return style.START if cell.get("start") else colors(cell["value"])


def _keys(drawing: "Drawing", numbers: Numbers, colors: style.Colors, grid: Sequence["Axes"]) -> None:
    """The bar of colours or the list of categories, and what hatching, grey and dots mean."""
    from matplotlib.patches import Patch

    width = int(style.LETTERS_PER_INCH * drawing.get_figwidth()) - 4
    handles: list[Any] = []
    if isinstance(colors, style.NameColors):
        shown = style.present(numbers)
        labels = style.distinct(list(shown.values()), width)
        handles += [Patch(color=colors.of[name], label=label) for name, label in zip(shown, labels, strict=True)]
    elif values := style.scaled_values(numbers):
        if colors.scale.constant:
            handles.append(Patch(color=colors(values[0]), label=f"{values[0]:.5g} everywhere"))
        else:
            _bar(drawing, numbers, colors, grid)
    handles += _marks(numbers, width)
    if handles:
        longest = max(max(map(len, handle.get_label().split("\n"))) for handle in handles)
        columns = max(1, min(len(handles), 4 if len(grid) == 1 else 6, width // (longest + 3)))
        drawing.legend(handles=handles, loc="outside lower left", ncols=columns, handlelength=1.4, handleheight=1.1)
        lines = sum(1 + handle.get_label().count("\n") for handle in handles) / columns
        drawing.set_figheight(drawing.get_figheight() + 0.15 * max(0.0, lines - 3))


def _bar(drawing: "Drawing", numbers: Numbers, colors: style.NumberColors, grid: Sequence["Axes"]) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    bar = drawing.colorbar(ScalarMappable(Normalize(0, 1), colors.map), ax=list(grid), fraction=0.06, pad=0.02, aspect=28)
    bar.set_label(style.label_of(numbers))
    bar.outline.set_linewidth(0.4)  # pyright: ignore[reportCallIssue]
    marks = colors.scale.marks()
    bar.set_ticks([colors.scale.place(mark) for mark in marks], labels=[mark_text(mark) for mark in marks], minor=False)
    bar.minorticks_off()


def _marks(numbers: Numbers, width: int) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    cells = style.all_cells(numbers)
    found: list[Any] = []
    if any(cell.get("start") for cell in cells):
        found.append(Patch(color=style.START, label=AT_START))
    found += [Patch(color=ABSENT[lack], label=style.folded(said, width)) for lack, said in numbers["lacks"].items()]
    broken = [cell for cell in cells if cell["lack"] == "failed"]
    if broken:
        reasons = Counter(reason for cell in broken for reason in cell["reasons"])
        most = reasons.most_common(1)[0][0]
        label = most if len(reasons) == 1 else f"failed, for example: {most}"
        found.append(Patch(facecolor="white", edgecolor=GREY, hatch=HATCH, lw=0.5, label=style.folded(label, width)))
    if line := numbers["panels"][0].get("boundary"):
        found.append(Line2D([], [], color=INK, lw=1.6, label=style.folded(f"{line['name']}: {line['title']}", width)))
    if any(map(disagree, cells)):
        some = any(0 < cell["failed"] < cell["rows"] for cell in cells)
        found.append(
            Line2D([], [], ls="", marker="o", ms=3, color=INK, label=f"seeds disagree{', or some failed' if some else ''}")
        )
    return found
