"""Numba kernel of positional heads on sampled sequences: value and gradient by gathers and scatters of rows.

With W[s, x, t] = sum_h attention[h, t, s] V_h[:, x], the logits of a sequence are sum_s W[s, x_s]: one row of W per position,
whatever the number of heads. A row holds several targets side by side, so that every inner loop is long and contiguous; the
gradient in W is the transpose, one row added per position, and is folded back into attention and values once at the end.
Targets are taken a few at a time so that the rows of one position stay in the first-level cache.
"""

import numpy as np

from stagescope.fields.exp_kernel import exp_double
from stagescope.kernels import njit

_OPTIONS = {"cache": True, "fastmath": {"contract", "reassoc"}, "error_model": "numpy"}
_ROWS, _BLOCK = 2048, 3200
"""Numbers in the rows of one position, and in the logits of one block of sequences: 16 and 25 KB."""
SAFE = 500.0
"""Logits within +- this are exponentiated as they are; beyond, each target's largest one is subtracted first."""


@njit(**_OPTIONS)
def _rows(attention, values, context, t0, t1, w):
    """w[s, x, t] = sum_h attention[h, t, s] values[h, x] for the targets t0 .. t1 - 1, zero where s is not seen."""
    heads, vocab = values.shape[:2]
    w[:] = 0.0
    for s in range(w.shape[0]):
        for t in range(max(t0, s - context + 1), t1):
            for x in range(vocab):
                row = w[s, x, (t - t0) * vocab : (t - t0 + 1) * vocab]
                for h in range(heads):
                    share, value = attention[h, t, s], values[h, x]
                    for j in range(vocab):
                        row[j] += share * value[j]


@njit(**_OPTIONS)
def _gather(w, tokens, first, whole, hidden, z):
    """z[n] = sum_s w[s, x_s]; `whole` positions are seen by every target, position s >= whole not by the first hidden[s]."""
    z[:] = 0.0
    s = 0
    while s + 3 < whole:  # four rows at once: z is read and written once for all of them
        for n in range(z.shape[0]):
            k, here = first + n, z[n]
            a, b = w[s, tokens[s, k]], w[s + 1, tokens[s + 1, k]]
            c, d = w[s + 2, tokens[s + 2, k]], w[s + 3, tokens[s + 3, k]]
            for j in range(here.size):
                here[j] += (a[j] + b[j]) + (c[j] + d[j])
        s += 4
    while s < w.shape[0]:
        for n in range(z.shape[0]):
            row, here = w[s, tokens[s, first + n]][hidden[s] :], z[n][hidden[s] :]
            for j in range(here.size):
                here[j] += row[j]
        s += 1


@njit(**_OPTIONS)
def _scatter(g, tokens, first, hidden, z):
    """g[s, x_s] += z[n]: the transpose of `_gather`."""
    for s in range(g.shape[0]):
        for n in range(z.shape[0]):
            row, here = g[s, tokens[s, first + n]][hidden[s] :], z[n][hidden[s] :]
            for j in range(here.size):
                row[j] += here[j]


@njit(**_OPTIONS)
def _label_logits(z, tokens, soft, first, context, t0, vocab):
    """The sum of the labels' logits: those of the tokens drawn, or the mean under the true law."""
    total = 0.0
    for n in range(z.shape[0]):
        here = z[n]
        if soft.size:
            law = soft[first + n, t0 * vocab :]
            for j in range(here.size):
                total += here[j] * law[j]
        else:
            for i in range(here.size // vocab):
                total += here[i * vocab + tokens[context + t0 + i, first + n]]
    return total


@njit(**_OPTIONS)
def _shift(z, vocab):
    """Subtracts each target's largest logit, cuts at -700, and returns the sum of what was subtracted."""
    total = 0.0
    for n in range(z.shape[0]):
        for i in range(z.shape[1] // vocab):
            row = z[n, i * vocab : (i + 1) * vocab]
            top = row.max()
            total += top
            for j in range(vocab):
                row[j] = max(row[j] - top, -700.0)
    return total


@njit(**_OPTIONS)
def _residuals(z, tokens, soft, first, context, t0, vocab, wanted):
    """z <- z / sum z - label for each target; returns the sum of log sum z where it is wanted."""
    total = 0.0
    for n in range(z.shape[0]):
        for i in range(z.shape[1] // vocab):
            row = z[n, i * vocab : (i + 1) * vocab]
            whole = 0.0
            for j in range(vocab):
                whole += row[j]
            if wanted:
                total += np.log(whole)
            share = 1.0 / whole
            for j in range(vocab):
                row[j] *= share
            if not soft.size:
                row[tokens[context + t0 + i, first + n]] -= 1.0
        if soft.size:
            here, law = z[n], soft[first + n, t0 * vocab :]
            for j in range(here.size):
                here[j] -= law[j]
    return total


@njit(**_OPTIONS)
def _fold(g, attention, values, context, t0, t1, share, d_attention, d_values):
    """The gradient in w, times `share`, taken back to attention and values; every head by the same operations."""
    heads, vocab = values.shape[:2]
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
def heads_pass(attention, values, tokens, soft, context, wanted, gradient, d_attention, d_values):
    """Mean cross-entropy over sequences and targets (0 unless `wanted`) and, with `gradient`, its derivatives.

    attention (H, L, P + L - 1), values (H, token, output), tokens (P + L, N), soft (N, L x output) or empty for labels that
    are the tokens themselves.
    """
    targets, vocab, count = attention.shape[1], values.shape[1], tokens.shape[1]
    d_attention[:], d_values[:] = 0.0, 0.0
    bound = 0.0
    for h in range(values.shape[0]):
        bound += np.abs(values[h]).max()  # attention sums to one, so no logit is larger
    step, share, loss = max(1, _ROWS // vocab**2), 1.0 / (count * targets), 0.0
    for t0 in range(0, targets, step):
        t1 = min(targets, t0 + step)
        width, seen = (t1 - t0) * vocab, context + t1 - 1
        hidden = np.zeros(seen, np.int64)
        for s in range(context + t0, seen):
            hidden[s] = (s - context + 1 - t0) * vocab
        w = np.empty((seen, vocab, width))
        g = np.zeros((seen, vocab, width))
        _rows(attention, values, context, t0, t1, w)
        block = max(4, _BLOCK // width)
        whole_block, bits = np.empty((block, width)), np.empty(block * width, np.int64)
        for first in range(0, count, block):
            z = whole_block[: min(block, count - first)]
            _gather(w, tokens, first, context + t0, hidden, z)
            if wanted:
                loss -= _label_logits(z, tokens, soft, first, context, t0, vocab)
            if not bound <= SAFE:
                loss += _shift(z, vocab)
            exp_double(z.reshape(z.size), bits)
            loss += _residuals(z, tokens, soft, first, context, t0, vocab, wanted)
            if gradient:
                _scatter(g, tokens, first, hidden, z)
        if gradient:
            _fold(g, attention, values, context, t0, t1, share, d_attention, d_values)
    return loss * share
