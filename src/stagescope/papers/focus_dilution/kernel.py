"""Numba kernel of the focus-dilution population loss with its hand-derived gradient [FD:population].

At these sizes, making matrix views and wrapping negative indices would cost more than the arithmetic. So a matrix is a
place in a flat array, its rows one after the other, and places and sizes are unsigned.
"""

import numpy as np

from stagescope.flow.exp_kernel import exp_double
from stagescope.flow.flat_kernel import FAST, softmax
from stagescope.flow.kernels import njit

WEIGHTS = slice(4, 8)
_TABLES = WEIGHTS.stop
_D, _M = np.uint64(4), np.uint64(8)
"""Sizes of the paper's settings: known to the compiler, they halve the time."""


def hold(sizes, scale, pi, transition):
    """All that `gradient` reads beside the parameters, and room to work in: one array, since every argument has its price.

    In order: sizes d, m, mk; scale; weights of the four blocks, 1 here; pi; log pi; P; room for nine matrices.
    """
    d, m, mk = sizes
    room = np.zeros(3 * d * d + 2 * d * m + 4 * d * mk)
    return np.concatenate([sizes, [scale], np.ones(4), pi, np.log(pi), np.ravel(transition), room])


@njit(cache=True, fastmath=FAST)
def _multiply(rows, inner, columns, a, p, b, q, out, r):
    """out = a b, with a at p, b at q, out at r."""
    for i in range(rows):
        source, goal = p + i * inner, r + i * columns
        for j in range(columns):
            out[goal + j] = 0.0
        for k in range(inner):
            x, row = a[source + k], q + k * columns
            for j in range(columns):
                out[goal + j] += x * b[row + j]


@njit(cache=True, fastmath=FAST)
def _left(rows, inner, columns, weight, a, p, b, q, out, r):
    """out = weight a^T b."""
    for j in range(rows * columns):
        out[r + j] = 0.0
    for k in range(inner):
        source, row = p + k * rows, q + k * columns
        for i in range(rows):
            x, goal = weight * a[source + i], r + i * columns
            for j in range(columns):
                out[goal + j] += x * b[row + j]


@njit(cache=True, fastmath=FAST)
def _right(rows, inner, columns, weight, a, p, b, q, out, r):
    """out = weight a b^T."""
    for i in range(rows):
        source, goal = p + i * inner, r + i * columns
        for j in range(columns):
            total, row = 0.0, q + j * inner
            for k in range(inner):
                total += a[source + k] * b[row + k]
            out[goal + j] = weight * total


@njit(cache=True, fastmath=FAST)
def _add_right(rows, inner, columns, weight, a, p, b, q, out, r):
    """out += weight a b^T."""
    for i in range(rows):
        source, goal = p + i * inner, r + i * columns
        for j in range(columns):
            total, row = 0.0, q + j * inner
            for k in range(inner):
                total += a[source + k] * b[row + k]
            out[goal + j] += weight * total


@njit(cache=True, fastmath=FAST)
def _attend(d, held, log_pi, scores):
    """A_i ~ pi exp(Phi_i), in the place of Phi."""
    for i in range(d):
        row = scores + i * d
        for j in range(d):
            held[row + j] += held[log_pi + j]
        softmax(d, held, row)


@njit(cache=True, fastmath=FAST)
def _unattend(d, scale, held, attention, lift):
    """From dL/dA to scale dL/dPhi_ij = scale A_ij (lift_ij - A_i . lift_i), in place."""
    for i in range(d):
        a, x = attention + i * d, lift + i * d
        mean = 0.0
        for j in range(d):
            mean += held[a + j] * held[x + j]
        for j in range(d):
            held[x + j] = scale * held[a + j] * (held[x + j] - mean)


