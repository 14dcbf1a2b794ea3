"""Numba kernels of scan-and-snap SGD on sampled contexts, as token counts: sampling, gradient and heavy-ball steps.

Only the support rows of a class are touched. Samples are grouped by class, so that the rows of a class are gathered once and
multiplied as matrices. The gradient is added to the momentum buffer in place. Random numbers are those of SplitMix64 started
from (seed, step), so that any step can be drawn again without the steps before it. A token is drawn by inverting the
cumulative law of its class with 32 random bits, so that every probability is exact to 2^-32.
"""

import numpy as np

from stagescope.flow.exp_kernel import exp_double
from stagescope.flow.kernels import njit
from stagescope.flow.lanes_kernel import LANES, exponential, load, load_as, multiply_add, plus, spread, store, times, total
from stagescope.flow.tile_kernel import ASKED, BYTES, ROWS, add_products, address, inner_products

_FAST = {"contract", "reassoc"}  # lets sums vectorise; no other fast-math flag, so that inf and nan keep their meaning
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, the increment of SplitMix64
_LOW = np.uint64(0xFFFFFFFF)  # the low 32 bits
GUIDE = 4096  # buckets of an inversion table: the top 12 of 32 bits


@njit(cache=True, inline="always")
def _mix(x):
    """The output function of SplitMix64 (Steele, Lea, Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True)
def inverse_table(law, upper, guide):
    """Indexed inversion: upper[i] = 2^32 P(token <= i); guide[b] is the first token that the bits b x 2^20 or more can give."""
    total = 0.0
    for i in range(law.size):
        total += law[i]
        upper[i] = np.uint64(min(round(total * 4294967296.0), 4294967296.0))
    upper[law.size - 1] = np.uint64(4294967296)
    i = 0
    for b in range(guide.size):
        while upper[i] <= np.uint64(b) << np.uint64(20):
            i += 1
        guide[b] = i


@njit(cache=True, inline="always")
def _pick(bits, upper, guide):
    """The token of 32 random bits. The loop rarely runs, because few buckets of the guide hold a bound."""
    i = np.uint64(guide[bits >> np.uint64(20)])  # unsigned: no place counts from the end
    while bits >= upper[i]:
        i += np.uint64(1)
    return i


@njit(cache=True)
def draw_counts(seed, step, length, start, upper, guide, class_upper, class_guide, sizes, counts):
    """Draw one batch: the number of samples of each class, then their token counts (batch, widest), class after class.

    Two random numbers are four tokens. Each of the four has counters of its own, because adding to a counter waits for the
    last addition to it.
    """
    state = _mix(_mix(np.uint64(seed) + _GOLDEN) ^ (np.uint64(step) * _GOLDEN))
    half = np.uint64(32)
    sizes[:] = 0
    for _ in range(counts.shape[0]):
        state += _GOLDEN
        sizes[_pick(_mix(state) >> half, class_upper, class_guide)] += 1
    counts[:] = 0
    room = np.zeros((3, counts.shape[1]), np.int32)
    second, third, fourth = room[0], room[1], room[2]
    row = 0
    for n in range(sizes.size):
        bounds, first = upper[start[n] : start[n + 1]], guide[n]
        for _ in range(sizes[n]):
            sample = counts[row]
            for _ in range(length // 4):
                bits, more_bits = _mix(state + _GOLDEN), _mix(state + _GOLDEN + _GOLDEN)
                state += _GOLDEN + _GOLDEN
                sample[_pick(bits >> half, bounds, first)] += 1
                second[_pick(bits & _LOW, bounds, first)] += 1
                third[_pick(more_bits >> half, bounds, first)] += 1
                fourth[_pick(more_bits & _LOW, bounds, first)] += 1
            for i in range(bounds.size):
                sample[i] += second[i] + third[i] + fourth[i]
                second[i] = third[i] = fourth[i] = 0
            for k in range(length % 4):
                if k % 2 == 0:
                    state += _GOLDEN
                sample[_pick(_mix(state) >> half if k % 2 == 0 else _mix(state) & _LOW, bounds, first)] += 1
            row += 1


@njit(cache=True)
def _highest(x):
    """The maximum in four independent chains, because compilers do not vectorise maxima."""
    a = b = c = d = x[0]
    unrolled = x.size - x.size % 4
    for j in range(0, unrolled, 4):
        a, b, c, d = max(a, x[j]), max(b, x[j + 1]), max(c, x[j + 2]), max(d, x[j + 3])
    for j in range(unrolled, x.size):
        a = max(a, x[j])
    return max(max(a, b), max(c, d))


@njit(cache=True, fastmath=_FAST)
def _exp_rows(x, total):
    """x <- exp(x - max of its row), at least e^-700; total <- 1/sum of a row."""
    rows, columns = x.shape
    for b in range(rows):
        row = x[b]
        top = _highest(row)
        for j in range(columns):
            row[j] = max(row[j] - top, -700.0)
        exp_double(row)
        row_sum = 0.0
        for j in range(columns):
            row_sum += row[j]
        total[b] = 1.0 / row_sum


@njit(cache=True)
def _shifted(counts, scores, support, f):
    """f = N exp(z - max of z over tokens present), where the class's strongest token is absent; returns its squared norm."""
    number = f.dtype.type
    top, norm = number(-np.inf), number(0.0)
    for i in range(support.size):
        if counts[i] > 0:
            top = max(top, scores[support[i]])
    for i in range(support.size):
        f[i] = number(counts[i]) * np.exp(scores[support[i]] - top) if counts[i] > 0 else number(0.0)
        norm += f[i] * f[i]
    return norm


