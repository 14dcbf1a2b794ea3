"""Content-aware heads on sequences of a lagged chain: the mean cross-entropy of its targets [ISA:loss]."""

from typing import Any, Literal

import numpy as np

from stagescope.papers.incremental.loss import Found, LaggedLoss, Sequences
from stagescope.papers.incremental.students.content import ContentHeads
from stagescope.params import Params


class ContentLoss(LaggedLoss):
    """The loss of ContentHeads, by a kernel [ISA:loss]. See LaggedLoss for the choices.

    `precision` is that of the products inside the kernel; parameters, exponentials and sums over sequences are float64 in both.

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
        >>> student = ss.ContentHeads(vocab=3, heads=2, context=2, targets=4)
        >>> law = ss.ContentLoss(model=student, process=lagged, sequences=50)
        >>> print(f"{law.value(student.init(seed=0)):.2f}")  # ln 3 at a small start
        1.10
    """

    model: ContentHeads  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen
    precision: Literal["float32", "float64"] = "float64"

    def predict(self, params: Any, data: Any) -> Any:
        """Rows of W and V gathered by token and position, mixed by attention."""
        from stagescope.autodiff import jax, jnp

        model = self.model
        tokens, places = data["tokens"][:, : model.positions], np.arange(model.positions)
        asked = places[model.context - 1 :]
        rows = params["W"][:, tokens[:, asked]] + params["W"][:, None, model.vocab + asked]
        scores = jnp.take_along_axis(rows, tokens[None, :, None, :], axis=-1) + rows[..., model.vocab + places]
        attention = jax.nn.softmax(jnp.where(model.visible, scores / np.sqrt(model.inputs), -jnp.inf), axis=-1)
        values = jnp.swapaxes(params["V"], 1, 2)
        return jnp.einsum("hnts,hnsj->ntj", attention, values[:, tokens] + values[:, None, model.vocab + places])

    def _kernel(self, params: Params, on: Sequences, wanted: bool = True, gradient: bool = True) -> Found:
        from stagescope.papers.incremental.students.content_kernel import content_pass

        root = np.sqrt(self.model.inputs)
        queries = np.asarray(params["W"], dtype=float) / root
        values = np.swapaxes(np.asarray(params["V"], dtype=float), 1, 2)
        d_queries, d_values = np.full(queries.shape, np.nan), np.full(values.shape, np.nan)
        if not (np.isfinite(queries).all() and np.isfinite(values).all()):  # the kernel's exponential takes numbers only
            return np.nan, {"W": d_queries, "V": np.swapaxes(d_values, 1, 2)}
        cast = np.ascontiguousarray(values, dtype=self.precision)
        loss = content_pass(queries, cast, on.by_sequence, on.soft, self.model.context, gradient, d_queries, d_values)
        return loss, {"W": d_queries / root, "V": np.swapaxes(d_values, 1, 2)}
