"""Views for a paper in LaTeX: each as a pgfplots picture, NAME.tex, and its numbers, NAME.csv, which the picture reads."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from stagescope.reporting.static_draw import times
from stagescope.reporting.static_matrices import MOMENTS, PANELS, moments
from stagescope.views.axes import log_time, log_values
from stagescope.views.figure import COLORS, MARK
from stagescope.views.palette import STEPS, ramp
from stagescope.views.view import Curves, Matrices, Points, Portrait, View

HEAD = f"""% {MARK}. In the preamble: \\usepackage{{pgfplots}} \\usepgfplotslibrary{{groupplots}} \\pgfplotsset{{compat=1.18}}"""
_ESCAPED = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    **{sign: f"\\{sign}" for sign in "{}$&#_%"},
}
"""Signs that TeX would obey."""


def pgf(found: Portrait, view: View, name: str) -> tuple[str, str]:
    """The picture and its table; the picture reads NAME.csv beside it."""
    draw: Any = {Curves: _curves, Matrices: _matrices, Points: _points}[type(view)]
    lines, columns = draw(found, view, name)
    colors = [f"\\definecolor{{stagescope{i}}}{{HTML}}{{{color[1:]}}}" for i, color in enumerate(COLORS)]
    picture = [HEAD, *colors, r"\begin{tikzpicture}", *lines, r"\end{tikzpicture}"]
    return "\n".join(picture) + "\n", _table(columns)


def _curves(found: Portrait, view: Curves, name: str) -> tuple[list[str], dict[str, Any]]:
    time, clock = times(found, view), _word(found.run.clock, ())
    columns: dict[str, Any] = {clock: time}
    plots = []
    for place, curve in enumerate(view.curves):
        column = _word(curve.name, columns)
        columns[column] = curve.values
        look = "gray, opacity=.35, thin, forget plot" if curve.faint else f"stagescope{place % len(COLORS)}, thick"
        plots.append(f"\\addplot[{look}{', dashed' if curve.dashed else ''}] {_read(name, clock, column)}")
        plots += [] if curve.faint else [f"\\addlegendentry{{{tex(curve.name)}}}"]
    ends = f"{time[time > 0][0] if log_time(time) else time[0]:.9g}", f"{time[-1]:.9g}"
    for level in view.levels:
        place = " ".join(f"({end},{level.value:.9g})" for end in ends)
        plots.append(f"\\addplot[black, dashed, thin, forget plot] coordinates {{{place}}} {_beside(level.name)};")
    options = [
        f"title={{{tex(view.title)}}}, xlabel={{{tex(found.run.clock)}}}, ylabel={{{tex(view.axis)}}}",
        "width=.8\\linewidth, height=.5\\linewidth, legend pos=outer north east, legend cell align=left",
        f"xmin={ends[0]}, xmax={ends[1]}, unbounded coords=jump",
        *_stages(found, float(ends[0]), float(ends[1])),
        *(["xmode=log"] if log_time(time) else []),
        *(["ymode=log"] if log_values([view]) else []),
    ]
    return [rf"\begin{{axis}}[{', '.join(options)}]", *plots, r"\end{axis}"], columns


def _stages(found: Portrait, low: float, high: float) -> list[str]:
    """The stages of the run itself, as lines where they begin with their names above."""
    begun = {stage.start: tex(stage.name) for stage in found.stages or () if not stage.track and low < stage.start < high}
    if not begun:
        return []
    return [
        f"extra x ticks={{{','.join(f'{start:.9g}' for start in begun)}}}",
        f"extra x tick labels={{{','.join(f'{{{name}}}' for name in begun.values())}}}",
        "extra x tick style={grid=major, major grid style={gray, thin}, xticklabel pos=upper, "
        "tick label style={rotate=60, anchor=south west, font=\\tiny}}, title style={yshift=24pt}, "
        "xlabel style={at={(axis description cs:.5,-.12)}, anchor=north}",
    ]


def _stops(diverging: bool) -> str:
    """Thirteen colours of the page's ramp; pgfplots goes straight from one to the next."""
    chosen = ramp(diverging)[np.linspace(0, STEPS - 1, 13).round().astype(int)]
    return " ".join("rgb255=({},{},{})".format(*np.rint(255 * color).astype(int)) for color in chosen)


