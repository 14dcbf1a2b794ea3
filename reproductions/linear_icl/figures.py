"""Numbers and drawings of the figures of linear attention in context (arXiv 2501.16265), and of two of our own.

The authors' code does not divide attention by N and its loss has no 1/2. Step n is t = 2 lr N n for merged heads, whose
parameters are theirs times sqrt(N), and t = 2 lr N^(2/3) n for separate ones, whose parameters are theirs times N^(1/3).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.core.progress import Progress
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.cascade import SilentHead, cascade
from stagescope.papers.linear_icl.reading import LinearReading
from stagescope.papers.linear_icl.study import LinearOptions
from stagescope.readings.published import published
from stagescope.readings.registry import run_study
from stagescope.views.figure import COLORS, GREY, Figure, Numbers, colour_map, coloured, rounded, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

LENGTH: int = LinearOptions.model_fields["context"].default
STARTS = 60
"""Starts over which the spread of predicted drops is shown."""


@dataclass(frozen=True)
class Authors:
    """Settings of the authors' code for runs of a preset; what they call a parameter is ours times LENGTH^-power."""

    preset: str
    lr: float
    scale: float
    steps: int
    power: float = 1 / 3

    @property
    def per_step(self) -> float:
        """The time of a step."""
        return 2 * self.lr * LENGTH ** (2 * self.power)

    @property
    def start(self) -> float:
        """The scale of a start."""
        return self.scale * LENGTH**self.power

    def read(self, seed: int = 0, **options: Any) -> tuple[LinearReading, dict[str, Any]]:
        """A run, its loss over their steps on at most 600 frames, and the steps of its drops."""
        reading = read(self.preset, seed, init_scale=self.start, until=self.per_step * self.steps, **options)
        at = reading.curves.time / self.per_step
        inside = np.flatnonzero(at <= self.steps)
        chosen = inside[np.unique(np.linspace(0, inside.size - 1, 600).astype(int))]
        drops = [None if when is None else when / self.per_step for when in reading.stages.events.values()]
        return reading, {"step": rounded(at[chosen], 2), "loss": rounded(reading.curves.loss[chosen], 6), "drops": drops}


MERGED = Authors("merged", lr=1e-3, scale=1e-6, steps=6000, power=1 / 2)
SEPARATE = Authors("ref", lr=0.02, scale=0.01, steps=10_000)
"""The scale of the separate figure is not stated; with .03/sqrt(numbers of a head) its steps are those of the figure."""
LOW_RANK = Authors("eight", lr=0.02, scale=5e-3, steps=20_000)


def read(preset: str, seed: int = 0, **options: Any) -> LinearReading:
    """The reading of a run of the study."""
    return LinearReading(run_study("linear-icl", preset, seed=seed, progress=False, **options))


def abrupt(progress: Progress) -> Numbers:
    """Merged heads; an MLP on the cubic features beta x_q^T has the same equations, and so the same curve."""
    reading, curve = MERGED.read()
    starts = [reading.run.at(0), *(reading.law.model.init(seed, MERGED.start) for seed in range(STARTS))]
    own, *others = [forms.merged_drop_time(reading.law.task, start) / MERGED.per_step for start in starts]
    known = published("stagescope.papers.linear_icl")
    shown = {"half": known["figure_merged_step"].value, "at": known["figure_merged_levels"].value}
    return {
        "half": curve.pop("drops")[0],
        "curve": curve,
        "predicted": own,
        "at": {name: float(np.interp(float(name), curve["step"], curve["loss"])) for name in shown["at"]},
        "over_starts": np.quantile(others, [0.05, 0.5, 0.95]).tolist(),
        "published": shown,
        "levels": rounded(reading.curves.levels, 6),
    }


def separate(progress: Progress) -> Numbers:
    runs = [SEPARATE.read(seed)[1] for seed in progress.each(range(6), "separate", "flows")]
    ratios = []  # the median of each drop over the first one, of the runs that have it
    for drops in zip(*(run["drops"] for run in runs), strict=True):
        present = [step / run["drops"][0] for step, run in zip(drops, runs, strict=True) if step is not None]
        ratios.append(float(np.median(present)) if present else None)
    law = read("ref", until=1.0).law
    starts = [law.model.init(seed, SEPARATE.start) for seed in range(STARTS)]
    times = np.array([[drop.time for drop in cascade(law.task, SilentHead.all_of(start))] for start in starts])
    return {
        "runs": runs,
        "published": published("stagescope.papers.linear_icl")["figure_separate_steps"].value,
        "ratios": ratios,
        "over_starts": rounded(np.quantile(times / times[:, :1], [0.1, 0.5, 0.9], axis=0).T, 3),
        "levels": rounded(forms.levels(law.task), 6),
    }


def low_rank(progress: Progress) -> Numbers:
    runs = {rank: LOW_RANK.read(rank=rank) for rank in progress.each((8, 4, 2, 1), "low rank", "flows")}
    panels = [{"rank": rank, **curve} for rank, (_, curve) in runs.items()]
    return {"panels": panels, "levels": rounded(forms.levels(runs[8][0].law.task), 6)}


def heads(progress: Progress) -> Numbers:
    """|v_h| over time, and M on each plateau, of the preset ref."""
    curves = read("ref").curves
    chosen, task = np.unique(np.linspace(0, len(curves.time) - 1, 500).astype(int)), curves.task
    frames = [curves.plateau(m) for m in range(1, curves.model.reach + 1)]
    return {
        "t": rounded(curves.time[chosen], 3),
        "v": rounded(np.abs(curves.params["v"][chosen]), 5),
        "maps": [rounded(curves.map[frame], 4) for frame in frames if frame is not None],
        "regression": rounded(forms.final_map(task), 4),
        "finals": [forms.head_value(task, (i,)) for i in range(task.dim)],
        "drops": [when for when in curves.times if when is not None],
    }


