"""Numba kernels of scan and snap: the population law, what classes read from the decoder, and windows of a text.

The population law has the hand-derived gradient of Lemma 1 [SnS:lemma-1]. Contexts are stored by class (start, key, logp): only
the support of a class is ever touched. Both laws read a flat (Y, Z) and what `hold` gives, write the scales times the
per-coordinate gradient of the loss, and return the loss.
"""

import numpy as np

from stagescope.flow.kernels import njit

SCALES = slice(5, 7)


def hold(shape, start, key, logp, prior, query, target, multiplicity):
    """All that the laws read except the parameters, and work space.

    In order: keys, outputs, queries, classes, length of all supports; scales of Y and Z, 1 here; integers by their bits: starts,
    keys, queries, targets; logp, prior, multiplicity; work space for r (outputs), f and g (keys).
    """
    keys, outputs = shape[:2]
    integers = np.concatenate([start, key, query, target]).astype(np.int64).view(np.float64)
    room = np.zeros(outputs + 2 * keys)
    return np.concatenate([shape, [prior.size, key.size], np.ones(2), integers, logp, prior, multiplicity, room])


@njit(cache=True)
def _parts(held):
    """The arrays in `held`."""
    keys, outputs, classes, length = int(held[0]), int(held[1]), int(held[3]), int(held[4])
    low = 7
    start = held[low : low + classes + 1].view(np.int64)
    low += classes + 1
    key = held[low : low + length].view(np.int64)
    low += length
    query, target = held[low : low + classes].view(np.int64), held[low + classes : low + 2 * classes].view(np.int64)
    low += 2 * classes
    logp, prior = held[low : low + length], held[low + length : low + length + classes]
    low += length + classes
    multiplicity, r = held[low : low + outputs], held[low + outputs : low + 2 * outputs]
    low += 2 * outputs
    return start, key, query, target, logp, prior, multiplicity, r, held[low : low + keys], held[low + keys : low + 2 * keys]


@njit(cache=True)
def _blocks(theta, held):
    """Y (keys, outputs) and Z (queries, keys) in a flat vector."""
    keys, outputs, queries = int(held[0]), int(held[1]), int(held[2])
    split = keys * outputs
    return theta[:split].reshape(keys, outputs), theta[split:].reshape(queries, keys)


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
    for j in range(r.size):
        r[j] = 0.0
    for i in range(key.size):
        for j in range(r.size):
            r[j] += f[i] * y[key[i], j]
    top = -np.inf
    for j in range(r.size):
        top = max(top, r[j])
    target_logit = r[target]
    total = 0.0
    for j in range(r.size):
        r[j] = np.exp(r[j] - top)
        total += multiplicity[j] * r[j]
    for j in range(r.size):
        r[j] = -r[j] / total
    r[target] += 1.0
    return np.log(total) + top - target_logit


@njit(cache=True)
def _attend(y, key, f, r, multiplicity, weight, g, out):
    """out += weight diag(f)(I - f f^T) g with g = Y (e_target - alpha), summed over all outputs."""
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
def _learn(dy, key, f, r, weight):
    """dy += weight f r^T."""
    for i in range(key.size):
        step = weight * f[i]
        for j in range(r.size):
            dy[key[i], j] += step * r[j]


@njit(cache=True)
def gradient(theta, out, held):
    """Loss and gradient: -dL/dY = sum_n p_n f_n (e_n - alpha_n)^T, -dL/dz_m = sum_n p_n diag(f_n)(I - f_n f_n^T) g_n."""
    (y, z), (dy, dz) = _blocks(theta, held), _blocks(out, held)
    start, key, query, target, logp, prior, multiplicity, r, buffer, g = _parts(held)
    scale_y, scale_z = held[5], held[6]
    for i in range(out.size):  # not out[:] = : Numba takes seconds to compile an assignment to a slice
        out[i] = 0.0
    loss = 0.0
    for n in range(prior.size):
        support = key[start[n] : start[n + 1]]
        f = buffer[: support.size]
        _features(z[query[n]], support, logp[start[n] : start[n + 1]], f)
        loss += prior[n] * _residual(y, support, f, target[n], multiplicity, r)
        _learn(dy, support, f, r, -scale_y * prior[n])
        _attend(y, support, f, r, multiplicity, -scale_z * prior[n], g, dz[query[n]])
    return loss


