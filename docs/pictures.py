"""Make the pictures of the documents from real runs: `python docs/pictures.py`."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from PIL import Image

import stagescope as ss
from stagescope.core.progress import Progress
from stagescope.views.figure import CATEGORIES, colour_map
from stagescope.views.figure import STYLE as PAGE

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "savefig.facecolor": "white",
}
GREY = "0.45"
RARE_TO_FREQUENT = colour_map(foot=0.25)
SHADES = {"uniform": "#f2f2f2", "scan": "#dbe9f6", "snapped": "#fdf0d9"}
PLACES = {"onset": ("right", 0), "peak": ("center", 1), "winner": ("left", 0), "slow": ("center", 0), "snap": ("center", 0)}
"""Side and row of each event's name above the axes: three of the events are close together."""
SPAN = (1.0, 1000.0)
EMBEDDING, SCORES = CATEGORIES[:2]
REPRODUCED = {
    "published-run": "2",
    "focus-and-dilution": "theorem-and-experiment",
    "blind-focus": "blind",
    "frozen-attention": "frozen",
}
"""Pictures of focus-dilution.md by the figure that they are."""


def attention(ax: Axes, figure: Figure, curves: ss.ClassAttention, stages: ss.Stages, n: int = 0) -> None:
    """Attention of class n on each of its tokens, with the events of the run."""
    common, distinct = np.flatnonzero(curves.common[n]), np.flatnonzero(curves.distinct[n])
    frequency = Normalize(0, curves.table[n].max())
    grey = ax.plot(curves.time, curves.attention[:, n, common], color=GREY, lw=2.6)[0]
    grey.set_label("common tokens")
    for token in distinct:
        colour = RARE_TO_FREQUENT(frequency(curves.table[n, token]))
        label = "distinct tokens" if token == distinct[-1] else None
        ax.plot(curves.time, curves.attention[:, n, token], color=colour, lw=1.4, label=label)
    top = 1.04 * curves.attention[-1, n].max()
    for name, when in stages.events.items():
        if when is not None:
            side, row = PLACES[name]
            height = top * (1.025 + 0.065 * row)
            ax.plot([when, when], [0, height - 0.008 * top], color="0.2", lw=0.7, ls=(0, (4, 2)), clip_on=False, zorder=0)
            ax.text(when, height, name, ha=side, va="bottom", fontsize=8.5)
    ax.legend(loc="upper left", frameon=False, fontsize=8.5, borderpad=0.1, handlelength=1.0, handletextpad=0.5)
    _log_time(ax)
    ax.set(ylim=(0, top), ylabel="attention $c_{l|n}$ of one class")
    ax.set_title("Scan: distinct tokens win attention from common ones", pad=33)
    bar = figure.colorbar(ScalarMappable(frequency, RARE_TO_FREQUENT), ax=ax, pad=0.02, aspect=30)
    bar.set_label("frequency $P(l\\,|\\,n)$")
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]


def speed(ax: Axes, curves: ss.ClassAttention, stages: ss.Stages) -> None:
    """How fast attention moves, averaged over classes, with the stages shaded."""
    moving = 1e3 * curves.mean(curves.speed)
    names = {"transform": ax.get_xaxis_transform(), "ha": "center", "va": "bottom", "fontsize": 8.5}
    for stage in stages:
        start, stop = max(stage.start, SPAN[0]), stage.stop or SPAN[1]
        ax.axvspan(start, stop, color=SHADES[stage.name], lw=0)
        ax.text(np.sqrt(start * stop), 1.025, stage.name, **names)
    ax.plot(curves.time, moving, color=CATEGORIES[0], lw=1.8)
    level = 0.1 * moving.max()
    ax.axhline(level, color="0.2", lw=0.7, ls=(0, (4, 2)))
    ax.text(930, 1.1 * level, "10 % of peak", ha="right", va="bottom", fontsize=8.5)
    _log_time(ax)
    ax.set(ylim=(0, 1.08 * moving.max()), ylabel=r"attention speed $|\dot c\,|_1$, in $10^{-3}$")
    ax.set_title("Snap: it peaks, then slows to a crawl", pad=33)


def _log_time(ax: Axes) -> None:
    ax.set(xscale="log", xlim=SPAN, xlabel="flow time $t$")
    ax.xaxis.set_major_formatter("{x:g}")


def scan_and_snap() -> Figure:
    run = ss.run_study("scan-snap", "syn-small-flow")
    curves, stages = ss.class_attention(run), ss.stages(run)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.7), width_ratios=(1.35, 1), layout="constrained")
    attention(left, figure, curves, stages)
    speed(right, curves, stages)
    return figure


def reproduced(name: str) -> Figure:
    """A figure as `stagescope reproduce focus-dilution --figure NAME` draws it."""
    figure = ss.study("focus-dilution").figures()[name]
    return figure.draw(figure.compute(Progress()))


def save(figure: Figure, out: Path) -> None:
    figure.get_layout_engine().set(wspace=0.06)  # pyright: ignore[reportOptionalMemberAccess, reportCallIssue]
    figure.savefig(out, dpi=140 if figure.get_figwidth() > 10 else 165, metadata={"Software": None})
    with Image.open(out) as drawn:
        small = drawn.convert("RGB").quantize(96, dither=Image.Dither.NONE)  # lines and text: half of the size
    small.save(out, optimize=True)
    print(f"{out.name}: {out.stat().st_size / 1e3:.0f} kB")


def main(folder: Path) -> None:
    with plt.rc_context(STYLE):
        save(scan_and_snap(), folder / "scan-and-snap.png")
    page: Any = PAGE
    for name, figure in REPRODUCED.items():
        with plt.rc_context(page):
            save(reproduced(figure), folder / f"{name}.png")


if __name__ == "__main__":
    main(Path(__file__).parent)
