"""The transformer on sequences of a lagged chain: the mean cross-entropy of its targets [ISA:loss]."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

import numpy as np

from stagescope.keys import key
from stagescope.papers.incremental.loss import Found, LaggedLoss, Sequences
from stagescope.papers.incremental.students.transformer import Transformer
from stagescope.params import Params

CHUNK = 1000
"""Sequences that pass through the transformer at once: their activations stay small, whatever the batch."""


class TransformerLoss(LaggedLoss):
    """The loss of Transformer, compiled by JAX [ISA:loss]. See LaggedLoss for the choices.

    `precision` is that of the whole pass; parameters and the optimiser's memory are float64 in both. Each step drops other parts
    of the stream, by keys of (seed, step, chunk), so a resumed run drops the same; `value` and `grad` drop nothing.
    """

    model: Transformer  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen
    precision: Literal["float32", "float64"] = "float32"

    def _largest(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        yield from super()._largest()
        model, chunk = self.model, min(CHUNK, max(self.sequences, self.batch or 1))
        rows = model.positions if model.layers > 1 else model.targets
        narrower = "take a smaller width, shorter spans or less padding"
        yield "the inputs of the first layer", narrower, (model.vocab, model.positions, model.width)
        yield "the stream", narrower, (chunk, rows, max(model.width, model.mlp))
        yield "the attention", "take fewer heads, shorter spans or less padding", (model.heads, chunk, rows, model.positions)

    def predict(self, params: Any, data: Any) -> Any:
        cast = {name: block.astype(self.precision) for name, block in params.items()}
        return self.model.forward(cast, data["tokens"][:, : self.model.positions], data.get("kept"))[0]

    def draw(self, step: int) -> Any:
        """The data of one step; with dropout every step has its own, also where it sees all sequences."""
        batch = super().draw(step)
        kept = self._kept(step, 0, self.batch or self.sequences)
        return batch if kept is None else {**(self.all.arrays() if batch is None else batch), "kept": kept}

    def _kept(self, step: int, chunk: int, sequences: int) -> tuple[np.ndarray, ...] | None:
        return self.model.draw_kept(key(self.seed, "dropout", step, chunk), sequences)

    @cached_property
    def _compiled(self) -> tuple[Any, Any]:
        from stagescope.autodiff import jax

        return jax.jit(self.loss), jax.jit(jax.value_and_grad(self.loss))

    def _kernel(self, params: Params, on: Sequences, wanted: bool = True, gradient: bool = True) -> Found:
        return self._chunks(params, on, None, gradient)

    def _step_gradient(self, params: Params, step: int) -> dict[str, np.ndarray]:
        batch = self.minibatch(step)
        return self._chunks(params, self.all if batch is None else batch, step)[1]

    def _chunks(self, params: Params, on: Sequences, step: int | None, gradient: bool = True) -> Found:
        """Chunk by chunk, summed in float64."""
        from stagescope.autodiff import jnp

        value, both = self._compiled
        cast = {name: jnp.asarray(block, self.precision) for name, block in params.items()}
        total, sums = 0.0, {name: np.zeros(np.shape(block)) for name, block in params.items()}
        count = on.tokens.shape[1]
        for number, first in enumerate(range(0, count, CHUNK)):
            part = on.take(slice(first, first + CHUNK))
            data = part.arrays()
            if step is not None:
                data["kept"] = self._kept(step, number, part.tokens.shape[1])
            share = part.tokens.shape[1] / count
            loss, grads = both(cast, data) if gradient else (value(cast, data), {})
            total += share * float(loss)
            for name, block in grads.items():
                sums[name] += share * np.asarray(block, dtype=float)
        return total, sums
