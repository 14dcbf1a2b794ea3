"""Numba kernel of the focus-dilution population loss with its hand-derived gradient [FD:population].

At these sizes, making matrix views and wrapping negative indices would cost more than the arithmetic. So a matrix is a
place in a flat array, its rows one after the other, and places and sizes are unsigned.
"""

import numpy as np

from stagescope.fields.flat_kernel import FAST, softmax
from stagescope.kernels import njit

WEIGHTS, _TABLES = slice(4, 8), 8
_D, _M = np.uint64(4), np.uint64(8)
"""Sizes of the paper's settings: known to the compiler, they halve the time."""


def hold(sizes, scale, pi, transition):
    """All that `gradient` reads beside the parameters, and room to work in: one array, since every argument has its price.

    In order: sizes d, m, mk; scale; weights of the four blocks, 1 here; pi; log pi; P; room for nine matrices.
    """
    d, m, mk = sizes
    room = np.zeros(3 * d * d + 2 * d * m + 4 * d * mk)
    return np.concatenate([sizes, [scale], np.ones(4), pi, np.log(pi), np.ravel(transition), room])


@njit(cache=True, fastmath=FAST)
def _multiply(rows, inner, columns, a, p, b, q, out, r):
    """out = a b, with a at p, b at q, out at r."""
    for i in range(rows):
        source, goal = p + i * inner, r + i * columns
        for j in range(columns):
            out[goal + j] = 0.0
        for k in range(inner):
            x, row = a[source + k], q + k * columns
            for j in range(columns):
                out[goal + j] += x * b[row + j]


@njit(cache=True, fastmath=FAST)
def _left(rows, inner, columns, weight, a, p, b, q, out, r):
    """out = weight a^T b."""
    for j in range(rows * columns):
        out[r + j] = 0.0
    for k in range(inner):
        source, row = p + k * rows, q + k * columns
        for i in range(rows):
            x, goal = weight * a[source + i], r + i * columns
            for j in range(columns):
                out[goal + j] += x * b[row + j]


@njit(cache=True, fastmath=FAST)
def _right(rows, inner, columns, weight, a, p, b, q, out, r):
    """out = weight a b^T."""
    for i in range(rows):
        source, goal = p + i * inner, r + i * columns
        for j in range(columns):
            total, row = 0.0, q + j * inner
            for k in range(inner):
                total += a[source + k] * b[row + k]
            out[goal + j] = weight * total


@njit(cache=True, fastmath=FAST)
def _add_right(rows, inner, columns, weight, a, p, b, q, out, r):
    """out += weight a b^T."""
    for i in range(rows):
        source, goal = p + i * inner, r + i * columns
        for j in range(columns):
            total, row = 0.0, q + j * inner
            for k in range(inner):
                total += a[source + k] * b[row + k]
            out[goal + j] += weight * total


@njit(cache=True, fastmath=FAST)
def _attend(d, held, log_pi, scores):
    """A_i ~ pi exp(Phi_i), in the place of Phi."""
    for i in range(d):
        row = scores + i * d
        for j in range(d):
            held[row + j] += held[log_pi + j]
        softmax(d, held, row)


@njit(cache=True, fastmath=FAST)
def _unattend(d, scale, held, attention, lift):
    """From dL/dA to scale dL/dPhi_ij = scale A_ij (lift_ij - A_i . lift_i), in place."""
    for i in range(d):
        a, x = attention + i * d, lift + i * d
        mean = 0.0
        for j in range(d):
            mean += held[a + j] * held[x + j]
        for j in range(d):
            held[x + j] = scale * held[a + j] * (held[x + j] - mean)


@njit(cache=True, fastmath=FAST)
def _surprise(d, held, pi, transition, logits):
    """The loss; turns logits_i into dL/dlogits_i = pi_i (softmax(logits_i) - P_i), rows of P summing to one or nearly so."""
    loss = 0.0
    for i in range(d):
        row, law = logits + i * d, transition + i * d
        own, mass = 0.0, 0.0
        for j in range(d):
            own += held[law + j] * held[row + j]
            mass += held[law + j]
        loss += held[pi + i] * (mass * softmax(d, held, row) - own)
        for j in range(d):
            held[row + j] = held[pi + i] * (mass * held[row + j] - held[law + j])
    return loss


@njit(cache=True, fastmath=FAST)
def _gradient(theta, out, held, d, m, mk):
    """A_i ~ pi exp(Phi_i), H = A W0, logits = H W1, dL/dlogits_i = pi_i (softmax(logits_i) - P_i); then backwards."""
    scale = held[3]
    weight0, weight1, weightq, weightk = held[4], held[5], held[6], held[7]
    w0 = np.uint64(0)
    w1 = w0 + d * m
    wq = w1 + d * m
    wk = wq + m * mk
    pi = np.uint64(_TABLES)
    log_pi = pi + d
    transition = log_pi + d
    attention = transition + d * d
    logits = attention + d * d
    lift = logits + d * d
    h = lift + d * d
    dh = h + d * m
    q = dh + d * m
    k = q + d * mk
    dq = k + d * mk
    dk = dq + d * mk
    _multiply(d, m, mk, theta, w0, theta, wq, held, q)
    _multiply(d, m, mk, theta, w0, theta, wk, held, k)
    _right(d, mk, d, scale, held, q, held, k, held, attention)
    _attend(d, held, log_pi, attention)
    _multiply(d, d, m, held, attention, theta, w0, held, h)
    _multiply(d, m, d, held, h, theta, w1, held, logits)
    loss = _surprise(d, held, pi, transition, logits)
    _left(m, d, d, weight1, held, h, held, logits, out, w1)
    _right(d, d, m, 1.0, held, logits, theta, w1, held, dh)
    _left(d, d, m, weight0, held, attention, held, dh, out, w0)
    _right(d, m, d, 1.0, held, dh, theta, w0, held, lift)
    _unattend(d, scale, held, attention, lift)
    _multiply(d, d, mk, held, lift, held, k, held, dq)
    _left(d, d, mk, 1.0, held, lift, held, q, held, dk)
    _left(m, d, mk, weightq, theta, w0, held, dq, out, wq)
    _left(m, d, mk, weightk, theta, w0, held, dk, out, wk)
    _add_right(d, mk, m, weight0, held, dq, theta, wq, out, w0)
    _add_right(d, mk, m, weight0, held, dk, theta, wk, out, w0)
    return loss


@njit(cache=True, fastmath=FAST)
def gradient(theta, out, held):
    """Loss; writes weights[b] x gradient of block b (order W0, W1, WQ, WK) into `out`. `held` is from `hold`."""
    d, m, mk = np.uint64(held[0]), np.uint64(held[1]), np.uint64(held[2])
    if d == _D and m == _M and mk == _M:
        return _gradient(theta, out, held, _D, _M, _M)
    return _gradient(theta, out, held, d, m, mk)
