"""Drawings of the figures of scan and snap on a text: each function draws the numbers of its namesake in this package."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from stagescope.papers.scan_snap.text.observables import INTERVAL
from stagescope.papers.scan_snap.text.stages import FREEZE
from stagescope.views.figure import COLORS, GREY, Numbers, colour_map


def maps(numbers: Numbers) -> Drawing:
    drawing = plt.figure(figsize=(11.5, 6.2), layout="constrained")
    halves: Any = drawing.subfigures(2, 1, height_ratios=(1.35, 1))
    upper, lower = halves
    axes = upper.subplots(1, len(numbers["maps"]), sharey=True)
    words, shown = numbers["words"], None
    for axis, step, rows in zip(axes, numbers["steps"], numbers["maps"], strict=True):
        values = np.array(rows)
        hidden = np.ma.masked_where(np.triu(np.ones_like(values, dtype=bool), 1), values)
        shown = axis.imshow(hidden, cmap=colour_map(), vmin=0, vmax=1, interpolation="nearest", aspect="equal")
        axis.set_title(f"step {step:,}")
        axis.set_xticks(range(len(words)), words, rotation=90, fontsize=4.5)
        axis.set_yticks(range(len(words)), words, fontsize=4.5)
        axis.tick_params(length=0, pad=1)
        axis.grid(visible=False)
    assert shown is not None
    axes[0].set_ylabel("query")
    upper.colorbar(shown, ax=axes, shrink=0.75, pad=0.01, label="attention")
    upper.suptitle(
        f"One held-out window of {numbers['corpus']}; SGD at the constant rate {numbers['rate']:g}, width {numbers['width']}"
    )
    sparse, moving = lower.subplots(1, 2)
    inks = {"constant": COLORS[1], "decaying": COLORS[0]}
    last = {"constant": "constant rate", "decaying": f"rate falling to {numbers['decay']:.0%} of itself"}
    for name, curve in numbers["curves"].items():
        sparse.plot(curve["step"], curve["entropy"], color=inks[name], label=last[name])
        moving.plot(curve["motion"]["step"], curve["motion"]["variation"], color=inks[name], label=last[name])
    moving.axhline(FREEZE.variation, color=GREY, lw=0.9, ls="--")
    moving.text(0, FREEZE.variation * 0.92, "frozen", color=GREY, va="top", fontsize=8)
    _log_axis(moving)
    sparse.set_ylim(bottom=0)
    sparse.set_ylabel("entropy of held-out attention (nats)")
    moving.set_ylabel(f"total variation per {INTERVAL} steps")
    for axis in (sparse, moving):
        axis.set_xlabel("step")
    sparse.legend()
    lower.suptitle("Sparsity belongs to the current rate; attention freezes only where the rate decays")
    return drawing


def entropies(numbers: Numbers) -> Drawing:
    drawing, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
    rows = [row for row in numbers["rows"] if row["decay"] is None]
    decayed = [row for row in numbers["rows"] if row["decay"] is not None]
    rates = [row["rate"] for row in rows]
    for axis, name in ((left, "entropy"), (right, "motion")):
        table = np.array([row[name] for row in rows])
        for seed, (color, curve) in enumerate(zip(COLORS, table.T, strict=False)):
            axis.plot(rates, curve, "-o", color=color, ms=4, lw=1.2, label=f"seed {seed}")
            for row in decayed:
                axis.plot(row["rate"], row[name][seed], "D", color=color, mfc="white", ms=6)
        axis.set_xlabel("learning rate")
        axis.set_xticks(rates)
    left.axhline(np.mean(rows[0]["start"]), color=GREY, lw=0.9, ls="--")
    left.text(rates[-1], np.mean(rows[0]["start"]), "at the start", color=GREY, ha="right", va="bottom", fontsize=8)
    right.axhline(FREEZE.variation, color=GREY, lw=0.9, ls="--")
    right.text(rates[-1], FREEZE.variation, "frozen below", color=GREY, ha="right", va="bottom", fontsize=8)
    _log_axis(right)
    left.set_ylim(bottom=0)
    left.set_ylabel("entropy of held-out attention (nats)")
    right.set_ylabel(f"total variation per {INTERVAL} steps")
    left.plot([], [], "D", color="k", mfc="white", label=f"decaying to {decayed[0]['decay']:.0%}" if decayed else "decaying")
    left.legend()
    drawing.suptitle("Larger constant rates end sparser, and attention keeps moving; under decay entropy rises again")
    return drawing


def topics(numbers: Numbers) -> Drawing:
    drawing, (left, middle, right) = plt.subplots(1, 3, figsize=(11.5, 3.7), layout="constrained", width_ratios=(1.25, 1, 1))
    _scores(left, numbers["types"])
    found = {row["tag"]: row["measured"] for row in numbers["claims"]}
    if found["SnS:text-held"] is not None:
        left.set_title(f"rank correlation with held-out distinctness {found['SnS:text-held']:+.2f}")
    for name, color in (("common", GREY), ("distinct", COLORS[0])):
        middle.plot(numbers["step"], numbers["masses"][name], color=color)
        middle.text(numbers["step"][-1], numbers["masses"][name][-1] + 0.025, name, color=color, ha="right", va="bottom")
    middle.set_ylim(bottom=0)
    middle.set_ylabel("held-out attention on types")
    right.plot(numbers["motion"]["step"], numbers["motion"]["variation"], color=COLORS[1])
    right.axhline(FREEZE.variation, color=GREY, lw=0.9, ls="--")
    right.text(numbers["step"][-1], FREEZE.variation, "frozen below", color=GREY, ha="right", va="bottom", fontsize=8)
    _log_axis(right)
    right.set_ylabel(f"total variation per {INTERVAL} steps")
    for axis in (middle, right):
        axis.set_xlabel("step, constant rate")
        for name in ("prior", "snap"):
            if numbers["events"][name] is not None:
                axis.axvline(numbers["events"][name], color="k", lw=0.6, ls=":")
                axis.text(numbers["events"][name], axis.get_ylim()[1], f" {name}", fontsize=8, va="top")
    words = ", ".join(numbers["nexts"])
    drawing.suptitle(f"{numbers['corpus']}: windows before “{numbers['query']}”, by the next word ({words})")
    return drawing


def _log_axis(axis: Any) -> None:
    """A logarithmic axis with plain numbers."""
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    ticks = [tick for decade in (0.001, 0.01, 0.1, 1.0) for tick in (decade, 2 * decade, 5 * decade) if low <= tick <= high]
    axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.set_ylim(low, high)


def _scores(axis: Any, types: Numbers) -> None:
    score, distinctness = np.array(types["score"]), np.array(types["distinctness"])
    common, distinct = np.array(types["common"]), np.array(types["distinct"])
    neither = ~common & ~distinct
    for where, color, size in ((neither, "#c8c8c8", 7), (distinct, COLORS[0], 9), (common, "#333333", 12)):
        axis.scatter(distinctness[where], score[where], s=size, color=color, lw=0)
    height = np.ptp(score) / 22
    taken: list[tuple[float, float]] = []
    for i in [*np.argsort(-score)[:14], *np.flatnonzero(common)[np.argsort(score[common])][:6]]:
        if all(abs(score[i] - y) > height or abs(distinctness[i] - x) > 0.28 for x, y in taken):  # nat: names do not overlap
            axis.annotate(
                types["words"][i], (distinctness[i], score[i]), xytext=(4, 0), textcoords="offset points", fontsize=7, va="center"
            )
            taken.append((float(distinctness[i]), float(score[i])))
    axis.axhline(0, color="k", lw=0.6)
    axis.margins(x=0.1)
    axis.set_xlabel("distinctness KL(next | type || next), nats")
    axis.set_ylabel("score $z_l$ at the end")
    handles = [Line2D([], [], marker="o", ls="", color=color, ms=4) for color in ("#333333", COLORS[0], "#c8c8c8")]
    axis.legend(handles, ["common", "distinct", "neither"], loc="lower right")
