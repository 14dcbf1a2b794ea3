"""Numba kernel of the focus-dilution loss on contexts of a text, with its gradient [FD:text-counts].

A context enters only through its counts n and its last token i: attention is a ~ n exp(Phi_i), features are a W0, logits are
features W1. Attention is zero on types that are absent, so everything between scores and features, forward and backward, is on
the support of a context: rows of W0 are gathered by type. Only the output is over all types.
"""

from typing import NamedTuple

import numpy as np
from numba import uintp

from stagescope.core.memory import require_memory
from stagescope.core.params import Params
from stagescope.flow.exp_kernel import exp_number
from stagescope.flow.field import Found
from stagescope.flow.kernels import njit
from stagescope.flow.lanes_kernel import (
    GROUP,
    LANES,
    add_product,
    larger,
    largest,
    load,
    multiply_add,
    padded,
    plus,
    spread,
    spread_from,
    store,
    total,
)
from stagescope.papers.focus_dilution.loss import BLOCKS
from stagescope.papers.focus_dilution.model import TokenAttention

# Numba kernel of an output over all types: features -> logits -> loss of a target, and back. Types are in panels of 16.
#
# Some contexts and some panels at a time are multiplied, so that what is made of them stays in the nearest caches.

ROWS, PANELS = 128, 8
"""Contexts and panels of one product: 128 x 8 x 16 powers in float32 take 64 KiB."""
FLOOR = np.float32(-60.0)
"""Powers stop at e^-60, so that no product of them in float32 is a denormal number, which are slow."""
SAFE = 50.0**2
"""Logits whose square is below this need no shift: their powers neither overflow nor reach the floor."""
_NONE, _ONE, _TWO, _THREE, _FOUR, _LANES = (uintp(k) for k in (0, 1, 2, 3, 4, LANES))


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
    product = x.dtype.type(0)
    for k in range(x.size):
        product += x[k] * y[k]
    return product


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
    count, full_panels, powers = uintp(len(space.panels)), vocab // _LANES, space.powers
    _logits(_NONE, count, full, space)
    for row in range(full):
        highest = spread(powers.dtype.type(-np.inf))
        for p in range(full_panels):
            highest = larger(load(powers, (p * full + row) * _LANES), highest)
        tops[row] = largest(highest)
        for lane in range(vocab % _LANES):
            tops[row] = max(tops[row], powers[(full_panels * full + row) * _LANES + lane])
        for p in range(count):
            place = (p * full + row) * _LANES
            store(powers, place, plus(load(powers, place), spread(-tops[row])))


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
        lanes = spread(powers.dtype.type(0))
        for p in range(start, stop):
            lanes = plus(load(powers, (p * full + row) * _LANES), lanes)
        sums[row] += total(lanes)


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
        row_features, y, factor = space.features[row], target[row], share / sums[row]
        loss += np.log(sums[row]) + tops[row] - dot(row_features, w1[y])
        for k in range(wide):
            space.scaled[row, k] = factor * row_features[k]
            slopes[row, k] = factor * slopes[row, k] - share * w1[y, k]
            d_w1[y, k] -= share * row_features[k]
    clear(space.scaled, uintp(target.size))
    for p in range(count):
        left, right = (space.powers, p * size, _ONE, _NONE, _LANES), (space.scaled, _NONE, wide)
        add_product((_LANES, wide, _ONE, full), left, right, (d_w1, p * _LANES * wide, wide), False)
    return loss


class Supports(NamedTuple):
    """Contexts by their supports: `types` and `counts` of context r are at begins[r] .. begins[r + 1]; (R,) query and target.

    `attention` is room for as many numbers.
    """

    begins: np.ndarray
    types: np.ndarray
    counts: np.ndarray
    attention: np.ndarray
    query: np.ndarray
    target: np.ndarray


class Blocks(NamedTuple):
    """W0, W1^T, queries and keys by type (d, .), and Phi (d, d) or nothing; or the derivatives in them.

    Rows are padded with zeros to whole lanes, and W1^T to whole panels. Queries and keys are used only where there is no Phi.
    """

    w0: np.ndarray
    w1: np.ndarray
    query: np.ndarray
    key: np.ndarray
    scores: np.ndarray