@njit(cache=True, fastmath=_FAST)
def accumulate(y, z, dy, dz, sizes, counts, start, key, query, target):
    """dy, dz += gradient of the batch's mean cross-entropy."""
    batch, widest = counts.shape
    outputs, share = y.shape[1], 1.0 / batch
    rows_, step_ = np.empty(widest * outputs), np.empty(widest * outputs)
    f_, g_ = np.empty(batch * widest), np.empty(batch * widest)
    e_, total, per_token = np.empty(batch * outputs), np.empty(batch), np.empty(widest)
    row = 0
    for n in range(sizes.size):
        samples = sizes[n]
        if samples == 0:
            continue
        support = key[start[n] : start[n + 1]]
        width = support.size
        rows, step = rows_[: width * outputs].reshape(width, outputs), step_[: width * outputs].reshape(width, outputs)
        f, g = f_[: samples * width].reshape(samples, width), g_[: samples * width].reshape(samples, width)
        e = e_[: samples * outputs].reshape(samples, outputs)
        scores = z[query[n]]
        top = -np.inf
        for i in range(width):
            top = max(top, scores[support[i]])
            row_of_y = y[support[i]]
            for j in range(outputs):
                rows[i, j] = row_of_y[j]
        for i in range(width):
            per_token[i] = np.exp(scores[support[i]] - top)
        for b in range(samples):
            norm = 0.0
            for i in range(width):
                f[b, i] = counts[row + b, i] * per_token[i]
                norm += f[b, i] * f[b, i]
            if norm < 1e-200:
                norm = _shifted(counts[row + b], scores, support, f[b])
            norm = 1.0 / np.sqrt(norm)
            for i in range(width):
                f[b, i] *= norm
        np.dot(f, rows, e)
        _exp_rows(e, total)
        np.dot(e, rows.T, g)
        line = dz[query[n]]
        per_token[:] = 0.0
        for b in range(samples):
            mean = 0.0
            for i in range(width):
                g[b, i] = g[b, i] * total[b] - rows[i, target[n]]
                mean += f[b, i] * g[b, i]
            for i in range(width):
                line[support[i]] += share * f[b, i] * (g[b, i] - f[b, i] * mean)
                per_token[i] += f[b, i]
                f[b, i] *= total[b]
        np.dot(f.T, e, step)
        for i in range(width):
            step[i, target[n]] -= per_token[i]
            row_of_dy = dy[support[i]]
            for j in range(outputs):
                row_of_dy[j] += share * step[i, j]
        row += samples


