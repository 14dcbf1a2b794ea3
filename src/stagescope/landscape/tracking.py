"""Rates along a branch of critical points, each followed by its direction: which of them changes its sign.

A count of rates above a threshold would see a crossing where a rate is only exponentially small.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from stagescope.landscape.branch import BranchPoint
from stagescope.landscape.follower import RULE, Spot, Zeros

ZERO = 1e-8
"""Share of the largest rate inside the model below which a rate has no sign of its own."""
ALIKE = 0.25
"""Least product of the cosines between the left and the right directions of a mode at neighbouring points."""
REST = 100 * RULE.exact
"""And what is left of F, with room, over the length of the point: along an orbit a rate is as large as that."""


@dataclass(frozen=True)
class Modes:
    """Rates at one point with their left and right directions as columns: eigenvalues, or singular values.

    A singular value has the sign by which it continues the one before.
    """

    rates: np.ndarray
    left: np.ndarray
    right: np.ndarray
    singular: bool

    def after(self, before: "Modes", zero: float) -> "Modes":
        """The same modes in the order of those before.

        The direction of a rate that is zero may be anything, so the one before is kept. Directions that turn too far between
        two points decide no sign of a singular value: then that of the rate before is kept.
        """
        if not len(self.rates):
            return self
        from scipy.optimize import linear_sum_assignment

        along, across = before.left.T @ self.left, before.right.T @ self.right
        order = linear_sum_assignment(-np.abs(along * across))[1]
        turns = [np.where(np.diag(each[:, order]) < 0, -1.0, 1.0) for each in (along, across)]
        unlike = np.abs(np.diag((along * across)[:, order])) < ALIKE
        if self.singular:
            turns[1] = np.where(unlike, turns[0] * np.where(before.rates < 0, -1.0, 1.0), turns[1])
        none = np.abs(self.rates[order]) <= zero
        left = np.where(none, before.left, self.left[:, order] * turns[0])
        right = np.where(none, before.right, self.right[:, order] * turns[1])
        return Modes(self.rates[order] * turns[0] * turns[1], left, right, self.singular)


def inside(zeros: Zeros, spot: Spot) -> Modes:
    """The rates inside the model."""
    rates, directions = zeros.spectrum(spot.slopes, spot.value)
    return Modes(rates, directions, directions, singular=False)


def outside(zeros: Zeros, spot: Spot) -> dict[str, Modes]:
    """The rates of what opens, by kind."""
    found = {}
    for name, matrix in zeros.openings(spot.vector, spot.value).items():
        left, rates, right = np.linalg.svd(matrix, full_matrices=False)
        found[name] = Modes(rates, left, right.T, singular=True)
    return found


class Tracked:
    """The rates of all points of a branch, mode by mode."""

    def __init__(self, zeros: Zeros, spots: Sequence[Spot]) -> None:
        self.zeros, self.spots = zeros, list(spots)
        inner, opened = [inside(zeros, spot) for spot in spots], [outside(zeros, spot) for spot in spots]
        largest = np.array([np.abs(modes.rates).max(initial=0.0) for modes in inner])
        self.zero = ZERO * largest + REST / np.array([max(float(np.linalg.norm(spot.vector)), 1e-3) for spot in spots])
        self.inside = self._ordered(inner)
        self.outside = {name: self._ordered([each[name] for each in opened]) for name in opened[0]}
        self.signs = {"": signs(self.inside, self.zero)}
        self.signs |= {name: signs(modes, self.zero) for name, modes in self.outside.items()}

    def _ordered(self, found: list[Modes]) -> list[Modes]:
        for i in range(1, len(found)):
            found[i] = found[i].after(found[i - 1], self.zero[i])
        return found

    @property
    def points(self) -> tuple[BranchPoint, ...]:
        return tuple(self._point(i) for i in range(len(self.spots)))

    def _point(self, i: int) -> BranchPoint:
        spot = self.spots[i]
        growing = self.signs[""][i] > 0
        opened = {name: _fastest(modes[i].rates, self.zero[i]) for name, modes in self.outside.items()}
        inner = _fastest(self.inside[i].rates[growing], 0.0)
        rates = tuple(sorted(chain.from_iterable(opened.values()), reverse=True)) if opened else inner
        return BranchPoint(
            value=spot.value,
            loss=self.zeros.loss(spot.vector, spot.value),
            index=int(np.sum(growing)),
            rates=rates,
            openings=opened,
            measures=self.zeros.measures(spot.vector, spot.value),
            params=self.zeros.params(spot.vector, spot.value),
        )


def _fastest(rates: np.ndarray, zero: float) -> tuple[float, ...]:
    sizes = np.sort(np.abs(rates))[::-1]
    return tuple(float(rate) for rate in sizes if rate > zero)


def signs(modes: Sequence[Modes], zero: np.ndarray) -> np.ndarray:
    """The sign of every mode at every point; where a rate is too small to have one, that of the point before, or after."""
    rates = np.array([each.rates for each in modes])
    found = np.where(np.abs(rates) > zero[:, None], np.sign(rates), 0.0)
    for order in (range(1, len(found)), range(len(found) - 2, -1, -1)):
        step = 1 if order.step > 0 else -1
        for i in order:
            found[i] = np.where(found[i] == 0, found[i - step], found[i])
    return found
