"""Numbers of the figures of linear attention in context; each function makes all runs that its figure needs.

The authors' code does not divide attention by N and its loss has no 1/2. Step n is t = 2 lr N n for merged heads, whose
parameters are theirs times sqrt(N), and t = 2 lr N^(2/3) n for separate ones, whose parameters are theirs times N^(1/3).
"""

from typing import Any

import numpy as np

from stagescope.papers.linear_icl import forms, merged
from stagescope.papers.linear_icl.blow_up import SilentHead
from stagescope.papers.linear_icl.cascade import cascade
from stagescope.papers.linear_icl.reading import LinearReading
from stagescope.papers.linear_icl.study import PRESETS
from stagescope.papers.published import published
from stagescope.papers.registry import run_study
from stagescope.progress import Progress
from stagescope.views.figure import Numbers, rounded

LENGTH = 31
MERGED = {"lr": 1e-3, "scale": 1e-6, "heads": 8, "steps": 6000}
SEPARATE = {"lr": 0.02, "scale": 0.01, "steps": 10_000, "seeds": 6}
"""The scale of the separate figure is not stated; with .03/sqrt(numbers of a head) its steps are those of the figure."""
LOW_RANK = {"scale": 5e-3, "steps": 20_000, "lr": 0.02, "ranks": (8, 4, 2, 1)}


STARTS = 60
"""Starts over which the spread of predicted drops is shown."""


def read(preset: str | None = None, seed: int = 0, **options: Any) -> LinearReading:
    """The reading of a run of the study."""
    return LinearReading(run_study("linear-icl", preset, seed=seed, progress=False, **options))


def _curve(found: LinearReading, per_step: float, steps: int) -> dict[str, Any]:
    """Loss over steps of the authors' code, on at most 600 frames."""
    at = found.curves.time / per_step
    inside = np.flatnonzero(at <= steps)
    chosen = inside[np.unique(np.linspace(0, inside.size - 1, 600).astype(int))]
    return {"step": rounded(at[chosen], 2), "loss": rounded(found.curves.loss[chosen], 6)}


def abrupt(progress: Progress) -> Numbers:
    """Merged heads; an MLP on the cubic features beta x_q^T has the same equations, and so the same curve."""
    per_step = 2 * MERGED["lr"] * LENGTH
    scale = float(np.sqrt(LENGTH)) * MERGED["scale"]
    found = read("merged", init_scale=scale, heads=MERGED["heads"], until=per_step * MERGED["steps"])
    curve = _curve(found, per_step, MERGED["steps"])
    drop = found.stages.events["d1"]
    said = merged.drop_time(found.law.task, found.run.at(0)) / per_step
    starts = [merged.drop_time(found.law.task, found.law.model.init(seed, scale)) / per_step for seed in range(STARTS)]
    known = published("stagescope.papers.linear_icl")
    levels = {name: float(np.interp(float(name), curve["step"], curve["loss"])) for name in known["figure_merged_levels"].value}
    facts = {"half": None if drop is None else drop / per_step, "predicted": said, "at": levels}
    facts["over_starts"] = [float(q) for q in np.quantile(starts, [0.05, 0.5, 0.95])]
    shown = {"half": known["figure_merged_step"].value, "at": known["figure_merged_levels"].value}
    return {"curve": curve, **facts, "published": shown, "levels": rounded(found.curves.levels, 6)}


def separate(progress: Progress) -> Numbers:
    per_step = 2 * SEPARATE["lr"] * LENGTH ** (2 / 3)
    scale = SEPARATE["scale"] * LENGTH ** (1 / 3)
    runs, law = [], read("ref", until=1.0).law
    for seed in progress.each(range(SEPARATE["seeds"]), "separate", "flows"):
        found = read("ref", seed, init_scale=scale, until=per_step * SEPARATE["steps"])
        steps = [None if when is None else when / per_step for when in found.stages.events.values()]
        runs.append({**_curve(found, per_step, SEPARATE["steps"]), "drops": steps})
    known = published("stagescope.papers.linear_icl")["figure_separate_steps"].value
    task, model = law.task, law.model
    starts = [[drop.time for drop in cascade(task, SilentHead.all_of(model.init(seed, scale)))] for seed in range(STARTS)]
    spread = np.quantile(np.array(starts) / np.array(starts)[:, :1], [0.1, 0.5, 0.9], axis=0)
    return {
        "runs": runs,
        "published": known,
        "ratios": _ratios(runs),
        "over_starts": rounded(spread.T, 3),
        "levels": rounded(forms.levels(task), 6),
    }


