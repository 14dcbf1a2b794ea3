"""Drawings of the focus-and-dilution figures: each function draws the numbers of its twin in figures.py."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from stagescope.views.figure import COLORS, GREY, Numbers

panels_of = partial(plt.subplots, layout="constrained")
line = partial(Line2D, [], [])
"""A line of a legend."""


def row_color(row: int) -> str:
    """The colour of a token, as on the page."""
    return COLORS[row % len(COLORS)]


def row_handles(count: int, word: str = "row", **style: Any) -> list[Any]:
    return [line(color=row_color(row), label=f"{word} {row}", **style) for row in range(count)]


def log_time(axis: Any, panel: Numbers, first: float = 0.5) -> None:
    """Logarithmic time from around E1 to the end, with plain numbers."""
    low, high = first * panel["events"]["E1"], panel["until"]
    axis.set(xscale="log", xlim=(low, high))
    wide = np.log10(high / low) > 2
    axis.xaxis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter(NullFormatter())


def marked(axis: Any, panel: Numbers, names: tuple[str, ...]) -> None:
    """Thin vertical lines at events inside the axis, named above it; names of two that are near each other stand apart."""
    low, high = axis.get_xlim()
    close = 0.06  # share of the axis's width below which names would overlap
    events = {name: panel["events"].get(name) for name in names}
    inside = sorted((when, name) for name, when in events.items() if when is not None and low < when < high)
    across = [axis.transLimits.transform(axis.transScale.transform((when, 1.0)))[0] for when, _ in inside]
    for k, (when, name) in enumerate(inside):
        axis.axvline(when, color=GREY, lw=0.7, ls=":", zorder=0)
        place = axis.get_xaxis_transform()
        before = k > 0 and across[k] - across[k - 1] < close
        after = k + 1 < len(inside) and across[k + 1] - across[k] < close
        side = "center" if before == after else "left" if before else "right"
        axis.text(when, 1.01, f"${name[0]}_{name[1:]}$", transform=place, ha=side, va="bottom", fontsize=8, color=DARK)


def entitle(axis: Any, panel: Numbers) -> None:
    """The preset and its law above the names of events."""
    law = " ".join(f"{p:g}".lstrip("0") for p in panel["pi"])
    axis.set_title(rf"{panel['preset']}: $\pi$ = ({law})", pad=16)


DARK = "#444444"
ALL_EVENTS = ("E1", "Q1", "E2", "Q2", "E3")


def embedding(numbers: Numbers) -> Drawing:
    names = list(numbers["moments"])
    drawing, axes = panels_of(1, len(names), figsize=(10.6, 2.9), sharex=True, sharey=True)
    path, time = np.array(numbers["path"]), np.array(numbers["t"])
    titles = {
        "(1,0)": "condensed",
        "diluted": "focused, then diluted",
        "E2": "second direction opens",
        "Q2": "attention opens again",
    }
    before = 0.0
    for axis, name in zip(axes, names, strict=True):
        when = numbers["moments"][name]
        trail = path[(time >= before) & (time <= when)]
        axis.axhline(0, color=GREY, lw=0.5)
        axis.axvline(0, color=GREY, lw=0.5)
        for row in range(path.shape[1]):
            axis.plot(*trail[:, row].T, color=row_color(row), lw=0.9, alpha=0.5)
            axis.plot(*numbers["points"][name][row], "o", color=row_color(row), ms=6, mec="white", mew=0.7)
        axis.set_title(f"{titles.get(name, 'end')}\n$t$ = {when:.0f}", fontsize=9)
        shares = numbers["explained"][name]
        text, white = f"PC 1: {shares[0]:.1%}\nPC 2: {shares[1]:.1%}", {"fc": "white", "ec": "none", "pad": 1}
        axis.text(0.03, 0.04, text, transform=axis.transAxes, fontsize=8, bbox=white)
        before = when
    axes[0].set_ylim(-2.3, 1.7)
    axes[2].set_xlabel("condensed direction")
    axes[0].set_ylabel("next direction")
    dots = row_handles(path.shape[1], "token", marker="o", ls="", ms=5)
    axes[0].legend(handles=dots, loc="upper left", handletextpad=0.1)
    drawing.suptitle(
        "Rows of the embedding (ref): one direction explains all of them until the second opens (share of variance below)"
    )
    return drawing


def singular_values(numbers: Numbers) -> Drawing:
    panels = numbers["panels"]
    drawing, axes = panels_of(3, len(panels), figsize=(8.8, 6.2), sharex="col", sharey="row")
    kinds = {"W0": "$W_0$", "W1": "$W_1$", "Phi": r"scores $\Phi$"}
    for column, panel in enumerate(panels):
        for line, (name, label) in enumerate(kinds.items()):
            axis = axes[line, column]
            for k, values in enumerate(panel["values"][name]):
                axis.plot(panel["t"], values, color=COLORS[k % len(COLORS)], label=f"k = {k + 1}")
            axis.axhline(numbers["level"], color=GREY, lw=0.9, ls="--")
            axis.set(yscale="log", ylim=(1e-8, 60) if name == "Phi" else (3e-4, 8))
            log_time(axis, panel, 0.1)
            openings = tuple(n for n in panel["events"] if n[0] == ("Q" if name == "Phi" else "E") and n[1:].isdigit())
            marked(axis, panel, openings)
            if column == 0:
                axis.set_ylabel(f"singular values of {label}")
        entitle(axes[0, column], panel)
        axes[2, column].set_xlabel("t")
    axes[0, 0].legend(loc="upper left", ncols=2)
    drawing.suptitle("Embedding and attention directions open in turn; an event is a singular value passing .1 (dashed)")
    return drawing


def attention(numbers: Numbers) -> Drawing:
    panels = numbers["panels"]
    drawing, axes = panels_of(2, len(panels), figsize=(9.4, 6.0), height_ratios=(1.25, 1))
    for column, panel in enumerate(panels):
        whole, first = axes[:, column]
        time, rows = np.array(panel["t"]), np.array(panel["rows"])
        for row, curve in enumerate(rows):
            whole.plot(time, curve, color=row_color(row))
            if row:
                first.plot(time, curve - panel["base"], color=row_color(row))
        whole.axhline(panel["base"], color=GREY, lw=0.9, ls="--")
        first.axhline(0, color=GREY, lw=0.9, ls="--")
        for axis, shift in ((whole, 0.0), (first, panel["base"])):
            _moments(axis, panel, time, rows, shift)
        log_time(whole, panel, 1.5)
        marked(whole, panel, ALL_EVENTS)
        whole.set_ylim(-0.02, 1.03)
        entitle(whole, panel)
        _zoom(first, panel)
        first.set_xlabel("t")
    axes[0, 0].set_ylabel("attention on token 0, $A_{i0}$")
    axes[1, 0].set_ylabel(r"first cycle, $A_{i0}-\pi_0$")
    marks = [("^", True, "focus"), ("v", True, "half lost"), ("^", False, "refocus"), ("v", False, "diluted again")]
    handles = row_handles(len(panels[0]["rows"]))
    handles += [line(color=DARK, marker=m, ls="", mfc=DARK if full else "white", label=text) for m, full, text in marks]
    drawing.legend(handles=handles, loc="outside lower center", ncols=8, columnspacing=1.2)
    drawing.suptitle("Rare rows first gain attention on the frequent token, then lose it; after $E_2$ the cycle begins again")
    return drawing


def _moments(axis: Any, panel: Numbers, time: np.ndarray, rows: np.ndarray, shift: float) -> None:
    """Focus and dilution of the first cycle filled, later ones hollow."""
    for name, when in panel["events"].items():
        stem, row = name.partition(".")[0].rstrip("0123456789"), name.partition(".")[0].lstrip("abcdefghijklmnopqrstuvwxyz")
        if stem not in ("focus", "dilution", "refocus", "redilution") or (shift and stem.startswith("re")):
            continue
        color = row_color(int(row))
        height = float(np.interp(when, time, rows[int(row)])) - shift
        fill = "white" if stem.startswith("re") else color
        axis.plot(when, height, "^" if stem.endswith("focus") else "v", color=color, mfc=fill, ms=5, zorder=5)


def _zoom(axis: Any, panel: Numbers) -> None:
    """The window of the first focus and dilution."""
    held = panel["events"]
    last = max(when for name, when in held.items() if name.startswith("dilution"))
    wide = last - held["Q1"]
    axis.set_xlim(held["Q1"] - 0.4 * wide, last + 0.4 * wide)
    top = max(panel["peak"].values()) - panel["base"]
    axis.set_ylim(-1.3 * top, 1.25 * top)
    peaks = ", ".join(f"{value:.3f}" for value in panel["peak"].values())
    axis.set_title(f"first cycle: peaks {peaks} of rows 1, 2, 3", fontsize=9)


def _with_rows(axes: Any, panels: list[Numbers]) -> Iterator[tuple[Any, Numbers]]:
    """Axes with their panels; the rows of tokens are drawn."""
    for axis, panel in zip(axes, panels, strict=True):
        for row, curve in enumerate(panel["rows"]):
            axis.plot(panel["t"], curve, color=row_color(row))
        entitle(axis, panel)
        axis.set_xlabel("t")
        yield axis, panel


def entropy(numbers: Numbers) -> Drawing:
    panels = numbers["panels"]
    drawing, axes = panels_of(1, len(panels), figsize=(9.4, 3.5))
    for axis, panel in _with_rows(axes, panels):
        axis.axhline(panel["base"], color=GREY, lw=0.9, ls="--")
        axis.text(
            0.01, panel["base"], r"$H(\pi)$", color="#555555", fontsize=8, va="bottom", transform=axis.get_yaxis_transform()
        )
        log_time(axis, panel, 1.5)
        marked(axis, panel, ALL_EVENTS[1:])
        axis.set_ylim(bottom=0)
    axes[0].set_ylabel("entropy of the attention row (nats)")
    axes[0].legend(handles=row_handles(len(panels[0]["rows"])), loc="lower left")
    drawing.suptitle("Entropy of rare rows falls with the focus, rises with the dilution, and later falls again")
    return drawing


def norms(numbers: Numbers) -> Drawing:
    panels, predicted = numbers["panels"], {"ls": (0, (1, 1.2)), "lw": 4, "alpha": 0.45}
    drawing, axes = panels_of(1, len(panels), figsize=(9.4, 3.6), sharey=True)
    for axis, panel in _with_rows(axes, panels):
        for row, norm in enumerate(panel["predicted"]):
            axis.plot(panel["plateau"], [norm] * 2, color=row_color(row), **predicted)
        axis.set(yscale="log", ylim=(1e-3, 5))
        log_time(axis, panel)
        marked(axis, panel, ALL_EVENTS)
    axes[0].set_ylabel("row norms of $W_0$")
    handles = row_handles(len(panels[0]["rows"]), "token")
    handles.append(line(color=DARK, label=r"predicted $a\,\pi_i/n$", **predicted))
    axes[1].legend(handles=handles, loc="lower right")
    drawing.suptitle(
        r"Rows of the embedding sit at the predicted $a\,\pi_i/n$ while condensed, and pass through zero when they dilute"
    )
    return drawing


def loss(numbers: Numbers) -> Drawing:
    panels = numbers["panels"]
    drawing, axes = panels_of(2, len(panels), figsize=(9.6, 5.8), sharex="col", height_ratios=(1.3, 1))
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
        marked(top, panel, ALL_EVENTS)
        entitle(top, panel)
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
