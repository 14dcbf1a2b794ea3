"""Attention between token types with the parts of a transformer that focus and dilution leave out [FD:text-variants]."""

from typing import Any

from pydantic import Field as Limits

from stagescope.papers.focus_dilution.model import TokenAttention


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
        from stagescope.autodiff import jax, jnp

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
        return _normed(stream) if self.norm else stream


def _normed(x: Any) -> Any:
    from stagescope.autodiff import jnp

    centred = x - jnp.mean(x, axis=1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred**2, axis=1, keepdims=True) + 1e-10)  # the variance starts near 1e-4
