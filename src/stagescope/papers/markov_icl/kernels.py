"""Numba kernels with hand-derived gradients: models R [MIC:model-r], S [MIC:model-s], F over all sequences [MIC:model-f].

R: tables lie in one flat array: that of pi_i (P^d)_ij has a row for every lag, with all chains in it, so that the sum over lags
and its transpose go through memory once each.

S: windows of one chain that have the same first token and the same transitions are alike. A chain of order 1 gives them one
probability, so sums over chains go over kinds of windows, of which there are few: about D^2 for two tokens in place of 2^D.
e^{b h_i} of all windows is a product over the lags, built digit by digit, and so is its gradient taken apart.

F: what it predicts after a place depends on the tokens up to it alone, so sequences with one prefix share their logits. Level t
of the tree has all prefixes of t + 1 tokens, in the order of numbers in base k; the parent of node n is n // k. A level with all
its nodes is a product over the lags, so sums over lags are built and taken apart one digit at a time.
"""

import numpy as np

from stagescope.flow.flat_kernel import FAST, softmax
from stagescope.flow.kernels import njit

WEIGHTS = slice(4, 6)
_TABLES = WEIGHTS.stop
PARTS, _, FREE = range(3)
"""Forms of W, in the order of `model.Form`."""


def hold_reduced(form, mass, transitions, powers):
    """All that `reduced_gradient` reads beside the parameters, and its work space.

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
    by_fours = lags - lags % np.uint64(4)
    for d in range(np.uint64(0), by_fours, np.uint64(4)):
        row, a = table + d * size, attention + d
        x0, x1, x2, x3 = held[a], held[a + 1], held[a + 2], held[a + 3]
        row1 = row + size
        row2 = row1 + size
        row3 = row2 + size
        for n in range(size):
            held[out + n] += x0 * held[row + n] + x1 * held[row1 + n] + x2 * held[row2 + n] + x3 * held[row3 + n]
    for d in range(by_fours, lags):
        row, x = table + d * size, held[attention + d]
        for n in range(size):
            held[out + n] += x * held[row + n]


@njit(cache=True, fastmath=FAST)
def _reduced_chain(k, held, w, mass, law, mixed, lift, slope, logits):
    """The loss of one chain; leaves dL/dM at `lift`, adds dL/dW at `slope`."""
    loss = 0.0
    for i in range(k):
        for j in range(k):
            total = 0.0
            for m in range(k):
                total += held[w + i * k + m] * held[mixed + m * k + j]
            held[logits + j] = total
        mean_logit = 0.0
        for j in range(k):
            mean_logit += held[law + i * k + j] * held[logits + j]
        share = held[mass + i]
        loss += share * (softmax(k, held, logits) - mean_logit)
        for j in range(k):
            surprise = share * (held[logits + j] - held[law + i * k + j])
            for m in range(k):
                held[lift + m * k + j] += held[w + i * k + m] * surprise
                held[slope + i * k + m] += surprise * held[mixed + m * k + j]
    return loss


@njit(cache=True, fastmath=FAST)
def read_match(theta, held, k, form, w, slope):
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
            held[slope + place] = 0.0


@njit(cache=True, fastmath=FAST)
def write_match(out, held, k, form, weight, slope):
    """The gradient of W; of a and b, the sums over all entries and over the diagonal; of two entries, means over their equals."""
    if form == FREE:
        for place in range(k * k):
            out[place] = weight * held[slope + place]
        return
    total, diagonal = 0.0, 0.0
    for i in range(k):
        diagonal += held[slope + i * k + i]
        for m in range(k):
            total += held[slope + i * k + m]
    if form == PARTS:
        out[0], out[1] = weight * total, weight * diagonal
    else:
        out[0], out[1] = weight * (total - diagonal) / (k * k - k), weight * diagonal / k


@njit(cache=True, fastmath=FAST)
def reduced_gradient(theta, out, held):
    """Loss; writes weight x gradient of the blocks W and v into `out`. `held` is from `hold_reduced`."""
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
    slope = w + square
    logits = slope + square
    for d in range(lags):
        held[attention + d] = theta[first + d]
    softmax(lags, held, attention)
    _mix(size, lags, held, attention, powers, mixed)
    read_match(theta, held, k, form, w, slope)
    for n in range(size):
        held[lift + n] = 0.0
    loss = 0.0
    for c in range(chains):
        place = c * square
        loss += _reduced_chain(k, held, w, mass + c * k, law + place, mixed + place, lift + place, slope, logits)
    write_match(out, held, k, form, held[4], slope)
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


def kinds_of_windows(tokens, lags):
    """The kind of every window (k^D,), one window of each kind, and how many kinds end with each token (k,).

    The newest token is the last digit. Kinds are numbered by their newest token first.
    """
    windows = np.arange(tokens**lags)
    newest_first = windows[:, None] // tokens ** np.arange(lags) % tokens
    moves = newest_first[:, 1:] * tokens + newest_first[:, :-1]
    counts = np.stack([np.sum(moves == move, axis=1) for move in range(tokens**2)], axis=1)
    signature = np.column_stack([newest_first[:, 0], newest_first[:, -1], counts])
    _, members, kinds = np.unique(signature, axis=0, return_index=True, return_inverse=True)
    return kinds.ravel(), members, np.bincount(newest_first[members, 0], minlength=tokens)


def hold_windows(tokens, lags, mass, after, windows):
    """All that `window_gradient` reads beside the parameters, and its work space.

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
def _products(held, k, lags, i, b, attention, place):
    """e^{b h_i} of every window from `place` on, over its largest value; the oldest token is the first digit."""
    held[place] = 1.0
    count = 1
    for d in range(lags - 1, -1, -1):
        less = np.exp(-abs(b) * held[attention + d])
        match, mismatch = (1.0, less) if b > 0 else (less, 1.0)
        for n in range(count - 1, -1, -1):
            value = held[place + n]
            for token in range(k - 1, -1, -1):
                held[place + n * k + token] = value * (match if token == i else mismatch)
        count *= k


