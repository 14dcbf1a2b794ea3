"""Early stopping of heads against the number of training sequences: numbers from the rows of the sweep `early-stopping`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from stagescope.errors import InputError
from stagescope.later import Later
from stagescope.papers.incremental.stopping import RIDGES, VALIDATION, stopping
from stagescope.papers.published import published
from stagescope.runs.run import DONE
from stagescope.views.figure import Figure, Numbers

RULES = ("oracle", "held-out", "adaptive", "end")
CURVES = ("step", "training", "held", "validation")
SHOWN_RIDGE = f"{RIDGES[1]:g}"
MEASURED = published("stagescope.papers.incremental")["early-stopping"].value


def stopping_numbers(table: Any) -> Numbers:
    """Three sizes with the curves of their first run, the summary of all sizes, and every run without its curves."""
    if [axis.name for axis in table.axes] != ["sequences"]:
        raise InputError("the figure needs a sweep over sequences alone; other options stay fixed")
    runs = [_run(row) for row in table.rows]
    done = [run for run in runs if "gain" in run]
    if not done:
        raise InputError("no row of the sweep has the measure stopping; sweep with --measure stopping")
    found = summary(done)
    sizes = [entry["sequences"] for entry in found]
    shown = sorted({sizes[place] for place in (0, len(sizes) // 3, 2 * len(sizes) // 3)})
    panels = [_panel(table, next(run for run in done if run["sequences"] == size)) for size in shown]
    settings = {"preset": table.plan.preset, "validation": VALIDATION, **table.plan.fixed}
    parts = {"levels": done[0]["levels"], "summary": found, "runs": runs, "panels": panels}
    return {"settings": settings, **parts, "measured": MEASURED}


def _run(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the sweep as one flat entry; a run that did not reach its end has a status, a reason and no numbers."""
    known = {"sequences": row["at"]["sequences"], **{name: row[name] for name in ("seed", "status", "reason")}}
    return {**known, **(row.get("measures", {}).get("stopping", {}) if row["status"] in DONE else {})}


def _panel(table: Any, run: Mapping[str, Any]) -> dict[str, Any]:
    """Curves and stops of one run, which is computed again from its row."""
    found = stopping(table.recreate(table.find({"sequences": run["sequences"]}, run["seed"]), progress=False))
    lines = {name: [round(float(value), 5) for value in getattr(found, name)] for name in CURVES}
    stops = {rule: {name: run[f"{name}.{rule}"] for name in ("step", "loss", "class")} for rule in RULES}
    return {"sequences": run["sequences"], "seed": run["seed"], "stops": stops, **lines}


def summary(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Means over the runs of each size; [least, largest] where they are called a range.

    `same_class` counts among the `judged` runs, those inside the regime of the claim; `not_judged` of a run says why not.
    """
    sizes = sorted({run["sequences"] for run in runs})
    return [_summary(size, [run for run in runs if run["sequences"] == size]) for size in sizes]


def _summary(size: int, runs: list[Mapping[str, Any]]) -> dict[str, Any]:
    losses = {name: _known(run[f"loss.{name}"] for run in runs) for name in (*RULES, "likelihood", "ridge")}
    judged, gains = [run for run in runs if run["not_judged"] is None], [run["gain"] for run in runs]
    return {
        "sequences": size,
        "runs": len(runs),
        "loss": {name: _mean(found) for name, found in losses.items()},
        "loss_range": {name: _range(found) for name, found in losses.items()},
        "stop_gain": _mean(gains),
        "stop_gain_range": _range(gains),
        "step": {rule: _mean([run[f"step.{rule}"] for run in runs]) for rule in RULES},
        "decided": {rule: _mean([run[f"decided.{rule}"] for run in runs]) for rule in RULES},
        "class_at_stop": [run["class.oracle"] for run in runs],
        "best_class": [run["best_class"] for run in runs],
        "best_by_ridge": {ridge: [run["best_by_ridge"][ridge] for run in runs] for ridge in runs[0]["best_by_ridge"]},
        "same_class": sum(run["class.oracle"] == run["best_class"] for run in judged),
        "judged": len(judged),
        "ridge_wins": sum(run["loss.ridge"] is not None and run["loss.ridge"] < run["loss.oracle"] for run in runs),
        "likelihood_by_class": _by_class(run["likelihood"][SHOWN_RIDGE] for run in runs),
        "ridge_by_class": _by_class(run["ridge"] for run in runs),
    }


def _known(values: Iterable[float | None]) -> list[float]:
    """A fit that did not converge has no loss."""
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _range(values: Sequence[float]) -> list[float | None]:
    return [min(values), max(values)] if values else [None, None]


def _by_class(fits: Iterable[Sequence[float | None]]) -> list[float | None]:
    return [_mean(_known(losses)) for losses in zip(*fits, strict=True)]


_DRAW = Later("stagescope.papers.incremental.stopping_draw:stopping")
STOPPING = Figure(
    "-stopping", "Where to stop, what it costs, and which class it is", stopping_numbers, _DRAW, sweep="early-stopping"
)
