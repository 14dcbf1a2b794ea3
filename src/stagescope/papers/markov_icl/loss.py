"""Exact losses on an infinite context: what the context of a chain shows is its stationary law. Models R, S and S3.

Softmax in layer 2 looks at a window of D lags. A context shows every window of D tokens with its stationary probability, so
layer 2 is an average over k^D windows, and levels are exact entropies.
"""

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from pydantic import model_validator

from stagescope.core.errors import InputError
from stagescope.core.memory import require_memory, require_work
from stagescope.core.params import Layout, Params
from stagescope.core.spec import Described
from stagescope.flow.by_kernel import ByKernel, Kernel
from stagescope.flow.field import Objective, OfModel, StepGradient, flat_gradient
from stagescope.papers.markov_icl.model import LinearMatch, SoftmaxMatch, TwoHeadMatch
from stagescope.papers.markov_icl.process import ChainPrior

BLOCKS = ("W", "v")


class InContext(OfModel, Described, Objective):
    """A model on sequences that each have a chain of their own; `order` is that of the chains it is about, 0 for any."""

    process: ChainPrior
    letters: ClassVar[Mapping[type, str]]
    order: ClassVar[int] = 0

    @property
    def letter(self) -> str:
        """R, S, S3, F or T."""
        return self.letters[type(self.model)]

    @property
    def multiplicity(self) -> Mapping[str, np.ndarray]:
        return getattr(self.model, "multiplicity", {})

    @model_validator(mode="after")
    def _fits(self) -> "InContext":
        if self.model.tokens != self.process.tokens:
            raise ValueError(f"the model has {self.model.tokens} tokens, the prior {self.process.tokens}; give both the same")
        if self.order and self.process.order != self.order:
            about = f"model {self.letter} is about chains of order {self.order}"
            raise ValueError(f"{about}, the prior has order {self.process.order}")
        self.check_room()
        return self

    def check_room(self) -> None:
        """Refuse tables that do not fit in memory, or take too long."""


class Exact(InContext, ByKernel):
    """An exact loss; steps of a descent see its gradient."""

    def step_gradient(self, layout: Layout) -> StepGradient:
        return flat_gradient(lambda params, _: self.grad(params), layout)


class LinearPopulation(Exact):
    """Model R: z_ij = a pi_j + b pi_i sum_d A_d (P^d)_ij, any number of lags [MIC:model-r].

    L = E_P sum_i pi_i sum_j P_ij (-log softmax(z_i)_j). With a whole W, z_i = sum_m W_im pi_m sum_d A_d (P^d)_m.
    """

    model: LinearMatch
    letters: ClassVar = {LinearMatch: "R"}
    order: ClassVar = 1

    def check_room(self) -> None:
        k = self.model.tokens
        require_memory("the powers of the chains", "take fewer lags, nodes or draws", self.model.lags, self.process.chains, k, k)

    @cached_property
    def tables(self) -> dict[str, np.ndarray]:
        """Weight of chain and token (C, k), P (C, k, k), and pi_i (P^d)_ij (D, C, k, k)."""
        process, pi = self.process, self.process.marginal
        powers = pi[:, :, None] * process.powers(self.model.lags)
        return {"mass": process.weights[:, None] * pi, "law": process.transitions, "powers": powers}

    @property
    def data(self) -> Any:
        return self.tables

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.flow.autodiff import jax, jnp

        mixed = jnp.tensordot(jax.nn.softmax(params["v"]), data["powers"], axes=1)
        predicted = jax.nn.log_softmax(jnp.einsum("im,cmj->cij", self.model.square(params["W"]), mixed), axis=-1)
        return -jnp.sum(data["mass"][:, :, None] * data["law"] * predicted)

    @cached_property
    def kernel(self) -> Kernel:
        from stagescope.papers.markov_icl.kernels import WEIGHTS, hold_reduced, reduced_gradient

        constants = hold_reduced(self.model.place_of_form, *(self.tables[name] for name in ("mass", "law", "powers")))
        return Kernel(reduced_gradient, constants, WEIGHTS, BLOCKS)


def digits(tokens: int, lags: int) -> np.ndarray:
    """Whether the token at a lag is i, for every window (k, k^D, D); the newest token is the last digit, at lag 0."""
    windows = np.arange(tokens**lags)
    by_lag = windows[:, None] // tokens ** np.arange(lags) % tokens
    return (by_lag[None] == np.arange(tokens)[:, None, None]).astype(float)


