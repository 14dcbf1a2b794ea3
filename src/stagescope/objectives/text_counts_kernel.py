"""Numba kernel of the focus-dilution loss on contexts of a text, with its gradient in W0, W1 and Phi [FD:text-counts].

A context is a span of the text. It enters only through its counts n and its last token i: A = n e / (n . e) with
e_j = exp(Phi_ij - max_j Phi_ij), features A W0, logits A W0 W1. Most types are absent from a context, so what stands before the
features touches present ones alone; the products with W1 are BLAS's, some rows at a time. Contexts come sorted by their query:
its e is made once, and with T_j the sum of A_j dL/d(features) over its rows, dL/dPhi_ij = T_j . W0_j - sum A_j (features . dL/d).
"""

import math

import numpy as np
from numba import njit, types
from numba.extending import overload

_FAST = {"contract", "reassoc"}
ROWS = 64
FLOOR = np.float32(-60.0)
"""Powers in float32 stop at e^-60, so that no product of them is a denormal number, which are slow."""
LEAST = 1e-16
"""Where n . e is below this, what stopped there may count: the context is shifted by its own largest score."""
_WIDE = 16
_SHIFT = np.float32(12582912.0)  # 1.5 x 2^23: adding it rounds to an integer, kept in the low bits
_LOG2E, _LN2_HIGH, _LN2_LOW = np.float32(1.4426950408889634), np.float32(0.693359375), np.float32(-2.1219444005469057e-4)
_ONE = np.float32(1.0)
_C2, _C3, _C4, _C5, _C6, _C7 = (np.float32(1.0 / math.factorial(k)) for k in range(2, 8))


@njit(cache=True)
def _largest(x, tops):
    """The maximum, in many chains side by side, because compilers do not vectorise a single one."""
    whole = x.size - x.size % _WIDE
    tops[:] = x[0]
    for j in range(0, whole, _WIDE):
        for lane in range(_WIDE):
            tops[lane] = x[j + lane] if x[j + lane] > tops[lane] else tops[lane]
    top = x[0]
    for j in range(whole, x.size):
        top = max(top, x[j])
    for lane in range(_WIDE):
        top = max(top, tops[lane])
    return top


def _powers(x, top, work):
    """x <- exp(x - top), in float32 not below e^-60."""
    raise NotImplementedError("only inside compiled code")


@overload(_powers)
def _powers_for(x, top, work):
    if x.dtype != types.float32:

        def exact(x, top, work):
            for j in range(x.size):
                x[j] = np.exp(x[j] - top)

        return exact

    def single(x, top, work):
        """exp(v) = 2^k e^r with |r| <= ln(2)/2: Taylor to degree 7 (relative error below 1e-8), k added to the exponent bits."""
        exponents, rounded = x.view(np.int32), work.view(np.int32)
        for j in range(x.size):
            value = max(x[j] - top, FLOOR)
            work[j] = value * _LOG2E + _SHIFT
            k = work[j] - _SHIFT
            r = (value - k * _LN2_HIGH) - k * _LN2_LOW
            r2 = r * r
            x[j] = (_ONE + r) + r2 * ((_C2 + _C3 * r) + r2 * ((_C4 + _C5 * r) + r2 * (_C6 + _C7 * r)))
        for j in range(x.size):
            exponents[j] += np.int32(rounded[j] << 23)

    return single


@njit(cache=True, fastmath={"contract"})
def _raised(x, tops, work):
    """x <- exp(x - max x); returns that maximum."""
    top = _largest(x, tops)
    _powers(x, top, work)
    return top


@njit(cache=True)
def _present(tokens, start, stop, n, kinds):
    """Adds the counts of a span to n, whose entries were zero; lists the types that are present and returns how many."""
    size = 0
    for place in range(start, stop):
        j = tokens[place]
        if n[j] == 0:
            kinds[size] = j
            size += 1
        n[j] += 1
    return size


@njit(cache=True)
def _attend(n, e, scores, kinds, shares):
    """shares <- n e / (n . e) over the present types; n is zero again."""
    total = e[0] * 0
    for s in range(kinds.size):
        shares[s] = n[kinds[s]] * e[kinds[s]]
        total += shares[s]
    if total < LEAST:
        top = -np.inf
        for j in kinds:
            top = max(top, scores[j])
        total = e[0] * 0
        for s in range(kinds.size):
            shares[s] = n[kinds[s]] * np.exp(scores[kinds[s]] - top)
            total += shares[s]
    share = 1 / total
    for s in range(kinds.size):
        shares[s] *= share
        n[kinds[s]] = 0


