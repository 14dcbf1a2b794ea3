"""A kernel that gives a loss and its gradient by block, as the functions of flat vectors that solvers and descents call."""

from collections.abc import Callable, Mapping

import numpy as np

from stagescope.fields.field import FlatField, StepGradient
from stagescope.params import Layout, Params

Found = tuple[float, dict[str, np.ndarray]]
"""A loss and its gradient by block."""


def flat_field(kernel: Callable[[Params], Found], layout: Layout, rates: Mapping[str, float]) -> FlatField:
    """The velocity -rate_b grad_b L, and the loss that comes with it."""
    where = layout.slices()

    def flat(vector: np.ndarray, out: np.ndarray) -> float:
        loss, found = kernel(layout.unpack(vector))
        for name in layout.names:
            out[where[name]] = -rates[name] * found[name].ravel()
        return loss

    return flat


def flat_gradient(kernel: Callable[[Params, int], Mapping[str, np.ndarray]], layout: Layout) -> StepGradient:
    """The gradient that a step of a descent sees."""
    where = layout.slices()

    def gradient(vector: np.ndarray, step: int, out: np.ndarray) -> None:
        found = kernel(layout.unpack(vector), step)
        for name in layout.names:
            out[where[name]] = found[name].ravel()

    return gradient
