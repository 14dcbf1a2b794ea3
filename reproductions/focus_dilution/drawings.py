"""Drawings: each function draws the numbers of its namesake in `figures.py`."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from stagescope.views.figure import COLORS, GREY, Numbers, colour_map

DARK = "#333333"
STAGES = {"I": "condensation", "II": "focus", "III": "dilution", "IV": "a new direction for each token"}
SHADES = {"I": "#f4f4f4", "II": "#dbe9f6", "III": "#fdf0d9", "IV": "#f4f4f4"}
PLAIN: Any = {"axes.grid": False}


def token_lines(axis: Any, x: Any, rows: Any, first: int = 0, word: str = "token", **style: Any) -> None:
    for k, row in enumerate(rows, first):
        axis.plot(x, row, color=COLORS[k], label=f"{word} {k}", **style)


def log_steps(axis: Any, last: float, low: float = 20.0) -> None:
    ticks = [t for t in (20, 50, 100, 200, 500, 1000, 3000) if low <= t <= last]
    axis.set(xscale="log", xlim=(low, last), xlabel="step (Adam)")
    axis.set_xticks(ticks, labels=[f"{t:,}" for t in ticks])
    axis.minorticks_off()


def shade_stages(axis: Any, stages: dict[str, float], last: float, low: float, named: bool = True) -> None:
    """The paper's stages I to IV as bands, with their names above the axes."""
    begins = list(stages.items())
    for (name, start), stop in zip(begins, [*(when for _, when in begins[1:]), last], strict=True):
        left, right = max(start, low), stop
        axis.axvspan(left, right, color=SHADES[name], lw=0, zorder=-2)
        if named:
            words = f"{name}\n{STAGES[name]}"
            place = axis.get_xaxis_transform()
            axis.text(
                np.sqrt(left * right), 1.01, words, transform=place, ha="center", va="bottom", fontsize=7.5, linespacing=1.1
            )


def draw_losses(axis: Any, numbers: Numbers, named: bool = True) -> None:
    step = np.array(numbers["step"])
    shade_stages(axis, numbers["stages"], step[-1], 20, named)
    token_lines(axis, step, numbers["losses"], word="$S$")
    axis.get_legend_handles_labels()
    for k, floor in enumerate(numbers["floor"]):
        axis.plot([step[-1] * 0.72, step[-1]], [floor] * 2, color=COLORS[k], ls=":", lw=1.4)
    axis.set(ylabel="loss (nats)", ylim=(0, None))
    log_steps(axis, step[-1])
    handles = [Line2D([], [], color=COLORS[k], label=f"$S_{k}$") for k in range(len(numbers["losses"]))]
    handles.append(Line2D([], [], color=DARK, ls=":", label="entropy of the next token"))
    axis.legend(handles=handles, loc="lower left", ncols=1, title="last token of the context", title_fontsize=8, alignment="left")


def figure_1(numbers: Numbers) -> Drawing:
    drawing, axis = plt.subplots(figsize=(6.2, 3.9), layout="constrained")
    draw_losses(axis, numbers)
    drawing.suptitle("Loss of unseen sequences by last token:\nwhile all queries focus on token 0, only $S_0$ gains")
    return drawing


MATRICES = {"W0": "$W_0$", "WQ": "$W_Q$", "WK": "$W_K$", "W1": "$W_1$"}


def figure_2(numbers: Numbers) -> Drawing:
    drawing = plt.figure(figsize=(9.6, 14.2), layout="constrained")
    parts: Any = drawing.subfigures(5, 1, height_ratios=(2.9, 5.3, 2.9, 1.75, 2.9))
    a, heat, b, c, d = parts
    draw_losses(a.subplots(), numbers)
    a.suptitle("A   Loss of unseen sequences by last token, and cosines of neurons at seven steps", x=0.01, ha="left")
    draw_heat(heat, numbers)
    draw_paths(b, numbers)
    draw_maps(c, numbers)
    draw_curves(d, numbers)
    return drawing


