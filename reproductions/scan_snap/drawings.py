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
    """Four cartoons from data: class 1 upwards, class 2 downwards. The last shows the end of the run as steps, too."""
    times, shown, common = numbers["times"], numbers["attention"], np.array(numbers["common"])
    first, second = numbers["t0'"], numbers["t0"]
    titles = {
        "start": "uniform: as frequent",
        "winner": "common tokens suppressed",
        "slow": "winners",
        "snap": "almost frozen",
    }
    drawing, axes = subplots(1, 4, figsize=(10, 3), sharey=True)
    places = np.arange(len(common))
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        for n, sign in enumerate((1, -1)):
            values = sign * np.array(shown[name][n])
            axis.bar(places, values, color=np.where(common, GREY, COLORS[n]), width=0.85)
            if name == "snap":
                axis.step(places, sign * np.array(shown["end"][n]), where="mid", color="k", lw=0.8)
        axis.axhline(0, color="k", lw=0.6)
        axis.set_title(f"{title}\nt = {times[name]:.3g}")
        axis.set_xticks([4.5, 14.5, 24.5], ["common", "only in\nclass 1", "only in\nclass 2"], fontsize=8)
        axis.tick_params(axis="x", length=0)
        axis.grid(axis="x", visible=False)
    axes[-1].text(0.02, 0.04, f"line: t = {times['end']:,.0f}", transform=axes[-1].transAxes, fontsize=8)
    axes[0].yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    axes[0].set_ylabel("attention $c_{l|n}$\nclass 2          class 1")
    drawing.suptitle(
        "Flow of Syn-Small from zero, equal rates. The paper's times are "
        f"$t_0$\u2032 = {first:.1f} and $t_0$ = {second:.0f}; attention is frozen later, at {times['snap']:.0f}"
    )
    return drawing


def growth_factors(numbers: Numbers) -> Drawing:
    drawing, axis = subplots(1, 1, figsize=(7.6, 4.8))
    end = numbers["axis"]["reaches"]
    for color, curve in coloured(numbers["curves"]):
        axis.plot(curve["t"], curve["chi"], color=color, lw=2)
        axis.plot(curve["t"], curve["printed"], "--", color=color, lw=1.3)
        axis.plot([curve["t0"]] * 2, [0, end], ":", color=color, lw=1.2)
        axis.plot(curve["t0'"], 0, "|", color=color, ms=14, mew=2, clip_on=False)
        axis.text(curve["t"][-1] + 6, curve["printed"][-1], rf"$\eta_Y$ = {curve['rate_y']:g}", color=color, va="center")
    axis.set(xlabel="t", ylabel=r"growth factor $\chi_{l_0}(t)$ of the winning token", xlim=(0, 700), ylim=(0, end))
    handles = [
        _line(color="k", lw=2, label=f"exact flow, at most {numbers['largest_chi']:.2f}"),
        _line(color="k", ls="--", lw=1.3, label=rf"theorem 4 as printed, $\rho_0^2$ = {numbers['squares']:g}"),
        _line(color="k", ls=":", lw=1.2, label=r"$t_0 = 2(1+\omega_1)K\ln M/\eta_Y$"),
        _line(color="k", marker="|", ls="", ms=10, mew=2, label="$t_0$\u2032" + r" $= K\ln M/\eta_Y$"),
    ]
    drawing.legend(handles=handles, loc="outside lower center", ncols=4)
    inset = axis.inset_axes((0.58, 0.07, 0.38, 0.21))
    for color, curve in coloured(numbers["curves"]):
        inset.plot(curve["t"], curve["chi"], color=color, lw=1.4)
    inset.set_title("exact flow, enlarged", fontsize=8)
    inset.tick_params(labelsize=7)
    drawing.suptitle(
        r"K = 10, M = 1000, $\eta_Z$ = .5: a slower decoder turns later and grows the winner further. The flow stays far below"
        "\nthe printed axis, which the printed bound reaches only with a $\\rho_0$ that makes $f$ larger than 1",
        fontsize=9,
    )
    return drawing


