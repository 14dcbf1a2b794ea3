"""The heads of the first layer, on tables of (token, position) pairs.

There is no dropout before the first layer, so its queries, keys and values depend on the pair alone. The score of a row for a
position is looked up in a table of pairs by pairs, and values have the output projection in them: they are as wide as the stream.
Pairs are ordered by position, then token, so those that a position sees come first.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from stagescope.papers.incremental.students.transformer import mix_kernel, places, scores_kernel
from stagescope.papers.incremental.students.transformer.model import Transformer
from stagescope.papers.incremental.students.transformer.parts import Maps, Room, padded
from stagescope.papers.incremental.students.transformer.places import Blocks

ROWS = 5
"""Rows whose scores are one product: more of them have larger products, but also more scores of pairs that they do not see."""


class PairHeads:
    """What the heads of the first layer add to the stream; x and size are the stream before it, by pair."""

    def __init__(self, model: Transformer, params: Blocks, room: Room, x: np.ndarray, size: np.ndarray) -> None:
        self.model, self.params, self.room, self.x, self.size = model, params, room, x, size
        self.rows, self.first = model.rows(1), int(model.rows(1)[0]) * model.vocab
        self.maps, self.out = Maps(model, params, 1, room), padded(params["O1"], 2)
        queries, pairs = self._projections()
        self.maps.asking.forward(x[self.first :], size[self.first :], queries)
        self.maps.asked.forward(x, size, pairs)
        self._turn(queries, pairs)
        self.values = room.take("values", model.heads, len(x), self.out.shape[2])
        np.matmul(self._by_head(queries, pairs)[2], self.out, out=self.values)
        self.table = self._scores()
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
        found = (queries.reshape(len(queries), self.model.heads, -1), split[:, 0], split[:, 1])
        return [np.swapaxes(block, 0, 1) for block in found]

    def _turn(self, queries: np.ndarray, pairs: np.ndarray, back: bool = False) -> None:
        for block, rows in zip(self._by_head(queries, pairs), (self.rows, np.arange(self.model.positions)), strict=False):
            by_place = block.reshape(self.model.heads, len(rows), self.model.vocab, -1)
            places.turn(self.model, np.swapaxes(by_place, 1, 2), rows, back=back)

    def _groups(self, table: np.ndarray) -> Iterator[tuple[slice, slice, int, Any, Any]]:
        """Groups of rows: themselves, their queries, how many positions they see, and views of their scores.

        The first view is (head, query, pair), the second (head, row, token that asks, position, token that is seen).
        """
        model, vocab = self.model, self.model.vocab
        for first in range(0, len(self.rows), ROWS):
            rows = slice(first, min(first + ROWS, len(self.rows)))
            asks, seen = slice(first * vocab, rows.stop * vocab), int(self.rows[rows.stop - 1]) + 1
            flat = table.reshape(model.heads, -1, len(self.x))[:, asks, : seen * vocab]
            yield rows, asks, seen, flat, table[:, rows].reshape(model.heads, -1, vocab, model.positions, vocab)[..., :seen, :]

    def _scores(self) -> np.ndarray:
        """(head, row, token that asks, pair that is seen); pairs that the row does not see are never looked up."""
        model, bias = self.model, places.lag_bias(self.model, self.params, 1)
        table = self.room.take("table", model.heads, len(self.rows), model.vocab, len(self.x))
        q, k, _ = self._by_head(*self._projections())
        for rows, asks, seen, flat, split in self._groups(table):
            np.matmul(q[:, asks], np.swapaxes(k[:, : seen * model.vocab], 1, 2), out=flat)
            if bias is not None:
                split += bias[:, rows, None, :seen, None]
        return table

    def begin(self, at: np.ndarray) -> None:
        """Attention of sequences of pairs (sequences, positions), before their chunks pass."""
        self.weights = self.room.attention("weights", len(at), self.model, 1)
        scores_kernel.attend_pairs(self.table, at, self.room.low, self.weights)

    def forward(self, at: np.ndarray, first: int, part: np.ndarray) -> None:
        """Part of the stream for a chunk, whose first sequence has this number."""
        mix_kernel.mix_values(self.weights[first : first + len(at)], self.values, at, part.reshape(len(at), len(self.rows), -1))

    def backward(self, g: np.ndarray, at: np.ndarray, first: int) -> None:
        chunk, g = slice(first, first + len(at)), g.reshape(len(at), len(self.rows), -1)
        mix_kernel.add_value_gradients(self.weights[chunk], g, at, self.d_values)
        mix_kernel.score_gradients(g, self.values, at, self.weights[chunk])

    def end(self, at: np.ndarray) -> None:
        """The gradient in the scores, after all chunks have passed back."""
        scores_kernel.add_scores(self.weights, at, self.d_table)

    def gradient(self, found: Blocks) -> None:
        """Adds the gradients in all blocks before the heads too; that in the stream by pair is in d_x."""
        maps, (queries, pairs), (d_queries, d_pairs) = self.maps, self._projections(), self._projections("d_")
        v, dv = self._by_head(queries, pairs)[2], self._by_head(d_queries, d_pairs)[2]
        np.matmul(self.d_values, np.swapaxes(self.out, 1, 2), out=dv)
        found["O1"] += np.matmul(np.swapaxes(v, 1, 2), self.d_values)[:, :, : self.model.width]
        self._back_scores(found)
        self._turn(queries, pairs, back=True)
        self._turn(d_queries, d_pairs, back=True)
        maps.asked.backward(d_pairs, pairs, self.x, self.size, self.d_x)
        asks = slice(self.first, None)
        maps.asking.backward(d_queries, queries, self.x[asks], self.size[asks], self.d_x[asks])
        maps.gradient(found)
        places.add_inputs(found, self.model, self.d_x[:, : self.model.width])

    def _back_scores(self, found: Blocks) -> None:
        model, (q, k, _) = self.model, self._by_head(*self._projections())
        dq, dk, _ = self._by_head(*self._projections("d_"))
        d_bias = np.zeros((model.heads, len(self.rows), model.positions))
        turned = self.room.zeros("d_keys", model.heads, k.shape[2], k.shape[1])  # the gradient in k^T, whose rows are long
        for rows, asks, seen, flat, split in self._groups(self.d_table):
            pairs = slice(seen * model.vocab)
            np.matmul(flat, k[:, pairs], out=dq[:, asks])
            turned[..., pairs] += np.matmul(np.swapaxes(q[:, asks], 1, 2), flat)
            if model.places == "relative":
                d_bias[:, rows, :seen] = split.sum(axis=(2, 4))
        dk[:] = np.swapaxes(turned, 1, 2)
        places.add_lag_bias(found, model, 1, d_bias)
