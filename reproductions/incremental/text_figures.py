"""Figure of incremental learning on text: the importance of each lag, and when heads acquire it."""

from typing import TYPE_CHECKING

import numpy as np

from stagescope.core.progress import Progress
from stagescope.papers.incremental.text.loss import lag_information
from stagescope.papers.incremental.text.stages import text_lag_curves
from stagescope.papers.incremental.text.study import PRESETS, TextIncrementalOptions
from stagescope.readings.reading import check, stages
from stagescope.readings.registry import run_study
from stagescope.views.figure import COLORS, GREY, Figure, Numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def compute(progress: Progress, seeds: int = 3) -> Numbers:
    """A student on the embedded text, for several seeds: loss and attention over steps, and the information of each lag."""
    rows, information = [], lag_information(TextIncrementalOptions(**PRESETS["topics"]).read(), 8)
    for seed in progress.each(range(seeds), "figure lags", "runs"):
        run = run_study("text-incremental", "topics", seed=seed, progress=False)
        curves = text_lag_curves(run)
        rows.append(
            {
                "seed": seed,
                "status": run.status,
                "events": dict(stages(run).events),
                "verdicts": {row.tag: row.verdict for row in check(run)},
                "step": curves.time.tolist(),
                "loss": curves.loss.tolist(),
                "mass": np.round(curves.mass, 5).tolist(),
                "levels": curves.levels.tolist(),
            }
        )
    return {"corpus": "topics", "runs": rows, "information": information.facts}


def draw(found: Numbers) -> "Drawing":
    """Importances, the loss with its two levels, and the attention of each head of the first run."""
    from matplotlib import pyplot

    first = found["runs"][0]
    mass, step = np.array(first["mass"]), np.array(first["step"])
    heads, single = mass.shape[1], 4  # the first four lags have a curve each
    drawing, axes = pyplot.subplots(2, 3, figsize=(9.5, 5.2), layout="constrained")
    axis, information = axes[0, 0], found["information"]
    lags = np.arange(1, len(information["alone"]) + 1)
    axis.bar(lags - 0.2, information["alone"], 0.4, color=COLORS[0], label="alone")
    look = {"color": COLORS[1], "ecolor": GREY, "label": "added to the first"}
    axis.bar(lags + 0.2, information["added"], 0.4, yerr=information["errors"], **look)
    axis.set(xlabel="lag", ylabel="nats", title="information on the next word", xticks=lags)
    axis.legend()
    axis = axes[0, 1]
    for number, run in enumerate(found["runs"]):
        axis.plot(np.maximum(run["step"], 0.5), run["loss"], color=COLORS[number], label=f"seed {run['seed']}")
    for level, name in zip(first["levels"], ("no lag", "first lag alone"), strict=True):
        axis.axhline(level, color=GREY, linestyle="--", linewidth=1)
        axis.annotate(name, (0.6, level), textcoords="offset points", xytext=(0, 3), color=GREY, fontsize=8)
    axis.set(xscale="log", xlabel="step", ylabel="loss (nats)", title="loss and its two levels")
    axis.legend(loc="upper right")
    for head, axis in zip(range(heads), (axes[0, 2], *axes[1]), strict=False):
        for lag in range(single):
            axis.plot(np.maximum(step, 0.5), mass[:, head, lag], color=COLORS[lag], label=f"lag {lag + 1}")
        together = mass[:, head, single:].sum(axis=1)
        axis.plot(np.maximum(step, 0.5), together, color=GREY, ls="-.", label=f"lags {single + 1} to {mass.shape[2]} together")
        for name, when in first["events"].items():
            if when is not None:
                axis.axvline(when, color=GREY, linewidth=0.9, linestyle=":")
                axis.annotate(name, (when, 1.03), textcoords="offset points", xytext=(2, 0), color=GREY, fontsize=8)
        axis.set(xscale="log", ylim=(0, 1.1), xlabel="step", title=f"attention of head {head + 1}")
    last = axes[1, -1]
    last.axis("off")
    last.legend(*axes[0, 2].get_legend_handles_labels(), loc="upper left", title="seed 0")
    return drawing


TEXT_FIGURES = {"lags": Figure("lags", "heads on the reference topics: importance of lags, loss, attention", compute, draw)}
