"""Graded matrices: X = sum_i e^(s_i) v_i w_i^T with unit vectors, sizes s_i as logarithms, the largest first.

Patterns that differ in size by hundreds of decades keep their own relative accuracy, because no sum of them is ever formed.
Under X' = N X with N = [[0, B], [B^T, 0]] the growing motion is exact: exp(t N) has the cosh and sinh of the singular values
of B.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.landscape.graded_kernel import grown, regraded

LONGEST = 2.0
"""E-folds that one product grows by at most before it is graded again: two patterns then differ by e^4 in one column."""


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

    @cached_property
    def matrix(self) -> np.ndarray:
        """The sum itself, where float64 holds it."""
        return (np.exp(self.logs)[:, None] * self.left).T @ self.right

    def grown(self, b: np.ndarray, h: float) -> "Graded":
        """exp(h N) X."""
        if not len(self.logs):
            return self
        p, values, q = np.linalg.svd(b, full_matrices=False)
        pieces = max(math.ceil(h * values[0] / LONGEST), 1)
        arrays, turned = (self.logs, self.left, self.right), np.ascontiguousarray(p.T)
        for _ in range(pieces):
            arrays = grown(*arrays, turned, values, q, h / pieces)
        return Graded(*arrays)

    def split(self) -> tuple[np.ndarray, np.ndarray, "Graded"]:
        """The direction x of the largest pattern on the right, the column X x, and X without what lies along x.

        The largest pattern is dropped as a whole, so that its rounding does not drown the others.
        """
        x = self.right[0] / np.linalg.norm(self.right[0])
        along = self.right @ x
        column = (np.exp(self.logs) * along) @ self.left
        return x, column, Graded(*regraded(self.logs[1:], self.left[1:], self.right[1:] - np.outer(along[1:], x)))
