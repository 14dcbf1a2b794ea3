"""Second opinions: the numbers of a record in plain Python, one attention weight at a time."""

from math import log, nan, sqrt

import numpy as np


def lag_mass(patterns, lags):
    """`patterns` (sequence, head, query, key)."""
    count, heads, length, _ = patterns.shape
    found = np.zeros((heads, lags))
    for head in range(heads):
        for lag in range(lags):
            values = [patterns[b, head, q, q - lag] for b in range(count) for q in range(lag, length)]
            found[head, lag] = sum(values) / len(values)
    return found


def entropy(patterns):
    count, heads, length, _ = patterns.shape
    rows = [
        [-sum(p * log(p) for p in patterns[b, h, q] if p > 0) for b in range(count) for q in range(length)] for h in range(heads)
    ]
    return np.array([sum(row) / len(row) for row in rows])


def sink(patterns, after):
    count, heads, length, _ = patterns.shape
    return np.array([np.mean([patterns[b, h, q, 0] for b in range(count) for q in range(after, length)]) for h in range(heads)])


def prefix_match(patterns, ids):
    count, heads, length, _ = patterns.shape
    found = []
    for head in range(heads):
        values = []
        for b in range(count):
            for q in range(length):
                keys = [k for k in range(1, q + 1) if ids[b][k - 1] == ids[b][q]]
                if keys:
                    values.append(sum(patterns[b, head, q, k] for k in keys))
        found.append(sum(values) / len(values) if values else 0.0)
    return np.array(found)


def at_distance(patterns, distance, begin):
    """Mean attention to the key `distance` before, over queries from `begin` on."""
    count, heads, length, _ = patterns.shape
    places = [(b, q) for b in range(count) for q in range(begin, length)]
    return np.array([np.mean([patterns[b, h, q, q - distance] for b, q in places]) for h in range(heads)])


def content(patterns, settled):
    count, heads, length, _ = patterns.shape
    if count < 2:
        return np.full(heads, nan)
    found = []
    for h in range(heads):
        values = []
        for b in range(count):
            for q in range(settled, length):
                others = [np.mean([patterns[c, h, q, k] for c in range(count) if c != b]) for k in range(length)]
                values.append(0.5 * sum(abs(patterns[b, h, q, k] - others[k]) for k in range(length)))
        found.append(np.mean(values))
    return np.array(found)


def type_mass(patterns, ids, types):
    """The last column is the rest."""
    count, heads, length, _ = patterns.shape
    found = np.zeros((heads, len(types) + 1))
    for b in range(count):
        for k in range(length):
            kind = types.index(ids[b][k]) if ids[b][k] in types else len(types)
            for h in range(heads):
                found[h, kind] += sum(patterns[b, h, q, k] for q in range(length))
    return found / (count * length)


def agreement(patterns):
    heads = [patterns[:, h].ravel() for h in range(patterns.shape[1])]
    return np.array([[float(a @ b) / sqrt(float(a @ a) * float(b @ b)) for b in heads] for a in heads])


def score_values(query, key, most):
    """Singular values of the whole table of scores between all tokens, centred over keys, a pair and a root of width."""
    found = []
    for h in range(query.shape[1]):
        left, right = query[:, h].reshape(-1, query.shape[-1]), key[:, h].reshape(-1, key.shape[-1])
        scores = left @ right.T
        values = np.linalg.svd(scores - scores.mean(1, keepdims=True), compute_uv=False)
        found.append(values[:most] / (len(left) * sqrt(query.shape[-1])))
    return np.array(found)
