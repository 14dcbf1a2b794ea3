"""Numbers of our own figures: the regression flow, its clock and escapes, five position encodings, and early stopping."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from stagescope.detect.levels import plateaus, transitions
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import AtTimes, LogSpaced
from stagescope.errors import InputError, StagescopeError
from stagescope.papers.answers import check, stages
from stagescope.papers.incremental.claims import departure, rungs
from stagescope.papers.incremental.evidence import Curve, clock, companions
from stagescope.papers.incremental.figures_numbers import WORKERS, by_lag, rounded, value
from stagescope.papers.incremental.observables import HeadCurves, head_curves, lag_curves
from stagescope.papers.incremental.regression import MirrorFlow, RegressionHeads, RegressionLoss, RegressionSampled, wkb_times
from stagescope.papers.incremental.stopping import RIDGES, VALIDATION, stopping
from stagescope.papers.reading import reading
from stagescope.papers.rebuild import ended
from stagescope.papers.registry import run_study
from stagescope.progress import Progress
from stagescope.runs.run import DONE, Run
from stagescope.views.figure import Numbers
from stagescope.workers import results

CLOCKS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("regression transformer, batches of 128", "regression-transformer", {}),
    ("cross-entropy, scale .3", "gd-ladder", {"scale": 0.3, "rate_values": 20.0, "rate_attention": 20.0, "steps": 2500}),
    ("cross-entropy, scale 1", "gd-ladder", {}),
)
"""Label, preset and changes of the runs that are compared with a flow."""
LAWS = {"exact": RegressionLoss, "mirror": MirrorFlow}


def flow(progress: Progress, draws: int = 5, until: float = 600.0) -> Numbers:
    """Figure 10: N = 40, three heads, gains m^2, m, 1, noise 1e-6 on the attention weights, mirror law [ISA:mirror]."""
    runs = [
        ended(run_study("incremental", "ode-mirror", seed=seed, until=until, progress=False), f"draw {seed}")
        for seed in progress.each(range(draws), "flows", "flows")
    ]
    curves = [head_curves(run) for run in runs]
    found = [_drawn(item, seed) for seed, item in enumerate(curves)]
    drops = np.array([panel["drops"] for panel in found], dtype=float)
    pairs = [pair for panel in found for pair in zip(panel["plateaus"], value("figure-10-levels"), strict=True)]
    gaps = [abs(mine - level) for mine, level in pairs if mine is not None]
    return {
        "panels": found,
        "levels": rounded(curves[0].forms.levels),
        "drops": rounded([drops.min(axis=0), drops.max(axis=0)], 2),
        "published_drops": value("figure-10-drops"),
        "published_levels": value("figure-10-levels"),
        "mean_abs_difference": round(float(np.mean(gaps)), 5),
        "solver_difference": {"second_solver": "lsoda", "loss": _solver_difference(runs[0])},
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


def _solver_difference(run: Run) -> float:
    """Largest difference in loss between the run and the same flow by a second solver, LSODA."""
    record = AtTimes(at=tuple(run.t[1:].tolist()))
    law, until = reading(run).law, float(run.t[-1])
    again = ended(evolve(law, run.at(0), GradientFlow(method="lsoda"), until=until, record=record, progress=False))
    return float(np.abs(head_curves(again).loss - head_curves(run).loss).max())


def clocks(progress: Progress, runs: tuple[tuple[str, str, dict[str, Any]], ...] = CLOCKS) -> Numbers:
    """The model and the flow from the same logits on one clock, and where the model leaves the flow [ISA:clock]."""
    found = []
    for label, preset, changes in progress.each(runs, "clocks", "runs"):
        run = ended(run_study("incremental", preset, progress=False, **changes), f"the run of {label}")
        model, make, promise = _model_curve(run), companions(run).flow, clock(run)
        if make is None or promise is None:
            raise StagescopeError(f"the run of {label} has no flow to compare with")
        flow = make(2 * float(run.time[-1]))
        left = departure(model, flow)
        pairs = zip(model.times, flow.times, strict=True)
        found.append(
            {
                "label": label,
                "regime": promise.sentence,
                "promised": promise.holds,
                "tolerance": promise.tolerance,
                "model": _line(model, float(run.time[-1])),
                "flow": _line(flow, float(run.time[-1])),
                "times": {"model": model.times, "flow": flow.times},
                "ratios": [None if mine is None or its is None else round(mine / its, 4) for mine, its in pairs],
                "departure": left,
            }
        )
    return {"panels": found}


def _model_curve(run: Run) -> Curve:
    if isinstance(reading(run).law, RegressionSampled):
        curves = head_curves(run)
        return Curve(run.time, curves.loss, curves.forms.levels)
    curves = lag_curves(run)
    return Curve(run.time, curves.excess, curves.steps)


def _line(curve: Curve, end: float) -> Numbers:
    """Positions on the ladder up to a time, thinned to about 400 for drawing."""
    kept = np.flatnonzero((curve.time > 0) & (curve.time <= end))
    kept = kept[:: max(1, len(kept) // 400)]
    return {"t": rounded(curve.time[kept], 4), "rung": rounded(rungs(curve)[kept])}


def escapes(
    progress: Progress,
    settings: tuple[tuple[int, float, int], ...] = ((3, 1.7, 10), (6, 1.7, 10), (3, 1.3, 10), (4, 2.0, 6)),
    sigmas: tuple[float, ...] = (1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11),
) -> Numbers:
    """t_2 against the initial noise, with the law of the closed form and with WKB from one noise [ISA:escape] [ISA:wkb].

    `settings` are heads H, ratio m of the gains and positions N.
    """
    every = [(name, *setting) for name in LAWS for setting in settings]
    found = [_escape(*each, np.array(sigmas)) for each in progress.each(every, "escapes", "settings")]
    return {"sigmas": list(sigmas), "panels": found}


def _escape(name: str, heads: int, ratio: float, positions: int, sigmas: np.ndarray) -> Numbers:
    model = RegressionHeads(positions=positions, gains=(ratio**2, ratio, 1.0), heads=heads)
    until = 4000.0 if name == "exact" else 800.0
    equal = _flow(name, model.symmetric(), 0.0, until)
    forms, times = equal.forms, []
    for sigma in sigmas:
        curves = _flow(name, model, sigma, until)
        times.append(transitions(curves.time, curves.loss, forms.levels)[1])
    if None in times:
        raise StagescopeError(f"the {name} flow did not leave plateau 1 by t = {until:g}")
    when = np.array(times, dtype=float)
    predicted = wkb_times(equal.time, forms.rate(equal.mass[:, 0, 1]), (sigmas[0], when[0]), sigmas)
    slope = float(np.polyfit(np.log(1 / sigmas), np.sqrt(when), 1)[0])
    return {
        "law": name,
        "heads": heads,
        "ratio": ratio,
        "positions": positions,
        "t2": rounded(when, 4),
        "wkb": rounded(predicted, 4),
        "slope": round(slope, 4),
        "form": round(forms.escape_slope, 4),
        "wkb_miss": round(float(np.abs(predicted / when - 1).max()), 4),
    }


def _flow(name: str, model: RegressionHeads, sigma: float, until: float) -> HeadCurves:
    record = LogSpaced(frames=2000, first=1e-2)
    law = LAWS[name](model=model)
    return head_curves(ended(evolve(law, model.init(0, sigma), GradientFlow(), until=until, record=record, progress=False)))


ENCODINGS = ("one-hot", "learned", "sinusoidal", "rotary", "relative")
SEEDS = 6
"""Of the initial parameters and the sequences. The least and the largest of six hold the median with 97 % (1 - 2/2^6)."""
TIMES = ("t1", "t2", "t3")
SETTINGS: dict[str, Any] = {
    "model": "transformer",
    "width": 60,
    "mlp": 0,
    "dropout": 0.0,
    "rate_values": 0.003,
    "optimizer": "adam",
    "clip": 1.0,
    "fresh": True,
    "batch": 200,
    "steps": 1500,
    "frames": 120,
    "sequences": 3000,
    "watched": 500,
}
"""Besides: 20 tokens, spans 2 2 2, ratio 1.7, scale 5, ten targets, as in the preset `ladder`; new sequences at every step."""


def encodings(progress: Progress) -> Numbers:
    """Stages, times and verdicts with each encoding."""
    wanted = [(encoding, seed) for encoding in ENCODINGS for seed in range(SEEDS)]
    progress.begin("encodings", len(wanted), "runs")
    found: dict[tuple[str, int], Numbers] = {}
    for number, panel in results(_one, wanted, WORKERS):
        found[wanted[number]] = panel
        progress.update(len(found))
    panels = [[found[encoding, seed] for seed in range(SEEDS)] for encoding in ENCODINGS]
    return {"settings": SETTINGS, "panels": panels, "times": {drawn[0]["encoding"]: times(drawn) for drawn in panels}}


def times(drawn: list[Numbers]) -> Numbers:
    """Of each transition: its steps over seeds, their median, and an interval for the median of all seeds; None: not reached.

    The interval goes from the least to the largest. A run that ends before a transition counts as later than all others.
    """
    found = {}
    for name in TIMES:
        steps = sorted(np.inf if panel["events"].get(name) is None else panel["events"][name] for panel in drawn)
        middle = (steps[(len(steps) - 1) // 2] + steps[len(steps) // 2]) / 2
        kept = [float(round(step, 1)) if np.isfinite(step) else None for step in (*steps, middle)]
        found[name] = {
            "steps": kept[:-1],
            "median": kept[-1],
            "interval": [kept[0], kept[-2]],
            "coverage": 1 - 2 / 2 ** len(steps),
        }
    return found


def _one(which: tuple[str, int]) -> Numbers:
    encoding, seed = which
    run = run_study("incremental", progress=False, seed=seed, places=encoding, **SETTINGS)
    run = ended(run, f"the run with {encoding} positions and seed {seed}")
    curves, seen = lag_curves(run), stages(run)
    return {
        "encoding": encoding,
        "seed": seed,
        "levels": rounded(curves.steps),
        "step": curves.time.astype(int).tolist(),
        "excess": rounded(curves.excess),
        "agreement": rounded(curves.agreement),
        "lags": rounded(by_lag(curves)[-1], 4),
        "groups": [list(group) for group in curves.law.process.groups],
        "events": seen.events,
        "stages": seen.json()["stages"],
        "verdicts": {row.tag: {"verdict": row.verdict, "reason": row.reason} for row in check(run)},
    }


RULES = ("oracle", "held-out", "adaptive", "end")
CURVES = ("step", "training", "held", "validation")
SHOWN_RIDGE = f"{RIDGES[1]:g}"


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
    return {"settings": settings, **parts, "measured": value("early-stopping")}


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
