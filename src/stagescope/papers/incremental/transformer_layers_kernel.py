"""Numba products of the transformer's pass, and what follows the heads of a layer."""

from typing import NamedTuple

import numpy as np
from numba import uintp

from stagescope.flow.exp_kernel import exp_any
from stagescope.flow.kernels import njit
from stagescope.flow.lanes_kernel import LANES, add_product, load, multiply_add, prefetch, spread, spread_from, store, total
from stagescope.papers.incremental.transformer_rows_kernel import (
    Carry,
    add_part,
    add_rows,
    back_attention,
    back_carry,
    draw_numbers,
    residuals,
    scale_rows,
    shift_logits,
    take_part,
    unscale_rows,
)

_OPTIONS = {"cache": True, "error_model": "numpy"}
STRIPE = 4 * LANES
"""Columns whose sums are in registers while the active units of a row pass."""
_NONE, _ONE, _FEW, _LANES, _STRIPE = uintp(0), uintp(1), uintp(4), uintp(LANES), uintp(STRIPE)
_TWO_LANES, _THREE_LANES = uintp(2 * LANES), uintp(3 * LANES)


class Active(NamedTuple):
    """Active units, row by row, and the rows of each unit.

    Those of row i are units[starts[i] : starts[i + 1]]; rows of unit k begin at rows[k x room], with room for all, and end at
    stops[k].
    """

    units: np.ndarray
    starts: np.ndarray
    rows: np.ndarray
    stops: np.ndarray


@njit(**_OPTIONS)
def active_room(rows, units):
    """Room for the active ones of some rows."""
    size = rows * units
    return Active(
        np.empty(size + 1, np.uint32), np.empty(rows + 1, np.int64), np.empty(size, np.uint32), np.empty(units, np.int64)
    )


@njit(**_OPTIONS)
def find_active(z, active):
    """Which units of each row are above zero, or no numbers."""
    count, units, active_units = z.shape[0], z.shape[1], 0
    room = active.rows.size // max(1, units)
    for k in range(units):
        active.stops[k] = k * room
    for i in range(count):
        active.starts[i] = active_units
        for k in range(units):
            active.units[active_units] = k
            active_units += not z[i, k] <= 0
        for n in range(active.starts[i], active_units):
            k = active.units[n]
            active.rows[active.stops[k]] = i
            active.stops[k] += 1
    active.starts[count] = active_units


@njit(**_OPTIONS)
def multiply(a, stripes, out):
    """out <- a b, where b is in stripes of `LANES` columns, the last of them filled up with zeros."""
    count, inner, columns, flat = uintp(a.shape[0]), uintp(a.shape[1]), uintp(out.shape[1]), out.reshape(-1)
    sizes, left_factor, full = (count, _LANES, _ONE, inner), (a, _NONE, inner, _NONE, _ONE), columns // _LANES * _LANES
    for column in range(_NONE, full, _LANES):
        add_product(sizes, left_factor, (stripes, column * inner, _LANES), (flat, column, columns), True)
    if full < columns <= full + _FEW and inner % _LANES == _NONE:
        _multiply_few(a, stripes, full, out)
    elif full < columns:
        tail = np.empty(count * _LANES, out.dtype)
        add_product(sizes, left_factor, (stripes, full * inner, _LANES), (tail, _NONE, _LANES), True)
        for i in range(count):
            for column in range(full, columns):
                out[i, column] = tail[i * _LANES + column - full]


@njit(**_OPTIONS)
def _multiply_few(a, stripes, full, out):
    """The columns after whole stripes, by products of rows: a stripe of zeros would cost as much as a full one."""
    inner, column = uintp(a.shape[1]), np.empty(a.shape[1], a.dtype)
    for c in range(full, uintp(out.shape[1])):
        for k in range(inner):
            column[k] = stripes[full * inner + k * _LANES + c - full]
        for i in range(uintp(a.shape[0])):
            sums = spread(out.dtype.type(0))
            for k in range(_NONE, inner, _LANES):
                sums = multiply_add(load(a, i * inner + k), load(column, k), sums)
            out[i, c] = total(sums)


@njit(**_OPTIONS)
def add_outer(a, b, sums):
    """sums += a^T b, in stripes of `LANES` columns; rows of b are whole lanes."""
    count, rows, columns = uintp(a.shape[0]), uintp(a.shape[1]), uintp(b.shape[1])
    near = np.empty(count * _LANES, b.dtype)
    for column in range(_NONE, columns, _LANES):
        for i in range(count):
            store(near, i * _LANES, load(b, i * columns + column))
        sizes, left_factor = (rows, _LANES, _ONE, count), (a, _NONE, _ONE, _NONE, rows)
        add_product(sizes, left_factor, (near, _NONE, _LANES), (sums, column * rows, _LANES), False)