@njit(cache=True, fastmath=FAST)
def _surprise(d, held, pi, transition, logits):
    """The loss; turns logits_i into dL/dlogits_i = pi_i (softmax(logits_i) - P_i), rows of P summing to one or nearly so."""
    loss = 0.0
    for i in range(d):
        row, law = logits + i * d, transition + i * d
        expected, mass = 0.0, 0.0
        for j in range(d):
            expected += held[law + j] * held[row + j]
            mass += held[law + j]
        loss += held[pi + i] * (mass * softmax(d, held, row) - expected)
        for j in range(d):
            held[row + j] = held[pi + i] * (mass * held[row + j] - held[law + j])
    return loss


@njit(cache=True, fastmath=FAST)
def _gradient(theta, out, held, d, m, mk):
    """A_i ~ pi exp(Phi_i), H = A W0, logits = H W1, dL/dlogits_i = pi_i (softmax(logits_i) - P_i); then backwards."""
    scale = held[3]
    weight0, weight1, weightq, weightk = held[4], held[5], held[6], held[7]
    w0 = np.uint64(0)
    w1 = w0 + d * m
    wq = w1 + d * m
    wk = wq + m * mk
    pi = np.uint64(_TABLES)
    log_pi = pi + d
    transition = log_pi + d
    attention = transition + d * d
    logits = attention + d * d
    lift = logits + d * d
    h = lift + d * d
    dh = h + d * m
    q = dh + d * m
    k = q + d * mk
    dq = k + d * mk
    dk = dq + d * mk
    _multiply(d, m, mk, theta, w0, theta, wq, held, q)
    _multiply(d, m, mk, theta, w0, theta, wk, held, k)
    _right(d, mk, d, scale, held, q, held, k, held, attention)
    _attend(d, held, log_pi, attention)
    _multiply(d, d, m, held, attention, theta, w0, held, h)
    _multiply(d, m, d, held, h, theta, w1, held, logits)
    loss = _surprise(d, held, pi, transition, logits)
    _left(m, d, d, weight1, held, h, held, logits, out, w1)
    _right(d, d, m, 1.0, held, logits, theta, w1, held, dh)
    _left(d, d, m, weight0, held, attention, held, dh, out, w0)
    _right(d, m, d, 1.0, held, dh, theta, w0, held, lift)
    _unattend(d, scale, held, attention, lift)
    _multiply(d, d, mk, held, lift, held, k, held, dq)
    _left(d, d, mk, 1.0, held, lift, held, q, held, dk)
    _left(m, d, mk, weightq, theta, w0, held, dq, out, wq)
    _left(m, d, mk, weightk, theta, w0, held, dk, out, wk)
    _add_right(d, mk, m, weight0, held, dq, theta, wq, out, w0)
    _add_right(d, mk, m, weight0, held, dk, theta, wk, out, w0)
    return loss


@njit(cache=True, fastmath=FAST)
def gradient(theta, out, held):
    """Loss; writes weights[b] x gradient of block b (order W0, W1, WQ, WK) into `out`. `held` is from `hold`."""
    d, m, mk = np.uint64(held[0]), np.uint64(held[1]), np.uint64(held[2])
    if d == _D and m == _M and mk == _M:
        return _gradient(theta, out, held, _D, _M, _M)
    return _gradient(theta, out, held, d, m, mk)


# Numba kernel of the focus-dilution loss over contexts given by counts, with its gradient in Phi and M = W0 W1 [FD:finite].
#
# Contexts with the same query i share e_j = exp(Phi_ij - shift): A = n e / (n . e), logits = A M = n (e M) / (n . e). So a
# block of contexts costs two small matrix products and one softmax. Contexts are along the last axis, so that loops over
# a block vectorise.

BLOCK = 128
WIDEST = 600.0
"""How far below its row's largest score the query's own may lie before exp underflows; it is in every context."""


@njit(cache=True, fastmath=FAST, inline="always")
def _add(out, x, factor):
    for c in range(out.size):
        out[c] += factor * x[c]