@njit(cache=True, fastmath=FAST)
def _take_apart(held, k, lags, i, size, pull, place):
    """Adds to the gradient of each lag the sum over windows with token i there of what is from `place` on, used up."""
    count = size
    for d in range(lags):
        count //= k
        total = 0.0
        for n in range(count):
            value = 0.0
            for token in range(k):
                value += held[place + n * k + token]
            total += held[place + n * k + i]
            held[place + n] = value
        held[pull + d] += total


@njit(cache=True, fastmath=FAST)
def _window_chain(held, k, count, ends, mass, after, law, sums, lift, row):
    """The loss of one chain; adds dL/d(sums over kinds) at `lift`."""
    loss = 0.0
    for i in range(k):
        normaliser, s = 0.0, 0
        for j in range(k):
            total = 0.0
            for _ in range(int(held[ends + j])):
                total += held[law + s] * held[sums + i * count + s]
                s += 1
            held[row + j] = total
            normaliser += total
        share = held[mass + i]
        s = 0
        for j in range(k):
            p = held[after + i * k + j]
            loss -= share * p * np.log(held[row + j] / normaliser) if p > 0.0 else 0.0
            slope = share * (1.0 / normaliser - (p / held[row + j] if p > 0.0 else 0.0))
            for _ in range(int(held[ends + j])):
                held[lift + i * count + s] += slope * held[law + s]
                s += 1
    return loss


@njit(cache=True, fastmath=FAST)
def window_gradient(theta, out, held):
    """Loss; writes weight x gradient of the blocks W and v into `out`. `held` is from `hold_windows`."""
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
    row = lift + k * count
    attention = row + k * k
    pull = attention + lags
    for d in range(lags):
        held[attention + d] = theta[1 + d]
        held[pull + d] = 0.0
    softmax(lags, held, attention)
    for s in range(2 * k * count):
        held[sums + s] = 0.0
    for i in range(k):
        place = weights + i * size
        _products(held, k, lags, i, b, attention, place)
        for n in range(size):
            held[sums + i * count + int(held[kinds + n])] += held[place + n]
    loss = 0.0
    for c in range(chains):
        loss += _window_chain(held, k, count, ends, mass + c * k, after + c * k * k, law + c * count, sums, lift, row)
    for i in range(k):
        place = weights + i * size
        for n in range(size):
            held[place + n] *= held[lift + i * count + int(held[kinds + n])]
        _take_apart(held, k, lags, i, size, pull, place)
    mean = 0.0
    for d in range(lags):
        mean += held[attention + d] * held[pull + d]
    out[0] = held[4] * mean
    for d in range(lags):
        out[1 + d] = held[5] * b * held[attention + d] * (held[pull + d] - mean)
    return loss


