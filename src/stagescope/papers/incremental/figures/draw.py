"""Drawings of the paper's figures of incremental learning. Open marks are published values, dashed lines levels of classes."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as Drawing

from stagescope.views.figure import COLORS, GREY, Numbers, colour_map

DARK = "#444444"
OPEN: dict[str, Any] = {"ls": "", "marker": "o", "mfc": "white", "mew": 1.3, "ms": 5, "zorder": 6}


def losses(numbers: Numbers) -> Drawing:
    """Loss of one run, and its divergences."""
    drawing, axes = plt.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained")
    panel = numbers["panels"][0]
    _loss(axes[0], panel, numbers["compared"].get("loss"), numbers["comparable"])
    kind = "kl_classes" if "kl_classes" in numbers["compared"] else "kl_teachers"
    _divergence(axes[1], panel, kind, numbers["compared"].get(kind), numbers["comparable"])
    _headline(drawing, numbers)
    return drawing


def divergences(numbers: Numbers) -> Drawing:
    """Divergences of one run."""
    drawing, axis = plt.subplots(figsize=(5.8, 3.8), layout="constrained")
    kind = "kl_classes" if "kl_classes" in numbers["compared"] else "kl_teachers"
    _divergence(axis, numbers["panels"][0], kind, numbers["compared"].get(kind), numbers["comparable"])
    _headline(drawing, numbers)
    return drawing


def attention(numbers: Numbers) -> Drawing:
    """Attention of the first run."""
    return _attention(numbers, numbers["panels"][0])


def attention_of_last(numbers: Numbers) -> Drawing:
    """Attention of the last run."""
    return _attention(numbers, numbers["panels"][-1])


def inits_and_ratios(numbers: Numbers) -> Drawing:
    drawing, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.0), layout="constrained", sharey=True)
    _family(left, numbers["xavier"], COLORS[0], "Xavier", numbers["comparable"])
    for panel, color in zip(numbers["panels"], (COLORS[1], COLORS[2], COLORS[3], COLORS[4]), strict=False):
        left.plot(panel["step"], panel["excess"], color=color, label=panel["label"], lw=1.4)
    for (ratio, family), color in zip(numbers["ratios"].items(), (COLORS[5], COLORS[4], COLORS[2]), strict=False):
        _family(right, family, color, f"ratio {ratio}", numbers["comparable"])
    left.set(title="initial queries", ylabel="loss above Bayes (nats)", ylim=(0, 2))
    right.set(title="ratio of importances, Xavier")
    for axis in (left, right):
        _steps(axis)
        _published_label(axis, numbers["comparable"])
        axis.legend(loc="upper right")
    _headline(drawing, numbers, "bands: draws of the initial queries; lines: the draw nearest to the published curve")
    return drawing


def _family(axis: Any, family: Numbers, color: str, label: str, comparable: bool) -> None:
    """The nearest run, and the band of all."""
    end = min(panel["step"][-1] for panel in family["panels"])
    grid = np.arange(0, end + 1, 5)
    values = np.array([np.interp(grid, panel["step"], panel["excess"]) for panel in family["panels"]])
    axis.fill_between(grid, values.min(axis=0), values.max(axis=0), color=color, alpha=0.18, lw=0)
    shown = family["panels"][family["nearest"]]
    axis.plot(shown["step"], shown["excess"], color=color, label=label)
    if comparable:
        axis.plot(family["compared"]["step"], family["compared"]["published"], **OPEN, mec=color)


def sizes(numbers: Numbers) -> Drawing:
    drawing, axis = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for panel, best, color in zip(numbers["panels"], numbers["best"].values(), COLORS, strict=False):
        label = f"{panel['label']}: best {best['excess']:.2f} at {best['step']}, class {best['nearest'][0]}"
        axis.plot(panel["step"], panel["excess"], color=color, label=label)
        axis.plot(best["step"], best["excess"], marker="o", color=color, ms=5, zorder=5)
        if numbers["comparable"]:
            step = best["published_step"] if best["published_step"] is not None else panel["step"][-1]
            axis.plot(step, best["published_excess"], **OPEN, mec=color)
    axis.set(ylabel="loss above Bayes (nats)", ylim=(0, 2.6), title="training sequences")
    _steps(axis)
    _published_label(axis, numbers["comparable"], "published best moment")
    axis.legend(loc="upper right", fontsize=7.5)
    _headline(drawing, numbers)
    return drawing


def overlapping(numbers: Numbers) -> Drawing:
    drawing, axes = plt.subplots(1, 1 + len(numbers["panels"]), figsize=(12.4, 3.7), layout="constrained")
    for panel, color in zip(numbers["panels"], COLORS, strict=False):
        axes[0].plot(panel["step"], panel["loss"], color=color, label=panel["label"])
    axes[0].axhline(numbers["panels"][0]["bayes"], color=GREY, lw=0.9, ls="--", zorder=0)
    axes[0].text(1.01, numbers["panels"][0]["bayes"], "Bayes", fontsize=8, va="center", transform=axes[0].get_yaxis_transform())
    if numbers["comparable"]:
        row = next(iter(numbers["compared"].values()))
        axes[0].plot(row["step"], row["published"], **OPEN, mec=DARK, label="published")
    axes[0].set(ylabel="loss (nats)", title="loss", ylim=(0, 2.2))
    _steps(axes[0])
    axes[0].legend()
    for axis, panel in zip(axes[1:], numbers["panels"], strict=True):
        heads_by_lag(axis, panel["lags"][-1], panel["groups"], f"{panel['label']}: attention at step {panel['step'][-1]}")
    _headline(drawing, numbers)
    return drawing


def _loss(axis: Any, panel: Numbers, compared: Numbers | None, comparable: bool) -> None:
    axis.plot(panel["step"], panel["loss"], color=COLORS[0], label="loss to the true law")
    if compared is not None and comparable:
        axis.plot(compared["step"], compared["published"], **OPEN, mec=COLORS[0], label="published")
    lines = panel.get("levels") or [panel["bayes"]]
    names = [f"$l_{j}$" for j in range(len(lines))] if "levels" in panel else ["Bayes"]
    for name, level in list(zip(names, lines, strict=True))[1 if len(lines) > 1 else 0 :]:
        axis.axhline(level, color=GREY, lw=0.9, ls="--", zorder=0)
        axis.text(1.01, level, name, fontsize=8, va="center", color=DARK, transform=axis.get_yaxis_transform())
    axis.set(ylabel="loss (nats)", title=panel["label"], ylim=(0, 2.4))
    _steps(axis)
    axis.legend()


def _divergence(axis: Any, panel: Numbers, kind: str, compared: Numbers | None, comparable: bool) -> None:
    curves = np.array(panel[kind])
    letter, what = ("F", "best of class") if kind == "kl_classes" else ("T", "truncated teacher")
    for j in range(curves.shape[1]):
        axis.plot(panel["step"], curves[:, j], color=COLORS[j], label=f"${letter}_{j + 1}$")
        if compared is not None and comparable:
            axis.plot(compared["step"], [row[j] for row in compared["published"]], **OPEN, mec=COLORS[j])
    axis.set(ylabel=f"KL({what} || model)", title=panel["label"], ylim=(0, 1.3 * float(np.max(curves[len(curves) // 8 :]))))
    _steps(axis)
    _published_label(axis, comparable and compared is not None)
    axis.legend(loc="upper right", ncols=2)


def _attention(numbers: Numbers, panel: Numbers) -> Drawing:
    """Attention by lag at some moments, and the mass of each head on each group over time."""
    frames = _moments(panel)
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
                label=f"lags {_span(lags)}" + (", most important" if group == 0 else ""),
            )
        axis.set(title=f"head {head + 1}", ylim=(0, 1.02))
        _steps(axis)
    axes[1, 0].set_ylabel("attention on the span")
    handles, labels = axes[1, 0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    for axis in (*axes[0, len(frames) :], *axes[1, heads:]):
        axis.set_visible(False)
    drawing.colorbar(image, ax=axes[0, : len(frames)].tolist(), label="attention", shrink=0.9)
    _headline(drawing, numbers, panel["label"])
    return drawing


def _moments(panel: Numbers) -> list[int]:
    """Four frames at equal ratios of the step, up to the end."""
    end = panel["step"][-1]
    wanted = np.geomspace(max(end * 0.06, 1), end, 4)
    return sorted({int(np.argmin(np.abs(np.array(panel["step"]) - step))) for step in wanted})


def heads_by_lag(axis: Any, attention: list[list[float]], groups: list[list[int]], title: str) -> Any:
    """A row per head, a column per lag; bars above are the spans, one over another where they overlap."""
    lags = np.array(attention)
    heads, reach = lags.shape
    image = axis.imshow(lags, aspect="auto", cmap=colour_map(), vmin=0, vmax=1, extent=(0.5, reach + 0.5, heads + 0.5, 0.5))
    axis.grid(visible=False)
    axis.set_yticks(range(1, heads + 1))
    axis.set_xticks(range(1, reach + 1, 1 if reach <= 8 else 2))
    axis.set(xlabel="lag", ylabel="head")
    shared = len({lag for group in groups for lag in group}) < sum(map(len, groups))
    axis.set_title(title, pad=20 if shared else 13)  # above the bars
    for place, group in enumerate(groups):
        height = 1.03 + (0.02 * place if shared else 0)
        ends = [group[0] - 0.42, group[-1] + 0.42]
        bar = {"lw": 2.5, "solid_capstyle": "butt", "clip_on": False, "transform": axis.get_xaxis_transform()}
        axis.plot(ends, [height, height], color=COLORS[place], **bar)
    axis.set(xlim=(0.5, reach + 0.5), ylim=(heads + 0.5, 0.5))
    return image


def _span(lags: list[int]) -> str:
    return f"{lags[0]}-{lags[-1]}" if len(lags) > 1 else str(lags[0])


def _steps(axis: Any) -> None:
    axis.set_xlabel("step")
    axis.set_xlim(left=0)


def _published_label(axis: Any, comparable: bool, text: str = "published") -> None:
    if comparable:
        axis.plot([], [], **OPEN, mec=DARK, label=text)


def _headline(drawing: Drawing, numbers: Numbers, more: str = "") -> None:
    """Title, and a note where the numbers are not comparable with the published ones."""
    parts = [part for part in (numbers["title"], more, numbers["note"]) if part]
    drawing.suptitle("; ".join(parts), x=0.01, ha="left")
