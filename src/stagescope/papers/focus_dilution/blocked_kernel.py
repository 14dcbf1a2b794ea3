"""The kernel for many tokens: loss and gradient of kernel.py [FD:population], a block of queries at a time.

What a block needs of attention, logits and their gradients stays in the caches; P is the only d x d matrix. Tokens lie along
the rows of all matrices, and all work is of two kinds: combinations of rows (`spread`) and their inner products
(`_contract`). They take four rows or two by four at once, so numbers of rows are padded with zeros to multiples of four, and rows
to whole cache lines, at which they also begin: elsewhere it takes a quarter longer.

Attention is e_ij = pi_j exp(Phi_ij) over its sum t_i. The block is never divided by t_i: H and dL/dH are, which are short.
"""

import numpy as np

from stagescope.flow.exp_kernel import exp_double
from stagescope.flow.flat_kernel import FAST
from stagescope.flow.kernels import njit
from stagescope.flow.tile_kernel import COLUMNS, ROWS, add_tile

WEIGHTS = slice(4, 8)
OPTIONS = {"cache": True, "fastmath": FAST, "error_model": "numpy"}
_TABLES, LINE = WEIGHTS.stop, 8
BLOCK = LINE
"""Numbers before the tables, in a cache line, and queries in a block."""
SAFE, _LEAST = 300.0, -700.0
"""Exponents within +- SAFE are taken as they are; else each row's largest one is subtracted, and _LEAST is the smallest."""


def hold(sizes, scale, pi, transition):
    """All that `gradient` reads beside the parameters, and room to work in.

    In order: sizes d, m, mk; scale; weights of the four blocks, 1 here; pi; sums of the rows of P; P, all padded; room.
    """
    d = sizes[0]
    wide, tall, keys = padded(*sizes)
    law = np.zeros((wide + 2, wide))
    law[0, :d], law[1, :d], law[2 : d + 2, :d] = pi, transition.sum(axis=1), transition
    room = np.zeros((4 * (tall + keys) + 3 * BLOCK) * wide + 4 * tall * max(keys, BLOCK) + LINE)
    return np.concatenate([sizes, [scale], np.ones(4), law.ravel(), room])


@njit(**OPTIONS)
def padded(d, m, mk):
    return (d + 7) // 8 * 8, (m + 3) // 4 * 4, (mk + 3) // 4 * 4


@njit(**OPTIONS)
def spread(a, at, down, across, b, out, fresh):
    """out_i = sum_k a_ik b_k, or added to it; a_ik is the number `at` + i `down` + k `across` of a flat array."""
    inner, wide = b.shape
    rows, sums = b.reshape(b.size), out.reshape(out.size)
    for i in range(0, out.shape[0], ROWS):
        for j in range(0, wide, COLUMNS):
            add_tile(sums, i * wide + j, wide, fresh, a, at + i * down, down, across, rows, j, inner)


@njit(**OPTIONS)
def _contract(a, b, out, at, down, across):
    """out_ik = a_i . b_k, places in `out` as in `spread`."""
    for i in range(0, a.shape[0], 2):
        first, second = a[i], a[i + 1]
        for k in range(0, b.shape[0], 4):
            b0, b1, b2, b3 = b[k], b[k + 1], b[k + 2], b[k + 3]
            x0 = x1 = x2 = x3 = y0 = y1 = y2 = y3 = 0.0
            for j in range(b0.size):
                x, y = first[j], second[j]
                x0 += x * b0[j]
                x1 += x * b1[j]
                x2 += x * b2[j]
                x3 += x * b3[j]
                y0 += y * b0[j]
                y1 += y * b1[j]
                y2 += y * b2[j]
                y3 += y * b3[j]
            s = at + i * down + k * across
            out[s], out[s + across], out[s + 2 * across], out[s + 3 * across] = x0, x1, x2, x3
            s += down
            out[s], out[s + across], out[s + 2 * across], out[s + 3 * across] = y0, y1, y2, y3


