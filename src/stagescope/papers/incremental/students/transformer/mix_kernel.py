"""Attention of single sequences as tiles of registers: what BLAS is slow at, because each sequence has rows of its own.

Weights are (sequence, row, head, place), where places beyond the positions, and those that a row does not see, weigh nothing.
Values are looked up in the table of pairs, and their gradients are added there. A group that goes over the end has its last row
several times: it is computed again, and stored with the same result.
"""

import numpy as np

from stagescope.fields.lanes_kernel import LANES, load, multiply_add, prefetch, spread, spread_from, store, total
from stagescope.kernels import njit
from stagescope.papers.incremental.students.transformer.scores_kernel import back_attention

_OPTIONS = {"cache": True, "error_model": "numpy"}
GROUP = 5
"""Rows of a tile: two registers of each are ten sums, and a processor needs eight under way."""


@njit(**_OPTIONS)
def _group(first, last, step, place):
    """Places of rows first, first + 1, .., none beyond the last."""
    return (
        place + first * step,
        place + min(first + 1, last) * step,
        place + min(first + 2, last) * step,
        place + min(first + 3, last) * step,
        place + min(first + 4, last) * step,
    )


@njit(**_OPTIONS)
def _add_tile(counts, a, lines, a_outer, a_inner, b, row, b_outer, b_inner, out, targets, column, fresh):
    """out[targets[i] + column] += sum_(o, k) a[lines[i], o, k] b[row, o, k], or = where it is fresh; a row is one of `LANES`."""
    i, j, k, m, n = targets
    if fresh:
        v = w = x = y = z = spread(out.dtype.type(0))
    else:
        v, w, x = load(out, i + column), load(out, j + column), load(out, k + column)
        y, z = load(out, m + column), load(out, n + column)
    for o in range(counts[0]):
        here, step = row + o * b_outer, o * a_outer
        p, q, r, s, t = lines[0] + step, lines[1] + step, lines[2] + step, lines[3] + step, lines[4] + step
        for _ in range(counts[1]):
            lanes = load(b, here)
            v = multiply_add(spread_from(a, p), lanes, v)
            w = multiply_add(spread_from(a, q), lanes, w)
            x = multiply_add(spread_from(a, r), lanes, x)
            y = multiply_add(spread_from(a, s), lanes, y)
            z = multiply_add(spread_from(a, t), lanes, z)
            here, p, q, r, s, t = here + b_inner, p + a_inner, q + a_inner, r + a_inner, s + a_inner, t + a_inner
    store(out, i + column, v)
    store(out, j + column, w)
    store(out, k + column, x)
    store(out, m + column, y)
    store(out, n + column, z)


@njit(**_OPTIONS)
def mix_values(weights, values, at, out):
    """out[c, r] <- sum_h sum_s weights[c, r, h, s] values[h, at[c, s]]."""
    count, rows, heads, span = weights.shape
    positions, pairs, wide = at.shape[1], values.shape[1], values.shape[2]
    first, panel = positions - rows, heads * positions * LANES
    near = np.empty(wide * heads * positions, out.dtype)  # by stretches of the width, so that a tile reads neighbours
    for c in range(count):
        for h in range(heads):
            for s in range(positions):
                here, there = (h * positions + s) * LANES, (h * pairs + at[c, s]) * wide
                for _ in range(wide // LANES):
                    store(near, here, load(values, there))
                    here, there = here + panel, there + LANES
        for r in range(0, rows, GROUP):
            lines = _group(r, rows - 1, heads * span, c * rows * heads * span)
            targets = _group(r, rows - 1, wide, c * rows * wide)
            counts = (heads, first + min(r + GROUP, rows))
            for column in range(0, wide, LANES):
                here = column // LANES * panel
                _add_tile(counts, weights, lines, span, 1, near, here, positions * LANES, LANES, out, targets, column, True)


@njit(**_OPTIONS)
def add_value_gradients(weights, g, at, d_values):
    """d_values[h, at[c, s]] += sum_r weights[c, r, h, s] g[c, r]."""
    count, rows, heads, span = weights.shape
    positions, pairs, wide = at.shape[1], d_values.shape[1], d_values.shape[2]
    first, last = positions - rows, positions - 1
    for c in range(count):
        for h in range(heads):
            for s in range(0, positions, GROUP):
                r = max(0, s - first)  # the first row that sees it
                lines = _group(s, last, 1, ((c * rows + r) * heads + h) * span)
                targets = (
                    (h * pairs + at[c, s]) * wide,
                    (h * pairs + at[c, min(s + 1, last)]) * wide,
                    (h * pairs + at[c, min(s + 2, last)]) * wide,
                    (h * pairs + at[c, min(s + 3, last)]) * wide,
                    (h * pairs + at[c, min(s + 4, last)]) * wide,
                )
                for column in range(0, wide, LANES):
                    if s + GROUP < positions:
                        for i in range(GROUP):
                            prefetch(d_values, (h * pairs + at[c, min(s + GROUP + i, last)]) * wide + column)
                    here, counts = (c * rows + r) * wide + column, (1, rows - r)
                    _add_tile(counts, weights, lines, 0, heads * span, g, here, 0, wide, d_values, targets, column, False)


@njit(**_OPTIONS)
def score_gradients(g, values, at, weights):
    """Weights <- gradients in the scores, from those in the weights: g[c, r] . values[h, at[c, s]]."""
    count, rows, heads, span = weights.shape
    d = np.zeros((rows, heads, span), weights.dtype)  # of one sequence; anything for some positions that a row does not see
    positions, pairs, wide = at.shape[1], values.shape[1], values.shape[2]
    first, last, nothing = positions - rows, positions - 1, spread(g.dtype.type(0))
    for c in range(count):
        for h in range(heads):
            for s in range(0, positions, 3):
                i, j = min(s + 1, last), min(s + 2, last)
                for n in range(s + 3, min(s + 6, positions)):
                    for column in range(0, wide, LANES):
                        prefetch(values, (h * pairs + at[c, n]) * wide + column)
                for r in range(max(0, s - first), rows, 2):
                    one, two, top = (c * rows + r) * wide, (c * rows + min(r + 1, rows - 1)) * wide, h * pairs
                    x, y, z = (top + at[c, s]) * wide, (top + at[c, i]) * wide, (top + at[c, j]) * wide
                    xx = xy = xz = yx = yy = yz = nothing
                    for _ in range(wide // LANES):
                        a, b, p, q, t = load(g, one), load(g, two), load(values, x), load(values, y), load(values, z)
                        xx, xy, xz = multiply_add(a, p, xx), multiply_add(a, q, xy), multiply_add(a, t, xz)
                        yx, yy, yz = multiply_add(b, p, yx), multiply_add(b, q, yy), multiply_add(b, t, yz)
                        one, two, x, y, z = one + LANES, two + LANES, x + LANES, y + LANES, z + LANES
                    here, there = d[r, h], d[min(r + 1, rows - 1), h]
                    here[s], here[i], here[j] = total(xx), total(xy), total(xz)
                    there[s], there[i], there[j] = total(yx), total(yy), total(yz)
        for r in range(rows):
            for h in range(heads):
                back_attention(weights[c, r, h], d[r, h], first + r + 1, weights[c, r, h])
