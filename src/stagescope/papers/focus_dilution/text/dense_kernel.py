"""Numba kernel of the focus-dilution loss on contexts of a text, with its gradient in W0, W1 and Phi [FD:text-counts].

A context enters only through its counts n and its last token i: with B = n e, e_j = exp(Phi_ij - max_j Phi_ij), attention is
B / sum(B), features are B W0 / sum(B), logits features W1. Some contexts at a time are multiplied (by BLAS) and led back, so that
all that is made of them stays in the nearest caches. Divisors are put on rows of features, which are short, not on rows of types.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from stagescope.fields.exp_kernel import exp_single
from stagescope.kernels import njit

_FAST = {"contract", "reassoc"}
ROWS = 128
FLOOR = np.float32(-60.0)
"""Powers in float32 stop at e^-60, so that no product of them is a denormal number, which are slow."""
LEAST = 1e-16
"""Where n . e is below this, what stopped there may count: the context is shifted by its own largest score."""
SAFE = 50.0**2
"""Logits whose square is below this need no shift: their powers neither overflow nor reach the floor."""
_WIDE = 16


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


def _powers(x, top):
    """x <- exp(x - top), in float32 not below e^-60."""
    raise NotImplementedError("only inside compiled code")


@overload(_powers)
def _powers_for(x, top):
    if x.dtype != types.float32:

        def exact(x, top):
            for j in range(x.size):
                x[j] = np.exp(x[j] - top)

        return exact

    def single(x, top):
        for j in range(x.size):
            value = x[j] - top
            x[j] = value if value > FLOOR else FLOOR
        exp_single(x)

    return single


@njit(cache=True, fastmath={"contract"})
def _raised(x, small, tops):
    """x <- exp(x - shift); returns the shift: none where all of x is known to be small, else the largest entry."""
    shift = x[0] * 0 if small else _largest(x, tops)
    _powers(x, shift)
    return shift


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


@njit(cache=True)
def count_spans(tokens, starts, stops, counts, query, target):
    """Row r counts tokens[starts[r]:stops[r]]; its last token is the query, the token after it the target."""
    for row in range(starts.size):
        here = counts[row]
        here[:] = 0
        for place in range(starts[row], stops[row]):
            here[tokens[place]] += 1
        query[row], target[row] = tokens[stops[row] - 1], tokens[stops[row]]


@njit(cache=True, fastmath=_FAST)
def _weigh(n, e, scores, out):
    """out <- n e; returns the sum."""
    total = e[0] * 0
    for j in range(out.size):
        out[j] = n[j] * e[j]
        total += out[j]
    return _shifted(n, scores, out) if total < LEAST else total


@njit(cache=True)
def _shifted(n, scores, out):
    """The same weights shifted by the strongest type that is present."""
    top = -np.inf
    for j in range(n.size):
        if n[j] > 0:
            top = max(top, scores[j])
    total = scores[0] * 0
    for j in range(n.size):
        out[j] = n[j] * np.exp(min(scores[j] - top, 0.0))
        total += out[j]
    return total


@njit(cache=True, fastmath=_FAST)
def _scale(x, factor):
    for j in range(x.size):
        x[j] *= factor


@njit(cache=True)
def _copy(out, x):
    """In a loop, because Numba takes seconds to compile an assignment to a slice."""
    for j in range(out.size):
        out[j] = x[j]


@njit(cache=True, fastmath=_FAST)
def _collect(weights, lift, mean, out):
    """out += B (lift - mean)."""
    for j in range(out.size):
        out[j] += weights[j] * (lift[j] - mean)


@njit(cache=True, fastmath=_FAST)
def _divided(slope, factor, target, share, total):
    """slope <- dL/d(features) / total, from powers W1^T and the target's column of W1."""
    for k in range(slope.size):
        slope[k] = (factor * slope[k] - share * target[k]) / total


@njit(cache=True, fastmath=_FAST)
def _add(out, x, factor):
    for k in range(out.size):
        out[k] += factor * x[k]


class Space(NamedTuple):
    """Room for a pass: made once, because fresh memory costs more than what is done with it."""

    powers: np.ndarray
    weights: np.ndarray
    logits: np.ndarray
    lift: np.ndarray
    features: np.ndarray
    scaled: np.ndarray
    slopes: np.ndarray
    part: np.ndarray

    @classmethod
    def of(cls, vocab, width, precision):
        shapes = [(vocab, vocab), *[(ROWS, vocab)] * 3, *[(ROWS, width)] * 3, (vocab, width)]
        return cls(*(np.zeros(shape, dtype=precision) for shape in shapes))


@njit(cache=True)
def rows_gradient(counts, query, target, share, w0, w1, scores, space, d_w0, d_w1_turned, d_scores):
    """`share` times the summed loss of count rows; its derivatives are added to the last arguments.

    They are those in W0 (through the output alone), W1^T and Phi. Rows beyond the last one meet factors of zero.
    """
    powers, weights, logits, lift, features, scaled, slopes, part = space
    vocab, kind, count, rows, loss, longest = len(w0), w0.dtype, query.size, len(weights), 0.0, 0.0
    tops, totals, factors = np.empty(_WIDE, kind), np.ones(rows, kind), np.zeros(rows, kind)
    w0_turned, w1_turned = np.ascontiguousarray(w0.T), np.ascontiguousarray(w1.T)
    for j in range(vocab):
        _copy(powers[j], scores[j])
    weights[:], logits[:] = 0, 0
    for j in range(vocab):
        _raised(powers[j], False, tops)
        longest = max(longest, _dot(w1_turned[j], w1_turned[j]))
    for first in range(0, count, rows):
        size = min(rows, count - first)
        for row in range(size):
            i = query[first + row]
            totals[row] = _weigh(counts[first + row], powers[i], scores[i], weights[row])
        np.dot(weights, w0, features)
        for row in range(size):
            _scale(features[row], 1 / totals[row])
        np.dot(features, w1, logits)
        for row in range(size):
            here, own, y = logits[row], features[row], target[first + row]
            kept = here[y]
            kept -= _raised(here, _dot(own, own) * longest < SAFE, tops)
            total = _sum(here)
            loss += np.log(total) - kept
            factors[row] = share / total
            _copy(scaled[row], own)
            _scale(scaled[row], factors[row])
            _add(d_w1_turned[y], own, -share)
        scaled[size:] = 0
        np.dot(logits.T, scaled, part)
        d_w1_turned += part
        np.dot(logits, w1_turned, slopes)
        for row in range(size):
            _divided(slopes[row], factors[row], w1_turned[target[first + row]], share, totals[row])
        slopes[size:] = 0
        np.dot(weights.T, slopes, part)
        d_w0 += part
        np.dot(slopes, w0_turned, lift)
        for row in range(size):
            _collect(weights[row], lift[row], _dot(features[row], slopes[row]), d_scores[query[first + row]])
    return share * loss
