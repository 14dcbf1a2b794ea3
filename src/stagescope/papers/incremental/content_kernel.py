"""Numba kernel of content-aware heads on sampled sequences: value and gradient, one sequence at a time.

All that a head reads of a sequence are the rows r_s = V[:, x_s] + V[:, d + s] of its positions, gathered once. Then the logits
are att r, and backwards d att = g r^T and d r = att^T g: three small products that stay in the first-level cache. Their arrays
are padded with zeros, so that sums can be taken by fours and rows by whole registers without a remainder. Every head goes
through the same operations: heads that are equal stay equal to the last bit.

These products are in the precision of `values`, single or double. Scores, exponentials, normalisations and the loss are in
double, and so are the sums over sequences, of which single precision adds up no more than _BLOCK.
"""

import numpy as np

from stagescope.flow.exp_kernel import exp_double
from stagescope.flow.kernels import njit
from stagescope.flow.lanes_kernel import LANES
from stagescope.papers.incremental.positional_kernel import SAFE

_OPTIONS = {"cache": True, "fastmath": {"contract", "reassoc", "nnan", "nsz"}, "error_model": "numpy"}
_BLOCK = 64


@njit(**_OPTIONS)
def _attend(queries, x, context, shift, triangle, row, att):
    """att[h, t, s] <- softmax over s < context + t of the scores; `triangle` holds them without gaps for the exponential."""
    heads, size, targets = queries.shape[0], queries.shape[1], x.size - context
    vocab, offset = size - x.size + 1, 0
    for h in range(heads):
        for t in range(targets):
            q, visible = context + t - 1, context + t
            token, place = queries[h, x[q]], queries[h, vocab + q]
            for i in range(size):
                row[i] = token[i] + place[i]
            scores, by_place = triangle[offset : offset + visible], row[vocab:]
            for s in range(visible):
                scores[s] = row[x[s]] + by_place[s]
            if shift:
                top = scores.max()
                for s in range(visible):
                    scores[s] = max(scores[s] - top, -700.0)
            offset += visible
    exp_double(triangle)
    offset = 0
    for h in range(heads):
        for t in range(targets):
            visible, total = context + t, 0.0
            weights = triangle[offset : offset + visible]
            for s in range(visible):
                total += weights[s]
            share = 1.0 / total
            for s in range(visible):
                att[h, t, s] = weights[s] * share
            offset += visible


@njit(**_OPTIONS)
def _gather(values, x, vocab, r):
    """r[h, s] <- values[h, x_s] + values[h, d + s]."""
    for h in range(r.shape[0]):
        for s in range(x.size - 1):
            token, place = values[h, x[s]], values[h, vocab + s]
            for j in range(r.shape[2]):
                r[h, s, j] = token[j] + place[j]


@njit(**_OPTIONS)
def _logits(att, r, context, targets, z):
    """z[t] <- sum_h sum_s att[h, t, s] r[h, s]."""
    for t in range(targets):
        for j in range(z.shape[1]):
            z[t, j] = 0
        for h in range(r.shape[0]):
            for s in range(0, context + t, 4):
                a, b, c, d = att[h, t, s], att[h, t, s + 1], att[h, t, s + 2], att[h, t, s + 3]
                for j in range(z.shape[1]):
                    z[t, j] += (a * r[h, s, j] + b * r[h, s + 1, j]) + (c * r[h, s + 2, j] + d * r[h, s + 3, j])


@njit(**_OPTIONS)
def _residuals(z, x, law, context, shift, exact):
    """z <- softmax(z) - label for each target; returns the sum of their cross-entropies."""
    loss, targets, vocab = 0.0, exact.shape[0], exact.shape[1]
    for t in range(targets):
        for j in range(vocab):
            exact[t, j] = z[t, j]
        if shift:
            top = exact[t].max()
            for j in range(vocab):
                exact[t, j] = exact[t, j] - top
        if law.size:
            mine, mean = law[t * vocab : (t + 1) * vocab], 0.0
            for j in range(vocab):
                mean += mine[j] * exact[t, j]
            loss -= mean
        else:
            loss -= exact[t, x[context + t]]
        if shift:
            for j in range(vocab):
                exact[t, j] = max(exact[t, j], -700.0)
    exp_double(exact.reshape(exact.size))
    for t in range(targets):
        total = 0.0
        for j in range(vocab):
            total += exact[t, j]
        loss += np.log(total)
        share = 1.0 / total
        if law.size:
            mine = law[t * vocab : (t + 1) * vocab]
            for j in range(vocab):
                z[t, j] = exact[t, j] * share - mine[j]
        else:
            target = x[context + t]
            for j in range(vocab):
                z[t, j] = exact[t, j] * share
            z[t, target] = exact[t, target] * share - 1.0
    return loss


