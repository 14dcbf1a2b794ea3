"""Numbers of the figure that compares position encodings: one task, one small transformer, five encodings, six seeds each."""

from typing import Any

import numpy as np

from stagescope.papers.answers import check, stages
from stagescope.papers.incremental.figures.runs import WORKERS, by_lag, rounded
from stagescope.papers.incremental.observables import lag_curves
from stagescope.papers.rebuild import ended
from stagescope.papers.registry import run_study
from stagescope.progress import Progress
from stagescope.views.figure import Numbers
from stagescope.workers import results

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
