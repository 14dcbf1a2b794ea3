"""What any run has: loss, speed, other series, norms and singular values of its blocks, and the blocks where they are small.

`derived` gives what the views of a run show as named arrays.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from stagescope.core.errors import sentence
from stagescope.runs.export import Derived
from stagescope.runs.run import Run
from stagescope.views.curves import CELLS, MOST, NAMED, WORK, curves, in_parts, left_out, many_curves, shown
from stagescope.views.view import Curve, Curves, HasRun, Level, Maker, Matrices, Points, View

MOST_BLOCKS = 12
"""Blocks that are drawn one by one; a page with more would not be looked at."""
LARGEST_VALUES = 6


def loss_view(run: Run, levels: tuple[Level, ...] = (), about: str = "", more: tuple[Curve, ...] = ()) -> View | None:
    """The recorded loss, with what else is on its scale."""
    lines = [Curve("loss", np.asarray(run.series["loss"], dtype=float))] if "loss" in run.series else []
    lines += more
    if not lines:
        return None
    positive = all(np.all(curve.values[np.isfinite(curve.values)] > 0) for curve in lines)
    text = about or "The loss at every recorded frame."
    return curves("loss", "Loss", text, "loss", lines, levels=levels, log=positive)


def excess_view(excess: np.ndarray, above: str, levels: tuple[Level, ...] = (), frames: np.ndarray | None = None) -> View:
    """A loss above the least one that can be had, on a logarithmic axis."""
    about = f"How far the loss is above {above}. Plateaus show as steps on a logarithmic axis."
    steps = tuple(level for level in levels if level.value > 0)
    lines = [Curve("excess", excess)]
    return curves("excess", "Excess over the floor", about, "nats above the floor", lines, levels=steps, log=True, frames=frames)


def speed_view(run: Run) -> View | None:
    if "speed" not in run.series:
        return None
    about = f"Norm of d(parameters)/d{run.clock} along the field: small near critical points, where a run rests."
    speed = np.asarray(run.series["speed"], dtype=float)
    return curves("speed", "Speed of the parameters", about, "speed", [Curve("speed", speed)], log=True)


def norms_view(run: Run, more: str = "") -> View | None:
    """Frobenius norms of the blocks; `more` is what else there is to say of them."""
    names = tuple(run.params)
    if not names:
        return None
    lines = _norm_curves(run.params, names)
    about = "Square root of the sum of squares of each block of parameters." + left_out(len(names), what="blocks")
    return curves("norms", "Norms of the blocks", about + more, "norm", lines, log=True)


def _norm_curves(arrays: Mapping[str, np.ndarray], names: Sequence[str]) -> list[Curve]:
    return [Curve(name, norms(arrays[name]), faint=place >= NAMED) for place, name in enumerate(names[:MOST])]


def norms(block: np.ndarray) -> np.ndarray:
    """The norm of a block at each frame."""
    rows = (np.asarray(part, dtype=float).reshape(len(part), -1) for part in in_parts(block))
    return np.concatenate([np.linalg.norm(part, axis=1) for part in rows])


def values_view(run: Run, names: tuple[str, ...] | None = None) -> View | None:
    """The largest singular values of blocks that are matrices; a stack of matrices has those of each."""
    shapes = {name: run.params[name].shape[1:] for name in names or tuple(run.params)}
    matrices = [name for name, shape in shapes.items() if len(shape) in (2, 3) and min(shape[-2:]) > 1]
    selected = matrices[:MOST_BLOCKS]
    if not selected:
        return None
    work = max(float(np.prod(shapes[name])) * min(shapes[name][-2:]) for name in selected)
    thinned = shown(run, work, WORK)
    lines, longest = [], 0
    for name in selected:
        block_values = singular_values(thinned.run.params[name])
        parts = {name: block_values}
        if block_values.ndim > 2:  # each matrix of a stack, by the name of the axis they are stacked along
            word = _axis_word(name, run.axes.get(name, ()), 1, "part")
            parts = {f"{name} {word} {place + 1}, value": block_values[:, place] for place in range(block_values.shape[1])}
        for label, values in parts.items():
            lines += [Curve(f"{label} {k + 1}", values[:, k], name) for k in range(min(values.shape[1], LARGEST_VALUES))]
            longest = max(longest, values.shape[1])
    about = "Singular values, largest first: directions that open grow out of the noise one after another."
    if longest > LARGEST_VALUES:
        about += f" At most {LARGEST_VALUES} of each matrix are drawn, of up to {longest:,}."
    # Without the values that are zero but for rounding at every frame: they say nothing and would stretch the axis.
    tops = [float(np.max(curve.values, where=np.isfinite(curve.values), initial=0.0)) for curve in lines]
    above = [curve for curve, top in zip(lines, tops, strict=True) if top > 1e-12 * max(tops)] or lines
    if len(above) < len(lines):
        about += f" {len(lines) - len(above)} that are zero but for rounding are not."
    about += left_out(len(matrices), MOST_BLOCKS, "blocks") + left_out(len(above))
    order = sorted(range(len(above)), key=lambda i: int(above[i].name.rsplit(" ", 1)[1]))[:NAMED]
    lines = [replace(curve, faint=i not in order) for i, curve in enumerate(above)][:MOST]
    return curves("values", "Singular values", about, "singular value", lines, log=True, frames=thinned.frames)


def _axis_word(name: str, axes: tuple[str, ...], place: int, other: str) -> str:
    """The name of an axis of a block; `other` where it has none but its number (NAME_0, NAME_1)."""
    word = axes[place] if place < len(axes) else ""
    return other if not word or word == f"{name}_{place - 1}" else word


def singular_values(block: np.ndarray) -> np.ndarray:
    """Those of every matrix of a block (frames, ..., n, m), nan where it has a number that is not finite."""
    parts = []
    for part in in_parts(block):
        values = np.asarray(part, dtype=float)
        good = np.isfinite(values).all(axis=(-2, -1), keepdims=True)
        sizes = np.linalg.svd(np.where(good, values, 0.0), compute_uv=False)
        parts.append(np.where(np.squeeze(good, axis=-1), sizes, np.nan))
    return np.concatenate(parts)


def _is_small(shape: tuple[int, ...]) -> bool:
    """Whether a block is drawn as a heat map: beyond 128 rows or columns, or 16 panels, cells are a pixel or two."""
    fits = len(shape) in (1, 2) or (len(shape) == 3 and shape[0] <= 16)
    return fits and min(shape) > 0 and max(shape[-2:]) <= 128


def block_view(run: Run, name: str) -> View:
    """A small block, or another recorded array, as a heat map: a vector as one row, a stack of matrices as panels."""
    shape = _recorded(run, name).shape[1:]
    panels, rows, columns = (1,) * (3 - len(shape)) + shape
    thinned = shown(run, panels * rows * columns, CELLS)
    values = np.asarray(_recorded(thinned.run, name), dtype=float).reshape(-1, panels, rows, columns)
    words = ("part", "row", "column")[-len(shape) :]
    axis_names = run.axes.get(name, ()) if len(run.axes.get(name, ())) == 1 + len(shape) else ()
    axes = ("part", "block", "column")[: 3 - len(shape)] + tuple(
        _axis_word(name, axis_names, 1 + place, word) for place, word in enumerate(words)
    )
    texts = f"series-{name}", name, f"The array {name} at every recorded frame."
    if name in run.params:
        texts = f"block-{name}", f"Block {name}", f"The parameters {name} as they are."
    high = largest(values)
    return Matrices(
        *texts,
        values,
        panels=(name,) if panels == 1 else tuple(f"{name}, {axes[0]} {i + 1}" for i in range(panels)),
        rows=tuple(map(str, range(rows))) if len(shape) > 1 else (name,),
        columns=tuple(map(str, range(columns))),
        row_axis=axes[1],
        column_axis=axes[2],
        low=-high if np.any(values < 0) else 0.0,
        high=high,
        frames=thinned.frames,
    )


def _recorded(run: Run, name: str) -> np.ndarray:
    return run.params[name] if name in run.params else run.series[name]


def series_views(run: Run) -> list[Maker]:
    """Recorded series beside loss and speed: numbers and vectors as curves, small matrices as heat maps, norms of the rest."""
    shapes = {name: run.series[name].shape[1:] for name in run.series if name not in (run.clock, "t", "step", "loss", "speed")}
    drawable = {name: shape for name, shape in shapes.items() if len(shape) < 2 or _is_small(shape)}
    views: list[Maker] = [
        partial(series_view if len(shape) < 2 else block_view, run, name) for name, shape in list(drawable.items())[:MOST_BLOCKS]
    ]
    remaining = [name for name in shapes if name not in list(drawable)[:MOST_BLOCKS]]
    return [*views, partial(sizes_view, run, remaining)] if remaining else views


def series_view(run: Run, name: str) -> View:
    """A series of numbers as a curve, of vectors as one curve an entry."""
    values = np.asarray(run.series[name], dtype=float)
    columns = values.reshape(len(values), -1)
    labels = [name] if values.ndim == 1 else [f"{name} {i}" for i in range(columns.shape[1])]
    about = f"{name} at every recorded frame." + left_out(len(labels))
    positive = bool(np.all(columns[np.isfinite(columns)] > 0))
    return curves(f"series-{name}", name, about, name, many_curves(columns, labels), log=positive)


def sizes_view(run: Run, names: list[str]) -> View:
    """Norms of the arrays that are not drawn one by one."""
    lines = _norm_curves(run.series, names)
    about = "Square root of the sum of squares of arrays that are too large, or too many, to be drawn one by one."
    return curves("series-norms", "Norms of other arrays", about + left_out(len(names), what="arrays"), "norm", lines, log=True)


def matrix(slot: str, title: str, about: str, values: np.ndarray, *, signed: bool = False, **labels: Any) -> Matrices:
    """One matrix a frame (frames, rows, columns); where it is `signed`, colours go from minus to plus its largest size."""
    colours = {"low": -largest(values), "high": largest(values)} if signed else {}
    return Matrices(slot, title, about, np.asarray(values)[:, None], panels=("",), **colours, **labels)


def largest(values: np.ndarray) -> float:
    """The largest finite size, 1 where there is none but zero."""
    finite = np.isfinite(values)
    top, foot = np.max(values, where=finite, initial=0.0), np.min(values, where=finite, initial=0.0)
    return float(max(top, -foot)) or 1.0


def any_views(reading: HasRun) -> list[Maker]:
    """The views of any run, whatever its objective."""
    run = reading.run
    shapes = {name: run.params[name].shape[1:] for name in run.params}
    small = [name for name, shape in shapes.items() if _is_small(shape)]
    large = sum(bool(shape) and min(shape) > 0 and not _is_small(shape) for shape in shapes.values())
    note = f" Blocks too large to be drawn cell by cell: {large:,} of {len(shapes):,}." if large else ""
    note += left_out(len(small), MOST_BLOCKS, "small blocks")
    blocks = [partial(block_view, run, name) for name in small[:MOST_BLOCKS]]
    norms_of_all = partial(norms_view, run, more=note)
    first = [partial(loss_view, run), partial(speed_view, run), *series_views(run)]
    return [*first, norms_of_all, partial(values_view, run), *blocks]


def derived(run: Run, makers: Iterable[Maker]) -> tuple[tuple[Derived, ...], tuple[str, ...]]:
    """The arrays of all views but those that were recorded, and a sentence on each view that could not be made."""
    by_name: dict[str, Derived] = {}
    problems = []
    for make in makers:
        try:
            view = make()
        except Exception as error:  # code of a paper runs here; the other views stand
            problems.append(f"a view could not be made: {sentence(error)}")
            continue
        array = None if view is None else _without_recorded(run, _array_of(view))
        if array is not None:
            name = next(free for free in (array.name, *(f"{array.name} {k}" for k in range(2, 100))) if free not in by_name)
            by_name[name] = array if name == array.name else replace(array, name=name)
    return tuple(by_name.values()), tuple(problems)


def _array_of(view: View) -> Derived | None:
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
        return None if any(_is_recorded(array, made.values, made.frames) for arrays in wide for array in arrays) else made
    series = [values for values in run.series.values() if values.ndim == 1]
    new_curves = [i for i in range(made.size) if not any(_is_recorded(array, made.values[:, i], made.frames) for array in series)]
    names = tuple(made.labels[0][i] for i in new_curves)
    return replace(made, values=made.values[:, new_curves], labels=(names,)) if new_curves else None


def _is_recorded(recorded: np.ndarray, values: np.ndarray, frames: np.ndarray | None) -> bool:
    """Whether values are a recorded array, at the frames that were kept."""
    if recorded[:1].size != values[:1].size:
        return False
    compared = recorded if frames is None else recorded[frames]
    return np.array_equal(compared.reshape(values.shape), values, equal_nan=True)