@njit(cache=True, fastmath=_FAST)
def move(x, memory, lr, momentum):
    """x -= lr memory, memory *= momentum in one pass; returns the sum of squares of x."""
    total = x.dtype.type(0.0)
    for i in range(x.shape[0]):
        row, pull = x[i], memory[i]
        for j in range(x.shape[1]):
            row[j] -= lr * pull[j]
            pull[j] *= momentum
            total += row[j] * row[j]
    return total


@njit(cache=True)
def heavy_ball(y, z, my, mz, first, steps, seed, length, batch, tables, layout, momentum, lr_y, lr_z):
    """`steps` steps of momentum SGD in place, from step `first` on; returns how many kept the parameters below 1e15.

    The buffers hold momentum x their last value, so that the next gradient can be added in place.
    """
    start, upper, guide, class_upper, class_guide = tables
    key, query, target = layout
    sizes = np.empty(start.size - 1, np.int64)
    counts = np.empty((batch, (start[1:] - start[:-1]).max()), np.int32)
    for k in range(steps):
        draw_counts(seed, first + k, length, start, upper, guide, class_upper, class_guide, sizes, counts)
        accumulate(y, z, my, mz, sizes, counts, start, key, query, target)
        if not move(y, my, lr_y, momentum) + move(z, mz, lr_z, momentum) < 1e30:
            return k
    return steps


# The same steps in float32, without BLAS: its calls cost more than products this small.
#
# Columns of Y and tokens of a class are padded with zeros, so that loops over them are whole vectors. Rows of Y are read where
# they are, four tokens or four samples at a time, and the gradient is added to the momentum buffer in place.


SAFE = 70.0
"""Logits within +- this are exponentiated as they are; beyond, each sample's largest one is subtracted first."""


def padded(y: np.ndarray) -> np.ndarray:
    """A matrix in float32 with columns of zeros up to a multiple of LANES."""
    return np.pad(y.astype(np.float32), ((0, 0), (0, -y.shape[1] % LANES)))


@njit(cache=True, fastmath=_FAST)
def _features(counts, first, samples, scores, support, weights, f):
    """f = N e^z / |N e^z|_2 for all samples of a class; `weights` gets e^z relative to the strongest token, and 0 beyond them."""
    top, zero, width = np.float32(-np.inf), np.float32(0.0), weights.size
    for i in range(support.size):
        top = max(top, scores[support[i]])
    weights[:] = zero
    for i in range(support.size):
        weights[i] = np.exp(scores[support[i]] - top)
    for b in range(samples):
        squares = spread(zero)
        for i in range(0, width, LANES):
            unscaled = times(load_as(counts, (first + b) * width + i, zero), load(weights, i))
            squares = multiply_add(unscaled, unscaled, squares)
            store(f, b * width + i, unscaled)
        norm = total(squares)
        if norm < np.float32(1e-30):
            norm = _shifted(counts[first + b], scores, support, f[b])
        scale = spread(np.float32(1.0) / np.sqrt(norm))
        for i in range(b * width, (b + 1) * width, LANES):
            store(f, i, times(load(f, i), scale))


@njit(cache=True)
def _four(block, first):
    """The addresses of four rows."""
    return address(block, first), address(block, first + 1), address(block, first + 2), address(block, first + 3)


