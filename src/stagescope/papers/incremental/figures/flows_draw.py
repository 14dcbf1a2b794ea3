"""Drawings of the figures of incremental learning that are our own, and of the paper's figure 10."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as Drawing

from stagescope.papers.incremental.figures.draw import DARK, heads_by_lag
from stagescope.views.figure import COLORS, GREY, Numbers

VERDICTS = {
    "confirmed": ("o", COLORS[2]),
    "violated": ("X", COLORS[1]),
    "inconclusive": ("s", COLORS[4]),
    "not applicable": ("_", GREY),
}
"""Mark and colour."""


def flow(numbers: Numbers) -> Drawing:
    drawing, (left, right) = plt.subplots(1, 2, figsize=(10.2, 3.9), layout="constrained")
    for panel in numbers["panels"]:
        t = np.maximum(panel["t"], 1e-3)
        left.plot(
            t, panel["loss"], color=COLORS[0], lw=1.0, alpha=0.8, label="draws of the noise" if panel["seed"] == 0 else None
        )
    for place, (low, high) in enumerate(numbers["published_drops"]):
        left.axvspan(low, high, color=COLORS[1], alpha=0.25, lw=0, label=None if place else "published drops")
    for j, level in enumerate(numbers["levels"]):
        left.axhline(level, color=GREY, lw=0.9, ls="--", zorder=0)
        left.text(1.01, level, f"$l_{j}$", fontsize=8, va="center", color=DARK, transform=left.get_yaxis_transform())
    left.set(xscale="log", xlim=(0.5, numbers["panels"][0]["t"][-1]), xlabel="t", ylabel="loss", title="loss of the mirror flow")
    left.legend()
    first = numbers["panels"][0]
    mass = np.array(first["mass"])
    for head in range(mass.shape[1]):
        for place in range(mass.shape[2]):
            label = f"position of feature {place + 1}" if head == 0 else None
            right.plot(
                np.maximum(first["t"], 1e-3),
                mass[:, head, place],
                color=COLORS[place],
                ls=("-", "--", ":")[head % 3],
                label=label,
            )
    right.set(
        xscale="log", xlim=(0.5, first["t"][-1]), xlabel="t", ylabel="attention", title="draw 0: heads solid, dashed, dotted"
    )
    right.legend(loc="center left")
    error = numbers["solver_difference"]["loss"]
    drawing.suptitle(f"{numbers['title']}; two solvers differ by at most {error:.0e} in loss", x=0.01, ha="left")
    return drawing


def clocks(numbers: Numbers) -> Drawing:
    drawing, axes = plt.subplots(1, len(numbers["panels"]), figsize=(12.2, 3.9), layout="constrained", sharey=True)
    for axis, panel in zip(axes, numbers["panels"], strict=True):
        axis.plot(
            panel["flow"]["t"], panel["flow"]["rung"], color=COLORS[1], lw=2.6, alpha=0.55, label="flow from the same logits"
        )
        axis.plot(panel["model"]["t"], panel["model"]["rung"], color=COLORS[0], lw=1.3, label="model")
        if panel["departure"] is not None:
            axis.axvline(panel["departure"], color=DARK, lw=1, ls=":", label=f"leaves the flow at t = {panel['departure']:,.0f}")
        ratios = ", ".join("-" if ratio is None else f"{ratio:.3f}" for ratio in panel["ratios"])
        promise = "inside" if panel["promised"] else "outside"
        axis.set_title(f"{panel['label']} ({promise} the clock's regime)\n$t_j$ over the flow's: {ratios}", fontsize=8.5)
        axis.set(xscale="log", xlabel="t of the run (learning rate x step)")
        axis.set_xlim(left=max(panel["model"]["t"][0], panel["model"]["t"][-1] * 1e-3))
        axis.legend(loc="upper left")
    axes[0].set(ylabel="position on the ladder, j at level j", ylim=(-0.05, 4.1), yticks=range(4))
    drawing.suptitle(numbers["title"], x=0.01, ha="left")
    return drawing


def escapes(numbers: Numbers) -> Drawing:
    drawing, axes = plt.subplots(1, 2, figsize=(10.2, 4.2), layout="constrained")
    x = np.log(1 / np.array(numbers["sigmas"]))
    for axis, law in zip(axes, ("exact", "mirror"), strict=True):
        rows = [panel for panel in numbers["panels"] if panel["law"] == law]
        for row, color in zip(rows, COLORS, strict=False):
            y = np.sqrt(row["t2"])
            label = (
                f"H={row['heads']}, m={row['ratio']:g}, N={row['positions']}: slope {row['slope']:.3f}, form {row['form']:.3f}"
            )
            axis.plot(x, y, "o", color=color, ms=5, label=label)
            axis.plot(x, np.sqrt(row["wkb"]), color=color, lw=1.3)
            axis.plot(x, y[0] + row["form"] * (x - x[0]), color=color, lw=1.0, ls=":")
        axis.set(xlabel=r"$\ln(1/\sigma)$", title=f"{law} law")
        axis.legend(loc="upper left")
        axis.set_ylim(top=axis.get_ylim()[1] + 0.35 * np.ptp(axis.get_ylim()))
    axes[0].set_ylabel(r"$\sqrt{t_2}$")
    key = "dots: flow; lines: WKB from the first dot; dotted: slope of the closed form"
    drawing.suptitle(f"{numbers['title']}; {key}", x=0.01, ha="left")
    return drawing


def encodings(numbers: Numbers) -> Drawing:
    panels = numbers["panels"]
    drawing = plt.figure(figsize=(12.6, 7.0), layout="constrained")
    parts: Any = drawing.subfigures(2, 1, height_ratios=(1.5, 1))
    above, below = parts
    axes = above.subplots(1, 3, width_ratios=(1.2, 1, 1))
    _curves(axes[0], panels)
    _times(axes[1], numbers["times"], panels[0][0]["step"][-1])
    _verdicts(axes[2], panels)
    for axis, drawn in zip(below.subplots(1, len(panels)), panels, strict=True):
        heads_by_lag(axis, drawn[0]["lags"], drawn[0]["groups"], f"{drawn[0]['encoding']}, seed 0, at the end")
    drawing.suptitle(numbers["title"], x=0.01, ha="left")
    return drawing


def _curves(axis: Any, panels: list[list[Numbers]]) -> None:
    for drawn, color in zip(panels, COLORS, strict=False):
        for panel in drawn:
            axis.plot(panel["step"], panel["excess"], color=color, lw=0.6, alpha=0.5)
        middle = np.median([panel["excess"] for panel in drawn], axis=0)
        axis.plot(drawn[0]["step"], middle, color=color, lw=1.8, label=drawn[0]["encoding"])
    for j, level in enumerate(panels[0][0]["levels"]):
        axis.axhline(level, color=GREY, lw=0.9, ls="--", zorder=0)
        axis.text(1.01, level, f"$l_{j}$", fontsize=8, va="center", color=DARK, transform=axis.get_yaxis_transform())
    axis.set(xscale="log", xlim=(5, panels[0][0]["step"][-1]), xlabel="step", ylabel="loss above Bayes (nats)")
    axis.set_title("loss: seeds, and their median")
    axis.legend()


def _times(axis: Any, times: Numbers, end: float) -> None:
    """A mark a seed; bars from the least to the largest, with the median. Not reached: a triangle beyond the end."""
    beyond = 1.35 * end
    for column, (found, color) in enumerate(zip(times.values(), COLORS, strict=False)):
        for place, row in enumerate(found.values()):
            x = column + 0.26 * (place - 1)
            low, high, middle = (beyond if step is None else step for step in (*row["interval"], row["median"]))
            axis.plot([x, x], [low, high], color=color, lw=1.2)
            axis.plot([x - 0.1, x + 0.1], [middle, middle], color=color, lw=2.2)
            for step in row["steps"]:
                mark = {"marker": "o", "mfc": "white"} if step is not None else {"marker": "^", "mfc": color}
                axis.plot(x, beyond if step is None else step, **mark, mec=color, ms=4.5, ls="")
    axis.axhline(end, color=GREY, lw=0.9, ls="--", zorder=0)
    axis.set_xticks(range(len(times)), list(times), rotation=30, ha="right")
    axis.set(yscale="log", ylabel="step", title="$t_1, t_2, t_3$ of each seed; triangles: not reached")


def _verdicts(axis: Any, panels: list[list[Numbers]]) -> None:
    """A mark a seed."""
    everyone = [panel for drawn in panels for panel in drawn]
    tags = [tag for tag in everyone[0]["verdicts"] if any(p["verdicts"][tag]["verdict"] != "not applicable" for p in everyone)]
    for row, tag in enumerate(tags):
        for column, drawn in enumerate(panels):
            for place, panel in enumerate(drawn):
                mark, color = VERDICTS[panel["verdicts"][tag]["verdict"]]
                axis.plot(column + 0.8 * ((place + 0.5) / len(drawn) - 0.5), row, marker=mark, color=color, ms=4.5, ls="")
    for name, (mark, color) in VERDICTS.items():
        axis.plot([], [], marker=mark, color=color, ls="", label=name)
    axis.set_yticks(range(len(tags)), [tag.removeprefix("ISA:") for tag in tags])
    axis.set_xticks(range(len(panels)), [drawn[0]["encoding"] for drawn in panels], rotation=30, ha="right")
    axis.set(xlim=(-0.5, len(panels) - 0.5), ylim=(len(tags) - 0.5, -0.5), title="verdicts on the claims, by seed")
    axis.legend(loc="upper center", bbox_to_anchor=(0.4, -0.22), ncols=2, fontsize=7.5)
