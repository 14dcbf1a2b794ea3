"""Numba kernel of the focus-dilution loss on contexts of a text, with its gradient [FD:text-counts].

A context enters only through its counts n and its last token i: attention is a ~ n exp(Phi_i), features are a W0, logits are
features W1. Attention is zero on types that are absent, so everything between scores and features, forward and backward, is on
the support of a context: rows of W0 are gathered by type. Only the output is over all types.
"""

from typing import NamedTuple

import numpy as np
from numba import uintp

from stagescope.fields.exp_kernel import exp_number
from stagescope.fields.lanes_kernel import LANES, load, multiply_add, plus, spread, spread_from, store, total
from stagescope.kernels import njit
from stagescope.papers.focus_dilution.text.output_kernel import FLOOR, ROWS, clear, dot, fold, output

_NONE, _ONE, _TWO, _THREE, _FOUR, _LANES = (uintp(k) for k in (0, 1, 2, 3, 4, LANES))


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
        for at in range(uintp(starts[row]), stop):
            token = uintp(tokens[at])
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
    found = attention.dtype.type(0)
    for s in range(lo, hi):
        value = attention[s] - top
        attention[s] = counts[s] * exp_number(attention.dtype.type(FLOOR) if value < FLOOR else value)
        found += attention[s]
    factor = 1 / found
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
        found, first = spread(out.dtype.type(0)), types[s] * wide
        for c in range(_NONE, wide, _LANES):
            found = multiply_add(load(query, place + c), load(key, first + c), found)
        out[s] = total(found)
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
        own, found = load(query, place + c), load(d_query, place + c)
        for s in range(lo, hi):
            at, weight = types[s] * wide + c, spread_from(pulls, s)
            found = multiply_add(weight, load(key, at), found)
            store(d_key, at, multiply_add(weight, own, load(d_key, at)))
        store(d_query, place + c, found)


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
