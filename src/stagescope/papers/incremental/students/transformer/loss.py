"""The transformer on sequences of a lagged chain: the mean cross-entropy of its targets [ISA:loss]."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

import numpy as np

from stagescope.keys import key
from stagescope.papers.incremental.loss import Found, LaggedLoss, Sequences
from stagescope.papers.incremental.students.transformer.model import Transformer
from stagescope.papers.incremental.students.transformer.parts import Room
from stagescope.papers.incremental.students.transformer.passes import (
    block_size,
    chunk_size,
    has_table,
    kept_entries,
    transformer_pass,
)
from stagescope.params import Params

CHUNK = 1000
"""Sequences that pass through the definition at once: their activations stay small, whatever the batch."""


class TransformerLoss(LaggedLoss):
    """The loss of Transformer [ISA:loss]. See LaggedLoss for the choices.

    `engine` is how it is computed: by a `kernel` of Numba and BLAS, or by `jax`, the compiled definition, as in runs of version
    0.1.0, whose specs do not name it. `precision` is that of the whole pass; parameters and the optimiser's memory are float64
    in both. Each step drops other parts of the stream, by keys of (seed, step) and the row (kernel) or the chunk (jax), so a
    resumed run drops the same; `value` and `grad` drop nothing.

    Args:
        model: the student.
        process: the chain that it learns.
        sequences: how many sequences are drawn.
        seed: of the draw.
        labels: "hard", the tokens drawn, or "soft", the true law of each.
        batch: sequences in a step of a descent; None takes all.
        fresh: draw new sequences for every step.
        part: "train" or "held-out": two samples of one seed.
        watched: sequences on which the recorded loss is taken.
        precision: of the whole pass.
        engine: "jax" or "kernel".

    Examples:
        >>> student = ss.Transformer(vocab=3, heads=1, context=2, targets=2, width=4, mlp=0, dropout=0)
        >>> law = ss.TransformerLoss(model=student, process=lagged, sequences=8, engine="kernel")
        >>> law.value(student.init(seed=0)) > 0
        True
    """

    model: Transformer  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen
    precision: Literal["float32", "float64"] = "float32"
    engine: Literal["jax", "kernel"] = "jax"

    def _largest(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        yield from super()._largest()
        model, kernel, count = self.model, self.engine == "kernel", max(self.sequences, self.batch or 1)
        chunk = min(chunk_size(model, count) if kernel else CHUNK, count)
        rows = model.positions if model.layers > 1 else model.targets
        narrower = "take a smaller width, shorter spans or less padding"
        if not kernel or has_table(model, count):
            pairs = (model.vocab, model.positions, model.width)
            yield "the inputs of the first layer", narrower, (model.heads, *pairs) if kernel else pairs
        yield "the stream", narrower, (chunk, rows, max(model.width, model.mlp))
        block = min(block_size(model, count), count) if kernel else chunk
        yield "the attention", "take fewer heads, shorter spans or less padding", (model.heads, block, rows, model.positions)

    def predict(self, params: Any, data: Any) -> Any:
        cast = {name: block.astype(self.precision) for name, block in params.items()}
        return self.model.forward(cast, data["tokens"][:, : self.model.positions], data.get("kept"))[0]

    def draw(self, step: int) -> Any:
        """The data of one step; with dropout every step has its own, also where it sees all sequences."""
        batch = super().draw(step)
        kept = self._kept(step, 0, self.batch or self.sequences) if self.engine == "jax" else self._kept_rows(step)
        return batch if kept is None else {**(self.all.arrays() if batch is None else batch), "kept": kept}

    def _kept(self, step: int, chunk: int, sequences: int) -> tuple[np.ndarray, ...] | None:
        return self.model.draw_kept(key(self.seed, "dropout", step, chunk), sequences)

    def _kept_rows(self, step: int) -> tuple[np.ndarray, ...] | None:
        keys = self._keys(step)
        return None if keys is None else kept_entries(self.model, keys, self.batch or self.sequences)

    def _keys(self, step: int) -> np.ndarray | None:
        """Keys of the kernel's dropout, one for each part of the stream."""
        parts = self.model.layers * self.model.parts
        return key(self.seed, "dropout", step).integers(2**64, size=parts, dtype=np.uint64) if self.model.dropout else None

    @cached_property
    def _room(self) -> Room:
        return Room(self.precision)

    @cached_property
    def _compiled(self) -> tuple[Any, Any]:
        from stagescope.autodiff import jax

        return jax.jit(self.loss), jax.jit(jax.value_and_grad(self.loss))

    def _kernel(self, params: Params, on: Sequences, wanted: bool = True, gradient: bool = True) -> Found:
        if self.engine == "jax":
            return self._chunks(params, on, None, gradient)
        return transformer_pass(self.model, params, on, self._room, gradient=gradient)

    def _step_gradient(self, params: Params, step: int) -> dict[str, np.ndarray]:
        batch = self.minibatch(step)
        on = self.all if batch is None else batch
        if self.engine == "jax":
            return self._chunks(params, on, step)[1]
        return transformer_pass(self.model, params, on, self._room, self._keys(step))[1]

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
