"""Focus and dilution on a text: losses in count form, and the model with the parts of a transformer that the paper leaves out."""

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from pydantic import Field as Limits

from stagescope.core.errors import InputError
from stagescope.core.params import Params
from stagescope.core.spec import Spec
from stagescope.corpora.window_loss import TokenWindowLoss, WindowLoss
from stagescope.flow.field import Found
from stagescope.papers.focus_dilution.loss import context_arrays, contexts_loss
from stagescope.papers.focus_dilution.model import TokenAttention

if TYPE_CHECKING:
    from stagescope.papers.focus_dilution.text.kernel import Supported


# Attention between token types with the parts of a transformer that focus and dilution leave out [FD:text-variants].


class AttentionVariant(TokenAttention):
    """x_t = W0[token] + P[t], z = sum_t A_t x_t + x_last, A ~ exp(scale x_last WQ.x_t WK), logits norm(z) W1 [FD:text-variants].

    `positions` adds the learned P, `residual` the stream of the last token, `norm` LayerNorm (no gain or shift) before the
    output. Scores between types, Phi, are those of `TokenAttention`: what positions add to them is left out.
    """

    length: int = Limits(ge=1)
    positions: bool = False
    residual: bool = False
    norm: bool = False

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        return super().shapes | ({"P": (self.length, self.width)} if self.positions else {})

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return super().axes | ({"P": ("position", "width")} if self.positions else {})

    def features(self, params: Any, tokens: Any) -> Any:
        """What enters the output (N, width) for windows of tokens (N, length), traceable by JAX.

        Attention is gathered from scores by type, and summed by type again: nothing of windows x length x width is made.
        """
        from stagescope.flow.autodiff import jax, jnp

        w0, rows = params["W0"], jnp.arange(len(tokens))[:, None]
        last = w0[tokens[:, -1]]
        if self.positions:
            last = last + params["P"][-1]
        query = self.scale * last @ params["WQ"]
        scores = jnp.take_along_axis(query @ (w0 @ params["WK"]).T, tokens, axis=1)
        if self.positions:
            scores = scores + query @ (params["P"] @ params["WK"]).T
        attention = jax.nn.softmax(scores, axis=1)
        stream = jnp.zeros((len(tokens), self.vocab), w0.dtype).at[rows, tokens].add(attention) @ w0
        if self.positions:
            stream = stream + attention @ params["P"]
        if self.residual:
            stream = stream + last
        if not self.norm:
            return stream
        centred = stream - jnp.mean(stream, axis=1, keepdims=True)
        return centred / jnp.sqrt(jnp.mean(centred**2, axis=1, keepdims=True) + 1e-10)  # the variance starts near 1e-4


# Focus and dilution on a text in count form: a window enters only through its counts and its last token.


class TextCounts(WindowLoss):
    """The loss of the token after each window, A_j ~ n_j exp(Phi_ij) with n its counts and i its last token [FD:text-counts].

    Counts are sufficient: nothing of the size of batch x length x vocabulary is ever made. `kernel` says in which order numbers
    are added: "support" goes through the types that a window has. Runs of version 0.1.0 do not name it: they went through all
    types, and are refused.
    """

    model: TokenAttention
    kernel: Literal["support"] = "support"

    @classmethod
    def restored(cls, fields: Spec) -> Self:
        if "kernel" not in fields:
            raise InputError(
                "this run on a text is of version 0.1.0, which is no longer read; use version 0.2.0, or run it again"
            )
        return super().restored(fields)

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
    def passes(self) -> "Supported":
        """Counting, and the gradient of contexts that are counted."""
        from stagescope.papers.focus_dilution.text.kernel import Supported

        contexts = len(self.spans(np.zeros(1, dtype=np.int64))[0])
        return Supported(self.model, self.precision, self.length, self.batch * contexts)

    def of_windows(self, params: Params, starts: np.ndarray) -> Found:
        """Some windows at a time, so that their counts stay few."""
        piece = max(1, self.passes.at_once // len(self.spans(starts[:1])[0]))
        parts = [starts[first : first + piece] for first in range(0, len(starts), piece)]
        gradients = [self.passes.gradient(params, self.passes.count(self.tokens, *self.spans(part))) for part in parts]
        if len(gradients) == 1:
            return gradients[0]
        shares = [len(part) / len(starts) for part in parts]
        sums = {name: np.zeros(block.shape) for name, block in params.items()}
        for share, (_, grads) in zip(shares, gradients, strict=True):
            for name, total in sums.items():
                total += share * grads[name]
        return sum(share * loss for share, (loss, _) in zip(shares, gradients, strict=True)), sums


class TextCausal(TextCounts):
    """The loss at every position of each window, attention over the positions up to it [FD:text-causal].

    A prefix is a context like any other, so each window gives `length` of them.
    """

    def spans(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ends = starts[:, None] + np.arange(1, self.length + 1)
        return np.repeat(starts, self.length), ends.ravel()


# Focus and dilution on a text with positions, residual stream or LayerNorm: windows of tokens, compiled by JAX.


class TextVariant(TokenWindowLoss):
    """The loss of the token after each window, of an attention model with more parts [FD:text-loss], [FD:text-variants]."""

    model: AttentionVariant

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.flow.autodiff import jax, jnp

        tokens = data["tokens"]
        cast = {name: block.astype(self.precision) for name, block in params.items()}
        logits = self.model.features(cast, tokens[:, :-1]) @ cast["W1"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits, axis=1), tokens[:, -1:], axis=1))
