"""Numba loops of the transformer's pass: random numbers of dropout, rows of the stream, scores and attention."""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types, uintp

from stagescope.flow.exp_kernel import exp_number
from stagescope.flow.kernels import intrinsic, njit
from stagescope.flow.lanes_kernel import (
    LANES,
    first_lanes,
    lanes_pointer,
    larger,
    largest,
    load,
    multiply_add,
    plus,
    prefetch,
    reaching,
    spread,
    spread_value,
    store,
    total,
)

_GOLDEN, _MIX_A, _MIX_B = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)  # SplitMix64
_WEYL, _MIX_C, _MIX_D = np.uint32(0x9E3779B9), 0x21F0AAAD, 0xD35A2D97  # a mixer of 32 bits


@intrinsic
def _store_words(typing: Any, words: Any, place: Any, start: Any, salt: Any) -> Any:
    """Put mixed numbers of 32 bits into a contiguous array, from a place on: those of start, start + _WEYL, .."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.VectorType(ir.IntType(32), LANES)

        def constant(number: int) -> Any:
            return ir.Constant(kind, [number] * LANES)

        def shifted(word: Any, bits: int) -> Any:
            return builder.xor(word, builder.lshr(word, constant(bits)))

        steps = ir.Constant(kind, [lane * int(_WEYL) % 2**32 for lane in range(LANES)])
        word = builder.add(spread_value(builder, values[2]), steps)
        word = builder.mul(shifted(word, 16), constant(_MIX_C))
        word = builder.mul(builder.xor(shifted(word, 15), spread_value(builder, values[3])), constant(_MIX_D))
        builder.store(shifted(word, 15), lanes_pointer(context, builder, words, *values[:2])).align = 4
        return context.get_dummy_value()

    return types.void(words, types.intp, types.uint32, types.uint32), made


@njit(cache=True, error_model="numpy")
def draw_numbers(key, first, width, numbers):
    """Random numbers of 16 bits for rows `first`, first + 1, ..

    A step has 32 bits: the low ones are for an entry of the first half of the width, the high ones for one of the second half.
    """
    half = (width + 1) // 2
    words = np.empty((half + LANES - 1) // LANES * LANES, np.uint32)
    for i in range(numbers.shape[0]):
        z = key + np.uint64(first + i + 1) * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * _MIX_A
        z = (z ^ (z >> np.uint64(27))) * _MIX_B
        z = z ^ (z >> np.uint64(31))
        line = numbers[i]
        for j in range(0, half, LANES):
            _store_words(words, j, np.uint32(z + np.uint64(j) * np.uint64(_WEYL)), np.uint32(z >> np.uint64(32)))
        for j in range(half):
            line[j] = np.uint16(words[j])
        for j in range(width - half):
            line[half + j] = np.uint16(words[j] >> np.uint32(16))


_OPTIONS = {"cache": True, "fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy"}


class Carry(NamedTuple):
    """The norm that the stream goes through before a part is added to it, and sums of its gradients; all empty without one."""

    gain: np.ndarray
    shift: np.ndarray
    d_gain: np.ndarray
    d_shift: np.ndarray


@njit(**_OPTIONS)
def add_part(x, sizes, rows, carry, part, bias, numbers, threshold, scale, residual, inside, width, out, size):
    """out[i] <- y[rows[i]] + what dropout keeps of part[i] + bias, minus its mean; size[i] is its 1/deviation.

    An entry is kept, and multiplied by `scale`, where its number reaches the threshold. `inside` is 1 in the width and 0 beyond;
    nothing is subtracted where it is 0 everywhere. y is x, or norm(x) = gain sizes x + shift where `carry` has a norm.
    """
    wide, centred, none, carried = out.shape[1], inside[0] > 0, spread(out.dtype.type(0)), carry.gain.size > 0
    for i in range(out.shape[0]):
        target, source, sums, squares = i * wide, rows[i] * wide, none, none
        factor = spread(sizes[rows[i]])
        for j in range(0, wide, LANES):
            old = load(x, source + j) if residual else none
            if carried:
                old = multiply_add(multiply_add(old, factor, none), load(carry.gain, j), load(carry.shift, j))
            new = plus(load(part, target + j), load(bias, j))
            new = multiply_add(new, reaching(numbers, target + j, threshold, scale), old)
            store(out, target + j, new)
            sums = plus(sums, new)
        size[i] = 1
        if centred:
            mean = spread(-total(sums) / out.dtype.type(width))
            for j in range(0, wide, LANES):
                new = multiply_add(mean, load(inside, j), load(out, target + j))
                store(out, target + j, new)
                squares = multiply_add(new, new, squares)
            deviation = np.sqrt(total(squares) / out.dtype.type(width) + out.dtype.type(1e-5))  # as in PyTorch's LayerNorm
            size[i] = out.dtype.type(1) / deviation


@njit(**_OPTIONS)
def take_part(g, added, pull, x, alone, numbers, threshold, scale, part, d_bias):
    """g[i] <- g[i] + added[i] - pull[i] x[i], without the first where it is alone; part[i] <- what dropout kept of it.

    The sum of the parts over rows is added to d_bias, which may be empty.
    """
    wide, none, biased = part.shape[1], spread(part.dtype.type(0)), d_bias.size > 0
    sums = np.zeros(wide, part.dtype)
    for i in range(part.shape[0]):
        factor = spread(-pull[i])
        for j in range(0, wide, LANES):
            place = i * wide + j
            new = multiply_add(factor, load(x, place), load(added, place))
            new = new if alone else plus(load(g, place), new)
            store(g, place, new)
            surviving = multiply_add(new, reaching(numbers, place, threshold, scale), none)
            store(part, place, surviving)
            if biased:
                store(sums, j, plus(load(sums, j), surviving))
    for j in range(d_bias.size):
        d_bias[j] += sums[j]


@njit(**_OPTIONS)
def back_carry(g, x, sizes, rows, carry, inside, width):
    """g[i], the gradient in norm(x[rows[i]]), <- that in x[rows[i]].

    With n = sizes x and h = gain g it is sizes (h - mean(h) - n mean(h n)), means over the width.
    """
    wide, none = g.shape[1], spread(g.dtype.type(0))
    d_gain, d_shift = np.zeros(wide, g.dtype), np.zeros(wide, g.dtype)
    for i in range(g.shape[0]):
        g_place, x_place, sums, along = i * wide, rows[i] * wide, none, none
        size = sizes[rows[i]]
        factor = spread(size)
        for j in range(0, wide, LANES):
            n, old = multiply_add(load(x, x_place + j), factor, none), load(g, g_place + j)
            h = multiply_add(old, load(carry.gain, j), none)
            store(d_gain, j, multiply_add(old, n, load(d_gain, j)))
            store(d_shift, j, plus(old, load(d_shift, j)))
            sums, along = plus(sums, h), multiply_add(h, n, along)
        mean, pull = spread(-size * total(sums) / g.dtype.type(width)), spread(-size * size * total(along) / g.dtype.type(width))
        for j in range(0, wide, LANES):
            h = multiply_add(multiply_add(load(g, g_place + j), factor, none), load(carry.gain, j), none)
            store(g, g_place + j, multiply_add(mean, load(inside, j), multiply_add(pull, load(x, x_place + j), h)))
    for j in range(carry.d_gain.size):
        carry.d_gain[j] += d_gain[j]
        carry.d_shift[j] += d_shift[j]


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
        line, activation, factor, along = g[i], z[i], size[i], nothing
        if rectified:
            for j in range(offset.size):
                line[j] = line[j] if activation[j] > 0 else nothing
        for j in range(offset.size):
            total[j] += line[j]
        for j in range(offset.size):
            along += line[j] * (activation[j] - offset[j])
        for j in range(offset.size):
            line[j] *= factor
        pull[i] = factor * factor * along * share if share > 0 else nothing
    for j in range(offset.size):
        d_offset[j] += total[j]


@njit(**_OPTIONS)
def pull_rows(g, added, pull, x, fresh):
    """g[i] <- g[i] + added[i] - pull[i] x[i], without the first where it is fresh."""
    for i in range(g.shape[0]):
        line, new, old, factor = g[i], added[i], x[i], pull[i]
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
def residuals(z, tops, p, targets, law):
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
            loss -= z[i, targets[i]]
            p[i, targets[i]] -= 1
    return loss


@njit(**_OPTIONS)
def _attention(lines, visible, low, room):
    """Scores (head, place) <- attention; none is taken as lower than `low` below the largest.

    One step of all heads comes before the next: a processor does several lines at once, but waits for the sum of one.
    """
    none = spread(lines.dtype.type(0))
    for h in range(lines.shape[0]):
        line = lines[h]
        peak = spread(line[0])
        for s in range(0, line.size, LANES):
            scores = first_lanes(load(line, s), visible - s, spread(line[0]))
            peak = larger(scores, peak)
            store(line, s, scores)
        room[h] = largest(peak)
    for h in range(lines.shape[0]):
        line, top = lines[h], room[h]
        for first in range(uintp(0), uintp(line.size), uintp(LANES)):
            for s in range(uintp(LANES)):
                line[first + s] = exp_number(max(line[first + s] - top, low))
    for h in range(lines.shape[0]):
        line, sums = lines[h], none
        for s in range(0, line.size, LANES):
            powers = first_lanes(load(line, s), visible - s, none)
            store(line, s, powers)
            sums = plus(sums, powers)
        room[h] = lines.dtype.type(1) / total(sums)
    for h in range(lines.shape[0]):
        line, share = lines[h], spread(room[h])
        for s in range(0, line.size, LANES):
            store(line, s, multiply_add(load(line, s), share, none))


@njit(**_OPTIONS)
def back_attention(old, line, visible, out):
    """out <- old (line - mean of line by old): from the gradient in attention to that in scores. It may be one of both."""
    none = spread(line.dtype.type(0))
    sums = none
    for s in range(0, line.size, LANES):
        sums = multiply_add(load(old, s), load(line, s), sums)
    mean = spread(-total(sums))
    for s in range(0, line.size, LANES):
        store(out, s, multiply_add(load(old, s), plus(load(line, s), mean), none))
    for s in range(visible, line.size):
        out[s] = 0  # not what is no number times zero, which the next pass would find here


@njit(**_OPTIONS)
def attend(scores, positions, low):
    """Scores <- attention."""
    first, room = positions - scores.shape[1], np.empty(scores.shape[2], scores.dtype)
    for c in range(scores.shape[0]):
        for r in range(scores.shape[1]):
            _attention(scores[c, r], first + r + 1, low, room)


@njit(**_OPTIONS)
def back_attend(weights, positions, d):
    """d, the gradient in attention, <- that in scores."""
    first = positions - d.shape[1]
    for c in range(d.shape[0]):
        for r in range(d.shape[1]):
            for h in range(d.shape[2]):
                back_attention(weights[c, r, h], d[c, r, h], first + r + 1, d[c, r, h])


@njit(**_OPTIONS)
def _prefetch(table, h, r, ids, c):
    """Ask for the scores of the next sequence."""
    if c + 1 < ids.shape[0]:
        first, pairs = ids.shape[1] - table.shape[1], table.shape[3]
        asks = ids[c + 1, first + r] - (first + r) * table.shape[2]
        place = ((h * table.shape[1] + r) * table.shape[2] + asks) * pairs
        for s in range(first + r + 1):
            prefetch(table, place + ids[c + 1, s])


@njit(**_OPTIONS)
def attend_pairs(table, ids, low, weights):
    """Attention from scores table[h, r, token that asks, ids[c, s]], where `ids` is position x vocab + token.

    Rows come first, so that the part of the table that is looked at stays in the cache.
    """
    first, vocab, room = ids.shape[1] - weights.shape[1], table.shape[2], np.empty(weights.shape[2], weights.dtype)
    for r in range(weights.shape[1]):
        for c in range(weights.shape[0]):
            asks = ids[c, first + r] - (first + r) * vocab
            for h in range(weights.shape[2]):
                line, of_table = weights[c, r, h], table[h, r, asks]
                _prefetch(table, h, r, ids, c)
                for s in range(first + r + 1):
                    line[s] = of_table[uintp(ids[c, s])]
            _attention(weights[c, r], first + r + 1, low, room)


@njit(**_OPTIONS)
def add_scores(d, ids, d_table):
    """Back through the look-up of `attend_pairs`: gradients d in scores are added to d_table."""
    first, vocab = ids.shape[1] - d.shape[1], d_table.shape[2]
    for r in range(d.shape[1]):
        for c in range(d.shape[0]):
            asks = ids[c, first + r] - (first + r) * vocab
            for h in range(d.shape[2]):
                line, of_table = d[c, r, h], d_table[h, r, asks]
                _prefetch(d_table, h, r, ids, c)
                for s in range(first + r + 1):
                    of_table[uintp(ids[c, s])] += line[s]
