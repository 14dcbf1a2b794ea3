"""Fitted levels on disk: safetensors in the user's cache folder, under the digest of what they are levels of."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from stagescope.caches import cache_folder, read_entry, write_entry
from stagescope.papers.incremental.process import LaggedChain
from stagescope.spec import Spec, digest


def _file(process: LaggedChain, task: Spec) -> Path | None:
    """The matrices are part of the name: a seed alone would not notice that features are drawn differently now."""
    folder = cache_folder("levels")
    matrices = hashlib.sha256(process.matrices.tobytes()).hexdigest()
    name = digest({"process": process.describe(), "matrices": matrices, "task": task})
    return None if folder is None else folder / f"{name}.sealed"


def read_arrays(process: LaggedChain, task: Spec) -> dict[str, np.ndarray] | None:
    """Arrays that were written for this process and task, or None."""
    path = _file(process, task)
    data = None if path is None else read_entry(path)
    try:
        return None if data is None else load(data)
    except (ValueError, KeyError, SafetensorError):
        return None


def write_arrays(process: LaggedChain, task: Spec, arrays: Mapping[str, np.ndarray]) -> None:
    """Keep the arrays."""
    path = _file(process, task)
    if path is not None:
        write_entry(path, save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))
