"""The bifurcation diagram of a branch: loss and rates over the value, as a figure or as a page that needs no script."""

import base64
import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.core.errors import InputError
from stagescope.landscape.continuation import Branch, BranchPoint, Crossing
from stagescope.runs.files import publish, store_errors
from stagescope.show.bundle import viewer_style
from stagescope.show.page import head as page_head
from stagescope.show.report import html_target
from stagescope.views.figure import COLORS, FORMATS, check_replaceable, pictures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

MARKS = {"fold": ("o", COLORS[1]), "bifurcation": ("s", COLORS[3]), "opening": ("D", COLORS[4]), "order": ("^", COLORS[7])}
LABELS = {"logits": "share of the logits\nafter each token"}
PAGE_STYLE = (
    "main { max-width: 60rem; margin: 1.5rem auto; padding: 0 1rem } img { background: white; max-width: 100% } "
    "th, td { padding: 0.2rem 1rem 0.2rem 0; text-align: left }"
)
INK = "#555555"
KINDS = {"embedding": "#6a3d9a", "attention": "#8c510a"}
"""Colours of what opens, which no token has."""
Parts = Sequence[tuple[list[BranchPoint], bool]]
"""Stretches of a branch, and whether each is stable."""


def check_out(path: Path) -> None:
    """Refuse a file that cannot be written, before anything that takes long."""
    kind = path.suffix.lower().lstrip(".")
    if kind in ("html", "htm"):
        html_target(path)
        return
    if kind not in FORMATS:
        raise InputError(f"{path}: a diagram is a file .svg, .png, .pdf or .html; choose such a name")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; create it first")
    check_replaceable(path)


def draw_branch(branch: Branch, path: Path, *, title: str, over: str) -> Path:
    """Write the diagram of a branch: loss above, rates of what opens below; stable points solid, unstable ones dashed."""
    check_out(path)
    kind = path.suffix.lower().lstrip(".")
    with store_errors(path):
        if kind in FORMATS:
            publish(path, pictures(lambda: _figure(branch, title, over), [kind])[kind])
        else:
            picture = pictures(lambda: _figure(branch, "", over), ["svg"])["svg"]
            publish(path, _page(branch, title, over, picture).encode())
    return path


def _figure(branch: Branch, title: str, over: str) -> "Drawing":
    """One panel for each measure, one for the loss, and one for rates."""
    from matplotlib import pyplot

    points, names, parts = branch.points, [*branch.points[0].measures, "loss"], list(_parts(branch))
    size, heights = (5.6, 1.4 + 1.9 * (len(names) + 1)), [3, *[2] * len(names)]
    drawing, panels = pyplot.subplots(len(names) + 1, 1, figsize=size, sharex=True, layout="constrained", height_ratios=heights)
    for axes, name in zip(panels, names, strict=False):
        for place in range(len(_heights(points[0], name))):
            colour = INK if name == "loss" else _colour(place)
            _line(axes, parts, lambda point, name=name, i=place: _heights(point, name)[i], colour)
        axes.set_ylabel(LABELS.get(name, name))
        axes.margins(y=0.15)
    for place, crossing in enumerate(sorted((*branch.folds, *branch.crossings), key=lambda event: event.value)):
        _mark(panels, names, points, crossing, place)
    _rate_panel(panels[-1], points, parts)
    panels[-1].set_xlabel(over)
    curves = len(_heights(points[0], names[0]))
    handles = [_handle(_colour(place), f"token {place}") for place in range(curves)] if 1 < curves <= len(COLORS) else []
    styles = [_handle(INK, "stable inside its model"), _handle(INK, "unstable", "--")]
    drawing.legend(handles=[*styles, *handles], loc="outside lower left", ncols=3)
    panels[0].set_title(title, loc="left")
    return drawing


def _colour(place: int) -> str:
    return COLORS[place % len(COLORS)]


def _heights(point: BranchPoint, name: str) -> tuple[float, ...]:
    return (point.loss,) if name == "loss" else point.measures[name]


def _mark(panels: Sequence["Axes"], names: Sequence[str], points: Sequence[BranchPoint], crossing: Crossing, row: int) -> None:
    """A mark on the curve of the loss, and a line in the other panels, named in the first; neighbours in different rows."""
    shape, colour = MARKS[crossing.kind]
    for axes, name in zip(panels, [*names, ""], strict=True):
        if name == "loss":
            axes.plot(crossing.value, crossing.loss, shape, ms=5, color=colour, mec="white", mew=0.7, zorder=4)
        else:
            axes.axvline(crossing.value, color=colour, lw=0.8, alpha=0.6, zorder=1)
    values = [point.value for point in points]
    in_last_quarter = crossing.value > min(values) + 0.75 * (max(values) - min(values))
    place: Any = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "top"}
    place |= {"xytext": (-4 if in_last_quarter else 4, -2 - 11 * (row % 3)), "ha": "right" if in_last_quarter else "left"}
    panels[0].annotate(f"{crossing.kind} {crossing.value:.4g}", (crossing.value, 1.0), fontsize=8, color=colour, **place)


