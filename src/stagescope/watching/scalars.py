"""The scalars of a run under the names that trackers of experiments use, and as JSON lines."""

import json
import re
from collections.abc import Collection, Iterator
from itertools import count
from pathlib import Path

import numpy as np

from stagescope.runs.export import target
from stagescope.runs.files import publish
from stagescope.runs.run import Run

VECTOR = 64
"""Most entries of a vector that are scalars of their own; a longer one is no list of curves that anybody reads."""
HEADS = ("layer", "head")
"""Axes of arrays whose entries are scalars whatever their number: one curve a head."""
LONGEST = 100
"""Characters of a part of a name."""


def scalars(run: Run) -> dict[str, np.ndarray]:
    """Every curve of a run by name, one number a frame; its place among the records (`steps`) is not one of them.

    These are the arrays with one number a frame, the entries of vectors of up to 64, and the entries of arrays with the axes
    layer and head: "entropy/layer 0/head 1". Parameters count too. A curve that has no number at all is left out.
    """
    found: dict[str, np.ndarray] = {}
    for name, values in _chosen(run):
        words = [_word(axis, name) for axis in run.axes[name][1:]]
        for place in np.ndindex(values.shape[1:]):
            curve = values[(slice(None), *place)]
            if not len(curve) or not np.isnan(curve).all():
                parts = (f"{word} {i}".strip() for word, i in zip(words, place, strict=True))
                found[unique("/".join((_clean(name), *parts)), found)] = curve
    return found


def notes(run: Run) -> list[str]:
    """What a reader of the scalars should know: where the steps come from, and which arrays are not among them."""
    kept = {*(name for name, _ in _chosen(run)), "step"}
    others = [_clean(name) for name in (*run.series, *run.params) if name not in kept]
    flow = [] if "step" in run.series else ["a flow has no steps: the step is the number of the frame, the time is the scalar t"]
    return [*flow, *([f"no scalars, so not written: {', '.join(others)}"] if others else [])]


def steps(run: Run) -> np.ndarray:
    """Whole numbers that order the frames: the steps, or in a flow, which has none, the number of the frame."""
    return run.series["step"] if "step" in run.series else np.arange(run.frames)


def to_json_lines(run: Run, out: str | Path | None = None, overwrite: bool = False) -> Path:
    """Write the scalars of a run as JSON lines, one object a frame, as W&B logs them; returns the file.

    `_step` is the step; for a flow it is the number of the frame, and the time is under `t`. What is no finite number at a
    frame has no key there.

    Args:
        run: any run.
        out: the file; default: the run's name with .jsonl.
        overwrite: replace an existing file.

    Returns:
        The file.

    Examples:
        >>> ss.to_json_lines(run, "run.jsonl").name
        'run.jsonl'
    """
    path = target(run, out, ".jsonl", overwrite)
    publish(path, "".join(f"{line}\n" for line in _lines(run)).encode())
    return path


def _lines(run: Run) -> Iterator[str]:
    curves = {unique(name, ("_step",)): (_shortest(values), np.isfinite(values)) for name, values in scalars(run).items()}
    for i, step in enumerate(steps(run).tolist()):
        row = {name: values[i] for name, (values, finite) in curves.items() if finite[i]}
        yield json.dumps({"_step": step, **row}, allow_nan=False)


def _shortest(values: np.ndarray) -> list[float]:
    """Numbers of 4 bytes with the fewest digits that give them back, not the digits of 8 bytes."""
    return [float(text) for text in values.astype(str)] if values.dtype == np.float32 else values.tolist()


def unique(name: str, taken: Collection[str]) -> str:
    """A name that is not taken: itself, or with the first number from 2 on that makes it free."""
    return name if name not in taken else next(each for k in count(2) if (each := f"{name}_{k}") not in taken)


def _chosen(run: Run) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays that hold scalars, in the order recorded. The clock is one, unless it is the step."""
    for name, values in {**run.series, **run.params}.items():
        small = values.ndim == 1 or (values.ndim == 2 and values.shape[1] <= VECTOR)
        if name != "step" and (small or run.axes[name][1:] == HEADS):
            yield name, values


def _word(axis: str, array: str) -> str:
    """What an axis is called in a name; an axis that bears the array's own name adds nothing but the number."""
    return "" if axis.startswith(f"{array}_") else _clean(axis)


def _clean(text: str) -> str:
    """Names come from whoever made the run: what is no letter, digit, blank, dot or dash becomes _."""
    return re.sub(r"[^\w .-]", "_", text)[:LONGEST] or "_"
