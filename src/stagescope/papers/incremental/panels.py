"""One run of the paper measured as its figures plot it: a trial says what is run, a panel holds the numbers."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.core.caches import cache_folder, read_entry, write_entry
from stagescope.core.errors import InputError
from stagescope.core.progress import Progress
from stagescope.core.spec import digest
from stagescope.core.threads import results
from stagescope.detect.events import first_crossing
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.observables import LagCurves, lag_curves
from stagescope.papers.incremental.students import ngram_law
from stagescope.processes.strategies import Strategies
from stagescope.readings.published import published
from stagescope.readings.rebuild import ended, rebuilt
from stagescope.readings.registry import run_study
from stagescope.runs.run import Run

REFERENCE = published("stagescope.papers.incremental")
Panel = dict[str, Any]
FILE = Path("reference") / "incremental_features_seed0.npz"
"""The authors' features of seed 0, farthest span first, in the folder STAGESCOPE_DATA; they are not part of this package."""
WORKERS = min(2, os.cpu_count() or 1)
VERSION = 1
"""Of what a panel holds: raise it when a panel of the same trial changes, so that those in the cache are made again."""


def value(name: str) -> Any:
    """A reference number, or a list or table of them."""
    return REFERENCE[name].value


def by_step(name: str) -> dict[int, Any]:
    """The values of a published curve by step."""
    return numbered(value(name))


def numbered(curve: dict[str, Any]) -> dict[int, Any]:
    return {int(step): number for step, number in curve.items()}


