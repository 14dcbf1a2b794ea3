"""Small deviations beside a path, each with the logarithm of its size: a deviation may be as small as 1e-300 and smaller."""

from dataclasses import dataclass

import numpy as np

TOGETHER = 25.0
"""E-folds within which deviations are one: a smaller one is still above the rounding of the larger."""
COUPLING = 1e-9
"""A part below this share of a deviation is rounding: in its place stands a zero of symmetry."""
ROUNDING = 1e-13
"""The same for one step of a product."""
SAME = 1e-6
"""Rates closer than this share of the largest are one rate."""


@dataclass(frozen=True)
class Eigen:
    """A symmetric Jacobian: rates ascending, eigenvectors as columns."""

    rates: np.ndarray
    vectors: np.ndarray

    @classmethod
    def of(cls, jacobian: np.ndarray) -> "Eigen":
        return cls(*np.linalg.eigh((jacobian + jacobian.T) / 2))

    @property
    def largest(self) -> float:
        return float(np.abs(self.rates).max(initial=0.0))

    def clusters(self, above: float) -> list[np.ndarray]:
        """The places of equal rates above a limit, slowest first."""
        places = np.flatnonzero(self.rates > above)
        cuts = np.flatnonzero(np.diff(self.rates[places]) > SAME * self.largest) + 1
        return [each for each in np.split(places, cuts) if each.size]


@dataclass(frozen=True)
class Tangents:
    """Deviations e^logs units: logarithms (k,) and unit vectors as rows (k, n)."""

    logs: np.ndarray
    units: np.ndarray

    @classmethod
    def of(cls, vector: np.ndarray) -> "Tangents":
        """One deviation; squares of its entries may underflow."""
        top = float(np.abs(vector).max(initial=0.0))
        if top == 0:
            return cls(np.zeros(0), np.zeros((0, len(vector))))
        length = float(np.linalg.norm(vector / top))
        return cls(np.array([np.log(top) + np.log(length)]), (vector / top / length)[None])

    @property
    def top(self) -> float:
        return float(self.logs.max(initial=-np.inf))

    @property
    def total(self) -> np.ndarray:
        return np.exp(self.logs) @ self.units

    def without(self, place: int) -> "Tangents":
        return Tangents(np.delete(self.logs, place), np.delete(self.units, place, axis=0))

    def plus(self, other: "Tangents") -> "Tangents":
        return Tangents(np.append(self.logs, other.logs), np.vstack([self.units, other.units]))

    def carried(self, law: Eigen, h: float) -> "Tangents":
        """After a time h under a constant law, each for itself."""
        if not self.logs.size:
            return self
        parts = self.units @ law.vectors
        parts[np.abs(parts) < ROUNDING] = 0.0
        folds = law.rates * h
        shift = np.max(np.where(parts != 0, folds, -np.inf), axis=1)
        moved = parts * np.exp(np.minimum(folds - shift[:, None], 0.0))
        length = np.linalg.norm(moved, axis=1)
        return Tangents(self.logs + shift + np.log(length), (moved / length[:, None]) @ law.vectors.T)

    def rates(self, jacobian: np.ndarray) -> np.ndarray:
        """How fast each grows now."""
        return np.einsum("ki,ij,kj->k", self.units, jacobian, self.units)

    def within(self, basis: np.ndarray) -> "Tangents":
        """The parts in the span of orthonormal columns, as few deviations of falling size with the same sum."""
        parts = self.units @ basis
        rest = [(log, part) for log, part in zip(self.logs, parts, strict=True) if np.linalg.norm(part) > COUPLING]
        logs, units = [], []
        while rest:
            top = max(log + np.log(np.linalg.norm(part)) for log, part in rest)
            near = [log + np.log(np.linalg.norm(part)) > top - TOGETHER for log, part in rest]
            total = np.sum([np.exp(log - top) * part for (log, part), is_near in zip(rest, near, strict=True) if is_near], axis=0)
            length = float(np.linalg.norm(total))
            unit = total / length
            logs.append(top + np.log(length))
            units.append(unit)
            later = [(log, part - unit * (unit @ part)) for (log, part), is_near in zip(rest, near, strict=True) if not is_near]
            rest = [(log, part) for log, part in later if np.linalg.norm(part) > COUPLING]
        return Tangents(np.array(logs), np.array(units).reshape(len(units), basis.shape[1]) @ basis.T)
