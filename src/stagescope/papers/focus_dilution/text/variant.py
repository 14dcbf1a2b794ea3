"""Focus and dilution on a text with positions, residual stream or LayerNorm: windows of tokens, compiled by JAX."""

from typing import Any

from stagescope.corpora.window_loss import TokenWindowLoss
from stagescope.papers.focus_dilution.text.model import AttentionVariant


class TextVariant(TokenWindowLoss):
    """The loss of the token after each window, of an attention model with more parts [FD:text-loss], [FD:text-variants]."""

    model: AttentionVariant

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jax, jnp

        tokens = data["tokens"]
        cast = {name: block.astype(self.precision) for name, block in params.items()}
        logits = self.model.features(cast, tokens[:, :-1]) @ cast["W1"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits, axis=1), tokens[:, -1:], axis=1))