@njit(**_OPTIONS)
def _add_lanes(a, place, step, listed, first, last, b, b_place, out, target, fresh):
    """`LANES` numbers of out, from the target on, += sum over listed n of a[place + n step] b[b_place + n], or = where fresh."""
    x = spread(out.dtype.type(0)) if fresh else load(out, target)
    for n in range(first, last):
        number = uintp(listed[n])
        x = multiply_add(spread_from(a, place + number * step), load(b, b_place + number * _LANES), x)
    store(out, target, x)


@njit(**_OPTIONS)
def _add_stripe(a, place, step, listed, first, last, b, b_place, out, target, fresh):
    """The same for STRIPE numbers at once."""
    second, third, fourth = target + _LANES, target + _TWO_LANES, target + _THREE_LANES
    if fresh:
        x = y = u = v = spread(out.dtype.type(0))
    else:
        x, y, u, v = load(out, target), load(out, second), load(out, third), load(out, fourth)
    for n in range(first, last):
        number = uintp(listed[n])
        factor, start = spread_from(a, place + number * step), b_place + number * _STRIPE
        x = multiply_add(factor, load(b, start), x)
        y = multiply_add(factor, load(b, start + _LANES), y)
        u = multiply_add(factor, load(b, start + _TWO_LANES), u)
        v = multiply_add(factor, load(b, start + _THREE_LANES), v)
    store(out, target, x)
    store(out, second, y)
    store(out, third, u)
    store(out, fourth, v)


@njit(**_OPTIONS)
def multiply_active(z, active, stripes, out):
    """out <- z b with active units only, where b is in stripes of STRIPE columns, and of `LANES` columns at its end."""
    count, units, columns = uintp(z.shape[0]), uintp(z.shape[1]), uintp(out.shape[1])
    full, listed = columns // _STRIPE * _STRIPE, active.units
    for i in range(count):
        first, last = uintp(active.starts[i]), uintp(active.starts[i + _ONE])
        for column in range(full, columns, _LANES):
            _add_lanes(z, i * units, _ONE, listed, first, last, stripes, column * units, out, i * columns + column, True)
    for column in range(_NONE, full, _STRIPE):
        for i in range(count):
            first, last = uintp(active.starts[i]), uintp(active.starts[i + _ONE])
            _add_stripe(z, i * units, _ONE, listed, first, last, stripes, column * units, out, i * columns + column, True)


@njit(**_OPTIONS)
def add_outer_active(z, active, b, sums):
    """sums += z^T b with active units only, in such stripes."""
    count, units, columns = uintp(z.shape[0]), uintp(z.shape[1]), uintp(b.shape[1])
    room, near = uintp(active.rows.size) // units, np.empty(count * _STRIPE, b.dtype)
    full, column = columns // _STRIPE * _STRIPE, _NONE
    while column < columns:
        size = _STRIPE if column < full else _LANES
        for i in range(count):
            for lane in range(_NONE, size, _LANES):
                store(near, i * size + lane, load(b, i * columns + column + lane))
        for k in range(units):
            first, last, target = k * room, uintp(active.stops[k]), column * units + k * size
            if size == _STRIPE:
                _add_stripe(z, k, units, active.rows, first, last, near, _NONE, sums, target, False)
            else:
                _add_lanes(z, k, units, active.rows, first, last, near, _NONE, sums, target, False)
        column += size


GROUP = 5
"""Rows of a tile: two registers of each are ten sums, and a processor needs eight under way."""


@njit(**_OPTIONS)
def _group(first, last, step, place):
    """Places of rows first, first + 1, .., none beyond the last."""
    return (
        place + first * step,
        place + min(first + 1, last) * step,
        place + min(first + 2, last) * step,
        place + min(first + 3, last) * step,
        place + min(first + 4, last) * step,
    )


