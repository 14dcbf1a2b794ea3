"""Drawings of the figures of incremental learning that are our own, and of the paper's figure 10."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as Drawing

from stagescope.papers.incremental.figures.draw import DARK, heads_by_lag
from stagescope.papers.incremental.stages import HEADS
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
    drawing, axes = plt.subplots(2, 3, figsize=(12.0, 6.6), layout="constrained")
    _curves(axes[0, 0], panels)
    _agreement(axes[0, 1], panels)
    _verdicts(axes[0, 2], panels)
    for axis, panel in zip(axes[1], panels, strict=True):
        heads_by_lag(axis, panel["lags"], panel["groups"], f"{panel['encoding']}: attention at step {panel['step'][-1]}")
    drawing.suptitle(numbers["title"], x=0.01, ha="left")
    return drawing


def _curves(axis: Any, panels: list[Numbers]) -> None:
    for panel, color in zip(panels, COLORS, strict=False):
        axis.plot(panel["step"], panel["excess"], color=color, label=panel["encoding"])
        for name, when in panel["events"].items():
            if when is not None and name.startswith("t"):
                axis.plot(when, np.interp(when, panel["step"], panel["excess"]), "o", color=color, ms=4.5)
    for j, level in enumerate(panels[0]["levels"]):
        axis.axhline(level, color=GREY, lw=0.9, ls="--", zorder=0)
        axis.text(1.01, level, f"$l_{j}$", fontsize=8, va="center", color=DARK, transform=axis.get_yaxis_transform())
    axis.set(xscale="log", xlim=(5, panels[0]["step"][-1]), xlabel="step", ylabel="loss above Bayes (nats)")
    axis.set_title("loss; dots: transitions $t_1, t_2, t_3$")
    axis.legend()


def _agreement(axis: Any, panels: list[Numbers]) -> None:
    for panel, color in zip(panels, COLORS, strict=False):
        axis.plot(panel["step"], panel["agreement"], color=color, label=panel["encoding"])
    for level in (HEADS.alike, HEADS.apart):
        axis.axhline(level, color=GREY, lw=0.9, ls="--", zorder=0)
    axis.set(xscale="log", xlim=(5, panels[0]["step"][-1]), ylim=(0, 1.03), xlabel="step", ylabel="agreement of heads")
    axis.set_title(f"heads compete above {HEADS.alike}, cooperate below {HEADS.apart}")


def _verdicts(axis: Any, panels: list[Numbers]) -> None:
    tags = [tag for tag in panels[0]["verdicts"] if any(p["verdicts"][tag]["verdict"] != "not applicable" for p in panels)]
    for row, tag in enumerate(tags):
        for column, panel in enumerate(panels):
            mark, color = VERDICTS[panel["verdicts"][tag]["verdict"]]
            axis.plot(column, row, marker=mark, color=color, ms=8, ls="")
    for name, (mark, color) in VERDICTS.items():
        axis.plot([], [], marker=mark, color=color, ls="", label=name)
    axis.set_yticks(range(len(tags)), [tag.removeprefix("ISA:") for tag in tags])
    axis.set_xticks(range(len(panels)), [panel["encoding"] for panel in panels])
    axis.set(xlim=(-0.5, len(panels) - 0.5), ylim=(len(tags) - 0.5, -0.5), title="verdicts on the claims")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, fontsize=7.5)