def _rate_panel(axes: "Axes", points: Sequence[BranchPoint], parts: Parts) -> None:
    kinds = [kind for kind in points[0].openings if any(point.openings[kind] for point in points)]
    for kind in kinds or [""]:
        for place in range(max(len(_rates(point, kind)) for point in points)):
            colour, shade = KINDS.get(kind, COLORS[0]), 1.0 if place == 0 else 0.45
            _line(axes, parts, lambda point, k=kind, i=place: (*_rates(point, k)[i:], 0.0)[0], colour, shade)
    axes.set_ylabel("rates of what opens" if points[0].openings else "rates that grow")
    axes.set_ylim(bottom=0)
    if not any(point.rates for point in points):
        sentence = "nothing opens" if points[0].openings else "nothing grows"
        axes.text(0.5, 0.5, sentence, transform=axes.transAxes, ha="center", color=INK)
        axes.set_yticks([])
    if kinds:
        axes.legend(handles=[_handle(KINDS.get(kind, COLORS[0]), kind) for kind in kinds], loc="best")


def _handle(colour: str, label: str, style: str = "-") -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, ls=style, label=label)


def _rates(point: BranchPoint, kind: str) -> Sequence[float]:
    return point.openings[kind] if kind else () if point.openings else point.rates


def _line(axes: "Axes", parts: Parts, height: Callable[[BranchPoint], float], colour: str, shade: float = 1.0) -> None:
    for part, stable in parts:
        values, heights = [point.value for point in part], [height(point) for point in part]
        axes.plot(values, heights, color=colour, alpha=shade, ls="-" if stable else (0, (4, 2)), lw=1.6 if stable else 1.2)


def _parts(branch: Branch) -> Iterator[tuple[list[BranchPoint], bool]]:
    """Stretches of a branch that are stable, or not; neighbours share their end, the place where a rate is zero."""
    part = [branch.points[0]]
    for before, point in pairwise(branch.points):
        if before.stable != point.stable:
            cut = _cut(branch, before, point)
            yield [*part, cut], before.stable
            part = [cut]
        part.append(point)
    yield part, branch.points[-1].stable


def _cut(branch: Branch, before: BranchPoint, after: BranchPoint) -> BranchPoint:
    """The bifurcation or fold between two points, its curves by interpolation; the second point where none is known.

    Along a branch the way to a fold is as the root of the difference of values.
    """
    low, high = sorted((before.value, after.value))
    within = [crossing for crossing in branch.crossings if crossing.kind == "bifurcation" and low <= crossing.value <= high]
    places = within or branch.folds
    if not places:
        return after
    place = min(places, key=lambda event: abs(event.value - before.value) + abs(event.loss - before.loss))
    ways = [abs(place.value - point.value) ** (1.0 if within else 0.5) for point in (before, after)]
    share = ways[0] / (sum(ways) or 1.0)

    def between(one: Sequence[float], other: Sequence[float]) -> tuple[float, ...]:
        return tuple((1 - share) * a + share * b for a, b in zip_longest(one, other, fillvalue=0.0))

    measures = {name: between(values, after.measures[name]) for name, values in before.measures.items()}
    openings = {name: between(rates, after.openings[name]) for name, rates in before.openings.items()}
    rates = between(before.rates, after.rates)
    return replace(before, value=place.value, loss=place.loss, rates=rates, measures=measures, openings=openings)


def _page(branch: Branch, title: str, over: str, picture: bytes) -> str:
    """The picture, and folds and crossings as a table."""
    rows = [(c.kind, f"{c.value:.6g}", f"{c.loss:.6g}", c.what) for c in (*branch.folds, *branch.crossings)]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in ("", over, "loss", "what"))
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    values = np.array([point.value for point in branch.points])
    sentence = f"{len(branch.points)} critical points, {over} from {values.min():.4g} to {values.max():.4g}."
    styles = [viewer_style("style"), PAGE_STYLE]
    image = base64.b64encode(picture).decode()
    parts = [
        *page_head(title, [], styles, "light"),
        f"<main>\n<h1>{html.escape(title)} over {html.escape(over)}</h1>",
        f'<p><img alt="loss and rates over {html.escape(over)}" src="data:image/svg+xml;base64,{image}"></p>',
        f"<p>{html.escape(sentence)}</p>",
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else "<p>No fold, and no rate crosses.</p>",
        *(f"<p>{html.escape(note)}</p>" for note in branch.notes),
        "</main>\n</body>\n</html>\n",
    ]
    return "\n".join(parts)