@njit(**OPTIONS)
def longest(rows, work):
    """The length of the longest column; inf where one is not finite."""
    for j in range(work.size):
        work[j] = 0.0
    for k in range(rows.shape[0]):
        row = rows[k]
        for j in range(work.size):
            work[j] += row[j] * row[j]
    total, top = 0.0, 0.0
    for j in range(work.size):
        total += work[j]
        top = max(top, work[j])
    return np.sqrt(top) if np.isfinite(total) else np.inf


@njit(**OPTIONS)
def exponentials(block, d, tops, safe):
    """block_i <- exp(block_i - tops_i), tops_i the largest entry of the row; 0 where it is safe without."""
    for i in range(block.shape[0]):
        row, tops[i] = block[i], 0.0
        if not safe:
            tops[i] = row[:d].max()
            for j in range(row.size):
                row[j] = max(min(row[j] - tops[i], 0.0), _LEAST)
    exp_double(block.reshape(block.size))


@njit(**OPTIONS)
def _weigh(pi, e, sums):
    """e_i <- pi e_i, and the sums t_i."""
    for i in range(e.shape[0]):
        row, total = e[i], 0.0
        for j in range(row.size):
            row[j] *= pi[j]
            total += row[j]
        sums[i] = total


@njit(**OPTIONS)
def _products(a, b, out):
    """out_i = a_i . b_i."""
    for i in range(a.shape[0]):
        x, y, total = a[i], b[i], 0.0
        for j in range(x.size):
            total += x[j] * y[j]
        out[i] = total


@njit(**OPTIONS)
def _surprise(d, pi, mass, law, z, own, tops):
    """The loss; turns exponentials into dL/dlogits_i = pi_i (softmax_i - P_i), rows of P summing to `mass`, one or nearly so."""
    loss = 0.0
    for i in range(z.shape[0]):
        row, likely, total = z[i], law[i], 0.0
        for j in range(d):
            total += row[j]
        loss += pi[i] * (mass[i] * (tops[i] + np.log(total)) - own[i])
        share, weight = pi[i] * mass[i] / total, pi[i]
        for j in range(row.size):
            row[j] = share * row[j] - weight * likely[j]
    return loss


@njit(**OPTIONS)
def _divide(short, sums):
    """short_i <- short_i / t_i."""
    for i in range(sums.size):
        row, share = short[i], 1.0 / sums[i]
        for k in range(row.size):
            row[k] *= share


@njit(**OPTIONS)
def _unattend(e, lift, means):
    """e_i <- e_i (lift_i - mean_i)."""
    for i in range(e.shape[0]):
        row, x, mean = e[i], lift[i], means[i]
        for j in range(row.size):
            row[j] *= x[j] - mean


@njit(**OPTIONS)
def _matrix(room, at, rows, wide):
    return room[at : at + rows * wide].reshape(rows, wide)


@njit(**OPTIONS)
def _four(room, at, rows, wide):
    """Four matrices, one after the other."""
    a, b, size = _matrix(room, at, rows, wide), _matrix(room, at + rows * wide, rows, wide), rows * wide
    return a, b, _matrix(room, at + 2 * size, rows, wide), _matrix(room, at + 3 * size, rows, wide)