def draw_heat(part: Any, numbers: Numbers) -> None:
    steps = list(numbers["heat"]["W0"])
    with plt.rc_context(PLAIN):
        axes = part.subplots(len(MATRICES), len(steps))
    shown = None
    for row, (name, title) in enumerate(MATRICES.items()):
        for column, step in enumerate(steps):
            axis, found = axes[row, column], numbers["heat"][name][step]
            table = np.array([list(bytes.fromhex(line)) for line in found["cosines"]]) / 127.5 - 1
            shown = axis.imshow(table, cmap=colour_map(signed=True), vmin=-1, vmax=1, interpolation="nearest")
            axis.set(xticks=[], yticks=[])
            axis.set_title(f"step {step}" if row == 0 else "", fontsize=8.5)
            axis.set_xlabel(f"{found['mean_cosine']:.2f}", fontsize=7.5, labelpad=1)
        axes[row, 0].set_ylabel(title, rotation=0, ha="right", va="center", fontsize=10)
    bar = part.colorbar(shown, ax=axes, shrink=0.5, aspect=30, pad=0.01)
    bar.set_label("cosine of input weights (below each map: mean of |cosine|)", fontsize=8)


def draw_paths(part: Any, numbers: Numbers) -> None:
    step, rows = np.array(numbers["paths"]["step"]), np.array(numbers["paths"]["rows"])
    begins = numbers["stages"]
    spans = {"I, II: one direction": (0, begins["III"]), "III: rare tokens retract": (begins["III"], begins["IV"])}
    spans["IV: new directions"] = (begins["IV"], step[-1])
    axes = part.subplots(1, 3)
    for number, (axis, (title, (low, high))) in enumerate(zip(axes, spans.items(), strict=True), 1):
        inside = (step >= low) & (step <= high)
        for k in range(rows.shape[1]):
            path = rows[inside, k]
            axis.plot(*path.T, color=COLORS[k], lw=1.5)
            axis.plot(*path[0], "o", color=COLORS[k], mfc="white", ms=5)
            axis.plot(*path[-1], "o", color=COLORS[k], ms=6, label=f"token {k}")
        axis.plot(*numbers["paths"]["origin"], "x", color=DARK, ms=6, mew=1.4)
        axis.set_title(f"B{number}   {title} (steps {low:.0f} to {high:.0f})", fontsize=8.5)
        axis.set_xlabel(f"$e_1$ ({numbers['paths']['shares'][0]:.0%} of variance)")
        axis.margins(0.1)
    axes[0].set_ylabel(f"$e_2$ ({numbers['paths']['shares'][1]:.0%})")
    axes[0].legend(fontsize=7.5)
    part.suptitle(
        "B   Rows of $W_0$ in the principal directions of all snapshots to step 550 (hollow: begin, full: end; cross: zero)",
        x=0.01,
        ha="left",
    )


def draw_maps(part: Any, numbers: Numbers) -> None:
    with plt.rc_context(PLAIN):
        axes = part.subplots(1, len(numbers["maps"]))
    for axis, (step, table) in zip(axes, numbers["maps"].items(), strict=True):
        attention_map(axis, np.array(table))
        axis.set_title(f"step {step}", fontsize=8.5)
    axes[0].set_ylabel("query", fontsize=8)
    part.suptitle("C   Attention between token types: row = query, column = key", x=0.01, ha="left")


def attention_map(axis: Any, table: np.ndarray) -> None:
    axis.imshow(table, cmap=colour_map(), vmin=0, vmax=1)
    for i, j in np.ndindex(*table.shape):
        text = "1" if table[i, j] > 0.995 else f"{table[i, j]:.2f}".lstrip("0")
        axis.text(j, i, text, ha="center", va="center", fontsize=6.5, color="white" if table[i, j] > 0.5 else DARK)
    axis.set(xticks=range(len(table)), yticks=range(len(table)))
    axis.tick_params(length=0, labelsize=7)


def draw_curves(part: Any, numbers: Numbers) -> None:
    axes, step = part.subplots(1, 3), np.array(numbers["step"])
    axes[0].axhline(numbers["flat"], color=GREY, lw=0.9, ls="--")
    axes[0].text(22, numbers["flat"] + 0.04, "flat, ln 19", fontsize=7.5, color=DARK)
    token_lines(axes[0], step, numbers["entropy"])
    token_lines(axes[1], step, numbers["norms"])
    token_lines(axes[2], step, numbers["perpendicular"], first=1)
    titles = (
        "D1   entropy of attention by last token",
        "D2   norm of rows of $W_0$",
        "D3   part of $W_0[1{:}]$ perpendicular to $W_0[0]$",
    )
    for axis, title in zip(axes, titles, strict=True):
        shade_stages(axis, numbers["stages"], step[-1], 20, named=False)
        axis.set_title(title, fontsize=8.5)
        log_steps(axis, step[-1])
    axes[0].set(ylabel="nats over 19 positions", ylim=(1.6, 3.1))
    axes[1].set_ylim(bottom=0)
    axes[2].set_ylim(bottom=0)
    axes[1].legend(fontsize=7.5, loc="upper left")
    part.suptitle("D   Bands: stages I to IV, as in A", x=0.01, ha="left")


