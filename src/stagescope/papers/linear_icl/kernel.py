"""Numba kernel of linear attention: the population loss, and the velocity of its flow [LIN:flow].

Matrices lie in flat arrays, row after row. The flow descends half of the loss.
"""

import numpy as np

from stagescope.fields.flat_kernel import FAST
from stagescope.kernels import njit

RATES, _TABLES = slice(3, 6), 6


def hold(heads, rank, spectrum, second):
    """All that `velocity` reads except the parameters, and its work space.

    In order: heads, rows of a head (0: merged), directions D; rates of v, K and Q (of v and U), 1 here; lambda; diagonal of
    E[hatLambda^2]; work space for M and G (D, D).
    """
    dim = len(spectrum)
    return np.concatenate([[heads, rank, dim], np.ones(3), spectrum, second, np.zeros(2 * dim * dim)])


@njit(cache=True, fastmath=FAST)
def _map(theta, held, heads, rows, dim, m):
    """M = sum_h v_h U_h from place m of `held` on; `rows` is 0 for merged heads, whose U_h is read as it is."""
    for i in range(dim * dim):
        held[m + i] = 0.0
    size = rows * dim
    for h in range(heads):
        v = theta[h]
        if rows == 0:
            u = heads + h * dim * dim
            for i in range(dim * dim):
                held[m + i] += v * theta[u + i]
            continue
        k = heads + h * size
        q = k + heads * size
        for r in range(rows):
            for i in range(dim):
                x = v * theta[k + r * dim + i]
                for j in range(dim):
                    held[m + i * dim + j] += x * theta[q + r * dim + j]


@njit(cache=True, fastmath=FAST)
def _push(held, dim, m, g):
    """The loss, and G = Lambda^2 - E[hatLambda^2] M Lambda from place g of `held` on."""
    spectrum = _TABLES
    second = _TABLES + dim
    loss = 0.0
    for i in range(dim):
        a, b = held[spectrum + i], held[second + i]
        loss += a - 2.0 * a * a * held[m + i * dim + i]
        for j in range(dim):
            x = held[m + i * dim + j]
            y = b * x * held[spectrum + j]
            loss += x * y
            held[g + i * dim + j] = -y
        held[g + i * dim + i] += a * a
    return loss


@njit(cache=True, fastmath=FAST)
def velocity(theta, out, held):
    """Loss; writes rate x velocity of the blocks v, K, Q or v, U into `out`. `held` is from `hold`.

    v_h' = sum_r k_hr.G q_hr, k_hr' = v_h G q_hr, q_hr' = v_h G^T k_hr; merged: v_h' = <U_h, G>, U_h' = v_h G.
    """
    heads, rows, dim = int(held[0]), int(held[1]), int(held[2])
    rate_v, rate_k, rate_q = held[3], held[4], held[5]
    m = _TABLES + 2 * dim
    g = m + dim * dim
    _map(theta, held, heads, rows, dim, m)
    loss = _push(held, dim, m, g)
    size = rows * dim
    for h in range(heads):
        v, total = theta[h], 0.0
        if rows == 0:
            u = heads + h * dim * dim
            for i in range(dim * dim):
                total += theta[u + i] * held[g + i]
                out[u + i] = rate_k * v * held[g + i]
            out[h] = rate_v * total
            continue
        k = heads + h * size
        q = k + heads * size
        for j in range(size):
            out[q + j] = 0.0
        for r in range(rows):
            for i in range(dim):
                x, moved = theta[k + r * dim + i], 0.0
                for j in range(dim):
                    moved += held[g + i * dim + j] * theta[q + r * dim + j]
                    out[q + r * dim + j] += rate_q * v * held[g + i * dim + j] * x
                total += x * moved
                out[k + r * dim + i] = rate_k * v * moved
        out[h] = rate_v * total
    return loss
