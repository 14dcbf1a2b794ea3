"""Which axes a plot starts with: the same on the page, on paper and in a notebook."""

from collections.abc import Sequence

import numpy as np

from stagescope.views.view import Curves


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
    return bool(len(positive) and len(positive) >= 0.5 * len(values) and positive.max() > 30 * positive.min())