NAMES = {"wikitext-2": "WikiText-2", "tinystories": "TinyStories"}


def named(word: str) -> str:
    """A word as a label."""
    return "comma" if word == "," else word.replace("$", r"\$")


def figure_3(numbers: Numbers) -> Drawing:
    drawing = plt.figure(figsize=(9.4, 8.6), layout="constrained")
    parts: Any = drawing.subfigures(3, 1, height_ratios=(1, 1, 1.12))
    for part, letter, (corpus, panel) in zip(parts, "AB", numbers["panels"].items(), strict=False):
        left, right = part.subplots(1, 2)
        for k, word in enumerate(panel["words"]):
            label = named(word)
            style: Any = {"color": COLORS[k], "label": label, "ls": (0, (4, 2)) if k == 1 else "-"}  # the first two lie together
            left.plot(panel["step"], panel["attention"][k], **style)
            right.plot(panel["step"], panel["norms"][k], **style)
        last = panel["words"][-1]
        left.set(
            ylabel=f"attention of '{last}'", ylim=(-0.03, 1.03), title=f"{letter}1   attention of '{last}' over the sequence"
        )
        right.set(ylabel="norm of the row of $W_0$", title=f"{letter}2   norms of its words")
        right.set_ylim(bottom=0)
        for axis in (left, right):
            axis.set(xlabel="step (Adam)", xlim=(0, panel["step"][-1]))
        part.legend(*left.get_legend_handles_labels(), loc="outside right center")
        sequence = ", ".join(named(word) for word in panel["words"])
        part.suptitle(f"{letter}   {NAMES[corpus]}: probe sequence [{sequence}]", x=0.01, ha="left")
    draw_sample(parts[2], numbers["sample"])
    missing = [NAMES[corpus] for corpus, itself in numbers["finds_itself"].items() if not itself]
    where = " and ".join(missing)
    ends = f"The last word of the sequence does not come to look at itself, as published, on {where}." if missing else ""
    drawing.suptitle(
        "Width, scale, start, optimiser and rate are the paper's. What it does not say is ours: tokens (words in lower case,\n"
        "on WikiText-2 sub-words; 1000 of them), windows of 64, loss at the last position,"
        f" {numbers['steps']} steps on batches of {numbers['batch']}.\n{ends}"
    )
    return drawing


def draw_sample(part: Any, sample: Numbers) -> None:
    steps = list(sample["itself"])
    table = np.array(list(sample["itself"].values()))
    with plt.rc_context(PLAIN):
        axis = part.subplots()
    shown = axis.imshow(table, cmap=colour_map(), vmin=0, vmax=1, aspect="auto")
    for i, j in np.ndindex(*table.shape):
        strong = table[i, j] >= sample["level"]
        text = f"{table[i, j]:.2f}".lstrip("0") if table[i, j] < 0.995 else "1"
        axis.text(j, i, text, ha="center", va="center", fontsize=7.5, color="white" if table[i, j] > 0.5 else DARK)
        if strong:
            axis.add_patch(Rectangle((j - 0.47, i - 0.45), 0.94, 0.9, fill=False, ec=COLORS[1], lw=2))
    axis.set_xticks(range(len(sample["words"])), labels=[named(word) for word in sample["words"]], rotation=35, ha="right")
    axis.set_yticks(range(len(steps)), labels=[f"step {step}" for step in steps])
    axis.tick_params(length=0)
    part.colorbar(shown, ax=axis, pad=0.01, aspect=14).set_label("attention on itself", fontsize=8)
    part.suptitle(
        f"C   A held-out sample of TinyStories: self-attention (framed where it is at least {sample['level']:g})",
        x=0.01,
        ha="left",
    )


