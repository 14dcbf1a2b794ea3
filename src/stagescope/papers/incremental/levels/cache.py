"""Fitted levels on disk: safetensors in the user's cache folder, under the digest of what they are levels of.

A cache may always fail: what cannot be read is computed, what cannot be written is not kept.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from stagescope.errors import StoreError
from stagescope.papers.incremental.process import LaggedChain
from stagescope.runs.files import private_cache, publish
from stagescope.spec import Spec, digest


def _file(process: LaggedChain, task: Spec) -> Path | None:
    """The matrices are part of the name: a seed alone would not notice that features are drawn differently now."""
    folder = private_cache("levels")
    matrices = hashlib.sha256(process.matrices.tobytes()).hexdigest()
    name = digest({"process": process.describe(), "matrices": matrices, "task": task})
    return None if folder is None else folder / f"{name}.safetensors"


def read_arrays(process: LaggedChain, task: Spec) -> dict[str, np.ndarray] | None:
    """Arrays that were written for this process and task, or None."""
    path = _file(process, task)
    try:
        return None if path is None else load(path.read_bytes())
    except (OSError, ValueError, KeyError, SafetensorError):
        return None


def write_arrays(process: LaggedChain, task: Spec, arrays: Mapping[str, np.ndarray]) -> None:
    """Keep the arrays; the file appears whole or not at all."""
    path = _file(process, task)
    if path is None:
        return
    try:
        publish(path, save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))
    except StoreError:
        return  # a full disk costs the next session a fit, not this one its answer
