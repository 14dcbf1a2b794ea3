"""Parts of the transformer's pass: positions, heads, MLP and output, made ready for the kernels, and their gradients."""

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from stagescope.core.params import Params
from stagescope.flow.lanes_kernel import LANES
from stagescope.flow.lanes_kernel import padded as whole_lanes
from stagescope.papers.incremental.transformer import Transformer
from stagescope.papers.incremental.transformer_layers_kernel import (
    STRIPE,
    Layer,
    Reading,
    add_value_gradients,
    mix_values,
    score_gradients,
)
from stagescope.papers.incremental.transformer_rows_kernel import (
    Carry,
    add_scores,
    attend,
    attend_pairs,
    back_attend,
    draw_numbers,
    pull_rows,
    scale_rows,
    unscale_rows,
)

Blocks = dict[str, np.ndarray]


def turn(model: Transformer, block: np.ndarray, rows: np.ndarray, back: bool = False) -> None:
    """Turn queries or keys (..., rows, inner) by their positions, in place; only where positions are rotary."""
    if model.places != "rotary":
        return
    cos, sin = (table[rows].astype(block.dtype) for table in model.turns)
    half = cos.shape[-1]
    one, two = block[..., :half].copy(), block[..., half : 2 * half].copy()
    sin = -sin if back else sin
    block[..., :half] = one * cos - two * sin
    block[..., half : 2 * half] = two * cos + one * sin


def lag_bias(model: Transformer, params: Params, layer: int) -> np.ndarray | None:
    """What is added to the scores (head, row, position) where positions are relative: a number for each head and lag."""
    if model.places != "relative":
        return None
    return np.asarray(params[f"B{layer}"])[:, _lags(model, layer)]


def add_lag_bias(gradients: Blocks, model: Transformer, layer: int, d: np.ndarray) -> None:
    """Back through `lag_bias`."""
    if model.places == "relative":
        for head in range(model.heads):
            np.add.at(gradients[f"B{layer}"][head], _lags(model, layer), d[head])


def _lags(model: Transformer, layer: int) -> np.ndarray:
    """Row minus position; 0 for positions that the row does not see, where nothing is read."""
    return np.maximum(model.rows(layer)[:, None] - np.arange(model.positions), 0)


class Room:
    """Arrays that are used again and again: the first `rows` of one for each name."""

    def __init__(self, precision: Literal["float32", "float64"]) -> None:
        self.kind: Any = np.float32 if precision == "float32" else np.float64
        self._kept = dict[str, np.ndarray]()

    def take(self, name: str, rows: int, *shape: int) -> np.ndarray:
        if name not in self._kept or len(self._kept[name]) < rows:
            one = np.dtype(self.kind).itemsize
            size, line = math.prod((rows, *shape)) * one, LANES * one  # whole lines of the processor's cache
            raw = np.zeros(size + line, np.uint8)
            start = -raw.ctypes.data % line
            self._kept[name] = raw[start : start + size].view(self.kind).reshape(rows, *shape)
        return self._kept[name][:rows]

    def zeros(self, name: str, rows: int, *shape: int) -> np.ndarray:
        room = self.take(name, rows, *shape)
        room[:] = 0
        return room

    @property
    def low(self) -> Any:
        """The least argument of the exponential."""
        return self.kind(-87.0 if self.kind is np.float32 else -700.0)

    def attention(self, name: str, count: int, model: Transformer, layer: int) -> np.ndarray:
        """Room for attention (sequence, row, head, place), with places up to a multiple of LANES."""
        return self.take(f"{name}{layer}", count, len(model.rows(layer)), model.heads, whole_lanes(model.positions))


