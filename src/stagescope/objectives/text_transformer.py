"""The one-layer transformer on windows of a text: the mean cross-entropy of every next token [SnS:text-transformer]."""

from functools import cached_property
from typing import Any

import numpy as np
from pydantic import Field as Limits

from stagescope.models.text_transformer import TextTransformer
from stagescope.objectives.text_variant import TextVariant
from stagescope.types import Params


class TextTransformerLoss(TextVariant):
    """- mean over windows and positions of log softmax(logits_t) of the token at t + 1 [SnS:text-transformer]. See TextLoss."""

    model: TextTransformer  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen
    batch: int = Limits(default=20, ge=1)
    watched: int = Limits(default=100, ge=1)

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jax, jnp

        tokens = data["tokens"]
        cast = {name: block.astype(self.precision) for name, block in params.items()}
        logits, _ = self.model.forward(cast, tokens[:, :-1])
        own = jnp.take_along_axis(logits, tokens[:, 1:, None], axis=2)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, axis=2) - own)

    @cached_property
    def _attending(self) -> Any:
        from stagescope.autodiff import jax

        return jax.jit(lambda params, tokens: self.model.forward(params, tokens)[1])

    def attention(self, params: Params) -> np.ndarray:
        """Attention (N, length, length) on the watched windows."""
        from stagescope.autodiff import jnp

        cast = {name: jnp.asarray(block, self.precision) for name, block in params.items()}
        return np.asarray(self._attending(cast, self.arrays(self.seen)["tokens"][:, :-1]))
