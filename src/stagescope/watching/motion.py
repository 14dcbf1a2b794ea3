"""How the attention of a watched model moves: when, how far, and whether its heads go the same way. No torch, no paper."""

from dataclasses import dataclass

import numpy as np

from stagescope.errors import InputError
from stagescope.runs.run import Run


@dataclass(frozen=True)
class Together:
    """Mean cosine between the moves of the heads of one layer, from the first record to `step`.

    `error` is half of the 95 % interval that the sketch leaves.
    """

    layer: int
    step: float
    cosine: float
    error: float


def moves(run: Run) -> np.ndarray:
    """The move of each head's pattern from the first record, sketched (record, layer, head, sketch).

    Its length is the root mean square distance of rows: 0 where a head attends as at first, at most sqrt(2).
    """
    if "sketch" not in run.series:
        raise InputError("no sketch of the patterns was recorded, so nothing is known of how far they moved")
    sketch = np.asarray(run.series["sketch"], dtype=float)
    return sketch - sketch[:1]


def first_above(values: np.ndarray, bar: float) -> int | None:
    """The first record from which a curve stays above a bar for three records, or to its end; None where there is none."""
    above = np.asarray(values) > bar
    for place in np.flatnonzero(above):
        if above[place : place + 3].all():
            return int(place)
    return None


def first_layer(run: Run, away: float) -> tuple[int, int] | None:
    """Layer and record where the heads of a layer first are so far from their start, in the mean; None where none is."""
    length = np.linalg.norm(moves(run), axis=-1)
    found = [
        (first_above(np.nanmean(length[:, layer], axis=1), away), layer)
        for layer in range(length.shape[1])
        if _several(run, layer)
    ]
    reached = [(frame, layer) for frame, layer in found if frame is not None]
    return None if not reached else (min(reached)[1], min(reached)[0])


def _several(run: Run, layer: int) -> bool:
    return int(np.isfinite(np.asarray(run.series["entropy"], dtype=float)[0, layer]).sum()) > 1


def together(run: Run, layer: int, frame: int) -> Together:
    """Whether the heads of a layer went the same way up to a record."""
    found = moves(run)[frame, layer]
    found = found[np.isfinite(found).all(axis=-1)]
    unit = found / np.maximum(np.linalg.norm(found, axis=-1, keepdims=True), 1e-12)
    pairs = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
    spread = 1.96 * float(np.mean(1 - pairs**2)) / np.sqrt(found.shape[-1])  # of the cosine of two sketches; pairs share heads
    return Together(layer, float(run.time[frame]), float(np.mean(pairs)), spread)
