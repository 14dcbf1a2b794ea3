"""The head model: focus and dilution under any coordinatewise optimiser, on few columns of queries and keys [FDA:head].

If every column of WQ and WK is x s_b and y s_b with s_b = 1 or -1, coordinatewise odd optimisers (Adam, sign, RMSprop,
momentum, gradient descent) keep it so. More generally r columns may each stand for mk / r, and n neurons each for m / n. What is
left is the same model with key width r, scores counted mk / r times and entry gradients of the whole model: an optimiser with an
eps of its own then moves it as it moves the whole model. There is no fitted constant.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import Field as Limits
from pydantic import SerializeAsAny

from stagescope.core.errors import InputError
from stagescope.core.memory import require_memory
from stagescope.core.params import Layout, Params
from stagescope.core.spec import Described
from stagescope.flow.descent import GD, Descent, HeavyBall
from stagescope.flow.field import FlatField, Found, Objective, StepGradient, flat_field, flat_gradient
from stagescope.papers.focus_dilution.loss import (
    Contexts,
    TokenCounts,
    TokenLoss,
    context_arrays,
    context_slopes,
    contexts_loss,
)
from stagescope.papers.focus_dilution.model import TokenAttention


class HeadModel(Described, Objective):
    """A loss of TokenAttention on the invariant set WQ = x s^T, WK = y s^T, in the few columns that are left [FDA:head].

    Blocks are W0 (d, n), W1 (n, d), WQ and WK (n, r). A column of WQ or WK stands for mk / r equal ones, a neuron for m / n, so
    Phi = scale (mk / r) (m / n)^2 (W0 WQ)(W0 WK)^T and logits = (m / n) A W0 W1. Gradients are those of one entry of the whole
    model. With r = mk and n = m it is the whole model.

    Args:
        law: the loss of the whole model, in long contexts, finite or sampled ones.
        columns: r.
        neurons: n; None takes the width of the model.

    Examples:
        >>> from stagescope.papers.focus_dilution.head_model import HeadModel
        >>> whole = ss.TokenPopulation(model=model, process=chain)
        >>> HeadModel(law=whole).shapes
        {'W0': (3, 4), 'W1': (4, 3), 'WQ': (4, 1), 'WK': (4, 1)}
    """

    law: SerializeAsAny[TokenLoss]
    columns: int = Limits(default=1, ge=1)
    neurons: int | None = Limits(default=None, ge=1)

    @property
    def process(self) -> Any:
        return self.law.process

    @cached_property
    def copies(self) -> tuple[float, float]:
        """How many neurons, and how many columns of queries and keys, one of them stands for."""
        width, keys = self.law.model.shapes["WQ"]
        return width / (self.neurons or width), keys / self.columns

    @cached_property
    def model(self) -> TokenAttention:
        """The attention whose scores are those of the whole model."""
        model, (neurons, columns) = self.law.model, self.copies
        width = self.neurons or model.width
        return TokenAttention(vocab=model.vocab, width=width, key_width=self.columns, scale=model.scale * columns * neurons**2)

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return self.model.axes

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        return self.model.shapes

    @cached_property
    def _counts(self) -> dict[str, float]:
        neurons, columns = self.copies
        return {"W0": neurons, "W1": neurons, "WQ": neurons * columns, "WK": neurons * columns}

    @property
    def multiplicity(self) -> Mapping[str, np.ndarray]:
        return {name: np.array(count) for name, count in self._counts.items()}

    @cached_property
    def contexts(self) -> Contexts:
        """The contexts of the loss; infinitely long ones have the counts pi and the joint law of last and next token."""
        if isinstance(self.law, TokenCounts):
            return self.law.contexts
        pi, d = self.process.stationary, self.process.vocab
        return Contexts.of(np.tile(pi, (d, 1)), np.arange(d), pi[:, None] * self.process.transition)

    def minibatch(self, step: int) -> Contexts | None:
        """The contexts that one step of the run sees, None where it sees all."""
        return self.law.minibatch(step) if isinstance(self.law, TokenCounts) else None

    @cached_property
    def _arrays(self) -> Any:
        return self.contexts.arrays()

    @property
    def data(self) -> Any:
        return self._arrays

    def draw(self, step: int) -> Any:
        batch = self.minibatch(step)
        return None if batch is None else context_arrays(batch.counts.T, batch.query, batch.weights.T)

    def loss(self, params: Any, data: Any) -> Any:
        return contexts_loss(self.model.scale, {**params, "W1": self.copies[0] * params["W1"]}, data)

    def slopes(self, params: Params, contexts: Contexts | None = None) -> tuple[float, np.ndarray, np.ndarray]:
        """The loss, dL/dPhi and dL/dM for M = (m / n) W0 W1."""
        logits = self.copies[0] * params["W0"] @ params["W1"]
        return context_slopes(self.model.scores(params), logits, contexts or self.contexts)

    def kernel(self, params: Params, contexts: Contexts | None = None) -> Found:
        """The loss and its gradient in one entry of each block of the whole model."""
        w0, w1, wq, wk = (np.asarray(params[name], dtype=float) for name in ("W0", "W1", "WQ", "WK"))
        loss, d_scores, d_logits = self.slopes(params, contexts)
        counts, scale = self._counts, self.model.scale
        d_query, d_key = scale * d_scores @ (w0 @ wk), scale * d_scores.T @ (w0 @ wq)
        d_w0 = d_logits @ w1.T + (d_query @ wq.T + d_key @ wk.T) / counts["W0"]
        columns = counts["WQ"]
        return loss, {"W0": d_w0, "W1": w0.T @ d_logits, "WQ": w0.T @ d_query / columns, "WK": w0.T @ d_key / columns}

    def value(self, params: Params) -> float:
        return self.slopes(params)[0]

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self.kernel(params)[1]

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        return flat_field(self.kernel, layout, rates)

    def step_gradient(self, layout: Layout) -> StepGradient:
        """The gradient that a step of a descent sees."""
        return flat_gradient(lambda params, step: self.kernel(params, self.minibatch(step))[1], layout)

    @cached_property
    def origin(self) -> np.ndarray:
        """G = -dL/dM at the origin: pi (pi - 1/d)^T in long contexts."""
        return -self.slopes({name: np.zeros(shape) for name, shape in self.shapes.items()})[2]

    @cached_property
    def condensing(self) -> tuple[np.ndarray, np.ndarray, float]:
        """The top singular vectors of G, the left one with a positive sum, and sv_2 / sv_1 of G."""
        left, values, right = np.linalg.svd(self.origin)
        sign = 1.0 if left[:, 0].sum() >= 0 else -1.0
        return sign * left[:, 0], sign * right[0], float(values[1] / max(values[0], np.finfo(float).tiny))

    def start(self, params: Params, normalised: bool = True) -> dict[str, np.ndarray]:
        """The start of the head model that belongs to one of the whole model.

        One column is the projection on the direction in which all columns align, s = sign(al^T WQ + nu^T WK) where steps are
        `normalised`, without signs where they are gradients. Several columns are the first ones of the start.
        """
        if self.neurons not in (None, self.law.model.width):
            raise InputError("a start has as many neurons as the model; `mean_start` makes one for other numbers")
        blocks = {name: np.asarray(params[name], dtype=float) for name in ("W0", "W1", "WQ", "WK")}
        keys = blocks["WQ"].shape[1]
        if self.columns > 1:
            return {**blocks, **{name: blocks[name][:, : self.columns].copy() for name in ("WQ", "WK")}}
        al = self.alignment(params, normalised)
        nu = blocks["W0"].T @ self.offsets(params, al)
        side = al @ blocks["WQ"] + (np.sign(nu) if normalised else nu * np.linalg.norm(al) / np.linalg.norm(nu)) @ blocks["WK"]
        side = np.sign(side) if normalised else side * np.sqrt(keys) / np.linalg.norm(side)
        return {**blocks, **{name: (blocks[name] @ side / keys)[:, None] for name in ("WQ", "WK")}}

    def alignment(self, params: Params, normalised: bool = True) -> np.ndarray:
        """al (m,): the direction in which the embedding condenses, of signs where steps are normalised [FDA:signs].

        X = W0^T u and Y = W1 v grow by X' = |u|_1 sign Y, Y' = |v|_1 sign X for each neuron by itself, u v^T = G / |G|: each ends
        with the sign of |v|_1 X + |u|_1 Y. Under gradient flow X' = Y, Y' = X.
        """
        left, right, _ = self.condensing
        x, y = params["W0"].T @ left, params["W1"] @ right
        return np.sign(np.abs(right).sum() * x + np.abs(left).sum() * y) if normalised else x + y

    def offsets(self, params: Params, al: np.ndarray) -> np.ndarray:
        """v_j = pi_j (gamma_j - pi.gamma) with gamma = W0 al: what drives keys once embeddings have condensed."""
        pi, gamma = self.process.stationary, params["W0"] @ al
        return pi * (gamma - pi @ gamma)

    def mean_start(self, sigma: float, seed: int = 0) -> dict[str, np.ndarray]:
        """A start like the mean of random ones: `neurons` with exact first and second moments of W0 and W1.

        x = q al and y = q nu with q = sigma / sqrt(m pi_circle): the mean size of a projection on the side of its own sign.
        """
        n, d, width = self.model.width, self.process.vocab, self.law.model.width
        if n < 2 * d:
            raise InputError(f"{n} neurons are too few for exact moments of {d} tokens; take at least {2 * d}")
        require_memory(f"a mean start of {n:,} neurons", "take fewer", n, 2 * d)
        noise = np.random.default_rng(seed).normal(size=(n, 2 * d))
        noise -= noise.mean(axis=0)
        values, vectors = np.linalg.eigh(noise.T @ noise / n)
        noise = sigma * noise @ vectors @ np.diag(values**-0.5) @ vectors.T
        blocks = {"W0": np.ascontiguousarray(noise[:, :d].T), "W1": np.ascontiguousarray(noise[:, d:])}
        al = self.alignment(blocks)
        nu = np.sign(blocks["W0"].T @ self.offsets(blocks, al))
        size = sigma / np.sqrt(np.pi * width)
        return {**blocks, "WQ": np.tile((size * al)[:, None], self.columns), "WK": np.tile((size * nu)[:, None], self.columns)}


def normalised(dynamics: Any) -> bool:
    """Whether steps divide each entry by a function of its own history, so that the columns of heads align in signs."""
    return isinstance(dynamics, Descent) and not isinstance(dynamics.optimizer, GD | HeavyBall)
