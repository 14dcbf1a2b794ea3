"""Likelihood of a curve whose noise is white, Brownian in the step, and integrated Brownian in ln step; linear in the records.

A Kalman filter with three states whitens the curve and every regressor at once.
"""

import numpy as np

from stagescope.kernels import njit


@njit(cache=True)
def whiten(table, ds, du, noise, out):
    """Innovations of each column of `table` (n, m), scaled to variance 1; returns the sum of ln of their variances.

    `ds` and `du` are the distances to the record before, in step and in ln step. `noise` is (rho, brownian, bend): noise of
    variance 1 with correlation rho between neighbouring records, a Brownian motion that gains `brownian` per unit of step,
    and a slope that gains `bend` per unit of ln step.
    """
    n, m = table.shape
    rho, brownian, bend = noise[0], noise[1], noise[2]
    a, b, x, v = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
    p = np.zeros((4, 4))
    p[0, 0] = 1.0
    h, g = np.empty(4), np.empty(4)
    total = 0.0
    for i in range(n):
        d = du[i]
        if i > 0:
            for j in range(m):
                a[j] *= rho
                x[j] += d * v[j]
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
        f = 0.0
        for c in range(4):
            h[c] = p[c, 0] + p[c, 1] + p[c, 2]
        f = h[0] + h[1] + h[2]
        total += np.log(f)
        root = 1.0 / np.sqrt(f)
        for c in range(4):
            g[c] = h[c] / f
        for j in range(m):
            e = table[i, j] - a[j] - b[j] - x[j]
            out[i, j] = e * root
            a[j] += g[0] * e
            b[j] += g[1] * e
            x[j] += g[2] * e
            v[j] += g[3] * e
        for c in range(4):
            for k in range(4):
                p[c, k] -= g[c] * h[k]
    return total


@njit(cache=True)
def deviance(curve, u, ds, du, noise, centres, widths, out, gains):
    """-2 ln likelihood of constant + slope + logistic steps, heights and noise level fitted; `out` (n, 3 + steps) is work space.

    `gains` (2 + steps) receives the fitted constant, slope and heights.
    """
    n, steps = len(curve), len(centres)
    table = np.empty((n, steps + 3))
    for i in range(n):
        table[i, 0] = 1.0
        table[i, 1] = u[i] - u[0]
        for k in range(steps):
            z = (u[i] - centres[k]) / widths[k]
            table[i, 2 + k] = 1.0 / (1.0 + np.exp(-z)) if z > -500 else 0.0
        table[i, steps + 2] = curve[i]
    logs = whiten(table, ds, du, noise, out)
    p = steps + 2
    gram = np.zeros((p + 1, p + 1))
    for a in range(p + 1):
        for c in range(a, p + 1):
            s = 0.0
            for i in range(n):
                s += out[i, a] * out[i, c]
            gram[a, c] = s
            gram[c, a] = s
    rest = solve(gram, p, gains)
    return n * np.log(max(rest, 1e-300) / n) + logs


@njit(cache=True)
def climb(curve, u, ds, du, noise, centres, widths, bounds, rounds, held):
    """Centres and ln widths (in place) of least squares at a given noise, by Levenberg and Marquardt on whitened columns.

    `bounds` are the least and largest centre, then those of the ln widths. The centre of step `held` stays; -1 holds none.
    """
    n, k = len(curve), len(centres)
    table, white = np.empty((n, 3 * k + 3)), np.empty((n, 3 * k + 3))
    work, heights, fresh = np.empty((n, k + 3)), np.zeros(k + 2), np.zeros(k + 2)
    trial_c, trial_w = centres.copy(), widths.copy()
    damping = 1e-2
    best = deviance(curve, u, ds, du, noise, centres, np.exp(widths), work, heights)
    for _ in range(rounds):
        tangents(curve, u, centres, widths, heights, table, held)
        whiten(table, ds, du, noise, white)
        gram = white.T @ white
        value = best
        for _ in range(6):
            propose(gram, damping, centres, widths, bounds, held, trial_c, trial_w)
            value = deviance(curve, u, ds, du, noise, trial_c, np.exp(trial_w), work, fresh)
            if value < best - 1e-9:
                break
            damping *= 5.0
        gain = best - value
        if gain <= 1e-9:
            break
        best, damping = value, damping * 0.2
        for j in range(k + 2):  # in loops, because Numba takes seconds to compile an assignment to a slice
            heights[j] = fresh[j]
        for j in range(k):
            centres[j], widths[j] = trial_c[j], trial_w[j]
        if gain < 1e-4:
            break
    return best


