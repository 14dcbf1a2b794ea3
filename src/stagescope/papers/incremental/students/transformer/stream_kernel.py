"""Numba loops of the transformer's pass: rows of the stream, and labels.

All arrays are of one precision, single or double, except sums over many rows. Rows of the stream, and what is added to all of
them, are padded with zeros to whole `LANES`.
"""

import numpy as np

from stagescope.fields.lanes_kernel import LANES, load, multiply_add, plus, reaching, spread, store, total
from stagescope.kernels import njit

_OPTIONS = {"cache": True, "fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy"}


@njit(**_OPTIONS)
def add_part(x, rows, part, bias, numbers, threshold, scale, residual, inside, width, out, size):
    """out[i] <- x[rows[i]] + what dropout keeps of part[i] + bias, minus its mean; size[i] is its 1/deviation.

    An entry is kept, and multiplied by `scale`, where its number reaches the threshold. `inside` is 1 in the width and 0 beyond;
    nothing is subtracted where it is 0 everywhere.
    """
    wide, centred, none = out.shape[1], inside[0] > 0, spread(out.dtype.type(0))
    for i in range(out.shape[0]):
        here, there, sums, squares = i * wide, rows[i] * wide, none, none
        for j in range(0, wide, LANES):
            old = load(x, there + j) if residual else none
            new = plus(load(part, here + j), load(bias, j))
            new = multiply_add(new, reaching(numbers, here + j, threshold, scale), old)
            store(out, here + j, new)
            sums = plus(sums, new)
        size[i] = 1
        if centred:
            mean = spread(-total(sums) / out.dtype.type(width))
            for j in range(0, wide, LANES):
                new = multiply_add(mean, load(inside, j), load(out, here + j))
                store(out, here + j, new)
                squares = multiply_add(new, new, squares)
            deviation = np.sqrt(total(squares) / out.dtype.type(width) + out.dtype.type(1e-5))  # as in PyTorch's LayerNorm
            size[i] = out.dtype.type(1) / deviation


@njit(**_OPTIONS)
def take_part(g, more, pull, x, alone, numbers, threshold, scale, part, d_bias):
    """g[i] <- g[i] + more[i] - pull[i] x[i], without the first where it is alone; part[i] <- what dropout kept of it.

    The sum of the parts over rows is added to d_bias, which may be empty.
    """
    wide, none, biased = part.shape[1], spread(part.dtype.type(0)), d_bias.size > 0
    sums = np.zeros(wide, part.dtype)
    for i in range(part.shape[0]):
        factor = spread(-pull[i])
        for j in range(0, wide, LANES):
            here = i * wide + j
            new = multiply_add(factor, load(x, here), load(more, here))
            new = new if alone else plus(load(g, here), new)
            store(g, here, new)
            kept = multiply_add(new, reaching(numbers, here, threshold, scale), none)
            store(part, here, kept)
            if biased:
                store(sums, j, plus(load(sums, j), kept))
    for j in range(d_bias.size):
        d_bias[j] += sums[j]


@njit(**_OPTIONS)
def scale_rows(z, size, offset, rectify):
    """z[i] <- size[i] z[i] + offset, and nothing below zero where it is rectified; what is not a number stays so."""
    for i in range(z.shape[0]):
        line, factor = z[i], size[i]
        for j in range(offset.size):
            line[j] = line[j] * factor + offset[j]
        if rectify:
            for j in range(offset.size):
                line[j] = 0 if line[j] < 0 else line[j]


@njit(**_OPTIONS)
def unscale_rows(g, z, size, offset, share, rectified, d_offset, pull):
    """Back through `scale_rows`: g[i] <- size[i] g[i]; pull[i] is how far a row of the stream is pulled along itself.

    `share` is 1/width, or 0 without a norm.
    """
    total, nothing = np.zeros(offset.size, g.dtype), g.dtype.type(0)
    for i in range(g.shape[0]):
        line, seen, factor, along = g[i], z[i], size[i], nothing
        if rectified:
            for j in range(offset.size):
                line[j] = line[j] if seen[j] > 0 else nothing
        for j in range(offset.size):
            total[j] += line[j]
        for j in range(offset.size):
            along += line[j] * (seen[j] - offset[j])
        for j in range(offset.size):
            line[j] *= factor
        pull[i] = factor * factor * along * share if share > 0 else nothing
    for j in range(offset.size):
        d_offset[j] += total[j]


@njit(**_OPTIONS)
def pull_rows(g, more, pull, x, fresh):
    """g[i] <- g[i] + more[i] - pull[i] x[i], without the first where it is fresh."""
    for i in range(g.shape[0]):
        line, new, old, factor = g[i], more[i], x[i], pull[i]
        if fresh:
            for j in range(line.size):
                line[j] = new[j] - factor * old[j]
        else:
            for j in range(line.size):
                line[j] += new[j] - factor * old[j]


@njit(**_OPTIONS)
def add_rows(out, rows, g):
    """out[rows[i]] += g[i]."""
    wide = g.shape[1]
    for i in range(rows.size):
        for j in range(0, wide, LANES):
            store(out, rows[i] * wide + j, plus(load(out, rows[i] * wide + j), load(g, i * wide + j)))


@njit(**_OPTIONS)
def shift_logits(z, low, shifted, tops):
    """Each row minus its largest logit, no lower than `low`."""
    for i in range(z.shape[0]):
        top = z[i].max()
        tops[i] = top
        for j in range(z.shape[1]):
            shifted[i, j] = max(z[i, j] - top, low)


@njit(**_OPTIONS)
def residuals(z, tops, p, drawn, law):
    """p <- p/sum - label, where p are exponentials of shifted logits; returns the sum of the cross-entropies."""
    loss = 0.0
    for i in range(z.shape[0]):
        total = p.dtype.type(0)
        for j in range(z.shape[1]):
            total += p[i, j]
        loss += np.log(np.float64(total)) + tops[i]
        share = 1 / total
        for j in range(z.shape[1]):
            p[i, j] *= share
        if law.size:
            mine = law[i * z.shape[1] : (i + 1) * z.shape[1]]
            for j in range(z.shape[1]):
                loss -= mine[j] * z[i, j]
                p[i, j] -= p.dtype.type(mine[j])
        else:
            loss -= z[i, drawn[i]]
            p[i, drawn[i]] -= 1
    return loss
