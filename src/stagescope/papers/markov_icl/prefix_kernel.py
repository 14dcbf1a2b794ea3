"""Numba kernel of model F over all sequences: sums over a tree of prefixes [MIC:model-f].

What F predicts after a place depends on the tokens up to it alone, so sequences with one prefix share their logits. Level t of
the tree has all prefixes of t + 1 tokens, in the order of numbers in base k; the parent of node n is n // k. A level with all
its nodes is a product over the lags, so sums over lags are built and taken apart one digit at a time.
"""

import numpy as np

from stagescope.fields.flat_kernel import FAST, softmax
from stagescope.kernels import njit
from stagescope.papers.markov_icl.kernel import read_match, write_match

WEIGHTS, _TABLES = slice(6, 8), 8


def hold(tokens, lags, length, form, weights):
    """All that `gradient` reads beside the parameters, and its work space.

    `weights` are those of all sequences in the order of numbers in base k, or of those that begin with token 0. In order:
    tokens, lags, places, form of W, roots of the tree, nodes; weights of W and v, 1 here; probability of each prefix with each
    next token (nodes, k), over the number of places; work space for pairs C and dL/dC (nodes, k, k), for h of one level, for A
    and its gradient at one level, for W and its gradient, and for one row of logits.
    """
    places = length - 1
    roots = round(len(weights) / tokens**places)
    sizes = [roots * tokens**place for place in range(places)]
    laws = [np.reshape(weights, (size * tokens, -1)).sum(axis=1) / places for size in sizes]
    nodes = sum(sizes)
    room = np.zeros(2 * nodes * tokens**2 + tokens * sizes[-1] + 2 * lags + 2 * tokens**2 + tokens)
    return np.concatenate([[tokens, lags, places, form, roots, nodes, 1.0, 1.0], *laws, room])


@njit(cache=True, fastmath=FAST)
def _attend(theta, held, first, attention, seen):
    """A over the lags that a place has."""
    for d in range(seen):
        held[attention + d] = theta[first + d]
    softmax(seen, held, attention)


@njit(cache=True, fastmath=FAST)
def _spread(held, k, roots, place, lags, attention, h, width):
    """h of every node of a level (k, width): attention on each token, digit by digit from the first token on."""
    for m in range(k):
        for n in range(roots):
            held[h + m * width + n] = held[attention + place] if place < lags and n == m else 0.0
    count = roots
    for s in range(1, place + 1):
        lag = place - s
        x = held[attention + lag] if lag < lags else 0.0
        for m in range(k):
            row = h + m * width
            for n in range(count - 1, -1, -1):
                value = held[row + n]
                for token in range(k - 1, -1, -1):
                    held[row + n * k + token] = value + (x if token == m else 0.0)
        count *= k


@njit(cache=True, fastmath=FAST)
def _gather(held, k, roots, place, lags, pull, h, width):
    """The transpose of `_spread`: dL/dA_d from dL/dh of every node, which is used up."""
    count = width
    for s in range(place, 0, -1):
        lag = place - s
        count //= k
        total = 0.0
        for m in range(k):
            row = h + m * width
            for n in range(count):
                value = 0.0
                for token in range(k):
                    value += held[row + n * k + token]
                total += held[row + n * k + m]
                held[row + n] = value
        if lag < lags:
            held[pull + lag] = total
    if place < lags:
        held[pull + place] = 0.0
        for n in range(roots):
            held[pull + place] += held[h + n * width + n]


@njit(cache=True, fastmath=FAST)
def _predict(held, k, node, token, law, pairs, lift, w, own, logits):
    """The loss after one prefix; leaves its own part of dL/dC at `lift`, adds dL/dW at `own`."""
    square, row = k * k, token * k
    here = pairs + node * square
    known, chosen = 0.0, 0.0
    for j in range(k):
        total = 0.0
        for m in range(k):
            total += held[w + row + m] * held[here + m * k + j]
        held[logits + j] = total
        known += held[law + node * k + j]
        chosen += held[law + node * k + j] * total
    loss = known * softmax(k, held, logits) - chosen
    for j in range(k):
        held[logits + j] = known * held[logits + j] - held[law + node * k + j]
    for m in range(k):
        x, total = held[w + row + m], 0.0
        for j in range(k):
            total += held[logits + j] * held[here + m * k + j]
            held[lift + node * square + m * k + j] = x * held[logits + j]
        held[own + row + m] += total
    return loss


@njit(cache=True, fastmath=FAST)
def gradient(theta, out, held):
    """Loss; writes weight x gradient of the blocks W and v into `out`. `held` is from `hold`."""
    k, lags, places, form = int(held[0]), int(held[1]), int(held[2]), int(held[3])
    roots, nodes = int(held[4]), int(held[5])
    square = k * k
    first = square if form == 2 else 2
    law = _TABLES
    pairs = law + nodes * k
    lift = pairs + nodes * square
    h = lift + nodes * square
    widest = roots * k ** (places - 1)
    attention = h + k * widest
    pull = attention + lags
    w = pull + lags
    own = w + square
    logits = own + square
    read_match(theta, held, k, form, w, own)
    loss, start, width = 0.0, 0, roots
    for place in range(places):
        _attend(theta, held, first, attention, min(place + 1, lags))
        _spread(held, k, roots, place, lags, attention, h, width)
        for n in range(width):
            node, token = start + n, n % k
            here = pairs + node * square
            for i in range(square):
                held[here + i] = 0.0 if place == 0 else held[pairs + (start - width // k + n // k) * square + i]
            for m in range(k):
                held[here + m * k + token] += held[h + m * width + n]
            loss += _predict(held, k, node, token, law, pairs, lift, w, own, logits)
        start, width = start + width, width * k
    for d in range(lags):
        out[first + d] = 0.0
    for place in range(places - 1, -1, -1):
        width //= k
        start -= width
        for n in range(width):
            here, token = lift + (start + n) * square, n % k
            for m in range(k):
                held[h + m * width + n] = held[here + m * k + token]
            if place > 0:
                parent = lift + (start - width // k + n // k) * square
                for i in range(square):
                    held[parent + i] += held[here + i]
        seen = min(place + 1, lags)
        _attend(theta, held, first, attention, seen)
        _gather(held, k, roots, place, lags, pull, h, width)
        mean = 0.0
        for d in range(seen):
            mean += held[attention + d] * held[pull + d]
        for d in range(seen):
            out[first + d] += held[7] * held[attention + d] * (held[pull + d] - mean)
    write_match(out, held, k, form, held[6], own)
    return loss
