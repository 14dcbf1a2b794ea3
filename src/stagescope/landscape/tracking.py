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
REST = 100 * RULE.exact
"""And what is left of F, with room, over the length of the point: along an orbit a rate is as large as that."""


@dataclass(frozen=True)
class Modes:
    """Rates at one point with their left and right directions as columns."""

    rates: np.ndarray
    left: np.ndarray
    right: np.ndarray

    def after(self, before: "Modes") -> "Modes":
        """The same modes in the order and with the signs of those before; a singular value may so become negative."""
        if not len(self.rates):
            return self
        from scipy.optimize import linear_sum_assignment

        along, across = before.left.T @ self.left, before.right.T @ self.right
        order = linear_sum_assignment(-np.abs(along * across))[1]
        turned = np.sign(np.diag(along[:, order])) * np.sign(np.diag(across[:, order]))
        turned[turned == 0] = 1.0
        left = self.left[:, order] * np.where(np.diag(along[:, order]) < 0, -1.0, 1.0)
        right = self.right[:, order] * np.where(np.diag(across[:, order]) < 0, -1.0, 1.0)
        return Modes(self.rates[order] * turned, left, right)


def inside(zeros: Zeros, spot: Spot) -> Modes:
    """The rates inside the model."""
    rates, directions = zeros.spectrum(spot.slopes, spot.value)
    return Modes(rates, directions, directions)


def outside(zeros: Zeros, spot: Spot) -> dict[str, Modes]:
    """The rates of what opens, by kind."""
    found = {}
    for name, matrix in zeros.openings(spot.vector, spot.value).items():
        left, rates, right = np.linalg.svd(matrix, full_matrices=False)
        found[name] = Modes(rates, left, right.T)
    return found


class Tracked:
    """The rates of all points of a branch, mode by mode."""

    def __init__(self, zeros: Zeros, spots: Sequence[Spot]) -> None:
        self.zeros, self.spots = zeros, list(spots)
        self.inside = _ordered([inside(zeros, spot) for spot in spots])
        opened = [outside(zeros, spot) for spot in spots]
        self.outside = {name: _ordered([each[name] for each in opened]) for name in opened[0]}
        largest = np.array([np.abs(modes.rates).max(initial=0.0) for modes in self.inside])
        self.zero = ZERO * largest + REST / np.array([max(float(np.linalg.norm(spot.vector)), 1e-3) for spot in spots])
        self.signs = {"": signs(self.inside, self.zero)}
        self.signs |= {name: signs(modes, self.zero) for name, modes in self.outside.items()}

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


def _ordered(found: list[Modes]) -> list[Modes]:
    for i in range(1, len(found)):
        found[i] = found[i].after(found[i - 1])
    return found


def _fastest(rates: np.ndarray, zero: float) -> tuple[float, ...]:
    sizes = np.sort(np.abs(rates))[::-1]
    return tuple(float(rate) for rate in sizes if rate > zero)


def signs(modes: Sequence[Modes], zero: np.ndarray) -> np.ndarray:
    """The sign of every mode at every point; where a rate is too small to have one, that of the point before, or after."""
    found = np.array([np.where(np.abs(each.rates) > least, np.sign(each.rates), 0.0) for each, least in zip(modes, zero, strict=True)])
    for order in (range(1, len(found)), range(len(found) - 2, -1, -1)):
        step = 1 if order.step > 0 else -1
        for i in order:
            found[i] = np.where(found[i] == 0, found[i - step], found[i])
    return found
