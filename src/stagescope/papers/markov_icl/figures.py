"""Figures of the papers on in-context Markov chains, made again with the minimal models; `plateau` and `levels` are ours.

Targets are those read off the plots that the authors stored (science page, section 8).
"""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import LogSpaced
from stagescope.papers.markov_icl.loss import LinearPopulation
from stagescope.papers.markov_icl.model import LinearMatch
from stagescope.papers.markov_icl.process import ChainPrior
from stagescope.papers.markov_icl.study import STUDY
from stagescope.papers.reading import reading
from stagescope.progress import Progress
from stagescope.runs.run import Run
from stagescope.views.figure import COLORS, GREY, Numbers, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

from stagescope.views.figure import Figure

MINIMAL = {"match": [0.08, 0.10], "previous score": [6.2, 6.3]}
"""Ends of the stored minimal models: diagonal of W, v at lag 1. There layer 1 also saw the future."""


def _run(preset: str, **changes: Any) -> Run:
    return STUDY.run(STUDY.configured(preset, **changes), progress=False)


def _curves(run: Run) -> dict[str, Any]:
    found = reading(run).curves
    return {
        "time": rounded(found.time),
        "loss": rounded(found.loss),
        "match": rounded(found.match),
        "previous": rounded(found.previous),
        "levels": dict(zip(found.levels.names, rounded(found.levels.losses), strict=True)),
        "compared": rounded(found.time[found.compared]),
        "kl": rounded(found.divergences),
        "strategies": list(found.strategies.names),
    }


def minimal(progress: Progress) -> Numbers:
    """F on batches of 100 tokens, as the papers' minimal model."""
    run = _run("minimal")
    scores = np.asarray(run.params["v"])[:, 1]
    return {**_curves(run), "score": rounded(scores), "moments": _moments(run), "targets": MINIMAL}


FIRST_LAGS = 16
"""Lags of a panel: the later ones stay even."""


def _moments(run: Run) -> list[dict[str, Any]]:
    """Layer 1 by lag at the start, where attention on lag 1 is first five times its start, and at the end."""
    attention = reading(run).curves.attention[:, 0]
    emerging = int(np.argmax(attention[:, 1] >= min(5 * attention[0, 1], attention[-1, 1])))
    frames = (0, emerging, len(attention) - 1)
    return [{"t": float(run.time[frame]), "attention": rounded(attention[frame, :FIRST_LAGS])} for frame in frames]


def readout(progress: Progress) -> Numbers:
    """T on batches, both priors."""
    return {"full": _curves(_run("readout")), "doubly stochastic": _curves(_run("readout-doubly"))}


def n_grams(progress: Progress) -> Numbers:
    run = _run("trigram")
    attention = reading(run).curves.attention
    return {**_curves(run), "first": rounded(attention[:, 0, 1]), "second": rounded(attention[:, 1, 2])}


def plateau(progress: Progress) -> Numbers:
    """t_2 of R over D and rho, with D/(rho b* gamma_1), and under the doubly stochastic prior with the two-step law."""
    rows = []
    for rho in (0.01, 0.1, 1.0):
        for lags in (12, 25, 50, 100):
            for doubly in (False, True):
                found = reading(_run("ref", lags=lags, ratio=rho, doubly_stochastic=doubly)).evidence
                law = found.two_step if doubly else found.plateau_time
                when = found.t2
                rows.append({"ratio": rho, "lags": lags, "doubly": doubly, "t2": when, "law": law})
    return {"rows": rows}


class MixedPrior(ChainPrior):
    """Some share of doubly stochastic chains among those with free rows."""

    share: float = 0.0

    @property
    def chains(self) -> int:
        return self.nodes**2 + self.nodes

    @cached_property
    def _quadrature(self) -> tuple[np.ndarray, np.ndarray]:
        free, doubly = ChainPrior(nodes=self.nodes), ChainPrior(nodes=self.nodes, doubly_stochastic=True)
        weights = np.concatenate([(1 - self.share) * free.weights, self.share * doubly.weights])
        return np.concatenate([free.transitions, doubly.transitions]), weights


def mixture(progress: Progress) -> Numbers:
    """When the loss of R has half of the step to its last level, over the share of doubly stochastic chains."""
    shares, times = [0.0, 0.25, 0.5, 0.75, 0.9, 1.0], []
    for share in shares:
        law = LinearPopulation(model=LinearMatch(tokens=2, lags=50), process=MixedPrior(nodes=16, share=share))
        run = evolve(
            law,
            law.model.init(),
            GradientFlow(rates={"v": 0.1}),
            until=2e4,
            record=LogSpaced(frames=400, first=1e-3),
            progress=False,
        )
        times.append(reading(run).evidence.t2)
    return {"share": shares, "t2": times}


