"""Numba kernel of model S: windows of one chain that have the same first token and the same transitions are alike [MIC:model-s].

A chain of order 1 gives them one probability, so sums over chains go over kinds of windows, of which there are few: about D^2
for two tokens in place of 2^D. e^{b h_i} of all windows is a product over the lags, built digit by digit, and so is its
gradient taken apart.
"""

import numpy as np

from stagescope.fields.flat_kernel import FAST, softmax
from stagescope.kernels import njit

WEIGHTS, _TABLES = slice(4, 6), 6


def kinds_of_windows(tokens, lags):
    """The kind of every window (k^D,), one window of each kind, and how many kinds end with each token (k,).

    The newest token is the last digit. Kinds are numbered by their newest token first.
    """
    windows = np.arange(tokens**lags)
    at = windows[:, None] // tokens ** np.arange(lags) % tokens
    moves = at[:, 1:] * tokens + at[:, :-1]
    counts = np.stack([np.sum(moves == move, axis=1) for move in range(tokens**2)], axis=1)
    known = np.column_stack([at[:, 0], at[:, -1], counts])
    _, members, kinds = np.unique(known, axis=0, return_index=True, return_inverse=True)
    return kinds.ravel(), members, np.bincount(at[members, 0], minlength=tokens)


def hold(tokens, lags, mass, after, windows):
    """All that `gradient` reads beside the parameters, and its work space.

    In order: tokens, lags, chains, kinds; weights of W and v, 1 here; kinds that end with each token (k,); the kind of every
    window (k^D,); weight x pi_i (C, k); P (C, k, k); probability of a window of each kind (C, kinds); work space for e^{b h_i}
    (k, k^D), its sums over kinds and their gradient (k, kinds), one chain (k, k), A and its gradient.
    """
    kinds, members, ends = kinds_of_windows(tokens, lags)
    chains, count = len(mass), len(members)
    room = np.zeros(tokens * tokens**lags + 2 * tokens * count + tokens**2 + 2 * lags)
    tables = (ends, kinds, mass, after, windows[:, members])
    return np.concatenate([[tokens, lags, chains, count, 1.0, 1.0], *(np.ravel(table) for table in tables), room])


@njit(cache=True, fastmath=FAST)
def _products(held, k, lags, i, b, attention, at):
    """e^{b h_i} of every window from place `at` on, over its largest value; the oldest token is the first digit."""
    held[at] = 1.0
    count = 1
    for d in range(lags - 1, -1, -1):
        less = np.exp(-abs(b) * held[attention + d])
        own, other = (1.0, less) if b > 0 else (less, 1.0)
        for n in range(count - 1, -1, -1):
            value = held[at + n]
            for token in range(k - 1, -1, -1):
                held[at + n * k + token] = value * (own if token == i else other)
        count *= k


@njit(cache=True, fastmath=FAST)
def _take_apart(held, k, lags, i, size, pull, at):
    """Adds to the gradient of each lag the sum over windows with token i there of what is from place `at` on, used up."""
    count = size
    for d in range(lags):
        count //= k
        total = 0.0
        for n in range(count):
            value = 0.0
            for token in range(k):
                value += held[at + n * k + token]
            total += held[at + n * k + i]
            held[at + n] = value
        held[pull + d] += total


@njit(cache=True, fastmath=FAST)
def _chain(held, k, count, ends, mass, after, law, sums, lift, own):
    """The loss of one chain; adds dL/d(sums over kinds) at `lift`."""
    loss = 0.0
    for i in range(k):
        whole, s = 0.0, 0
        for j in range(k):
            total = 0.0
            for _ in range(int(held[ends + j])):
                total += held[law + s] * held[sums + i * count + s]
                s += 1
            held[own + j] = total
            whole += total
        share = held[mass + i]
        s = 0
        for j in range(k):
            p = held[after + i * k + j]
            loss -= share * p * np.log(held[own + j] / whole) if p > 0.0 else 0.0
            slope = share * (1.0 / whole - (p / held[own + j] if p > 0.0 else 0.0))
            for _ in range(int(held[ends + j])):
                held[lift + i * count + s] += slope * held[law + s]
                s += 1
    return loss


@njit(cache=True, fastmath=FAST)
def gradient(theta, out, held):
    """Loss; writes weight x gradient of the blocks W and v into `out`. `held` is from `hold`."""
    k, lags, chains, count = int(held[0]), int(held[1]), int(held[2]), int(held[3])
    size, b = k**lags, theta[0]
    ends = _TABLES
    kinds = ends + k
    mass = kinds + size
    after = mass + chains * k
    law = after + chains * k * k
    weights = law + chains * count
    sums = weights + k * size
    lift = sums + k * count
    own = lift + k * count
    attention = own + k * k
    pull = attention + lags
    for d in range(lags):
        held[attention + d] = theta[1 + d]
        held[pull + d] = 0.0
    softmax(lags, held, attention)
    for s in range(2 * k * count):
        held[sums + s] = 0.0
    for i in range(k):
        at = weights + i * size
        _products(held, k, lags, i, b, attention, at)
        for n in range(size):
            held[sums + i * count + int(held[kinds + n])] += held[at + n]
    loss = 0.0
    for c in range(chains):
        loss += _chain(held, k, count, ends, mass + c * k, after + c * k * k, law + c * count, sums, lift, own)
    for i in range(k):
        at = weights + i * size
        for n in range(size):
            held[at + n] *= held[lift + i * count + int(held[kinds + n])]
        _take_apart(held, k, lags, i, size, pull, at)
    mean = 0.0
    for d in range(lags):
        mean += held[attention + d] * held[pull + d]
    out[0] = held[4] * mean
    for d in range(lags):
        out[1 + d] = held[5] * b * held[attention + d] * (held[pull + d] - mean)
    return loss
