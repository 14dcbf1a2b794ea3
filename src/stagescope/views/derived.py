"""What the views of a run show, as named arrays: attention, singular values, entropies and whatever else a paper derives."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from stagescope.errors import sentence
from stagescope.runs.export import Derived
from stagescope.runs.run import Run
from stagescope.views.view import Curves, Maker, Matrices, Points, View


def derived(run: Run, makers: Iterable[Maker]) -> tuple[tuple[Derived, ...], tuple[str, ...]]:
    """The arrays of all views but those that were recorded, and a sentence on each view that could not be made."""
    found: dict[str, Derived] = {}
    problems = []
    for make in makers:
        try:
            view = make()
        except Exception as error:  # code of a paper runs here; the other views stand
            problems.append(f"a view could not be made: {sentence(error)}")
            continue
        made = None if view is None else _without_recorded(run, _of(view))
        if made is not None:
            name = next(each for each in (made.name, *(f"{made.name} {k}" for k in range(2, 100))) if each not in found)
            found[name] = made if name == made.name else replace(made, name=name)
    return tuple(found.values()), tuple(problems)


def _of(view: View) -> Derived | None:
    if isinstance(view, Curves):
        values = np.stack([np.asarray(curve.values, dtype=float) for curve in view.curves], axis=1)
        return Derived(view.slot, view.title, values, ("curve",), (tuple(curve.name for curve in view.curves),), view.frames)
    if isinstance(view, Matrices):
        axes, labels = ("panel", view.row_axis, view.column_axis), (view.panels, view.rows, view.columns)
        values, first = (view.values[:, 0], 1) if len(view.panels) == 1 else (view.values, 0)
        return Derived(view.slot, view.title, values, axes[first:], labels[first:], view.frames)
    if isinstance(view, Points):
        return Derived(view.slot, view.title, view.values, ("point", "axis"), (view.labels, ("1", "2")), view.frames)
    return None


def _without_recorded(run: Run, made: Derived | None) -> Derived | None:
    """The curves that are no recorded series already; None where nothing is left, or where the whole is a recorded array."""
    if made is None or not made.values.size:
        return None
    if made.axes != ("curve",):
        wide = (run.params[name] for name in run.params), (values for values in run.series.values() if values.ndim > 1)
        return None if any(_same(array, made.values, made.frames) for arrays in wide for array in arrays) else made
    series = [values for values in run.series.values() if values.ndim == 1]
    kept = [i for i in range(made.size) if not any(_same(each, made.values[:, i], made.frames) for each in series)]
    names = tuple(made.labels[0][i] for i in kept)
    return replace(made, values=made.values[:, kept], labels=(names,)) if kept else None


def _same(recorded: np.ndarray, values: np.ndarray, frames: np.ndarray | None) -> bool:
    """Whether values are a recorded array, at the frames that were kept."""
    if recorded[:1].size != values[:1].size:
        return False
    chosen = recorded if frames is None else recorded[frames]
    return np.array_equal(chosen.reshape(values.shape), values, equal_nan=True)