@njit(**_OPTIONS)
def _d_attention(g, r, h, context, targets, d_att):
    """d_att[t, s] <- g[t] . r[h, s]."""
    for t in range(targets):
        for s in range(0, context + t, 4):
            a = b = c = d = g.dtype.type(0)
            for j in range(g.shape[1]):
                a += g[t, j] * r[h, s, j]
                b += g[t, j] * r[h, s + 1, j]
                c += g[t, j] * r[h, s + 2, j]
                d += g[t, j] * r[h, s + 3, j]
            d_att[t, s], d_att[t, s + 1], d_att[t, s + 2], d_att[t, s + 3] = a, b, c, d


@njit(**_OPTIONS)
def _add_queries(att, d_att, h, context, x, vocab, row, d_queries):
    """Adds the gradient in the scores of one head to the rows of the token and of the position that ask."""
    for t in range(x.size - context):
        q, visible = context + t - 1, context + t
        weights, slopes, by_place = att[h, t], d_att[t], row[vocab:]
        mean = row.dtype.type(0)
        for s in range(visible):
            mean += weights[s] * slopes[s]
        row[:] = 0
        for s in range(visible):
            by_place[s] = weights[s] * (slopes[s] - mean)
        for s in range(visible):
            row[x[s]] += by_place[s]
        token, place = d_queries[h, x[q]], d_queries[h, vocab + q]
        for i in range(row.size):
            token[i] += row[i]
        for i in range(row.size):
            place[i] += row[i]


@njit(**_OPTIONS)
def _add_values(att, g, h, context, x, vocab, line, d_values):
    """Adds sum_t att[h, t, s] g[t] to the rows of the token and of the position s."""
    for s in range(x.size - 1):
        line[:] = 0
        for t in range(max(0, s - context + 1) // 4 * 4, g.shape[0], 4):
            a, b, c, d = att[h, t, s], att[h, t + 1, s], att[h, t + 2, s], att[h, t + 3, s]
            for j in range(line.size):
                line[j] += (a * g[t, j] + b * g[t + 1, j]) + (c * g[t + 2, j] + d * g[t + 3, j])
        token, place = d_values[h, x[s]], d_values[h, vocab + s]
        for j in range(line.size):
            token[j] += line[j]
        for j in range(line.size):
            place[j] += line[j]


@njit(**_OPTIONS)
def _add(out, block):
    """Adds as much of each row as both have. In loops, because Numba takes seconds to compile an assignment to a slice."""
    for h in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(min(out.shape[2], block.shape[2])):
                out[h, i, j] += block[h, i, j]


@njit(**_OPTIONS)
def content_pass(queries, values, tokens, soft, context, gradient, d_queries, d_values):
    """Mean cross-entropy over sequences and targets and, with `gradient`, its derivatives.

    queries (H, d + N, d + N) with the softmax's scale in them, values (H, d + N, output), tokens (sequences, context + targets),
    soft (sequences, targets x output) or empty for labels that are the tokens themselves.
    """
    heads, size, vocab, kind = queries.shape[0], queries.shape[1], values.shape[2], values.dtype
    count, targets, positions = tokens.shape[0], tokens.shape[1] - context, tokens.shape[1] - 1
    rows, columns, width = (targets + 3) // 4 * 4, (positions + 3) // 4 * 4, (vocab + LANES - 1) // LANES * LANES
    bound = 0.0
    for h in range(heads):
        bound += 2 * np.abs(values[h]).max()  # attention sums to one, and a row is the sum of two
    shift_scores, shift_logits = not 4 * np.abs(queries).max() <= SAFE, not bound <= SAFE
    padded = np.zeros((heads, size, width), kind)
    _add(padded, values)
    triangle, exact = np.empty(heads * (targets * context + targets * (targets - 1) // 2)), np.empty((targets, vocab))
    att, d_att = np.zeros((heads, rows, columns), kind), np.zeros((rows, columns), kind)
    r, z, line = np.zeros((heads, columns, width), kind), np.zeros((rows, width), kind), np.empty(width, kind)
    sums, row = np.empty(size), np.empty(size, kind)
    block_queries, block_values = np.zeros((heads, size, size), kind), np.zeros((heads, size, width), kind)
    d_queries[:], d_values[:] = 0.0, 0.0
    loss, no_law = 0.0, np.empty(0)
    for n in range(count):
        x = tokens[n]
        _attend(queries, x, context, shift_scores, triangle, sums, att)
        _gather(padded, x, vocab, r)
        _logits(att, r, context, targets, z)
        loss += _residuals(z, x, soft[n] if soft.size else no_law, context, shift_logits, exact)
        if not gradient:
            continue
        for h in range(heads):
            _d_attention(z, r, h, context, targets, d_att)
            _add_queries(att, d_att, h, context, x, vocab, row, block_queries)
            _add_values(att, z, h, context, x, vocab, line, block_values)
        if n % _BLOCK == _BLOCK - 1 or n == count - 1:
            _add(d_queries, block_queries)
            _add(d_values, block_values)
            block_queries[:], block_values[:] = 0, 0
    share = 1.0 / (count * targets)
    d_queries *= share
    d_values *= share
    return loss * share
