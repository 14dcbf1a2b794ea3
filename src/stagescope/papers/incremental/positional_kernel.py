"""Numba kernel of positional heads on sampled sequences: value and gradient by sums of rows.

With W[s, x, t] = sum_h attention[h, t, s] V_h[:, x], the logits of a sequence are sum_s W[s, x_s]: one row of W per position,
whatever the number of heads. A row holds several targets side by side. The gradient in W is the transpose: row (s, x) is the sum
of the residuals of all sequences with x at s, and is folded back into attention and values once at the end. Both sums are taken
for a few columns at a time, which stay in registers. Targets are taken a few at a time so that W stays in the cache.

W, logits and residuals are in the precision of `values`, single or double; sums over heads and the loss are double.
"""

from collections.abc import Iterator

import numpy as np

from stagescope.flow.exp_kernel import exp_any
from stagescope.flow.kernels import njit
from stagescope.flow.tile_kernel import BYTES, sum_rows
from stagescope.papers.incremental.loss import Sequences

_OPTIONS = {"cache": True, "fastmath": {"contract", "reassoc"}, "error_model": "numpy"}
_ROWS, _BLOCK, _SEQUENCES, _MANY = 512, 3200, 128, 5 * BYTES
"""Registers in the rows of one position, numbers exponentiated at once, sequences between two scatters, bytes summed at once."""
SAFE, SAFE_SINGLE = 500.0, 70.0
"""Logits within +- this are exponentiated as they are; beyond, each target's largest one is subtracted first."""