def _heat(axis: Any, panel: Numbers, n: int, tokens: int) -> Any:
    """Attention of class n on the first tokens: a row for each iteration."""
    rows = np.array(panel["attention"])[:, n, :tokens]
    image = axis.imshow(rows, cmap=colour_map(), vmin=0, vmax=HOTTEST, aspect="auto", interpolation="nearest")
    axis.set_yticks(range(len(rows)), [*map(str, panel["iterations"][:-1]), "Final"])
    axis.set_xticks(range(0, tokens, 5))
    axis.tick_params(length=0)
    axis.grid(visible=False)
    for edge in range(10, tokens, 10):
        axis.axvline(edge - 0.5, color=GREY, lw=0.9)
    return image


HOTTEST = 0.2
"""End of the colour scale of figures 4 and 5."""


def syn_small(numbers: Numbers) -> Drawing:
    drawing, axes = subplots(2, 2, figsize=(10, 4.6), sharex=True, sharey=True)
    image = None
    for column, panel in enumerate(numbers["panels"]):
        for n in range(2):
            image = _heat(axes[n, column], panel, n, 30)
        mean, spread = panel["entropy_at_99"]
        axes[0, column].set_title(
            rf"$\eta_Y$ = {panel['rate_y']:g}, $\eta_Z$ = 1: entropy {mean:.2f} ± {spread:.2f} nats at the end"
        )
        axes[1, column].set_xlabel("token: 0-9 common, 10-19 only in class 1, 20-29 only in class 2")
    for n in range(2):
        axes[n, 0].set_ylabel(f"class {n + 1}\niteration")
    drawing.colorbar(image, ax=axes, label="attention $c_{l|n}$", extend="max", pad=0.01)
    drawing.suptitle(
        "SGD on Syn-Small: attention gets sparse, most on the most frequent distinct token; a faster decoder is quicker and ends "
        f'less sparse\nmaps: seed 0; "Final" is iteration 100; entropy, on distinct tokens: {numbers["seeds"]} seeds',
        fontsize=9.5,
    )
    return drawing


def adam(numbers: Numbers) -> Drawing:
    drawing, axes = subplots(1, 3, figsize=(10, 2.9), sharey=True)
    image = None
    for axis, panel in zip(axes, numbers["panels"], strict=True):
        image = _heat(axis, panel, 0, 20)
        axis.set(title=rf"$\eta_Y = \eta_Z$ = {panel['lr']:g}: token {10 + panel['top']} leads", xlabel="token")
    axes[0].set_ylabel("iteration")
    drawing.colorbar(image, ax=axes, label="attention $c_{l|1}$", extend="max", pad=0.01)
    drawing.suptitle(
        "Adam on Syn-Small, class 1 (tokens 0-9 common, 10-19 distinct, rare to frequent): its rate decides which tokens win"
        f"\nmaps: seed 0; the leading token: both classes, mean of {numbers['seeds']} seeds",
        fontsize=9.5,
    )
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
    handles += [_line(color="k", marker="o", ms=4, label="this package, mean over seeds")]
    handles += [_line(color="k", marker="D", mfc="white", ls="", label="published mean and spread")]
    drawing.legend(handles=handles, loc="outside lower center", ncols=6)
    gap = f"{numbers['mean_abs_difference']:.3f} nats on average, {numbers['largest_difference']:.3f} at most"
    drawing.suptitle(f"Final entropy after 100 SGD steps; difference to the 64 published means: {gap}")
    return drawing


def discrete(numbers: Numbers) -> Drawing:
    drawing, axes = subplots(1, 2, figsize=(9, 3.6))
    for axis, panel in zip(axes, numbers["panels"], strict=True):
        t = np.linspace(0, panel["until"], len(panel["curves"][0]["flow"]))
        for color, curve in coloured(panel["curves"]):
            axis.plot(t, curve["flow"], color=color, lw=1.3)
            axis.plot(np.arange(len(curve["steps"])), curve["steps"], ".", color=color, ms=4)
            axis.text(
                panel["until"] * 1.01, curve["flow"][-1], rf"$\eta_Y$ = {curve['rate_y']:g}", color=color, va="center", fontsize=8
            )
        worst = max(curve["gap_over_bound"][1] for curve in panel["curves"])
        axis.set(
            title=f"M = {panel['M']:,}: dots are at most {worst:.0%} of $2\\eta_Y/M$ above the line", xlabel="t (steps of size 1)"
        )
        axis.set(xlim=(0, panel["until"]), ylim=(0, None))
    axes[0].set_ylabel("$h^*$ (dots, steps) and $h$ (line, flow)")
    return drawing


