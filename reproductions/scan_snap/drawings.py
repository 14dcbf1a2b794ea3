"""Drawings of the scan-and-snap figures: each function draws the numbers of its namesake in `figures`."""

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from stagescope.views.figure import COLORS, GREY, Numbers, colour_map, coloured, subplots

_line = partial(Line2D, [], [])
"""A line of a legend."""


def _ramp(share: float) -> Any:
    """A colour for a rank, from 0 to 1."""
    return colour_map(foot=0.2)(share)


def overview(numbers: Numbers) -> Drawing:
    moments = numbers["times"]
    drawing, axes = subplots(1, len(moments), figsize=(9.2, 2.3), sharey=True)
    common = np.array(numbers["common"])
    for axis, (name, when) in zip(axes, moments.items(), strict=True):
        values = np.array(numbers["attention"][name])
        ink = [GREY if c else COLORS[0] for c in common]
        axis.bar(np.arange(len(values)), values, color=ink, width=0.85)
        axis.set_title(f"{name}\nt = {when:.4g}")
        axis.set_xticks([])
        axis.grid(axis="x", visible=False)
        axis.text(0.25, -0.08, "common", color=GREY, transform=axis.transAxes, ha="center", va="top", fontsize=8)
        axis.text(0.75, -0.08, "distinct", color=COLORS[0], transform=axis.transAxes, ha="center", va="top", fontsize=8)
    axes[0].set_ylabel("attention $c_{l|n}$")
    drawing.suptitle(
        "Attention of one class: common tokens lose it, frequent distinct tokens win it, then it changes ever more slowly"
    )
    return drawing


def growth_factors(numbers: Numbers) -> Drawing:
    drawing, axes = subplots(1, 2, figsize=(8.2, 3.2))
    for axis, kind, title in zip(axes, ("chi", "upper"), ("exact flow", "upper bound $e^{2B(t)}$ of theorem 3"), strict=True):
        for color, curve in coloured(numbers["curves"]):
            axis.plot(curve["t"], curve[kind], color=color, label=rf"$\eta_Y$ = {curve['rate_y']:g}")
            height = float(np.interp(curve["t0"], curve["t"], curve[kind]))
            axis.plot(curve["t0"], height, "o", color=color, ms=5, mec="white")
        axis.set(title=title, xlabel="t")
    axes[0].set_ylabel(r"$\chi_l(t)$")
    axis = numbers["axis"]
    drawing.suptitle(
        "Growth factor of the winning token under the modified decoder: a slower decoder grows it further\n"
        f"It stays below {numbers['largest_chi']:.2f}. The paper's axis reaches {axis['reaches']:g}; theorem 3 allows that only "
        f"from $\\eta_Z/\\eta_Y$ = {axis['ratio_needed']:.0f} on",
        fontsize=9,
    )
    axes[0].legend(title=r"dots: $t_0 = K\,\ln M/\eta_Y$", title_fontsize=8)
    return drawing


def syn_small(numbers: Numbers) -> Drawing:
    drawing, axes = subplots(2, 2, figsize=(7.6, 4.8), sharex=True, sharey="row")
    for column, panel in enumerate(numbers["panels"]):
        top, bottom = axes[0, column], axes[1, column]
        values, common = np.array(panel["attention"]), np.array(panel["common"])
        distinct = np.flatnonzero(~common)
        top.plot(values[:, common], color=GREY, lw=1)
        for rank, i in enumerate(distinct):
            top.plot(values[:, i], color=_ramp(rank / len(distinct)), lw=1.3)
        top.set_title(rf"$\eta_Y$ = {panel['rate_y']:g}, $\eta_Z$ = 1")
        entropy = np.array(panel["entropy"])
        bottom.plot(entropy.T, color=COLORS[0], lw=0.6, alpha=0.35)
        bottom.plot(entropy.mean(axis=0), color=COLORS[0], lw=2)
        mean, spread = panel["entropy_at_99"]
        bottom.text(0.97, 0.9, f"step 99: {mean:.3f} ± {spread:.3f}", transform=bottom.transAxes, ha="right")
        bottom.set_xlabel("SGD step")
    axes[0, 0].set_ylabel("attention $c_{l|n}$")
    axes[1, 0].set_ylabel("entropy on distinct tokens")
    handles = [_line(color=GREY), *(_line(color=_ramp(x)) for x in (0.0, 0.9))]
    axes[0, 1].legend(handles, ["common", "distinct, rare", "distinct, frequent"])
    for value in numbers["published"]["1"]:
        axes[1, 0].plot(99, value, "_", color=COLORS[1], ms=12, mew=2)
    axes[1, 0].text(93, 1.953, "authors' code,\n3 seeds", color=COLORS[1], ha="right", va="bottom", fontsize=8)
    drawing.suptitle(
        "SGD on Syn-Small, contexts of 128 tokens: a faster decoder ends less sparse (thin: 10 seeds, ±: their spread)",
        fontsize=9.5,
    )
    return drawing


def adam(numbers: Numbers) -> Drawing:
    drawing, axes = subplots(1, 3, figsize=(8.2, 2.6), sharey=True)
    for axis, panel in zip(axes, numbers["panels"], strict=True):
        place = np.arange(len(panel["share"]))
        ink = [COLORS[1] if i == panel["top"] else COLORS[0] for i in place]
        axis.bar(place, panel["share"], yerr=panel["spread"], color=ink, error_kw={"lw": 0.8, "ecolor": "#555555"})
        axis.set(title=f"Adam, rate {panel['lr']:g}: token {panel['top']} leads", xlabel="distinct token, rare to frequent")
        axis.set_xticks(place)
        axis.grid(axis="x", visible=False)
    axes[0].set_ylabel("share of attention\non distinct tokens")
    return drawing