@njit(**_OPTIONS)
def _add_tile(counts, a, lines, a_outer, a_inner, b, row, b_outer, b_inner, out, targets, column, fresh):
    """out[targets[i] + column] += sum_(o, k) a[lines[i], o, k] b[row, o, k], or = where it is fresh; a row is one of `LANES`."""
    i, j, k, m, n = targets
    if fresh:
        v = w = x = y = z = spread(out.dtype.type(0))
    else:
        v, w, x = load(out, i + column), load(out, j + column), load(out, k + column)
        y, z = load(out, m + column), load(out, n + column)
    for o in range(counts[0]):
        b_place, step = row + o * b_outer, o * a_outer
        p, q, r, s, t = lines[0] + step, lines[1] + step, lines[2] + step, lines[3] + step, lines[4] + step
        for _ in range(counts[1]):
            lanes = load(b, b_place)
            v = multiply_add(spread_from(a, p), lanes, v)
            w = multiply_add(spread_from(a, q), lanes, w)
            x = multiply_add(spread_from(a, r), lanes, x)
            y = multiply_add(spread_from(a, s), lanes, y)
            z = multiply_add(spread_from(a, t), lanes, z)
            b_place, p, q, r, s, t = b_place + b_inner, p + a_inner, q + a_inner, r + a_inner, s + a_inner, t + a_inner
    store(out, i + column, v)
    store(out, j + column, w)
    store(out, k + column, x)
    store(out, m + column, y)
    store(out, n + column, z)


