"""Small runs of every kind that a report knows, made in a second or two."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import stagescope as ss
from stagescope.runs.run import Arrays, Run

SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "token": ("focus-dilution", {"until": 120.0, "frames": 60}),
    "text": (
        "text-focus",
        {"vocab": 60, "width": 4, "window": 16, "steps": 60, "batch": 16, "watched": 64, "frames": 20, "probe": ("list", "the")},
    ),
    "topics": ("text-snap", {"vocab": 300, "topics": 4, "steps": 100}),
    "text-transformer": (
        "text-snap",
        {"model": "transformer", "vocab": 100, "width": 8, "window": 8, "batch": 4, "steps": 100},
    ),
    "text-heads": (
        "text-incremental",
        {"vocab": 30, "window": 4, "steps": 40, "batch": 256, "watched": 500, "frames": 12, "heads": 2},
    ),
    "pairwise": ("scan-snap", {"until": 50.0, "frames": 40, "num_common": 3, "num_unique": 4}),
    "pinv": ("scan-snap", {"until": 5.0, "frames": 20, "num_common": 1, "num_unique": 3, "decoder": "pinv"}),
    "heads": (
        "incremental",
        {"vocab": 4, "spans": (1, 1), "pad": 1, "targets": 2, "sequences": 40, "heads": 2, "steps": 30, "frames": 12},
    ),
    "content": (
        "incremental",
        {"model": "content", "vocab": 4, "spans": (1, 1), "targets": 2, "sequences": 40, "heads": 2, "steps": 10, "frames": 6},
    ),
    "transformer": (
        "incremental",
        {"model": "transformer", "vocab": 4, "spans": (1, 1), "targets": 2, "sequences": 40, "heads": 2, "width": 6, "mlp": 4}
        | {"steps": 6, "frames": 4},
    ),
    "regression": ("incremental", {"model": "regression", "positions": 6, "until": 60.0, "frames": 50, "init_scale": 1e-2}),
    "mirror": ("incremental", {"model": "mirror", "positions": 6, "until": 30.0, "frames": 30, "init_scale": 1e-2}),
}


@cache
def small(kind: str) -> Run:
    """The same one for every test of a process: nothing can change it."""
    study, options = SMALL[kind]
    return ss.run_study(study, seed=1, progress=False, **options)


def changed(run: Run, **arrays: np.ndarray) -> Run:
    """The same run with some arrays replaced."""
    parts = {name: {**getattr(run, name)} for name in ("params", "series")}
    for name, values in arrays.items():
        parts["params" if name in parts["params"] else "series"][name] = values
    return replace(run, params=Arrays.of(parts["params"]), series=Arrays.of(parts["series"]))


def broken(run: Run, first: int) -> Run:
    """A run whose numbers are not finite from a frame on, and which says so."""
    arrays = {}
    for name, values in {**run.params, **run.series}.items():
        if name not in ("t", "step"):
            arrays[name] = np.array(values, dtype=float)
            arrays[name][first:] = np.nan
    return replace(changed(run, **arrays), status="diverged", reason="the loss is not finite")
