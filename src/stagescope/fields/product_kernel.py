"""Products of narrow matrices inside Numba kernels: 4 x 16 sums stay in registers, and nothing is packed or copied.

BLAS packs both factors before it multiplies. Where one side of a product is only 16 to 100 wide this costs as much as a fifth of
the work, and a sum that goes on over several products passes through memory.
"""

from numba import uintp

from stagescope.fields.lanes import LANES, load, multiply_add, spread, spread_from, store
from stagescope.kernels import njit

GROUP = 4
"""Rows that are summed together."""
_NONE, _ONE, _TWO, _THREE, _LANES = uintp(0), uintp(1), uintp(2), uintp(3), uintp(LANES)


@njit(cache=True)
def add_product(sizes, left, right, out, fresh):
    """out[i] += sum_(o, k) left[i, o, k] right[o, k], or = where `fresh`.

    `sizes` are (rows, columns, outer, inner): columns in whole lanes, o < outer and k < inner. `left` is (array, place, step of
    i, step of o, step of k); `right` and `out` are (array, place, step of a row), and rows of `right` are in the order of (o, k).
    All arrays are contiguous. Nothing is checked. A group that goes over the end has its last row several times.
    """
    (rows, columns, outer, inner), (a, a_place, a_row, a_outer, a_inner) = sizes, left
    (b, b_place, b_row), (c, c_place, c_row) = right, out
    rows = uintp(rows)
    for i in range(_NONE, rows, uintp(GROUP)):
        j, m, n = min(i + _ONE, rows - _ONE), min(i + _TWO, rows - _ONE), min(i + _THREE, rows - _ONE)
        for column in range(_NONE, uintp(columns), _LANES):
            at, here = c_place + column, b_place + column
            if fresh:
                x = y = u = v = spread(c.dtype.type(0))
            else:
                x, y = load(c, at + i * c_row), load(c, at + j * c_row)
                u, v = load(c, at + m * c_row), load(c, at + n * c_row)
            for o in range(uintp(outer)):
                place = a_place + o * a_outer
                p, q, s, t = place + i * a_row, place + j * a_row, place + m * a_row, place + n * a_row
                for _ in range(uintp(inner)):
                    lanes = load(b, here)
                    x = multiply_add(spread_from(a, p), lanes, x)
                    y = multiply_add(spread_from(a, q), lanes, y)
                    u = multiply_add(spread_from(a, s), lanes, u)
                    v = multiply_add(spread_from(a, t), lanes, v)
                    p, q, s, t, here = p + a_inner, q + a_inner, s + a_inner, t + a_inner, here + b_row
            store(c, at + i * c_row, x)
            store(c, at + j * c_row, y)
            store(c, at + m * c_row, u)
            store(c, at + n * c_row, v)
