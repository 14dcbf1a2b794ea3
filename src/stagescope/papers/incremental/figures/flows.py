"""Numbers of the figures about the regression flow: the paper's figure 10, the clock, and the escape from plateau 1."""

from typing import Any

import numpy as np

from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import AtTimes, LogSpaced
from stagescope.errors import StagescopeError
from stagescope.papers.incremental.claims.clock import departure, rungs
from stagescope.papers.incremental.companions import beside, clock
from stagescope.papers.incremental.evidence import Curve
from stagescope.papers.incremental.figures import targets as published
from stagescope.papers.incremental.figures.runs import rounded
from stagescope.papers.incremental.forms import RegressionForms, wkb_times
from stagescope.papers.incremental.observables import lag_curves
from stagescope.papers.incremental.regression.loss import MirrorFlow, RegressionLoss
from stagescope.papers.incremental.regression.model import RegressionHeads
from stagescope.papers.incremental.regression.observables import HeadCurves, head_curves
from stagescope.papers.incremental.regression.sampled import RegressionSampled
from stagescope.papers.incremental.transitions import plateaus, transitions
from stagescope.papers.reading import reading
from stagescope.papers.rebuild import ended
from stagescope.papers.registry import run_study
from stagescope.progress import Progress
from stagescope.runs.run import Run
from stagescope.views.figure import Numbers

DRAWS, UNTIL = 5, 600.0
SECOND_SOLVER = "lsoda"
CLOCKS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("regression transformer, batches of 128", "regression-transformer", {}),
    ("cross-entropy, scale .3", "gd-ladder", {"scale": 0.3, "rate_values": 20.0, "rate_attention": 20.0, "steps": 2500}),
    ("cross-entropy, scale 1", "gd-ladder", {}),
)
SIGMAS = np.array([1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11])
ESCAPES = ((3, 1.7, 10), (6, 1.7, 10), (3, 1.3, 10), (4, 2.0, 6))
"""Heads H, ratio m of the gains, positions N."""
FRAMES, SHOWN = 2000, 400
LAWS = {"exact": RegressionLoss, "mirror": MirrorFlow}


def flow(progress: Progress) -> Numbers:
    """Figure 10: N = 40, three heads, gains m^2, m, 1, noise 1e-6 on the attention weights, mirror law [ISA:mirror]."""
    progress.begin("flows", DRAWS + 1, "flows")
    found, curves = [], None
    for seed in range(DRAWS):
        run = ended(run_study("incremental", "ode-mirror", seed=seed, until=UNTIL, progress=False))
        curves = head_curves(run) if seed == 0 else curves
        found.append(_drawn(head_curves(run), seed))
        progress.update(seed + 1)
    error = _error(run_study("incremental", "ode-mirror", seed=0, until=UNTIL, progress=False))
    progress.update(DRAWS + 1)
    drops = np.array([panel["drops"] for panel in found], dtype=float)
    return {
        "panels": found,
        "levels": rounded(_forms(head_curves_model(curves), True).levels),
        "drops": rounded([drops.min(axis=0), drops.max(axis=0)], 2),
        "published_drops": published.FLOW_DROPS,
        "published_levels": published.FLOW_LEVELS,
        "mean_abs_difference": round(_from_levels(found), 5),
        "solver_difference": {"beside": SECOND_SOLVER, "loss": error},
    }


def head_curves_model(curves: HeadCurves | None) -> RegressionHeads:
    if curves is None or not isinstance(curves.model, RegressionHeads):
        raise StagescopeError("no flow was run")
    return curves.model


def _drawn(curves: HeadCurves, seed: int) -> Numbers:
    levels = _forms(head_curves_model(curves), True).levels
    drops = transitions(curves.time, curves.loss, levels)
    if None in drops:
        raise StagescopeError(f"draw {seed} of the flow reached only {sum(t is not None for t in drops)} of {len(drops)} drops")
    rests = [None if item is None else round(item.loss, 5) for item in plateaus(curves.time, curves.loss, levels)]
    mass = rounded(curves.mass)
    return {
        "seed": seed,
        "t": rounded(curves.time, 4),
        "loss": rounded(curves.loss, 6),
        "mass": mass,
        "drops": drops,
        "plateaus": rests,
    }


