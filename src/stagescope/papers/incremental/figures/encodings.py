"""Numbers of the figure that compares position encodings: one task, one small transformer, three encodings."""

from typing import Any

from stagescope.papers.incremental.figures.runs import WORKERS, by_lag, rounded
from stagescope.papers.incremental.observables import lag_curves
from stagescope.papers.reading import check, stages
from stagescope.papers.rebuild import ended
from stagescope.papers.registry import run_study
from stagescope.progress import Progress
from stagescope.views.figure import Numbers
from stagescope.workers import results

ENCODINGS = ("one-hot", "learned", "sinusoidal")
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
    progress.begin("encodings", len(ENCODINGS), "runs")
    found: dict[int, Numbers] = {}
    for number, panel in results(_one, ENCODINGS, WORKERS):
        found[number] = panel
        progress.update(len(found))
    return {"settings": SETTINGS, "panels": [found[number] for number in range(len(ENCODINGS))]}


def _one(encoding: str) -> Numbers:
    run = ended(run_study("incremental", progress=False, places=encoding, **SETTINGS), f"the run with {encoding} positions")
    curves, seen = lag_curves(run), stages(run)
    return {
        "encoding": encoding,
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
