"""A fork that pushes the parameters along a direction of the spectrum: how stable is this plateau?"""

from collections.abc import Mapping

import numpy as np
from pydantic import Field as Limits

from stagescope.dynamics.fork import Forked
from stagescope.errors import InputError, StagescopeError
from stagescope.fields.field import Field
from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.spectrum import SAME, dense_eigen, eigen
from stagescope.params import Layout

CLEAR = 0.5
"""Entries at least this share of the largest are clear of rounding; the first of them sets the sign of a direction."""
INSIDE = 1e-6
"""Length outside of frozen blocks that is rounding."""


class Pushed(Forked):
    """A fork whose second part begins `perturb` away, along the `along`-th fastest growing direction at the frame.

    The distance is absolute, in the norm over all coordinates of the unreduced model. A push that is negative goes the other way.
    """

    perturb: float
    along: int = Limits(default=1, ge=1)

    def pushed(self, field: Field, layout: Layout, vector: np.ndarray) -> np.ndarray:
        unit, *_ = direction(field, layout, vector, self.after.block_rates(layout.names), self.along)
        return vector + self.perturb * unit


def direction(
    field: Field, layout: Layout, vector: np.ndarray, rates: Mapping[str, float], along: int
) -> tuple[np.ndarray, float, int]:
    """The `along`-th fastest growing direction at a point, of length 1, its rate, and how many are known to have this rate.

    Its first clear entry is positive.
    """
    if field.objective is None:
        raise InputError("this law of motion is no gradient, and its directions may turn: leave out --perturb")
    near = Derivatives(field, layout.unpack(vector), rates)
    assert near.roots is not None
    moving = near.roots > 0
    free = int(moving.sum())
    if along > free:
        raise InputError(f"along is {along}, but {free} parameters move and have as many directions; choose 1 to {free}")
    if near.dense:
        modes = dense_eigen(near.jacobian(vector)[np.ix_(moving, moving)], near.roots[moving])
        unit = np.zeros_like(vector)
        unit[moving] = modes.vectors[:, along - 1]
    else:
        modes = eigen(near, vector, along)
        if len(modes.values) < along:
            raise StagescopeError(f"direction {along} of the spectrum did not converge at this frame; choose a lower --along")
        unit = np.where(moving, modes.vectors[:, along - 1], 0.0)
    if np.linalg.norm(unit) < INSIDE:
        raise InputError(f"direction {along} has rate 0 and lies in frozen blocks; choose a lower --along")
    first = int(np.argmax(np.abs(unit) >= CLEAR * np.abs(unit).max()))
    rate = float(modes.values[along - 1])
    alike = int(np.sum(np.abs(modes.values - rate) <= SAME * modes.largest))
    return unit * (np.sign(unit[first]) / field.speed(layout.unpack(unit))), rate, alike
