"""Numba loops of what follows the heads of a layer: dropout, MLP, and after the last layer the output and its loss; and back.

Rows pass a stretch at a time, forward and back, so that what is made of them stays in the nearest caches.
"""

from typing import NamedTuple

import numpy as np

from stagescope.fields.exp_kernel import exp_any
from stagescope.kernels import njit
from stagescope.papers.incremental.students.transformer import products_kernel as products
from stagescope.papers.incremental.students.transformer import stream_kernel as loops
from stagescope.papers.incremental.students.transformer.draws_kernel import draw_numbers

_OPTIONS = {"cache": True, "error_model": "numpy"}
STRETCH = 60
"""Rows that pass together: 60 x 256 numbers in single precision take 60 KiB."""
SUMMED = 16 * STRETCH
"""Rows whose gradients are summed in the precision of the pass, before they are added in double precision."""


class Reading(NamedTuple):
    """A matrix that reads the stream, and back, in stripes.

    `share` is 1/width, or 0 without a norm; `rectify`: what is read goes through ReLU; `alone`: the stream ends here.
    """

    matrix: np.ndarray
    back: np.ndarray
    offset: np.ndarray
    share: np.floating
    rectify: bool
    alone: bool
    d_matrix: np.ndarray
    d_offset: np.ndarray


class Layer(NamedTuple):
    """What follows the heads: how parts are added to the stream, and the MLP, whose `bias` is empty where there is none."""

    keys: np.ndarray
    threshold: np.uint16
    scale: np.floating
    residual: bool
    zeros: np.ndarray
    inside: np.ndarray
    width: int
    units: Reading
    out: np.ndarray
    back: np.ndarray
    bias: np.ndarray
    d_out: np.ndarray
    d_bias: np.ndarray


class Kept(NamedTuple):
    """Of rows that passed: the stream between heads and MLP, its 1/deviation, units, and random numbers of both parts."""

    x: np.ndarray
    size: np.ndarray
    units: np.ndarray
    numbers: np.ndarray
    mlp_numbers: np.ndarray


@njit(**_OPTIONS)
def kept_room(rows, layer):
    wide, kind = layer.inside.size, layer.inside.dtype
    numbers, mlp_numbers = np.zeros((rows, wide), np.uint16), np.zeros((rows, wide), np.uint16)
    units = np.empty((rows, layer.units.offset.size), kind)
    return Kept(np.empty((rows, wide), kind), np.empty(rows, kind), units, numbers, mlp_numbers)


@njit(**_OPTIONS, inline="always")
def _stretch(kept, first, last):
    """Views of some rows."""
    rows = slice(first, last)
    return Kept(kept.x[rows], kept.size[rows], kept.units[rows], kept.numbers[rows], kept.mlp_numbers[rows])


@njit(**_OPTIONS, inline="always")
def _read(x, size, reading, out):
    products.multiply(x, reading.matrix, out)
    loops.scale_rows(out, size, reading.offset, reading.rectify)


@njit(**_OPTIONS, inline="always")
def _forward(x, source, part, first, layer, kept, active, own, out, size):
    """From the heads' part to the stream after the MLP. The first row has this number; `part` is used as room."""
    width, residual, threshold, scale = layer.width, layer.residual, layer.threshold, layer.scale
    between, between_size = (kept.x, kept.size) if layer.bias.size else (out, size)
    for k in range(2 if layer.bias.size else 1):
        old, rows, bias, numbers = (kept.x, own, layer.bias, kept.mlp_numbers) if k else (x, source, layer.zeros, kept.numbers)
        new, deviation = (out, size) if k else (between, between_size)
        if k:
            _read(kept.x, kept.size, layer.units, kept.units)
            products.find_active(kept.units, active)
            products.multiply_active(kept.units, active, layer.out, part)
        if threshold:
            draw_numbers(layer.keys[k], first, width, numbers)
        loops.add_part(old, rows, part, bias, numbers, threshold, scale, residual, layer.inside, width, new, deviation)


@njit(**_OPTIONS, inline="always")
def _backward(g, more, pull, after, alone, source, layer, kept, active, d_out, d_units, part, d_x):
    """From the gradient after the MLP, more - pull after, plus g unless `alone`, to those in the heads' part and in the stream.

    The first is put into `part`, which may be `more`, the second is added to d_x.
    """
    threshold, scale, reading = layer.threshold, layer.scale, layer.units
    if layer.bias.size:
        loops.take_part(g, more, pull, after, alone, kept.mlp_numbers, threshold, scale, part, layer.d_bias)
        d = np.empty_like(kept.units)
        products.add_outer_active(kept.units, active, part, d_out)
        products.multiply(part, layer.back, d)
        loops.unscale_rows(d, kept.units, kept.size, reading.offset, reading.share, reading.rectify, reading.d_offset, pull)
        products.add_outer_active(d, active, kept.x, d_units)
        products.multiply_active(d, active, reading.back, part)
        more, after, alone = part, kept.x, reading.alone
    loops.take_part(g, more, pull, after, alone, kept.numbers, threshold, scale, part, layer.d_bias[:0])
    if layer.residual:
        loops.add_rows(d_x, source, g)


