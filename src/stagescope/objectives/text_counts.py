"""Focus and dilution on a text in count form: a window enters only through its counts and its last token."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.objectives.text_loss import Found, TextLoss
from stagescope.objectives.token import BLOCKS
from stagescope.objectives.token_counts import contexts_loss
from stagescope.types import Params


@dataclass(frozen=True)
class CountRows:
    """Contexts as counts (R, d), with their query and the token after them (R,)."""

    counts: np.ndarray
    query: np.ndarray
    target: np.ndarray


class TextCounts(TextLoss):
    """The loss of the token after each window, A_j ~ n_j exp(Phi_ij) with n its counts and i its last token [FD:text-counts].

    Counts are sufficient: nothing of the size of batch x length x vocabulary is ever made, and only present types are touched.
    """

    def spans(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the contexts of the windows that begin at `starts` begin and end."""
        return starts, starts + self.length

    def rows(self, starts: np.ndarray) -> CountRows:
        """The same contexts as rows of counts."""
        begin, end = self.spans(starts)
        counts = np.zeros((len(begin), self.model.vocab))
        for row, (first, stop) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
            counts[row] = np.bincount(self.tokens[first:stop], minlength=self.model.vocab)
        return CountRows(counts, self.tokens[end - 1].astype(np.int64), self.tokens[end].astype(np.int64))

    def arrays(self, starts: np.ndarray) -> dict[str, Any]:
        from stagescope.autodiff import jnp

        rows = self.rows(starts)
        with np.errstate(divide="ignore"):
            logs = np.log(rows.counts)
        weights = np.zeros_like(rows.counts)
        weights[np.arange(len(weights)), rows.target] = 1 / len(weights)
        return {"log_counts": jnp.asarray(logs), "query": jnp.asarray(rows.query), "weights": jnp.asarray(weights)}

    def loss(self, params: Any, data: Any) -> Any:
        return contexts_loss(self.model.scale, params, data)

    def of_windows(self, params: Params, starts: np.ndarray) -> Found:
        """The kernel's derivatives in W0, W1 and Phi, taken back to the four blocks."""
        from stagescope.objectives.text_counts_kernel import contexts_gradient

        w0, w1, wq, wk = (np.ascontiguousarray(params[name], dtype=self.precision) for name in BLOCKS)
        query, key = w0 @ wq, w0.dtype.type(self.model.scale) * (w0 @ wk)
        scores = query @ key.T
        d_w0, d_w1, d_scores = np.zeros_like(w0), np.zeros_like(w1), np.zeros_like(scores)
        begin, end = self.spans(starts)
        order = np.argsort(self.tokens[end - 1], kind="stable")
        loss = contexts_gradient(self.tokens, begin, end, order, w0, w1, scores, d_w0, d_w1, d_scores)
        d_query, d_key = d_scores @ key, w0.dtype.type(self.model.scale) * (d_scores.T @ query)
        d_w0 += d_query @ wq.T + d_key @ wk.T
        found = {"W0": d_w0, "W1": d_w1, "WQ": w0.T @ d_query, "WK": w0.T @ d_key}
        return loss, {name: found[name].astype(float) for name in params}


class TextCausal(TextCounts):
    """The loss at every position of each window, attention over the positions up to it [FD:text-causal].

    A prefix is a context like any other, so each window gives `length` of them.
    """

    def spans(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ends = starts[:, None] + np.arange(1, self.length + 1)
        return np.repeat(starts, self.length), ends.ravel()
