"""Figures of the papers on in-context Markov chains, made again with the minimal models; `plateau` and `levels` are ours.

Targets are those read off the plots that the authors stored (science page, section 8).
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.core.progress import Progress
from stagescope.papers.markov_icl.study import STUDY
from stagescope.readings.reading import reading
from stagescope.runs.run import Run
from stagescope.views.figure import COLORS, GREY, Figure, Numbers, rounded, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

MINIMAL = {"match": [0.08, 0.10], "previous score": [6.2, 6.3]}
"""Ends of the stored minimal models: diagonal of W, v at lag 1. There layer 1 also saw the future."""


def _run(preset: str, **changes: Any) -> Run:
    return STUDY.run(STUDY.configured(preset, **changes), progress=False)


def _curves(run: Run) -> dict[str, Any]:
    curves = reading(run).curves
    return {
        "time": rounded(curves.time),
        "loss": rounded(curves.loss),
        "match": rounded(curves.match),
        "previous": rounded(curves.previous),
        "levels": dict(zip(curves.levels.names, rounded(curves.levels.losses), strict=True)),
        "compared": rounded(curves.time[curves.compared]),
        "kl": rounded(curves.divergences),
        "strategies": list(curves.strategies.names),
    }


def minimal(progress: Progress) -> Numbers:
    """F on batches of 100 tokens, as the papers' minimal model."""
    run = _run("minimal")
    scores = np.asarray(run.params["v"])[:, 1]
    return {**_curves(run), "score": rounded(scores), "moments": _moments(run), "targets": MINIMAL}


def _moments(run: Run) -> list[dict[str, Any]]:
    """Layer 1 by lag at the start, where lag 1 first has five times its attention there, and at the end; later lags stay even."""
    attention = reading(run).curves.attention[:, 0]
    emerging = int(np.argmax(attention[:, 1] >= min(5 * attention[0, 1], attention[-1, 1])))
    frames = (0, emerging, len(attention) - 1)
    return [{"t": float(run.time[frame]), "attention": rounded(attention[frame, :16])} for frame in frames]


def readout(progress: Progress) -> Numbers:
    """T on batches, both priors."""
    return {"full": _curves(_run("readout")), "doubly stochastic": _curves(_run("readout-doubly"))}


def n_grams(progress: Progress) -> Numbers:
    run = _run("trigram")
    attention = reading(run).curves.attention
    return {**_curves(run), "first": rounded(attention[:, 0, 1]), "second": rounded(attention[:, 1, 2])}


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


def draw_minimal(numbers: Numbers) -> "Drawing":
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(8, 5.2), layout="constrained")
    left, right, *below = figure.subplot_mosaic("aaabbb;ccddee", height_ratios=[3, 2]).values()
    _kl(left, numbers, "t = lr x step")
    for place, (name, label) in enumerate((("match", "match b"), ("score", "v at lag 1"))):
        curve = np.array(numbers[name])
        right.plot(numbers["time"], curve / curve[-1], color=COLORS[place], label=f"{label}, end {curve[-1]:.2g}")
    right.set(xlabel="t = lr x step", ylabel="over its end", title="the match first, then lag 1")
    right.legend()
    for axes, moment in zip(below, numbers["moments"], strict=True):
        axes.bar(range(len(moment["attention"])), moment["attention"], color=COLORS[2])
        axes.set(xlabel="lag", title=f"layer 1 at t = {moment['t']:.3g}")
    below[0].set_ylabel("attention")
    return figure


def draw_strategies(numbers: Numbers) -> "Drawing":
    figure, axes = subplots(1, 2, figsize=(8, 3.2), sharey=True)
    for one, name in zip(axes, ("full", "doubly stochastic"), strict=True):
        _kl(one, numbers[name], "t = lr x step")
        one.set_title(f"{name} prior")
    return figure


def draw_n_grams(numbers: Numbers) -> "Drawing":
    figure, (left, right) = subplots(1, 2, figsize=(8, 3.2))
    _loss(left, numbers, "t")
    right.plot(numbers["time"], numbers["first"], color=COLORS[0], label="head 1 on lag 1")
    right.plot(numbers["time"], numbers["second"], color=COLORS[1], label="head 2 on lag 2")
    right.set(xlabel="t", ylabel="attention")
    right.legend()
    for one in (left, right):
        one.set(xscale="log", xlim=(10, None))
    return figure


FIGURES = {
    "minimal": Figure("-minimal", "The minimal model: match first, then lag 1", minimal, draw_minimal, "half a minute"),
    "strategies": Figure("-strategies", "KL of each strategy to a model with readout", readout, draw_strategies, "a minute"),
    "n-grams": Figure("-n-grams", "Unigram, bigram, trigram on chains of order 2", n_grams, draw_n_grams),
}
