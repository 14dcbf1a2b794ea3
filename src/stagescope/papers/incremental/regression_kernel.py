"""Numba kernel of the regression flow, exact and mirror, with its hand-derived velocity [ISA:flow], [ISA:mirror].

Matrices lie in flat arrays, row after row; offsets and sizes are unsigned. R is
formed before it is multiplied: expanding R s_h into products of heads would lose its last digits where the fit is close.
"""

import numpy as np

from stagescope.flow.flat_kernel import FAST, softmax
from stagescope.flow.kernels import njit

RATES = slice(5, 7)
_TABLES = RATES.stop


def hold(sizes, copies, mirror, gains, places):
    """All that `velocity` reads except the parameters, and its work space.

    In order: heads, positions, features; copies of each head; 1 for the mirror law, 0 for the gradient; rates of a and V, 1
    here; gains; positions of the features; work space for s (H, N), R (k, N) and u (N).
    """
    heads, positions, features = sizes
    room = np.zeros((heads + features + 1) * positions)
    return np.concatenate([sizes, [copies, float(mirror)], np.ones(2), gains, places, room])


@njit(cache=True, fastmath=FAST)
def _residual(theta, memory, heads, positions, features, v, attention, residual):
    """s_h = softmax(a_h), R = G - copies sum_h V_h x s_h; returns |R|^2/2."""
    gains = np.uint64(_TABLES)
    places = gains + features
    for h in range(heads):
        row = attention + h * positions
        for j in range(positions):
            memory[row + j] = theta[h * positions + j]
        softmax(positions, memory, row)
    loss = 0.0
    for i in range(features):
        row = residual + i * positions
        for j in range(positions):
            memory[row + j] = 0.0
        memory[row + np.uint64(memory[places + i])] = memory[gains + i]
        for h in range(heads):
            x, source = memory[3] * theta[v + h * features + i], attention + h * positions
            for j in range(positions):
                memory[row + j] -= x * memory[source + j]
        for j in range(positions):
            loss += memory[row + j] * memory[row + j]
    return loss / 2


@njit(cache=True, fastmath=FAST)
def velocity(theta, out, memory):
    """Loss; writes rate x velocity of the blocks a and V into `out`. `memory` is from `hold`.

    V_h' = R s_h; with u = R^T V_h, a_h' = u (mirror) or s_h (u - s_h . u) (gradient).
    """
    heads, positions, features = np.uint64(memory[0]), np.uint64(memory[1]), np.uint64(memory[2])
    rate_a, rate_v = memory[5], memory[6]
    v = heads * positions
    attention = np.uint64(_TABLES) + features + features
    residual = attention + heads * positions
    u = residual + features * positions
    loss = _residual(theta, memory, heads, positions, features, v, attention, residual)
    for h in range(heads):
        s, goal = attention + h * positions, h * positions
        for j in range(positions):
            memory[u + j] = 0.0
        for i in range(features):
            x, row, total = theta[v + h * features + i], residual + i * positions, 0.0
            for j in range(positions):
                total += memory[row + j] * memory[s + j]
                memory[u + j] += x * memory[row + j]
            out[v + h * features + i] = rate_v * total
        if memory[4] > 0.5:
            for j in range(positions):
                out[goal + j] = rate_a * memory[u + j]
        else:
            mean = 0.0
            for j in range(positions):
                mean += memory[s + j] * memory[u + j]
            for j in range(positions):
                out[goal + j] = rate_a * memory[s + j] * (memory[u + j] - mean)
    return loss
