"""Views on paper: curves under a ribbon of stages with bands of events, matrices at a few moments, points, and the ladder."""

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.core.errors import first_names
from stagescope.landscape.ladder import Ladder
from stagescope.views.axes import log_time, log_values
from stagescope.views.figure import COLORS, GREY, TINTS, colour_map
from stagescope.views.view import Curve, Curves, Matrices, Points, Portrait, View

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

STYLES = ("-", "--", ":", "-.")
WIDEST = 1 / 3
"""An interval wider than this share of the axis is not drawn: it would colour the whole figure."""


def plain(text: str, longest: int = 28) -> str:
    """Text that matplotlib draws as it is: no mathematics, no half characters, one line, not too long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    line = line if len(line) <= longest else line[: longest - 1] + "…"
    return line.encode("utf-8", "replace").decode().replace("$", r"\$")


def times(portrait: Portrait, view: View) -> np.ndarray:
    """When the frames of a view are, on the run's clock."""
    time = portrait.run.time
    return time if view.frames is None else time[view.frames]


def draw_curves(portrait: Portrait, view: Curves) -> "Drawing":
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(7.2, 3.9), layout="constrained")
    curves_on(axes, portrait, view)
    height, unnamed = ribbon(axes, portrait, tracks=view.slot == "loss")
    unnamed += bands(axes, portrait)
    axes.set_title(plain(view.title, 80), loc="left", pad=8 + height)
    handles = axes.get_legend_handles_labels()[0]
    handles = (handles if len(handles) > 1 else []) + unnamed
    if handles:
        axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0, handlelength=1.6)
    return drawing


def curves_on(axes: "Axes", portrait: Portrait, view: Curves) -> None:
    """Faint curves, named ones in front of them, levels across."""
    time = times(portrait, view)
    named = [curve for curve in view.curves if not curve.faint]
    for curve in view.curves:
        if curve.faint:
            axes.plot(time, curve.values, color=GREY, lw=0.6, alpha=0.35, zorder=1)
    for curve, (color, style) in zip(named, _looks(named), strict=True):
        look: Any = {"color": COLORS[color % len(COLORS)], "ls": (0, (2, 1.5)) if curve.dashed else STYLES[style % len(STYLES)]}
        # Records that have no number before or after them are dots: a line would not show them.
        good = np.concatenate([[False], np.isfinite(curve.values), [False]])
        alone = good[1:-1] & ~good[:-2] & ~good[2:]
        dots: Any = {"marker": "o", "markevery": alone} if alone.any() else {}
        axes.plot(time, curve.values, **look, **dots, markersize=4, label=plain(curve.name), zorder=3)
    first, last = float(time[0]), float(time[-1])
    if log_time(time):
        axes.set_xscale("log")
        first = float(time[time > 0][0])
    if last > first:
        axes.set_xlim(first, last)
    axes.set_xlabel(portrait.run.clock)
    if log_values([view]):
        values = np.concatenate([curve.values for curve in view.curves])
        positive = values[np.isfinite(values) & (values > 0)]
        axes.set_yscale("log")
        axes.set_ylim(max(positive.min(), 1e-12 * positive.max()) / 1.5, positive.max() * 1.5)
    for level in view.levels:
        low, high = axes.get_ylim()
        if axes.get_yscale() == "log" and not low <= level.value <= high:
            continue  # zero has no place on a logarithmic axis, and levels far from the curves would be drawn outside
        axes.axhline(level.value, color="black", lw=0.7, ls=(0, (4, 3)), alpha=0.7, zorder=2)
        place = {"xycoords": axes.get_yaxis_transform(), "xytext": (-2, 2), "textcoords": "offset points"}
        axes.annotate(plain(level.name), (1.0, level.value), **place, ha="right", fontsize=7, color="#444444", zorder=4)
    axes.set_ylabel(plain(view.axis, 40))


