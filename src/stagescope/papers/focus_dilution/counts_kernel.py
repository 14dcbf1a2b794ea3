"""Numba kernel of the focus-dilution loss over contexts given by counts, with its gradient in Phi and M = W0 W1 [FD:finite].

Contexts with the same query i share e_j = exp(Phi_ij - shift): A = n e / (n . e), logits = A M = n (e M) / (n . e). So a
block of contexts costs two small matrix products and one softmax. Contexts are along the last axis, so that loops over
a block vectorise.
"""

import numpy as np

from stagescope.fields.flat_kernel import FAST
from stagescope.kernels import njit

BLOCK = 128
WIDEST = 600.0
"""How far below its row's largest score the query's own may lie before exp underflows; it is in every context."""


@njit(cache=True, fastmath=FAST, inline="always")
def _add(out, x, factor):
    for c in range(out.size):
        out[c] += factor * x[c]


@njit(cache=True, fastmath=FAST, inline="always")
def _dot(x, y):
    total = 0.0
    for c in range(x.size):
        total += x[c] * y[c]
    return total


@njit(cache=True)
def _weights(scores, shift, logits, e, em):
    """e_j = exp(Phi_ij - shift) and em = e M; a score above the shift is that of a token no context of the block has."""
    for j in range(scores.size):
        e[j] = np.exp(min(scores[j] - shift, 0.0))
        for k in range(scores.size):
            em[j, k] = e[j] * logits[j, k]


@njit(cache=True, fastmath=FAST)
def _forward(counts, weights, mass, lo, hi, e, em, work):
    """Loss of contexts lo..hi; leaves logits, dL/d(logits) / (n . e) and the sum of their products in `work`."""
    size, d = hi - lo, e.size
    inverse, top, total, pull = work[2, 0, :size], work[2, 1, :size], work[2, 2, :size], work[2, 3, :size]
    inverse[:], top[:], total[:], pull[:] = 0.0, -np.inf, 0.0, 0.0
    for j in range(d):
        _add(inverse, counts[j, lo:hi], e[j])
    for c in range(size):
        inverse[c] = 1.0 / inverse[c]
    for k in range(d):
        logit = work[0, k, :size]
        logit[:] = 0.0
        for j in range(d):
            _add(logit, counts[j, lo:hi], em[j, k])
        for c in range(size):
            logit[c] *= inverse[c]
        for c in range(size):
            top[c] = max(top[c], logit[c])
    for k in range(d):
        logit, slope = work[0, k, :size], work[1, k, :size]
        for c in range(size):
            slope[c] = np.exp(logit[c] - top[c])
        _add(total, slope, 1.0)
    loss, here = 0.0, mass[lo:hi]
    for c in range(size):
        loss += here[c] * (top[c] + np.log(total[c]))
        total[c] = here[c] / total[c]
    for k in range(d):
        logit, slope, weight = work[0, k, :size], work[1, k, :size], weights[k, lo:hi]
        loss -= _dot(weight, logit)
        for c in range(size):
            slope[c] = (slope[c] * total[c] - weight[c]) * inverse[c]
            pull[c] += slope[c] * logit[c]
    return loss


@njit(cache=True, fastmath=FAST)
def _backward(counts, lo, hi, e, logits, work, d_scores, d_logits):
    """logits_k = sum_j n_j e_j M_jk / (n . e), so dL/d(e_j) = sum_k M_jk (n_j . slope_k) - n_j . pull."""
    size, d = hi - lo, e.size
    for j in range(d):
        own = counts[j, lo:hi]
        lift = -_dot(own, work[2, 3, :size])
        for k in range(d):
            slope = _dot(own, work[1, k, :size])
            d_logits[j, k] += e[j] * slope
            lift += logits[j, k] * slope
        d_scores[j] += e[j] * lift


@njit(cache=True)
def context_loss(counts, weights, mass, starts, scores, logits, d_scores, d_logits):
    """Loss, and its derivatives in Phi (`scores`) and M (`logits`); contexts of query i are starts[i] .. starts[i+1]."""
    d = scores.shape[0]
    work = np.empty((3, max(d, 4), BLOCK))
    e, em = np.empty(d), np.empty((d, d))
    d_scores[:], d_logits[:] = 0.0, 0.0
    loss = 0.0
    for i in range(d):
        shift = scores[i].max()
        alone = shift - scores[i, i] > WIDEST
        if not alone:
            _weights(scores[i], shift, logits, e, em)
        width = 1 if alone else BLOCK
        for lo in range(starts[i], starts[i + 1], width):
            hi = min(lo + width, starts[i + 1])
            if alone:  # shift by the strongest token that is present
                shift = -np.inf
                for j in range(d):
                    if counts[j, lo] > 0:
                        shift = max(shift, scores[i, j])
                _weights(scores[i], shift, logits, e, em)
            loss += _forward(counts, weights, mass, lo, hi, e, em, work)
            _backward(counts, lo, hi, e, logits, work, d_scores[i], d_logits)
    return loss
