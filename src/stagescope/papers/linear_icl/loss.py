"""Losses of linear attention on in-context regression: exact, D x D arithmetic [LIN:loss], or on fresh batches [LIN:sampled]."""

from functools import cached_property
from typing import Any

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.core.memory import require_memory
from stagescope.core.params import Layout, Params, key
from stagescope.core.spec import Described, Seed
from stagescope.flow.by_kernel import ByKernel, Kernel, OnBatches
from stagescope.flow.field import GradientField, Objective, OfModel, StepGradient, flat_gradient
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask


class HalfDescent(GradientField):
    """theta' = -grad(loss)/2: the flow of half the squared error, whose laws have no factor 2; the loss is reported whole."""

    def law(self, params: Any, data: Any) -> Any:
        return {name: value / 2 for name, value in super().law(params, data).items()}

    def rhs(self, params: Params) -> dict[str, np.ndarray]:
        return {name: value / 2 for name, value in super().rhs(params).items()}


class LinearLoss(OfModel, Described, Objective):
    """What the exact and the sampled loss share: the model on the task, and the flow of half the loss [LIN:flow]."""

    model: LinearAttention
    process: RegressionTask

    @model_validator(mode="after")
    def _fits(self) -> "LinearLoss":
        if self.model.dim != self.process.dim:
            raise ValueError(f"the model has {self.model.dim} directions and the task {self.process.dim}; make them equal")
        return self

    @property
    def task(self) -> RegressionTask:
        """The task with the lengths of contexts that this loss sees."""
        return self.process

    def field(self) -> HalfDescent:
        return HalfDescent(self)


class LinearPopulation(LinearLoss, ByKernel):
    """E (y_q - yhat)^2 = tr Lambda - 2 tr(Lambda^2 M) + tr(M Lambda M^T E[hatLambda^2]) [LIN:loss]."""

    @property
    def data(self) -> Any:
        return {"spectrum": self.process.spectrum, "second": self.process.second}

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.flow.autodiff import jnp

        attention, spectrum = attention_map(params, self.model.merged), data["spectrum"]
        quadratic = jnp.sum(data["second"][:, None] * attention**2 * spectrum)
        return jnp.sum(spectrum) - 2 * jnp.sum(spectrum**2 * jnp.diagonal(attention)) + quadratic

    @cached_property
    def kernel(self) -> Kernel:
        """It writes the velocity at unit rates, which is half of the gradient downwards."""
        from stagescope.papers.linear_icl.kernels import RATES, hold, velocity

        constants = hold(self.model.heads, self.model.rank or 0, self.process.spectrum, self.process.second)
        return Kernel(velocity, constants, RATES, ("v", "U", "U") if self.model.merged else ("v", "K", "Q"), writes=-0.5)


def attention_map(params: Any, merged: bool) -> Any:
    """M as a JAX expression."""
    from stagescope.flow.autodiff import jnp

    if merged:
        return jnp.einsum("h,hij->ij", params["v"], params["U"])
    return jnp.einsum("h,hri,hrj->ij", params["v"], params["K"], params["Q"])


Random = np.random.Generator


def draw_sequences(task: RegressionTask, random: Random, count: int) -> dict[str, np.ndarray]:
    """beta, x_q (count, D) and y_q (count,) of `count` sequences, each of its own length and weights [LIN:task]."""
    roots = np.sqrt(task.spectrum)
    weights, query = random.normal(size=(count, task.dim)), roots * random.normal(size=(count, task.dim))
    lengths = random.choice(np.array(task.contexts), size=count)
    inputs = roots * random.normal(size=(count, max(task.contexts), task.dim))
    answers = np.einsum("snd,sd->sn", inputs, weights) * (np.arange(max(task.contexts)) < lengths[:, None])
    beta = np.einsum("sn,snd->sd", answers, inputs) / lengths[:, None]
    return {"beta": beta, "query": query, "answer": np.einsum("sd,sd->s", weights, query)}


class LinearSampled(LinearLoss, OnBatches):
    """Mean of (y_q - yhat)^2 over `batch` new sequences at every step [LIN:sampled].

    `value` and `grad`, and so the recorded loss, are those of all sequences. `length` replaces the lengths of the task.
    """

    batch: int = Limits(default=256, ge=1)
    seed: Seed = 0
    length: int | None = Limits(default=None, ge=1)

    @model_validator(mode="after")
    def _room(self) -> "LinearSampled":
        require_memory("a batch", "take fewer sequences", self.batch, max(self.task.contexts), self.process.dim)
        return self

    @property
    def task(self) -> RegressionTask:
        if self.length is None:
            return self.process
        return RegressionTask(eigenvalues=self.process.eigenvalues, contexts=(self.length,))

    @cached_property
    def limit(self) -> LinearPopulation:
        """The loss of all sequences."""
        return LinearPopulation(model=self.model, process=self.task)

    @property
    def data(self) -> Any:
        return self.draw(0)

    def draw(self, step: int) -> dict[str, np.ndarray]:
        return draw_sequences(self.task, key(self.seed, "batch", step), self.batch)

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.flow.autodiff import jnp

        answers = jnp.einsum("si,ij,sj->s", data["beta"], attention_map(params, self.model.merged), data["query"])
        return jnp.mean((data["answer"] - answers) ** 2)

    def step_gradient(self, layout: Layout) -> StepGradient:
        """Half of the gradient that a step sees: the push G of its batch in place of the mean one [LIN:flow]."""
        return flat_gradient(lambda params, step: self._descend(params, self.draw(step)), layout)

    def _descend(self, params: Params, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        missed = data["answer"] - np.einsum("si,ij,sj->s", data["beta"], self.model.map(params), data["query"])
        push = np.einsum("s,si,sj->ij", missed, data["beta"], data["query"]) / len(missed)
        v = np.asarray(params["v"])
        if self.model.merged:
            return {"v": -np.einsum("hij,ij->h", params["U"], push), "U": -v[:, None, None] * push}
        keys, queries = params["K"], params["Q"]
        turned = np.einsum("ij,hrj->hri", push, queries)
        back = np.einsum("ij,hri->hrj", push, keys)
        value = np.einsum("hri,hri->h", keys, turned)
        return {"v": -value, "K": -v[:, None, None] * turned, "Q": -v[:, None, None] * back}