@dataclass(frozen=True)
class Trial:
    """One run of a figure: a preset with changes, recorded every `every` steps.

    `levels`: fit the classes, too. `compared`: number of sequences for the divergences; the error is 1 to 2 % at 500. `maps`:
    steps at which the attention of every target is kept. `ngrams`: steps of the learned n-grams that the student is compared
    with, 0 for none. `reference`: use the authors' features where they are at hand.
    """

    label: str
    preset: str
    steps: int
    every: int = 10
    changes: tuple[tuple[str, Any], ...] = ()
    levels: bool = False
    compared: int = LIMITS.compared
    maps: tuple[int, ...] = ()
    ngrams: int = 0
    reference: bool = True
    seed: int = 0

    def options(self) -> dict[str, Any]:
        """Options of the study."""
        options = {**dict(self.changes), "steps": self.steps, "record": "uniform", "frames": self.steps // self.every + 1}
        path = reference_features() if self.reference else None
        return options if path is None else {**options, "features": path, "feature_order": "farthest-first"}


def trial(label: str, preset: str, steps: int, every: int = 10, **more: Any) -> Trial:
    """A trial; what is no field of it is an option of the study."""
    fields = {name: more.pop(name) for name in ("levels", "compared", "maps", "ngrams", "seed") if name in more}
    return Trial(label, preset, steps, every, tuple(sorted(more.items())), **fields)


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


def panels(trials: tuple[Trial, ...], progress: Progress) -> list[Panel]:
    """Measurements of each trial, from the user's cache or made in two processes; the longest runs start first."""
    panel_by_trial = {item: panel for item in dict.fromkeys(trials) if (panel := cached(item)) is not None}
    uncached = sorted({item for item in trials if item not in panel_by_trial}, key=lambda item: (-item.steps, item.label))
    progress.begin("runs", len(uncached), "runs")
    for done, (number, panel) in enumerate(results(measured, uncached, WORKERS), start=1):
        panel_by_trial[uncached[number]] = panel
        progress.update(done)
    return [panel_by_trial[item] for item in trials]


def _entry(item: Trial) -> Path | None:
    folder, path = cache_folder("panels"), reference_features() if item.reference else None
    features = digest({"bytes": path.read_bytes().hex()}) if path else None
    made_of = {"trial": json.loads(json.dumps(asdict(item))), "features": features, "version": VERSION}
    return None if folder is None else folder / f"{digest(made_of)}.sealed"


def cached(item: Trial) -> Panel | None:
    """The panel of a trial that was measured before."""
    path = _entry(item)
    body = None if path is None else read_entry(path)
    return None if body is None else json.loads(body)


def measured(item: Trial) -> Panel:
    """Run a trial and measure it; the panel is kept in the user's cache."""
    run = run_study("incremental", item.preset, seed=item.seed, progress=False, **item.options())
    return keep(item, panel_of(item, ended(run, f"the run of {item.label}")))


def keep(item: Trial, panel: Panel) -> Panel:
    """The panel as it is read again."""
    body = json.dumps(panel)
    if (path := _entry(item)) is not None:
        write_entry(path, body.encode())
    return json.loads(body)


def panel_of(item: Trial, run: Run) -> Panel:
    """A run measured over its steps: loss, divergences, attention [ISA:truncated] [ISA:levels] [ISA:mass] [ISA:ngram]."""
    curves = lag_curves(run, item.compared)
    sequences = 20000  # sequences for a Bayes loss without fitted levels: its error is about .003
    bayes = curves.levels.bayes if item.levels else curves.law.process.floor(curves.law.model.targets, sequences=sequences)
    frames = range(curves.frames)
    panel: Panel = {
        "label": item.label,
        "preset": item.preset,
        "options": dict(item.changes) | {"steps": item.steps, "seed": item.seed},
        "comparable": item.reference and reference_features() is not None,
        "groups": [list(group) for group in curves.law.process.groups],
        "context": curves.law.model.context,
        "bayes": round(bayes, 5),
        "step": curves.time.astype(int).tolist(),
        "excess": rounded(curves.excess),
        "loss": rounded(curves.excess + bayes),
        "kl_teachers": rounded([curves.truncated_divergences(frame)[1:] for frame in frames]),
        "mass": rounded(curves.mass),
        # of each head on each lag 1, 2, .. that all targets see, mean over targets and contexts
        "lags": rounded(np.stack([curves.lag_attention(lag) for lag in range(1, curves.law.model.context + 1)], axis=2), 4),
        # of each head (H, targets, positions), mean over contexts
        "maps": {str(step): rounded(curves.attention[curves.frame(step)], 3) for step in item.maps if step <= curves.time[-1]},
    }
    if item.levels:
        panel["levels"] = rounded(curves.levels.losses)
        panel["kl_classes"] = rounded([curves.divergences(frame)[1:] for frame in frames])
    if item.ngrams:
        laws = learned_laws(item, curves)
        panel["kl_learned"] = rounded([laws.divergences(curves.logs(frame)) for frame in frames])
    return panel


def learned_laws(item: Trial, curves: LagCurves) -> Strategies:
    """What learned n-grams predict of the contexts, nearest span first, and last the true law [ISA:ngram].

    They are trained as the student, on the same sequences, but without clipping, as in the authors' code.
    """
    process, laws = curves.law.process, {}
    for spans in range(1, len(process.groups)):
        options = item.options() | {"ngram": spans, "clip": None, "steps": item.ngrams, "frames": 3}
        run = run_study("incremental", item.preset, seed=item.seed, progress=False, **options)
        loss: Any = rebuilt(ended(run, f"the n-gram of {spans} spans").spec["field"])
        laws[f"{loss.model.context} lags"] = ngram_law(loss, run.at(-1), curves.contexts)
    return Strategies({**laws, "teacher": process.predictive(curves.contexts, curves.law.model.context)})


def rounded(values: Any, digits: int = 5) -> Any:
    return np.round(np.asarray(values, dtype=float), digits).tolist()


def at(panel: Panel, name: str, step: float) -> np.ndarray:
    """A curve of a panel at a step, interpolated."""
    values = np.asarray(panel[name], dtype=float)
    flat = values.reshape(len(values), -1)
    mixed = [np.interp(step, panel["step"], column) for column in flat.T]
    return np.array(mixed).reshape(values.shape[1:])


def at_published(panel: Panel, name: str, step: float) -> np.ndarray:
    """A curve at a published step s: the authors train, validate, log and then count, so that it is after s + 1 updates."""
    return at(panel, name, step + 1)


def crossing(panel: Panel, name: str, level: float) -> float | None:
    """The step at which a curve first falls below a level; None if it never does."""
    return first_crossing(np.asarray(panel["step"], dtype=float), np.asarray(panel[name]), level, rising=False)
