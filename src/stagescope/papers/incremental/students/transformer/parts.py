"""Parts of the transformer's pass that read the stream: norm and matrix, heads on rows of the stream.

LayerNorm is folded into the matrix that reads it. The stream is kept centred, x, with 1/deviation beside it, so that
norm(x) W + b = (x W')/deviation + b' with W' = gain W minus the means of its columns, and b' = shift W + b.
"""

import math
from typing import Any, Literal

import numpy as np

from stagescope.fields.lanes_kernel import padded as whole_lanes
from stagescope.papers.incremental.students.transformer import places, scores_kernel
from stagescope.papers.incremental.students.transformer import stream_kernel as loops
from stagescope.papers.incremental.students.transformer.model import Transformer
from stagescope.papers.incremental.students.transformer.places import Blocks

LINE = 64
"""Bytes of a line of the processor's cache."""


class Room:
    """Arrays that are used again and again: the first `rows` of one for each name."""

    def __init__(self, precision: Literal["float32", "float64"]) -> None:
        self.kind: Any = np.float32 if precision == "float32" else np.float64
        self._kept = dict[str, np.ndarray]()

    def take(self, name: str, rows: int, *shape: int) -> np.ndarray:
        if name not in self._kept or len(self._kept[name]) < rows:
            self._kept[name] = self._aligned((rows, *shape))
        return self._kept[name][:rows]

    def zeros(self, name: str, rows: int, *shape: int) -> np.ndarray:
        found = self.take(name, rows, *shape)
        found[:] = 0
        return found

    def _aligned(self, shape: tuple[int, ...]) -> np.ndarray:
        """Zeros that begin with a line of the processor's cache."""
        size = math.prod(shape) * np.dtype(self.kind).itemsize
        raw = np.zeros(size + LINE, np.uint8)
        start = -raw.ctypes.data % LINE
        return raw[start : start + size].view(self.kind).reshape(shape)

    @property
    def low(self) -> Any:
        """The least argument of the exponential."""
        return self.kind(-87.0 if self.kind is np.float32 else -700.0)

    def attention(self, name: str, count: int, model: Transformer, layer: int) -> np.ndarray:
        """Room for attention (sequence, row, head, place), with places up to a multiple of LANES."""
        return self.take(f"{name}{layer}", count, len(model.rows(layer)), model.heads, whole_lanes(model.positions))


class Reader:
    """norm(x) W + b of rows of the stream, and back."""

    def __init__(
        self, model: Transformer, params: Blocks, norm: str, matrix: np.ndarray, bias: np.ndarray | None, room: Room
    ) -> None:
        self.normed, self.norm, self.raw, self.room = model.norm == "layer", norm, matrix, room
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
        loops.scale_rows(out, size, self.offset, False)

    def backward(
        self, g: np.ndarray, z: np.ndarray, x: np.ndarray, size: np.ndarray, gx: np.ndarray, fresh: bool = False
    ) -> None:
        """From the gradient g in z to that in the stream: added to gx, or written there where that is `fresh`. Changes g."""
        pull = self.room.take("pull", len(x))
        loops.unscale_rows(g, z, size, self.offset, self.share, False, self.d_offset, pull)
        self.d_matrix += np.dot(x.T, g)
        back = np.dot(g, self.matrix.T, out=self.room.take("back", *x.shape))
        loops.pull_rows(gx, back, pull, x, fresh)

    def gradient(self, found: Blocks) -> np.ndarray:
        """The gradient in W; those in gain and shift are added to `found`. That in b is `d_offset`."""
        folded, offset = self.d_matrix[: self.width].astype(self.room.kind), self.d_offset.astype(self.room.kind)
        if self.normed:
            folded -= folded.mean(axis=0)
            found[f"gain_{self.norm}"] += np.einsum("ij,ij->i", folded, self.raw)
            found[f"shift_{self.norm}"] += self.raw @ offset
        folded *= self.gain[:, None]
        folded += np.outer(self.shift, offset)
        return folded