def _ratios(runs: list[dict[str, Any]]) -> list[float | None]:
    """Median of each drop over the first one, of the runs that have it."""
    found = []
    for m in range(len(runs[0]["drops"])):
        kept = [run["drops"][m] / run["drops"][0] for run in runs if run["drops"][m] is not None]
        found.append(float(np.median(kept)) if kept else None)
    return found


def low_rank(progress: Progress) -> Numbers:
    per_step = 2 * LOW_RANK["lr"] * LENGTH ** (2 / 3)
    scale = LOW_RANK["scale"] * LENGTH ** (1 / 3)
    panels, task = [], read("eight", until=1.0).law.task
    for rank in progress.each(LOW_RANK["ranks"], "low rank", "flows"):
        found = read("eight", rank=rank, init_scale=scale, until=per_step * LOW_RANK["steps"])
        steps = [None if when is None else when / per_step for when in found.stages.events.values()]
        panels.append({"rank": rank, **_curve(found, per_step, LOW_RANK["steps"]), "drops": steps})
    return {"panels": panels, "levels": rounded(forms.levels(task), 6)}


def heads(progress: Progress) -> Numbers:
    """|v_h| over time, and M on each plateau, of the preset ref."""
    found = read("ref")
    curves, evidence = found.curves, found.evidence
    chosen = np.unique(np.linspace(0, len(curves.time) - 1, 500).astype(int))
    frames = [evidence.plateau(m) for m in range(1, found.law.model.reach + 1)]
    maps = [rounded(curves.whole[frame], 4) for frame in frames if frame is not None]
    values = {"t": rounded(curves.time[chosen], 3), "v": rounded(np.abs(np.asarray(curves.params["v"])[chosen]), 5)}
    finals = [forms.head_value(found.law.task, (i,)) for i in range(found.law.task.dim)]
    drops = [when for when in evidence.times if when is not None]
    return {**values, "maps": maps, "regression": rounded(forms.final_map(found.law.task), 4), "finals": finals, "drops": drops}


def cascades(progress: Progress, seeds: int = 30) -> Numbers:
    """Predicted and measured drops of ref and three, with whether the right head made them."""
    rows = []
    for preset in ("ref", "three"):
        for seed in progress.each(range(seeds), f"cascade, {preset}", "flows"):
            found = read(preset, seed)
            evidence, fair = found.evidence, True
            for m, drop in enumerate(evidence.predicted[: evidence.reached]):
                fair = fair and drop.ratio >= 1.15
                right = evidence.owners[drop.direction] == drop.head
                rows.append({"preset": preset, "drop": m + 1, "predicted": drop.time, "measured": evidence.times[m]})
                rows[-1] |= {"right": bool(right), "fair": bool(fair)}
    return {"rows": rows, "summary": _summary(rows)}


def _summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By preset and drop: share of right heads, median and 90 % quantile of the error."""
    found = []
    for preset, m in sorted({(row["preset"], row["drop"]) for row in rows}):
        own = [row for row in rows if (row["preset"], row["drop"]) == (preset, m)]
        errors = [abs(row["predicted"] / row["measured"] - 1) for row in own]
        share = float(np.mean([row["right"] for row in own]))
        quantiles = {"median": float(np.median(errors)), "90 %": float(np.quantile(errors, 0.9))}
        found.append({"preset": preset, "drop": m, "runs": len(own), "right": share, **quantiles})
    return found


def scale_law(progress: Progress) -> Numbers:
    """d1 over the scale, from one start made larger and smaller: separate as 1/s, merged as ln(1/s)."""
    scales, curves = np.geomspace(1e-3, 0.1, 7), []
    for preset in ("ref", "merged"):
        bar = progress.each(scales.tolist(), f"scale law, {preset}", "flows")
        found = [read(preset, init_scale=scale).evidence.times[0] for scale in bar]
        law = read(preset, until=1.0).law
        rate = merged.growth_rate(law.task) if law.model.merged else None
        delay = None if law.model.merged else forms.delay(law.task, 0)
        curves.append({"preset": preset, "d1": found, "rate": rate, "delay": delay})
    return {"scale": scales.tolist(), "curves": curves, "presets": {name: PRESETS[name] for name in ("ref", "merged")}}
