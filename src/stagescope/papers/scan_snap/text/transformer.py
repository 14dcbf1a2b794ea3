"""The one-layer transformer on windows of a text: the mean cross-entropy of every next token [SnS:text-transformer]."""

from functools import cached_property, lru_cache, partial
from typing import Any, Self

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.corpora.window_loss import TokenWindowLoss
from stagescope.fields.field import StepGradient
from stagescope.memory import require_memory
from stagescope.papers.scan_snap.text.model import TextTransformer
from stagescope.params import Layout, Params


class TextTransformerLoss(TokenWindowLoss):
    """- mean over windows and positions of log softmax(logits_t) of the token at t + 1 [SnS:text-transformer]. See WindowLoss.

    Args:
        model: the transformer.
        process: the corpus.
        length: tokens of a window.
        batch: windows in a step.
        seed: of the draws.
        watched: windows on which the recorded loss is taken.
        part: "train" or "held-out".
        precision: of the whole pass.

    Examples:
        >>> corpus = ss.read_corpus("words.txt", vocab=9)
        >>> text = ss.TextTransformer(vocab=corpus.size, length=8, width=4, hidden=8)
        >>> law = ss.TextTransformerLoss(model=text, process=corpus, length=8, batch=2, watched=4)
        >>> law.batch, law.watched
        (2, 4)
    """

    model: TextTransformer
    batch: int = Limits(default=20, ge=1)
    watched: int = Limits(default=100, ge=1)

    @model_validator(mode="after")
    def _small(self) -> Self:
        what = f"{self.batch:,} windows of {self.length:,} tokens"
        require_memory(f"the logits of {what}", "lower --batch, --window or --vocab", self.batch, self.length, self.model.vocab)
        require_memory(f"the attention of {what}", "lower --batch or --window", self.batch, self.length, self.length)
        return self

    def loss(self, params: Any, data: Any) -> Any:
        cast = {name: block.astype(self.precision) for name, block in params.items()}
        return cross_entropy(self.model, cast, data["tokens"])

    @cached_property
    def _compiled(self) -> Any:
        return _gradient(self.model)  # pyright: ignore[reportArgumentType]  # hashed by its description

    def step_gradient(self, layout: Layout) -> StepGradient:
        """The gradient that a step of a descent uses, from a flat vector to a flat vector."""
        found = _flat_gradient(self.model, layout, self.precision)  # pyright: ignore[reportArgumentType]

        def gradient(vector: np.ndarray, step: int, out: np.ndarray) -> None:
            out[:] = found(vector, self.arrays(self.minibatch(step)))

        return gradient

    @cached_property
    def _attending(self) -> Any:
        return _attention(self.model)  # pyright: ignore[reportArgumentType]

    @property
    def watched_tokens(self) -> np.ndarray:
        """The input tokens (N, length) of the watched windows; the last token of a window is a target only."""
        return np.asarray(self.arrays(self.seen)["tokens"])[:, :-1]

    def attention(self, params: Params) -> np.ndarray:
        """Attention (N, length, length) on the watched windows."""
        cast = {name: np.asarray(block, self.precision) for name, block in params.items()}
        return np.asarray(self._attending(cast, self.watched_tokens))


def cross_entropy(model: TextTransformer, params: Any, tokens: Any) -> Any:
    """- mean log softmax(logits_t) of the token at t + 1, tokens (B, T + 1), traceable by JAX."""
    from stagescope.autodiff import jax, jnp

    logits, _ = model.forward(params, tokens[:, :-1])
    own = jnp.take_along_axis(logits, tokens[:, 1:, None], axis=2)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=2) - own)


@lru_cache(maxsize=8)
def _gradient(model: TextTransformer) -> Any:
    """Loss and gradient, compiled once for all runs of a model, whatever their rates and seeds."""
    from stagescope.autodiff import jax

    return jax.jit(jax.value_and_grad(lambda params, data: cross_entropy(model, params, data["tokens"])))


@lru_cache(maxsize=8)
def _flat_gradient(model: TextTransformer, layout: Layout, precision: str) -> Any:
    from stagescope.autodiff import jax, jnp

    def flat(vector: Any, data: Any) -> Any:
        found = jax.grad(partial(cross_entropy, model))(layout.unpack(vector.astype(precision)), data["tokens"])
        return jnp.concatenate([found[name].ravel() for name in layout.names])

    return jax.jit(flat)


@lru_cache(maxsize=8)
def _attention(model: TextTransformer) -> Any:
    from stagescope.autodiff import jax

    return jax.jit(lambda params, tokens: model.forward(params, tokens)[1])
