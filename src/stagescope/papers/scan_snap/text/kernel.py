"""Numba kernel of scan and snap on windows of a text: loss and gradient on some windows, over the keys they contain."""

import numpy as np

from stagescope.kernels import njit


@njit(cache=True)
def gradient(y, z, rows, start, key, count, target, multiplicity, dy, dz):
    """Mean loss over the windows `rows`; fills dy and dz with its gradient, per coordinate of the unreduced model."""
    columns = y.shape[1]
    dy[:] = 0.0
    dz[:] = 0.0
    logits, lift = np.empty(columns), np.empty(columns)
    widest = 0
    for i in rows:
        widest = max(widest, start[i + 1] - start[i])
    f, g = np.empty(widest), np.empty(widest)
    loss, share = 0.0, 1.0 / rows.size
    for i in rows:
        first, many = start[i], start[i + 1] - start[i]
        top = -np.inf
        for a in range(many):
            top = max(top, z[key[first + a]])
        norm = 0.0
        for a in range(many):
            f[a] = count[first + a] * np.exp(z[key[first + a]] - top)
            norm += f[a] * f[a]
        norm = 1.0 / np.sqrt(norm)
        logits[:] = 0.0
        for a in range(many):
            f[a] *= norm
            for j in range(columns):
                logits[j] += f[a] * y[key[first + a], j]
        high = logits.max()
        total = 0.0
        for j in range(columns):
            lift[j] = np.exp(logits[j] - high)
            total += multiplicity[j] * lift[j]
        loss += share * (np.log(total) + high - logits[target[i]])
        for j in range(columns):
            lift[j] /= total
        lift[target[i]] -= 1.0  # a target stands for one output, so this is per coordinate in every column
        mean = 0.0
        for a in range(many):
            row, into = y[key[first + a]], dy[key[first + a]]
            pull = 0.0
            for j in range(columns):
                pull += multiplicity[j] * lift[j] * row[j]
                into[j] += share * f[a] * lift[j]
            g[a] = pull
            mean += f[a] * pull
        for a in range(many):
            dz[key[first + a]] += share * f[a] * (g[a] - f[a] * mean)
    return loss