def _looks(named: Sequence[Curve]) -> list[tuple[int, int]]:
    """Numbers of colour and line style: the family's colour where families have several curves, else one colour each."""
    families = list(dict.fromkeys(curve.family for curve in named))
    largest = max(sum(curve.family == family for curve in named) for family in families) if named else 0
    if not 1 < len(families) < len(named) or largest > len(STYLES):
        return [(place % len(COLORS), place // len(COLORS)) for place in range(len(named))]
    counts = dict.fromkeys(families, -1)
    looks = []
    for curve in named:
        counts[curve.family] += 1
        looks.append((families.index(curve.family), counts[curve.family]))
    return looks


def ribbon(axes: "Axes", portrait: Portrait, tracks: bool = True) -> "tuple[float, list[Artist]]":
    """Stages as named strips above the axes; the points of height they take, and handles of those too narrow for a name.

    Not `whole`: the stages of the run itself, without those of its parts.
    """
    stages = [stage for stage in portrait.stages or () if not stage.aside and (tracks or not stage.track)]
    if not stages:
        return 0.0, []
    from matplotlib.patches import Rectangle

    low, high = axes.get_xlim()
    end, height = float(portrait.run.time[-1]), 11.0
    busy: list[tuple[str, float]] = []  # of each lane its track, and until when it is taken
    points = axes.get_window_extent().height * 72 / axes.figure.dpi
    share, unlisted, named, narrow = height / points, 0, set(), {}
    across = axes.get_xaxis_transform()
    tints = dict(zip(dict.fromkeys(stage.name for stage in stages), cycle(TINTS), strict=False))
    for stage in stages:
        start, stop = max(stage.start, low), min(end if stage.stop is None else stage.stop, high)
        if stop <= start:
            continue
        free = (i for i, (track, until) in enumerate(busy) if track == stage.track and until <= start + 1e-9 * abs(end))
        lane = next(free, len(busy))
        if lane == 5:
            unlisted += 1
            continue
        busy[lane : lane + 1] = [(stage.track, stop)]
        bottom, name = 1.01 + lane * share, plain(stage.name, 18)
        look = {"color": tints[stage.name], "lw": 0}
        axes.add_patch(Rectangle((start, bottom), stop - start, share * 0.92, transform=across, clip_on=False, **look))
        if _width(axes, start, stop) > 4.6 * len(name):
            middle = np.sqrt(start * stop) if axes.get_xscale() == "log" else (start + stop) / 2
            axes.text(middle, bottom + 0.42 * share, name, transform=across, ha="center", va="center", fontsize=7)
            named.add(name)
        else:
            narrow[name] = Rectangle((0, 0), 1, 1, label=name, **look)
        if start > low:
            axes.axvline(start, color=GREY, lw=0.5, alpha=0.6, zorder=0)
    handles = [handle for name, handle in narrow.items() if name not in named]
    unnamed = handles[:6]  # more would leave the axes no room
    unlisted += len(handles) - len(unnamed)
    if unlisted:
        unnamed += [Rectangle((0, 0), 1, 1, label=f"and {unlisted} more", color="white", lw=0)]
    return max(1, len(busy)) * height, unnamed


def bands(axes: "Axes", portrait: Portrait) -> "list[Artist]":
    """The 95 % intervals of events, where they are wide enough to be seen, those that overlap as one; the handle of a legend.

    Beside each band are the names of its events, from the bottom up.
    """
    from matplotlib.patches import Rectangle

    low, high = axes.get_xlim()
    estimates = {} if portrait.stages is None else portrait.stages.estimates
    merged: list[tuple[float, float, list[str]]] = []
    spans = sorted((*event.interval, name) for name, event in estimates.items() if event.interval is not None)
    for start, stop, name in spans:
        start, stop = max(start, low), min(stop, high)
        if not 0 < stop - start <= WIDEST * (high - low) or _width(axes, start, stop) < 1.5:  # points: narrower than a line
            continue
        names = [name]
        if merged and start <= merged[-1][1]:
            first, last, earlier = merged.pop()
            start, stop, names = first, max(stop, last), [*earlier, name]
        merged.append((start, stop, names))
    look: Any = {"color": GREY, "alpha": 0.18, "lw": 0}
    for start, stop, names in merged:
        axes.axvspan(start, stop, zorder=0, **look)
        place: Any = {"xycoords": axes.get_xaxis_transform(), "xytext": (1.5, 3), "textcoords": "offset points", "rotation": 90}
        axes.annotate(plain(first_names(names), 40), (start, 0.0), **place, fontsize=6, color="#777777", va="bottom")
    return [Rectangle((0, 0), 1, 1, label="95 % intervals,\noverlapping ones joined", **look)] if merged else []


def _width(axes: "Axes", start: float, stop: float) -> float:
    """How many points wide a stretch of time is drawn."""
    ends = axes.transData.transform([(start, 1.0), (stop, 1.0)])
    return float(ends[1, 0] - ends[0, 0]) * 72 / axes.figure.dpi


WIDE = 2.5
"""Columns over rows from which matrices are put one above the other."""
MARK_COLORS = ("white", COLORS[1], COLORS[5], COLORS[3], COLORS[4], COLORS[2])


def moments(portrait: Portrait, view: View, count: int = 6) -> list[tuple[int, str]]:
    """At most so many places in a view's frames, and what happens there: the start, events that were reached, and the end."""
    time, stages = times(portrait, view), portrait.stages
    labels: dict[int, str] = {0: "start"}
    events = {} if stages is None else {name: time for name, time in stages.events.items() if time is not None}
    for name in sorted(events, key=lambda name: events[name]):
        place = int(np.argmin(np.abs(time - events[name])))
        if 0 < place < len(time) - 1:
            labels[place] = f"{labels[place]}, {name}" if place in labels else name
    if (stages is None or not stages.events) and len(time) > 2:
        labels |= {int(place): "" for place in np.linspace(0, len(time) - 1, count)[1:-1]}
    if len(time) > 1:
        labels[len(time) - 1] = "end"
    places = sorted(labels)
    if len(places) > count:
        places = [places[i] for i in np.rint(np.linspace(0, len(places) - 1, count)).astype(int)]
    return [(place, labels[place]) for place in places]


def draw_matrices(portrait: Portrait, view: Matrices) -> "Drawing":
    """Up to four panels at moments side by side, or one above the other where matrices are wide; heads in the other direction."""
    from matplotlib import pyplot

    moments_shown, panels = moments(portrait, view), min(len(view.panels), 4)
    rows, columns = len(view.rows), len(view.columns)
    wide = columns > WIDE * rows
    grid = (len(moments_shown), panels) if wide else (panels, len(moments_shown))
    cell = (1.75, 1.75 * min(2.5, max(0.4, rows / columns)))
    if wide:
        cell = (min(7.0, max(2.6, 0.2 * columns)), min(2.0, max(0.75, 0.2 * rows)))
    size = (max(4.2, grid[1] * cell[0] + 1.3), grid[0] * (cell[1] + 0.4) + 0.9)
    drawing, all_axes = pyplot.subplots(*grid, figsize=size, layout="constrained", squeeze=False, sharex=True, sharey=True)
    image: Any = None
    for number, (place, event) in enumerate(moments_shown):
        for panel in range(panels):
            axes = all_axes[number, panel] if wide else all_axes[panel, number]
            image = matrix_on(axes, view, place, panel)
            clock = f"{portrait.run.clock} = {times(portrait, view)[place]:.4g}"
            caption = f"{plain(event, 16)}\n{clock}" if event else clock
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
    if view.marks is not None:
        from matplotlib.lines import Line2D

        look: Any = {"marker": "o", "ls": "", "markeredgecolor": "black", "markersize": 4}
        named = zip(view.marks.names, MARK_COLORS, strict=False)
        handles = [Line2D([], [], color=color, label=plain(name), **look) for name, color in named]
        drawing.legend(handles=handles, loc="outside lower center", ncols=len(handles), handletextpad=0.2)
    suffix = f" (first {panels} of {len(view.panels)})" if len(view.panels) > panels else ""
    drawing.suptitle(plain(view.title, 80) + suffix, fontsize=9.5, x=0.01, ha="left")
    return drawing


def matrix_on(axes: "Axes", view: Matrices, place: int, panel: int = 0) -> Any:
    """One matrix with its labels, where these are few, and its marks; colours on a square-root scale, as on the page."""
    from matplotlib.colors import FuncNorm, PowerNorm

    diverging = view.low < 0 and view.low == -view.high
    ends: Any = {"vmin": view.low, "vmax": view.high}
    signed_root = (lambda v: np.sign(v) * np.sqrt(np.abs(v)), lambda v: np.sign(v) * np.square(v))
    norm = FuncNorm(signed_root, **ends) if diverging else PowerNorm(0.5, **ends)
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


def draw_points(portrait: Portrait, view: Points) -> "Drawing":
    """Paths of the points, and where they end; the shares of variance at the end."""
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(5.4, 4.4), layout="constrained")
    good = np.isfinite(view.values).all(axis=(1, 2))
    values = view.values[good]
    axes.axhline(0, color=GREY, lw=0.5)
    axes.axvline(0, color=GREY, lw=0.5)
    crowded = values.shape[1] > 24
    for i in range(values.shape[1] if len(values) else 0):
        color = GREY if crowded else COLORS[i % len(COLORS)]
        axes.plot(*values[:, i].T, color=color, lw=0.8, alpha=0.6)
        axes.plot(*values[-1, i], "o", color=color, markersize=4)
        if not crowded:
            axes.annotate(plain(view.labels[i], 12), values[-1, i], xytext=(4, 3), textcoords="offset points", fontsize=7)
    if len(values):
        shares = view.explained[good][-1]
        for name, share, setter in zip("12", shares, (axes.set_xlabel, axes.set_ylabel), strict=True):
            setter(f"axis {name}" + (f" ({share:.0%} of the variance at the end)" if np.isfinite(share) else ""))
    axes.set_title(plain(view.title, 80), loc="left")
    return drawing


def draw_ladder(ladder: Ladder) -> "Drawing":
    """Rates, where the law is linear, and times of escape at every rung that has a law, predicted and measured."""
    from matplotlib import pyplot

    rungs = [rung for rung in ladder if rung.law or rung.rates]
    drawing, pair = pyplot.subplots(1, 2, figsize=(7.2, 1.5 + 0.42 * len(rungs)), layout="constrained", sharey=True)
    rows = np.arange(len(rungs))
    rates = [(rung.rates[0] if rung.rates else None, rung.measured_rate) for rung in rungs]
    leaves = [(rung.predicted_escape, rung.measured_escape) for rung in rungs]
    for axes, values, title in zip(pair, (rates, leaves), ("growth rate", f"left at {ladder.clock}"), strict=True):
        predicted, measured = np.array(values, float).T
        axes.plot(predicted, rows, "o", mfc="none", color=COLORS[0], label="predicted", markersize=7)
        axes.plot(measured, rows, "o", color=COLORS[1], label="measured", markersize=3.5)
        axes.set_xlabel(title)
    names = [plain(": ".join(filter(None, (rung.label, rung.opening, rung.law_words))), 50) for rung in rungs]
    pair[0].set_yticks(rows, names)
    pair[0].set_ylim(len(rungs) - 0.5, -0.5)
    drawing.legend(*pair[0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
    drawing.suptitle("Saddle ladder: what opens at each critical point", fontsize=9.5, x=0.01, ha="left")
    return drawing