class Reader:
    """norm(x) W + b of rows of the stream, and back; `norm` is None where the stream is read as it is."""

    def __init__(self, params: Blocks, norm: str | None, matrix: np.ndarray, bias: np.ndarray | None, room: Room) -> None:
        self.normed, self.norm, self.raw, self.room = norm is not None, norm, matrix, room
        self.width, kind = len(matrix), room.kind
        self.share = kind(1 / self.width if self.normed else 0)
        self.gain = params[f"gain_{norm}"] if self.normed else np.ones(self.width, kind)
        self.shift = params[f"shift_{norm}"] if self.normed else np.zeros(self.width, kind)
        folded = self.gain[:, None] * matrix
        self.matrix = padded(folded - folded.mean(axis=0) if self.normed else folded, 0)
        self.offset = self.shift @ matrix + (0 if bias is None else bias)
        self.d_matrix, self.d_offset = np.zeros(self.matrix.shape), np.zeros(len(self.offset))

    def forward(self, x: np.ndarray, size: np.ndarray, out: np.ndarray) -> None:
        np.dot(x, self.matrix, out=out)
        scale_rows(out, size, self.offset, False)

    def backward(
        self, g: np.ndarray, z: np.ndarray, x: np.ndarray, size: np.ndarray, gx: np.ndarray, fresh: bool = False
    ) -> None:
        """From the gradient g in z to that in the stream: added to gx, or written there where that is `fresh`. Changes g."""
        pull = self.room.take("pull", len(x))
        unscale_rows(g, z, size, self.offset, self.share, False, self.d_offset, pull)
        self.d_matrix += np.dot(x.T, g)
        back = np.dot(g, self.matrix.T, out=self.room.take("back", *x.shape))
        pull_rows(gx, back, pull, x, fresh)

    def gradient(self, gradients: Blocks) -> np.ndarray:
        """The gradient in W; those in gain and shift are added to `gradients`. That in b is `d_offset`."""
        folded, offset = self.d_matrix[: self.width].astype(self.room.kind), self.d_offset.astype(self.room.kind)
        if self.normed:
            folded -= folded.mean(axis=0)
            gradients[f"gain_{self.norm}"] += np.einsum("ij,ij->i", folded, self.raw)
            gradients[f"shift_{self.norm}"] += self.raw @ offset
        folded *= self.gain[:, None]
        folded += np.outer(self.shift, offset)
        return folded