@njit(**_OPTIONS)
def mix_values(weights, values, ids, out):
    """out[c, r] <- sum_h sum_s weights[c, r, h, s] values[h, ids[c, s]]."""
    count, rows, heads, span = weights.shape
    positions, pairs, wide = ids.shape[1], values.shape[1], values.shape[2]
    first, panel = positions - rows, heads * positions * LANES
    near = np.empty(wide * heads * positions, out.dtype)  # by stretches of the width, so that a tile reads neighbours
    for c in range(count):
        for h in range(heads):
            for s in range(positions):
                near_place, value_place = (h * positions + s) * LANES, (h * pairs + ids[c, s]) * wide
                for _ in range(wide // LANES):
                    store(near, near_place, load(values, value_place))
                    near_place, value_place = near_place + panel, value_place + LANES
        for r in range(0, rows, GROUP):
            lines = _group(r, rows - 1, heads * span, c * rows * heads * span)
            targets = _group(r, rows - 1, wide, c * rows * wide)
            counts = (heads, first + min(r + GROUP, rows))
            for column in range(0, wide, LANES):
                near_place = column // LANES * panel
                _add_tile(counts, weights, lines, span, 1, near, near_place, positions * LANES, LANES, out, targets, column, True)


@njit(**_OPTIONS)
def add_value_gradients(weights, g, ids, d_values):
    """d_values[h, ids[c, s]] += sum_r weights[c, r, h, s] g[c, r]."""
    count, rows, heads, span = weights.shape
    positions, pairs, wide = ids.shape[1], d_values.shape[1], d_values.shape[2]
    first, last = positions - rows, positions - 1
    for c in range(count):
        for h in range(heads):
            for s in range(0, positions, GROUP):
                r = max(0, s - first)  # the first row that sees it
                lines = _group(s, last, 1, ((c * rows + r) * heads + h) * span)
                targets = (
                    (h * pairs + ids[c, s]) * wide,
                    (h * pairs + ids[c, min(s + 1, last)]) * wide,
                    (h * pairs + ids[c, min(s + 2, last)]) * wide,
                    (h * pairs + ids[c, min(s + 3, last)]) * wide,
                    (h * pairs + ids[c, min(s + 4, last)]) * wide,
                )
                for column in range(0, wide, LANES):
                    if s + GROUP < positions:
                        for i in range(GROUP):
                            prefetch(d_values, (h * pairs + ids[c, min(s + GROUP + i, last)]) * wide + column)
                    g_place, counts = (c * rows + r) * wide + column, (1, rows - r)
                    _add_tile(counts, weights, lines, 0, heads * span, g, g_place, 0, wide, d_values, targets, column, False)


@njit(**_OPTIONS)
def score_gradients(g, values, ids, weights):
    """Weights <- gradients in the scores, from those in the weights: g[c, r] . values[h, ids[c, s]]."""
    count, rows, heads, span = weights.shape
    d = np.zeros((rows, heads, span), weights.dtype)  # of one sequence; anything for some positions that a row does not see
    positions, pairs, wide = ids.shape[1], values.shape[1], values.shape[2]
    first, last, nothing = positions - rows, positions - 1, spread(g.dtype.type(0))
    for c in range(count):
        for h in range(heads):
            for s in range(0, positions, 3):
                i, j = min(s + 1, last), min(s + 2, last)
                for n in range(s + 3, min(s + 6, positions)):
                    for column in range(0, wide, LANES):
                        prefetch(values, (h * pairs + ids[c, n]) * wide + column)
                for r in range(max(0, s - first), rows, 2):
                    one, two, top = (c * rows + r) * wide, (c * rows + min(r + 1, rows - 1)) * wide, h * pairs
                    x, y, z = (top + ids[c, s]) * wide, (top + ids[c, i]) * wide, (top + ids[c, j]) * wide
                    xx = xy = xz = yx = yy = yz = nothing
                    for _ in range(wide // LANES):
                        a, b, p, q, t = load(g, one), load(g, two), load(values, x), load(values, y), load(values, z)
                        xx, xy, xz = multiply_add(a, p, xx), multiply_add(a, q, xy), multiply_add(a, t, xz)
                        yx, yy, yz = multiply_add(b, p, yx), multiply_add(b, q, yy), multiply_add(b, t, yz)
                        one, two, x, y, z = one + LANES, two + LANES, x + LANES, y + LANES, z + LANES
                    first_row, second_row = d[r, h], d[min(r + 1, rows - 1), h]
                    first_row[s], first_row[i], first_row[j] = total(xx), total(xy), total(xz)
                    second_row[s], second_row[i], second_row[j] = total(yx), total(yy), total(yz)
        for r in range(rows):
            for h in range(heads):
                back_attention(weights[c, r, h], d[r, h], first + r + 1, weights[c, r, h])


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
    """What follows the heads: how parts are added to the stream, and the MLP, whose `bias` is empty where there is none.

    `before` and `between` are the norms through which the stream goes on to the heads' part and to that of the MLP.
    """

    before: Carry
    between: Carry
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
    multiply(x, reading.matrix, out)
    scale_rows(out, size, reading.offset, reading.rectify)


@njit(**_OPTIONS, inline="always")
def _forward(x, sizes, source, part, first, layer, kept, active, order, out, size):
    """From the heads' part to the stream after the MLP. The first row has this number; `part` is used as room.

    x and `sizes` are the stream before the layer and its 1/deviation, of which the rows `source` go on.
    """
    width, residual, threshold, scale = layer.width, layer.residual, layer.threshold, layer.scale
    between, between_size = (kept.x, kept.size) if layer.bias.size else (out, size)
    for k in range(2 if layer.bias.size else 1):
        old, rows, bias, numbers = (kept.x, order, layer.bias, kept.mlp_numbers) if k else (x, source, layer.zeros, kept.numbers)
        new, deviation = (out, size) if k else (between, between_size)
        old_size, carry = (kept.size, layer.between) if k else (sizes, layer.before)
        if k:
            _read(kept.x, kept.size, layer.units, kept.units)
            find_active(kept.units, active)
            multiply_active(kept.units, active, layer.out, part)
        if threshold:
            draw_numbers(layer.keys[k], first, width, numbers)
        add_part(old, old_size, rows, carry, part, bias, numbers, threshold, scale, residual, layer.inside, width, new, deviation)


@njit(**_OPTIONS, inline="always")
def _backward(g, added, pull, after, alone, x, sizes, source, layer, kept, active, order, d_out, d_units, part, d_x):
    """From the gradient after the MLP, added - pull after, plus g unless `alone`, to those in the heads' part and the stream.

    The first is put into `part`, which may be `added`, the second is added to d_x.
    """
    threshold, scale, reading = layer.threshold, layer.scale, layer.units
    if layer.bias.size:
        take_part(g, added, pull, after, alone, kept.mlp_numbers, threshold, scale, part, layer.d_bias)
        d = np.empty_like(kept.units)
        add_outer_active(kept.units, active, part, d_out)
        multiply(part, layer.back, d)
        unscale_rows(d, kept.units, kept.size, reading.offset, reading.share, reading.rectify, reading.d_offset, pull)
        add_outer_active(d, active, kept.x, d_units)
        multiply_active(d, active, reading.back, part)
        added, after, alone = part, kept.x, reading.alone
        if layer.between.gain.size:
            back_carry(g, kept.x, kept.size, order, layer.between, layer.inside, layer.width)
    take_part(g, added, pull, after, alone, kept.numbers, threshold, scale, part, layer.d_bias[:0])
    if layer.residual:
        if layer.before.gain.size:
            back_carry(g, x, sizes, source, layer.before, layer.inside, layer.width)
        add_rows(d_x, source, g)


@njit(**_OPTIONS, inline="always")
def _add_sums(totals, sums):
    """Totals += sums, which begin again."""
    for j in range(sums.size):
        totals[j] += sums[j]
        sums[j] = 0


@njit(**_OPTIONS)
def pass_layer(x, sizes, source, part, first, layer, kept, out, size):
    """The stream after a layer whose heads make this part of it."""
    active, order = active_room(STRETCH, layer.units.offset.size), np.arange(STRETCH)
    for start in range(0, len(source), STRETCH):
        stop = min(start + STRETCH, len(source))
        rows, mine, asks = slice(start, stop), _stretch(kept, start, stop), order[: stop - start]
        _forward(x, sizes, source[rows], part[rows], first + start, layer, mine, active, asks, out[rows], size[rows])


@njit(**_OPTIONS)
def pass_back(g, x, sizes, source, layer, kept, part, d_x):
    """Back through `pass_layer`: the gradient in the heads' part, put into `part`, and in the stream before them, added to d_x.

    g is the gradient after the layer.
    """
    alone = len(g) > 0  # a variable: a constant would be compiled for itself
    active, order = active_room(STRETCH, layer.units.offset.size), np.arange(STRETCH)
    near = np.empty((STRETCH, part.shape[1]), part.dtype)
    d_out, d_units = np.zeros(layer.d_out.size, g.dtype), np.zeros(layer.units.d_matrix.size, g.dtype)
    for start in range(0, len(g), STRETCH):
        stop = min(start + STRETCH, len(g))
        rows, mine, pull = slice(start, stop), _stretch(kept, start, stop), np.zeros(STRETCH, g.dtype)
        g_rows, near_rows, asks, parts = g[rows], near[: stop - start], source[rows], part[rows]
        find_active(mine.units, active)
        _backward(near_rows, g_rows, pull, g_rows, alone, x, sizes, asks, layer, mine, active, order, d_out, d_units, parts, d_x)
        if stop % SUMMED == 0 or stop == len(g):
            _add_sums(layer.d_out, d_out)
            _add_sums(layer.units.d_matrix, d_units)


@njit(**_OPTIONS)
def pass_last(x, sizes, source, part, first, layer, output, labels, low, gradient, d_x):
    """The sum of the losses of rows after the last layer; with `gradient` also `part` and d_x as in `pass_back`.

    `labels` are the tokens drawn, and their laws, which are empty where the tokens are the labels.
    """
    (targets, law), wide, vocab, kind, loss = labels, part.shape[1], output.offset.size, part.dtype, 0.0
    active, order = active_room(STRETCH, layer.units.offset.size), np.arange(STRETCH)
    all_kept, all_g, streams = kept_room(STRETCH, layer), np.empty((STRETCH, wide), kind), np.empty((STRETCH, wide), kind)
    logits, errors = np.empty((STRETCH, vocab), kind), np.empty((STRETCH, vocab), kind)
    out_sizes, pull = np.empty(STRETCH, kind), np.empty(STRETCH, kind)
    d_out, d_units = np.zeros(layer.d_out.size, kind), np.zeros(layer.units.d_matrix.size, kind)
    d_matrix = np.zeros(output.d_matrix.size, kind)
    for start in range(0, len(source), STRETCH):
        count = min(STRETCH, len(source) - start)
        rows, saved, after, size = slice(start, start + count), _stretch(all_kept, 0, count), streams[:count], out_sizes[:count]
        z, p, g, mine, asks = logits[:count], errors[:count], all_g[:count], part[rows], source[rows]
        _forward(x, sizes, asks, mine, first + start, layer, saved, active, order[:count], after, size)
        _read(after, size, output, z)
        shift_logits(z, low, p, pull)
        exp_any(p.reshape(-1))
        loss += residuals(z, pull, p, targets[rows], law[start * vocab :] if law.size else law)
        if gradient:
            unscale_rows(p, z, size, output.offset, output.share, output.rectify, output.d_offset, pull)
            add_outer(p, after, d_matrix)
            multiply(p, output.back, mine)
            _backward(g, mine, pull, after, output.alone, x, sizes, asks, layer, saved, active, order, d_out, d_units, mine, d_x)
            if rows.stop % SUMMED == 0 or rows.stop == len(source):
                _add_sums(layer.d_out, d_out)
                _add_sums(layer.units.d_matrix, d_units)
                _add_sums(output.d_matrix, d_matrix)
    return loss
