"""Numba kernel of the two linear laws beside a small model of TokenAttention, see state.py."""

import numpy as np

from stagescope.fields.exp_kernel import exp_double
from stagescope.kernels import njit

_FAST = {"contract", "reassoc"}  # lets sums vectorise; no other fast-math flag, so that inf and nan keep their meaning


@njit(cache=True, fastmath=_FAST)
def _times(a, b):
    """a b, for b with contiguous rows."""
    out = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        here = out[i]
        for k in range(a.shape[1]):
            factor, row = a[i, k], b[k]
            for j in range(here.size):
                here[j] += factor * row[j]
    return out


@njit(cache=True)
def _transposed(a):
    """a^T with contiguous rows."""
    out = np.empty((a.shape[1], a.shape[0]))
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]
    return out


@njit(cache=True, fastmath=_FAST)
def _times_transposed(a, b):
    """a b^T, for a and b with contiguous rows."""
    out = np.empty((a.shape[0], b.shape[0]))
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            one, two, total = a[i], b[j], 0.0
            for k in range(one.size):
                total += one[k] * two[k]
            out[i, j] = total
    return out


@njit(cache=True, fastmath=_FAST)
def _softmax(row):
    top, total = row.max(), 0.0
    for j in range(len(row)):
        row[j] = max(row[j] - top, -700.0)
    exp_double(row)
    for j in range(len(row)):
        total += row[j]
    for j in range(len(row)):
        row[j] /= total


@njit(cache=True, fastmath=_FAST)
def population_slopes(pi, transition, scale, w0, w1, wq, wk):
    """GM and GP of the population loss, as `slopes` of the reduced family [FD:ladder]."""
    d, base = len(pi), np.log(pi)
    attention = _times(_times(w0, scale * wq), _transposed(_times(w0, wk)))
    for i in range(d):
        here = attention[i]
        for j in range(d):
            here[j] += base[j]
        _softmax(here)
    surprise = _times(_times(attention, w0), w1)
    for i in range(d):
        here, next_ = surprise[i], transition[i]
        _softmax(here)
        for j in range(d):
            here[j] = pi[i] * (here[j] - next_[j])
    lift = _times(_times_transposed(surprise, w1), _transposed(w0))
    for i in range(d):
        weights, here, mean = attention[i], lift[i], 0.0
        for j in range(d):
            mean += weights[j] * here[j]
        for j in range(d):
            here[j] = scale * weights[j] * (here[j] - mean)
    return _times(_transposed(attention), surprise), lift


@njit(cache=True)
def _part(logs, left, right, first, count):
    """Some rows of a graded matrix, as they are in float64."""
    out = np.zeros((count, right.shape[1]))
    for k in range(len(logs)):
        size = np.exp(logs[k])
        for i in range(count):
            for j in range(right.shape[1]):
                out[i, j] += size * left[k, first + i] * right[k, j]
    return out


@njit(cache=True)
def _negated(a, out, first):
    """-a as columns of `out`. In loops, because Numba takes seconds to compile an assignment to a slice."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, first + j] = -a[i, j]


@njit(cache=True)
def laws(slopes, small, frame, embedding, attention):
    """B (d, d + 2 mk) and F (m, m) at a point of the small model with both stacks beside it."""
    (gm, gp), (w0, wq, wk), (s, u) = slopes, small, frame
    d, m, keys = len(gm), s.shape[1], u.shape[1]
    b = np.empty((d, d + 2 * keys))
    _negated(gm, b, 0)
    for place in range(2):
        block, other = (wk, gp) if place == 0 else (wq, _transposed(gp))
        whole = _times(block, u) + _times(s, _part(*attention, m * (1 - place), m))
        _negated(_times(other, _times(w0, whole)), b, d + place * keys)
    every = _times(w0, s) + _part(*embedding, 0, d)
    return b, -_times(_transposed(every), _times(gp, every))