Lists = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def lists(tokens: np.ndarray, vocab: int, block: int) -> Lists:
    """What sums of rows read of tokens (P + L, N), which does not change from step to step.

    rows (N, P + L): the row of W of each token. For each block of sequences and position, the sequences sorted by token: `order`
    holds their places in the block, `runs` the row of W of each token that is there, `starts` where in `order` its sequences
    begin; a run of -1 ends the list.
    """
    (length, count), blocks = tokens.shape, -(-tokens.shape[1] // block)
    rows, order = np.empty((count, length), np.uint32), np.empty(count * length, np.uint32)
    runs = np.empty((blocks, length, min(vocab, block) + 1), np.int32)
    starts = np.empty(runs.shape, np.int64)
    for b, first in enumerate(range(0, count, block)):
        _sort(tokens, first, min(block, count - first), vocab, rows, order, runs[b], starts[b])
    return rows, order, runs, starts


@njit(**_OPTIONS)
def _sort(tokens, first, count, vocab, rows, order, runs, starts):
    """The lists of one block of sequences."""
    cursor = np.empty(vocab, np.int64)
    for s in range(tokens.shape[0]):
        for x in range(vocab):
            cursor[x] = 0
        for n in range(first, first + count):
            cursor[tokens[s, n]] += 1
            rows[n, s] = s * vocab + tokens[s, n]
        run, place = 0, first * tokens.shape[0] + s * count
        for x in range(vocab):
            if cursor[x]:
                runs[s, run], starts[s, run] = s * vocab + x, place
                run, place, cursor[x] = run + 1, place + cursor[x], place
        runs[s, run], starts[s, run] = -1, place
        for n in range(count):
            x = tokens[s, first + n]
            order[cursor[x]] = n
            cursor[x] += 1


@njit(**_OPTIONS)
def _rows(attention, values, context, targets, w):
    """w[s, x, t] = sum_h attention[h, t, s] values[h, x] for the targets t0 .. t1 - 1, zero as it was where s is not seen."""
    (t0, t1), (heads, vocab) = targets, values.shape[:2]
    for s in range(w.shape[0]):
        for t in range(max(t0, s - context + 1), t1):
            for x in range(vocab):
                row = w[s, x, (t - t0) * vocab : (t - t0 + 1) * vocab]
                for h in range(heads):
                    share, value = attention[h, t, s], values[h, x]
                    for j in range(vocab):
                        row[j] += share * value[j]


@njit(**_OPTIONS)
def _gather(w, rows, context, targets, z):
    """z[n] <- sum_s w[s, x_s]. Columns of targets that do not see s are zero in w."""
    (t0, t1), (_, vocab, width), count, tokens = targets, w.shape, z.shape[0], rows.shape[1]
    z, w, rows, aligned, q = z.reshape(z.size), w.reshape(w.size), rows.reshape(rows.size), (context + t0) // 4 * 4, 0
    while q < width:
        wide = q + _MANY // z.itemsize <= width
        step = (_MANY if wide else BYTES) // z.itemsize
        visible = context + min(t1 - 1, t0 + (q + step - 1) // vocab)
        for n in range(count):
            i, p = n * tokens, n * width + q
            if wide:
                sum_rows(z, p, w, q, width, rows, i, i + aligned, 5, 1, 0)
                sum_rows(z, p, w, q, width, rows, i + aligned, i + visible, 5, 0, 1)
            else:
                sum_rows(z, p, w, q, width, rows, i, i + aligned, 1, 1, 0)
                sum_rows(z, p, w, q, width, rows, i + aligned, i + visible, 1, 0, 1)
        q += step


@njit(**_OPTIONS)
def _scatter(z, order, runs, starts, context, targets, g):
    """g[s, x] += the sum of z[n] over the sequences with x at s. Columns of targets that do not see s are of no use in g."""
    (t0, t1), (vocab, width) = targets, g.shape[1:]
    z, g, q = z.reshape(z.size), g.reshape(g.size), 0
    while q < width:
        wide = q + _MANY // z.itemsize <= width
        step = (_MANY if wide else BYTES) // z.itemsize
        for s in range(context + min(t1 - 1, t0 + (q + step - 1) // vocab)):
            k = 0
            while runs[s, k] >= 0:
                p, i, last = runs[s, k] * width + q, starts[s, k], starts[s, k + 1]
                if wide:
                    sum_rows(g, p, z, q, width, order, i, last, 5, 0, 1)
                else:
                    sum_rows(g, p, z, q, width, order, i, last, 1, 0, 1)
                k += 1
        q += step


@njit(**_OPTIONS)
def _label_logits(z, tokens, soft, first, context, targets, vocab):
    """The sum of the labels' logits: those of the tokens drawn, or the mean under the true law."""
    (t0, t1), total = targets, 0.0
    for n in range(z.shape[0]):
        logits = z[n]
        if soft.size:
            law = soft[first + n, t0 * vocab :]
            for j in range((t1 - t0) * vocab):
                total += logits[j] * law[j]
        else:
            for i in range(t1 - t0):
                total += logits[i * vocab + tokens[context + t0 + i, first + n]]
    return total


@njit(**_OPTIONS)
def _shift(z, targets, vocab):
    """Subtracts each target's largest logit, cuts at what can be exponentiated, and returns the sum of what was subtracted."""
    total, least = 0.0, -700.0 if z.itemsize == 8 else -80.0
    for n in range(z.shape[0]):
        for i in range(targets):
            row = z[n, i * vocab : (i + 1) * vocab]
            top = row.max()
            total += top
            for j in range(vocab):
                row[j] = max(row[j] - top, least)
    return total


@njit(**_OPTIONS)
def _residuals(z, rows, soft, first, context, targets, vocab, with_loss, sums):
    """z <- z / sum z - label for each target; returns the sum of log sum z if `with_loss`."""
    (t0, t1), total, single = targets, 0.0, z.itemsize == 4
    count, one = t1 - t0, z.dtype.type(1)
    for n in range(z.shape[0]):
        for i in range(count):
            row, normaliser = z[n, i * vocab : (i + 1) * vocab], z.dtype.type(0)
            for j in range(vocab):
                normaliser += row[j]
            if with_loss:
                total += np.log(np.float64(normaliser))
            sums[n * count + i] = normaliser
    if single:  # a product instead of a quotient for each number: as exact as single precision is
        for k in range(z.shape[0] * count):
            sums[k] = 1 / sums[k]
    for n in range(z.shape[0]):
        for i in range(count):
            row, normaliser = z[n, i * vocab : (i + 1) * vocab], sums[n * count + i]
            if single:
                for j in range(vocab):
                    row[j] *= normaliser
            else:
                for j in range(vocab):
                    row[j] /= normaliser
        if soft.size:
            errors, law = z[n], soft[first + n, t0 * vocab :]
            for j in range(count * vocab):
                errors[j] -= law[j]
        else:
            for t in range(context + t0, context + t1):
                z[n, rows[first + n, t] - (context + t0) * vocab] -= one
    return total


@njit(**_OPTIONS)
def _softmax(loss, z, piece, tokens, rows, soft, first, context, targets, vocab, shift, with_loss):
    """z <- softmax(z) - label for sequences from the first on, a piece at a time; returns `loss` + their cross-entropies."""
    count = targets[1] - targets[0]
    sums = np.empty(piece * count, z.dtype)
    for start in range(0, z.shape[0], piece):
        part = z[start : start + piece]
        if with_loss:
            loss -= _label_logits(part, tokens, soft, first + start, context, targets, vocab)
        if shift:
            loss += _shift(part, count, vocab)
        exp_any(part.reshape(part.size))
        loss += _residuals(part, rows, soft, first + start, context, targets, vocab, with_loss, sums)
    return loss


@njit(**_OPTIONS)
def _fold(g, attention, values, context, targets, share, d_attention, d_values):
    """The gradient in w, times `share`, taken back to attention and values; every head by the same operations."""
    (t0, t1), (heads, vocab) = targets, values.shape[:2]
    for s in range(g.shape[0]):
        for t in range(max(t0, s - context + 1), t1):
            for h in range(heads):
                weight, total = share * attention[h, t, s], 0.0
                for x in range(vocab):
                    row, value, out = g[s, x, (t - t0) * vocab : (t - t0 + 1) * vocab], values[h, x], d_values[h, x]
                    for j in range(vocab):
                        out[j] += weight * row[j]
                        total += value[j] * row[j]
                d_attention[h, t, s] = share * total


@njit(**_OPTIONS)
def _some_targets(loss, attention, values, tokens, lists, soft, context, cut, choices, d_attention, d_values):
    """`loss` + the sum of the cross-entropies of some targets; adds their gradient in the values, writes that in attention."""
    (rows, order, runs, starts), (t0, t1, piece, block), (shift, with_loss, gradient) = lists, cut, choices
    count, vocab, kind, now = rows.shape[0], values.shape[1], values.dtype, (t0, t1)
    columns, visible, lanes = (t1 - t0) * vocab, context + t1 - 1, BYTES // values.itemsize
    width = ((columns + lanes - 1) // lanes | 1) * lanes  # an odd number of registers: rows begin in all sets of the cache
    w, g = np.zeros((visible, vocab, width), kind), np.zeros((visible, vocab, width), kind)
    logits = np.empty((block, width), kind)
    _rows(attention, values, context, now, w)
    for b in range(runs.shape[0]):
        first = b * block
        z = logits[: min(block, count - first)]
        _gather(w, rows[first:], context, now, z)
        loss = _softmax(loss, z, piece, tokens, rows, soft, first, context, now, vocab, shift, with_loss)
        if gradient:
            _scatter(z, order, runs[b], starts[b], context, now, g)
    if gradient:
        _fold(g, attention, values, context, now, 1.0 / (count * attention.shape[1]), d_attention, d_values)
    return loss


def cuts(targets: int, vocab: int, count: int, lanes: int) -> Iterator[tuple[int, int, int, int]]:
    """Targets from .. to that are taken at once; how many sequences are exponentiated and how many are gathered at once."""
    step = max(1, _ROWS * lanes // vocab**2)
    for t0 in range(0, targets, step):
        t1 = min(targets, t0 + step)
        piece = max(4, _BLOCK // ((t1 - t0) * vocab))
        yield t0, t1, piece, min(count, piece * max(1, _SEQUENCES // piece))


def heads_pass(
    attention: np.ndarray, values: np.ndarray, on: Sequences, context: int, with_loss: bool, gradient: bool
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mean cross-entropy over sequences and targets (0 unless `with_loss`) and, with `gradient`, its derivatives.

    attention (H, L, P + L - 1), values (H, token, output). The lists of the sequences are kept with them.
    """
    targets, vocab, count, lanes = attention.shape[1], values.shape[1], on.tokens.shape[1], BYTES // values.itemsize
    d_attention, d_values, loss = np.zeros_like(attention), np.zeros(values.shape), 0.0
    bound = sum(float(np.abs(head).max()) for head in values)  # attention sums to one, so no logit is larger
    choices = not bound <= (SAFE if lanes == 4 else SAFE_SINGLE), with_loss, gradient
    for cut in cuts(targets, vocab, count, lanes):
        name = "rows", vocab, cut[3]
        if name not in on.cache:
            on.cache[name] = lists(on.tokens, vocab, cut[3])
        data = on.tokens, on.cache[name], on.soft
        loss = _some_targets(loss, attention, values, *data, context, cut, choices, d_attention, d_values)
    return loss * (1.0 / (count * targets)), d_attention, d_values