def _matrices(found: Portrait, view: Matrices, name: str) -> tuple[list[str], dict[str, Any]]:
    """The same moments as on the figure; colours are on a linear scale."""
    shown, panels = moments(found, view, MOMENTS), range(min(len(view.panels), PANELS))
    rows, across = len(view.rows), len(view.columns)
    columns: dict[str, Any] = {"column": np.tile(np.arange(across), rows), "row": np.repeat(np.arange(rows), across)}
    low, high = _bounds(view)
    diverging = view.low < 0 and view.low == -view.high
    shared = [
        f"group style={{group size={len(shown)} by {len(panels)}, horizontal sep=12pt, vertical sep=20pt, "
        "xlabels at=edge bottom, ylabels at=edge left, yticklabels at=edge left}",
        f"width={0.95 / (len(shown) + 1):.3f}\\linewidth, height={0.95 / (len(shown) + 1):.3f}\\linewidth, scale only axis",
        f"y dir=reverse, enlargelimits=false, point meta min={low:.9g}, point meta max={high:.9g}",
        f"colormap={{page}}{{{_stops(diverging)}}}",
        f"xlabel={{{tex(view.column_axis)}}}, ylabel={{{tex(view.row_axis)}}}, tick style={{draw=none}}",
        f"{_ticks('x', view.columns)}, {_ticks('y', view.rows)}",
        "colorbar style={y dir=normal}, title style={align=center, font=\\tiny}, label style={font=\\scriptsize}, "
        "tick label style={font=\\scriptsize}",
    ]
    plots = []
    for panel in panels:
        for place, what in shown:
            when = f"{found.run.clock} = {times(found, view)[place]:.4g}"
            column = _word(f"{view.panels[panel]} {what or when}", columns)
            columns[column] = np.asarray(view.values[place, panel], dtype=float).ravel()
            title = r"\\".join(tex(part) for part in (view.panels[panel], what, when) if part)
            last = ", colorbar" if panel == panels[-1] and place == shown[-1][0] else ""
            plots.append(f"\\nextgroupplot[title={{{title}}}{last}]")
            read = f"table[col sep=comma, x=column, y=row, meta={column}] {{{name}.csv}};"
            plots.append(f"\\addplot[matrix plot*, mesh/cols={across}, point meta=explicit] {read}")
    heading = rf"\node[anchor=south west] at (group c1r1.north west) [yshift=24pt] {{{tex(view.title)}}};"
    return [rf"\begin{{groupplot}}[{', '.join(shared)}]", *plots, r"\end{groupplot}", heading], columns


def _points(found: Portrait, view: Points, name: str) -> tuple[list[str], dict[str, Any]]:
    """The path of each point, and its name where it ends."""
    columns: dict[str, Any] = {_word(found.run.clock, ()): times(found, view)}
    plots = []
    for i, label in enumerate(view.labels):
        pair = tuple(_word(f"{label} {axis}", (*columns, "")) for axis in "xy")
        columns |= {column: view.values[:, i, k] for k, column in enumerate(pair)}
        plots.append(f"\\addplot[stagescope{i % len(COLORS)}] {_read(name, *pair)[:-1]} {_beside(label)};")
    options = f"title={{{tex(view.title)}}}, xlabel={{axis 1}}, ylabel={{axis 2}}, width=.7\\linewidth, unbounded coords=jump"
    return [rf"\begin{{axis}}[{options}]", *plots, r"\end{axis}"], columns


def _bounds(view: Matrices) -> tuple[float, float]:
    return (view.low, view.high) if view.high > view.low else (view.low, view.low + 1.0)


def _ticks(axis: str, labels: Sequence[str]) -> str:
    """At most about ten of them."""
    places = range(0, len(labels), max(1, -(-len(labels) // 10)))
    names = ",".join(f"{{{tex(labels[i][:12])}}}" for i in places)
    return f"{axis}tick={{{','.join(map(str, places))}}}, {axis}ticklabels={{{names}}}"


def _read(name: str, x: str, y: str) -> str:
    return f"table[col sep=comma, x={x}, y={y}] {{{name}.csv}};"


def _beside(text: str) -> str:
    return f"node[pos=1, anchor=south east, font=\\tiny] {{{tex(text)}}}"


def _word(name: str, taken: Iterable[str]) -> str:
    """A name of a column that needs no quotes anywhere: letters, digits and -, and no other column's."""
    plain, known = re.sub(r"[^0-9A-Za-z]+", "-", name).strip("-")[:40] or "value", set(taken)
    return next(each for each in (plain, *(f"{plain}-{k}" for k in range(2, len(known) + 3))) if each not in known)


def tex(text: str) -> str:
    """Text as TeX prints it, on one line; what is no printable Latin letter is a question mark."""
    plain = (c if " " <= c <= "~" or "\u00a1" <= c <= "\u017f" else "?" for c in " ".join(text.split())[:200])
    return "".join(_ESCAPED.get(c, c) for c in plain)


def _table(columns: dict[str, Any]) -> str:
    text = io.StringIO()
    text.write(f"# {MARK}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True))
    return text.getvalue()
