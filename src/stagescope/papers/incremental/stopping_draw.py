"""Ink of the early-stopping figure."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from stagescope.views.figure import COLORS, GREY, Numbers

DARK = "#444444"
STYLES: dict[str, dict[str, Any]] = {
    "oracle": {"color": COLORS[7], "marker": "*", "ms": 11},
    "held-out": {"color": COLORS[0], "marker": "o", "ms": 6},
    "adaptive": {"color": COLORS[1], "marker": "D", "ms": 5.5},
    "end": {"color": COLORS[3], "marker": "s", "ms": 5.5},
    "likelihood": {"color": COLORS[4], "marker": "v", "ms": 5, "ls": "--"},
    "ridge": {"color": COLORS[2], "marker": "^", "ms": 5, "ls": "--"},
}
NAMES = {
    "oracle": "best frame (oracle)",
    "held-out": "held-out, patience in steps",
    "adaptive": "held-out, patience in stages (adaptive)",
    "end": "end of run",
    "likelihood": "best likelihood fit, lags told",
    "ridge": "best ridge fit, lags told",
}
MOST = 1.15
"""Curves are shown up to this many times the level l_0: an overfitted loss goes far beyond."""


def stopping(numbers: Numbers) -> Drawing:
    drawing, axes = plt.subplots(2, 3, figsize=(11.4, 7.8), layout="constrained")
    for axis, panel in zip(axes[0], numbers["panels"], strict=False):
        _curves(axis, panel, numbers["levels"])
    for axis in axes[0, len(numbers["panels"]) :]:
        axis.set_visible(False)
    axes[0, 0].set_ylabel("loss (nats)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
    _losses(axes[1, 0], numbers)
    _classes(axes[1, 1], numbers)
    _gains(axes[1, 2], numbers)
    for axis in axes[1]:
        _sizes(axis, [entry["sequences"] for entry in numbers["summary"]])
    drawing.suptitle(_headline(numbers["summary"]), x=0.01, ha="left")
    return drawing


def _headline(summary: list[Numbers]) -> str:
    same, judged, wins, runs = (sum(entry[name] for entry in summary) for name in ("same_class", "judged", "ridge_wins", "runs"))
    rest = f", {runs - judged} not judged" if judged < runs else ""
    first = f"The class at the best stop is the best likelihood fit in {same} of {judged} runs{rest}"
    return f"{first}; a ridge fit that knows the lags predicts better than the best stop in {wins} of {runs}"


def _curves(axis: Any, panel: Numbers, levels: list[float]) -> None:
    step = np.maximum(panel["step"], 0.7)
    axis.plot(step, panel["validation"], color=DARK, label="loss to the true law", zorder=3)
    axis.plot(step, panel["held"], color=COLORS[5], lw=1.1, label="held-out sample, tokens drawn")
    axis.plot(step, panel["training"], color=GREY, lw=1.1, ls=":", label="training")
    for j, level in enumerate(levels):
        axis.axhline(level, color=GREY, lw=0.8, ls="--", zorder=0)
        axis.text(1.01, level, f"$l_{j}$", fontsize=8, va="center", color=DARK, transform=axis.get_yaxis_transform())
    top = MOST * levels[0]
    for rule, stop in panel["stops"].items():
        beyond = stop["loss"] > top
        height = 0.985 * top if beyond else stop["loss"]
        # open marks, so that rules that agree can be seen through one another
        style = {**STYLES[rule], "ls": "", "mfc": "none", "mew": 1.5, "zorder": 5, "label": NAMES[rule]}
        axis.plot(max(stop["step"], 0.7), height, **style)
        if beyond:
            text = f"{stop['loss']:.1f} ↑"
            axis.annotate(text, (stop["step"], height), (0, -7), textcoords="offset points", ha="center", va="top", fontsize=8)
    axis.set(xscale="log", xlabel="step", ylim=(0, top))
    axis.set_title(f"N = {panel['sequences']} training sequences")


def _losses(axis: Any, numbers: Numbers) -> None:
    sizes = [entry["sequences"] for entry in numbers["summary"]]
    for name, style in STYLES.items():
        means = np.array([entry["loss"][name] for entry in numbers["summary"]], float)
        ranges = np.array([entry["loss_range"][name] for entry in numbers["summary"]], float)
        thin = {key: value for key, value in style.items() if key != "ms"}
        axis.plot(sizes, means, **{**thin, "ms": 0.6 * style["ms"], "lw": 1.3}, label=NAMES[name])
        axis.fill_between(sizes, ranges[:, 0], ranges[:, 1], color=style["color"], alpha=0.12, lw=0)
    axis.axhline(numbers["levels"][-1], color=GREY, lw=0.8, ls="--", zorder=0)
    axis.set(yscale="log", ylabel="loss to the true law (mean, range)")
    axis.yaxis.set_major_locator(FixedLocator([0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8]))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_title(r"what a stop costs (dashed: Bayes)")
    _legend_below(axis)


def _classes(axis: Any, numbers: Numbers) -> None:
    """One mark a run: the class at the best stop, and j* of the fits at each ridge."""
    ridges = list(numbers["summary"][0]["best_by_ridge"])
    looks = [{"marker": mark, "color": color} for mark, color in (("_", COLORS[2]), ("v", COLORS[4]), ("x", COLORS[1]))]
    for entry in numbers["summary"]:
        runs = len(entry["class_at_stop"])
        spread = np.exp(np.linspace(-0.12, 0.12, runs))
        axis.plot(entry["sequences"] * spread, np.array(entry["class_at_stop"]) + 0.09, "*", color=COLORS[7], ms=6)
        for place, (ridge, look) in enumerate(zip(ridges, looks, strict=True)):
            best = [np.nan if j is None else j - 0.09 * (place + 1) for j in entry["best_by_ridge"][ridge]]
            axis.plot(entry["sequences"] * spread, best, ls="", ms=4.5, **look)
    axis.plot([], [], "*", color=COLORS[7], label="class at the best stop")
    for ridge, look in zip(ridges, looks, strict=True):
        axis.plot([], [], ls="", **look, label=rf"best likelihood fit $j^*$, ridge {float(ridge):.0e}".replace("e-0", "e-"))
    classes = len(numbers["levels"]) - 1
    axis.set_yticks(range(classes + 1))
    axis.set_ylim(-0.5, classes + 0.4)
    for j in range(classes + 1):
        axis.axhspan(j - 0.36, j + 0.18, color=GREY, alpha=0.08, lw=0)
    axis.grid(visible=False)
    axis.set(ylabel="class j")
    axis.set_title("which class it is (one mark a run)")
    _legend_below(axis)


def _gains(axis: Any, numbers: Numbers) -> None:
    """What is lost by not stopping where each rule says, above the best frame."""
    summary = numbers["summary"]
    sizes = [entry["sequences"] for entry in summary]
    for rule in ("end", "held-out", "adaptive"):
        above = [entry["loss"][rule] - entry["loss"]["oracle"] for entry in summary]
        style = {key: value for key, value in STYLES[rule].items() if key != "ms"}
        label = "end of run: the stop gain" if rule == "end" else NAMES[rule]
        axis.plot(sizes, np.maximum(above, 1e-4), **style, ms=4, lw=1.3, label=label)
    ranges = np.maximum([entry["stop_gain_range"] for entry in summary], 1e-4)
    axis.fill_between(sizes, ranges[:, 0], ranges[:, 1], color=STYLES["end"]["color"], alpha=0.12, lw=0)
    axis.set(yscale="log", ylabel="loss above that of the best frame")
    axis.set_ylim(0.8e-4, 60)
    axis.set_title("what each rule misses (below 1e-4: at 1e-4)")
    _legend_below(axis)


def _legend_below(axis: Any) -> None:
    """Under the axis: how much room curves leave inside depends on the task."""
    axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.17), frameon=False)


def _sizes(axis: Any, sizes: list[int]) -> None:
    axis.set(xscale="log", xlabel="training sequences N")
    axis.xaxis.set_major_locator(FixedLocator(sizes))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