@njit(cache=True)
def pinv(theta, out, held):
    """The modified decoder: f_n in the step of Y replaced by column n of F (F^T F)^-1 [SnS:lemma-3]."""
    (y, z), (dy, dz) = _blocks(theta, held), _blocks(out, held)
    start, key, query, target, logp, prior, multiplicity, _, buffer, g = _parts(held)
    scale_y, scale_z = held[5], held[6]
    for i in range(out.size):
        out[i] = 0.0
    classes, outputs = prior.size, dy.shape[1]
    r = np.empty((classes, outputs))
    dense = np.zeros((classes, dy.shape[0]))
    loss = 0.0
    for n in range(classes):
        support = key[start[n] : start[n + 1]]
        f = buffer[: support.size]
        _features(z[query[n]], support, logp[start[n] : start[n + 1]], f)
        for i in range(support.size):
            dense[n, support[i]] = f[i]
        loss += prior[n] * _residual(y, support, f, target[n], multiplicity, r[n])
        _attend(y, support, f, r[n], multiplicity, -scale_z * prior[n], g, dz[query[n]])
    for n in range(classes):
        for j in range(outputs):
            r[n, j] *= -scale_y * prior[n]
    try:
        dy += dense.T @ np.linalg.solve(dense @ dense.T, r)
    except Exception:  # F^T F is singular or not finite: reported as a velocity that is not finite
        dy[0, 0] = np.nan
    return loss


@njit(cache=True)
def read_decoder(y, start, key, f, target, rival, multiplicity, directions, pulls):
    """directions: y_l of the class's own output minus its mean over the rivals; pulls: g = Y (e - alpha), on the tokens.

    Returns, mean over classes, the probability that a class gives wrongly, and the share of it on targets of other classes:
    `rival` is 1 for the outputs that count, and 2 if they are targets.
    """
    odds, shares, errors = np.empty(y.shape[1]), 0.0, 0.0
    for n in range(target.size):
        odds[:] = 0.0
        for e in range(start[n], start[n + 1]):
            for j in range(odds.size):
                odds[j] += f[e] * y[key[e], j]
        top, total = odds.max(), 0.0
        for j in range(odds.size):
            odds[j] = np.exp(odds[j] - top) * multiplicity[j]
            total += odds[j]
        wrong, on_targets, rivals = 0.0, 0.0, 0
        for j in range(odds.size):
            odds[j] /= total
            if j != target[n]:
                wrong += odds[j]
                rivals += rival[j] > 0
                on_targets += odds[j] if rival[j] == 2 else 0.0
        errors += wrong
        shares += on_targets / max(wrong, 2.2250738585072014e-308)  # the least normal number: it can underflow
        odds[target[n]] -= 1.0
        for e in range(start[n], start[n + 1]):
            pull, rival_sum = 0.0, 0.0
            for j in range(odds.size):
                pull -= odds[j] * y[key[e], j]
                if rival[j] > 0 and j != target[n]:
                    rival_sum += y[key[e], j]
            pulls[e] = pull
            directions[e] = y[key[e], target[n]] - rival_sum / rivals if rivals else np.nan
    return errors / target.size, shares / target.size


@njit(cache=True)
def window_gradient(y, z, rows, start, key, count, target, multiplicity, dy, dz):
    """Mean loss over the windows `rows`; fills dy and dz with its gradient, per coordinate of the unreduced model."""
    dy[:] = 0.0
    dz[:] = 0.0
    widest = (start[1:] - start[:-1]).max()
    r, buffer, g = np.empty(y.shape[1]), np.empty(widest), np.empty(widest)
    loss, share = 0.0, 1.0 / rows.size
    for i in rows:
        first, support = start[i], key[start[i] : start[i + 1]]
        f, top, norm = buffer[: support.size], -np.inf, 0.0
        for a in range(f.size):
            top = max(top, z[support[a]])
        for a in range(f.size):
            f[a] = count[first + a] * np.exp(z[support[a]] - top)
            norm += f[a] * f[a]
        norm = 1.0 / np.sqrt(norm)
        for a in range(f.size):
            f[a] *= norm
        loss += share * _residual(y, support, f, target[i], multiplicity, r)
        _learn(dy, support, f, r, -share)  # a target stands for one output, so this is per coordinate in every column
        _attend(y, support, f, r, multiplicity, -share, g, dz)
    return loss