ORDER = ("uniform", "unigram", "bigram", "trigram")
"""A strategy has the same colour in every panel."""


def _pyplot() -> Any:
    """Matplotlib is imported when a figure is drawn, not when figures are listed."""
    from matplotlib import pyplot

    return pyplot


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
    figure = _pyplot().figure(figsize=(8, 5.2), constrained_layout=True)
    grid = figure.add_gridspec(2, 6, height_ratios=[3, 2])
    left, right = figure.add_subplot(grid[0, :3]), figure.add_subplot(grid[0, 3:])
    _kl(left, numbers, "t = lr x step")
    for place, (name, label) in enumerate((("match", "match b"), ("score", "v at lag 1"))):
        curve = np.array(numbers[name])
        right.plot(numbers["time"], curve / curve[-1], color=COLORS[place], label=f"{label}, end {curve[-1]:.2g}")
    right.set(xlabel="t = lr x step", ylabel="over its end", title="the match first, then lag 1")
    right.legend()
    for place, moment in enumerate(numbers["moments"]):
        axes = figure.add_subplot(grid[1, 2 * place : 2 * place + 2])
        axes.bar(range(len(moment["attention"])), moment["attention"], color=COLORS[2])
        axes.set(xlabel="lag", title=f"layer 1 at t = {moment['t']:.3g}", ylabel="" if place else "attention")
    return figure


def draw_strategies(numbers: Numbers) -> "Drawing":
    figure, axes = _pyplot().subplots(1, 2, figsize=(8, 3.2), sharey=True, constrained_layout=True)
    for one, name in zip(axes, ("full", "doubly stochastic"), strict=True):
        _kl(one, numbers[name], "t = lr x step")
        one.set_title(f"{name} prior")
    return figure


def draw_n_grams(numbers: Numbers) -> "Drawing":
    figure, (left, right) = _pyplot().subplots(1, 2, figsize=(8, 3.2), constrained_layout=True)
    _loss(left, numbers, "t")
    right.plot(numbers["time"], numbers["first"], color=COLORS[0], label="head 1 on lag 1")
    right.plot(numbers["time"], numbers["second"], color=COLORS[1], label="head 2 on lag 2")
    right.set(xlabel="t", ylabel="attention")
    right.legend()
    for one in (left, right):
        one.set(xscale="log", xlim=(10, None))
    return figure


def draw_plateau(numbers: Numbers) -> "Drawing":
    figure, axes = _pyplot().subplots(1, 2, figsize=(8, 3.2), sharey=True, constrained_layout=True)
    for one, doubly in zip(axes, (False, True), strict=True):
        for place, rho in enumerate(sorted({row["ratio"] for row in numbers["rows"]})):
            rows = [row for row in numbers["rows"] if row["ratio"] == rho and row["doubly"] is doubly]
            lags = [row["lags"] for row in rows]
            one.plot(lags, [row["t2"] for row in rows], "o", color=COLORS[place], label=f"rho {rho:g}")
            one.plot(lags, [row["law"] for row in rows], "--", color=COLORS[place], linewidth=1)
        title = "doubly stochastic: two-step law" if doubly else "full prior: D / (rho b* gamma_1)"
        one.set(xlabel="lags D", xscale="log", yscale="log", title=title)
        shown = sorted({row["lags"] for row in numbers["rows"]})
        one.set_xticks(shown, [str(lags) for lags in shown])
        one.minorticks_off()
        one.legend()
    axes[0].set_ylabel("t_2 (dashed: law)")
    return figure


def draw_mixture(numbers: Numbers) -> "Drawing":
    figure, axes = _pyplot().subplots(figsize=(4.2, 3.2), constrained_layout=True)
    axes.plot(numbers["share"], numbers["t2"], "o-", color=COLORS[0])
    axes.set(xlabel="share of doubly stochastic chains", ylabel="t_2", ylim=(0, None))
    return figure


FIGURES = {
    "minimal": Figure("-minimal", "The minimal model: match first, then lag 1", minimal, draw_minimal, "half a minute"),
    "strategies": Figure("-strategies", "KL of each strategy to a model with readout", readout, draw_strategies, "a minute"),
    "n-grams": Figure("-n-grams", "Unigram, bigram, trigram on chains of order 2", n_grams, draw_n_grams),
    "plateau": Figure("-plateau", "Time on the plateau over the number of lags, with the laws", plateau, draw_plateau),
    "mixture": Figure("-mixture", "t_2 over the share of doubly stochastic chains", mixture, draw_mixture),
}
