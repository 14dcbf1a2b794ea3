"""Many curves in one view: the first few have names, the others are drawn faintly behind them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stagescope.views.subsample import NUMBERS, spread
from stagescope.views.view import Curve, Curves, Level

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
    made: Sequence[Curve],
    *,
    levels: Sequence[Level] = (),
    log: bool = False,
    frames: np.ndarray | None = None,
) -> Curves:
    """A view of curves within the budget of numbers, with the levels that are finite."""
    kept = tuple(level for level in levels if np.isfinite(level.value))
    count = len(made[0].values)
    chosen = spread(count, max(2, int(NUMBERS / len(made))))
    if chosen is not None:
        made = [replace(one, values=one.values[chosen]) for one in made]
        frames = chosen if frames is None else frames[chosen]
    return Curves(slot, title, about, axis, tuple(made), kept, log, frames=frames)
