"""Numba loops from scores to attention and back, on arrays (sequence, row, head, place); the last row sees every position.

Places that a row does not see, and those beyond the positions, get no attention. There are whole `LANES` of places, so that
loops over them have no rest.
"""

import numpy as np
from numba import uintp

from stagescope.fields.exp_kernel import exp_number
from stagescope.fields.lanes_kernel import (
    LANES,
    first_lanes,
    larger,
    largest,
    load,
    multiply_add,
    plus,
    prefetch,
    spread,
    store,
    total,
)
from stagescope.kernels import njit

_OPTIONS = {"cache": True, "fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy"}


@njit(**_OPTIONS)
def _attention(lines, seen, low, room):
    """Scores (head, place) <- attention; none is taken as lower than `low` below the largest.

    One step of all heads comes before the next: a processor does several lines at once, but waits for the sum of one.
    """
    none = spread(lines.dtype.type(0))
    for h in range(lines.shape[0]):
        line = lines[h]
        most = spread(line[0])
        for s in range(0, line.size, LANES):
            scores = first_lanes(load(line, s), seen - s, spread(line[0]))
            most = larger(scores, most)
            store(line, s, scores)
        room[h] = largest(most)
    for h in range(lines.shape[0]):
        line, top = lines[h], room[h]
        for first in range(uintp(0), uintp(line.size), uintp(LANES)):
            for s in range(uintp(LANES)):
                line[first + s] = exp_number(max(line[first + s] - top, low))
    for h in range(lines.shape[0]):
        line, sums = lines[h], none
        for s in range(0, line.size, LANES):
            powers = first_lanes(load(line, s), seen - s, none)
            store(line, s, powers)
            sums = plus(sums, powers)
        room[h] = lines.dtype.type(1) / total(sums)
    for h in range(lines.shape[0]):
        line, share = lines[h], spread(room[h])
        for s in range(0, line.size, LANES):
            store(line, s, multiply_add(load(line, s), share, none))


@njit(**_OPTIONS)
def back_attention(old, line, seen, out):
    """out <- old (line - mean of line by old): from the gradient in attention to that in scores. It may be one of both."""
    none = spread(line.dtype.type(0))
    sums = none
    for s in range(0, line.size, LANES):
        sums = multiply_add(load(old, s), load(line, s), sums)
    mean = spread(-total(sums))
    for s in range(0, line.size, LANES):
        store(out, s, multiply_add(load(old, s), plus(load(line, s), mean), none))
    for s in range(seen, line.size):
        out[s] = 0  # not what is no number times zero, which the next pass would find here


@njit(**_OPTIONS)
def attend(scores, positions, low):
    """Scores <- attention."""
    first, room = positions - scores.shape[1], np.empty(scores.shape[2], scores.dtype)
    for c in range(scores.shape[0]):
        for r in range(scores.shape[1]):
            _attention(scores[c, r], first + r + 1, low, room)


@njit(**_OPTIONS)
def back_attend(weights, positions, d):
    """d, the gradient in attention, <- that in scores."""
    first = positions - d.shape[1]
    for c in range(d.shape[0]):
        for r in range(d.shape[1]):
            for h in range(d.shape[2]):
                back_attention(weights[c, r, h], d[c, r, h], first + r + 1, d[c, r, h])


@njit(**_OPTIONS)
def _prefetch(table, h, r, at, c):
    """Ask for the scores of the next sequence."""
    if c + 1 < at.shape[0]:
        first, pairs = at.shape[1] - table.shape[1], table.shape[3]
        asks = at[c + 1, first + r] - (first + r) * table.shape[2]
        place = ((h * table.shape[1] + r) * table.shape[2] + asks) * pairs
        for s in range(first + r + 1):
            prefetch(table, place + at[c + 1, s])


@njit(**_OPTIONS)
def attend_pairs(table, at, low, weights):
    """Attention from scores table[h, r, token that asks, at[c, s]], where `at` is position x vocab + token.

    Rows come first, so that the part of the table that is looked at stays in the cache.
    """
    first, vocab, room = at.shape[1] - weights.shape[1], table.shape[2], np.empty(weights.shape[2], weights.dtype)
    for r in range(weights.shape[1]):
        for c in range(weights.shape[0]):
            asks = at[c, first + r] - (first + r) * vocab
            for h in range(weights.shape[2]):
                line, found = weights[c, r, h], table[h, r, asks]
                _prefetch(table, h, r, at, c)
                for s in range(first + r + 1):
                    line[s] = found[uintp(at[c, s])]
            _attention(weights[c, r], first + r + 1, low, room)


@njit(**_OPTIONS)
def add_scores(d, at, d_table):
    """Back through the look-up of `attend_pairs`: gradients d in scores are added to d_table."""
    first, vocab = at.shape[1] - d.shape[1], d_table.shape[2]
    for r in range(d.shape[1]):
        for c in range(d.shape[0]):
            asks = at[c, first + r] - (first + r) * vocab
            for h in range(d.shape[2]):
                line, found = d[c, r, h], d_table[h, r, asks]
                _prefetch(d_table, h, r, at, c)
                for s in range(first + r + 1):
                    found[uintp(at[c, s])] += line[s]
