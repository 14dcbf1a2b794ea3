"""Views within their budgets: fewer frames where all would cost too much, a plane for points, and many curves in one view."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stagescope.runs.run import Run
from stagescope.views.view import Curve, Curves, Level

CELLS = 60e6
"""Most cells of a view of matrices that are there already, or made a frame at a time."""
OBSERVED = 20e6
"""Most of those that are made from other matrices, all frames at once: about 600 MB with what is needed on the way."""
NUMBERS = 3e6
"""Most numbers of a view of curves."""
WORK = 2e9
"""Most multiplications, about a second or two, that the singular values of one block may take."""
TOGETHER = 4_000_000
"""Numbers that are worked on at once: 32 MB each time they are copied."""


def in_parts(values: np.ndarray, shared: int = 0) -> list[np.ndarray]:
    """An array some frames at a time, to bound memory; each part begins with the last `shared` frames of the one before."""
    step = max(1, TOGETHER // max(1, values[:1].size))
    return [values[first : first + step + shared] for first in range(0, max(1, len(values) - shared), step)]


@dataclass(frozen=True)
class Shown:
    """A run at the frames shown, and which of the whole run's frames these are; None: every one."""

    run: Run
    frames: np.ndarray | None = None


def shown(run: Run, size: float, budget: float) -> Shown:
    """Frames of a run, few enough that their number times `size`, the cost of one, is within the `budget`."""
    frames = spread(run.frames, max(2, int(budget / max(size, 1))))
    return Shown(run) if frames is None else Shown(run.only(frames), frames)


def spread(frames: int, limit: int) -> np.ndarray | None:
    """At most `limit` of `frames` frames, evenly spaced, with the first and the last; None means all of them."""
    if frames <= limit:
        return None
    return np.unique(np.rint(np.linspace(0, frames - 1, limit)).astype(int))


MOST_POINTS = 300


SAME = float(np.sqrt(np.finfo(float).eps))
"""Variances and coordinates that differ by less, relatively, may differ by rounding alone."""


def plane(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (frames, n, w) in the plane of their largest variance, all frames together: (frames, n, 2), and shares (frames, 2).

    The axes are the two top eigenvectors of sum_frames sum_i (x_i - mean)(x_i - mean)^T, each signed so that its largest
    coordinate in the last frame is positive. Coordinates are taken from the origin, not from the mean: a row at zero is at
    zero. A share is that of the frame's own variance along an axis, nan where the frame has none.
    """
    rows = np.where(np.isfinite(rows).all(axis=(1, 2), keepdims=True), rows, np.nan)
    axes = _axes(rows)
    places = rows @ axes.T
    last = places[np.flatnonzero(np.isfinite(places).all(axis=(1, 2)))[-1]] if np.isfinite(rows).any() else np.zeros((1, 2))
    sizes = np.abs(last)
    largest = np.argmax(sizes >= (1 - SAME) * sizes.max(axis=0), axis=0)  # the first, where rounding alone decides
    signs = np.sign(last[largest, [0, 1]])
    places = places * np.where(signs == 0, 1.0, signs)
    centred = places - places.mean(axis=1, keepdims=True)
    total = np.sum((rows - rows.mean(axis=1, keepdims=True)) ** 2, axis=(1, 2))
    along = np.sum(centred**2, axis=1)
    return places, along / np.where(total > 0, total, np.nan)[:, None]


def _axes(rows: np.ndarray) -> np.ndarray:
    """The two axes (2, w); a second one that does not exist, where rows have a single number, is zero."""
    good = rows[np.isfinite(rows).all(axis=(1, 2))]
    centred = (good - good.mean(axis=1, keepdims=True)).reshape(-1, rows.shape[2])
    width = rows.shape[2]
    if centred.shape[0] >= width:
        variances, vectors = np.linalg.eigh(centred.T @ centred)
        variances, axes = variances[::-1], vectors[:, ::-1].T
    else:
        _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
        variances = sizes**2
    first = 0
    while first < min(2, len(axes)):
        end = first + int(np.sum(variances[first:] >= variances[first] - SAME * variances[0]))
        axes[first:end] = _plain_basis(axes[first:end])
        first = end
    return np.vstack([axes[:2], np.zeros((max(0, 2 - len(axes)), width))])


def _plain_basis(axes: np.ndarray) -> np.ndarray:
    """Orthonormal axes of the same space (r, w) that do not depend on which of its bases is given.

    Axes of equal variance are any of their space. Each is the part in it of the first coordinate that has at least half of the
    mean share in what is left of it.
    """
    basis: list[np.ndarray] = []
    count, width = axes.shape
    while len(basis) < count:
        inside = axes.T @ axes - sum((np.outer(axis, axis) for axis in basis), np.zeros((width, width)))
        shares = np.diag(inside)
        axis = inside[int(np.argmax(shares >= shares.mean() / 2))]
        basis.append(axis / np.linalg.norm(axis))
    return np.array(basis)


NAMED = 8
"""Curves of one view that a reader can tell apart."""
MOST = 60
"""Curves of one view in all."""


def many_curves(
    values: np.ndarray,
    names: Sequence[str],
    first: Sequence[int] | None = None,
    named: int = NAMED,
    tokens: Sequence[str] | None = None,
) -> tuple[Curve, ...]:
    """Curves of values (frames, n) in the order of `first`: the first `named` with names, the rest faint, up to MOST.

    `tokens` are those that the curves are about, if they are.
    """
    order = list(range(values.shape[1])) if first is None else list(first)
    about = [""] * values.shape[1] if tokens is None else tokens
    return tuple(Curve(names[i], values[:, i], faint=place >= named, token=about[i]) for place, i in enumerate(order[:MOST]))


def left_out(count: int, most: int = MOST, what: str = "curves") -> str:
    """A sentence on what is not drawn, empty where all is."""
    return f" The first {most:,} of {count:,} {what} are drawn." if count > most else ""


def curves(
    slot: str,
    title: str,
    about: str,
    axis: str,
    lines: Sequence[Curve],
    *,
    levels: Sequence[Level] = (),
    log: bool = False,
    frames: np.ndarray | None = None,
) -> Curves:
    """A view of curves within the budget of numbers, with the levels that are finite."""
    finite_levels = tuple(level for level in levels if np.isfinite(level.value))
    count = len(lines[0].values)
    selected = spread(count, max(2, int(NUMBERS / len(lines))))
    if selected is not None:
        lines = [replace(curve, values=curve.values[selected]) for curve in lines]
        frames = selected if frames is None else frames[selected]
    return Curves(slot, title, about, axis, tuple(lines), finite_levels, log, frames=frames)
