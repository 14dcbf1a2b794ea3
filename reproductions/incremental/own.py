"""Numbers of the regression flow (figure 10), and of early stopping, a figure of our own."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from stagescope.core.errors import InputError, StagescopeError
from stagescope.core.progress import Progress
from stagescope.detect.levels import plateaus, transitions
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.flow.record import AtTimes
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.observables import HeadCurves, head_curves
from stagescope.papers.incremental.panels import rounded, value
from stagescope.papers.incremental.stopping import stopping
from stagescope.readings.reading import reading
from stagescope.readings.rebuild import companion_run, ended
from stagescope.readings.registry import run_study
from stagescope.runs.run import DONE
from stagescope.views.figure import Numbers


def flow(progress: Progress, draws: int = 5, until: float = 600.0) -> Numbers:
    """Figure 10: N = 40, three heads, gains m^2, m, 1, noise 1e-6 on the attention weights, mirror law [ISA:mirror]."""
    runs = [
        ended(run_study("incremental", "published-flow", seed=seed, until=until, progress=False), f"draw {seed}")
        for seed in progress.each(range(draws), "flows", "flows")
    ]
    curves = [head_curves(run) for run in runs]
    drawn_curves = [_drawn(item, seed) for seed, item in enumerate(curves)]
    drops = np.array([panel["drops"] for panel in drawn_curves], dtype=float)
    pairs = [pair for panel in drawn_curves for pair in zip(panel["plateaus"], value("figure-10-levels"), strict=True)]
    gaps = [abs(mine - level) for mine, level in pairs if mine is not None]
    # the largest difference in loss between the first run and the same flow by a second solver
    run, until = runs[0], float(runs[0].t[-1])
    record, second = AtTimes(at=tuple(run.t[1:].tolist())), GradientFlow(method="lsoda")
    again = companion_run(reading(run).law, run.at(0), second, until=until, record=record)
    apart = float(np.abs(head_curves(again).loss - curves[0].loss).max())
    return {
        "panels": drawn_curves,
        "levels": rounded(curves[0].forms.levels),
        "drops": rounded([drops.min(axis=0), drops.max(axis=0)], 2),
        "published_drops": value("figure-10-drops"),
        "published_levels": value("figure-10-levels"),
        "mean_abs_difference": round(float(np.mean(gaps)), 5),
        "solver_difference": {"second_solver": "lsoda", "loss": apart},
    }


def _drawn(curves: HeadCurves, seed: int) -> Numbers:
    levels = curves.forms.levels
    drops = transitions(curves.time, curves.loss, levels)
    if None in drops:
        raise StagescopeError(f"draw {seed} of the flow reached only {sum(t is not None for t in drops)} of {len(drops)} drops")
    rests = [None if item is None else round(item.loss, 5) for item in plateaus(curves.time, curves.loss, levels)]
    return {
        "seed": seed,
        "t": rounded(curves.time, 4),
        "loss": rounded(curves.loss, 6),
        "mass": rounded(curves.mass),
        "drops": drops,
        "plateaus": rests,
    }


RULES = ("oracle", "held-out", "adaptive", "end")
CURVES = ("step", "training", "held", "validation")
SHOWN_RIDGE = f"{LIMITS.ridges[1]:g}"


def stopping_numbers(table: Any) -> Numbers:
    """Three sizes with the curves of their first run, the summary of all sizes, and every run without its curves."""
    if [axis.name for axis in table.axes] != ["sequences"]:
        raise InputError("the figure needs a sweep over sequences alone; other options stay fixed")
    runs = []
    for row in table.rows:  # a run that did not reach its end has a status, a reason and no numbers
        measures = row.get("measures", {}).get("stopping", {}) if row["status"] in DONE else {}
        runs.append(
            {"sequences": row["at"]["sequences"], **{name: row[name] for name in ("seed", "status", "reason")}, **measures}
        )
    done = [run for run in runs if "gain" in run]
    if not done:
        raise InputError("no row of the sweep has the measure stopping; sweep with --measure stopping")
    facts = summary(done)
    sizes = [entry["sequences"] for entry in facts]
    shown = sorted({sizes[place] for place in (0, len(sizes) // 3, 2 * len(sizes) // 3)})
    panels = []
    for size in shown:  # curves and stops of the first run of each size, which is computed again from its row
        run = next(run for run in done if run["sequences"] == size)
        again = stopping(table.recreate(table.find({"sequences": size}, run["seed"]), progress=False))
        lines = {name: [round(float(value), 5) for value in getattr(again, name)] for name in CURVES}
        stops = {rule: {name: run[f"{name}.{rule}"] for name in ("step", "loss", "class")} for rule in RULES}
        panels.append({"sequences": size, "seed": run["seed"], "stops": stops, **lines})
    settings = {"preset": table.plan.preset, "validation": LIMITS.held_out, **table.plan.fixed}
    parts = {"levels": done[0]["levels"], "summary": facts, "runs": runs, "panels": panels}
    return {"settings": settings, **parts, "measured": value("early-stopping")}


def summary(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Means over the runs of each size; [least, largest] where they are called a range.

    `same_class` counts among the `judged` runs, those inside the regime of the claim; `not_judged` of a run says why not.
    """
    sizes = sorted({run["sequences"] for run in runs})
    return [_summary(size, [run for run in runs if run["sequences"] == size]) for size in sizes]


def _summary(size: int, runs: list[Mapping[str, Any]]) -> dict[str, Any]:
    losses = {name: _known(run[f"loss.{name}"] for run in runs) for name in (*RULES, "likelihood", "ridge")}
    judged = [run for run in runs if run["not_judged"] is None]
    return {
        "sequences": size,
        "runs": len(runs),
        "loss": {name: _mean(values) for name, values in losses.items()},
        "loss_range": {name: [min(found), max(found)] if found else [None, None] for name, found in losses.items()},
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


def _by_class(fits: Iterable[Sequence[float | None]]) -> list[float | None]:
    return [_mean(_known(losses)) for losses in zip(*fits, strict=True)]
