"""Numba kernel of the focus-dilution population loss with its hand-derived gradient [FD:population]."""

import numpy as np
from numba import njit

_FAST = {"contract", "reassoc"}


@njit(cache=True, fastmath=_FAST, inline="always")
def _multiply(a, b, out):
    """out = a b: for the tiny sizes here a loop beats a call into BLAS."""
    out[:] = 0.0
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            x = a[i, k]
            for j in range(b.shape[1]):
                out[i, j] += x * b[k, j]


@njit(cache=True, fastmath=_FAST, inline="always")
def _add_left(a, b, weight, out):
    """out += weight a^T b."""
    for k in range(a.shape[0]):
        for i in range(a.shape[1]):
            x = weight * a[k, i]
            for j in range(b.shape[1]):
                out[i, j] += x * b[k, j]


@njit(cache=True, fastmath=_FAST, inline="always")
def _add_right(a, b, weight, out):
    """out += weight a b^T."""
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[j, k]
            out[i, j] += weight * total


@njit(cache=True, fastmath=_FAST)
def gradient(theta, out, sizes, log_pi, pi, transition, scale, weights, work):
    """Loss; writes weights[b] x gradient of block b (order W0, W1, WQ, WK) into `out`.

    A_i ~ pi exp(Phi_i), H = A W0, logits = H W1, dL/dlogits_i = pi_i (softmax(logits_i) - P_i); then backwards.
    """
    d, m, mk = sizes
    a1, a2, a3 = d * m, 2 * d * m, 2 * d * m + m * mk
    w0, w1 = theta[:a1].reshape(d, m), theta[a1:a2].reshape(m, d)
    wq, wk = theta[a2:a3].reshape(m, mk), theta[a3:].reshape(m, mk)
    g0, g1 = out[:a1].reshape(d, m), out[a1:a2].reshape(m, d)
    gq, gk = out[a2:a3].reshape(m, mk), out[a3:].reshape(m, mk)
    dd, dm, dk = d * d, d * m, d * mk
    attention, logits, lift = work[:dd].reshape(d, d), work[dd : 2 * dd].reshape(d, d), work[2 * dd : 3 * dd].reshape(d, d)
    start = 3 * dd
    h, dh = work[start : start + dm].reshape(d, m), work[start + dm : start + 2 * dm].reshape(d, m)
    start += 2 * dm
    q, k = work[start : start + dk].reshape(d, mk), work[start + dk : start + 2 * dk].reshape(d, mk)
    start += 2 * dk
    dq, dkey = work[start : start + dk].reshape(d, mk), work[start + dk : start + 2 * dk].reshape(d, mk)
    out[:] = 0.0
    _multiply(w0, wq, q)
    _multiply(w0, wk, k)
    attention[:] = 0.0
    _add_right(q, k, scale, attention)
    for i in range(d):
        top = -np.inf
        for j in range(d):
            attention[i, j] += log_pi[j]
            top = max(top, attention[i, j])
        total = 0.0
        for j in range(d):
            attention[i, j] = np.exp(attention[i, j] - top)
            total += attention[i, j]
        for j in range(d):
            attention[i, j] /= total
    _multiply(attention, w0, h)
    _multiply(h, w1, logits)
    loss = 0.0
    for i in range(d):
        top = -np.inf
        for j in range(d):
            top = max(top, logits[i, j])
        total = 0.0
        for j in range(d):
            total += np.exp(logits[i, j] - top)
        level = top + np.log(total)
        for j in range(d):
            loss += pi[i] * transition[i, j] * (level - logits[i, j])
            logits[i, j] = pi[i] * (np.exp(logits[i, j] - level) - transition[i, j])
    _add_left(h, logits, weights[1], g1)
    dh[:] = 0.0
    _add_right(logits, w1, 1.0, dh)
    _add_left(attention, dh, weights[0], g0)
    lift[:] = 0.0
    _add_right(dh, w0, 1.0, lift)
    for i in range(d):
        mean = 0.0
        for j in range(d):
            mean += attention[i, j] * lift[i, j]
        for j in range(d):
            lift[i, j] = scale * attention[i, j] * (lift[i, j] - mean)
    _multiply(lift, k, dq)
    dkey[:] = 0.0
    _add_left(lift, q, 1.0, dkey)
    _add_left(w0, dq, weights[2], gq)
    _add_left(w0, dkey, weights[3], gk)
    _add_right(dq, wq, weights[0], g0)
    _add_right(dkey, wk, weights[0], g0)
    return loss