def common_growth(numbers: Numbers) -> Drawing:
    drawing, axes = subplots(1, 2, figsize=(9, 3.4))
    for axis, panel, top in zip(axes, numbers["panels"], (0.8, 1.6), strict=True):
        for rank, curve in enumerate(panel["curves"]):
            color = _ramp(rank / len(panel["curves"]))
            axis.plot(panel["t"], curve["B"], color=color, label=rf"$\eta_Z$ = {curve['rate_z']:g}")
            axis.plot([curve["t0"]] * 2, [0, curve["B(t0)"]], ":", color=color, lw=1.2)
            axis.plot(curve["t0"], curve["B(t0)"], "o", color=color, ms=5, zorder=3)
        level = panel["curves"][0]["B(t0)"]
        axis.set(title=rf"$\eta_Y/\eta_Z$ = {panel['nu']:g}, M = {panel['M']:,}: $B(t_0)$ = {level:.4f}", xlabel="t")
        axis.set(xlim=(0, panel["t"][-1]), ylim=(0, top))
    axes[0].legend(loc="lower right")
    axes[0].set_ylabel("$B(t)$, fall of the common token")
    drawing.suptitle(
        "$B(t_0)$ (dots) does not depend on $\\eta_Z$ where $\\eta_Y/\\eta_Z$ is fixed; dotted: $t_0$. K = 1, $C_0$ = 1"
    )
    return drawing


def recall(numbers: Numbers) -> Drawing:
    by_z = numbers["panels_by"] == "rate_z"
    names = (r"$\eta_Z$", r"$\eta_Y/\eta_Z$")
    column, line = names if by_z else names[::-1]
    rows = numbers["rows"]
    drawing, axes = subplots(len(rows), 4, figsize=(10, 9), sharey="row", sharex="row")
    for row, panels in zip(rows, axes, strict=True):
        for value, axis, curves in zip(numbers["columns"], panels, row["curves"], strict=True):
            for rank, curve in enumerate(curves):
                axis.plot(row["thresholds"], curve, color=_ramp(0.1 + 0.9 * rank / len(curves)))
            axis.axvline(1 / row["M"], color=GREY, lw=0.9, ls=":")
            ends = row["thresholds"][0], row["thresholds"][-1]
            axis.set(xlim=ends, xticks=(marks := np.linspace(*ends, 3)), xticklabels=[f"{mark:.4g}" for mark in marks])
            if row is rows[0]:
                axis.set_title(f"{column} = {value:g}")
        queries = row["num_last"]
        panels[0].set_ylabel(f"{queries} quer{'y' if queries == 1 else 'ies'}, {2 * queries} classes\nrecall")
    for axis in axes[-1]:
        axis.set_xlabel("threshold")
    count = len(numbers["lines"])
    handles: list[Any] = [
        _line(color=_ramp(0.1 + 0.9 * i / count), label=f"{line} = {value:g}") for i, value in enumerate(numbers["lines"])
    ]
    handles.append(_line(color=GREY, lw=0.9, ls=":", label="1/M"))
    drawing.legend(handles=handles, loc="outside lower center", ncols=5)
    says = r"a larger $\eta_Y/\eta_Z$ falls more steeply" if by_z else r"a larger $\eta_Z$ falls less steeply"
    drawing.suptitle(
        r"Share of distinct tokens whose softmax($z_m$) over all M tokens is above a threshold: "
        f"{says},\nin {numbers['ordered']} of {numbers['pairs']} pairs of neighbouring curves",
    )
    return drawing
