"""Numba kernels of linear attention: the velocity of its flow [LIN:flow], and silent heads beside a drop [LIN:cascade].

Matrices lie in flat arrays, row after row. The flow descends half of the loss.
"""

import numpy as np
from scipy.integrate import RK45

from stagescope.flow.flat_kernel import FAST
from stagescope.flow.kernels import njit

RATES = slice(3, 6)
_TABLES = RATES.stop


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
                x, slope = theta[k + r * dim + i], 0.0
                for j in range(dim):
                    slope += held[g + i * dim + j] * theta[q + r * dim + j]
                    out[q + r * dim + j] += rate_q * v * held[g + i * dim + j] * x
                total += x * slope
                out[k + r * dim + i] = rate_k * v * slope
        out[h] = rate_v * total
    return loss


STAGES, ERROR = np.vstack([np.pad(RK45.A[1:], ((0, 0), (0, 1))), RK45.B]), RK45.E
"""Stages of Dormand and Prince's pair of orders 5 and 4, and the difference of the two."""
TOLERANCE, MOST_STEPS = 1e-9, 100_000


@njit(cache=True)
def _silent_law(y, out, rates, grow, fade, drop, pace, gain):
    """u of the head that learns, then v, tau and gamma of each silent head.

    u' = pace u^2 push, where push = 1 - M_dd/M_final is what the push on direction `drop` has left;
    v' = sum_i g_i (A_i e^{2 gamma_i} - B_i e^{-2 gamma_i}) and tau' = v; gamma_d' = v push g_d, the others are g_i tau.
    """
    heads, dim = grow.shape
    push = 1.0 - y[0] * (y[0] * y[0])
    for h in range(heads):
        v, turn = y[1 + 3 * h], 2.0 * y[3 + 3 * h]
        push -= gain * v * (grow[h, drop] * np.exp(turn) - fade[h, drop] * np.exp(-turn))
    out[0] = pace * (y[0] * y[0]) * push
    for h in range(heads):
        v, tau, gamma = y[1 + 3 * h], y[2 + 3 * h], y[3 + 3 * h]
        pull = 0.0
        for i in range(dim):
            turn = 2.0 * (gamma if i == drop else rates[i] * tau)
            pull += rates[i] * (push if i == drop else 1.0) * (grow[h, i] * np.exp(turn) - fade[h, i] * np.exp(-turn))
        out[1 + 3 * h] = pull
        out[2 + 3 * h] = v
        out[3 + 3 * h] = v * push * rates[drop]


@njit(cache=True)
def follow(y, span, largest, rates, grow, fade, drop, pace, gain):
    """Moves y through the span, or until some |v| of a silent head reaches `largest`; returns the time reached."""
    size, heads = y.size, grow.shape[0]
    stages, trial = np.zeros((7, size)), np.empty(size)
    t, end = span
    step = (end - t) * 1e-6
    _silent_law(y, stages[0], rates, grow, fade, drop, pace, gain)
    for _ in range(MOST_STEPS):
        step = min(step, end - t)
        for s in range(6):
            for i in range(size):
                change = 0.0
                for j in range(s + 1):
                    change += STAGES[s, j] * stages[j, i]
                trial[i] = y[i] + step * change
            _silent_law(trial, stages[s + 1], rates, grow, fade, drop, pace, gain)
        worst = 0.0
        for i in range(size):
            off = 0.0
            for j in range(7):
                off += ERROR[j] * stages[j, i]
            error = abs(step * off) / (TOLERANCE * (1e-8 + abs(y[i]) + abs(trial[i])))
            worst = max(worst, error) if error < np.inf else np.inf  # also where it is not a number
        if worst <= 1.0:
            t += step
            y[:] = trial
            stages[0] = stages[6]
            over = False
            for h in range(heads):
                over = over or abs(y[1 + 3 * h]) > largest
            if over or t >= end:
                return t
        step *= min(5.0, max(0.2, 0.9 * (worst + 1e-10) ** -0.2)) if worst < np.inf else 0.1
    return t
