"""Drawings of the figures of focus and dilution on a text."""

from functools import partial
from typing import Any

import numpy as np
from matplotlib import pyplot
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from stagescope.views.figure import COLORS, GREY, Numbers

PHI = COLORS[1]
EMBEDDING = COLORS[0]
DARK = "#444444"
line = partial(Line2D, [], [])
"""A line of a legend."""


def draw(numbers: Numbers) -> Drawing:
    """Above plain steps on the clock t, below Adam on the clock of steps."""
    drawing, axes = pyplot.subplots(2, 3, figsize=(11.4, 6.4), layout="constrained")
    _openings(axes[0, 0], numbers)
    _probes(axes[0, 1], numbers["plain"])
    _variant(axes[0, 2], numbers)
    _adam_rows(axes[1, 0], numbers["adam"])
    _mean(axes[1, 1], numbers["adam"], "entropy", COLORS[2], "entropy of attention rows (nats)", "mean entropy")
    _mean(axes[1, 2], numbers["adam"], "rare_norm", COLORS[3], "mean norm of the rarer half", "embeddings of rare types")
    made = numbers["predictions"]
    first = np.interp(numbers["plain"]["events"]["Q1"] or 0, numbers["plain"]["time"], numbers["plain"]["alignment"])
    word = "focuses on" if first > 0 else "first moves away from"
    rate = f"$c$ = {made['c_windows']:+.2f} $\\pm$ {made['c_error']:.2f} on real windows: attention {word} frequent types"
    drawing.suptitle(f"{numbers['corpus']}: plain steps (above) and Adam (below); {rate}")
    return drawing


def _log_time(axis: Any, panel: Numbers, first: float | None = None) -> None:
    """Logarithmic time, from around E1 unless a first time is given."""
    begin = first or 0.4 * (panel["events"]["E1"] or panel["time"][-1] / 100)
    axis.set(xscale="log", xlim=(begin, panel["time"][-1]), xlabel="t")
    axis.xaxis.set_major_formatter("{x:g}")


def _values(axis: Any, panel: Numbers, style: str = "-", width: float | None = None) -> None:
    """Singular values of W0 and of Phi."""
    for name, color in (("W0", EMBEDDING), ("Phi", PHI)):
        for values in panel[name]:
            axis.plot(panel["time"], values, style, color=color, lw=width)
    axis.set(yscale="log", ylim=(3e-3, 60))


def _openings(axis: Any, numbers: Numbers) -> None:
    plain, flow = numbers["plain"], numbers["bigram"]
    _values(axis, plain, "-", 1.5)
    _values(axis, flow, ":", 1.2)
    _log_time(axis, plain)
    marked(axis, plain, ("E1", "Q1", "E2", "E3", "Q2"))
    handles = [line(color=EMBEDDING, label="$W_0$"), line(color=PHI, label=r"$\Phi$")]
    handles += [line(color=GREY, label="text"), line(color=GREY, ls=":", label="bigram flow")]
    axis.legend(handles=handles, loc="upper left", ncols=2)
    axis.set_ylabel("largest singular values")
    axis.set_title("openings, against the bigram flow", pad=16)


def _probes(axis: Any, panel: Numbers) -> None:
    handles = []
    for number, (word, row) in enumerate(panel["rows"].items()):
        color = COLORS[number % len(COLORS)]
        handles += axis.plot(panel["time"], row["frequent"], color=color, label=_plain(word))
        axis.plot(panel["time"], row["itself"], color=color, ls="--", lw=1.1)
    axis.axhline(panel["base"], color=GREY, lw=0.9)
    axis.set_ylim(-0.02, 1.02)
    axis.set_ylabel(f"attention on {_plain(panel['frequent'])}")
    _log_time(axis, panel)
    marked(axis, panel, ("Q1", "E2", "E3", "Q2"))
    own = line(color=GREY, ls="--", lw=1.1, label="on itself")
    axis.legend(handles=[*handles, own], loc="upper left")
    axis.set_title("attention rows of words", pad=16)


def _plain(word: str) -> str:
    """A word for matplotlib, with dollar signs escaped."""
    return word.replace("$", r"\$")


def _variant(axis: Any, numbers: Numbers) -> None:
    variant, made = numbers["variant"], numbers["predictions"]
    _values(axis, variant)
    _log_time(axis, variant, max(variant["time"][1], variant["time"][-1] / 1000))
    marked(axis, variant, ("E1", "E2", "E3"))
    axis.set_title(f"with {', '.join(variant['parts'])}", pad=16)
    text = f"$r$ = {variant['separability']:.3f}\n(attention alone: {made['separability']:.3f})"
    axis.text(0.03, 0.87, text, transform=axis.transAxes, fontsize=8.5)


def _adam_rows(axis: Any, panel: Numbers) -> None:
    low, lower, middle, upper, high = panel["quantiles"]
    axis.fill_between(panel["time"], low, high, color=GREY, alpha=0.2, lw=0)
    axis.fill_between(panel["time"], lower, upper, color=GREY, alpha=0.35, lw=0)
    axis.plot(panel["time"], middle, color="#000000", label="median row (bands: 50 and 90 %)")
    for number, (word, row) in enumerate(panel["rows"].items()):
        axis.plot(panel["time"], row["frequent"], color=COLORS[number], lw=1, label=_plain(word))
    axis.axhline(panel["base"], color=GREY, lw=0.9)
    axis.set_ylim(-0.02, 1.02)
    axis.set_ylabel(f"attention on {_plain(panel['frequent'])}")
    count, mass = panel["diluted"]
    axis.set_title(f"{panel['focused'][0]} of {panel['count']} rows focus, {count} lose half (mass {mass:.2f})", fontsize=9)
    axis.legend(loc="upper right", fontsize=7)
    _steps(axis, panel)


def _mean(axis: Any, panel: Numbers, name: str, color: str, label: str, title: str) -> None:
    axis.plot(panel["time"], panel[name], color=color)
    axis.set_ylim(bottom=0)
    axis.set_ylabel(label)
    axis.set_title(title, fontsize=9)
    _steps(axis, panel)


def _steps(axis: Any, panel: Numbers) -> None:
    axis.set_xlim(0, panel["time"][-1])
    axis.set_xlabel("step (Adam)")


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