@njit(**OPTIONS)
def _block(first, d, safe, tables, by_width, by_key, by_query, short):
    """The loss of queries from `first` on; adds to the gradients in W0^T, W1 and K^T, and writes that in Q^T.

    With R = dL/dlogits: dL/dW1 = H^T R, dL/dH = R W1^T, X = dL/dH W0^T, and dL/dPhi_ij = A_ij (X_ij - H_i . dL/dH_i).
    """
    (w0, w1, dw0, dw1), (q, k, dq, dk), (e, z, spare), (h, dh) = by_width, by_key, by_query, short
    sums, tops, products = spare[0, :BLOCK], spare[1, :BLOCK], spare[2, :BLOCK]
    last, tall, wide = first + BLOCK, h.shape[1], e.shape[1]
    pi, mass, law = tables[0, first:last], tables[1, first:last], tables[first + 2 : last + 2]
    queries, flat, slope = q.reshape(q.size), h.reshape(h.size), dh.reshape(dh.size)
    spread(queries, first, 1, wide, k, e, True)
    exponentials(e, d, tops, safe[0])
    _weigh(tables[0], e, sums)
    _contract(e, w0, flat, 0, tall, 1)
    _divide(h, sums)
    spread(flat, 0, tall, 1, w1, z, True)
    _products(law, z, products)
    exponentials(z, d, tops, safe[1])
    loss = _surprise(d, pi, mass, law, z, products, tops)
    spread(flat, 0, 1, tall, z, dw1, False)
    _contract(z, w1, slope, 0, tall, 1)
    _divide(dh, sums)
    spread(slope, 0, 1, tall, e, dw0, False)
    spread(slope, 0, tall, 1, w0, z, True)
    _products(h, dh, products)
    _unattend(e, z, products)
    _contract(e, k, dq.reshape(dq.size), first, 1, wide)
    spread(queries, first, wide, 1, e, dk, False)
    return loss


@njit(**OPTIONS)
def _copy(source, factor, goal):
    """goal_ik = factor source_ik, as far as both go."""
    for i in range(min(source.shape[0], goal.shape[0])):
        for k in range(min(source.shape[1], goal.shape[1])):
            goal[i, k] = factor * source[i, k]


@njit(**OPTIONS)
def turn(source, factor, goal):
    """goal_ki = factor source_ik, as far as both go."""
    for i in range(min(source.shape[0], goal.shape[1])):
        for k in range(min(source.shape[1], goal.shape[0])):
            goal[k, i] = factor * source[i, k]


@njit(**OPTIONS)
def _named(vector, d, m, mk):
    """W0, W1, WQ and WK, or their gradients, in a vector of all parameters."""
    w1, wq, wk = d * m, 2 * d * m, 2 * d * m + m * mk
    first, second = vector[:w1].reshape(d, m), vector[w1:wq].reshape(m, d)
    return first, second, vector[wq:wk].reshape(m, mk), vector[wk:].reshape(m, mk)