def _levels(axis, levels, names=None) -> None:  # noqa: ANN001 (axes and numbers)
    for m, level in enumerate(levels):
        axis.axhline(level, color=GREY, lw=0.7, zorder=0)
        axis.text(1.005, level, f"$l_{names[m] if names else m}$", color=GREY, transform=axis.get_yaxis_transform(), va="center")


def draw_abrupt(numbers: Numbers) -> "Drawing":
    drawing, axis = subplots(figsize=(5.6, 3.3))
    curve, known = numbers["curve"], numbers["published"]
    axis.plot(curve["step"], curve["loss"], color=COLORS[0], label="flow of all sequences")
    _levels(axis, numbers["levels"], (0, 4))
    axis.axvline(numbers["predicted"], color=COLORS[0], ls="--", lw=1, label=f"predicted drop {numbers['predicted']:.0f}")
    low, middle, high = numbers["over_starts"]
    axis.axvspan(
        low, high, color=COLORS[0], alpha=0.12, lw=0, label=f"of other starts: {low:.0f} to {high:.0f}, median {middle:.0f}"
    )
    steps = [float(name) for name in known["at"]]
    axis.plot(steps, list(known["at"].values()), "D", color=COLORS[1], mfc="white", label="read off the authors' notebook")
    axis.plot(known["half"], np.mean(numbers["levels"]), "D", color=COLORS[1], mfc="white")
    axis.set(xlabel="step of the authors' code", ylabel="loss", title="Merged heads learn in one drop")
    axis.legend()
    return drawing


def draw_separate(numbers: Numbers) -> "Drawing":
    drawing, axis = subplots(figsize=(6.4, 3.4))
    for color, run in coloured(numbers["runs"]):
        axis.plot(run["step"], run["loss"], color=color, lw=1.2)
    for m, (low, high) in enumerate(numbers["published"]):
        middle = (numbers["levels"][m] + numbers["levels"][m + 1]) / 2
        axis.plot([low, high], [middle, middle], color=GREY, lw=4, alpha=0.6, solid_capstyle="butt")
    _levels(axis, numbers["levels"])
    ratios = " : ".join("-" if ratio is None else f"{ratio:.2g}" for ratio in numbers["ratios"])
    axis.set(xscale="log", xlim=(100, None), xlabel="step of the authors' code", ylabel="loss")
    spread = ", ".join(f"{low:.2g}-{high:.2g}" for low, _, high in numbers["over_starts"][1:])
    axis.set_title(f"Six seeds; bars: read off the notebook. Drops over the first: {ratios}\n10 to 90 % of 60 starts: {spread}")
    return drawing


def draw_low_rank(numbers: Numbers) -> "Drawing":
    panels = numbers["panels"]
    drawing, axes = subplots(1, len(panels), figsize=(11, 3), sharey=True)
    for axis, panel in zip(axes, panels, strict=True):
        axis.plot(panel["step"], panel["loss"], color=COLORS[0])
        for m, level in enumerate(numbers["levels"]):
            long = m % panel["rank"] == 0
            axis.axhline(level, color=COLORS[1] if long else GREY, lw=0.9 if long else 0.4, zorder=0)
        axis.set(xscale="log", xlim=(100, None), xlabel="step", title=f"rank {panel['rank']}")
    axes[0].set_ylabel("loss")
    drawing.suptitle("Eight directions, nine heads: plateaus are long at multiples of the rank (orange levels)")
    return drawing


def draw_heads(numbers: Numbers) -> "Drawing":
    maps = numbers["maps"]
    drawing, axes = subplots(1, 1 + len(maps), figsize=(11, 2.9), width_ratios=[2.2, *[1] * len(maps)])
    values = np.array(numbers["v"])
    for color, head in coloured(values.T):
        axes[0].plot(numbers["t"], head, color=color)
    for when in numbers["drops"]:
        axes[0].axvline(when, color=GREY, lw=0.6)
    for final in numbers["finals"]:
        axes[0].axhline(final, color=GREY, lw=0.5, ls=":")
    axes[0].set(xscale="log", xlim=(100, None), xlabel="t", ylabel="$|v_h|$", title="one head rises at each drop")
    top = max(numbers["regression"])
    for m, (axis, matrix) in enumerate(zip(axes[1:], maps, strict=True), start=1):
        axis.imshow(matrix, cmap=colour_map(signed=True), vmin=-1.6 * top, vmax=1.6 * top)
        axis.set(xticks=[], yticks=[], title=f"M on plateau {m}")
        axis.grid(visible=False)
        for i in range(len(matrix)):
            axis.text(i, i, f"{matrix[i][i]:.2f}", ha="center", va="center", fontsize=7)
    said = ", ".join(f"{value:.2f}" for value in numbers["regression"])
    drawing.suptitle(f"M on plateau m is regression on m principal components: 1/(lambda a) = {said}")
    return drawing


FIGURES = {
    "merged": Figure("-merged", "Merged heads: one drop", abrupt, draw_abrupt),
    "separate": Figure("-separate", "Separate heads of rank one: saddle to saddle, six seeds", separate, draw_separate),
    "low-rank": Figure("-low-rank", "Heads of rank 1, 2, 4 and 8 on eight directions", low_rank, draw_low_rank),
    "heads": Figure("-heads", "Values of heads, and M on the plateaus", heads, draw_heads),
}