def theorem_and_experiment(numbers: Numbers) -> Drawing:
    drawing, axes = plt.subplots(2, 3, figsize=(12.4, 6.0), layout="constrained", width_ratios=(1, 0.82, 1))
    pi0 = numbers["pi"][0]
    for column, name in ((0, "experiment"), (2, "theorem")):
        panel, (top, bottom) = numbers[name], axes[:, column]
        token_lines(top, panel["time"], panel["attention"], word="query")
        token_lines(bottom, panel["time"], panel["norms"])
        top.axhline(pi0, color=GREY, lw=0.9, ls="--", zorder=0)
        top.set_ylim(-0.03, 1.04)
        bottom.set_ylim(bottom=0)
        for axis in (top, bottom):
            if name == "experiment":
                log_steps(axis, panel["time"][-1], 30)
            else:
                ticks = [t for t in (2, 5, 10, 20, 50, 100, 200) if t <= panel["time"][-1]]
                axis.set(xscale="log", xlim=(2, panel["time"][-1]), xlabel="time $t$ (gradient flow)")
                axis.set_xticks(ticks, labels=list(map(str, ticks)))
                axis.minorticks_off()
        peaks = ", ".join(f"{peak:.3f}".lstrip("0") for peak in panel["peaks"])
        top.set_title(f"{TITLES[name]}\nrows 1, 2, 3 peak at {peaks}", fontsize=10)
    axes[0, 0].set_ylabel("attention on token 0")
    axes[1, 0].set_ylabel("norm of the row of $W_0$")
    axes[0, 0].text(31, pi0 - 0.015, r"$\pi_0$ = .75", fontsize=8, color=DARK, va="top")
    axes[1, 0].legend(loc="upper left")
    axes[0, 2].legend(loc="lower left")
    draw_path(axes[:, 1], numbers)
    law = " ".join(f"{p:g}".lstrip("0") for p in numbers["pi"])
    gains = [f"{max(numbers[name]['peaks']) - pi0:.2f}".lstrip("0") for name in ("experiment", "theorem")]
    said = f"attention of rare queries on token 0 rises by {gains[0]} in the experiment, by {gains[1]} in the theorem"
    drawing.suptitle(rf"Same chain ($\pi$ = {law}, persistence .8), same model, same start:" + f"\n{said}", fontsize=12)
    return drawing


TITLES = {
    "experiment": "Experiment as published: Adam on sequences of 19 tokens",
    "theorem": "Theorem: gradient flow of the population loss",
}


def draw_path(axes: Any, numbers: Numbers) -> None:
    """Between the two: Adam's eps, at the left the default, at the right gradient descent."""
    path = numbers["path"]
    eps = [point["eps"] for point in path]
    top, bottom = axes
    for row in range(1, 4):
        top.plot(eps, [point["peaks"][row - 1] for point in path], "o-", ms=4, color=COLORS[row])
        top.plot(30, numbers["theorem"]["peaks"][row - 1], "D", ms=5, color=COLORS[row], mfc="white", clip_on=False)
    for row in range(4):
        bottom.plot(eps, [point["norms"][row] for point in path], "o-", ms=4, color=COLORS[row])
        bottom.plot(30, numbers["flow_norms"][row], "D", ms=5, color=COLORS[row], mfc="white", clip_on=False)
    top.axhline(numbers["pi"][0], color=GREY, lw=0.9, ls="--", zorder=0)
    for axis in axes:
        axis.set(xscale="log", xlim=(4e-9, 60))
        ticks = [1e-8, 1e-6, 1e-4, 1e-2, 1, 30]
        axis.set_xticks(ticks, labels=["$10^{-8}$", "$10^{-6}$", "$10^{-4}$", "$10^{-2}$", "1", "flow"])
        axis.minorticks_off()
        axis.set_xlabel(r"Adam's $\varepsilon$, rate $1.5\cdot10^{-4} + .05\,\varepsilon$")
    top.set(title="The path between (infinitely long contexts)\npeak of attention on token 0", ylim=(0.735, 1.01))
    top.title.set_fontsize(10)
    bottom.set(ylim=(0, 0.33))
    bottom.set_title("row norms when that of token 0 is .3", fontsize=10)


def blind(numbers: Numbers) -> Drawing:
    drawing, (left, right) = plt.subplots(1, 2, figsize=(10, 3.9), layout="constrained", sharey=True)
    for k, (name, panel) in enumerate(numbers["panels"].items()):
        style = {"color": COLORS[k], "ls": ("-", (0, (6, 2)), (0, (3, 2)), (0, (1, 1.3)), (0, (5, 1, 1, 1)))[k]}
        when = panel["focused"][0]
        left.plot(panel["step"], panel["adam"], label=f"{name}: step {when:.0f}" if when else f"{name}: never", **style)
        right.plot(panel["t"], panel["flow"], label=f"{name}: moves by {panel['flow_moves']:.3f}", **style)
    left.axhline(numbers["level"], color=GREY, lw=0.9, ls="--", zorder=0)
    left.text(
        298, numbers["level"] - 0.01, "total focus: half of what there is to gain", fontsize=8, color=DARK, ha="right", va="top"
    )
    left.set(
        xlim=(0, 300),
        xlabel="step (Adam)",
        ylabel="attention of query 1 on token 0",
        title="Adam: the transition matrix does not matter",
    )
    right.set(
        xlabel="time $t$ (gradient flow)",
        title="Gradient flow: it decides",
        xlim=(0, numbers["panels"]["persistence 0"]["t"][-1]),
    )
    left.legend(loc="lower left", title="focus is reached at", title_fontsize=8, alignment="left")
    right.legend(loc="upper right")
    law = " ".join(f"{p:g}".lstrip("0") for p in numbers["pi"])
    drawing.suptitle(rf"Chains with one law ($\pi$ = {law}): focus under Adam is blind to the transition matrix")
    return drawing