@njit(cache=True)
def tangents(curve, u, centres, widths, heights, table, held):
    """Columns: constant, slope, steps, derivatives by centre and by ln width, and last what is left of the curve."""
    k = len(centres)
    for i in range(len(curve)):
        table[i, 0] = 1.0
        table[i, 1] = u[i] - u[0]
        rest = curve[i] - heights[0] - heights[1] * (u[i] - u[0])
        for j in range(k):
            width = np.exp(widths[j])
            z = (u[i] - centres[j]) / width
            f = 1.0 / (1.0 + np.exp(-z)) if z > -500 else 0.0
            d = f * (1.0 - f) * heights[2 + j]
            table[i, 2 + j] = f
            table[i, 2 + k + j] = 0.0 if j == held else -d / width
            table[i, 2 + 2 * k + j] = -d * z
            rest -= heights[2 + j] * f
        table[i, 2 + 3 * k] = rest


@njit(cache=True)
def propose(gram, damping, centres, widths, bounds, held, trial_c, trial_w):
    """One damped step; a centre moves by at most .3, a ln width by at most .7, inside their bounds."""
    k = len(centres)
    damped, moves = gram.copy(), np.zeros(2 + 3 * k)
    for a in range(2 + k, 2 + 3 * k):
        damped[a, a] += damping * gram[a, a] + 1e-12
    solve(damped, 2 + 3 * k, moves)
    for j in range(k):
        shift = 0.0 if j == held else min(max(moves[2 + k + j], -0.3), 0.3)
        trial_c[j] = min(max(centres[j] + shift, bounds[0]), bounds[1])
        trial_w[j] = min(max(widths[j] + min(max(moves[2 + 2 * k + j], -0.7), 0.7), bounds[2]), bounds[3])


@njit(cache=True)
def solve(gram, p, gains):
    """Least squares from the Gram matrix whose last column is the curve, by a Cholesky factor; the residual sum of squares.

    A column that the others already make up gets no height.
    """
    low = np.zeros((p, p))
    half = np.zeros(p)
    rest = gram[p, p]
    for a in range(p):
        d = gram[a, a]
        for c in range(a):
            d -= low[a, c] * low[a, c]
        dead = d <= 1e-12 * gram[a, a] or gram[a, a] <= 1e-11
        root = np.sqrt(d) if not dead else 1.0
        low[a, a] = root
        for e in range(a + 1, p):
            s = gram[e, a]
            for c in range(a):
                s -= low[e, c] * low[a, c]
            low[e, a] = 0.0 if dead else s / root
        s = gram[a, p]
        for c in range(a):
            s -= low[a, c] * half[c]
        half[a] = 0.0 if dead else s / root
        rest -= half[a] * half[a]
    for a in range(p - 1, -1, -1):
        s = half[a]
        for e in range(a + 1, p):
            s -= low[e, a] * gains[e]
        gains[a] = s / low[a, a]
    return rest


@njit(cache=True)
def natural(at):
    """(rho, brownian, bend) from (atanh rho, ln brownian, ln bend)."""
    return np.array([np.tanh(at[0]), np.exp(at[1]), np.exp(at[2])])


@njit(cache=True)
def search(curve, u, ds, du, start, centres, widths, wide):
    """Noise of least deviance as (atanh rho, ln brownian, ln bend): from `start`, or from the best point of a grid if `wide`."""
    work, heights = np.empty((len(curve), len(centres) + 3)), np.zeros(len(centres) + 2)
    at = start.copy()
    best = deviance(curve, u, ds, du, natural(at), centres, widths, work, heights)
    if wide:
        trial = np.empty(3)
        for rho in (0.0, 0.7):
            for first in (-12.0, 0.0, 5.0):
                for second in (-12.0, 0.0, 4.0, 8.0):
                    trial[0], trial[1], trial[2] = rho, first, second
                    value = deviance(curve, u, ds, du, natural(trial), centres, widths, work, heights)
                    if value < best:
                        at, best = trial.copy(), value
    size = 2.0
    while size > 0.1:
        moved = False
        for axis in range(3):
            for sign in (-1.0, 1.0):
                trial = at.copy()
                if axis == 0:
                    trial[0] = min(max(trial[0] + 0.2 * sign * size, 0.0), 1.8)
                else:
                    trial[axis] = min(max(trial[axis] + sign * size, -12.0), 14.0)
                value = deviance(curve, u, ds, du, natural(trial), centres, widths, work, heights)
                if value < best - 1e-9:
                    at, best, moved = trial, value, True
                    break
        if not moved:
            size *= 0.5
    return at, best
