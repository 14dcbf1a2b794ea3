"""Numba kernel of the reduced model R with its hand-derived gradient [MIC:model-r].

Tables lie in one flat array: that of pi_i (P^d)_ij has a row for every lag, with all chains in it, so that the sum over lags
and its transpose go through memory once each.
"""

import numpy as np

from stagescope.fields.flat_kernel import FAST, softmax
from stagescope.kernels import njit

WEIGHTS, _TABLES = slice(4, 6), 6
PARTS, ENTRIES, FREE = 0, 1, 2
"""Forms of W, in the order of `model.Form`."""


def hold(form, mass, transitions, powers):
    """All that `gradient` reads beside the parameters, and its work space.

    In order: tokens, lags, chains, form of W; weights of W and v, 1 here; weight x pi_i (C, k); P (C, k, k); pi_i (P^d)_ij
    (D, C, k, k); work space for A, its gradient, M, dL/dM and one matrix.
    """
    lags, chains, tokens = powers.shape[:3]
    room = np.zeros(2 * lags + 2 * chains * tokens**2 + 3 * tokens**2)
    tables = (mass, transitions, powers)
    return np.concatenate([[tokens, lags, chains, form, 1.0, 1.0], *(np.ravel(table) for table in tables), room])


@njit(cache=True, fastmath=FAST)
def _mix(size, lags, held, attention, table, out):
    """out = sum_d A_d table_d, by fours of lags."""
    for n in range(size):
        held[out + n] = 0.0
    whole = lags - lags % np.uint64(4)
    for d in range(np.uint64(0), whole, np.uint64(4)):
        row, a = table + d * size, attention + d
        x0, x1, x2, x3 = held[a], held[a + 1], held[a + 2], held[a + 3]
        row1 = row + size
        row2 = row1 + size
        row3 = row2 + size
        for n in range(size):
            held[out + n] += x0 * held[row + n] + x1 * held[row1 + n] + x2 * held[row2 + n] + x3 * held[row3 + n]
    for d in range(whole, lags):
        row, x = table + d * size, held[attention + d]
        for n in range(size):
            held[out + n] += x * held[row + n]


@njit(cache=True, fastmath=FAST)
def _chain(k, held, w, mass, law, mixed, lift, own, logits):
    """The loss of one chain; leaves dL/dM at `lift`, adds dL/dW at `own`."""
    loss = 0.0
    for i in range(k):
        for j in range(k):
            total = 0.0
            for m in range(k):
                total += held[w + i * k + m] * held[mixed + m * k + j]
            held[logits + j] = total
        chosen = 0.0
        for j in range(k):
            chosen += held[law + i * k + j] * held[logits + j]
        share = held[mass + i]
        loss += share * (softmax(k, held, logits) - chosen)
        for j in range(k):
            surprise = share * (held[logits + j] - held[law + i * k + j])
            for m in range(k):
                held[lift + m * k + j] += held[w + i * k + m] * surprise
                held[own + i * k + m] += surprise * held[mixed + m * k + j]
    return loss


@njit(cache=True, fastmath=FAST)
def read_match(theta, held, k, form, w, own):
    """W from the parameters; its gradient is set to zero."""
    for i in range(k):
        for m in range(k):
            place = i * k + m
            if form == FREE:
                held[w + place] = theta[place]
            elif i == m:
                held[w + place] = theta[1] + (theta[0] if form == PARTS else 0.0)
            else:
                held[w + place] = theta[0]
            held[own + place] = 0.0


@njit(cache=True, fastmath=FAST)
def write_match(out, held, k, form, weight, own):
    """The gradient of W; of a and b, the sums over all entries and over the diagonal; of two entries, means over their equals."""
    if form == FREE:
        for place in range(k * k):
            out[place] = weight * held[own + place]
        return
    total, diagonal = 0.0, 0.0
    for i in range(k):
        diagonal += held[own + i * k + i]
        for m in range(k):
            total += held[own + i * k + m]
    if form == PARTS:
        out[0], out[1] = weight * total, weight * diagonal
    else:
        out[0], out[1] = weight * (total - diagonal) / (k * k - k), weight * diagonal / k


@njit(cache=True, fastmath=FAST)
def gradient(theta, out, held):
    """Loss; writes weight x gradient of the blocks W and v into `out`. `held` is from `hold`."""
    k, lags, chains = np.uint64(held[0]), np.uint64(held[1]), np.uint64(held[2])
    form = int(held[3])
    square = k * k
    size, first = chains * square, square if form == FREE else np.uint64(2)
    mass = np.uint64(_TABLES)
    law = mass + chains * k
    powers = law + size
    attention = powers + lags * size
    pull = attention + lags
    mixed = pull + lags
    lift = mixed + size
    w = lift + size
    own = w + square
    logits = own + square
    for d in range(lags):
        held[attention + d] = theta[first + d]
    softmax(lags, held, attention)
    _mix(size, lags, held, attention, powers, mixed)
    read_match(theta, held, k, form, w, own)
    for n in range(size):
        held[lift + n] = 0.0
    loss = 0.0
    for c in range(chains):
        place = c * square
        loss += _chain(k, held, w, mass + c * k, law + place, mixed + place, lift + place, own, logits)
    write_match(out, held, k, form, held[4], own)
    mean = 0.0
    for d in range(lags):
        row, total = powers + d * size, 0.0
        for n in range(size):
            total += held[row + n] * held[lift + n]
        held[pull + d] = total
        mean += held[attention + d] * total
    for d in range(lags):
        out[first + d] = held[5] * held[attention + d] * (held[pull + d] - mean)
    return loss