def frozen(numbers: Numbers) -> Drawing:
    grid = numbers["grid"]
    drawing, axes = plt.subplots(1, 3 if grid else 2, figsize=(12.2 if grid else 8.6, 3.9), layout="constrained")
    for k, panel in enumerate(numbers["panels"]):
        name = f"$10^{{{round(np.log10(panel['eps']))}}}$"
        when = panel["focused"][0]
        axes[0].plot(
            panel["step"], panel["row"], color=COLORS[k], label=rf"$\varepsilon$ = {name}: step {when:.0f}" if when else name
        )
        axes[1].plot(panel["step"], panel["attention"], color=COLORS[k])
        if panel["eps"] > 1e-10:
            axes[1].axhline(panel["eps"], color=COLORS[k], lw=0.9, ls="--")
            axes[1].text(
                233, panel["eps"], rf"$\varepsilon$ = {name}", fontsize=8, color=COLORS[k], va="center"
            )  # beside the axes
    default = next(panel for panel in numbers["panels"] if panel["eps"] == 1e-8)
    axes[1].plot(default["step"], default["rest"], color=GREY, lw=1.2)
    axes[1].text(170, 2e-3, "$W_0$, $W_1$", fontsize=8, color="#555555")
    axes[0].axhline(numbers["level"], color=GREY, lw=0.9, ls="--", zorder=0)
    axes[0].set(
        xlabel="step (Adam)",
        ylabel="attention of query 1 on token 0",
        title=r"The larger $\varepsilon$, the later attention opens",
    )
    axes[0].legend(loc="lower left", fontsize=7.5)
    axes[1].set(yscale="log", ylim=(1e-11, 3e-2), xlim=(0, 230), xlabel="step (Adam)", ylabel="rms of a gradient's entries")
    axes[1].set_title(r"Gradients of $W_Q$, $W_K$ begin below $\varepsilon$")
    last = numbers["panels"][0]["step"][-1]
    axes[0].set_xlim(0, last)
    axes[0].text(last - 4, numbers["level"] + 0.01, "total focus", fontsize=8, color=DARK, ha="right")
    if grid:
        draw_grid(axes[2], numbers)
    drawing.suptitle(r"Frozen attention in stage I is an effect of Adam's $\varepsilon$ (population loss of the published chain)")
    return drawing


def draw_grid(axis: Any, numbers: Numbers) -> None:
    for point in numbers["grid"]:
        focuses = point["largest"] > numbers["level"]
        axis.plot(point["eps"], point["start"], "o", ms=9, color=COLORS[0], mfc=COLORS[0] if focuses else "white")
    eps = np.array([3e-10, 3e-7])
    axis.plot(eps, 0.094 * (eps / 1e-8) ** 0.5, color=DARK, lw=1, ls="--")
    axis.text(3.2e-10, 0.042, r"slope $\varepsilon^{1/2}$", fontsize=8, color=DARK)
    handles = [
        Line2D([], [], marker="o", ls="", ms=8, color=COLORS[0], mfc=fill, label=text)
        for fill, text in ((COLORS[0], "focuses"), ("white", "never, loss = $H(\\pi)$"))
    ]
    axis.legend(handles=handles, loc="lower right")
    axis.set(xscale="log", yscale="log", xlabel=r"Adam's $\varepsilon$", ylabel=r"start scale $\sigma$ times $m$ = 256")
    ticks = sorted({point["start"] for point in numbers["grid"]})
    axis.set_yticks(ticks, labels=[f"{tick:.3g}".lstrip("0") for tick in ticks])
    axis.minorticks_off()
    axis.set_title("Starts too small for $\\varepsilon$ never focus (1500 steps)")