def entropy_grid(numbers: Numbers) -> Drawing:
    names = [name.split("|") for name in numbers["cells"]]
    lasts, rates, ratios = (sorted({name[part] for name in names}, key=float) for part in range(3))
    drawing, axes = subplots(1, len(lasts), figsize=(10, 3.1), sharey=True)
    for axis, last in zip(axes, lasts, strict=True):
        for color, rate_z in coloured(rates):
            ours, theirs = ([numbers[kind][f"{last}|{rate_z}|{r}"] for r in ratios] for kind in ("cells", "published"))
            at = [float(ratio) for ratio in ratios]
            axis.plot(at, [v[0] for v in ours], "-o", color=color, ms=4)
            axis.errorbar(at, *zip(*theirs, strict=True), fmt="D", color=color, mfc="white", ms=6, lw=1, alpha=0.8, zorder=1)
        axis.set_xscale("log")
        axis.set_xticks([float(ratio) for ratio in ratios], ratios)
        axis.minorticks_off()
        axis.set(title=f"{last} quer{'y' if last == '1' else 'ies'}, {2 * int(last)} classes", xlabel=r"$\eta_Y/\eta_Z$")
    axes[0].set_ylabel("entropy on distinct tokens")
    handles = [_line(color=color, label=rf"$\eta_Z$ = {rate_z}") for color, rate_z in coloured(rates)]
    handles += [_line(color="k", marker="o", ms=4, label="this package, mean of 10 seeds")]
    handles += [_line(color="k", marker="D", mfc="white", ls="", label="published mean and spread")]
    drawing.legend(handles=handles, loc="outside lower center", ncols=6)
    gap = f"{numbers['mean_abs_difference']:.3f} nats on average, {numbers['largest_difference']:.3f} at most"
    drawing.suptitle(f"Final entropy after 100 SGD steps; difference to the 64 published means: {gap}")
    return drawing


def discrete(numbers: Numbers) -> Drawing:
    drawing, axes = subplots(1, 2, figsize=(8.2, 3.2))
    for axis, panel in zip(axes, numbers["panels"], strict=True):
        for color, curve in coloured(panel["curves"]):
            axis.plot(curve["t"], curve["flow"], color=color, lw=1.2, label=rf"$\eta_Y$ = {curve['rate_y']:g}")
            shown = np.unique(np.geomspace(1, len(curve["discrete"]) - 1, 25).astype(int))
            axis.plot(shown, np.array(curve["discrete"])[shown], "o", ms=3.5, color=color, mfc="none", mew=0.9)
        worst = max(curve["gap_over_bound"][1] for curve in panel["curves"])
        axis.set(
            title=f"M = {panel['M']:,}: largest excess {worst:.0%} of $2\\eta_Y/M$", xlabel="t (steps of size 1)", xscale="log"
        )
        axis.legend(title="line: flow, circles: steps", title_fontsize=8, loc="upper left")
    axes[0].set_ylabel("h")
    return drawing


def common_growth(numbers: Numbers) -> Drawing:
    drawing, axes = subplots(1, 2, figsize=(7.6, 3.1))
    for axis, panel in zip(axes, numbers["panels"], strict=True):
        for rank, curve in enumerate(panel["curves"]):
            axis.plot(panel["t"], curve["B"], color=_ramp(rank / len(panel["curves"])), label=rf"$\eta_Z$ = {curve['rate_z']:g}")
        axis.set(title=rf"$\nu = \eta_Y/\eta_Z$ = {panel['nu']:g}, M = {panel['M']:,}", xlabel="t")
    axes[0].set_ylabel("$B(t)$, fall of the common token")
    drawing.suptitle("Closed form with the corrected constant: B(t) = 1/4 ln(1 + 4 Γ/C0), K = 1, C0 = 1")
    axes[0].legend()
    return drawing


def recall(numbers: Numbers) -> Drawing:
    panels = numbers["panels"]
    drawing, axes = subplots(1, len(panels), figsize=(4.4 * len(panels), 3.3), sharey=True)
    styles, rates = {"1": "-", "10": "--"}, list(dict.fromkeys(name.split("|")[0] for name in panels[0]["recall"]))
    for axis, panel in zip(axes, panels, strict=True):
        for color, rate_z in coloured(rates):
            for ratio, dash in styles.items():
                axis.plot(numbers["thresholds_times_M"], panel["recall"][f"{rate_z}|{ratio}"], dash, color=color)
        axis.axvline(1, color=GREY, lw=0.9)
        axis.text(1.06, 0.03, "1/M", color=GREY)
        axis.set(
            xscale="log",
            ylim=(0, 1.04),
            title=f"{2 * panel['num_last']} classes, M = {panel['M']}",
            xlabel="threshold on attention, in units of 1/M",
        )
    axes[0].set_ylabel("distinct tokens above it")
    handles: list[Any] = [_line(color=c, label=rf"$\eta_Z$ = {z}") for c, z in coloured(rates)]
    handles += [_line(color="k", ls=dash, label=rf"$\eta_Y/\eta_Z$ = {ratio}") for ratio, dash in styles.items()]
    axes[-1].legend(handles=handles)
    drawing.suptitle("Recall of distinct tokens by final attention")
    return drawing