class Maps:
    """What makes queries, and keys beside values, of the heads of one layer, out of the stream."""

    def __init__(self, model: Transformer, params: Blocks, layer: int, room: Room) -> None:
        self.model, self.layer, norm = model, layer, model.norm_read(f"heads{layer}")
        self.root = room.kind(np.sqrt(model.width // model.heads))
        queries, keys, values = (np.swapaxes(params[f"{name}{layer}"], 0, 1).reshape(model.width, -1) for name in "QKV")
        self.asking = Reader(params, norm, queries / self.root, None, room)
        self.asked = Reader(params, norm, np.concatenate([keys, values], axis=1), None, room)

    def gradient(self, gradients: Blocks) -> None:
        blocks = [self.asking.gradient(gradients) / self.root, *np.split(self.asked.gradient(gradients), 2, axis=1)]
        for name, block in zip("QKV", blocks, strict=True):
            gradients[f"{name}{self.layer}"] += np.swapaxes(block.reshape(self.model.width, self.model.heads, -1), 0, 1)


class RowHeads:
    """What the heads of one layer add to the stream, with queries, keys and values of every row.

    `drop` is the key of the dropout of attention weights; None where nothing is dropped.
    """

    def __init__(self, model: Transformer, params: Blocks, layer: int, drop: np.uint64 | None, room: Room) -> None:
        self.layer, self.room, self.model, self.rows, self.drop = layer, room, model, model.rows(layer), drop
        self.part, self.inner = model.width // model.heads, model.width
        self.maps = Maps(model, params, layer, room)
        self.out = padded(params[f"O{layer}"].reshape(-1, model.width), 1)
        self.d_out, self.bias = np.zeros(self.out.shape), lag_bias(model, params, layer)
        self.d_bias = np.zeros((model.heads, len(self.rows), model.positions))

    def _views(self, queries: np.ndarray, pairs: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Queries, keys and values (sequence, head, row, inner)."""
        heads = self.model.heads
        parts = (queries, pairs[:, : self.inner], pairs[:, self.inner :])
        return tuple(np.swapaxes(block.reshape(count, -1, heads, self.part), 1, 2) for block in parts)  # pyright: ignore[reportReturnType]

    def _kept(self, count: int, prefix: str = "") -> tuple[np.ndarray, ...]:
        model, take = self.model, self.room.take
        queries = take(f"{prefix}queries{self.layer}", count * len(self.rows), self.inner)
        pairs = take(f"{prefix}pairs{self.layer}", count * model.positions, 2 * self.inner)
        weights = self.room.attention(f"{prefix}weights", count, model, self.layer)
        mixed = take(f"{prefix}mixed{self.layer}", count, len(self.rows), model.heads, self.part)
        return queries, pairs, weights, mixed

    def forward(self, x: np.ndarray, size: np.ndarray, part: np.ndarray, count: int, first: int) -> None:
        """`first` sequences come before these."""
        queries, pairs, weights, mixed = self._kept(count)
        asking_rows = self._chosen(x, count)
        self.maps.asking.forward(asking_rows, self._chosen(size, count), queries)
        self.maps.asked.forward(x, size, pairs)
        q, k, v = self._views(queries, pairs, count)
        turn(self.model, q, self.rows)
        turn(self.model, k, np.arange(self.model.positions))
        scores = np.swapaxes(weights[..., : self.model.positions], 1, 2)
        np.matmul(q, np.swapaxes(k, 2, 3), out=scores)
        if self.bias is not None:
            scores += self.bias
        attend(weights, self.model.positions, self.room.low)
        if self.drop is not None:
            factors = kept_factors(self.model, self.drop, first * len(self.rows), self._dropped("factor", count), self.room)
            scores = np.swapaxes(np.multiply(weights[..., : self.model.positions], factors, out=self._dropped("", count)), 1, 2)
        np.matmul(scores, v, out=np.swapaxes(mixed, 1, 2))
        np.dot(mixed.reshape(len(part), -1), self.out, out=part)

    def _dropped(self, name: str, count: int) -> np.ndarray:
        """Room for attention after dropout, or for the factors of it (sequence, row, head, position)."""
        return self.room.take(f"dropped_{name}{self.layer}", count, len(self.rows), self.model.heads, self.model.positions)

    def backward(self, g: np.ndarray, x: np.ndarray, size: np.ndarray, gx: np.ndarray, count: int) -> None:
        """Adds to gx, the gradient in every row."""
        queries, pairs, weights, mixed = self._kept(count)
        d_queries, d_pairs, d_weights, d_mixed = self._kept(count, "d_")
        self.d_out += np.dot(mixed.reshape(len(g), -1).T, g)
        np.dot(g, self.out.T, out=d_mixed.reshape(len(g), -1))
        q, k, v = self._views(queries, pairs, count)
        dq, dk, dv = self._views(d_queries, d_pairs, count)
        visible = [block[..., : self.model.positions] for block in (weights, d_weights)]
        if self.drop is not None:
            visible[0] = self._dropped("", count)
        attention, d_scores, d_mixed = (np.swapaxes(block, 1, 2) for block in (*visible, d_mixed))
        np.matmul(np.swapaxes(attention, 2, 3), d_mixed, out=dv)
        np.matmul(d_mixed, np.swapaxes(v, 2, 3), out=d_scores)
        if self.drop is not None:
            visible[1] *= self._dropped("factor", count)
        back_attend(weights, self.model.positions, d_weights)
        if self.bias is not None:
            self.d_bias += d_scores.sum(axis=0)
        np.matmul(d_scores, k, out=dq)
        np.matmul(np.swapaxes(d_scores, 2, 3), q, out=dk)
        everywhere = np.arange(self.model.positions)
        for block, positions in ((q, self.rows), (dq, self.rows), (k, everywhere), (dk, everywhere)):
            turn(self.model, block, positions, back=True)
        self.maps.asked.backward(d_pairs, pairs, x, size, gx)
        asking_rows, asking_gradient = self._chosen(x, count), self.room.take("chosen_g", len(queries), x.shape[1])
        self.maps.asking.backward(d_queries, queries, asking_rows, self._chosen(size, count), asking_gradient, fresh=True)
        gx.reshape(count, -1, x.shape[1])[:, self.rows] += asking_gradient.reshape(count, -1, x.shape[1])

    def _chosen(self, x: np.ndarray, count: int) -> np.ndarray:
        """Rows that ask."""
        return np.ascontiguousarray(x.reshape(count, self.model.positions, *x.shape[1:])[:, self.rows[0] :]).reshape(
            -1, *x.shape[1:]
        )

    def gradient(self, gradients: Blocks) -> None:
        i, model = self.layer, self.model
        self.maps.gradient(gradients)
        gradients[f"O{i}"] += self.d_out[:, : model.width].reshape(model.heads, self.part, model.width)
        add_lag_bias(gradients, model, i, self.d_bias)


def kept_factors(model: Transformer, drop: np.uint64, first: int, out: np.ndarray, room: Room) -> np.ndarray:
    """out <- 1/(1 - dropout) for entries that survive, 0 for others; entries of a row are all its axes after `rows`.

    The leading axes of `out` count rows, of which `first` come before: (rows, entries) or (sequence, row, head, position).
    """
    rows = out.reshape(-1, out.shape[-1]) if out.ndim == 2 else out.reshape(out.shape[0] * out.shape[1], -1)
    numbers = np.empty(rows.shape, np.uint16)
    draw_numbers(drop, first, rows.shape[1], numbers)
    np.multiply(numbers >= model.threshold, room.kind(1 / (1 - model.dropout)), out=rows)
    return out


def padded(matrix: np.ndarray, axis: int) -> np.ndarray:
    """With zeros up to a multiple of LANES along one axis."""
    padding = whole_lanes(matrix.shape[axis]) - matrix.shape[axis]
    return np.ascontiguousarray(np.pad(matrix, [(0, padding if dimension == axis else 0) for dimension in range(matrix.ndim)]))


class Output:
    """Logits of rows of the stream."""

    def __init__(self, model: Transformer, params: Blocks, room: Room) -> None:
        self.reader = Reader(params, model.norm_read("out"), params["U"], params.get("u"), room)
        self.arrays = reading(self.reader, "out", LANES, room, rectify=False, alone=True)

    def gradient(self, gradients: Blocks) -> None:
        gradients["U"] += read_gradient(self.reader, self.arrays, LANES, gradients)
        if "u" in gradients:
            gradients["u"] += self.reader.d_offset


class AfterHeads:
    """How the heads of a layer and its MLP add to the stream; `keys` are those of dropout, none where nothing is dropped."""

    def __init__(self, model: Transformer, params: Blocks, layer: int, keys: np.ndarray, room: Room) -> None:
        self.layer, self.units, kind = layer, model.mlp, room.kind
        heads, mlp = f"heads{layer}", f"mlp{layer}"
        carried = (model.norm_read(heads), model.norm_read(mlp)) if model.published and model.residual else (None, None)
        self.carried = {norm: carry_of(params, norm, kind) for norm in carried}
        shapes = {"M": (model.width, 0), "m": (0,), "N": (0, model.width), "n": (0,)}  # without an MLP
        matrix, offset, out, bias = (params.get(f"{name}{layer}", np.zeros(shape, kind)) for name, shape in shapes.items())
        self.reader = Reader(params, model.norm_read(mlp) if model.mlp else None, matrix, offset, room)
        inside, out = padded(np.full(model.width, model.norm == "layer", kind), 0), padded(out, 1)
        self.arrays = Layer(
            before=self.carried[carried[0]],
            between=self.carried[carried[1]],
            keys=keys,
            threshold=np.uint16(model.threshold if keys.size else 0),
            scale=kind(1 / (1 - model.dropout) if keys.size else 1),
            residual=model.residual,
            zeros=np.zeros_like(inside),
            inside=inside,
            width=model.width,
            units=reading(self.reader, f"units{layer}", STRIPE, room, rectify=True, alone=not model.residual),
            out=in_stripes(out, STRIPE, f"mlp{layer}", room),
            back=in_stripes(out.T, LANES, f"mlp_back{layer}", room),
            bias=padded(bias, 0) if model.mlp else bias,
            d_out=np.zeros(out.size),
            d_bias=np.zeros(len(bias)),
        )

    def gradient(self, gradients: Blocks) -> None:
        for norm, carry in self.carried.items():
            if norm is not None:
                gradients[f"gain_{norm}"] += carry.d_gain
                gradients[f"shift_{norm}"] += carry.d_shift
        if self.units:
            i = self.layer
            gradients[f"M{i}"] += read_gradient(self.reader, self.arrays.units, STRIPE, gradients)
            gradients[f"m{i}"] += self.reader.d_offset
            gradients[f"N{i}"] += from_stripes(self.arrays.d_out, self.units, STRIPE)[:, : self.arrays.width]
            gradients[f"n{i}"] += self.arrays.d_bias


def carry_of(params: Blocks, norm: str | None, kind: Any) -> Carry:
    """A norm that the stream goes through on its way to the next part; empty without one."""
    width = 0 if norm is None else len(params[f"gain_{norm}"])
    gain, shift = (np.empty(0, kind) if norm is None else padded(params[f"{name}_{norm}"], 0) for name in ("gain", "shift"))
    return Carry(gain, shift, np.zeros(width), np.zeros(width))


def reading(reader: Reader, name: str, stripe: int, room: Room, **flags: bool) -> Reading:
    """The arrays of a reader; those of the way back are in stripes of so many columns."""
    matrix = in_stripes(reader.matrix, LANES, f"read_{name}", room)
    back = in_stripes(reader.matrix.T, stripe, f"read_back_{name}", room)
    sums = np.zeros(reader.matrix.size)
    return Reading(matrix, back, reader.offset, reader.share, d_matrix=sums, d_offset=reader.d_offset, **flags)


def read_gradient(reader: Reader, arrays: Reading, stripe: int, gradients: Blocks) -> np.ndarray:
    reader.d_matrix[:] = from_stripes(arrays.d_matrix, len(reader.offset), stripe).T
    return reader.gradient(gradients)


def in_stripes(matrix: np.ndarray, stripe: int, name: str, room: Room) -> np.ndarray:
    """Stripes of columns, one after the other: as wide as asked, those at the end of `LANES` columns, filled up with zeros."""
    rows, full = matrix.shape[0], padded(matrix, 1)
    out = room.take(name, full.size)
    for first, width in _stripes(full.shape[1], stripe):
        out[rows * first : rows * (first + width)] = full[:, first : first + width].reshape(-1)
    return out


def from_stripes(flat: np.ndarray, rows: int, stripe: int) -> np.ndarray:
    """Back from `in_stripes`."""
    columns = flat.size // rows
    blocks = (flat[rows * first : rows * (first + width)] for first, width in _stripes(columns, stripe))
    return np.concatenate([block.reshape(rows, -1) for block in blocks], axis=1)


def _stripes(columns: int, stripe: int) -> list[tuple[int, int]]:
    full = columns - columns % stripe
    return [(column, stripe) for column in range(0, full, stripe)] + [(column, LANES) for column in range(full, columns, LANES)]


ROWS = 5
"""Rows whose scores are one product: more of them have larger products, but also more scores of pairs that they do not see."""


class PairHeads:
    """What the heads of the first layer add to the stream; x and size are the stream before it, by pair."""

    def __init__(self, model: Transformer, params: Blocks, room: Room, x: np.ndarray, size: np.ndarray) -> None:
        self.model, self.room, self.x, self.size = model, room, x, size
        self.rows, self.first = model.rows(1), int(model.rows(1)[0]) * model.vocab
        self.maps, self.out = Maps(model, params, 1, room), padded(params["O1"], 2)
        queries, pairs = self._projections()
        self.maps.asking.forward(x[self.first :], size[self.first :], queries)
        self.maps.asked.forward(x, size, pairs)
        self._turn(queries, pairs)
        self.values = room.take("values", model.heads, len(x), self.out.shape[2])
        q, k, v = self._by_head(queries, pairs)
        np.matmul(v, self.out, out=self.values)
        # scores (head, row, token that asks, pair that is seen); pairs that the row does not see are never looked up
        bias = lag_bias(model, params, 1)
        self.table = room.take("table", model.heads, len(self.rows), model.vocab, len(x))
        for rows, asks, stop, flat, split in self._groups(self.table):
            np.matmul(q[:, asks], np.swapaxes(k[:, : stop * model.vocab], 1, 2), out=flat)
            if bias is not None:
                split += bias[:, rows, None, :stop, None]
        self.d_table, self.d_values = room.zeros("d_table", *self.table.shape), room.zeros("d_values", *self.values.shape)
        self.d_x = room.zeros("d_pair_stream", *x.shape)

    def _projections(self, prefix: str = "") -> tuple[np.ndarray, np.ndarray]:
        """Room for queries, and for keys and values."""
        count, width = len(self.x), self.model.width
        queries = self.room.take(f"{prefix}pair_queries", count - self.first, width)
        return queries, self.room.take(f"{prefix}pair_keys", count, 2 * width)

    def _by_head(self, queries: np.ndarray, pairs: np.ndarray) -> list[np.ndarray]:
        """Queries, keys and values as (head, pair, inner)."""
        split = pairs.reshape(len(pairs), 2, self.model.heads, -1)
        parts = (queries.reshape(len(queries), self.model.heads, -1), split[:, 0], split[:, 1])
        return [np.swapaxes(block, 0, 1) for block in parts]

    def _turn(self, queries: np.ndarray, pairs: np.ndarray, back: bool = False) -> None:
        for block, rows in zip(self._by_head(queries, pairs), (self.rows, np.arange(self.model.positions)), strict=False):
            by_place = block.reshape(self.model.heads, len(rows), self.model.vocab, -1)
            turn(self.model, np.swapaxes(by_place, 1, 2), rows, back=back)

    def _groups(self, table: np.ndarray) -> Iterator[tuple[slice, slice, int, Any, Any]]:
        """Groups of rows: themselves, their queries, how many positions they see, and views of their scores.

        The first view is (head, query, pair), the second (head, row, token that asks, position, token that is seen).
        """
        model, vocab = self.model, self.model.vocab
        for first in range(0, len(self.rows), ROWS):
            rows = slice(first, min(first + ROWS, len(self.rows)))
            asks, stop = slice(first * vocab, rows.stop * vocab), int(self.rows[rows.stop - 1]) + 1
            flat = table.reshape(model.heads, -1, len(self.x))[:, asks, : stop * vocab]
            yield rows, asks, stop, flat, table[:, rows].reshape(model.heads, -1, vocab, model.positions, vocab)[..., :stop, :]

    def begin(self, ids: np.ndarray) -> None:
        """Attention of sequences of pairs (sequences, positions), before their chunks pass."""
        self.weights = self.room.attention("weights", len(ids), self.model, 1)
        attend_pairs(self.table, ids, self.room.low, self.weights)

    def forward(self, ids: np.ndarray, first: int, part: np.ndarray) -> None:
        """Part of the stream for a chunk, whose first sequence has this number."""
        mix_values(self.weights[first : first + len(ids)], self.values, ids, part.reshape(len(ids), len(self.rows), -1))

    def backward(self, g: np.ndarray, ids: np.ndarray, first: int) -> None:
        chunk, g = slice(first, first + len(ids)), g.reshape(len(ids), len(self.rows), -1)
        add_value_gradients(self.weights[chunk], g, ids, self.d_values)
        score_gradients(g, self.values, ids, self.weights[chunk])

    def end(self, ids: np.ndarray) -> None:
        """The gradient in the scores, after all chunks have passed back."""
        add_scores(self.weights, ids, self.d_table)

    def gradient(self, gradients: Blocks) -> None:
        """Adds the gradients in all blocks before the heads too; that in the stream by pair is in d_x."""
        maps, (queries, pairs), (d_queries, d_pairs) = self.maps, self._projections(), self._projections("d_")
        v, dv = self._by_head(queries, pairs)[2], self._by_head(d_queries, d_pairs)[2]
        np.matmul(self.d_values, np.swapaxes(self.out, 1, 2), out=dv)
        gradients["O1"] += np.matmul(np.swapaxes(v, 1, 2), self.d_values)[:, :, : self.model.width]
        self._back_scores(gradients)
        self._turn(queries, pairs, back=True)
        self._turn(d_queries, d_pairs, back=True)
        maps.asked.backward(d_pairs, pairs, self.x, self.size, self.d_x)
        asks = slice(self.first, None)
        maps.asking.backward(d_queries, queries, self.x[asks], self.size[asks], self.d_x[asks])
        maps.gradient(gradients)
        by_place = self.d_x[:, : self.model.width].reshape(self.model.positions, self.model.vocab, self.model.width)
        gradients["E"] += by_place.sum(axis=0)
        if self.model.places == "learned":
            gradients["P"] += by_place.sum(axis=1)

    def _back_scores(self, gradients: Blocks) -> None:
        model, (q, k, _) = self.model, self._by_head(*self._projections())
        dq, dk, _ = self._by_head(*self._projections("d_"))
        d_bias = np.zeros((model.heads, len(self.rows), model.positions))
        turned = self.room.zeros("d_keys", model.heads, k.shape[2], k.shape[1])  # the gradient in k^T, whose rows are long
        for rows, asks, stop, flat, split in self._groups(self.d_table):
            pairs = slice(stop * model.vocab)
            np.matmul(flat, k[:, pairs], out=dq[:, asks])
            turned[..., pairs] += np.matmul(np.swapaxes(q[:, asks], 1, 2), flat)
            if model.places == "relative":
                d_bias[:, rows, :stop] = split.sum(axis=(2, 4))
        dk[:] = np.swapaxes(turned, 1, 2)
        add_lag_bias(gradients, model, 1, d_bias)
