"""Numba kernel of what curves need of attention between all types, without the matrix itself."""

import numpy as np

from stagescope.fields.exp_kernel import exp_double
from stagescope.fields.flat_kernel import FAST
from stagescope.kernels import njit

QUERIES = 32
"""Rows of attention that are in memory at once."""
_LOWEST = -700.0
"""Powers of lower numbers are zero beside the largest one of a row, which is one."""
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
        values[j] = value if value > _LOWEST else _LOWEST
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
    most, share = 0.0, 1.0 / total
    for j in range(powers.size):
        now = share * powers[j]
        most = max(most, abs(now - before[j]))
        before[j] = now
    return most


@njit(cache=True)
def attention_rows(query, key_turned, law, frequent, before, out):
    """Of attention A_ij ~ law_j exp(query_i . key_j): its column of a type, its diagonal, its entropies: out (3, d).

    With a fourth row of `out`, the entropies of softmax(query_i . key_j) too. `before` is the attention (d, d) of another frame,
    which this one replaces, or (0, 0); the largest change of an entry is returned. `key_turned` is (., d). Rows with scores that
    are not finite are nan.
    """
    vocab, logs, inverse, most = law.size, np.log(law), 1 / law, 0.0
    scores, values, powers = np.empty((QUERIES, vocab)), np.empty(vocab), np.empty(vocab)
    for first in range(0, vocab, QUERIES):
        last = min(first + QUERIES, vocab)
        np.dot(query[first:last], key_turned, scores[: last - first])
        for i in range(first, last):
            own = scores[i - first]
            if not np.isfinite(_powers(own, logs, _largest(own, logs), values, powers)):
                out[:, i] = np.nan
                continue
            exp_double(powers)
            total, out[2, i] = _entropy(values, powers)
            out[0, i], out[1, i] = powers[frequent] / total, powers[i] / total
            if before.size:
                most = max(most, _change(powers, total, before[i]))
            if len(out) > 3:
                out[3, i] = _entropy_without(logs, inverse, values, powers)
    return most
