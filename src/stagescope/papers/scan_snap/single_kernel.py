"""The steps of `sampled_kernel` in float32, without BLAS: its calls cost more than products this small.

Columns of Y and tokens of a class are padded with zeros, so that loops over them are whole vectors. Rows of Y are read where they
are, four tokens or four samples at a time, and the gradient is added to the momentum buffer in place.
"""

import numpy as np

from stagescope.fields.lanes_kernel import LANES, exponential, load, load_as, multiply_add, plus, spread, store, times, total
from stagescope.fields.tile_kernel import ASKED, BYTES, ROWS, add_products, address, inner_products
from stagescope.kernels import njit
from stagescope.papers.scan_snap.sampled_kernel import draw_counts, move

_FAST = {"contract", "reassoc"}  # as in `sampled_kernel`
SAFE = 70.0
"""Logits within +- this are exponentiated as they are; beyond, each sample's largest one is subtracted first."""


def padded(y: np.ndarray) -> np.ndarray:
    """A matrix in float32 with columns of zeros up to a multiple of LANES."""
    return np.pad(y.astype(np.float32), ((0, 0), (0, -y.shape[1] % LANES)))


@njit(cache=True, fastmath=_FAST)
def _features(counts, at, many, scores, support, own, f):
    """f = N e^z / |N e^z|_2 for all samples of a class; `own` gets e^z relative to the strongest token, and 0 beyond them."""
    top, zero, width = np.float32(-np.inf), np.float32(0.0), own.size
    for i in range(support.size):
        top = max(top, scores[support[i]])
    own[:] = zero
    for i in range(support.size):
        own[i] = np.exp(scores[support[i]] - top)
    for b in range(many):
        squares = spread(zero)
        for i in range(0, width, LANES):
            here = times(load_as(counts, (at + b) * width + i, zero), load(own, i))
            squares = multiply_add(here, here, squares)
            store(f, b * width + i, here)
        norm = total(squares)
        if norm < np.float32(1e-30):
            norm = _shifted(counts[at + b], scores, support, f[b])
        scale = spread(np.float32(1.0) / np.sqrt(norm))
        for i in range(b * width, (b + 1) * width, LANES):
            store(f, i, times(load(f, i), scale))


@njit(cache=True)
def _shifted(counts, scores, support, f):
    """f = N exp(z - max of z over tokens present), where the class's strongest token is absent; returns its squared norm."""
    top = np.float32(-np.inf)
    for i in range(support.size):
        if counts[i] > 0:
            top = max(top, scores[support[i]])
    norm = np.float32(0.0)
    for i in range(support.size):
        f[i] = np.float32(counts[i]) * np.exp(scores[support[i]] - top) if counts[i] > 0 else np.float32(0.0)
        norm += f[i] * f[i]
    return norm


@njit(cache=True)
def _four(block, first):
    """The addresses of four rows."""
    return address(block, first), address(block, first + 1), address(block, first + 2), address(block, first + 3)


@njit(cache=True)
def _logits(f, rows, width, many, e):
    """e = f Y over the rows of a class, given by their addresses; f is 0 beyond `many`."""
    for b in range(0, many, ROWS):
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
        best, here, row = np.int32(-2147483648), bits[b], e[b]
        for j in range(outputs):
            best = max(best, np.int32(here[j] ^ ((here[j] >> np.int32(31)) & np.int32(0x7FFFFFFF))))
        top.view(np.int32)[0] = best ^ ((best >> np.int32(31)) & np.int32(0x7FFFFFFF))
        for j in range(e.shape[1]):
            row[j] = min(max(row[j] - top[0], least), np.float32(0.0))


@njit(cache=True)
def _exponentials(e, many, real, totals):
    """e <- exp(e) real, where real is 1 for outputs and 0 for padding; totals <- 1/sum of a row."""
    for b in range(many):
        whole, first = spread(np.float32(0.0)), b * real.size
        for j in range(0, real.size, LANES):
            power = times(exponential(load(e, first + j)), load(real, j))
            whole = plus(whole, power)
            store(e, first + j, power)
        totals[b] = np.float32(1.0) / total(whole)


