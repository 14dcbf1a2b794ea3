"""Points in the plane that moves with them, and the ladder: what is predicted beside what is measured."""

from typing import TYPE_CHECKING

import numpy as np

from stagescope.landscape.ladder import Ladder
from stagescope.reporting.static_draw import plain
from stagescope.views.figure import COLORS, GREY
from stagescope.views.view import Points, Portrait

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw_points(portrait: Portrait, view: Points) -> "Drawing":
    """Paths of the points, and where they end; the shares of variance at the end."""
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(5.4, 4.4), layout="constrained")
    good = np.isfinite(view.values).all(axis=(1, 2))
    values = view.values[good]
    axes.axhline(0, color=GREY, lw=0.5)
    axes.axvline(0, color=GREY, lw=0.5)
    many = values.shape[1] > 24
    for i in range(values.shape[1] if len(values) else 0):
        color = GREY if many else COLORS[i % len(COLORS)]
        axes.plot(*values[:, i].T, color=color, lw=0.8, alpha=0.6)
        axes.plot(*values[-1, i], "o", color=color, markersize=4)
        if not many:
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
    rates = ([rung.rates[0] if rung.rates else None for rung in rungs], [rung.measured_rate for rung in rungs])
    leaves = ([rung.predicted_escape for rung in rungs], [rung.measured_escape for rung in rungs])
    for axes, (predicted, measured), title in zip(pair, (rates, leaves), ("growth rate", f"left at {ladder.clock}"), strict=True):
        axes.plot(np.array(predicted, float), rows, "o", mfc="none", color=COLORS[0], label="predicted", markersize=7)
        axes.plot(np.array(measured, float), rows, "o", color=COLORS[1], label="measured", markersize=3.5)
        axes.set_xlabel(title)
    names = [plain(": ".join(filter(None, (rung.label, rung.opening, rung.law_words))), 50) for rung in rungs]
    pair[0].set_yticks(rows, names)
    pair[0].set_ylim(len(rungs) - 0.5, -0.5)
    drawing.legend(*pair[0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
    drawing.suptitle("Saddle ladder: what opens at each critical point", fontsize=9.5, x=0.01, ha="left")
    return drawing
