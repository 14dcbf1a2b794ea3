"""Drawings of the paper's figures of incremental learning. Open marks are published values, dashed lines levels of classes."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from stagescope.views.figure import COLORS, GREY, Numbers, colour_map

DARK = "#444444"
OPEN: dict[str, Any] = {"ls": "", "marker": "o", "mfc": "white", "mew": 1.3, "ms": 5, "zorder": 6}


def losses(numbers: Numbers) -> Drawing:
    """Loss of one run, and its divergences."""
    drawing, axes = plt.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained")
    _loss(axes[0], numbers)
    _divergence(axes[1], numbers)
    return _headline(drawing, numbers)


def divergences(numbers: Numbers) -> Drawing:
    """Divergences of one run."""
    drawing, axis = plt.subplots(figsize=(5.8, 3.8), layout="constrained")
    _divergence(axis, numbers)
    return _headline(drawing, numbers)


def attention_of_last(numbers: Numbers) -> Drawing:
    """Attention of the last run."""
    return attention(numbers, -1)


def inits_and_ratios(numbers: Numbers) -> Drawing:
    drawing, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.0), layout="constrained", sharey=True)
    _family(left, numbers, numbers["xavier"], COLORS[0], "Xavier")
    for panel, color in zip(numbers["panels"], COLORS[1:5], strict=False):
        left.plot(panel["step"], panel["excess"], color=color, label=panel["label"], lw=1.4)
    for (ratio, family), color in zip(numbers["ratios"].items(), (COLORS[5], COLORS[4], COLORS[2]), strict=False):
        _family(right, numbers, family, color, f"ratio {ratio}")
    left.set(title="initial queries", ylabel="loss above Bayes (nats)", ylim=(0, 2))
    right.set(title="ratio of importances, Xavier")
    for axis in (left, right):
        _steps(axis)
        axis.legend(loc="upper right")
    return _headline(drawing, numbers, "bands: draws of the initial queries; lines: the draw nearest to the published curve")


def _family(axis: Any, numbers: Numbers, family: Numbers, color: str, label: str) -> None:
    """The nearest run, and the band of all."""
    end = min(panel["step"][-1] for panel in family["panels"])
    grid = np.arange(0, end + 1, 5)
    values = np.array([np.interp(grid, panel["step"], panel["excess"]) for panel in family["panels"]])
    axis.fill_between(grid, values.min(axis=0), values.max(axis=0), color=color, alpha=0.18, lw=0)
    shown = family["panels"][family["nearest"]]
    axis.plot(shown["step"], shown["excess"], color=color, label=label)
    _published(axis, numbers, family["compared"]["step"], family["compared"]["published"], color)


def sizes(numbers: Numbers) -> Drawing:
    drawing, axis = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for panel, best, color in zip(numbers["panels"], numbers["best"].values(), COLORS, strict=False):
        label = f"{panel['label']}: best {best['excess']:.2f} at {best['step']}, class {best['nearest'][0]}"
        axis.plot(panel["step"], panel["excess"], color=color, label=label)
        axis.plot(best["step"], best["excess"], marker="o", color=color, ms=5, zorder=5)
        step = best["published_step"] if best["published_step"] is not None else panel["step"][-1]
        _published(axis, numbers, step, best["published_excess"], color, "published best moment")
    axis.set(ylabel="loss above Bayes (nats)", ylim=(0, 2.6), title="training sequences")
    _steps(axis)
    axis.legend(loc="upper right", fontsize=7.5)
    return _headline(drawing, numbers)


def overlapping(numbers: Numbers) -> Drawing:
    drawing, axes = plt.subplots(1, 1 + len(numbers["panels"]), figsize=(12.4, 3.7), layout="constrained")
    for panel, color in zip(numbers["panels"], COLORS, strict=False):
        axes[0].plot(panel["step"], panel["loss"], color=color, label=panel["label"])
    _level(axes[0], numbers["panels"][0]["bayes"], "Bayes")
    row = next(iter(numbers["compared"].values()))
    _published(axes[0], numbers, row["step"], row["published"])
    axes[0].set(ylabel="loss (nats)", title="loss", ylim=(0, 2.2))
    _steps(axes[0])
    axes[0].legend()
    for axis, panel in zip(axes[1:], numbers["panels"], strict=True):
        heads_by_lag(axis, panel["lags"][-1], panel["groups"], f"{panel['label']}: attention at step {panel['step'][-1]}")
    return _headline(drawing, numbers)


def _loss(axis: Any, numbers: Numbers) -> None:
    panel, compared = numbers["panels"][0], numbers["compared"].get("loss")
    axis.plot(panel["step"], panel["loss"], color=COLORS[0], label="loss to the true law")
    if compared is not None:
        _published(axis, numbers, compared["step"], compared["published"], COLORS[0])
    levels = (
        {f"$l_{j}$": level for j, level in enumerate(panel["levels"]) if j} if "levels" in panel else {"Bayes": panel["bayes"]}
    )
    for name, level in levels.items():
        _level(axis, level, name)
    axis.set(ylabel="loss (nats)", title=panel["label"], ylim=(0, 2.4))
    _steps(axis)
    axis.legend()


def _divergence(axis: Any, numbers: Numbers) -> None:
    kind = "kl_classes" if "kl_classes" in numbers["compared"] else "kl_teachers"
    panel, compared = numbers["panels"][0], numbers["compared"].get(kind)
    curves = np.array(panel[kind])
    letter, what = ("F", "best of class") if kind == "kl_classes" else ("T", "truncated teacher")
    for j in range(curves.shape[1]):
        axis.plot(panel["step"], curves[:, j], color=COLORS[j], label=f"${letter}_{j + 1}$")
        if compared is not None:
            _published(axis, numbers, compared["step"], [row[j] for row in compared["published"]], COLORS[j])
    axis.set(ylabel=f"KL({what} || model)", title=panel["label"], ylim=(0, 1.3 * float(np.max(curves[len(curves) // 8 :]))))
    _steps(axis)
    axis.legend(loc="upper right", ncols=2)


def attention(numbers: Numbers, place: int = 0) -> Drawing:
    """Attention of one run, the first: by lag at some moments, and the mass of each head on each group over time."""
    panel = numbers["panels"][place]
    step = np.array(panel["step"])
    moments = np.geomspace(max(step[-1] * 0.06, 1), step[-1], 4)  # at equal ratios of the step, up to the end
    frames = sorted({int(np.argmin(np.abs(step - moment))) for moment in moments})
    heads = len(panel["mass"][0])
    drawing, axes = plt.subplots(2, max(len(frames), heads), figsize=(11.6, 5.4), layout="constrained", squeeze=False)
    image: Any = None
    for axis, frame in zip(axes[0], frames, strict=False):
        image = heads_by_lag(axis, panel["lags"][frame], panel["groups"], f"step {panel['step'][frame]}")
    mass = np.array(panel["mass"])
    for head, axis in enumerate(axes[1][:heads]):
        for group, lags in enumerate(panel["groups"]):
            axis.plot(
                panel["step"],
                mass[:, head, group],
                color=COLORS[group],
                label="lags " + "-".join(map(str, sorted({lags[0], lags[-1]}))) + (", most important" if group == 0 else ""),
            )
        axis.set(title=f"head {head + 1}", ylim=(0, 1.02))
        _steps(axis)
    axes[1, 0].set_ylabel("attention on the span")
    handles, labels = axes[1, 0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    for axis in (*axes[0, len(frames) :], *axes[1, heads:]):
        axis.set_visible(False)
    drawing.colorbar(image, ax=axes[0, : len(frames)].tolist(), label="attention", shrink=0.9)
    return _headline(drawing, numbers, panel["label"])


def heads_by_lag(axis: Any, attention: list[list[float]], groups: list[list[int]], title: str) -> Any:
    """A row per head, a column per lag; bars above are the spans, one over another where they overlap."""
    lags = np.array(attention)
    heads, reach = lags.shape
    image = axis.imshow(lags, aspect="auto", cmap=colour_map(), vmin=0, vmax=1, extent=(0.5, reach + 0.5, heads + 0.5, 0.5))
    axis.grid(visible=False)
    shared = len({lag for group in groups for lag in group}) < sum(map(len, groups))
    axis.set_title(title, pad=20 if shared else 13)  # above the bars
    for place, group in enumerate(groups):
        height = 1.03 + (0.02 * place if shared else 0)
        ends = [group[0] - 0.42, group[-1] + 0.42]
        bar = {"lw": 2.5, "solid_capstyle": "butt", "clip_on": False, "transform": axis.get_xaxis_transform()}
        axis.plot(ends, [height, height], color=COLORS[place], **bar)
    ticks = {"xticks": range(1, reach + 1, 1 if reach <= 8 else 2), "yticks": range(1, heads + 1)}
    axis.set(**ticks, xlabel="lag", ylabel="head", xlim=(0.5, reach + 0.5), ylim=(heads + 0.5, 0.5))
    return image


def _level(axis: Any, level: float, name: str) -> None:
    """A dashed line, with its name on the right."""
    axis.axhline(level, color=GREY, lw=0.9, ls="--", zorder=0)
    axis.text(1.01, level, name, fontsize=8, va="center", color=DARK, transform=axis.get_yaxis_transform())


def _steps(axis: Any) -> None:
    axis.set(xlabel="step", xlim=(0, None))


def _published(axis: Any, numbers: Numbers, step: Any, values: Any, color: str = DARK, label: str = "published") -> None:
    """Open marks, one of them in the legend; none where the numbers are not comparable."""
    if numbers["comparable"]:
        known = label in axis.get_legend_handles_labels()[1]
        axis.plot(step, values, **OPEN, mec=color, label=None if known else label)


def _headline(drawing: Drawing, numbers: Numbers, more: str = "") -> Drawing:
    """Title, and a note where the numbers are not comparable with the published ones."""
    parts = [part for part in (numbers["title"], more, numbers.get("note")) if part]
    drawing.suptitle("; ".join(parts), x=0.01, ha="left")
    return drawing


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
        _level(left, level, f"$l_{j}$")
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
    return _headline(drawing, numbers, f"two solvers differ by at most {error:.0e} in loss")


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


def stopping_rules(numbers: Numbers) -> Drawing:
    drawing, axes = plt.subplots(2, 3, figsize=(11.4, 7.8), layout="constrained")
    for axis, panel in zip(axes[0], numbers["panels"], strict=False):
        _stopping_curves(axis, panel, numbers["levels"])
    for axis in axes[0, len(numbers["panels"]) :]:
        axis.set_visible(False)
    axes[0, 0].set_ylabel("loss (nats)")
    axes[1, 2].axis("off")
    axes[1, 2].legend(*axes[0, 0].get_legend_handles_labels(), loc="center", title="above")
    _losses(axes[1, 0], numbers)
    _classes(axes[1, 1], numbers)
    for axis in axes[1, :2]:
        axis.set(xscale="log", xlabel="training sequences N")
        axis.xaxis.set_major_locator(FixedLocator([entry["sequences"] for entry in numbers["summary"]]))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    drawing.suptitle(stopping_headline(numbers["summary"]), x=0.01, ha="left")
    return drawing


def stopping_headline(summary: list[Numbers]) -> str:
    same, judged, wins, runs = (sum(entry[name] for entry in summary) for name in ("same_class", "judged", "ridge_wins", "runs"))
    rest = f", {runs - judged} not judged" if judged < runs else ""
    first = f"The class at the best stop is the best likelihood fit in {same} of {judged} runs{rest}"
    return f"{first}; a ridge fit that knows the lags predicts better than the best stop in {wins} of {runs}"


def _stopping_curves(axis: Any, panel: Numbers, levels: list[float]) -> None:
    step = np.maximum(panel["step"], 0.7)
    axis.plot(step, panel["validation"], color=DARK, label="loss to the true law", zorder=3)
    axis.plot(step, panel["held"], color=COLORS[5], lw=1.1, label="held-out sample, tokens drawn")
    axis.plot(step, panel["training"], color=GREY, lw=1.1, ls=":", label="training")
    for j, level in enumerate(levels):
        _level(axis, level, f"$l_{j}$")
    top = 1.15 * levels[0]  # an overfitted loss goes far beyond
    for rule, stop in panel["stops"].items():
        beyond = stop["loss"] > top
        height = 0.985 * top if beyond else stop["loss"]
        # open marks, so that rules that agree can be seen through one another
        style = {**STYLES[rule], "ls": "", "mfc": "none", "mew": 1.5, "zorder": 5, "label": NAMES[rule]}
        axis.plot(max(stop["step"], 0.7), height, **style)
        if beyond:
            text = f"{stop['loss']:.1f} ↑"
            axis.annotate(text, (stop["step"], height), (0, -7), textcoords="offset points", ha="center", va="top", fontsize=8)
    axis.set(xscale="log", xlabel="step", ylim=(0, top), title=f"N = {panel['sequences']} training sequences")


def _losses(axis: Any, numbers: Numbers) -> None:
    sizes = [entry["sequences"] for entry in numbers["summary"]]
    for name, style in STYLES.items():
        means = np.array([entry["loss"][name] for entry in numbers["summary"]], float)
        ranges = np.array([entry["loss_range"][name] for entry in numbers["summary"]], float)
        axis.plot(sizes, means, **{**style, "ms": 0.6 * style["ms"], "lw": 1.3}, label=NAMES[name])
        axis.fill_between(sizes, ranges[:, 0], ranges[:, 1], color=style["color"], alpha=0.12, lw=0)
    axis.axhline(numbers["levels"][-1], color=GREY, lw=0.8, ls="--", zorder=0)
    axis.set(yscale="log", ylabel="loss to the true law (mean, range)", title="what a stop costs (dashed: Bayes)")
    axis.yaxis.set_major_locator(FixedLocator([0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8]))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
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
    for j in range(classes + 1):
        axis.axhspan(j - 0.36, j + 0.18, color=GREY, alpha=0.08, lw=0)
    axis.grid(visible=False)
    axis.set(ylabel="class j", yticks=range(classes + 1), ylim=(-0.5, classes + 0.4), title="which class it is (one mark a run)")
    _legend_below(axis)


def _legend_below(axis: Any) -> None:
    """Under the axis: how much room curves leave inside depends on the task."""
    axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.17), frameon=False)