@njit(cache=True)
def count_supports(tokens, starts, stops, tally, rows):
    """Context r is tokens[starts[r]:stops[r]]; its last token is the query, the token after it the target.

    `tally` (d,) is room for the counts of one context, zero before and after. A type is put down when it comes first.
    """
    begins, types, counts, _, query, target = rows
    place = _NONE
    for row in range(starts.size):
        first, stop = place, uintp(stops[row])
        for position in range(uintp(starts[row]), stop):
            token = uintp(tokens[position])
            types[place] = token
            place += uintp(tally[token] == 0)
            tally[token] += 1
        for s in range(first, place):
            counts[s] = tally[uintp(types[s])]
            tally[uintp(types[s])] = 0
        begins[row + 1], query[row], target[row] = place, tokens[stop - _ONE], tokens[stop]


@njit(cache=True, fastmath={"contract", "reassoc"})
def _weigh(lo, hi, counts, top, attention):
    """Scores at lo .. hi of `attention` <- counts exp(scores - top), over their sum."""
    mass = attention.dtype.type(0)
    for s in range(lo, hi):
        value = attention[s] - top
        attention[s] = counts[s] * exp_number(attention.dtype.type(FLOOR) if value < FLOOR else value)
        mass += attention[s]
    factor = 1 / mass
    for s in range(lo, hi):
        attention[s] *= factor


@njit(cache=True)
def _gather(lo, hi, types, table, place, out):
    """out_s <- table[types_s], of a row of a table that begins at a place; returns the largest."""
    top = out.dtype.type(-np.inf)
    for s in range(lo, hi):
        out[s] = table[place + types[s]]
        top = max(top, out[s])
    return top


@njit(cache=True)
def _score(lo, hi, types, query, place, key, out):
    """out_s <- query . key[types_s], of the query at a place of an array; returns the largest."""
    wide, top = uintp(key.shape[1]), out.dtype.type(-np.inf)
    for s in range(lo, hi):
        lanes, first = spread(out.dtype.type(0)), types[s] * wide
        for c in range(_NONE, wide, _LANES):
            lanes = multiply_add(load(query, place + c), load(key, first + c), lanes)
        out[s] = total(lanes)
        top = max(top, out[s])
    return top


@njit(cache=True)
def _mix(lo, hi, weights, types, table, out, place):
    """out[place:] <- sum_s weights_s table[types_s], in four sums side by side."""
    wide = uintp(table.shape[1])
    for c in range(_NONE, wide, _LANES):
        a = b = x = y = spread(weights.dtype.type(0))
        s = lo
        while s + _FOUR <= hi:
            a = multiply_add(spread_from(weights, s), load(table, types[s] * wide + c), a)
            b = multiply_add(spread_from(weights, s + _ONE), load(table, types[s + _ONE] * wide + c), b)
            x = multiply_add(spread_from(weights, s + _TWO), load(table, types[s + _TWO] * wide + c), x)
            y = multiply_add(spread_from(weights, s + _THREE), load(table, types[s + _THREE] * wide + c), y)
            s += _FOUR
        while s < hi:
            a = multiply_add(spread_from(weights, s), load(table, types[s] * wide + c), a)
            s += _ONE
        store(out, place + c, plus(plus(a, b), plus(x, y)))


