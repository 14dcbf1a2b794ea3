"""Counts of the types that a context has, and the gradient from them: nothing of the size of contexts x types is ever made."""

import numpy as np

from stagescope.fields.field import Found
from stagescope.fields.lanes_kernel import padded
from stagescope.memory import require_memory
from stagescope.papers.focus_dilution.loss import BLOCKS
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.papers.focus_dilution.text.kernel import Blocks, Space, Supports, count_supports, rows_gradient
from stagescope.params import Params

AT_ONCE = 4096
"""Contexts whose types are in memory at once."""
ENTRIES = 2**22
"""Types of all contexts that are in memory at once: 12 bytes for each."""


class Supported:
    """Counting and gradient of contexts of at most `length` tokens; a step has `step` of them.

    Where the table of all scores, Phi, has no more entries than the supports of a step may have, it is made. Else scores are made
    only between the query and the types of a context: at 10,000 types Phi would have 100 million entries, a batch needs 120,000.
    """

    def __init__(self, model: TokenAttention, precision: str, length: int, step: int) -> None:
        self.model, self.precision, self.longest = model, precision, min(length, model.vocab)
        self.at_once = min(AT_ONCE, max(1, ENTRIES // self.longest))
        self.table = model.vocab**2 <= step * self.longest
        self.room = self._room(0)
        self.tally = np.zeros(model.vocab, np.int32)
        self.given, self.slopes = self._blocks(), self._blocks()
        self.space = Space.of(self.given.w1, model.width)

    def _room(self, contexts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For the types of contexts, their counts and attention; one type more is written, but never kept."""
        require_memory("the types of all contexts at once", "choose a shorter --window", contexts, self.longest)
        size = contexts * self.longest
        return np.empty(size + 1, np.uint32), np.empty(size, self.precision), np.empty(size, self.precision)

    def _blocks(self) -> Blocks:
        (vocab, width), inner = self.model.shapes["W0"], self.model.shapes["WQ"][1]
        wide, table = padded(width), vocab if self.table else 0
        shapes = (vocab, wide), (padded(vocab), wide), (vocab, padded(inner)), (vocab, padded(inner)), (table, table)
        return Blocks(*(np.zeros(shape, self.precision) for shape in shapes))

    def count(self, tokens: np.ndarray, begin: np.ndarray, end: np.ndarray) -> Supports:
        """The contexts tokens[begin:end], in room that the next call uses again."""
        if len(begin) * self.longest > self.room[1].size:
            self.room = self._room(len(begin))
        query, target = (np.empty(len(begin), np.int64) for _ in range(2))
        found = Supports(np.zeros(len(begin) + 1, np.uint64), *self.room, query, target)
        count_supports(tokens, begin, end, self.tally, found)
        return found

    def gradient(self, params: Params, rows: Supports) -> Found:
        """The kernel's derivatives, taken back to the four blocks; all on rows padded with zeros."""
        given, slopes, scale = self.given, self.slopes, self.given.w0.dtype.type(self.model.scale)
        wq, wk = (np.zeros((given.w0.shape[1], given.key.shape[1]), self.precision) for _ in range(2))
        for name, room in zip(BLOCKS, (given.w0, given.w1.T, wq, wk), strict=True):
            room[tuple(map(slice, params[name].shape))] = params[name]
        np.matmul(given.w0, wq, out=given.query)
        np.matmul(given.w0, wk, out=given.key)
        given.key[:] *= scale
        if self.table:
            np.matmul(given.query, given.key.T, out=given.scores)
        for block in slopes:
            block.fill(0)
        loss = rows_gradient(rows, scale.dtype.type(1 / len(rows.query)), given, slopes, self.space)
        if self.table:
            np.matmul(slopes.scores, given.key, out=slopes.query)
            np.matmul(slopes.scores.T, given.query, out=slopes.key)
        slopes.key[:] *= scale
        found = {"W0": slopes.w0, "W1": slopes.w1.T, "WQ": given.w0.T @ slopes.query, "WK": given.w0.T @ slopes.key}
        for pulled, weights in ((slopes.query, wq), (slopes.key, wk)):
            found["W0"] += np.matmul(pulled, weights.T, out=given.w0)
        return loss, {name: found[name][tuple(map(slice, params[name].shape))].astype(float) for name in params}
