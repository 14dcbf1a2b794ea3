"""Whitening of a curve whose noise is white, Brownian in the step, and integrated Brownian in ln step; linear in the records.

A Kalman filter with four states whitens the curve and every regressor at once.
"""

import numpy as np

from stagescope.flow.kernels import njit


@njit(cache=True)
def whiten(table, ds, du, size, noise, out):
    """Innovations of each column of `table` (n, m), scaled to variance 1; returns the sum of ln of their variances.

    `ds` and `du` are the distances to the record before, in step and in ln step. `noise` is (rho, brownian, bend): noise of
    standard deviation `size` (n) with correlation rho between neighbouring records, a Brownian motion that gains `brownian` per
    unit of step, and a slope that gains `bend` per unit of ln step.
    """
    n, m = table.shape
    rho, brownian, bend = noise[0], noise[1], noise[2]
    a, b, x, v = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
    p = np.zeros((4, 4))
    p[0, 0] = 1.0
    h, g = np.empty(4), np.empty(4)
    total = 0.0
    for i in range(n):
        d, s = du[i], size[i]
        if i > 0:
            for c in range(4):  # P = F P F' + Q, F = diag(rho, 1, [[1, d], [0, 1]])
                p[2, c] += d * p[3, c]
            for c in range(4):
                p[c, 2] += d * p[c, 3]
            for c in range(4):
                p[0, c] *= rho
            for c in range(4):
                p[c, 0] *= rho
            p[0, 0] += 1.0 - rho * rho
            p[1, 1] += brownian * ds[i]
            p[2, 2] += bend * d * d * d / 3
            p[2, 3] += bend * d * d / 2
            p[3, 2] += bend * d * d / 2
            p[3, 3] += bend * d
        for c in range(4):
            h[c] = s * p[c, 0] + p[c, 1] + p[c, 2]
        f = s * h[0] + h[1] + h[2]
        total += np.log(f)
        root = 1.0 / np.sqrt(f)
        g0, g1, g2, g3 = h[0] / f, h[1] / f, h[2] / f, h[3] / f
        decay = rho if i > 0 else 0.0
        lag = d if i > 0 else 0.0
        for j in range(m):
            aj = decay * a[j]
            xj = x[j] + lag * v[j]
            e = table[i, j] - s * aj - b[j] - xj
            out[i, j] = e * root
            a[j] = aj + g0 * e
            b[j] += g1 * e
            x[j] = xj + g2 * e
            v[j] += g3 * e
        g[0], g[1], g[2], g[3] = g0, g1, g2, g3
        for c in range(4):
            for k in range(4):
                p[c, k] -= g[c] * h[k]
    return total


@njit(cache=True)
def deviance(table, ds, du, size, noise, floor, most_bend, out):
    """-2 ln likelihood of the last column of `table` as a sum of the others, heights and noise level fitted; `out` is work space.

    `noise` is (atanh rho, ln brownian, ln bend). The variance of the noise is at least `floor`/n.
    A bend above `most_bend`, in units of the last column, is refused.
    """
    n, p = table.shape[0], table.shape[1] - 1
    natural = np.array([np.tanh(noise[0]), np.exp(noise[1]), np.exp(noise[2])])
    logs = whiten(table, ds, du, size, natural, out)
    gram = out.T @ out
    low, half = np.zeros((p, p)), np.zeros(p)
    for a in range(p):  # a Cholesky factor; a column that the others already make up gets no height
        square = gram[a, a]
        for c in range(a):
            square -= low[a, c] * low[a, c]
        used = square > 1e-11 * gram[a, a]
        low[a, a] = np.sqrt(square) if used else 1.0
        for e in range(a + 1, p):
            s = gram[e, a]
            for c in range(a):
                s -= low[e, c] * low[a, c]
            low[e, a] = s / low[a, a] if used else 0.0
        s = gram[a, p]
        for c in range(a):
            s -= low[a, c] * half[c]
        half[a] = s / low[a, a] if used else 0.0
    for a in range(p - 1, -1, -1):
        for e in range(a + 1, p):
            half[a] -= low[e, a] * half[e]
        half[a] /= low[a, a]
    squares = 0.0
    for i in range(n):
        e = out[i, p]
        for a in range(p):
            e -= out[i, a] * half[a]
        squares += e * e
    if natural[2] > np.exp(-12.0) and natural[2] * max(squares, floor) / n > most_bend:
        return np.inf
    return (n - p) * (np.log(max(squares, floor) / n) + min(squares / floor, 1.0)) + logs


@njit(cache=True)
def search(table, ds, du, size, starts, floor, most_bend, least):
    """Noise of least deviance by a pattern search from the best of `starts`, whose last step is `least`; and that deviance."""
    out = np.empty_like(table)
    point, best = starts[0].copy(), np.inf
    for k in range(len(starts)):
        value = deviance(table, ds, du, size, starts[k], floor, most_bend, out)
        if value < best:
            point, best = starts[k].copy(), value
    step = 2.0
    while step > least:
        improved = False
        for axis in range(3):
            for sign in (-1.0, 1.0):
                trial = point.copy()
                if axis == 0:
                    trial[0] = min(max(trial[0] + 0.2 * sign * step, 0.0), 1.8)
                else:
                    trial[axis] = min(max(trial[axis] + sign * step, -12.0), 14.0)
                if trial[axis] != point[axis]:
                    value = deviance(table, ds, du, size, trial, floor, most_bend, out)
                    if value < best - 1e-6:
                        point, best, improved = trial, value, True
                        break
        if not improved:
            step *= 0.5
    return point, best
