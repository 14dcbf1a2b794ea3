"""Numba kernels of scan-and-snap SGD on sampled contexts, as token counts: sampling, gradient and heavy-ball steps.

Only the support rows of a class are touched, samples are grouped by class so that a class's rows are gathered once and
multiplied as matrices, and the momentum buffer is the accumulator of the gradient. Draws are those of SplitMix64 started
from (seed, step): any step can be drawn again without those before it. A token is drawn from its class by an alias table
read with 32 random bits, so a token's probability is exact to (support size) x 2^-32.
"""

import math

import numpy as np
from numba import njit

_FAST = {"contract", "reassoc"}
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ROUND = 6755399441055744.0  # 1.5 x 2^52: adding it rounds to an integer, kept in the low bits
_LOW = np.uint64(0xFFFFFFFF)
_C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(k) for k in range(3, 14))


@njit(cache=True, inline="always")
def _mix(x):
    """The output function of SplitMix64 (Steele, Lea, Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True)
def alias_table(law, threshold, other):
    """Vose's alias table: column i keeps its own index below threshold[i], else gives other[i]."""
    size = law.size
    scaled = law / law.sum() * size
    small, large = np.empty(size, np.int64), np.empty(size, np.int64)
    few = many = 0
    for i in range(size):
        threshold[i], other[i] = np.uint64(4294967296), np.uint64(i)
        if scaled[i] < 1.0:
            small[few] = i
            few += 1
        else:
            large[many] = i
            many += 1
    while few > 0 and many > 0:
        few -= 1
        low, high = small[few], large[many - 1]
        threshold[low], other[low] = np.uint64(scaled[low] * 4294967296.0), np.uint64(high)
        scaled[high] -= 1.0 - scaled[low]
        if scaled[high] < 1.0:
            many -= 1
            small[few] = high
            few += 1


@njit(cache=True, inline="always")
def _pick(bits, size, threshold, other):
    """One draw from an alias table, by 32 random bits: the whole part picks a column, the fraction column or alias."""
    place = bits * size
    column = place >> np.uint64(32)
    return column if (place & _LOW) < threshold[column] else other[column]


