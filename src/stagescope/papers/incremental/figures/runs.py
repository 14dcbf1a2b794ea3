"""Runs for the figures of incremental learning (arXiv 2602.19143), and what is measured on each.

Figures that show the same run share it: its measurements stay in memory as a plain table, which can be sent between processes
and written as JSON.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.detect.events import first_crossing
from stagescope.detect.levels import transitions
from stagescope.errors import InputError
from stagescope.papers.incremental.observables import LagCurves, lag_curves
from stagescope.papers.rebuild import ended
from stagescope.papers.registry import run_study
from stagescope.progress import Progress
from stagescope.workers import results

Panel = dict[str, Any]
FILE = Path("reference") / "incremental_features_seed0.npz"
"""The authors' features of seed 0, farthest span first, in the folder STAGESCOPE_DATA; they are not part of this package."""
NOT_COMPARABLE = "random features, not those of the paper: not comparable"
WORKERS = min(2, os.cpu_count() or 1)


@dataclass(frozen=True)
class Trial:
    """One run of a figure: a preset with changes, recorded every `every` steps.

    `levels`: fit the classes, too. `compared`: number of sequences for the divergences; the error is 1 to 2 % at 500.
    `reference`: use the authors' features where they are at hand.
    """

    label: str
    preset: str
    steps: int
    every: int = 10
    changes: tuple[tuple[str, Any], ...] = ()
    levels: bool = False
    compared: int = 500
    reference: bool = True
    seed: int = 0

    def options(self) -> dict[str, Any]:
        """Options of the study."""
        found = {**dict(self.changes), "steps": self.steps, "record": "uniform", "frames": self.steps // self.every + 1}
        path = reference_features() if self.reference else None
        return found if path is None else {**found, "features": path, "feature_order": "farthest-first"}


def trial(
    label: str, preset: str, steps: int, every: int = 10, *, levels: bool = False, compared: int = 500, **changes: Any
) -> Trial:
    return Trial(label, preset, steps, every, tuple(sorted(changes.items())), levels, compared)


def reference_features() -> Path | None:
    """The file with the features of the published curves; None where STAGESCOPE_DATA is not set."""
    folder = os.environ.get("STAGESCOPE_DATA")
    if not folder:
        return None
    path = Path(folder) / FILE
    if not path.is_file():
        way = "put the file there, or unset STAGESCOPE_DATA to use random features, whose curves are not comparable"
        raise InputError(f"STAGESCOPE_DATA is {folder}, but {path} does not exist; {way}")
    return path


_MEASURED: dict[tuple[Trial, Path | None], Panel] = {}


def panels(trials: tuple[Trial, ...], progress: Progress) -> list[Panel]:
    """Measurements of each trial, in two processes where there are two cores; the longest runs start first."""
    path = reference_features()
    missing = sorted({item for item in trials if (item, path) not in _MEASURED}, key=lambda item: (-item.steps, item.label))
    progress.begin("runs", len(missing), "runs")
    for done, (number, found) in enumerate(results(measured, missing, WORKERS), start=1):
        _MEASURED[missing[number], path] = found
        progress.update(done)
    return [_MEASURED[item, path] for item in trials]


def measured(item: Trial) -> Panel:
    """Run a trial and measure it."""
    run = run_study("incremental", item.preset, seed=item.seed, progress=False, **item.options())
    return panel(item, lag_curves(ended(run, f"the run of {item.label}"), item.compared))


def panel(item: Trial, curves: LagCurves) -> Panel:
    """Curves of a run over its steps: loss, divergences, attention [ISA:truncated] [ISA:levels] [ISA:mass]."""
    many = 20000  # sequences for a Bayes loss without fitted levels: its error is about .003
    bayes = curves.levels.bayes if item.levels else curves.law.process.floor(curves.law.model.targets, sequences=many)
    found: Panel = {
        "label": item.label,
        "preset": item.preset,
        "options": dict(item.changes) | {"steps": item.steps, "seed": item.seed},
        "comparable": item.reference and reference_features() is not None,
        "groups": [list(group) for group in curves.law.process.groups],
        "bayes": round(bayes, 5),
        "step": curves.time.astype(int).tolist(),
        "excess": rounded(curves.excess),
        "loss": rounded(curves.excess + bayes),
        "kl_teachers": rounded([curves.truncated_divergences(frame)[1:] for frame in range(curves.frames)]),
        "agreement": rounded(curves.agreement),
        "mass": rounded(curves.mass),
        "lags": rounded(by_lag(curves), 4),
    }
    if item.levels:
        found["levels"] = rounded(curves.levels.losses)
        found["kl_classes"] = rounded([curves.divergences(frame)[1:] for frame in range(curves.frames)])
        found["transitions"] = list(transitions(curves.time, curves.excess, curves.steps))
    return found


def by_lag(curves: LagCurves) -> np.ndarray:
    """Attention of each head on each lag 1, 2, .., mean over targets and contexts (frames, H, lags); lags all targets see."""
    return np.stack([curves.lag_attention(lag) for lag in range(1, curves.law.model.context + 1)], axis=2)


def rounded(values: Any, digits: int = 5) -> Any:
    return np.round(np.asarray(values, dtype=float), digits).tolist()


def at(found: Panel, name: str, step: float) -> np.ndarray:
    """A curve of a panel at a step, interpolated."""
    values = np.asarray(found[name], dtype=float)
    flat = values.reshape(len(values), -1)
    mixed = [np.interp(step, found["step"], column) for column in flat.T]
    return np.array(mixed).reshape(values.shape[1:])


def crossing(found: Panel, name: str, level: float) -> float | None:
    """The step at which a curve first falls below a level; None if it never does."""
    return first_crossing(np.asarray(found["step"], dtype=float), np.asarray(found[name]), level, rising=False)
