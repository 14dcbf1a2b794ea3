"""Exact losses on an infinite context: what the context of a chain shows is its stationary law. Models R, S and S3.

Softmax in layer 2 looks at a window of D lags. A context shows every window of D tokens with its stationary probability, so
layer 2 is an average over k^D windows, and levels are exact entropies.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import model_validator

from stagescope.errors import InputError
from stagescope.fields.field import Field, FlatField, StepGradient
from stagescope.fields.objective import Objective
from stagescope.fields.of_model import OfModel
from stagescope.fields.packed import flat_gradient
from stagescope.memory import require_memory, require_work
from stagescope.papers.markov_icl.model import LinearMatch, SoftmaxMatch, TwoHeadMatch
from stagescope.papers.markov_icl.process import ChainPrior
from stagescope.params import Layout, Params
from stagescope.spec import Described

BLOCKS = ("W", "v")


class InContext(OfModel, Described, Objective):
    """A model on sequences that each have a chain of their own."""

    process: ChainPrior

    @property
    def multiplicity(self) -> Mapping[str, np.ndarray]:
        return getattr(self.model, "multiplicity", {})

    @model_validator(mode="after")
    def _same_tokens(self) -> "InContext":
        if self.model.tokens != self.process.tokens:
            raise ValueError(f"the model has {self.model.tokens} tokens, the prior {self.process.tokens}; give both the same")
        return self

    def needs_order(self, order: int, name: str) -> None:
        """Refuse chains that the model is not about."""
        if self.process.order != order:
            raise ValueError(f"{name} is about chains of order {order}, the prior has order {self.process.order}")


@dataclass(frozen=True)
class Kernel:
    """`gradient(theta, out, held)`, what it reads beside the parameters, and where in that the weights of W and v are."""

    gradient: Callable[[np.ndarray, np.ndarray, np.ndarray], float]
    held: np.ndarray
    weights: slice


class ByKernel(InContext):
    """A loss whose value, gradient and field come from a Numba kernel; the JAX definition is what it is tested against."""

    @abstractmethod
    def kernel(self) -> Kernel | None:
        """The kernel with all it reads; None where the model has none, and its definition is what is computed."""

    @cached_property
    def _kernel(self) -> Kernel | None:
        return self.kernel()

    def value(self, params: Params) -> float:
        return super().value(params) if self._kernel is None else _found(self._kernel, params)[0]

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return super().grad(params) if self._kernel is None else _found(self._kernel, params)[1]

    def step_gradient(self, layout: Layout) -> StepGradient:
        """The gradient that a step of a descent sees."""
        return flat_gradient(lambda params, _: self.grad(params), layout)

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        """The kernel with everything but parameters bound; each has its own work space."""
        from stagescope.fields.direct import direct

        if self._kernel is None:
            return Field.flat(self.field(), layout, rates)
        if layout.names != BLOCKS:
            raise ValueError(f"the kernel reads blocks in the order W, v; got {', '.join(layout.names)}")
        held = self._kernel.held.copy()
        held[self._kernel.weights] = [-rates[name] for name in BLOCKS]
        return direct(self._kernel.gradient, layout.size, held)


def _found(kernel: Kernel, params: Params) -> tuple[float, dict[str, np.ndarray]]:
    """Loss and gradient."""
    layout = Layout.of({name: params[name] for name in BLOCKS})
    out = np.empty(layout.size)
    return kernel.gradient(layout.pack(params), out, kernel.held), layout.unpack(out)


class LinearPopulation(ByKernel):
    """Model R: z_ij = a pi_j + b pi_i sum_d A_d (P^d)_ij, any number of lags [MIC:model-r].

    L = E_P sum_i pi_i sum_j P_ij (-log softmax(z_i)_j). With a whole W, z_i = sum_m W_im pi_m sum_d A_d (P^d)_m.
    """

    model: LinearMatch

    @model_validator(mode="after")
    def _fits(self) -> "LinearPopulation":
        self.needs_order(1, "model R")
        try:
            shape = (self.model.lags, self.process.chains, self.model.tokens, self.model.tokens)
            require_memory("the powers of the chains", "take fewer lags, nodes or draws", *shape)
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

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
        from stagescope.autodiff import jax, jnp

        mixed = jnp.tensordot(jax.nn.softmax(params["v"]), data["powers"], axes=1)
        predicted = jax.nn.log_softmax(jnp.einsum("im,cmj->cij", self.model.square(params["W"]), mixed), axis=-1)
        return -jnp.sum(data["mass"][:, :, None] * data["law"] * predicted)

    def kernel(self) -> Kernel:
        from stagescope.papers.markov_icl.kernels import WEIGHTS, hold_reduced, reduced_gradient

        tables = self.tables
        return Kernel(
            reduced_gradient, hold_reduced(self.model.place_of_form, tables["mass"], tables["law"], tables["powers"]), WEIGHTS
        )


def digits(tokens: int, lags: int) -> np.ndarray:
    """Whether the token at a lag is i, for every window (k, k^D, D); the newest token is the last digit, at lag 0."""
    windows = np.arange(tokens**lags)
    at = windows[:, None] // tokens ** np.arange(lags) % tokens
    return (at[None] == np.arange(tokens)[:, None, None]).astype(float)


class WindowLoss(InContext):
    """What S and S3 share: windows of D tokens, with their laws."""

    @model_validator(mode="after")
    def _small(self) -> "WindowLoss":
        windows = self.process.tokens**self.model.lags
        try:
            require_memory("the windows", "take fewer lags", self.process.tokens, windows, self.model.lags)
            require_memory("the law of the windows", "take fewer lags or nodes", self.process.chains, windows)
            self._work(windows)
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    def _work(self, windows: int) -> None:
        require_work("one gradient", "take fewer lags or nodes", self.process.chains, windows, self.process.tokens)

    @cached_property
    def tables(self) -> dict[str, np.ndarray]:
        """Tokens of the windows, their laws (C, k^(D-1), k), weights of chain and state, and the law of the next token."""
        process, k = self.process, self.process.tokens
        law = process.windows(self.model.lags)
        return {
            "digits": digits(k, self.model.lags),
            "windows": law.reshape(len(law), -1, k),
            "mass": process.weights[:, None] * process.marginal,
            "next": process.bigrams,
        }

    @property
    def data(self) -> Any:
        return self.tables


class SoftmaxPopulation(ByKernel, WindowLoss):
    """Model S: p(j|i) = sum_w pi(w) e^{b h_i(w)} [x_s = j] / Z, h_i(w) = sum_d A_d [x_{s-d} = i] [MIC:model-s].

    At b = 0 it is the unigram estimator for every A; with A at lag 1 and b to infinity the bigram one.
    """

    model: SoftmaxMatch

    @model_validator(mode="after")
    def _order(self) -> "SoftmaxPopulation":
        self.needs_order(1, "model S")
        return self

    def logs(self, params: Any, data: Any) -> Any:
        """log p(j|i) of every chain (C, k, k), traceable by JAX."""
        from stagescope.autodiff import jax, jnp

        h = data["digits"] @ jax.nn.softmax(params["v"])
        weights = _weights(params["W"][0] * h).reshape(h.shape[0], -1, h.shape[0])
        sums = jnp.einsum("cwj,iwj->cij", data["windows"], weights)
        return jnp.log(sums) - jnp.log(jnp.sum(sums, axis=2, keepdims=True))

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jnp

        return -jnp.sum(data["mass"][:, :, None] * data["next"] * self.logs(params, data))

    def log_laws(self, params: Params) -> np.ndarray:
        """log p(j|i) of every chain (C, k, k) as `logs`, of plain numbers."""
        h = self.tables["digits"] @ self.model.attention(params)
        scores = float(params["W"][0]) * h
        weights = np.exp(scores - scores.max(axis=1, keepdims=True)).reshape(len(h), -1, len(h))
        windows = self.tables["windows"]
        sums = np.stack([windows[:, :, j] @ weights[:, :, j].T for j in range(len(h))], axis=2)
        with np.errstate(divide="ignore"):
            return np.log(sums) - np.log(sums.sum(axis=2, keepdims=True))

    def kernel(self) -> Kernel:
        from stagescope.papers.markov_icl.kernels import WEIGHTS, hold_windows, window_gradient

        tables, size = self.tables, (self.process.tokens, self.model.lags)
        windows = tables["windows"].reshape(self.process.chains, -1)
        return Kernel(window_gradient, hold_windows(*size, tables["mass"], tables["next"], windows), WEIGHTS)


class TwoHeadPopulation(WindowLoss):
    """Model S3 on chains of order 2: score b_1 <x_t, h1_s> + b_2 <h1_t, h2_s>, queries are windows too [MIC:model-s3]."""

    model: TwoHeadMatch

    @model_validator(mode="after")
    def _order(self) -> "TwoHeadPopulation":
        self.needs_order(2, "model S3")
        if self.model.lags < 3:
            raise ValueError(f"model S3 has {self.model.lags} lags; it needs at least 3, since the second head looks at lag 2")
        return self

    def _work(self, windows: int) -> None:
        require_work("one gradient", "take fewer lags or nodes", self.process.chains, windows, windows)

    @cached_property
    def tables(self) -> dict[str, np.ndarray]:
        process, count = self.process, self.process.tokens**self.model.lags
        law = process.windows(self.model.lags)
        after = process.transitions[:, np.arange(count) % process.tokens**2]
        shares = process.weights[:, None] * law
        return {
            "digits": digits(process.tokens, self.model.lags),
            "windows": law.reshape(len(law), -1, process.tokens),
            "mass": shares,
            "next": after,
        }

    def logs(self, params: Any, data: Any) -> Any:
        """log p(j|u) of every chain and query window (C, k^D, k), traceable by JAX."""
        from stagescope.autodiff import jax, jnp

        k, b = self.process.tokens, params["W"]
        first, second = (data["digits"] @ jax.nn.softmax(params["v"][head]) for head in range(2))
        current = data["digits"][:, :, 0]
        scores = b[0] * current.T @ first + b[1] * first.T @ second
        weights = _weights(scores).reshape(len(scores), -1, k)
        sums = jnp.einsum("cwj,uwj->cuj", data["windows"], weights)
        return jnp.log(sums) - jnp.log(jnp.sum(sums, axis=2, keepdims=True))

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jnp

        return -jnp.sum(data["mass"][:, :, None] * data["next"] * self.logs(params, data))


def _weights(scores: Any) -> Any:
    """exp(scores) over the windows, up to a factor in every row."""
    from stagescope.autodiff import jax, jnp

    return jnp.exp(scores - jax.lax.stop_gradient(jnp.max(scores, axis=1, keepdims=True)))