@njit(cache=True)
def _pulls(e, rows, width, many, outputs, g):
    """g = e Y^T over the rows of a class, given by their addresses."""
    vectors = -(-4 * outputs // BYTES)
    for b in range(0, many, ASKED):
        asked = (address(e, b), address(e, b + 1), address(e, b + 2))
        for i in range(0, width, ROWS):
            out = (address(g, b) + 4 * i, address(g, b + 1) + 4 * i, address(g, b + 2) + 4 * i)
            inner_products(e, (rows[i], rows[i + 1], rows[i + 2], rows[i + 3]), asked, vectors, out)


@njit(cache=True)
def _attend(f, g, totals, own, share, pull, summed):
    """pull += sum over samples of f (g - f f.g), summed += sum of f, both in shares; f <- f share / (sum of exponentials).

    `own` is minus what the target's logit is made of.
    """
    width, each = own.size, spread(share)
    for b in range(totals.size):
        whole, mean = spread(totals[b]), spread(np.float32(0.0))
        for i in range(0, width, LANES):
            turned = multiply_add(load(g, b * width + i), whole, load(own, i))
            mean = multiply_add(load(f, b * width + i), turned, mean)
            store(g, b * width + i, turned)
        back = spread(-total(mean))
        for i in range(0, width, LANES):
            here = load(f, b * width + i)
            part = times(here, each)
            store(pull, i, multiply_add(part, multiply_add(here, back, load(g, b * width + i)), load(pull, i)))
            store(summed, i, plus(load(summed, i), part))
            store(f, b * width + i, times(part, whole))


@njit(cache=True)
def _add_outer(f, rows, width, many, changed, columns):
    """Rows of dy, given by the addresses `changed`, += f^T e, and `rows` are the addresses of e.

    f is 0 beyond the width; there `changed` is a spare row, which stays as it is.
    """
    across = 4 * f.shape[1]
    for i in range(0, width, ROWS):
        here, out = address(f, 0) + 4 * i, (changed[i], changed[i + 1], changed[i + 2], changed[i + 3])
        lines = (here, here + 4, here + 8, here + 12)
        for column in range(0, 4 * columns, 2 * BYTES):
            add_products(f, out, False, lines, across, address(rows, 0), many, column)


@njit(cache=True)
def workspace(batch, width, columns, outputs):
    """Arrays that every step of `accumulate_single` writes to: by sample, by token of a class, and by output."""
    e, f = np.zeros((batch + ROWS, columns), np.float32), np.zeros((batch + ROWS, width), np.float32)
    lines, real, squares = np.empty(batch, np.int64), np.zeros(columns, np.float32), np.empty(columns, np.float32)
    real[:outputs] = np.float32(1.0)
    for b in range(batch):
        lines[b] = address(e, b)
    read, changed = np.empty(width + ROWS, np.int64), np.empty(width + ROWS, np.int64)
    own, pull, summed = np.zeros(width, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    return (e, f, np.zeros_like(f), np.empty(batch, np.float32), lines), (read, changed, own, pull, summed), (real, squares)


@njit(cache=True)
def accumulate_single(y, z, dy, dz, sizes, counts, start, key, query, target, size, work):
    """dy, dz += gradient of the batch's mean cross-entropy; columns of y, dy and counts are padded, `size` is |y|^2."""
    (e, f, g, totals, lines), (read, changed, own, pull, summed), (real, squares) = work
    outputs, share, at = int(real.sum()), np.float32(1.0 / len(counts)), 0
    for n in range(sizes.size):
        many, width = sizes[n], start[n + 1] - start[n]
        if many == 0:
            continue
        support = key[start[n] : start[n + 1]]
        for i in range(read.size):
            row = support[min(i, width - 1)]
            read[i], changed[i] = address(y, row), address(dy, row) if i < width else address(e, len(e) - 1)
        _features(counts, at, many, z[query[n]], support, own, f)
        f[many : many + ROWS] = np.float32(0.0)
        _logits(f, read, width, many, e)
        if not (size <= np.float32(SAFE * SAFE) or _is_safe(y, support, squares)):
            _shift(e[:many], outputs)
        _exponentials(e, many, real, totals)
        _pulls(e, read, width, many, outputs, g)
        for i in range(own.size):
            own[i] = -y[support[min(i, width - 1)], target[n]]
            pull[i] = summed[i] = np.float32(0.0)
        _attend(f, g, totals[:many], own, share, pull, summed)
        _add_outer(f, lines, width, many, changed, y.shape[1])
        for i in range(width):
            dz[query[n], support[i]] += pull[i]
            dy[support[i], target[n]] -= summed[i]
        at += many


@njit(cache=True)
def heavy_ball_single(y, z, my, mz, outputs, first, steps, seed, length, batch, tables, layout, momentum, lr_y, lr_z):
    """`heavy_ball` of `sampled_kernel` in float32, on the same draws; columns of y and my are padded beyond `outputs`."""
    start, upper, guide, class_upper, class_guide = tables
    key, query, target = layout
    sizes = np.empty(start.size - 1, np.int64)
    widest = 0
    for n in range(sizes.size):
        widest = max(widest, start[n + 1] - start[n])
    width, size = -(-widest // LANES) * LANES, np.float32(np.inf)
    counts, work = np.empty((batch, width), np.int32), workspace(batch, width, y.shape[1], outputs)
    for k in range(steps):
        draw_counts(seed, first + k, length, start, upper, guide, class_upper, class_guide, sizes, counts)
        accumulate_single(y, z, my, mz, sizes, counts, start, key, query, target, size, work)
        size = move(y, my, lr_y, momentum)
        if not size + move(z, mz, lr_z, momentum) < np.float32(1e30):
            return k
    return steps
