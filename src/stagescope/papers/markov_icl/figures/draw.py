"""Draw the figures of in-context Markov chains."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import pyplot

from stagescope.views.figure import COLORS, GREY, Numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


ORDER = ("uniform", "unigram", "bigram", "trigram")
"""A strategy has the same colour in every panel."""


def _kl(axes: "Axes", found: dict[str, Any], clock: str) -> None:
    kl = np.maximum(np.array(found["kl"]), 1e-4)
    for place, name in enumerate(found["strategies"]):
        axes.plot(found["compared"], kl[:, place], color=COLORS[ORDER.index(name)], label=name)
    axes.set(xlabel=clock, ylabel="KL(strategy || model), nats", yscale="log")
    axes.legend()


def _loss(axes: "Axes", found: dict[str, Any], clock: str) -> None:
    axes.plot(found["time"], found["loss"], color="black")
    for name, level in found["levels"].items():
        axes.axhline(level, color=GREY, linewidth=0.8, linestyle="--")
        axes.annotate(name, (1, level), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=7)
    axes.set(xlabel=clock, ylabel="loss, nats")


def minimal(numbers: Numbers) -> "Drawing":
    figure = pyplot.figure(figsize=(8, 5.2), constrained_layout=True)
    grid = figure.add_gridspec(2, 6, height_ratios=[3, 2])
    left, right = figure.add_subplot(grid[0, :3]), figure.add_subplot(grid[0, 3:])
    _kl(left, numbers, "t = lr x step")
    for place, (name, label) in enumerate((("match", "match b"), ("score", "v at lag 1"))):
        curve = np.array(numbers[name])
        right.plot(numbers["time"], curve / curve[-1], color=COLORS[place], label=f"{label}, end {curve[-1]:.2g}")
    right.set(xlabel="t = lr x step", ylabel="over its end", title="the match first, then lag 1")
    right.legend()
    for place, moment in enumerate(numbers["moments"]):
        axes = figure.add_subplot(grid[1, 2 * place : 2 * place + 2])
        axes.bar(range(len(moment["attention"])), moment["attention"], color=COLORS[2])
        axes.set(xlabel="lag", title=f"layer 1 at t = {moment['t']:.3g}", ylabel="" if place else "attention")
    return figure


def strategies(numbers: Numbers) -> "Drawing":
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.2), sharey=True, constrained_layout=True)
    for one, name in zip(axes, ("full", "doubly stochastic"), strict=True):
        _kl(one, numbers[name], "t = lr x step")
        one.set_title(f"{name} prior")
    return figure


def n_grams(numbers: Numbers) -> "Drawing":
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8, 3.2), constrained_layout=True)
    _loss(left, numbers, "t")
    right.plot(numbers["time"], numbers["first"], color=COLORS[0], label="head 1 on lag 1")
    right.plot(numbers["time"], numbers["second"], color=COLORS[1], label="head 2 on lag 2")
    right.set(xlabel="t", ylabel="attention")
    right.legend()
    for one in (left, right):
        one.set(xscale="log", xlim=(10, None))
    return figure


def plateau(numbers: Numbers) -> "Drawing":
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.2), sharey=True, constrained_layout=True)
    for one, doubly in zip(axes, (False, True), strict=True):
        for place, rho in enumerate(sorted({row["ratio"] for row in numbers["rows"]})):
            rows = [row for row in numbers["rows"] if row["ratio"] == rho and row["doubly"] is doubly]
            lags = [row["lags"] for row in rows]
            one.plot(lags, [row["t2"] for row in rows], "o", color=COLORS[place], label=f"rho {rho:g}")
            one.plot(lags, [row["law"] for row in rows], "--", color=COLORS[place], linewidth=1)
        title = "doubly stochastic: two-step law" if doubly else "full prior: D / (rho b* gamma_1)"
        one.set(xlabel="lags D", xscale="log", yscale="log", title=title)
        shown = sorted({row["lags"] for row in numbers["rows"]})
        one.set_xticks(shown, [str(lags) for lags in shown])
        one.minorticks_off()
        one.legend()
    axes[0].set_ylabel("t_2 (dashed: law)")
    return figure


def mixture(numbers: Numbers) -> "Drawing":
    figure, axes = pyplot.subplots(figsize=(4.2, 3.2), constrained_layout=True)
    axes.plot(numbers["share"], numbers["t2"], "o-", color=COLORS[0])
    axes.set(xlabel="share of doubly stochastic chains", ylabel="t_2", ylim=(0, None))
    return figure
