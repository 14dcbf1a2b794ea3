"""Focus and dilution on a text with positions, residual stream or LayerNorm: windows of tokens, compiled by JAX."""

from functools import cached_property
from typing import Any, Self

import numpy as np
from pydantic import model_validator

from stagescope.papers.focus_dilution.text.model import AttentionVariant
from stagescope.papers.focus_dilution.text.window_loss import Found, TextLoss
from stagescope.params import Params

CHUNK = 1024
"""Windows that pass at once."""


class TextVariant(TextLoss):
    """The loss of the token after each window, of an attention model with more parts [FD:text-variants]."""

    model: AttentionVariant  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        if self.model.length != self.length:
            raise ValueError(f"the model is for windows of {self.model.length} tokens, not of {self.length}")
        return self

    def arrays(self, starts: np.ndarray) -> dict[str, Any]:
        """Windows (N, length + 1), the token after each of them last."""
        from stagescope.autodiff import jnp

        places = starts[:, None] + np.arange(self.length + 1)
        return {"tokens": jnp.asarray(self.tokens[places].astype(np.int32))}

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jax, jnp

        tokens = data["tokens"]
        cast = {name: block.astype(self.precision) for name, block in params.items()}
        logits = self.model.features(cast, tokens[:, :-1]) @ cast["W1"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits, axis=1), tokens[:, -1:], axis=1))

    @cached_property
    def _compiled(self) -> Any:
        from stagescope.autodiff import jax

        return jax.jit(jax.value_and_grad(self.loss))

    def of_windows(self, params: Params, starts: np.ndarray) -> Found:
        """Chunk by chunk, summed in float64."""
        from stagescope.autodiff import jnp

        cast = {name: jnp.asarray(block, self.precision) for name, block in params.items()}
        total, sums = 0.0, {name: np.zeros(np.shape(block)) for name, block in params.items()}
        for first in range(0, len(starts), CHUNK):
            part = starts[first : first + CHUNK]
            share = len(part) / len(starts)
            loss, grads = self._compiled(cast, self.arrays(part))
            total += share * float(loss)
            for name, block in grads.items():
                sums[name] += share * np.asarray(block, dtype=float)
        return total, sums
