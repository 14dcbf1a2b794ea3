"""Positional heads on sequences of a lagged chain or on windows of a text: the mean cross-entropy [ISA:loss]."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from stagescope.papers.incremental.loss import Found, LaggedLoss, SequenceLoss, Sequences
from stagescope.papers.incremental.students.positional import PositionalHeads
from stagescope.params import Params


class HeadsKernel(SequenceLoss):
    """The loss of PositionalHeads on any sequences, by a kernel [ISA:loss].

    `precision` is that of the steps of a descent: of logits, residuals and their sums over sequences. Parameters, sums over
    heads, `value`, `grad` and all that is read of a run are float64 in both.
    """

    model: PositionalHeads  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen
    precision: Literal["float32", "float64"] = "float64"

    def predict(self, params: Any, data: Any) -> Any:
        """Rows of V gathered by token, mixed by attention."""
        from stagescope.autodiff import jax, jnp

        attention = jax.nn.softmax(jnp.where(self.model.visible, params["a"], -jnp.inf), axis=-1)
        rows = jnp.swapaxes(params["V"], 1, 2)[:, data["tokens"][:, : self.model.positions]]
        return jnp.einsum("hts,hnsj->ntj", attention, rows)

    def _kernel(self, params: Params, on: Sequences, wanted: bool = True, gradient: bool = True) -> Found:
        """The kernel's derivatives in attention and values, taken back through the softmax. Only steps do without the loss."""
        from stagescope.papers.incremental.students.positional_kernel import heads_pass

        attention = self.model.attention(params)
        values = np.ascontiguousarray(np.swapaxes(np.asarray(params["V"], dtype=float), 1, 2))
        if not (np.isfinite(attention).all() and np.isfinite(values).all()):  # the kernel's exponential takes numbers only
            return np.nan, {"a": np.full_like(attention, np.nan), "V": np.full_like(values, np.nan)}
        cast = values if wanted else values.astype(self.precision)
        loss, d_attention, d_values = heads_pass(attention, cast, on, self.model.context, wanted, gradient)
        centred = d_attention - np.sum(attention * d_attention, axis=-1, keepdims=True)
        return loss, {"a": attention * centred, "V": np.swapaxes(d_values, 1, 2)}


class HeadsLoss(HeadsKernel, LaggedLoss):  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen
    """On sequences of a lagged chain. See LaggedLoss for the choices.

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
        precision: of the products in the kernel.

    Examples:
        >>> student = ss.PositionalHeads(vocab=3, heads=2, context=2, targets=4)
        >>> law = ss.HeadsLoss(model=student, process=lagged, sequences=50)
        >>> print(f"{law.value(student.init(seed=0)):.2f}")
        1.10
    """

    def _largest(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        yield from super()._largest()
        size = (self.model.positions, self.model.vocab, self.model.vocab)
        yield "the work space of the heads", "take shorter spans, less padding or a smaller vocabulary", size
