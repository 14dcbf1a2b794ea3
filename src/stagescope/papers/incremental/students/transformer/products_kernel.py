"""Products of some rows with matrices whose sums stay in registers, and products that leave out units at rest.

A unit that ReLU has put to zero adds nothing: about half of them, and more as training goes on. BLAS multiplies them all.
A matrix is kept as stripes of its columns, one stripe after the other, so that a product reads neighbours: `LANES` columns for
products of all entries, STRIPE columns for those of active units.
"""

from typing import NamedTuple

import numpy as np
from numba import uintp

from stagescope.fields.lanes_kernel import LANES, add_product, load, multiply_add, spread, spread_from, store, total
from stagescope.kernels import njit

_OPTIONS = {"cache": True, "error_model": "numpy"}
STRIPE = 4 * LANES
"""Columns whose sums are in registers while the active units of a row pass."""
_NONE, _ONE, _FEW, _LANES, _STRIPE = uintp(0), uintp(1), uintp(4), uintp(LANES), uintp(STRIPE)
_TWO_LANES, _THREE_LANES = uintp(2 * LANES), uintp(3 * LANES)


class Active(NamedTuple):
    """Active units, row by row, and the rows of each unit.

    Those of row i are units[starts[i] : starts[i + 1]]; rows of unit k begin at rows[k x room], with room for all, and end at
    stops[k].
    """

    units: np.ndarray
    starts: np.ndarray
    rows: np.ndarray
    stops: np.ndarray


@njit(**_OPTIONS)
def active_room(rows, units):
    """Room for the active ones of some rows."""
    size = rows * units
    return Active(
        np.empty(size + 1, np.uint32), np.empty(rows + 1, np.int64), np.empty(size, np.uint32), np.empty(units, np.int64)
    )


@njit(**_OPTIONS)
def find_active(z, active):
    """Which units of each row are above zero, or no numbers."""
    count, units, found = z.shape[0], z.shape[1], 0
    room = active.rows.size // max(1, units)
    for k in range(units):
        active.stops[k] = k * room
    for i in range(count):
        active.starts[i] = found
        for k in range(units):
            active.units[found] = k
            found += not z[i, k] <= 0
        for n in range(active.starts[i], found):
            k = active.units[n]
            active.rows[active.stops[k]] = i
            active.stops[k] += 1
    active.starts[count] = found


@njit(**_OPTIONS)
def multiply(a, stripes, out):
    """out <- a b, where b is in stripes of `LANES` columns, the last of them filled up with zeros."""
    count, inner, columns, flat = uintp(a.shape[0]), uintp(a.shape[1]), uintp(out.shape[1]), out.reshape(-1)
    sizes, left, whole = (count, _LANES, _ONE, inner), (a, _NONE, inner, _NONE, _ONE), columns // _LANES * _LANES
    for column in range(_NONE, whole, _LANES):
        add_product(sizes, left, (stripes, column * inner, _LANES), (flat, column, columns), True)
    if whole < columns <= whole + _FEW and inner % _LANES == _NONE:
        _multiply_few(a, stripes, whole, out)
    elif whole < columns:
        rest = np.empty(count * _LANES, out.dtype)
        add_product(sizes, left, (stripes, whole * inner, _LANES), (rest, _NONE, _LANES), True)
        for i in range(count):
            for column in range(whole, columns):
                out[i, column] = rest[i * _LANES + column - whole]


@njit(**_OPTIONS)
def _multiply_few(a, stripes, whole, out):
    """The columns after whole stripes, by products of rows: a stripe of zeros would cost as much as a full one."""
    inner, column = uintp(a.shape[1]), np.empty(a.shape[1], a.dtype)
    for c in range(whole, uintp(out.shape[1])):
        for k in range(inner):
            column[k] = stripes[whole * inner + k * _LANES + c - whole]
        for i in range(uintp(a.shape[0])):
            sums = spread(out.dtype.type(0))
            for k in range(_NONE, inner, _LANES):
                sums = multiply_add(load(a, i * inner + k), load(column, k), sums)
            out[i, c] = total(sums)