@njit(cache=True)
def _logits(f, rows, width, samples, e):
    """e = f Y over the rows of a class, given by their addresses; f is 0 beyond `samples`."""
    for b in range(0, samples, ROWS):
        out, lines = _four(e, b), _four(f, b)
        for column in range(0, 4 * e.shape[1], 2 * BYTES):
            add_products(f, out, True, lines, 4, address(rows, 0), width, column)


@njit(cache=True, fastmath=_FAST)
def _is_safe(y, support, squares):
    """Whether no logit of a class can leave +- SAFE: features are unit vectors, so columns of their rows of Y bound them."""
    squares[:] = np.float32(0.0)
    for i in range(support.size):
        row = y[support[i]]
        for j in range(squares.size):
            squares[j] += row[j] * row[j]
    return squares.max() <= np.float32(SAFE * SAFE)


@njit(cache=True, fastmath=_FAST)
def _shift(e, outputs):
    """e <- e - maximum of its row, at least -87. Bits of floats as integers in the same order: their maximum vectorises."""
    bits, top, least = e.view(np.int32), np.empty(1, np.float32), np.float32(-87.0)
    for b in range(e.shape[0]):
        best, row_bits, row = np.int32(-2147483648), bits[b], e[b]
        for j in range(outputs):
            best = max(best, np.int32(row_bits[j] ^ ((row_bits[j] >> np.int32(31)) & np.int32(0x7FFFFFFF))))
        top.view(np.int32)[0] = best ^ ((best >> np.int32(31)) & np.int32(0x7FFFFFFF))
        for j in range(e.shape[1]):
            row[j] = min(max(row[j] - top[0], least), np.float32(0.0))


@njit(cache=True)
def _exponentials(e, samples, real, totals):
    """e <- exp(e) real, where real is 1 for outputs and 0 for padding; totals <- 1/sum of a row."""
    for b in range(samples):
        row_sum, first = spread(np.float32(0.0)), b * real.size
        for j in range(0, real.size, LANES):
            power = times(exponential(load(e, first + j)), load(real, j))
            row_sum = plus(row_sum, power)
            store(e, first + j, power)
        totals[b] = np.float32(1.0) / total(row_sum)