@njit(cache=True, fastmath=_FAST)
def _gather(kinds, shares, w0, features):
    """features <- A W0; four types at a time, or each addition would wait for the one before."""
    features[:] = 0
    whole = kinds.size - kinds.size % 4
    for s in range(0, whole, 4):
        a, b, c, d = shares[s], shares[s + 1], shares[s + 2], shares[s + 3]
        x, y, z, u = w0[kinds[s]], w0[kinds[s + 1]], w0[kinds[s + 2]], w0[kinds[s + 3]]
        for k in range(features.size):
            features[k] += (a * x[k] + b * y[k]) + (c * z[k] + d * u[k])
    for s in range(whole, kinds.size):
        a, x = shares[s], w0[kinds[s]]
        for k in range(features.size):
            features[k] += a * x[k]


@njit(cache=True, fastmath=_FAST)
def _sum(x):
    total = x[0] * 0
    for j in range(x.size):
        total += x[j]
    return total


@njit(cache=True, fastmath=_FAST)
def _dot(x, y):
    total = x[0] * 0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@njit(cache=True, fastmath=_FAST)
def _spread(kinds, shares, mean, slope, pulls, means, touched, count):
    """pulls_j += A_j dL/d(features), means_j += A_j (features . dL/d(features)); lists types not met before in this group."""
    for s in range(kinds.size):
        j, a = kinds[s], shares[s]
        if means[j, 1] == 0:
            means[j, 1] = 1
            touched[count] = j
            count += 1
        means[j, 0] += a * mean
        out = pulls[j]
        for k in range(slope.size):
            out[k] += a * slope[k]
    return count


@njit(cache=True)
def _close(touched, pulls, means, w0, d_w0, d_row):
    """The derivatives of one query's rows, and nothing left of them."""
    for j in touched:
        d_row[j] += _dot(pulls[j], w0[j]) - means[j, 0]
        out, own = d_w0[j], pulls[j]
        for k in range(own.size):
            out[k] += own[k]
            own[k] = 0
        means[j, 0] = means[j, 1] = 0


@njit(cache=True)
def contexts_gradient(tokens, starts, stops, order, w0, w1, scores, d_w0, d_w1, d_scores):
    """Mean loss over spans; its derivatives in W0 (through the output alone), W1 and Phi are added to the last arguments.

    Span r is tokens[starts[r]:stops[r]], the token after it is the target; `order` has equal queries (last tokens) together.
    """
    (vocab, width), kind = w0.shape, w0.dtype
    share, loss, count, group = w0[0, 0] * 0 + 1 / order.size, 0.0, 0, -1
    n, e, work, tops = np.zeros(vocab, kind), np.empty(vocab, kind), np.empty(vocab, kind), np.empty(_WIDE, kind)
    sums = np.empty(ROWS, kind)
    kinds, shares, sizes = np.empty((ROWS, vocab), np.int64), np.empty((ROWS, vocab), kind), np.empty(ROWS, np.int64)
    features, scaled, slopes = np.empty((ROWS, width), kind), np.empty((ROWS, width), kind), np.empty((ROWS, width), kind)
    logits, part, w1_turned = np.empty((ROWS, vocab), kind), np.empty((width, vocab), kind), np.ascontiguousarray(w1.T)
    pulls, means, touched = np.zeros((vocab, width), kind), np.zeros((vocab, 2), kind), np.empty(vocab, np.int64)
    open_query = np.int64(-1)
    for first in range(0, order.size, ROWS):
        rows = min(ROWS, order.size - first)
        for row in range(rows):
            span = order[first + row]
            query = np.int64(tokens[stops[span] - 1])
            if query != open_query:
                e[:] = scores[query]
                _raised(e, tops, work)
                open_query = query
            sizes[row] = _present(tokens, starts[span], stops[span], n, kinds[row])
            own = kinds[row, : sizes[row]]
            _attend(n, e, scores[query], own, shares[row])
            _gather(own, shares[row], w0, features[row])
        features[rows:] = 0
        np.dot(features, w1, logits)
        for row in range(rows):
            target, here = tokens[stops[order[first + row]]], logits[row]
            kept = here[target]
            kept -= _raised(here, tops, work)
            total = _sum(here)
            loss += np.log(total) - kept
            factor = share / total
            for k in range(width):
                scaled[row, k] = factor * features[row, k]
                d_w1[k, target] -= share * features[row, k]
            sums[row] = factor
        scaled[rows:] = 0
        np.dot(logits, w1_turned, slopes)
        np.dot(scaled.T, logits, part)
        d_w1 += part
        for row in range(rows):
            span = order[first + row]
            query, target, slope = np.int64(tokens[stops[span] - 1]), tokens[stops[span]], slopes[row]
            for k in range(width):
                slope[k] = sums[row] * slope[k] - share * w1_turned[target, k]
            if query != group:
                if group >= 0:
                    _close(touched[:count], pulls, means, w0, d_w0, d_scores[group])
                group, count = query, 0
            mean = _dot(features[row], slope)
            count = _spread(kinds[row, : sizes[row]], shares[row], mean, slope, pulls, means, touched, count)
    _close(touched[:count], pulls, means, w0, d_w0, d_scores[group])
    return loss / order.size
