"""Counts of all types, for runs of version 0.1.0: they continue bit for bit only with the kernel they began with."""

from typing import NamedTuple

import numpy as np

from stagescope.fields.field import Found
from stagescope.papers.focus_dilution.loss import BLOCKS
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.papers.focus_dilution.text.dense_kernel import Space, count_spans, rows_gradient
from stagescope.params import Params

AT_ONCE = 4096
"""Contexts whose counts are in memory at once."""


class CountRows(NamedTuple):
    """Contexts as counts (R, d), with their query and the token after them (R,)."""

    counts: np.ndarray
    query: np.ndarray
    target: np.ndarray


class Dense:
    """Counting and gradient of contexts, with Phi (d, d)."""

    at_once = AT_ONCE

    def __init__(self, model: TokenAttention, precision: str) -> None:
        self.model, self.precision = model, precision
        self.counts = np.empty((0, model.vocab), dtype=np.uint16)
        self.scores, self.d_scores = (np.empty((model.vocab, model.vocab), dtype=precision) for _ in range(2))
        self.space = Space.of(model.vocab, model.width, precision)

    def count(self, tokens: np.ndarray, begin: np.ndarray, end: np.ndarray) -> CountRows:
        """The contexts tokens[begin:end], in room that the next call uses again."""
        if len(begin) > len(self.counts):
            self.counts = np.empty((len(begin), self.model.vocab), dtype=np.uint16)
        found = CountRows(self.counts[: len(begin)], *(np.empty(len(begin), np.int64) for _ in range(2)))
        count_spans(tokens, begin, end, *found)
        return found

    def gradient(self, params: Params, rows: CountRows) -> Found:
        """The kernel's derivatives in W0, W1 and Phi, taken back to the four blocks."""
        w0, w1, wq, wk = (np.ascontiguousarray(params[name], dtype=self.precision) for name in BLOCKS)
        scale, share = w0.dtype.type(self.model.scale), w0.dtype.type(1 / len(rows.query))
        scores, d_scores, space = self.scores, self.d_scores, self.space
        query, key = w0 @ wq, scale * (w0 @ wk)
        np.matmul(query, key.T, out=scores)
        d_scores.fill(0)
        d_w0, d_w1 = np.zeros_like(w0), np.zeros_like(w0)
        loss = rows_gradient(rows.counts, rows.query, rows.target, share, w0, w1, scores, space, d_w0, d_w1, d_scores)
        d_query, d_key = d_scores @ key, scale * (d_scores.T @ query)
        d_w0 += d_query @ wq.T
        d_w0 += d_key @ wk.T
        found = {"W0": d_w0, "W1": d_w1.T, "WQ": w0.T @ d_query, "WK": w0.T @ d_key}
        return loss, {name: found[name].astype(float) for name in params}
