"""Numba kernel of the two linear laws beside a small model of TokenAttention, see state.py."""

import numpy as np

from stagescope.kernels import njit


@njit(cache=True)
def _times(a, b):
    out = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                out[i, j] += a[i, k] * b[k, j]
    return out


@njit(cache=True)
def _softmax(row):
    top, total = row.max(), 0.0
    for j in range(len(row)):
        row[j] = np.exp(row[j] - top)
        total += row[j]
    for j in range(len(row)):
        row[j] /= total


@njit(cache=True)
def population_slopes(pi, transition, scale, w0, w1, wq, wk):
    """GM and GP of the population loss, as `slopes` of the reduced family [FD:ladder]."""
    d = len(pi)
    query, key, product = _times(w0, wq), _times(w0, wk), _times(w0, w1)
    attention = _times(query, key.T)
    for i in range(d):
        for j in range(d):
            attention[i, j] = scale * attention[i, j] + np.log(pi[j])
        _softmax(attention[i])
    surprise = _times(attention, product)
    for i in range(d):
        _softmax(surprise[i])
        for j in range(d):
            surprise[i, j] = pi[i] * (surprise[i, j] - transition[i, j])
    lift = _times(surprise, product.T)
    for i in range(d):
        mean = 0.0
        for j in range(d):
            mean += attention[i, j] * lift[i, j]
        for j in range(d):
            lift[i, j] = scale * attention[i, j] * (lift[i, j] - mean)
    return _times(attention.T, surprise), lift


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
        block, other = (wk, gp) if place == 0 else (wq, gp.T)
        whole = _times(block, u) + _times(s, _part(*attention, m * (1 - place), m))
        _negated(_times(other, _times(w0, whole)), b, d + place * keys)
    every = _times(w0, s) + _part(*embedding, 0, d)
    return b, -_times(every.T, _times(gp, every))