@njit(cache=True)
def _lead_back(lo, hi, weights, types, slopes, place, w0, d_w0, mean):
    """d_W0[types_s] += weights_s slope, weights_s <- weights_s (slope . W0[types_s] - mean), of the slope at a place; by twos."""
    wide, nothing, even = uintp(w0.shape[1]), spread(weights.dtype.type(0)), hi - ((hi - lo) & _ONE)
    for s in range(lo, even, _TWO):
        x = y = nothing
        a, b = types[s] * wide, types[s + _ONE] * wide
        u, v = spread_from(weights, s), spread_from(weights, s + _ONE)
        for c in range(_NONE, wide, _LANES):
            slope = load(slopes, place + c)
            x, y = multiply_add(slope, load(w0, a + c), x), multiply_add(slope, load(w0, b + c), y)
            store(d_w0, a + c, multiply_add(u, slope, load(d_w0, a + c)))
            store(d_w0, b + c, multiply_add(v, slope, load(d_w0, b + c)))
        weights[s] *= total(x) - mean
        weights[s + _ONE] *= total(y) - mean
    for s in range(even, hi):
        x, a, u = nothing, types[s] * wide, spread_from(weights, s)
        for c in range(_NONE, wide, _LANES):
            slope = load(slopes, place + c)
            x = multiply_add(slope, load(w0, a + c), x)
            store(d_w0, a + c, multiply_add(u, slope, load(d_w0, a + c)))
        weights[s] *= total(x) - mean


@njit(cache=True)
def _pull(lo, hi, pulls, types, query, place, key, d_query, d_key):
    """d_key[types_s] += pulls_s query, d_query += sum_s pulls_s key[types_s]; both queries are at a place of an array."""
    wide = uintp(key.shape[1])
    for c in range(_NONE, wide, _LANES):
        row_query, pulled = load(query, place + c), load(d_query, place + c)
        for s in range(lo, hi):
            start, weight = types[s] * wide + c, spread_from(pulls, s)
            pulled = multiply_add(weight, load(key, start), pulled)
            store(d_key, start, multiply_add(weight, row_query, load(d_key, start)))
        store(d_query, place + c, pulled)


@njit(cache=True, inline="always")
def _forward(rows, first, last, given, space):
    """Attention of some contexts on their supports, and their features."""
    (begins, types, counts, attention, query, _), (w0, _, queries, keys, scores) = rows, given
    features, table = space.features, scores.reshape(scores.size)
    wide, inner, vocab = uintp(w0.shape[1]), uintp(keys.shape[1]), uintp(len(scores))
    clear(features, last - first)
    for r in range(first, last):
        lo, hi, i = begins[r], begins[r + _ONE], uintp(query[r])
        if vocab:
            top = _gather(lo, hi, types, table, i * vocab, attention)
        else:
            top = _score(lo, hi, types, queries, i * inner, keys, attention)
        _weigh(lo, hi, counts, top, attention)
        _mix(lo, hi, attention, types, w0, features, (r - first) * wide)


@njit(cache=True, inline="always")
def _backward(rows, first, last, given, slopes, space):
    """From dL/d(features) to the derivatives in W0 (through the output alone), and in Phi or in queries and keys."""
    (begins, types, _, attention, query, _), (w0, _, queries, keys, _) = rows, given
    d_w0, _, d_query, d_key, d_scores = slopes
    table = d_scores.reshape(d_scores.size)
    wide, inner, vocab = uintp(w0.shape[1]), uintp(keys.shape[1]), uintp(len(d_scores))
    for r in range(first, last):
        lo, hi, i, row = begins[r], begins[r + _ONE], uintp(query[r]), r - first
        mean = dot(space.slopes[row], space.features[row])
        _lead_back(lo, hi, attention, types, space.slopes, row * wide, w0, d_w0, mean)
        if vocab:
            for s in range(lo, hi):
                table[i * vocab + types[s]] += attention[s]
        else:
            _pull(lo, hi, attention, types, queries, i * inner, keys, d_query, d_key)


@njit(cache=True)
def rows_gradient(rows, share, given, slopes, space):
    """`share` times the summed loss of contexts; its derivatives are added to `slopes`."""
    loss, count, vocab, steepest = 0.0, uintp(rows.query.size), uintp(len(given.w0)), 0.0
    for k in range(vocab):
        steepest = max(steepest, dot(given.w1[k], given.w1[k]))
    fold(given.w1, space.panels)
    for first in range(_NONE, count, uintp(ROWS)):
        last = min(first + uintp(ROWS), count)
        _forward(rows, first, last, given, space)
        loss += output(rows.target[first:last], vocab, share, given.w1, steepest, slopes.w1, space)
        _backward(rows, first, last, given, slopes, space)
    return share * loss