class Maps:
    """What makes queries, and keys beside values, of the heads of one layer, out of the stream."""

    def __init__(self, model: Transformer, params: Blocks, layer: int, room: Room) -> None:
        self.model, self.layer, norm = model, layer, f"heads{layer}"
        self.root = room.kind(np.sqrt(model.width // model.heads))
        queries, keys, values = (np.swapaxes(params[f"{name}{layer}"], 0, 1).reshape(model.width, -1) for name in "QKV")
        self.asking = Reader(model, params, norm, queries / self.root, None, room)
        self.asked = Reader(model, params, norm, np.concatenate([keys, values], axis=1), None, room)

    def gradient(self, found: Blocks) -> None:
        blocks = [self.asking.gradient(found) / self.root, *np.split(self.asked.gradient(found), 2, axis=1)]
        for name, block in zip("QKV", blocks, strict=True):
            found[f"{name}{self.layer}"] += np.swapaxes(block.reshape(self.model.width, self.model.heads, -1), 0, 1)


class RowHeads:
    """What the heads of one layer add to the stream, with queries, keys and values of every row."""

    def __init__(self, model: Transformer, params: Blocks, layer: int, room: Room) -> None:
        self.layer, self.room, self.model, self.rows = layer, room, model, model.rows(layer)
        self.part, self.inner = model.width // model.heads, model.width
        self.maps = Maps(model, params, layer, room)
        self.out = padded(params[f"O{layer}"].reshape(-1, model.width), 1)
        self.d_out, self.bias = np.zeros(self.out.shape), places.lag_bias(model, params, layer)
        self.d_bias = np.zeros((model.heads, len(self.rows), model.positions))

    def _views(self, queries: np.ndarray, pairs: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Queries, keys and values (sequence, head, row, inner)."""
        heads = self.model.heads
        found = (queries, pairs[:, : self.inner], pairs[:, self.inner :])
        return tuple(np.swapaxes(block.reshape(count, -1, heads, self.part), 1, 2) for block in found)  # pyright: ignore[reportReturnType]

    def _kept(self, count: int, prefix: str = "") -> tuple[np.ndarray, ...]:
        model, take = self.model, self.room.take
        queries = take(f"{prefix}queries{self.layer}", count * len(self.rows), self.inner)
        pairs = take(f"{prefix}pairs{self.layer}", count * model.positions, 2 * self.inner)
        weights = self.room.attention(f"{prefix}weights", count, model, self.layer)
        mixed = take(f"{prefix}mixed{self.layer}", count, len(self.rows), model.heads, self.part)
        return queries, pairs, weights, mixed

    def forward(self, x: np.ndarray, size: np.ndarray, part: np.ndarray, count: int) -> None:
        queries, pairs, weights, mixed = self._kept(count)
        chosen = self._chosen(x, count)
        self.maps.asking.forward(chosen, self._chosen(size, count), queries)
        self.maps.asked.forward(x, size, pairs)
        q, k, v = self._views(queries, pairs, count)
        places.turn(self.model, q, self.rows)
        places.turn(self.model, k, np.arange(self.model.positions))
        scores = np.swapaxes(weights[..., : self.model.positions], 1, 2)
        np.matmul(q, np.swapaxes(k, 2, 3), out=scores)
        if self.bias is not None:
            scores += self.bias
        scores_kernel.attend(weights, self.model.positions, self.room.low)
        np.matmul(scores, v, out=np.swapaxes(mixed, 1, 2))
        np.dot(mixed.reshape(len(part), -1), self.out, out=part)

    def backward(self, g: np.ndarray, x: np.ndarray, size: np.ndarray, gx: np.ndarray, count: int) -> None:
        """Adds to gx, the gradient in every row."""
        queries, pairs, weights, mixed = self._kept(count)
        d_queries, d_pairs, d_weights, d_mixed = self._kept(count, "d_")
        self.d_out += np.dot(mixed.reshape(len(g), -1).T, g)
        np.dot(g, self.out.T, out=d_mixed.reshape(len(g), -1))
        q, k, v = self._views(queries, pairs, count)
        dq, dk, dv = self._views(d_queries, d_pairs, count)
        seen = (block[..., : self.model.positions] for block in (weights, d_weights))
        attention, d_scores, d_mixed = (np.swapaxes(block, 1, 2) for block in (*seen, d_mixed))
        np.matmul(np.swapaxes(attention, 2, 3), d_mixed, out=dv)
        np.matmul(d_mixed, np.swapaxes(v, 2, 3), out=d_scores)
        scores_kernel.back_attend(weights, self.model.positions, d_weights)
        if self.bias is not None:
            self.d_bias += d_scores.sum(axis=0)
        np.matmul(d_scores, k, out=dq)
        np.matmul(np.swapaxes(d_scores, 2, 3), q, out=dk)
        everywhere = np.arange(self.model.positions)
        for block, at in ((q, self.rows), (dq, self.rows), (k, everywhere), (dk, everywhere)):
            places.turn(self.model, block, at, back=True)
        self.maps.asked.backward(d_pairs, pairs, x, size, gx)
        chosen, more = self._chosen(x, count), self.room.take("chosen_g", len(queries), x.shape[1])
        self.maps.asking.backward(d_queries, queries, chosen, self._chosen(size, count), more, fresh=True)
        gx.reshape(count, -1, x.shape[1])[:, self.rows] += more.reshape(count, -1, x.shape[1])

    def _chosen(self, x: np.ndarray, count: int) -> np.ndarray:
        """Rows that ask."""
        return np.ascontiguousarray(x.reshape(count, self.model.positions, *x.shape[1:])[:, self.rows[0] :]).reshape(
            -1, *x.shape[1:]
        )

    def gradient(self, found: Blocks) -> None:
        i, model = self.layer, self.model
        self.maps.gradient(found)
        found[f"O{i}"] += self.d_out[:, : model.width].reshape(model.heads, self.part, model.width)
        places.add_lag_bias(found, model, i, self.d_bias)


def padded(matrix: np.ndarray, axis: int) -> np.ndarray:
    """With zeros up to a multiple of LANES along one axis."""
    missing = whole_lanes(matrix.shape[axis]) - matrix.shape[axis]
    return np.ascontiguousarray(np.pad(matrix, [(0, missing if at == axis else 0) for at in range(matrix.ndim)]))
