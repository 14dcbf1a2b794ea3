"""Numba kernels of the scan-and-snap population law, with the hand-derived gradient of Lemma 1 [SnS:lemma-1].

Contexts are stored by class (start, key, logp): only the support of a class is ever touched. All functions read a flat
(Y, Z) and write `scale_y`, `scale_z` times the per-coordinate gradient of the loss, and return the loss.
"""

import numpy as np

from stagescope.kernels import njit


@njit(cache=True)
def _features(z, key, logp, f):
    """f = c/|c|_2 with c_l ~ P(l|n) exp(z_l); the normalisation of c drops out."""
    top = -np.inf
    for i in range(key.size):
        f[i] = logp[i] + z[key[i]]
        top = max(top, f[i])
    norm = 0.0
    for i in range(key.size):
        f[i] = np.exp(f[i] - top)
        norm += f[i] * f[i]
    norm = np.sqrt(norm)
    for i in range(key.size):
        f[i] /= norm


@njit(cache=True)
def _residual(y, key, f, target, multiplicity, r):
    """r = e_target - softmax(Y^T f), per output; returns the cross-entropy of this class."""
    r[:] = 0.0
    for i in range(key.size):
        for j in range(r.size):
            r[j] += f[i] * y[key[i], j]
    top = r.max()
    own = r[target]
    total = 0.0
    for j in range(r.size):
        r[j] = np.exp(r[j] - top)
        total += multiplicity[j] * r[j]
    for j in range(r.size):
        r[j] = -r[j] / total
    r[target] += 1.0
    return np.log(total) + top - own


@njit(cache=True)
def _attend(y, key, f, r, multiplicity, weight, out):
    """out += weight diag(f)(I - f f^T) g with g = Y (e_target - alpha), summed over all outputs."""
    g = np.empty(key.size)
    mean = 0.0
    for i in range(key.size):
        total = 0.0
        for j in range(r.size):
            total += y[key[i], j] * (multiplicity[j] * r[j])
        g[i] = total
        mean += f[i] * total
    for i in range(key.size):
        out[key[i]] += weight * f[i] * (g[i] - f[i] * mean)


@njit(cache=True)
def gradient(theta, out, shape, start, key, logp, prior, query, target, multiplicity, scale_y, scale_z):
    """Loss and gradient: -dL/dY = sum_n p_n f_n (e_n - alpha_n)^T, -dL/dz_m = sum_n p_n diag(f_n)(I - f_n f_n^T) g_n."""
    keys, outputs, queries = shape
    split = keys * outputs
    y, z = theta[:split].reshape(keys, outputs), theta[split:].reshape(queries, keys)
    dy, dz = out[:split].reshape(keys, outputs), out[split:].reshape(queries, keys)
    out[:] = 0.0
    r = np.empty(outputs)
    buffer = np.empty(keys)
    loss = 0.0
    for n in range(prior.size):
        support = key[start[n] : start[n + 1]]
        f = buffer[: support.size]
        _features(z[query[n]], support, logp[start[n] : start[n + 1]], f)
        loss += prior[n] * _residual(y, support, f, target[n], multiplicity, r)
        for i in range(support.size):
            step = -scale_y * prior[n] * f[i]
            for j in range(outputs):
                dy[support[i], j] += step * r[j]
        _attend(y, support, f, r, multiplicity, -scale_z * prior[n], dz[query[n]])
    return loss


@njit(cache=True)
def pinv(theta, out, shape, start, key, logp, prior, query, target, multiplicity, scale_y, scale_z):
    """The modified decoder: f_n in the step of Y replaced by column n of F (F^T F)^-1 [SnS:lemma-3]."""
    keys, outputs, queries = shape
    split = keys * outputs
    y, z = theta[:split].reshape(keys, outputs), theta[split:].reshape(queries, keys)
    dy, dz = out[:split].reshape(keys, outputs), out[split:].reshape(queries, keys)
    out[:] = 0.0
    classes = prior.size
    r = np.empty((classes, outputs))
    dense = np.zeros((classes, keys))
    buffer = np.empty(keys)
    loss = 0.0
    for n in range(classes):
        support = key[start[n] : start[n + 1]]
        f = buffer[: support.size]
        _features(z[query[n]], support, logp[start[n] : start[n + 1]], f)
        for i in range(support.size):
            dense[n, support[i]] = f[i]
        loss += prior[n] * _residual(y, support, f, target[n], multiplicity, r[n])
        _attend(y, support, f, r[n], multiplicity, -scale_z * prior[n], dz[query[n]])
    for n in range(classes):
        for j in range(outputs):  # not r[n] *= : Numba takes seconds to compile an assignment to a slice
            r[n, j] *= -scale_y * prior[n]
    dy += dense.T @ np.linalg.solve(dense @ dense.T, r)
    return loss
