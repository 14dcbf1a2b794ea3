"""Silent heads while another head learns a direction: their law with a push that fades, by Dormand and Prince [LIN:cascade]."""

import numpy as np

from stagescope.kernels import njit

A = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
E = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
"""Stages of the pair of orders 5 and 4, and the difference of the two."""
TOLERANCE, MOST_STEPS = 1e-9, 100_000


@njit(cache=True)
def _law(y, out, rates, grow, fade, drop, pace, gain):
    """u of the head that learns, then v, tau and gamma of each silent head.

    u' = pace u^2 left, where left = 1 - M_dd/M_final is what the push on direction `drop` has left;
    v' = sum_i g_i (A_i e^{2 gamma_i} - B_i e^{-2 gamma_i}) and tau' = v; gamma_d' = v left g_d, the others are g_i tau.
    """
    heads, dim = grow.shape
    left = 1.0 - y[0] * (y[0] * y[0])
    for h in range(heads):
        v, turn = y[1 + 3 * h], 2.0 * y[3 + 3 * h]
        left -= gain * v * (grow[h, drop] * np.exp(turn) - fade[h, drop] * np.exp(-turn))
    out[0] = pace * (y[0] * y[0]) * left
    for h in range(heads):
        v, tau, gamma = y[1 + 3 * h], y[2 + 3 * h], y[3 + 3 * h]
        pull = 0.0
        for i in range(dim):
            turn = 2.0 * (gamma if i == drop else rates[i] * tau)
            pull += rates[i] * (left if i == drop else 1.0) * (grow[h, i] * np.exp(turn) - fade[h, i] * np.exp(-turn))
        out[1 + 3 * h] = pull
        out[2 + 3 * h] = v
        out[3 + 3 * h] = v * left * rates[drop]


@njit(cache=True)
def follow(y, span, largest, rates, grow, fade, drop, pace, gain):
    """Moves y through the span, or until some |v| of a silent head reaches `largest`; returns the time reached."""
    size, heads = y.size, grow.shape[0]
    stages, trial = np.zeros((7, size)), np.empty(size)
    t, end = span
    step = (end - t) * 1e-6
    _law(y, stages[0], rates, grow, fade, drop, pace, gain)
    for _ in range(MOST_STEPS):
        step = min(step, end - t)
        for s in range(6):
            for i in range(size):
                moved = 0.0
                for j in range(s + 1):
                    moved += A[s, j] * stages[j, i]
                trial[i] = y[i] + step * moved
            _law(trial, stages[s + 1], rates, grow, fade, drop, pace, gain)
        worst = 0.0
        for i in range(size):
            off = 0.0
            for j in range(7):
                off += E[j] * stages[j, i]
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