def _from_levels(found: list[Numbers]) -> float:
    pairs = [(mine, level) for panel in found for mine, level in zip(panel["plateaus"], published.FLOW_LEVELS, strict=True)]
    return float(np.mean([abs(mine - level) for mine, level in pairs if mine is not None]))


def _error(run: Run) -> float:
    """Largest difference in loss between the adaptive solution and that of a second solver."""
    curves = head_curves(run)
    law = MirrorFlow(model=head_curves_model(curves))
    record = AtTimes(at=tuple(run.t[1:].tolist()))
    again = evolve(law, run.at(0), GradientFlow(method=SECOND_SOLVER), until=float(run.t[-1]), record=record, progress=False)
    return float(np.abs(head_curves(ended(again)).loss - curves.loss).max())


def clocks(progress: Progress) -> Numbers:
    """The model and the flow from the same logits on one clock, and where the model leaves the flow [ISA:clock]."""
    progress.begin("clocks", len(CLOCKS), "runs")
    found = []
    for done, (label, preset, changes) in enumerate(CLOCKS, start=1):
        run = ended(run_study("incremental", preset, progress=False, **changes))
        model, make, promise = _model_curve(run), beside(run).flow, clock(run)
        if make is None or promise is None:
            raise StagescopeError(f"there is no flow beside the run {label}")
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
        progress.update(done)
    return {"panels": found}


def _model_curve(run: Run) -> Curve:
    if isinstance(reading(run).law, RegressionSampled):
        curves = head_curves(run)
        squares = np.square(curves.model.gains)
        return Curve(run.time, curves.loss, np.append(np.cumsum(squares[::-1])[::-1], 0.0) / 2)
    curves = lag_curves(run)
    return Curve(run.time, curves.excess, curves.steps)


def _line(curve: Curve, end: float) -> Numbers:
    """Places on the ladder up to a time, thinned for drawing."""
    kept = np.flatnonzero((curve.time > 0) & (curve.time <= end))
    kept = kept[:: max(1, len(kept) // SHOWN)]
    return {"t": rounded(curve.time[kept], 4), "rung": rounded(rungs(curve)[kept])}


def escapes(progress: Progress) -> Numbers:
    """t_2 against the initial noise, with the law of the closed form and with WKB from one noise [ISA:escape] [ISA:wkb]."""
    progress.begin("escapes", len(LAWS) * len(ESCAPES), "settings")
    found = []
    for name in LAWS:
        for heads, ratio, positions in ESCAPES:
            found.append(_escape(name, RegressionHeads(positions=positions, gains=(ratio**2, ratio, 1.0), heads=heads), ratio))
            progress.update(len(found))
    return {"sigmas": SIGMAS.tolist(), "panels": found}


def _escape(name: str, model: RegressionHeads, ratio: float) -> Numbers:
    mirror, until = name == "mirror", 4000.0 if name == "exact" else 800.0
    forms = _forms(model, mirror)
    equal = _flow(name, model.symmetric(), 0.0, until)
    times = [transitions(*_pair(_flow(name, model, sigma, until)), forms.levels)[1] for sigma in SIGMAS]
    if None in times:
        raise StagescopeError(f"the {name} flow did not leave plateau 1 by t = {until:g}")
    when = np.array(times, dtype=float)
    foretold = wkb_times(equal.time, forms.rate(equal.mass[:, 0, 1]), (SIGMAS[0], when[0]), SIGMAS)
    slope = float(np.polyfit(np.log(1 / SIGMAS), np.sqrt(when), 1)[0])
    return {
        "law": name,
        "heads": model.heads,
        "ratio": ratio,
        "positions": model.positions,
        "t2": rounded(when, 4),
        "wkb": rounded(foretold, 4),
        "slope": round(slope, 4),
        "form": round(forms.escape_slope, 4),
        "wkb_miss": round(float(np.abs(foretold / when - 1).max()), 4),
    }


def _pair(curves: HeadCurves) -> tuple[np.ndarray, np.ndarray]:
    return curves.time, curves.loss


def _flow(name: str, model: RegressionHeads, sigma: float, until: float) -> HeadCurves:
    record = LogSpaced(frames=FRAMES, first=1e-2)
    return head_curves(
        ended(evolve(LAWS[name](model=model), model.init(0, sigma), GradientFlow(), until=until, record=record, progress=False))
    )


def _forms(model: RegressionHeads, mirror: bool) -> RegressionForms:
    return RegressionForms(model.gains, model.positions, model.heads * model.copies, mirror)
