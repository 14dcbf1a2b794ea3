"""The pictures of docs/predict.md from real paths and runs: `python docs/prediction_pictures.py`."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pictures import EMBEDDING, SCORES, STYLE, save

import stagescope as ss

DASHES = (0, (3, 2))
STRENGTHS, SMALL = np.array([2.0, 1.0, 0.3]), 1e-4
START = 1e-5


def factorisation(params: Any, target: Any) -> Any:
    return 0.5 * ((params["A"] @ params["B"] - target) ** 2).sum()


def linear() -> Figure:
    """A linear network: sizes of its three directions, on a logarithmic axis and as they are."""
    loss = ss.JaxObjective(factorisation, data=np.diag(STRENGTHS))
    start = {"A": SMALL * np.eye(3), "B": SMALL * np.eye(3)}
    run = ss.evolve(loss, start, ss.GradientFlow(), until=40, record=ss.Uniform(frames=1201))
    sizes = np.einsum("tii->ti", run.params["A"])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.4), layout="constrained")
    right.plot(run.t, run.series["loss"], color="0.2", lw=1.6)
    for size, rate in zip(sizes.T, STRENGTHS, strict=True):
        wait = np.log(0.1 / SMALL) / rate
        left.plot(run.t, size, color=EMBEDDING, lw=1.8, label="run" if rate == STRENGTHS[0] else None)
        line = np.array([0, np.log(3 / SMALL) / rate])
        label = "start $\\times\\ e^{rate \\cdot t}$" if rate == STRENGTHS[0] else None
        left.plot(line, SMALL * np.exp(rate * line), color="black", lw=1.1, ls=DASHES, label=label)
        right.axvline(wait, color="0.2", lw=0.7, ls=DASHES, zorder=0)
        right.text(wait, 1.02, f"{wait:.1f}", transform=right.get_xaxis_transform(), ha="center", va="bottom", fontsize=8.5)
    left.axhline(0.1, color="0.2", lw=0.7, ls=(0, (1, 2)), zorder=0)
    left.legend(loc="lower right", frameon=False, fontsize=8.5)
    left.set(yscale="log", ylim=(5e-5, 4), xlim=(0, 40), xlabel="flow time $t$", ylabel="size of a direction")
    left.set_title("Each direction grows at its own rate", pad=22)
    right.set(xlim=(0, 40), ylim=(0, 2.7), xlabel="flow time $t$", ylabel="loss")
    right.set_title("Waiting times, known at the start", pad=22)
    return figure


def attention() -> Figure:
    """TokenAttention: singular values of both stacks, and what the saddle path says of the largest part outside it."""
    study = ss.study("focus-dilution")
    setup = study.setup(study.configured("ref", init_scale=START), 0)
    path, last = ss.saddle_path(setup.what, setup.params), 900
    run = ss.evolve(setup.what, setup.params, ss.GradientFlow(), until=last, record=ss.Uniform(frames=2000))
    blocks = {name: run.params[name] for name in run.params}
    stacks = {
        "embedding": np.concatenate([blocks["W0"], np.swapaxes(blocks["W1"], 1, 2)], axis=1),
        "attention": np.concatenate([blocks["WQ"], blocks["WK"]], axis=1),
    }
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.6), sharey=True, layout="constrained")
    for ax, (name, stack), colour, letter in zip(axes, stacks.items(), (EMBEDDING, SCORES), "EQ", strict=True):
        values = np.linalg.svd(stack, compute_uv=False)
        ax.plot(run.t, values, color=colour, lw=1.6)
        ax.plot([], [], color=colour, lw=1.6, label="run")
        outside = np.exp(np.where(np.isfinite(path.sizes[name]), path.sizes[name], np.nan))
        ax.plot(path.time, outside, color="black", lw=1.1, ls=DASHES, label="predicted")
        for event in path.sequence:
            if event.startswith(letter):
                _mark(ax, event, path[event].t)
        ax.set(yscale="log", ylim=(1e-5, 10), xlim=(0, last), xlabel="flow time $t$")
    axes[0].set(ylabel="singular values")
    axes[0].set_title("Embedding: $W_0$ and $W_1$", pad=22)
    axes[1].set_title("Attention: $W_Q$ and $W_K$", pad=22)
    axes[1].legend(loc=(0.62, 0.42), frameon=False, fontsize=8.5, borderpad=0.1)
    return figure


def _mark(ax: Axes, name: str, when: float | None) -> None:
    ax.axvline(when or 0.0, color="0.2", lw=0.7, ls=(0, (1, 2)), zorder=0)
    ax.text(when or 0.0, 1.02, name, transform=ax.get_xaxis_transform(), ha="center", va="bottom", fontsize=8.5)


def main(folder: Path) -> None:
    for name, make in (("predict-linear", linear), ("predict-attention", attention)):
        with plt.rc_context(STYLE):
            save(make(), folder / f"{name}.png")


if __name__ == "__main__":
    main(Path(__file__).parent)