@njit(**_OPTIONS, inline="always")
def _add_sums(totals, sums):
    """Totals += sums, which begin again."""
    for j in range(sums.size):
        totals[j] += sums[j]
        sums[j] = 0


@njit(**_OPTIONS)
def pass_layer(x, source, part, first, layer, kept, out, size):
    """The stream after a layer whose heads make this part of it."""
    active, own = products.active_room(STRETCH, layer.units.offset.size), np.arange(STRETCH)
    for start in range(0, len(source), STRETCH):
        stop = min(start + STRETCH, len(source))
        rows, mine = slice(start, stop), _stretch(kept, start, stop)
        _forward(x, source[rows], part[rows], first + start, layer, mine, active, own[: stop - start], out[rows], size[rows])


@njit(**_OPTIONS)
def pass_back(g, source, layer, kept, part, d_x):
    """Back through `pass_layer`: the gradient in the heads' part, put into `part`, and in the stream before them, added to d_x.

    g is the gradient after the layer.
    """
    alone = len(g) > 0  # a variable: a constant would be compiled for itself
    active, near = products.active_room(STRETCH, layer.units.offset.size), np.empty((STRETCH, part.shape[1]), part.dtype)
    d_out, d_units = np.zeros(layer.d_out.size, g.dtype), np.zeros(layer.units.d_matrix.size, g.dtype)
    for start in range(0, len(g), STRETCH):
        stop = min(start + STRETCH, len(g))
        rows, mine, pull = slice(start, stop), _stretch(kept, start, stop), np.zeros(STRETCH, g.dtype)
        given, found = g[rows], near[: stop - start]
        products.find_active(mine.units, active)
        _backward(found, given, pull, given, alone, source[rows], layer, mine, active, d_out, d_units, part[rows], d_x)
        if stop % SUMMED == 0 or stop == len(g):
            _add_sums(layer.d_out, d_out)
            _add_sums(layer.units.d_matrix, d_units)


@njit(**_OPTIONS)
def pass_last(x, source, part, first, layer, output, labels, low, gradient, d_x):
    """The sum of the losses of rows after the last layer; with `gradient` also `part` and d_x as in `pass_back`.

    `labels` are the tokens drawn, and their laws, which are empty where the tokens are the labels.
    """
    (drawn, law), wide, vocab, kind, loss = labels, part.shape[1], output.offset.size, part.dtype, 0.0
    active, own = products.active_room(STRETCH, layer.units.offset.size), np.arange(STRETCH)
    all_kept, all_g, streams = kept_room(STRETCH, layer), np.empty((STRETCH, wide), kind), np.empty((STRETCH, wide), kind)
    logits, errors = np.empty((STRETCH, vocab), kind), np.empty((STRETCH, vocab), kind)
    sizes, pull = np.empty(STRETCH, kind), np.empty(STRETCH, kind)
    d_out, d_units = np.zeros(layer.d_out.size, kind), np.zeros(layer.units.d_matrix.size, kind)
    d_matrix = np.zeros(output.d_matrix.size, kind)
    for start in range(0, len(source), STRETCH):
        count = min(STRETCH, len(source) - start)
        rows, kept, after, size = slice(start, start + count), _stretch(all_kept, 0, count), streams[:count], sizes[:count]
        z, p, g, mine, asks = logits[:count], errors[:count], all_g[:count], part[rows], source[rows]
        _forward(x, asks, mine, first + start, layer, kept, active, own[:count], after, size)
        _read(after, size, output, z)
        loops.shift_logits(z, low, p, pull)
        exp_any(p.reshape(-1))
        loss += loops.residuals(z, pull, p, drawn[rows], law[start * vocab :] if law.size else law)
        if gradient:
            loops.unscale_rows(p, z, size, output.offset, output.share, output.rectify, output.d_offset, pull)
            products.add_outer(p, after, d_matrix)
            products.multiply(p, output.back, mine)
            _backward(g, mine, pull, after, output.alone, asks, layer, kept, active, d_out, d_units, mine, d_x)
            if rows.stop % SUMMED == 0 or rows.stop == len(source):
                _add_sums(layer.d_out, d_out)
                _add_sums(layer.units.d_matrix, d_units)
                _add_sums(output.d_matrix, d_matrix)
    return loss
