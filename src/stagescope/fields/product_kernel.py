"""Products of narrow matrices inside Numba kernels: 4 x 16 sums stay in registers, and nothing is packed or copied.

BLAS packs both factors before it multiplies. Where one side of a product is only 16 to 100 wide this costs as much as a fifth of
the work, and a sum that goes on over several products passes through memory.
"""

from numba import uintp

from stagescope.fields.lanes import LANES, load, multiply_add, spread, spread_from, store
from stagescope.kernels import njit

GROUP = 4
"""Rows that are summed together."""
_TWO, _THREE = uintp(2), uintp(3)


@njit(cache=True)
def add_product(sizes, left, right, out, fresh):
    """out[i] += sum_(o, k) left[i, o, k] right[o, k], or = where `fresh`.

    `sizes` are (rows, columns, outer, inner): rows in whole groups, columns in whole lanes, o < outer and k < inner. `left` is
    (array, place, step of i, step of o, step of k); `right` and `out` are (array, place, step of a row), and rows of `right` are
    in the order of (o, k). All arrays are contiguous. Nothing is checked.
    """
    (rows, columns, outer, inner), (a, a_place, a_row, a_outer, a_inner) = sizes, left
    (b, b_place, b_row), (c, c_place, c_row) = right, out
    for i in range(uintp(0), uintp(rows), uintp(GROUP)):
        for column in range(uintp(0), uintp(columns), uintp(LANES)):
            at, here = c_place + i * c_row + column, b_place + column
            if fresh:
                x = y = u = v = spread(c.dtype.type(0))
            else:
                x, y = load(c, at), load(c, at + c_row)
                u, v = load(c, at + _TWO * c_row), load(c, at + _THREE * c_row)
            for o in range(uintp(outer)):
                place = a_place + i * a_row + o * a_outer
                for _ in range(uintp(inner)):
                    lanes = load(b, here)
                    x = multiply_add(spread_from(a, place), lanes, x)
                    y = multiply_add(spread_from(a, place + a_row), lanes, y)
                    u = multiply_add(spread_from(a, place + _TWO * a_row), lanes, u)
                    v = multiply_add(spread_from(a, place + _THREE * a_row), lanes, v)
                    place += a_inner
                    here += b_row
            store(c, at, x)
            store(c, at + c_row, y)
            store(c, at + _TWO * c_row, u)
            store(c, at + _THREE * c_row, v)