# Counts of the types that a context has, and the gradient from them: nothing of the size of contexts x types is ever made.

AT_ONCE = 4096
"""Contexts whose types are in memory at once."""
ENTRIES = 2**22
"""Types of all contexts that are in memory at once: 12 bytes for each."""


class Supported:
    """Counting and gradient of contexts of at most `length` tokens; a step has `step` of them.

    Where the table of all scores, Phi, has no more entries than the supports of a step may have, it is made. Else scores are made
    only between the query and the types of a context: at 10,000 types Phi would have 100 million entries, a batch needs 120,000.
    """

    def __init__(self, model: TokenAttention, precision: str, length: int, step: int) -> None:
        self.model, self.precision, self.longest = model, precision, min(length, model.vocab)
        self.at_once = min(AT_ONCE, max(1, ENTRIES // self.longest))
        self.table = model.vocab**2 <= step * self.longest
        self.room = self._room(0)
        self.tally = np.zeros(model.vocab, np.int32)
        self.given, self.slopes = self._blocks(), self._blocks()
        self.space = Space.of(self.given.w1, model.width)

    def _room(self, contexts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For the types of contexts, their counts and attention; one type more is written, but never kept."""
        require_memory("the types of all contexts at once", "choose a shorter --window", contexts, self.longest)
        size = contexts * self.longest
        return np.empty(size + 1, np.uint32), np.empty(size, self.precision), np.empty(size, self.precision)

    def _blocks(self) -> Blocks:
        (vocab, width), inner = self.model.shapes["W0"], self.model.shapes["WQ"][1]
        wide, table = padded(width), vocab if self.table else 0
        shapes = (vocab, wide), (padded(vocab), wide), (vocab, padded(inner)), (vocab, padded(inner)), (table, table)
        return Blocks(*(np.zeros(shape, self.precision) for shape in shapes))

    def count(self, tokens: np.ndarray, begin: np.ndarray, end: np.ndarray) -> Supports:
        """The contexts tokens[begin:end], in room that the next call uses again."""
        if len(begin) * self.longest > self.room[1].size:
            self.room = self._room(len(begin))
        query, target = (np.empty(len(begin), np.int64) for _ in range(2))
        supports = Supports(np.zeros(len(begin) + 1, np.uint64), *self.room, query, target)
        count_supports(tokens, begin, end, self.tally, supports)
        return supports

    def gradient(self, params: Params, rows: Supports) -> Found:
        """The kernel's derivatives, taken back to the four blocks; all on rows padded with zeros."""
        blocks, slopes, scale = self.given, self.slopes, self.given.w0.dtype.type(self.model.scale)
        wq, wk = (np.zeros((blocks.w0.shape[1], blocks.key.shape[1]), self.precision) for _ in range(2))
        for name, room in zip(BLOCKS, (blocks.w0, blocks.w1.T, wq, wk), strict=True):
            room[tuple(map(slice, params[name].shape))] = params[name]
        np.matmul(blocks.w0, wq, out=blocks.query)
        np.matmul(blocks.w0, wk, out=blocks.key)
        blocks.key[:] *= scale
        if self.table:
            np.matmul(blocks.query, blocks.key.T, out=blocks.scores)
        for block in slopes:
            block.fill(0)
        loss = rows_gradient(rows, scale.dtype.type(1 / len(rows.query)), blocks, slopes, self.space)
        if self.table:
            np.matmul(slopes.scores, blocks.key, out=slopes.query)
            np.matmul(slopes.scores.T, blocks.query, out=slopes.key)
        slopes.key[:] *= scale
        gradient = {"W0": slopes.w0, "W1": slopes.w1.T, "WQ": blocks.w0.T @ slopes.query, "WK": blocks.w0.T @ slopes.key}
        for pulled, weights in ((slopes.query, wq), (slopes.key, wk)):
            gradient["W0"] += np.matmul(pulled, weights.T, out=blocks.w0)
        return loss, {name: gradient[name][tuple(map(slice, params[name].shape))].astype(float) for name in params}
