"""Focus and dilution on a text in count form: a window enters only through its counts and its last token."""

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from stagescope.corpora.window_loss import WindowLoss
from stagescope.fields.field import Found
from stagescope.papers.focus_dilution.counts import context_arrays, contexts_loss
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.params import Params
from stagescope.spec import Spec

if TYPE_CHECKING:
    from stagescope.papers.focus_dilution.text.dense import Dense
    from stagescope.papers.focus_dilution.text.support import Supported


class TextCounts(WindowLoss):
    """The loss of the token after each window, A_j ~ n_j exp(Phi_ij) with n its counts and i its last token [FD:text-counts].

    Counts are sufficient: nothing of the size of batch x length x vocabulary is ever made. `kernel` decides in which order
    numbers are added: "support" goes through the types that a window has, "dense" through all types. Runs of version 0.1.0 do
    not name it: they were dense, and continue so, bit for bit.
    """

    model: TokenAttention
    kernel: Literal["dense", "support"] = "support"

    @classmethod
    def restored(cls, fields: Spec) -> Self:
        return super().restored({"kernel": "dense", **fields})

    def spans(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the contexts of the windows that begin at `starts` begin and end."""
        return starts, starts + self.length

    def arrays(self, starts: np.ndarray) -> dict[str, Any]:
        begin, end = self.spans(starts)
        counts, weights = (np.zeros((len(begin), self.model.vocab)) for _ in range(2))
        for row, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
            counts[row] = np.bincount(self.tokens[first:last], minlength=self.model.vocab)
        weights[np.arange(len(weights)), self.tokens[end]] = 1 / len(weights)
        return context_arrays(counts, self.tokens[end - 1].astype(np.int64), weights)

    def loss(self, params: Any, data: Any) -> Any:
        return contexts_loss(self.model.scale, params, data)

    @cached_property
    def passes(self) -> "Supported | Dense":
        """Counting, and the gradient of contexts that are counted."""
        from stagescope.papers.focus_dilution.text.dense import Dense
        from stagescope.papers.focus_dilution.text.support import Supported

        if self.kernel == "dense":
            return Dense(self.model, self.precision)
        contexts = len(self.spans(np.zeros(1, dtype=np.int64))[0])
        return Supported(self.model, self.precision, self.length, self.batch * contexts)

    def of_windows(self, params: Params, starts: np.ndarray) -> Found:
        """Some windows at a time, so that their counts stay few."""
        piece = max(1, self.passes.at_once // len(self.spans(starts[:1])[0]))
        parts = [starts[first : first + piece] for first in range(0, len(starts), piece)]
        found = [self._gradient(params, part) for part in parts]
        if len(found) == 1:
            return found[0]
        shares = [len(part) / len(starts) for part in parts]
        sums = {name: np.zeros(block.shape) for name, block in params.items()}
        for share, (_, grads) in zip(shares, found, strict=True):
            for name, total in sums.items():
                total += share * grads[name]
        return sum(share * loss for share, (loss, _) in zip(shares, found, strict=True)), sums

    def _gradient(self, params: Params, starts: np.ndarray) -> Found:
        passes: Any = self.passes
        return passes.gradient(params, passes.count(self.tokens, *self.spans(starts)))


class TextCausal(TextCounts):
    """The loss at every position of each window, attention over the positions up to it [FD:text-causal].

    A prefix is a context like any other, so each window gives `length` of them.
    """

    def spans(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ends = starts[:, None] + np.arange(1, self.length + 1)
        return np.repeat(starts, self.length), ends.ravel()
