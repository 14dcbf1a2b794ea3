"""Drawings of the paper's figures of incremental learning. Open marks are published values, dashed lines levels of classes."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator, StrMethodFormatter

from stagescope.views.figure import COLORS, GREY, Numbers

DARK = "#444444"
OPEN: dict[str, Any] = {"ls": "", "marker": "o", "mfc": "white", "mew": 1.3, "ms": 5, "zorder": 6}


TRUNCATED = ("$T_1$", "$T_2$", "teacher")
SHADE = 0.72
"""Colours of heads are mixed into white no further than this, so that the spans stay visible."""


def losses(numbers: Numbers) -> Drawing:
    """Loss of one run, and its divergences from the truncated teachers."""
    drawing, axes = plt.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained")
    _loss(axes[0], numbers)
    _divergence(axes[1], numbers, "kl_teachers")
    return _headline(drawing, numbers)


def two_divergences(numbers: Numbers) -> Drawing:
    """Divergences of one run from the truncated teachers, and from learned n-grams."""
    drawing, axes = plt.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained", sharey=True)
    _divergence(axes[0], numbers, "kl_teachers")
    _divergence(axes[1], numbers, "kl_learned")
    return _headline(drawing, numbers)


def learned(numbers: Numbers) -> Drawing:
    """Divergences of one run from learned n-grams and the teacher."""
    drawing, axis = plt.subplots(figsize=(5.8, 3.8), layout="constrained")
    _divergence(axis, numbers, "kl_learned")
    return _headline(drawing, numbers)


def learned_and_loss(numbers: Numbers) -> Drawing:
    drawing, axes = plt.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained")
    _divergence(axes[0], numbers, "kl_learned")
    _loss(axes[1], numbers)
    return _headline(drawing, numbers)


def overview(numbers: Numbers) -> Drawing:
    """Loss, divergences, attention of all heads at three steps, and the ideal: each span in a colour of its own."""
    drawing, axes = plt.subplots(2, 4, figsize=(11.6, 6.4), layout="constrained", height_ratios=(1, 1.1))
    for axis in axes[0]:
        axis.remove()
    grid = axes[0, 0].get_gridspec()
    _loss(drawing.add_subplot(grid[0, :2]), numbers)
    _divergence(drawing.add_subplot(grid[0, 2:]), numbers, "kl_teachers")
    panel = numbers["panels"][0]
    maps = list(panel["maps"].items())[-3:]
    for axis, (step, heads) in zip(axes[1], maps, strict=False):
        coloured_map(axis, np.array(heads), panel, f"step {step}")
    for axis in axes[1, len(maps) : -1]:
        axis.set_visible(False)
    coloured_map(axes[1, -1], ideal(panel, np.array(maps[-1][1]).shape[1:]), panel, "each span alone")
    return _headline(drawing, numbers)


def combined(numbers: Numbers) -> Drawing:
    """Attention of all heads at some steps, their colours added."""
    panel = numbers["panels"][0]
    maps = panel["maps"]
    drawing, axes = plt.subplots(1, len(maps), figsize=(2.9 * len(maps), 3.6), layout="constrained", squeeze=False)
    for axis, (step, heads) in zip(axes[0], maps.items(), strict=True):
        coloured_map(axis, np.array(heads), panel, f"step {step}")
    return _headline(drawing, numbers, f"one colour for each of {len(next(iter(maps.values())))} heads, outlines are the spans")


def by_head(numbers: Numbers) -> Drawing:
    """Attention of each head at some steps: a row for each step, a column for each head."""
    panel = numbers["panels"][0]
    maps = panel["maps"]
    count = len(next(iter(maps.values())))
    drawing, axes = plt.subplots(len(maps), count, figsize=(2.7 * count, 2.7 * len(maps)), layout="constrained", squeeze=False)
    for row, (step, heads) in zip(axes, maps.items(), strict=True):
        for number, (axis, head) in enumerate(zip(row, heads, strict=True)):
            coloured_map(axis, np.array(head)[None], panel, f"head {number + 1}, step {step}", COLORS[number:])
    return _headline(drawing, numbers)


def ideal(panel: Numbers, shape: tuple[int, ...]) -> np.ndarray:
    """Attention (spans, targets, positions) of heads that are each on one span."""
    found = np.zeros((len(panel["groups"]), *shape))
    for number, group in enumerate(panel["groups"]):
        for target in range(shape[0]):
            found[number, target, [panel["context"] + target - lag for lag in group]] = 1 / len(group)
    return found


def coloured_map(axis: Any, heads: np.ndarray, panel: Numbers, title: str, colors: Any = COLORS) -> None:
    """Attention (H, targets, positions) as colours added to white, strongest at the largest attention; outlines of the spans."""
    away = 1 - np.array([to_rgb(color) for color, _ in zip(colors, heads, strict=False)])
    strength = np.einsum("hts,hc->tsc", heads / max(heads.max(), 1e-12), away)
    axis.imshow(1 - np.clip(SHADE * strength, 0, 1), aspect="auto", interpolation="nearest")
    targets = np.arange(heads.shape[1])
    for place, group in enumerate(panel["groups"]):
        for edge in (max(group), min(group) - 1):  # left and right end of the span in each row
            x = np.repeat(panel["context"] + targets - edge - 0.5, 2)
            y = np.stack([targets - 0.5, targets + 0.5], axis=1).ravel()
            axis.plot(x, y, color=DARK, lw=0.7, ls=("-", "--", ":")[place % 3])
    axis.grid(visible=False)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set(
        title=title, xlabel="position", ylabel="target", xlim=(-0.5, heads.shape[2] - 0.5), ylim=(heads.shape[1] - 0.5, -0.5)
    )


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
    _published(axis, numbers, np.array(family["step"]) + 1, family["published"], color)


def sizes(numbers: Numbers) -> Drawing:
    """The best excess so far by number of sequences, and divergences from the best of each class; lines at the best step."""
    drawing, axes = plt.subplots(1, 4, figsize=(14.0, 3.7), layout="constrained", width_ratios=(1.3, 1, 1, 1))
    for panel, best, color in zip(numbers["panels"], numbers["best"].values(), COLORS, strict=False):
        axes[0].plot(panel["step"], np.minimum.accumulate(panel["excess"]), color=color, label=panel["label"])
        step = panel["step"][-1] if best["published_step"] is None else best["published_step"] + 1
        _published(axes[0], numbers, step, best["published_excess"], color, "published best")
    axes[0].set(ylabel="least loss above Bayes so far (nats)", ylim=(0, 2.6), title="training sequences")
    _steps(axes[0])
    axes[0].legend(loc="upper right", fontsize=7.5)
    for axis, panel, best in zip(axes[1:], numbers["panels"], numbers["best"].values(), strict=False):
        _divergence(axis, {**numbers, "panels": [panel], "published": {}}, "kl_classes")
        axis.axvline(best["step"], color=DARK, lw=0.9, ls="--")
        axis.legend(fontsize=7, loc="upper center")
    return _headline(drawing, numbers, "dashed: best step")


def _loss(axis: Any, numbers: Numbers) -> None:
    panel, read = numbers["panels"][0], numbers["published"].get("loss")
    axis.plot(panel["step"], panel["loss"], color=COLORS[0], label="loss to the true law")
    if read is not None:
        _published(axis, numbers, [int(step) + 1 for step in read], list(read.values()), COLORS[0])
    levels = (
        {f"$l_{j}$": level for j, level in enumerate(panel["levels"]) if j} if "levels" in panel else {"Bayes": panel["bayes"]}
    )
    for name, level in levels.items():
        _level(axis, level, name)
    axis.set(ylabel="loss (nats)", title=panel["label"], ylim=(0, 1.1 * max(2.0, panel["loss"][0])))
    _steps(axis)
    axis.set_xlim(0, panel["step"][-1])
    axis.legend()


def _divergence(axis: Any, numbers: Numbers, kind: str) -> None:
    """KL from truncated teachers or from learned n-grams; where none were learned, from the best members of the classes."""
    panel, read = numbers["panels"][0], numbers["published"].get(kind)
    ours = kind if kind in panel else "kl_classes"
    curves = np.array(panel[ours])
    reach = np.maximum.accumulate([max(group) for group in sorted(panel["groups"], key=min)])
    names = {
        "kl_teachers": TRUNCATED,
        "kl_learned": (*(f"learned {lags}-gram" for lags in reach[:-1]), "teacher"),
        "kl_classes": ("best of $F_1$", "best of $F_2$", "teacher"),
    }[ours]
    for j, name in enumerate(names):
        axis.plot(panel["step"], curves[:, j], color=COLORS[j], label=name)
        if read is not None:
            points = {int(step) + 1: row[j] for step, row in read.items() if row[j] is not None}
            _published(axis, numbers, list(points), list(points.values()), COLORS[j])
    what = "truncated teacher" if kind == "kl_teachers" else "n-gram" if ours == "kl_learned" else "class"
    top = 1.25 * float(np.max(curves[len(curves) // 20 :]))
    axis.set(ylabel=f"KL({what} || model)", title=panel["label"], ylim=(0, top))
    _steps(axis)
    axis.set_xlim(0, panel["step"][-1])
    axis.legend(loc="upper right", ncols=2)


def _level(axis: Any, level: float, name: str) -> None:
    """A dashed line, with its name on the right."""
    axis.axhline(level, color=GREY, lw=0.9, ls="--", zorder=0)
    axis.text(1.01, level, name, fontsize=8, va="center", color=DARK, transform=axis.get_yaxis_transform())


def _steps(axis: Any) -> None:
    axis.set(xlabel="updates (published step s is after s + 1)", xlim=(0, None))


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
