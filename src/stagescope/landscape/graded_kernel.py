"""Numba kernels of graded matrices: sums of patterns whose sizes are kept as logarithms, see graded.py.

A row of a table is a pattern. Loops are written out: they compile in a fraction of the time of array expressions.
"""

import numpy as np

from stagescope.flow.kernels import njit

_FAST = {"contract", "reassoc"}  # lets sums vectorise; no other fast-math flag, so that inf and nan keep their meaning
DEPENDENT = 1e-13
"""What is left of a unit vector below this is rounding: the vector depends on those before it."""


@njit(cache=True, fastmath=_FAST)
def _dot(a, i, b, j):
    total = 0.0
    for n in range(a.shape[1]):
        total += a[i, n] * b[j, n]
    return total


@njit(cache=True)
def _add(out, i, factor, a, j):
    for n in range(out.shape[1]):
        out[i, n] += factor * a[j, n]


@njit(cache=True)
def _normalise(logs, vectors):
    """Unit rows, their sizes in the logarithms."""
    for i in range(len(logs)):
        size = np.sqrt(_dot(vectors, i, vectors, i))
        if size > 0.0:
            logs[i] += np.log(size)
            for n in range(vectors.shape[1]):
                vectors[i, n] /= size
        else:
            logs[i] = -np.inf


@njit(cache=True)
def _sorted(logs, left, right):
    """Unit vectors, the largest pattern first; patterns that are zero are left out."""
    _normalise(logs, left)
    _normalise(logs, right)
    order, count = np.empty(len(logs), np.int64), 0
    for i in range(len(logs)):
        if logs[i] > -np.inf:
            place = count
            while place > 0 and logs[order[place - 1]] < logs[i]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = i
            count += 1
    sizes, first, second = np.zeros(count), np.zeros((count, left.shape[1])), np.zeros((count, right.shape[1]))
    for k in range(count):
        sizes[k] = logs[order[k]]
        _add(first, k, 1.0, left, order[k])
        _add(second, k, 1.0, right, order[k])
    return sizes, first, second


@njit(cache=True)
def _swept(logs, left, right):
    """The same sum with orthonormal vectors on the right, made in the order of size.

    A pattern only takes up what lies along it in smaller ones, so what is small keeps its own relative accuracy.
    """
    count, width = right.shape
    full_rank = min(count, width)
    basis, sizes, combined = np.zeros((full_rank, width)), np.zeros(full_rank), np.zeros((full_rank, left.shape[1]))
    rank, factors = 0, np.zeros(full_rank)
    for i in range(count):
        for j in range(full_rank):
            factors[j] = 0.0
        for _ in range(2):
            for j in range(rank):
                share = _dot(right, i, basis, j)
                factors[j] += share
                _add(right, i, -share, basis, j)
        residual = np.sqrt(_dot(right, i, right, i))
        if residual > DEPENDENT and rank < full_rank:
            _add(basis, rank, 1.0 / residual, right, i)
            sizes[rank], factors[rank] = logs[i], residual
            rank += 1
        for j in range(rank):
            _add(combined, j, np.exp(logs[i] - sizes[j]) * factors[j], left, i)
    return sizes[:rank].copy(), combined[:rank].copy(), basis[:rank].copy()


@njit(cache=True)
def regraded(logs, left, right):
    """The same sum with orthonormal left vectors and nearly orthogonal unit right vectors, the largest pattern first."""
    logs, left, right = _sorted(logs.copy(), left.copy(), right.copy())
    logs, left, right = _swept(logs, left, right)
    logs, left, right = _sorted(logs, left, right)
    logs, right, left = _swept(logs, right, left)
    return _sorted(logs, left, right)


@njit(cache=True, fastmath=_FAST)
def _applied(b, left, out, factor):
    """out = factor N of each row of `left`, with N = [[0, B], [B^T, 0]]; a row of B is read once for both of its uses."""
    d, width = b.shape
    out[:] = 0.0
    for n in range(d):
        row = b[n]
        for i in range(len(left)):
            second, out_second, entry, total = left[i, d:], out[i, d:], factor * left[i, n], 0.0
            for k in range(width):
                total += row[k] * second[k]
                out_second[k] += entry * row[k]
            out[i, n] += factor * total


@njit(cache=True)
def grown(logs, left, right, b, h, pieces):
    """exp(h N) times the sum, graded again after each of several pieces: the series of exp, until its terms are rounding."""
    for _ in range(pieces):
        total, term, spare = left.copy(), left.copy(), np.empty_like(left)
        for order in range(1, 60):
            _applied(b, term, spare, h / (pieces * order))
            term, spare = spare, term
            largest = 0.0
            for i in range(len(logs)):
                _add(total, i, 1.0, term, i)
                largest = max(largest, _dot(term, i, term, i))
            if largest < 1e-34:
                break
        logs, left, right = regraded(logs, total, right)
    return logs, left, right
