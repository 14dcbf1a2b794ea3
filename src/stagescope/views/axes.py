"""Which axes a plot starts with: the same on the page, on paper and in a notebook."""

from collections.abc import Sequence

import numpy as np

from stagescope.views.view import Curves

SPREAD = 30.0
"""Ratio of the largest to the smallest value from which a logarithmic axis, where it makes sense, is drawn."""
EARLY = 0.15
"""Time is on a logarithmic axis if half of the frames are before this share of it."""


def log_time(time: np.ndarray) -> bool:
    """Whether most frames are so early that a linear axis would press them into its corner."""
    return len(time) > 3 and float(np.median(time)) < EARLY * float(time[-1])


def log_values(views: Sequence[Curves]) -> bool:
    """Whether the values of a plot are spread so far that only a logarithmic axis shows the small ones."""
    if not any(view.log and view.curves for view in views):
        return False
    values = np.concatenate([curve.values for view in views for curve in view.curves])
    values = values[np.isfinite(values)]
    positive = values[values > 0]
    return bool(len(positive) and len(positive) >= 0.5 * len(values) and positive.max() > SPREAD * positive.min())
