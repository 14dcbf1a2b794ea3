"""Focus and dilution on a text in count form: a window enters only through its counts and its last token."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.corpora.window_loss import WindowLoss
from stagescope.fields.packed import Found
from stagescope.papers.focus_dilution.counts import context_arrays, contexts_loss
from stagescope.papers.focus_dilution.loss import BLOCKS
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.params import Params

AT_ONCE = 4096
"""Count rows that are in memory at once."""


@dataclass(frozen=True)
class CountRows:
    """Contexts as counts (R, d), with their query and the token after them (R,)."""

    counts: np.ndarray
    query: np.ndarray
    target: np.ndarray


class TextCounts(WindowLoss):
    """The loss of the token after each window, A_j ~ n_j exp(Phi_ij) with n its counts and i its last token [FD:text-counts].

    Counts are sufficient: nothing of the size of batch x length x vocabulary is ever made.
    """

    model: TokenAttention

    def spans(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the contexts of the windows that begin at `starts` begin and end."""
        return starts, starts + self.length

    def rows(self, starts: np.ndarray, counts: np.ndarray | None = None) -> CountRows:
        """The same contexts as rows of counts, put into `counts` where that is given."""
        from stagescope.papers.focus_dilution.text.kernel import count_spans

        begin, end = self.spans(starts)
        room = np.empty((len(begin), self.model.vocab), np.uint16) if counts is None else counts[: len(begin)]
        found = CountRows(room, *(np.empty(len(begin), np.int64) for _ in range(2)))
        count_spans(self.tokens, begin, end, found.counts, found.query, found.target)
        return found

    def arrays(self, starts: np.ndarray) -> dict[str, Any]:
        rows = self.rows(starts)
        weights = np.zeros(rows.counts.shape)
        weights[np.arange(len(weights)), rows.target] = 1 / len(weights)
        return context_arrays(rows.counts.astype(float), rows.query, weights)

    def loss(self, params: Any, data: Any) -> Any:
        return contexts_loss(self.model.scale, params, data)

    def of_rows(self, params: Params, rows: CountRows) -> Found:
        """The kernel's derivatives in W0, W1 and Phi, taken back to the four blocks."""
        from stagescope.papers.focus_dilution.text.kernel import rows_gradient

        w0, w1, wq, wk = (np.ascontiguousarray(params[name], dtype=self.precision) for name in BLOCKS)
        scale, share = w0.dtype.type(self.model.scale), w0.dtype.type(1 / len(rows.query))
        scores, d_scores, space = self._space
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

    @cached_property
    def _space(self) -> tuple[np.ndarray, np.ndarray, Any]:
        """Room for scores, their derivatives, and the kernel."""
        from stagescope.papers.focus_dilution.text.kernel import Space

        scores, d_scores = (np.empty((self.model.vocab, self.model.vocab), dtype=self.precision) for _ in range(2))
        return scores, d_scores, Space.of(self.model.vocab, self.model.width, self.precision)

    @cached_property
    def _counts(self) -> np.ndarray:
        """Room for count rows."""
        each = len(self.spans(np.zeros(1, dtype=np.int64))[0])
        return np.empty((min(AT_ONCE, max(self.batch, self.watched) * each) + each, self.model.vocab), dtype=np.uint16)

    def of_windows(self, params: Params, starts: np.ndarray) -> Found:
        """Some windows at a time, so that their counts stay few."""
        piece = max(1, AT_ONCE // len(self.spans(starts[:1])[0]))
        parts = [starts[first : first + piece] for first in range(0, len(starts), piece)]
        found = [self.of_rows(params, self.rows(part, self._counts)) for part in parts]
        if len(found) == 1:
            return found[0]
        shares = [len(part) / len(starts) for part in parts]
        sums = {name: np.zeros(block.shape) for name, block in params.items()}
        for share, (_, grads) in zip(shares, found, strict=True):
            for name, total in sums.items():
                total += share * grads[name]
        return sum(share * loss for share, (loss, _) in zip(shares, found, strict=True)), sums


class TextCausal(TextCounts):
    """The loss at every position of each window, attention over the positions up to it [FD:text-causal].

    A prefix is a context like any other, so each window gives `length` of them.
    """

    def spans(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ends = starts[:, None] + np.arange(1, self.length + 1)
        return np.repeat(starts, self.length), ends.ravel()
