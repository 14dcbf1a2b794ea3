"""Products of narrow matrices inside Numba kernels: 4 x 16 sums stay in registers, and nothing is packed or copied.

BLAS packs both factors before it multiplies. Where one side of a product is only 16 to 100 wide this costs as much as a fifth of
the work, and a sum that goes on over several products passes through memory.
"""

from numba import uintp

from stagescope.fields.lanes import LANES, load, multiply_add, spread, spread_from, store
from stagescope.kernels import njit

GROUP = 4
"""Rows that are summed together."""
_NONE, _ONE, _TWO, _THREE, _GROUP, _LANES = uintp(0), uintp(1), uintp(2), uintp(3), uintp(GROUP), uintp(LANES)


@njit(cache=True)
def add_product(sizes, left, right, out, fresh):
    """out[i] += sum_(o, k) left[i, o, k] right[o, k], or = where `fresh`.

    `sizes` are (rows, columns, outer, inner): columns in whole lanes, o < outer and k < inner. `left` is (array, place, step of
    i, step of o, step of k); `right` and `out` are (array, place, step of a row), and rows of `right` are in the order of (o, k).
    All arrays are contiguous. Nothing is checked. The last group begins earlier where it would go over the end, and stores only
    what is new; fewer rows than a group are taken one by one.
    """
    (rows, columns, outer, inner), (a, a_place, a_row, a_outer, a_inner) = sizes, left
    (b, b_place, b_row), (c, c_place, c_row) = right, out
    rows = uintp(rows)
    few = rows < _GROUP
    a_next, c_next, last = (_NONE, _NONE, rows) if few else (a_row, c_row, rows - _GROUP)
    for first in range(_NONE, rows, _ONE if few else _GROUP):
        i = min(first, last)
        done = first - i
        for column in range(_NONE, uintp(columns), _LANES):
            at, here = c_place + i * c_row + column, b_place + column
            if fresh:
                x = y = u = v = spread(c.dtype.type(0))
            else:
                x, y = load(c, at), load(c, at + c_next)
                u, v = load(c, at + _TWO * c_next), load(c, at + _THREE * c_next)
            for o in range(uintp(outer)):
                place = a_place + i * a_row + o * a_outer
                for _ in range(uintp(inner)):
                    lanes = load(b, here)
                    x = multiply_add(spread_from(a, place), lanes, x)
                    y = multiply_add(spread_from(a, place + a_next), lanes, y)
                    u = multiply_add(spread_from(a, place + _TWO * a_next), lanes, u)
                    v = multiply_add(spread_from(a, place + _THREE * a_next), lanes, v)
                    place += a_inner
                    here += b_row
            if done < _ONE:
                store(c, at, x)
            if done < _TWO:
                store(c, at + c_next, y)
            if done < _THREE:
                store(c, at + _TWO * c_next, u)
            store(c, at + _THREE * c_next, v)