@njit(**OPTIONS)
def gradient(theta, out, held):
    """Loss; writes weights[b] x gradient of block b (order W0, W1, WQ, WK) into `out`. `held` is from `hold`."""
    d, m, mk = int(held[0]), int(held[1]), int(held[2])
    wide, tall, keys = padded(d, m, mk)
    end = _TABLES + (wide + 2) * wide
    tables, room = held[_TABLES:end].reshape(wide + 2, wide), held[end + -(held.ctypes.data // 8 + end) % LINE :]
    by_width, by_key = _four(room, 0, tall, wide), _four(room, 4 * tall * wide, keys, wide)
    offset, block = 4 * (tall + keys) * wide, BLOCK * wide
    by_query = (
        _matrix(room, offset, BLOCK, wide),
        _matrix(room, offset + block, BLOCK, wide),
        _matrix(room, offset + 2 * block, BLOCK, wide),
    )
    h, dh, wq, wk = _four(room, offset + 3 * block, max(keys, BLOCK), tall)
    (w0, w1, dw0, dw1), (q, k, dq, dk), work = by_width, by_key, by_query[1][0]
    queries, turned = wq.reshape(wq.size), wk.reshape(wk.size)
    blocks, slopes = _named(theta, d, m, mk), _named(out, d, m, mk)
    turn(blocks[0], 1.0, w0)
    _copy(blocks[1], 1.0, w1)
    turn(blocks[2], held[3], wq)  # Q has the scale of the scores
    turn(blocks[3], 1.0, wk)
    spread(queries, 0, tall, 1, w0, q, True)
    spread(turned, 0, tall, 1, w0, k, True)
    scores, logits = longest(q, work) * longest(k, work), longest(w0, work) * longest(w1, work)
    if not (scores < np.inf and logits < np.inf):
        out[:] = np.nan
        return np.nan
    for sums in (dw0, dw1, dk):
        sums[:] = 0.0
    loss, safe, short = 0.0, (scores <= SAFE, logits <= SAFE), (h[:BLOCK], dh[:BLOCK])
    for first in range(0, wide, BLOCK):
        loss += _block(first, d, safe, tables, by_width, by_key, by_query, short)
    spread(queries, 0, 1, tall, dq, dw0, False)
    spread(turned, 0, 1, tall, dk, dw0, False)
    _contract(dq, w0, queries, 0, tall, 1)
    _contract(dk, w0, turned, 0, tall, 1)
    turn(dw0, held[4], slopes[0])
    _copy(dw1, held[5], slopes[1])
    turn(wq, held[6] * held[3], slopes[2])
    turn(wk, held[7], slopes[3])
    return loss


# Numba kernel of what curves need of attention between all types, without the matrix itself.

QUERIES = 32
"""Rows of attention that are in memory at once."""
_FINITE = {*FAST, "nnan", "nsz"}
"""For loops with `max`: compilers vectorise it only where they need not care for nan."""


@njit(cache=True, fastmath=_FINITE)
def _largest(scores, logs):
    """The largest of scores + logs."""
    top = scores[0] + logs[0]
    for j in range(logs.size):
        top = max(top, scores[j] + logs[j])
    return top


@njit(cache=True, fastmath=FAST)
def _powers(scores, logs, top, values, powers):
    """values <- scores + logs - top, powers <- the same, as far as they can be raised; returns 0, or nan if one is not finite."""
    nothing = 0.0
    for j in range(logs.size):
        value = scores[j] + logs[j] - top
        nothing += value * 0.0
        values[j] = value if value > _LEAST else _LEAST
        powers[j] = values[j]
    return nothing


@njit(cache=True, fastmath=FAST)
def _entropy(values, powers):
    """The sum of powers, and the entropy of what is proportional to them; values are their logarithms."""
    total = moment = 0.0
    for j in range(values.size):
        total += powers[j]
        moment += powers[j] * values[j]
    return total, np.log(total) - moment / total


@njit(cache=True, fastmath=FAST)
def _entropy_without(logs, inverse, values, powers):
    """The same without the factor whose logarithms and inverse are given."""
    total = moment = 0.0
    for j in range(values.size):
        power = powers[j] * inverse[j]
        total += power
        moment += power * (values[j] - logs[j])
    return np.log(total) - moment / total


@njit(cache=True, fastmath=_FINITE)
def _change(powers, total, before):
    """The largest change of a row of attention, which takes the place of the one before."""
    largest, share = 0.0, 1.0 / total
    for j in range(powers.size):
        now = share * powers[j]
        largest = max(largest, abs(now - before[j]))
        before[j] = now
    return largest


@njit(cache=True)
def attention_rows(query, key_turned, law, frequent, before, out):
    """Of attention A_ij ~ law_j exp(query_i . key_j): its column of a type, its diagonal, its entropies: out (3, d).

    With a fourth row of `out`, the entropies of softmax(query_i . key_j) too. `before` is the attention (d, d) of another frame,
    which this one replaces, or (0, 0); the largest change of an entry is returned. `key_turned` is (., d). Rows with scores that
    are not finite are nan.
    """
    vocab, logs, inverse, largest = law.size, np.log(law), 1 / law, 0.0
    scores, values, powers = np.empty((QUERIES, vocab)), np.empty(vocab), np.empty(vocab)
    for first in range(0, vocab, QUERIES):
        last = min(first + QUERIES, vocab)
        np.dot(query[first:last], key_turned, scores[: last - first])
        for i in range(first, last):
            row_scores = scores[i - first]
            if not np.isfinite(_powers(row_scores, logs, _largest(row_scores, logs), values, powers)):
                out[:, i] = np.nan
                continue
            exp_double(powers)
            total, out[2, i] = _entropy(values, powers)
            out[0, i], out[1, i] = powers[frequent] / total, powers[i] / total
            if before.size:
                largest = max(largest, _change(powers, total, before[i]))
            if len(out) > 3:
                out[3, i] = _entropy_without(logs, inverse, values, powers)
    return largest


# Numba kernel of products with the Hessian of the population loss, for many tokens [FD:population].
#
# Attention, predictions and what follows from them are those of one point, see tangents.py; along a line they change to first
# order. Tokens lie along the rows of all matrices. The rows of a query stay in the caches from its scores to its gradients.


@njit(**OPTIONS)
def _spread_both(a, rows, b, others, out):
    """out = sum_k a_k rows_k + b_k others_k."""
    for k in range(len(a)):
        x, y, row, other_row = a[k], b[k], rows[k], others[k]
        if k == 0:
            for j in range(out.size):
                out[j] = x * row[j] + y * other_row[j]
        else:
            for j in range(out.size):
                out[j] += x * row[j] + y * other_row[j]


@njit(**OPTIONS)
def _contract_both(a, rows, b, others, out):
    """out_k = a . rows_k + b . others_k."""
    for k in range(len(out)):
        row, other_row, total = rows[k], others[k], 0.0
        for j in range(a.size):
            total += a[j] * row[j] + b[j] * other_row[j]
        out[k] = total


@njit(**OPTIONS)
def _gather_both(a, b, row, other, out):
    """out_k += a_k row + b_k other."""
    for k in range(len(a)):
        x, y, goal = a[k], b[k], out[k]
        for j in range(row.size):
            goal[j] += x * row[j] + y * other[j]


@njit(**OPTIONS)
def _centred(weights, total, row):
    """row <- weights (row - its mean), weights that sum to `total`."""
    mean = 0.0
    for j in range(row.size):
        mean += weights[j] * row[j]
    mean /= total
    for j in range(row.size):
        row[j] = weights[j] * (row[j] - mean)


@njit(**OPTIONS)
def _slopes(a, moved, apart, mean, row, flat):
    """row <- moved apart + a (row - mean), the change of flat = a apart."""
    for j in range(row.size):
        row[j] = moved[j] * apart[j] + a[j] * (row[j] - mean)
        flat[j] = a[j] * apart[j]


@njit(**OPTIONS)
def tangents(blocks, queries, tables, directions, out):
    """The changes of dL/dW0 by its attention, dL/dW1, dL/dQ and dL/dK along every line; `out` begins as zeros."""
    (w0, w1, keys), (q, h, low, mass), (attention, predicted, surprise, centred) = blocks, queries, tables
    d, m = len(attention), len(w0)
    shift, logits, slope, flat = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    dh, dlow = np.empty(m), np.empty(m)
    for line in range(len(directions[0])):
        dw0, dw1, dq, dk = directions[0][line], directions[1][line], directions[2][line], directions[3][line]
        by_w0, by_w1, by_q, by_k = out[0][line], out[1][line], out[2][line], out[3][line]
        for i in range(d):
            a, y, r = attention[i], predicted[i], surprise[i]
            _spread_both(dq[i], keys, q[i], dk, shift)
            _centred(a, 1.0, shift)
            _contract_both(shift, w0, a, dw0, dh)
            _spread_both(dh, w1, h[i], dw1, logits)
            _centred(y, mass[i], logits)
            _gather_both(dh, h[i], r, logits, by_w1)
            _contract_both(logits, w1, r, dw1, dlow)
            mean = 0.0
            for k in range(m):
                mean += dlow[k] * h[i, k] + low[i, k] * dh[k]
            _gather_both(low[i], dlow, shift, a, by_w0)
            _spread_both(dlow, w0, low[i], dw0, slope)
            _slopes(a, shift, centred[i], mean, slope, flat)
            _contract_both(slope, keys, flat, dk, by_q[i])
            _gather_both(q[i], dq[i], slope, flat, by_k)