@njit(cache=True, fastmath=FAST, inline="always")
def _dot(x, y):
    total = 0.0
    for c in range(x.size):
        total += x[c] * y[c]
    return total


@njit(cache=True)
def _weights(scores, shift, logits, e, em):
    """e_j = exp(Phi_ij - shift) and em = e M; a score above the shift is that of a token no context of the block has."""
    for j in range(scores.size):
        e[j] = np.exp(min(scores[j] - shift, 0.0))
        for k in range(scores.size):
            em[j, k] = e[j] * logits[j, k]


@njit(cache=True, fastmath=FAST)
def _forward(counts, weights, mass, lo, hi, e, em, work):
    """Loss of contexts lo..hi; leaves logits, dL/d(logits) / (n . e) and the sum of their products in `work`."""
    size, d = hi - lo, e.size
    inverse, top, total, pull = work[2, 0, :size], work[2, 1, :size], work[2, 2, :size], work[2, 3, :size]
    inverse[:], top[:], total[:], pull[:] = 0.0, -np.inf, 0.0, 0.0
    for j in range(d):
        _add(inverse, counts[j, lo:hi], e[j])
    for c in range(size):
        inverse[c] = 1.0 / inverse[c]
    for k in range(d):
        logit = work[0, k, :size]
        logit[:] = 0.0
        for j in range(d):
            _add(logit, counts[j, lo:hi], em[j, k])
        for c in range(size):
            logit[c] *= inverse[c]
        for c in range(size):
            top[c] = max(top[c], logit[c])
    for k in range(d):
        logit, slope = work[0, k, :size], work[1, k, :size]
        for c in range(size):
            slope[c] = np.exp(logit[c] - top[c])
        _add(total, slope, 1.0)
    loss, shares = 0.0, mass[lo:hi]
    for c in range(size):
        loss += shares[c] * (top[c] + np.log(total[c]))
        total[c] = shares[c] / total[c]
    for k in range(d):
        logit, slope, weight = work[0, k, :size], work[1, k, :size], weights[k, lo:hi]
        loss -= _dot(weight, logit)
        for c in range(size):
            slope[c] = (slope[c] * total[c] - weight[c]) * inverse[c]
            pull[c] += slope[c] * logit[c]
    return loss


@njit(cache=True, fastmath=FAST)
def _backward(counts, lo, hi, e, logits, work, d_scores, d_logits):
    """logits_k = sum_j n_j e_j M_jk / (n . e), so dL/d(e_j) = sum_k M_jk (n_j . slope_k) - n_j . pull."""
    size, d = hi - lo, e.size
    for j in range(d):
        row_counts = counts[j, lo:hi]
        lift = -_dot(row_counts, work[2, 3, :size])
        for k in range(d):
            slope = _dot(row_counts, work[1, k, :size])
            d_logits[j, k] += e[j] * slope
            lift += logits[j, k] * slope
        d_scores[j] += e[j] * lift


@njit(cache=True)
def context_loss(counts, weights, mass, starts, scores, logits, d_scores, d_logits):
    """Loss, and its derivatives in Phi (`scores`) and M (`logits`); contexts of query i are starts[i] .. starts[i+1]."""
    d = scores.shape[0]
    work = np.empty((3, max(d, 4), BLOCK))
    e, em = np.empty(d), np.empty((d, d))
    d_scores[:], d_logits[:] = 0.0, 0.0
    loss = 0.0
    for i in range(d):
        shift = scores[i].max()
        alone = shift - scores[i, i] > WIDEST
        if not alone:
            _weights(scores[i], shift, logits, e, em)
        width = 1 if alone else BLOCK
        for lo in range(starts[i], starts[i + 1], width):
            hi = min(lo + width, starts[i + 1])
            if alone:  # shift by the strongest token that is present
                shift = -np.inf
                for j in range(d):
                    if counts[j, lo] > 0:
                        shift = max(shift, scores[i, j])
                _weights(scores[i], shift, logits, e, em)
            loss += _forward(counts, weights, mass, lo, hi, e, em, work)
            _backward(counts, lo, hi, e, logits, work, d_scores[i], d_logits)
    return loss