@njit(cache=True)
def _pulls(e, rows, width, samples, outputs, g):
    """g = e Y^T over the rows of a class, given by their addresses."""
    vectors = -(-4 * outputs // BYTES)
    for b in range(0, samples, ASKED):
        lines = (address(e, b), address(e, b + 1), address(e, b + 2))
        for i in range(0, width, ROWS):
            out = (address(g, b) + 4 * i, address(g, b + 1) + 4 * i, address(g, b + 2) + 4 * i)
            inner_products(e, (rows[i], rows[i + 1], rows[i + 2], rows[i + 3]), lines, vectors, out)


@njit(cache=True)
def _attend(f, g, totals, offsets, share, pull, summed):
    """pull += sum over samples of f (g - f f.g), summed += sum of f, both in shares; f <- f share / (sum of exponentials).

    `offsets` is minus what the target's logit is made of.
    """
    width, shares = offsets.size, spread(share)
    for b in range(totals.size):
        scale, mean = spread(totals[b]), spread(np.float32(0.0))
        for i in range(0, width, LANES):
            turned = multiply_add(load(g, b * width + i), scale, load(offsets, i))
            mean = multiply_add(load(f, b * width + i), turned, mean)
            store(g, b * width + i, turned)
        back = spread(-total(mean))
        for i in range(0, width, LANES):
            feature = load(f, b * width + i)
            part = times(feature, shares)
            store(pull, i, multiply_add(part, multiply_add(feature, back, load(g, b * width + i)), load(pull, i)))
            store(summed, i, plus(load(summed, i), part))
            store(f, b * width + i, times(part, scale))


@njit(cache=True)
def _add_outer(f, rows, width, samples, changed, columns):
    """Rows of dy, given by the addresses `changed`, += f^T e, and `rows` are the addresses of e.

    f is 0 beyond the width; there `changed` is a spare row, which stays as it is.
    """
    across = 4 * f.shape[1]
    for i in range(0, width, ROWS):
        base, out = address(f, 0) + 4 * i, (changed[i], changed[i + 1], changed[i + 2], changed[i + 3])
        lines = (base, base + 4, base + 8, base + 12)
        for column in range(0, 4 * columns, 2 * BYTES):
            add_products(f, out, False, lines, across, address(rows, 0), samples, column)


@njit(cache=True)
def workspace(batch, width, columns, outputs):
    """Arrays that every step of `accumulate_single` writes to: by sample, by token of a class, and by output."""
    e, f = np.zeros((batch + ROWS, columns), np.float32), np.zeros((batch + ROWS, width), np.float32)
    lines, real, squares = np.empty(batch, np.int64), np.zeros(columns, np.float32), np.empty(columns, np.float32)
    real[:outputs] = np.float32(1.0)
    for b in range(batch):
        lines[b] = address(e, b)
    read, changed = np.empty(width + ROWS, np.int64), np.empty(width + ROWS, np.int64)
    per_token, pull, summed = np.zeros(width, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    return (e, f, np.zeros_like(f), np.empty(batch, np.float32), lines), (read, changed, per_token, pull, summed), (real, squares)


@njit(cache=True)
def accumulate_single(y, z, dy, dz, sizes, counts, start, key, query, target, size, work):
    """dy, dz += gradient of the batch's mean cross-entropy; columns of y, dy and counts are padded, `size` is |y|^2."""
    (e, f, g, totals, lines), (read, changed, per_token, pull, summed), (real, squares) = work
    outputs, share, first = int(real.sum()), np.float32(1.0 / len(counts)), 0
    for n in range(sizes.size):
        samples, width = sizes[n], start[n + 1] - start[n]
        if samples == 0:
            continue
        support = key[start[n] : start[n + 1]]
        for i in range(read.size):
            row = support[min(i, width - 1)]
            read[i], changed[i] = address(y, row), address(dy, row) if i < width else address(e, len(e) - 1)
        _features(counts, first, samples, z[query[n]], support, per_token, f)
        f[samples : samples + ROWS] = np.float32(0.0)
        _logits(f, read, width, samples, e)
        if not (size <= np.float32(SAFE * SAFE) or _is_safe(y, support, squares)):
            _shift(e[:samples], outputs)
        _exponentials(e, samples, real, totals)
        _pulls(e, read, width, samples, outputs, g)
        for i in range(per_token.size):
            per_token[i] = -y[support[min(i, width - 1)], target[n]]
            pull[i] = summed[i] = np.float32(0.0)
        _attend(f, g, totals[:samples], per_token, share, pull, summed)
        _add_outer(f, lines, width, samples, changed, y.shape[1])
        for i in range(width):
            dz[query[n], support[i]] += pull[i]
            dy[support[i], target[n]] -= summed[i]
        first += samples


@njit(cache=True)
def heavy_ball_single(y, z, my, mz, outputs, first, steps, seed, length, batch, tables, layout, momentum, lr_y, lr_z):
    """`heavy_ball` in float32, on the same draws; columns of y and my are padded beyond `outputs`."""
    start, upper, guide, class_upper, class_guide = tables
    key, query, target = layout
    sizes = np.empty(start.size - 1, np.int64)
    width, size = -(-(start[1:] - start[:-1]).max() // LANES) * LANES, np.float32(np.inf)
    counts, work = np.empty((batch, width), np.int32), workspace(batch, width, y.shape[1], outputs)
    for k in range(steps):
        draw_counts(seed, first + k, length, start, upper, guide, class_upper, class_guide, sizes, counts)
        accumulate_single(y, z, my, mz, sizes, counts, start, key, query, target, size, work)
        size = move(y, my, lr_y, momentum)
        if not size + move(z, mz, lr_z, momentum) < np.float32(1e30):
            return k
    return steps