class WindowLoss(InContext):
    """What S and S3 share: windows of D tokens with their laws, and an average over them."""

    queries: ClassVar[str]

    def check_room(self) -> None:
        process, windows = self.process, self.process.tokens**self.model.lags
        require_memory("the windows", "take fewer lags", process.tokens, windows, self.model.lags)
        require_memory("the law of the windows", "take fewer lags or nodes", process.chains, windows)
        queries = windows if self.queries == "windows" else process.tokens
        require_work("one gradient", "take fewer lags or nodes", process.chains, windows, queries)

    @cached_property
    def tables(self) -> dict[str, np.ndarray]:
        """Tokens of the windows, their laws (C, k^(D-1), k), weights of chain and query, and the law of the next token."""
        process, k = self.process, self.process.tokens
        law, mass, after = process.windows(self.model.lags), process.marginal, process.bigrams
        if self.queries == "windows":
            mass, after = law, process.transitions[:, np.arange(law.shape[1]) % k**2]
        windows = law.reshape(len(law), -1, k)
        return {"digits": digits(k, self.model.lags), "windows": windows, "mass": process.weights[:, None] * mass, "next": after}

    @property
    def data(self) -> Any:
        return self.tables

    @abstractmethod
    def scores(self, params: Any, data: Any) -> Any:
        """What a query gives every window (queries, k^D), traceable by JAX."""

    def logs(self, params: Any, data: Any) -> Any:
        """log p(j|i) of every chain and query (C, queries, k), traceable by JAX."""
        from stagescope.flow.autodiff import jax, jnp

        scores = self.scores(params, data)
        weights = jnp.exp(scores - jax.lax.stop_gradient(jnp.max(scores, axis=1, keepdims=True)))
        sums = jnp.einsum("cwj,iwj->cij", data["windows"], weights.reshape(len(scores), -1, self.process.tokens))
        return jnp.log(sums) - jnp.log(jnp.sum(sums, axis=2, keepdims=True))

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.flow.autodiff import jnp

        return -jnp.sum(data["mass"][:, :, None] * data["next"] * self.logs(params, data))


class SoftmaxPopulation(Exact, WindowLoss):
    """Model S: p(j|i) = sum_w pi(w) e^{b h_i(w)} [x_s = j] / Z, h_i(w) = sum_d A_d [x_{s-d} = i] [MIC:model-s].

    At b = 0 it is the unigram estimator for every A; with A at lag 1 and b to infinity the bigram one.
    """

    model: SoftmaxMatch
    letters: ClassVar = {SoftmaxMatch: "S"}
    order: ClassVar = 1
    queries: ClassVar = "tokens"

    def scores(self, params: Any, data: Any) -> Any:
        from stagescope.flow.autodiff import jax

        return params["W"][0] * (data["digits"] @ jax.nn.softmax(params["v"]))

    def window_weights(self, params: Params) -> np.ndarray:
        """e^{b h_i} of every token and window (k, k^D), up to a factor in every row, of plain numbers."""
        scores = float(params["W"][0]) * (self.tables["digits"] @ self.model.attention(params))
        return np.exp(scores - scores.max(axis=1, keepdims=True))

    def log_laws(self, params: Params) -> np.ndarray:
        """log p(j|i) of every chain (C, k, k) as `logs`, of plain numbers."""
        weights, windows, k = self.window_weights(params), self.tables["windows"], self.process.tokens
        weights = weights.reshape(k, -1, k)
        sums = np.stack([windows[:, :, j] @ weights[:, :, j].T for j in range(k)], axis=2)
        with np.errstate(divide="ignore"):
            return np.log(sums) - np.log(sums.sum(axis=2, keepdims=True))

    @cached_property
    def kernel(self) -> Kernel:
        from stagescope.papers.markov_icl.kernels import WEIGHTS, hold_windows, window_gradient

        tables, windows = self.tables, self.tables["windows"].reshape(self.process.chains, -1)
        constants = hold_windows(self.process.tokens, self.model.lags, tables["mass"], tables["next"], windows)
        return Kernel(window_gradient, constants, WEIGHTS, BLOCKS)


class TwoHeadPopulation(WindowLoss):
    """Model S3 on chains of order 2: score b_1 <x_t, h1_s> + b_2 <h1_t, h2_s>, queries are windows too [MIC:model-s3]."""

    model: TwoHeadMatch
    letters: ClassVar = {TwoHeadMatch: "S3"}
    order: ClassVar = 2
    queries: ClassVar = "windows"

    def check_room(self) -> None:
        if self.model.lags < 3:
            raise InputError(f"model S3 has {self.model.lags} lags; it needs at least 3, since the second head looks at lag 2")
        super().check_room()

    def scores(self, params: Any, data: Any) -> Any:
        from stagescope.flow.autodiff import jax

        b = params["W"]
        first, second = (data["digits"] @ jax.nn.softmax(params["v"][head]) for head in range(2))
        return b[0] * data["digits"][:, :, 0].T @ first + b[1] * first.T @ second