@njit(**_OPTIONS)
def add_outer(a, b, sums):
    """sums += a^T b, in stripes of `LANES` columns; rows of b are whole lanes."""
    count, rows, columns = uintp(a.shape[0]), uintp(a.shape[1]), uintp(b.shape[1])
    near = np.empty(count * _LANES, b.dtype)
    for column in range(_NONE, columns, _LANES):
        for i in range(count):
            store(near, i * _LANES, load(b, i * columns + column))
        sizes, left = (rows, _LANES, _ONE, count), (a, _NONE, _ONE, _NONE, rows)
        add_product(sizes, left, (near, _NONE, _LANES), (sums, column * rows, _LANES), False)


@njit(**_OPTIONS)
def _add_lanes(a, place, step, listed, first, last, b, b_place, out, target, fresh):
    """`LANES` numbers of out, from the target on, += sum over listed n of a[place + n step] b[b_place + n], or = where fresh."""
    x = spread(out.dtype.type(0)) if fresh else load(out, target)
    for n in range(first, last):
        number = uintp(listed[n])
        x = multiply_add(spread_from(a, place + number * step), load(b, b_place + number * _LANES), x)
    store(out, target, x)


@njit(**_OPTIONS)
def _add_stripe(a, place, step, listed, first, last, b, b_place, out, target, fresh):
    """The same for STRIPE numbers at once."""
    second, third, fourth = target + _LANES, target + _TWO_LANES, target + _THREE_LANES
    if fresh:
        x = y = u = v = spread(out.dtype.type(0))
    else:
        x, y, u, v = load(out, target), load(out, second), load(out, third), load(out, fourth)
    for n in range(first, last):
        number = uintp(listed[n])
        factor, here = spread_from(a, place + number * step), b_place + number * _STRIPE
        x = multiply_add(factor, load(b, here), x)
        y = multiply_add(factor, load(b, here + _LANES), y)
        u = multiply_add(factor, load(b, here + _TWO_LANES), u)
        v = multiply_add(factor, load(b, here + _THREE_LANES), v)
    store(out, target, x)
    store(out, second, y)
    store(out, third, u)
    store(out, fourth, v)


@njit(**_OPTIONS)
def multiply_active(z, active, stripes, out):
    """out <- z b with active units only, where b is in stripes of STRIPE columns, and of `LANES` columns at its end."""
    count, units, columns = uintp(z.shape[0]), uintp(z.shape[1]), uintp(out.shape[1])
    whole, listed = columns // _STRIPE * _STRIPE, active.units
    for i in range(count):
        first, last = uintp(active.starts[i]), uintp(active.starts[i + _ONE])
        for column in range(whole, columns, _LANES):
            _add_lanes(z, i * units, _ONE, listed, first, last, stripes, column * units, out, i * columns + column, True)
    for column in range(_NONE, whole, _STRIPE):
        for i in range(count):
            first, last = uintp(active.starts[i]), uintp(active.starts[i + _ONE])
            _add_stripe(z, i * units, _ONE, listed, first, last, stripes, column * units, out, i * columns + column, True)


@njit(**_OPTIONS)
def add_outer_active(z, active, b, sums):
    """sums += z^T b with active units only, in such stripes."""
    count, units, columns = uintp(z.shape[0]), uintp(z.shape[1]), uintp(b.shape[1])
    room, near = uintp(active.rows.size) // units, np.empty(count * _STRIPE, b.dtype)
    whole, column = columns // _STRIPE * _STRIPE, _NONE
    while column < columns:
        size = _STRIPE if column < whole else _LANES
        for i in range(count):
            for lane in range(_NONE, size, _LANES):
                store(near, i * size + lane, load(b, i * columns + column + lane))
        for k in range(units):
            first, last, target = k * room, uintp(active.stops[k]), column * units + k * size
            if size == _STRIPE:
                _add_stripe(z, k, units, active.rows, first, last, near, _NONE, sums, target, False)
            else:
                _add_lanes(z, k, units, active.rows, first, last, near, _NONE, sums, target, False)
        column += size
