"""Focus and dilution on contexts of finite length: a context enters only through its counts and its last token."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.fields.field import FlatField, flat_field
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenLoss
from stagescope.params import Layout, Params

Steps = Callable[[np.ndarray, np.ndarray, int, int], int]
"""(parameters, momentum buffer, first step, how many) -> steps that stayed finite; both vectors are changed in place."""


@dataclass(frozen=True)
class Contexts:
    """Contexts sorted by their query: `counts` (d, S), those of query i from `starts[i]` to `starts[i + 1]`, and
    `weights` (d, S), the joint probability of a context and the token after it."""

    counts: np.ndarray
    weights: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, counts: np.ndarray, query: np.ndarray, weights: np.ndarray) -> "Contexts":
        """From rows (S, d) in any order."""
        order = np.argsort(query, kind="stable")
        starts = np.searchsorted(query[order], np.arange(counts.shape[1] + 1))
        return cls(np.ascontiguousarray(counts[order].T, dtype=float), np.ascontiguousarray(weights[order].T), starts)

    @cached_property
    def mass(self) -> np.ndarray:
        """The probability of each context (S,)."""
        return self.weights.sum(axis=0)

    @property
    def query(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.counts)), np.diff(self.starts))

    def arrays(self) -> dict[str, Any]:
        """What the JAX definition reads, one context a row; a token that is absent has log count -inf, attention zero."""
        return context_arrays(self.counts.T, self.query, self.weights.T)


def context_arrays(counts: np.ndarray, query: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
    """The data of `contexts_loss`."""
    from stagescope.autodiff import jnp

    with np.errstate(divide="ignore"):
        logs = np.log(counts)
    return {"log_counts": jnp.asarray(logs), "query": jnp.asarray(query), "weights": jnp.asarray(weights)}


def contexts_loss(scale: float, params: Any, data: Any) -> Any:
    """- sum_(n,i) sum_k p(n, i, k) log softmax(A(n, i) W0 W1)_k with A_j ~ n_j exp(Phi_ij), in JAX [FD:finite]."""
    from stagescope.autodiff import jax, jnp

    w0 = params["W0"]
    scores = scale * (w0 @ params["WQ"]) @ (w0 @ params["WK"]).T
    attention = jax.nn.softmax(scores[data["query"]] + data["log_counts"], axis=1)
    predicted = jax.nn.log_softmax(attention @ (w0 @ params["W1"]), axis=1)
    return -jnp.sum(data["weights"] * predicted)


def _slopes(scores: np.ndarray, logits: np.ndarray, contexts: Contexts) -> tuple[float, np.ndarray, np.ndarray]:
    """The loss and its derivatives in Phi and M = W0 W1."""
    from stagescope.papers.focus_dilution.counts_kernel import context_loss

    d_scores, d_logits = np.empty_like(scores), np.empty_like(logits)
    arrays = (contexts.counts, contexts.weights, contexts.mass, contexts.starts)
    return context_loss(*arrays, scores, logits, d_scores, d_logits), d_scores, d_logits


class TokenCounts(TokenLoss):
    """L = - sum_(n,i) sum_k p(n, i, k) log softmax(A(n, i) W0 W1)_k with A_j ~ n_j exp(Phi_ij) [FD:finite].

    A subclass gives the contexts, and a minibatch of them for each step where it is stochastic.
    """

    @cached_property
    @abstractmethod
    def contexts(self) -> Contexts:
        """The contexts that `value` and `grad` are over."""

    def minibatch(self, step: int) -> Contexts | None:
        """The contexts of one step, None where every step sees all of them."""
        return None

    @cached_property
    def _arrays(self) -> Any:
        return self.contexts.arrays()

    @property
    def data(self) -> Any:
        return self._arrays

    def draw(self, step: int) -> Any:
        batch = self.minibatch(step)
        return None if batch is None else batch.arrays()

    def loss(self, params: Any, data: Any) -> Any:
        return contexts_loss(self.model.scale, params, data)

    def value(self, params: Params) -> float:
        return self._kernel(params, self.contexts)[0]

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self._kernel(params, self.contexts)[1]

    def slopes(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        """GM = dL/dM for M = W0 W1, and GP = scale dL/dPhi, as in the reduced family."""
        found = _slopes(self.model.scores(params), params["W0"] @ params["W1"], self.contexts)
        return found[2], self.model.scale * found[1]

    def _kernel(self, params: Params, contexts: Contexts) -> tuple[float, dict[str, np.ndarray]]:
        """The kernel's derivatives in Phi and M = W0 W1, taken back to the four blocks."""
        w0, w1, wq, wk = (np.asarray(params[name], dtype=float) for name in BLOCKS)
        query, key, scale = w0 @ wq, w0 @ wk, self.model.scale
        loss, d_scores, d_logits = _slopes(scale * query @ key.T, w0 @ w1, contexts)
        d_query, d_key = scale * d_scores @ key, scale * d_scores.T @ query
        d_w0 = d_logits @ w1.T + d_query @ wq.T + d_key @ wk.T
        return loss, {"W0": d_w0, "W1": w0.T @ d_logits, "WQ": w0.T @ d_query, "WK": w0.T @ d_key}

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        return flat_field(lambda params: self._kernel(params, self.contexts), layout, rates)

    def fused(self, layout: Layout, decay: float, lr: Mapping[str, float]) -> Steps:
        """Steps with the kernel: memory <- decay memory + gradient, theta_b <- theta_b - lr_b memory_b."""
        rates = layout.pack({name: np.full(shape, lr[name]) for name, shape in layout.shapes})

        @np.errstate(over="ignore", invalid="ignore")  # a divergence is reported once, as the outcome
        def steps(theta: np.ndarray, memory: np.ndarray, first: int, count: int) -> int:
            for done in range(count):
                batch = self.minibatch(first + done)
                found = self._kernel(layout.unpack(theta), self.contexts if batch is None else batch)[1]
                memory *= decay
                memory += layout.pack(found)
                theta -= rates * memory
                if not np.max(np.abs(theta)) < 1e15:  # a parameter beyond this has diverged
                    return done
            return count

        return steps
