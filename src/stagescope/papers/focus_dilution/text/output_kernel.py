"""Numba kernel of an output over all types: features -> logits -> loss of a target, and back. Types are in panels of 16.

Some contexts and some panels at a time are multiplied, so that what is made of them stays in the nearest caches.
"""

from typing import NamedTuple

import numpy as np
from numba import uintp

from stagescope.fields.exp_kernel import exp_number
from stagescope.fields.lanes_kernel import GROUP, LANES, add_product, larger, largest, load, plus, spread, store, total
from stagescope.kernels import njit

ROWS, PANELS = 128, 8
"""Contexts and panels of one product: 128 x 8 x 16 powers in float32 take 64 KiB."""
FLOOR = np.float32(-60.0)
"""Powers stop at e^-60, so that no product of them in float32 is a denormal number, which are slow."""
SAFE = 50.0**2
"""Logits whose square is below this need no shift: their powers neither overflow nor reach the floor."""
_NONE, _ONE, _THREE, _LANES = uintp(0), uintp(1), uintp(3), uintp(LANES)


class Space(NamedTuple):
    """Room for a pass: made once, because fresh memory costs more than what is done with it."""

    features: np.ndarray
    scaled: np.ndarray
    slopes: np.ndarray
    panels: np.ndarray
    powers: np.ndarray

    @classmethod
    def of(cls, w1: np.ndarray, width: int) -> "Space":
        types, wide = w1.shape
        shapes = *[(ROWS, wide)] * 3, (types // LANES, width, LANES), (ROWS * types,)
        return cls(*(np.zeros(shape, dtype=w1.dtype) for shape in shapes))


@njit(cache=True, fastmath={"contract", "reassoc"})
def dot(x, y):
    found = x.dtype.type(0)
    for k in range(x.size):
        found += x[k] * y[k]
    return found


@njit(cache=True, inline="always")
def clear(rows, first):
    """Rows from `first` on to the end of a group become zero: they are multiplied, but stand for no context."""
    for row in range(first, uintp(min(len(rows), first + _THREE))):
        for c in range(_NONE, uintp(rows.shape[1]), _LANES):
            store(rows, row * uintp(rows.shape[1]) + c, spread(rows.dtype.type(0)))


@njit(cache=True, inline="always")
def fold(w1, panels):
    """W1^T (d, .) as panels (d/16, m, 16)."""
    for p in range(panels.shape[0]):
        for lane in range(LANES):
            for k in range(panels.shape[1]):
                panels[p, k, lane] = w1[p * LANES + lane, k]


@njit(cache=True, inline="always")
def _logits(start, stop, full, space):
    """The logits of `full` contexts in some panels, put into the room for their powers."""
    width, wide, size = uintp(space.panels.shape[1]), uintp(space.features.shape[1]), full * _LANES
    for p in range(start, stop):
        left, right = (space.features, _NONE, wide, _NONE, _ONE), (space.panels, p * width * _LANES, _LANES)
        add_product((full, _LANES, _ONE, width), left, right, (space.powers, p * size, _LANES), True)


@njit(cache=True, inline="always")
def _shift(vocab, full, space, tops):
    """All logits, less the largest of each context, which are put into `tops`."""
    count, whole, powers = uintp(len(space.panels)), vocab // _LANES, space.powers
    _logits(_NONE, count, full, space)
    for row in range(full):
        found = spread(powers.dtype.type(-np.inf))
        for p in range(whole):
            found = larger(load(powers, (p * full + row) * _LANES), found)
        tops[row] = largest(found)
        for lane in range(vocab % _LANES):
            tops[row] = max(tops[row], powers[(whole * full + row) * _LANES + lane])
        for p in range(count):
            at = (p * full + row) * _LANES
            store(powers, at, plus(load(powers, at), spread(-tops[row])))


@njit(cache=True, fastmath={"contract"})
def _raise(x):
    """x <- exp(x), not below e^-60."""
    for j in range(x.size):
        x[j] = exp_number(x.dtype.type(FLOOR) if x[j] < FLOOR else x[j])


@njit(cache=True)
def _sum(powers, start, stop, sums):
    """sums += powers of some panels."""
    full = uintp(sums.size)
    for row in range(full):
        found = spread(powers.dtype.type(0))
        for p in range(start, stop):
            found = plus(load(powers, (p * full + row) * _LANES), found)
        sums[row] += total(found)


@njit(cache=True, inline="always")
def _exponentials(vocab, start, stop, sums, powers):
    """Logits of some panels become powers, which are summed; those of no type become zero."""
    full = uintp(sums.size)
    _raise(powers[start * full * _LANES : stop * full * _LANES])
    if stop * _LANES > vocab:
        for row in range((stop - _ONE) * full, stop * full):
            for lane in range(vocab % _LANES, _LANES):
                powers[row * _LANES + lane] = 0
    _sum(powers, start, stop, sums)


@njit(cache=True, inline="always")
def output(target, vocab, share, w1, steepest, d_w1, space):
    """Summed loss of some contexts; leaves dL/d(features) in `space.slopes`, adds dL/dW1^T. `steepest` is max_k |W1_k|^2."""
    full, wide, count = uintp((target.size + GROUP - 1) // GROUP * GROUP), uintp(w1.shape[1]), uintp(len(space.panels))
    size, widest, loss, slopes = full * _LANES, 0.0, 0.0, space.slopes
    for row in range(target.size):
        widest = max(widest, dot(space.features[row], space.features[row]))
    safe, sums, tops = widest * steepest < SAFE, np.zeros(full, w1.dtype), np.zeros(full, w1.dtype)
    if not safe:
        _shift(vocab, full, space, tops)
    for start in range(_NONE, count, uintp(PANELS)):
        stop = min(start + uintp(PANELS), count)
        if safe:
            _logits(start, stop, full, space)
        _exponentials(vocab, start, stop, sums, space.powers)
        left, right = (space.powers, start * size, _LANES, size, _ONE), (w1, start * _LANES * wide, wide)
        add_product((full, wide, stop - start, _LANES), left, right, (slopes, _NONE, wide), start == 0)
    for row in range(target.size):
        own, y, factor = space.features[row], target[row], share / sums[row]
        loss += np.log(sums[row]) + tops[row] - dot(own, w1[y])
        for k in range(wide):
            space.scaled[row, k] = factor * own[k]
            slopes[row, k] = factor * slopes[row, k] - share * w1[y, k]
            d_w1[y, k] -= share * own[k]
    clear(space.scaled, uintp(target.size))
    for p in range(count):
        left, right = (space.powers, p * size, _ONE, _NONE, _LANES), (space.scaled, _NONE, wide)
        add_product((_LANES, wide, _ONE, full), left, right, (d_w1, p * _LANES * wide, wide), False)
    return loss
