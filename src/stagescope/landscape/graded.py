"""Graded matrices: X = sum_i e^(s_i) v_i w_i^T with unit vectors, sizes s_i as logarithms, the largest first.

Patterns that differ in size by hundreds of decades keep their own relative accuracy, because no sum of them is ever formed.
Under X' = N X with N = [[0, B], [B^T, 0]] they move by exp(t N), a short piece at a time, and are graded again after each.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.linalg import norm

from stagescope.landscape.graded_kernel import grown, regraded

LONGEST = 2.0
"""E-folds that one product grows by at most before it is graded again: within a column, two patterns then differ by e^4."""


@dataclass(frozen=True)
class Graded:
    """`logs` (k,), `left` (k, n) orthonormal, `right` (k, m) nearly so."""

    logs: np.ndarray
    left: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray) -> "Graded":
        """An ordinary matrix; each row keeps its relative accuracy, however much rows differ in size."""
        return cls(*regraded(np.zeros(len(matrix)), np.eye(len(matrix)), np.array(matrix, dtype=float)))

    @property
    def top(self) -> float:
        """The logarithm of the largest pattern; -inf where there is none."""
        return float(self.logs[0]) if len(self.logs) else -np.inf

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.logs, self.left, self.right

    @cached_property
    def matrix(self) -> np.ndarray:
        """The sum itself, where float64 holds it."""
        return (np.exp(self.logs)[:, None] * self.left).T @ self.right

    def grown(self, b: np.ndarray, h: float, rate: float) -> "Graded":
        """exp(h N) X; `rate` is at least the largest singular value of B."""
        if not len(self.logs):
            return self
        return Graded(*grown(self.logs, self.left, self.right, b, h, max(math.ceil(h * rate / LONGEST), 1)))

    def split(self) -> tuple[np.ndarray, np.ndarray, "Graded"]:
        """The direction x of the largest pattern on the right, the column X x, and X without what lies along x.

        The largest pattern is dropped as a whole, so that its rounding does not drown the others.
        """
        x = self.right[0] / norm(self.right[0])
        along = self.right @ x
        column = (np.exp(self.logs) * along) @ self.left
        return x, column, Graded(*regraded(self.logs[1:], self.left[1:], self.right[1:] - np.outer(along[1:], x)))
