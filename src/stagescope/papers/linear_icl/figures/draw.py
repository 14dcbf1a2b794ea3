"""Drawings of the figures of linear attention: each function draws the numbers of its namesake in `numbers`."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from stagescope.views.figure import COLORS, GREY, Numbers, colour_map


def _levels(axis, levels, names=None) -> None:  # noqa: ANN001 (axes and numbers)
    for m, level in enumerate(levels):
        axis.axhline(level, color=GREY, lw=0.7, zorder=0)
        axis.text(1.005, level, f"$l_{names[m] if names else m}$", color=GREY, transform=axis.get_yaxis_transform(), va="center")


def abrupt(numbers: Numbers) -> Drawing:
    drawing, axis = plt.subplots(figsize=(5.6, 3.3), layout="constrained")
    curve, known = numbers["curve"], numbers["published"]
    axis.plot(curve["step"], curve["loss"], color=COLORS[0], label="flow of all sequences")
    _levels(axis, numbers["levels"], (0, 4))
    axis.axvline(numbers["predicted"], color=COLORS[0], ls="--", lw=1, label=f"predicted drop {numbers['predicted']:.0f}")
    low, middle, high = numbers["over_starts"]
    axis.axvspan(
        low, high, color=COLORS[0], alpha=0.12, lw=0, label=f"of other starts: {low:.0f} to {high:.0f}, median {middle:.0f}"
    )
    steps = [float(name) for name in known["at"]]
    axis.plot(steps, list(known["at"].values()), "D", color=COLORS[1], mfc="white", label="read off the authors' notebook")
    axis.plot(known["half"], np.mean(numbers["levels"]), "D", color=COLORS[1], mfc="white")
    axis.set(xlabel="step of the authors' code", ylabel="loss", title="Merged heads learn in one drop")
    axis.legend()
    return drawing


def separate(numbers: Numbers) -> Drawing:
    drawing, axis = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for color, run in zip(COLORS, numbers["runs"], strict=False):
        axis.plot(run["step"], run["loss"], color=color, lw=1.2)
    for m, (low, high) in enumerate(numbers["published"]):
        middle = (numbers["levels"][m] + numbers["levels"][m + 1]) / 2
        axis.plot([low, high], [middle, middle], color=GREY, lw=4, alpha=0.6, solid_capstyle="butt")
    _levels(axis, numbers["levels"])
    ratios = " : ".join("-" if ratio is None else f"{ratio:.2g}" for ratio in numbers["ratios"])
    axis.set(xscale="log", xlim=(100, None), xlabel="step of the authors' code", ylabel="loss")
    spread = ", ".join(f"{low:.2g}-{high:.2g}" for low, _, high in numbers["over_starts"][1:])
    axis.set_title(f"Six seeds; bars: read off the notebook. Drops over the first: {ratios}\n10 to 90 % of 60 starts: {spread}")
    return drawing


def low_rank(numbers: Numbers) -> Drawing:
    panels = numbers["panels"]
    drawing, axes = plt.subplots(1, len(panels), figsize=(11, 3), sharey=True, layout="constrained")
    for axis, panel in zip(axes, panels, strict=True):
        axis.plot(panel["step"], panel["loss"], color=COLORS[0])
        for m, level in enumerate(numbers["levels"]):
            long = m % panel["rank"] == 0
            axis.axhline(level, color=COLORS[1] if long else GREY, lw=0.9 if long else 0.4, zorder=0)
        axis.set(xscale="log", xlim=(100, None), xlabel="step", title=f"rank {panel['rank']}")
    axes[0].set_ylabel("loss")
    drawing.suptitle("Eight directions, nine heads: plateaus are long at multiples of the rank (orange levels)")
    return drawing


def heads(numbers: Numbers) -> Drawing:
    maps = numbers["maps"]
    drawing, axes = plt.subplots(1, 1 + len(maps), figsize=(11, 2.9), layout="constrained", width_ratios=[2.2, *[1] * len(maps)])
    values = np.array(numbers["v"])
    for color, head in zip(COLORS, values.T, strict=False):
        axes[0].plot(numbers["t"], head, color=color)
    for when in numbers["drops"]:
        axes[0].axvline(when, color=GREY, lw=0.6)
    for final in numbers["finals"]:
        axes[0].axhline(final, color=GREY, lw=0.5, ls=":")
    axes[0].set(xscale="log", xlim=(100, None), xlabel="t", ylabel="$|v_h|$", title="one head rises at each drop")
    top = max(numbers["regression"])
    for m, (axis, matrix) in enumerate(zip(axes[1:], maps, strict=True), start=1):
        axis.imshow(matrix, cmap=colour_map(signed=True), vmin=-1.6 * top, vmax=1.6 * top)
        axis.set(xticks=[], yticks=[], title=f"M on plateau {m}")
        axis.grid(visible=False)
        for i in range(len(matrix)):
            axis.text(i, i, f"{matrix[i][i]:.2f}", ha="center", va="center", fontsize=7)
    said = ", ".join(f"{value:.2f}" for value in numbers["regression"])
    drawing.suptitle(f"M on plateau m is regression on m principal components: 1/(lambda a) = {said}")
    return drawing


def cascades(numbers: Numbers) -> Drawing:
    presets = sorted({row["preset"] for row in numbers["rows"]})
    drawing, axes = plt.subplots(1, len(presets), figsize=(8.6, 3.8), layout="constrained")
    for axis, preset in zip(axes, presets, strict=True):
        rows = [row for row in numbers["rows"] if row["preset"] == preset]
        ends = [min(row["measured"] for row in rows), max(row["measured"] for row in rows)]
        axis.plot(ends, ends, color=GREY, lw=1, zorder=0)
        for row in rows:
            ink = COLORS[row["drop"] - 1]
            axis.plot(
                row["predicted"],
                row["measured"],
                "o" if row["right"] else "x",
                color=ink,
                ms=4,
                mfc=ink if row["fair"] else "none",
            )
        axis.set(xscale="log", yscale="log", xlabel="predicted from the start", ylabel="measured", title=preset)
        drops = sorted({row["drop"] for row in rows})
        marks = [Line2D([], [], color=COLORS[m - 1], marker="o", ls="", label=f"drop {m}") for m in drops]
        axis.legend(handles=marks)
    drawing.suptitle("Drops from 30 starts: open where two heads were close, crosses where another head won")
    return drawing


def scale_law(numbers: Numbers) -> Drawing:
    drawing, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    scale = np.array(numbers["scale"])
    for axis, curve in zip(axes, numbers["curves"], strict=True):
        seen = np.array([np.nan if when is None else when for when in curve["d1"]])
        axis.plot(scale, seen, "o", color=COLORS[0])
        if curve["rate"] is None:
            said = (seen[0] - curve["delay"]) * scale[0] / scale + curve["delay"]
            axis.set(yscale="log", title="separate: d1 - delay = const / s")
        else:
            said = seen[0] - np.log(scale / scale[0]) / curve["rate"]
            axis.set(title="merged: d1 = const + ln(1/s) / r")
        axis.plot(scale, said, color=GREY, lw=1, zorder=0)
        axis.set(xscale="log", xlabel="scale s of the start", ylabel="first drop")
    return drawing
