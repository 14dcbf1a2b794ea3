"""Derivatives of a gradient without JAX: a recipe of matrix operations, carried out on Taylor series [flow:field].

Along a line theta + x delta every matrix is a power series in x. A `Recipe` lists how a gradient follows from its parameters by
products, softmax and its slope; one compiled kernel then gives the terms of any order, of many lines. The terms of order 1 are
products with the Hessian.
"""

from dataclasses import dataclass

import numpy as np

from stagescope.flow.field import TaylorField
from stagescope.flow.series_kernel import PRODUCT, ROWS, SLOPE, SOFTMAX, carried_out

ANY = 2**30
"""As the power of the last term: there are terms of every power."""


@dataclass(frozen=True)
class Matrix:
    """A matrix of a recipe: its place, its shape, the power of its last term, and whether it is meant turned."""

    place: int
    rows: int
    columns: int
    last: int
    turned: bool = False

    @property
    def T(self) -> "Matrix":
        return Matrix(self.place, self.columns, self.rows, self.last, not self.turned)

    @property
    def size(self) -> int:
        return self.rows * self.columns


class Recipe:
    """How a gradient is computed, step by step; each method adds a step and gives its matrix.

    Example:
        recipe = Recipe()
        a, b = recipe.parameter(2, 3), recipe.parameter(3, 2)
        product = recipe.times(a, b)
        taylor = recipe.field(recipe.times(product, b.T), recipe.times(a.T, product))  # of -grad |a b|^2 / 2
    """

    def __init__(self) -> None:
        self._size = 0
        self._inputs: list[Matrix] = []
        self._constants: list[Matrix] = []
        self._numbers: list[np.ndarray] = []
        self._steps: list[tuple[int, ...]] = []
        self._weights: list[float] = []

    def _new(self, rows: int, columns: int, last: int) -> Matrix:
        matrix = Matrix(self._size, rows, columns, last)
        self._size += matrix.size
        return matrix

    def parameter(self, rows: int, columns: int) -> Matrix:
        """The next block of the flat vector."""
        self._inputs.append(self._new(rows, columns, 1))
        return self._inputs[-1]

    def constant(self, values: np.ndarray) -> Matrix:
        """A matrix that does not move, or a vector."""
        rows, columns = np.atleast_2d(values).shape
        self._constants.append(self._new(rows, columns, 0))
        self._numbers.append(np.ravel(values))
        return self._constants[-1]

    def times(self, a: Matrix, b: Matrix, weight: float = 1.0, add_to: Matrix | None = None) -> Matrix:
        """weight a b, with at most one of both turned; with `add_to`, added to that matrix."""
        assert a.columns == b.rows
        assert not (a.turned and b.turned)
        out = self._new(a.rows, b.columns, ANY) if add_to is None else add_to
        shape = (a.rows, a.columns, b.columns, a.last, b.last, a.turned, b.turned, add_to is not None)
        return self._added(weight, PRODUCT, a.place, b.place, out, *shape)

    def softmax(self, scores: Matrix, shift: Matrix) -> Matrix:
        """softmax of each row plus a constant vector."""
        return self._by_row(SOFTMAX, scores, shift)

    def softmax_slope(self, lift: Matrix, rows: Matrix, weight: float = 1.0) -> Matrix:
        """From dL/dy to weight dL/dz, with rows y = softmax(z): weight y (lift - y . lift)."""
        return self._by_row(SLOPE, lift, rows, weight)

    def weighted(self, rows: Matrix, weights: Matrix, less: Matrix) -> Matrix:
        """Each row times its number, less a constant matrix."""
        return self._by_row(ROWS, rows, weights, inner=less.place)

    def _by_row(self, kind: int, a: Matrix, b: Matrix, weight: float = 1.0, inner: int = 0) -> Matrix:
        out = self._new(a.rows, a.columns, ANY)
        return self._added(weight, kind, a.place, b.place, out, a.rows, inner, a.columns)

    def _added(self, weight: float, kind: int, a: int, b: int, out: Matrix, *shape: int) -> Matrix:
        self._steps.append((kind, a, b, out.place, *map(int, shape), *[0] * (8 - len(shape))))
        self._weights.append(weight)
        return out

    def field(self, *gradient: Matrix) -> TaylorField:
        """Taylor terms of -gradient, whose blocks are those of the parameters in their order."""
        tables = [[(m.place, m.size) for m in matrices] for matrices in (self._inputs, self._constants, gradient)]
        places = [np.array(table, dtype=np.int64).reshape(-1, 2) for table in tables]
        numbers = np.concatenate([*self._numbers, np.zeros(0)])
        arguments = np.array(self._steps), np.array(self._weights), *places, numbers, self._size

        def taylor(vector: np.ndarray, lines: np.ndarray, order: int) -> np.ndarray:
            return carried_out(*arguments, np.asarray(vector, dtype=float), np.ascontiguousarray(lines, dtype=float), order)

        return taylor
