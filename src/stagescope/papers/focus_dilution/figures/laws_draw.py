"""Drawings of the focus-and-dilution figures about its laws: each function draws the numbers of its twin in laws.py."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from stagescope.papers.focus_dilution.figures.draw import log_time, marked, title_of
from stagescope.views.figure import COLORS, GREY, Numbers

DARK = "#444444"
RUNG_MARKS = {"(0,0)": "o", "(1,0)": "s", "(1,1)": "^"}


def loss(numbers: Numbers) -> Drawing:
    panels = numbers["panels"]
    drawing, axes = plt.subplots(2, len(panels), figsize=(9.6, 5.8), sharex="col", layout="constrained", height_ratios=(1.3, 1))
    for column, panel in enumerate(panels):
        top, bottom = axes[:, column]
        top.plot(panel["t"], panel["loss"], color=COLORS[0])
        for level, text in _levels(panel).items():
            floor = level == panel["floor"]
            top.axhline(level, color=COLORS[2] if floor else GREY, lw=0.9, ls="--", zorder=0)
            style = {"fontsize": 8, "va": "bottom", "transform": top.get_yaxis_transform()}
            place = {"x": 0.01, "ha": "left", "color": COLORS[2]} if floor else {"x": 0.995, "ha": "right", "color": DARK}
            top.text(y=level, s=text, **style, **place)
        bottom.plot(panel["t"], panel["grad"], color=COLORS[0])
        bottom.set_yscale("log")
        before = 0.0
        for rung in panel["rungs"]:
            _plateau(bottom, panel, rung, crowded=rung["t"] < 1.7 * before)
            before = rung["t"]
        log_time(bottom, panel, 0.12)
        marked(top, panel, ("E1", "Q1", "E2", "Q2", "E3"))
        top.set_title(title_of(panel), pad=16)
        bottom.set_xlabel("t")
    axes[0, 0].set_ylabel("loss (nats)")
    axes[1, 0].set_ylabel(r"$|\nabla L|$ (hollow: far from the point)")
    drawing.suptitle("The loss rests at the levels (dashed) of critical points $(r, r_q)$ of small models inside the large one")
    return drawing


def _levels(panel: Numbers) -> dict[float, str]:
    """Levels of the critical points the run is near, with the names of those that share one; the floor first."""
    named: dict[float, list[str]] = {panel["floor"]: ["floor $H$"]}
    for rung in panel["rungs"]:
        if rung["near"]:
            level = next((known for known in named if abs(known - rung["loss"]) < 0.01), rung["loss"])
            named.setdefault(level, []).append(rung["label"])
    equal = {level: r" $= H(\pi)$" if abs(level - panel["unigram"]) < 1e-6 else "" for level in named}
    return {level: ", ".join(labels) + equal[level] for level, labels in named.items()}


def _plateau(axis: Any, panel: Numbers, rung: Numbers, crowded: bool) -> None:
    """A dot where the run is slowest near a critical point, full if it is near; its name below, or beside the name before."""
    if rung["t"] < 0.12 * panel["events"]["E1"]:
        return
    height = float(np.exp(np.interp(rung["t"], panel["t"], np.log(np.maximum(panel["grad"], 1e-14)))))
    axis.plot(rung["t"], height, "o", color=COLORS[1], mfc=COLORS[1] if rung["near"] else "white", ms=5, zorder=5, clip_on=False)
    if rung["t"] == panel["until"]:
        style: dict[str, Any] = {"xytext": (-8, 0), "ha": "right", "va": "center"}
    else:
        style = {"xytext": (3 if crowded else 0, -6), "ha": "left" if crowded else "center", "va": "top"}
    axis.annotate(rung["label"], (rung["t"], height), textcoords="offset points", fontsize=8, **style)


def rates(numbers: Numbers) -> Drawing:
    drawing, (left, right) = plt.subplots(1, 2, figsize=(9.4, 4.0), layout="constrained", width_ratios=(1, 1.15))
    names = list(dict.fromkeys(row["chain"] for row in numbers["rows"]))
    rungs = list(RUNG_MARKS)
    span = np.array([0.6, 1.6]) * [f(row["predicted"] for row in numbers["rows"]) for f in (min, max)]
    left.plot(span, span, color=GREY, lw=0.9)
    right.axhline(1, color=GREY, lw=0.9)
    right.axhspan(0.9, 1.1, color=GREY, alpha=0.12, lw=0)
    for row in numbers["rows"]:
        color, shape = COLORS[names.index(row["chain"])], RUNG_MARKS[row["rung"]]
        style = {"color": color, "marker": shape, "ls": "", "mfc": color if row["conclusive"] else "white", "ms": 6}
        left.plot(row["predicted"], row["measured"], **style)
        offset = (names.index(row["chain"]) - (len(names) - 1) / 2) * 0.09
        right.plot(rungs.index(row["rung"]) + offset, row["ratio"], **style)
    left.set(xscale="log", yscale="log", xlim=span, ylim=span, xlabel="predicted rate", ylabel="measured rate")
    right.set_xticks(range(3), ["(0,0)\nembedding opens", "(1,0)\nattention opens", "(1,1)\nembedding opens"])
    right.set_xlim(-0.5, 2.5)
    right.set_ylim(0.84, 1.14)
    right.set_ylabel("measured / predicted (band: 10 %)")
    right.grid(axis="x", visible=False)
    handles = [Line2D([], [], color=COLORS[i], marker="o", ls="", label=name) for i, name in enumerate(names)]
    left.legend(handles=handles, loc="upper left", handletextpad=0.1)
    hollow = [Line2D([], [], color=DARK, marker="o", ls="", mfc="white", label="inconclusive: the run does not stay near")]
    if not all(row["conclusive"] for row in numbers["rows"]):
        right.legend(handles=hollow, loc="lower left", handletextpad=0.1)
    low, high = numbers["conclusive_ratio"]
    ratios_text = f"measured/predicted {low:.2f} to {high:.2f} where the run stays near"
    drawing.suptitle(f"Escape rates of the first three critical points: {ratios_text}")
    return drawing


def eps_law(numbers: Numbers) -> Drawing:
    drawing, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained", width_ratios=(1.2, 1))
    eps, slope = np.array(numbers["eps"]), 0.0
    legs = list(numbers["predicted_per_decade"])
    for color, (name, times), leg in zip(COLORS, numbers["events"].items(), legs, strict=False):
        slope += numbers["predicted_per_decade"][leg]
        anchor = times[list(eps).index(1e-3)]
        left.plot(eps, anchor - slope * (np.log10(eps) + 3), color=color, lw=1.2)
        left.plot(eps, times, "o", color=color, ms=6)
        left.plot(eps, numbers["measured"][name], "D", color=color, mfc="none", ms=9, mew=0.8)
        left.annotate(
            f"${name[0]}_{name[1]}$", (eps[-1], times[-1]), (8, 0), textcoords="offset points", va="center", color=color
        )
    left.set(xscale="log", xlabel=r"initial scale $\epsilon$", ylabel="t")
    left.set_xlim(2e-2, 3.5e-6)
    left.set_ylim(bottom=0)
    handles = [Line2D([], [], color=DARK, lw=1.2, label=r"slope predicted, through $\epsilon=10^{-3}$")]
    handles += [Line2D([], [], color=DARK, marker="o", ls="", label="this package, one seed")]
    handles += [Line2D([], [], color=DARK, marker="D", mfc="none", ls="", label="independent, another seed")]
    left.legend(handles=handles, loc="upper left")
    for place, (color, leg) in enumerate(zip(COLORS, legs, strict=False)):
        expected = numbers["predicted_per_decade"][leg]
        shares = np.array(numbers["per_decade"][leg]) / expected
        right.plot(place + np.linspace(-0.2, 0.2, len(shares)), shares, "o", color=color)
        right.text(place, 1.235, rf"predicted {expected:.2f}", ha="center", fontsize=8, color=color)
    right.axhline(1, color=GREY, lw=0.9)
    right.axhspan(0.97, 1.03, color=GREY, alpha=0.12, lw=0)
    right.set_xticks(range(3), ["$E_1$\n$\\ln 10/\\mu_0$", "$Q_1-E_1$\n$\\ln 10/c$", "$E_2-Q_1$\n$\\ln 10/\\mu_{11}$"])
    right.set_xlim(-0.5, 2.5)
    right.set_ylim(0.93, 1.26)
    right.grid(axis="x", visible=False)
    right.set_ylabel("delay per decade / predicted (band: 3 %)")
    right.set_title("from left to right: $10^{-2}$ to $10^{-3}$, to $10^{-4}$, to $10^{-5}$", fontsize=8.5)
    drawing.suptitle("A ten times smaller start delays each event by ln 10 over the rate of the saddle before it (ref)")
    return drawing


def delta_law(numbers: Numbers) -> Drawing:
    drawing, axes = plt.subplots(1, 3, figsize=(11, 3.7), layout="constrained", width_ratios=(1, 1, 1.25))
    for axis, family in zip(axes, numbers["families"], strict=False):
        for color, curve in zip(COLORS, family["curves"], strict=False):
            label = rf"$c$ = {curve['shape']}, $\kappa$ = {curve['kappa']:.2f}".replace("-", "−")
            axis.plot(curve["delta"], curve["rate_over_delta"], "o-", color=color, ms=4, label=label)
        axis.set(xscale="log", xlabel=r"asymmetry $\delta$", ylim=(0, 2.6))
        axis.set_title(rf"$\pi_0$ = {family['pi0']:g}, $\lambda$ = {family['persistence']:g}")
        axis.legend(loc="upper left")
    axes[0].set_ylabel(r"embedding rate at (1,1) over $\delta$")
    axis = axes[2]
    for color, flow in zip((COLORS[7], COLORS[5], COLORS[0], COLORS[3], COLORS[4]), numbers["flows"], strict=True):
        label = rf"$\pi_0$ = {flow['pi0']:g}, $\delta$ = {flow['delta']:g}"
        axis.plot(flow["t"], flow["second_value"], color=color, label=label)
        axis.plot(flow["Q1"], np.interp(flow["Q1"], flow["t"], flow["second_value"]), "s", color=color, ms=4)
    axis.axhline(0.1, color=GREY, lw=0.9, ls="--")
    axis.set(yscale="log", xlabel="t", ylabel="second singular value of $W_0$")
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_ylim(1.5e-3, 60)
    axis.legend(loc="upper left", ncols=2, columnspacing=1)
    axis.set_title(r"squares: $Q_1$; dashed: the level of $E_2$", fontsize=8.5)
    drawing.suptitle(r"Rates at (1,1) are proportional to the asymmetry $\delta$; without it, the flow at $\pi_0$ = .4 stalls")
    return drawing