@njit(cache=True)
def draw_counts(seed, step, length, start, threshold, other, class_threshold, class_other, sizes, counts):
    """Counts of one batch: how many samples each class has, then their token counts (batch, widest), class after class."""
    state = _mix(_mix(np.uint64(seed) + _GOLDEN) ^ (np.uint64(step) * _GOLDEN))
    half = np.uint64(32)
    sizes[:] = 0
    for _ in range(counts.shape[0]):
        state += _GOLDEN
        sizes[_pick(_mix(state) >> half, np.uint64(sizes.size), class_threshold, class_other)] += 1
    counts[:] = 0
    row = 0
    for n in range(sizes.size):
        own, alias = threshold[start[n] : start[n + 1]], other[start[n] : start[n + 1]]
        support = np.uint64(own.size)
        for _ in range(sizes[n]):
            here = counts[row]
            for _ in range(length // 2):
                state += _GOLDEN
                bits = _mix(state)
                here[_pick(bits >> half, support, own, alias)] += 1
                here[_pick(bits & _LOW, support, own, alias)] += 1
            if length % 2:
                state += _GOLDEN
                here[_pick(_mix(state) >> half, support, own, alias)] += 1
            row += 1


@njit(cache=True, fastmath=True)
def _highest(x):
    top = x[0]
    for j in range(x.size):
        top = max(top, x[j])
    return top


@njit(cache=True, fastmath=_FAST)
def _exp_rows(x, total, bits):
    """x <- exp(x - max of its row), total <- 1/sum of a row.

    Loops that vectorise: 2^k by adding k to the exponent bits, the Taylor series to degree 13 for the rest (error 2e-16).
    """
    rows, columns = x.shape
    shifted = bits.view(np.float64)
    for b in range(rows):
        here = x[b]
        top = _highest(here)
        for j in range(columns):
            value = max(here[j] - top, -700.0)
            here[j] = value
            shifted[j] = value * 1.4426950408889634 + _ROUND
        for j in range(columns):
            k = shifted[j] - _ROUND
            r = (here[j] - k * 0.6931471803691238) - k * 1.9082149292705877e-10
            s = r * _C13 + _C12
            s = s * r + _C11
            s = s * r + _C10
            s = s * r + _C9
            s = s * r + _C8
            s = s * r + _C7
            s = s * r + _C6
            s = s * r + _C5
            s = s * r + _C4
            s = s * r + _C3
            s = s * r + 0.5
            s = s * r + 1.0
            here[j] = s * r + 1.0
        for j in range(columns):
            bits[j] = (bits[j] + 1023) << 52
        sum_ = 0.0
        for j in range(columns):
            here[j] *= shifted[j]
            sum_ += here[j]
        total[b] = 1.0 / sum_


@njit(cache=True, fastmath=_FAST)
def accumulate(y, z, dy, dz, sizes, counts, start, key, query, target):
    """dy, dz += gradient of the batch's mean cross-entropy."""
    batch, widest = counts.shape
    outputs = y.shape[1]
    bits = np.empty(outputs, np.int64)
    rows_, step_ = np.empty(widest * outputs), np.empty(widest * outputs)
    f_, g_ = np.empty(batch * widest), np.empty(batch * widest)
    e_, total, own = np.empty(batch * outputs), np.empty(batch), np.empty(widest)
    row = 0
    for n in range(sizes.size):
        many = sizes[n]
        if many == 0:
            continue
        support = key[start[n] : start[n + 1]]
        width = support.size
        rows, step = rows_[: width * outputs].reshape(width, outputs), step_[: width * outputs].reshape(width, outputs)
        f, g = f_[: many * width].reshape(many, width), g_[: many * width].reshape(many, width)
        e = e_[: many * outputs].reshape(many, outputs)
        scores = z[query[n]]
        top = -np.inf
        for i in range(width):
            rows[i] = y[support[i]]
            top = max(top, scores[support[i]])
        for i in range(width):
            own[i] = np.exp(scores[support[i]] - top)
        for b in range(many):
            norm = 0.0
            for i in range(width):
                f[b, i] = counts[row + b, i] * own[i]
                norm += f[b, i] * f[b, i]
            norm = 1.0 / np.sqrt(norm)
            for i in range(width):
                f[b, i] *= norm
        np.dot(f, rows, e)
        _exp_rows(e, total, bits)
        np.dot(e, rows.T, g)
        line = dz[query[n]]
        own[:] = 0.0
        for b in range(many):
            mean = 0.0
            for i in range(width):
                g[b, i] = g[b, i] * total[b] - rows[i, target[n]]
                mean += f[b, i] * g[b, i]
            for i in range(width):
                line[support[i]] += f[b, i] * (g[b, i] - f[b, i] * mean) / batch
                own[i] += f[b, i]
                f[b, i] *= total[b]
        np.dot(f.T, e, step)
        for i in range(width):
            step[i, target[n]] -= own[i]
            here = dy[support[i]]
            for j in range(outputs):
                here[j] += step[i, j] / batch
        row += many


@njit(cache=True, fastmath=_FAST)
def _move(x, memory, lr, momentum):
    """x -= lr memory, memory *= momentum in one pass; returns a sum that is finite only if all of x is."""
    total = 0.0
    for i in range(x.shape[0]):
        here, pull = x[i], memory[i]
        for j in range(x.shape[1]):
            here[j] -= lr * pull[j]
            pull[j] *= momentum
            total += here[j]
    return total


@njit(cache=True)
def heavy_ball(y, z, my, mz, first, steps, seed, length, batch, tables, layout, momentum, lr_y, lr_z):
    """`steps` steps of momentum SGD in place, from step `first` on; returns how many kept all parameters finite.

    The buffers hold momentum x their last value, ready to take up the next gradient.
    """
    start, threshold, other, class_threshold, class_other = tables
    key, query, target = layout
    sizes = np.empty(start.size - 1, np.int64)
    widest = 0
    for n in range(sizes.size):
        widest = max(widest, start[n + 1] - start[n])
    counts = np.empty((batch, widest), np.int32)
    for k in range(steps):
        draw_counts(seed, first + k, length, start, threshold, other, class_threshold, class_other, sizes, counts)
        accumulate(y, z, my, mz, sizes, counts, start, key, query, target)
        if not np.isfinite(_move(y, my, lr_y, momentum) + _move(z, mz, lr_z, momentum)):
            return k
    return steps


@njit(cache=True)
def heavy_ball_many(y, z, steps, seeds, length, batch, tables, layout, momentum, lr_y, lr_z):
    """Many runs (first axis) of the same problem, each with its seed and rates, in place; returns the steps each one took."""
    taken = np.empty(seeds.size, np.int64)
    for run in range(seeds.size):
        my, mz = np.zeros_like(y[run]), np.zeros_like(z[run])
        rates = lr_y[run], lr_z[run]
        taken[run] = heavy_ball(y[run], z[run], my, mz, 0, steps, seeds[run], length, batch, tables, layout, momentum, *rates)
    return taken
