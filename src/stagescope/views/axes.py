"""Which axes plots start with, and the scale by change: equal lengths for equal changes of attention.

The place of a frame is the length of the path that attention has gone so far, over its whole length: the sum of the distances
(square root of the sum of squares) between attention at neighbouring frames. A run without attention has the path of its
predictions, and one without either that of its parameters. A tenth of the scale is spread evenly over time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stagescope.runs.run import Run
from stagescope.views.curves import in_parts
from stagescope.views.view import Curves, Matrices, View


def log_time(time: np.ndarray) -> bool:
    """Whether half of the frames are before 15 % of the time: a linear axis would press them into its corner."""
    return len(time) > 3 and float(np.median(time)) < 0.15 * float(time[-1])


def log_values(views: Sequence[Curves]) -> bool:
    """Whether the largest value is more than 30 times the smallest, so that only a logarithmic axis shows the small ones."""
    if not any(view.log and view.curves for view in views):
        return False
    values = np.concatenate([curve.values for view in views for curve in view.curves])
    values = values[np.isfinite(values)]
    positive = values[values > 0]
    return len(positive) >= 0.5 * len(values) and is_wide(positive)


def is_wide(positive: np.ndarray) -> bool:
    """Whether the largest of some positive values is more than 30 times the smallest."""
    return bool(len(positive) and positive.max() > 30 * positive.min())


SOURCES = {"attention": ("attention", "patterns"), "predictions": ("predictions", "map")}
"""Slots of views that show attention or predictions; `attention-2` and so on belong to `attention`."""
EVEN = 0.1
"""Share of the scale that is spread evenly over time, so that a plateau, where nothing changes, is not one point."""


@dataclass(frozen=True)
class Change:
    """Where each frame lies on the scale by change, from 0 to 1, increasing; `of` says whose change it is."""

    of: str
    at: np.ndarray


def change_of(run: Run, views: Sequence[View]) -> Change | None:
    """The scale of a run, from what its views show; None where nothing is seen to change."""
    if run.frames < 2:
        return None
    for source, slots in SOURCES.items():
        matching = [view for view in views if isinstance(view, Matrices) and _named(view.slot, slots)]
        path = sum((_squares(view, run.time) for view in matching), np.zeros(run.frames - 1))
        if path.any():
            return _scale(source, np.sqrt(path), run.time)
    path = sum((_steps(run.params[name]) for name in run.params), np.zeros(run.frames - 1))
    return _scale("the parameters", np.sqrt(path), run.time) if path.any() else None


def _named(slot: str, slots: tuple[str, ...]) -> bool:
    name, _, number = slot.rpartition("-")
    return slot in slots or (name in slots and number.isdigit())


def _scale(source: str, lengths: np.ndarray, time: np.ndarray) -> Change:
    path = np.concatenate([[0.0], np.cumsum(lengths)])
    even = (time - time[0]) / (time[-1] - time[0])
    return Change(source, (1 - EVEN) * path / path[-1] + EVEN * even)


def _squares(view: Matrices, time: np.ndarray) -> np.ndarray:
    """Squared distances between all neighbouring frames; those between frames that a view leaves out share its distance."""
    if view.frames is None:
        return _steps(view.values)
    path = np.concatenate([[0.0], np.cumsum(np.sqrt(_steps(view.values)))])
    return np.diff(np.interp(time, time[view.frames], path)) ** 2


def _steps(values: np.ndarray) -> np.ndarray:
    """Squared distances between neighbouring frames; 0 where a frame has numbers that are not finite."""
    steps = []
    for part in in_parts(values, shared=1):
        with np.errstate(over="ignore", invalid="ignore"):
            moves = np.diff(np.asarray(part, dtype=float).reshape(len(part), -1), axis=0)
            squares = np.einsum("ij,ij->i", moves, moves)
        steps.append(np.where(np.isfinite(squares), squares, 0.0))
    return np.concatenate(steps)
