"""Numba kernel of products with the Hessian of the population loss, for many tokens [FD:population].

Attention, predictions and what follows from them are those of one point, see tangents.py; along a line they change to first
order. Tokens lie along the rows of all matrices. The rows of a query stay in the caches from its scores to its gradients.
"""

import numpy as np

from stagescope.fields.flat_kernel import FAST
from stagescope.kernels import njit

OPTIONS = {"cache": True, "fastmath": FAST, "error_model": "numpy"}


@njit(**OPTIONS)
def _spread(a, rows, b, others, out):
    """out = sum_k a_k rows_k + b_k others_k."""
    for k in range(len(a)):
        x, y, row, other = a[k], b[k], rows[k], others[k]
        if k == 0:
            for j in range(out.size):
                out[j] = x * row[j] + y * other[j]
        else:
            for j in range(out.size):
                out[j] += x * row[j] + y * other[j]


@njit(**OPTIONS)
def _contract(a, rows, b, others, out):
    """out_k = a . rows_k + b . others_k."""
    for k in range(len(out)):
        row, other, total = rows[k], others[k], 0.0
        for j in range(a.size):
            total += a[j] * row[j] + b[j] * other[j]
        out[k] = total


@njit(**OPTIONS)
def _gather(a, b, row, other, out):
    """out_k += a_k row + b_k other."""
    for k in range(len(a)):
        x, y, goal = a[k], b[k], out[k]
        for j in range(row.size):
            goal[j] += x * row[j] + y * other[j]


@njit(**OPTIONS)
def _centred(weights, total, row):
    """row <- weights (row - its mean), weights that sum to `total`."""
    mean = 0.0
    for j in range(row.size):
        mean += weights[j] * row[j]
    mean /= total
    for j in range(row.size):
        row[j] = weights[j] * (row[j] - mean)


@njit(**OPTIONS)
def _slopes(a, moved, apart, mean, row, flat):
    """row <- moved apart + a (row - mean), the change of flat = a apart."""
    for j in range(row.size):
        row[j] = moved[j] * apart[j] + a[j] * (row[j] - mean)
        flat[j] = a[j] * apart[j]


@njit(**OPTIONS)
def tangents(blocks, queries, tables, directions, out):
    """The changes of dL/dW0 by its attention, dL/dW1, dL/dQ and dL/dK along every line; `out` begins as zeros."""
    (w0, w1, keys), (q, h, low, mass), (attention, predicted, surprise, apart) = blocks, queries, tables
    d, m = len(attention), len(w0)
    moved, logits, slope, flat = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    dh, dlow = np.empty(m), np.empty(m)
    for line in range(len(directions[0])):
        dw0, dw1, dq, dk = directions[0][line], directions[1][line], directions[2][line], directions[3][line]
        by_w0, by_w1, by_q, by_k = out[0][line], out[1][line], out[2][line], out[3][line]
        for i in range(d):
            a, y, r = attention[i], predicted[i], surprise[i]
            _spread(dq[i], keys, q[i], dk, moved)
            _centred(a, 1.0, moved)
            _contract(moved, w0, a, dw0, dh)
            _spread(dh, w1, h[i], dw1, logits)
            _centred(y, mass[i], logits)
            _gather(dh, h[i], r, logits, by_w1)
            _contract(logits, w1, r, dw1, dlow)
            mean = 0.0
            for k in range(m):
                mean += dlow[k] * h[i, k] + low[i, k] * dh[k]
            _gather(low[i], dlow, moved, a, by_w0)
            _spread(dlow, w0, low[i], dw0, slope)
            _slopes(a, moved, apart[i], mean, slope, flat)
            _contract(slope, keys, flat, dk, by_q[i])
            _gather(q[i], dq[i], slope, flat, by_k)
