"""Numbers of the figure of saddle paths: event times over the initial scale, far below where a flow can start."""

import numpy as np

from stagescope.papers.focus_dilution.figures.laws import lazy_loss
from stagescope.papers.focus_dilution.observables import token_curves
from stagescope.papers.focus_dilution.stages import passes
from stagescope.papers.predicting import saddle_path
from stagescope.papers.registry import run_study
from stagescope.progress import Progress
from stagescope.views.figure import Numbers, rounded

EVENTS = ("E1", "Q1", "E2", "Q2", "E3")
SCALES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-10, 1e-20, 1e-30, 1e-45, 1e-60)
FLOWS = {1e-2: 400.0, 1e-3: 450.0, 1e-4: 600.0, 1e-5: 800.0, 1e-6: 950.0}
"""Initial scales of flows, each followed to shortly after E3."""


def predicted(progress: Progress) -> Numbers:
    """Events of ref predicted from starts of 1e-3 to 1e-60, and those of flows [FD:predicted-times]."""
    problem = lazy_loss((0.5, 0.25, 0.15, 0.10), 0.6)
    progress.begin("saddle paths and flows", len(SCALES) + len(FLOWS), "starts")
    paths, flows = [], []
    for eps in SCALES:
        paths.append(saddle_path(problem, scale=eps))
        progress.update(len(paths))
    for eps, until in FLOWS.items():
        flows.append(_events(eps, until))
        progress.update(len(SCALES) + len(flows))
    times = {name: [path[name].t for path in paths] for name in EVENTS}
    halves = {name: [((path[name].high or 0.0) - (path[name].low or 0.0)) / 2 for path in paths] for name in EVENTS}
    ratios = {
        name: [flow[name] / times[name][SCALES.index(eps)] for eps, flow in zip(FLOWS, flows, strict=True) if eps in SCALES]
        for name in EVENTS
    }
    return {
        "eps": list(SCALES),
        "events": {name: rounded(np.array(when)) for name, when in times.items()},
        "half_widths": {name: rounded(np.array(half)) for name, half in halves.items()},
        "flow_eps": list(FLOWS),
        "flows": {name: rounded(np.array([flow[name] for flow in flows])) for name in EVENTS},
        "measured_over_predicted": {name: rounded(np.array(each)) for name, each in ratios.items()},
        "largest_difference": float(max(abs(ratio - 1) for each in ratios.values() for ratio in each)),
    }


def _events(eps: float, until: float) -> dict[str, float]:
    curves = token_curves(run_study("focus-dilution", init_scale=eps, until=until, frames=4000, progress=False))
    values = {"E": passes(curves.time, curves.embedding_values), "Q": passes(curves.time, curves.score_values)}
    return {name: values[name[0]][int(name[1]) - 1] or float("nan") for name in EVENTS}