# Numba kernel of the two linear laws beside a small model of TokenAttention, see saddle_path.py.


@njit(cache=True, fastmath=FAST)
def _times(a, b):
    """a b, for b with contiguous rows."""
    out = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        out_row = out[i]
        for k in range(a.shape[1]):
            factor, row = a[i, k], b[k]
            for j in range(out_row.size):
                out_row[j] += factor * row[j]
    return out


@njit(cache=True)
def _transposed(a):
    """a^T with contiguous rows."""
    out = np.empty((a.shape[1], a.shape[0]))
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]
    return out


@njit(cache=True, fastmath=FAST)
def _times_transposed(a, b):
    """a b^T, for a and b with contiguous rows."""
    out = np.empty((a.shape[0], b.shape[0]))
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            one, two, total = a[i], b[j], 0.0
            for k in range(one.size):
                total += one[k] * two[k]
            out[i, j] = total
    return out


@njit(cache=True, fastmath=FAST)
def _softmax(row):
    top, total = row.max(), 0.0
    for j in range(len(row)):
        row[j] = max(row[j] - top, -700.0)
    exp_double(row)
    for j in range(len(row)):
        total += row[j]
    for j in range(len(row)):
        row[j] /= total


@njit(cache=True, fastmath=FAST)
def population_slopes(pi, transition, scale, w0, w1, wq, wk):
    """GM and GP of the population loss, as `slopes` of the reduced family [FD:ladder]."""
    d, base = len(pi), np.log(pi)
    attention = _times(_times(w0, scale * wq), _transposed(_times(w0, wk)))
    for i in range(d):
        row = attention[i]
        for j in range(d):
            row[j] += base[j]
        _softmax(row)
    surprise = _times(_times(attention, w0), w1)
    for i in range(d):
        row, next_ = surprise[i], transition[i]
        _softmax(row)
        for j in range(d):
            row[j] = pi[i] * (row[j] - next_[j])
    lift = _times(_times_transposed(surprise, w1), _transposed(w0))
    for i in range(d):
        weights, row, mean = attention[i], lift[i], 0.0
        for j in range(d):
            mean += weights[j] * row[j]
        for j in range(d):
            row[j] = scale * weights[j] * (row[j] - mean)
    return _times(_transposed(attention), surprise), lift


@njit(cache=True)
def _part(logs, left, right, first, count):
    """Some rows of a graded matrix, as they are in float64."""
    out = np.zeros((count, right.shape[1]))
    for k in range(len(logs)):
        size = np.exp(logs[k])
        for i in range(count):
            for j in range(right.shape[1]):
                out[i, j] += size * left[k, first + i] * right[k, j]
    return out


@njit(cache=True)
def _negated(a, out, first):
    """-a as columns of `out`. In loops, because Numba takes seconds to compile an assignment to a slice."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, first + j] = -a[i, j]


@njit(cache=True)
def laws(slopes, small, frame, embedding, attention):
    """B (d, d + 2 mk) and F (m, m) at a point of the small model with both stacks beside it."""
    (gm, gp), (w0, wq, wk), (s, u) = slopes, small, frame
    d, m, keys = len(gm), s.shape[1], u.shape[1]
    b = np.empty((d, d + 2 * keys))
    _negated(gm, b, 0)
    for place in range(2):
        block, turned_gp = (wk, gp) if place == 0 else (wq, _transposed(gp))
        weights_change = _times(block, u) + _times(s, _part(*attention, m * (1 - place), m))
        _negated(_times(turned_gp, _times(w0, weights_change)), b, d + place * keys)
    embedding_change = _times(w0, s) + _part(*embedding, 0, d)
    return b, -_times(_transposed(embedding_change), _times(gp, embedding_change))