PREFIX_WEIGHTS = slice(6, 8)
_PREFIX_TABLES = PREFIX_WEIGHTS.stop


def hold_prefixes(tokens, lags, length, form, weights):
    """All that `prefix_gradient` reads beside the parameters, and its work space.

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
def _attend(theta, held, first, attention, visible):
    """A over the lags that a place has."""
    for d in range(visible):
        held[attention + d] = theta[first + d]
    softmax(visible, held, attention)


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
def _predict(held, k, node, token, law, pairs, lift, w, slope, logits):
    """The loss after one prefix; leaves its own part of dL/dC at `lift`, adds dL/dW at `slope`."""
    square, row = k * k, token * k
    node_pairs = pairs + node * square
    weight, mean_logit = 0.0, 0.0
    for j in range(k):
        total = 0.0
        for m in range(k):
            total += held[w + row + m] * held[node_pairs + m * k + j]
        held[logits + j] = total
        weight += held[law + node * k + j]
        mean_logit += held[law + node * k + j] * total
    loss = weight * softmax(k, held, logits) - mean_logit
    for j in range(k):
        held[logits + j] = weight * held[logits + j] - held[law + node * k + j]
    for m in range(k):
        x, total = held[w + row + m], 0.0
        for j in range(k):
            total += held[logits + j] * held[node_pairs + m * k + j]
            held[lift + node * square + m * k + j] = x * held[logits + j]
        held[slope + row + m] += total
    return loss


@njit(cache=True, fastmath=FAST)
def prefix_gradient(theta, out, held):
    """Loss; writes weight x gradient of the blocks W and v into `out`. `held` is from `hold_prefixes`."""
    k, lags, places, form = int(held[0]), int(held[1]), int(held[2]), int(held[3])
    roots, nodes = int(held[4]), int(held[5])
    square = k * k
    first = square if form == FREE else 2
    law = _PREFIX_TABLES
    pairs = law + nodes * k
    lift = pairs + nodes * square
    h = lift + nodes * square
    widest = roots * k ** (places - 1)
    attention = h + k * widest
    pull = attention + lags
    w = pull + lags
    slope = w + square
    logits = slope + square
    read_match(theta, held, k, form, w, slope)
    loss, start, width = 0.0, 0, roots
    for place in range(places):
        _attend(theta, held, first, attention, min(place + 1, lags))
        _spread(held, k, roots, place, lags, attention, h, width)
        for n in range(width):
            node, token = start + n, n % k
            block = pairs + node * square
            for i in range(square):
                held[block + i] = 0.0 if place == 0 else held[pairs + (start - width // k + n // k) * square + i]
            for m in range(k):
                held[block + m * k + token] += held[h + m * width + n]
            loss += _predict(held, k, node, token, law, pairs, lift, w, slope, logits)
        start, width = start + width, width * k
    for d in range(lags):
        out[first + d] = 0.0
    for place in range(places - 1, -1, -1):
        width //= k
        start -= width
        for n in range(width):
            block, token = lift + (start + n) * square, n % k
            for m in range(k):
                held[h + m * width + n] = held[block + m * k + token]
            if place > 0:
                parent = lift + (start - width // k + n // k) * square
                for i in range(square):
                    held[parent + i] += held[block + i]
        visible = min(place + 1, lags)
        _attend(theta, held, first, attention, visible)
        _gather(held, k, roots, place, lags, pull, h, width)
        mean = 0.0
        for d in range(visible):
            mean += held[attention + d] * held[pull + d]
        for d in range(visible):
            out[first + d] += held[7] * held[attention + d] * (held[pull + d] - mean)
    write_match(out, held, k, form, held[6], slope)
    return loss
