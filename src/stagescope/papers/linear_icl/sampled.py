"""Linear attention on sampled sequences: steps on fresh batches [LIN:sampled]."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.errors import InputError
from stagescope.fields.field import FlatField, StepGradient, flat_gradient
from stagescope.keys import key
from stagescope.memory import require_memory
from stagescope.papers.linear_icl.loss import LinearLoss, LinearPopulation, attention_map
from stagescope.papers.linear_icl.process import RegressionTask
from stagescope.params import Layout, Params

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


class LinearSampled(LinearLoss):
    """Mean of (y_q - yhat)^2 over `batch` new sequences at every step [LIN:sampled].

    `value` and `grad`, and so the recorded loss, are those of all sequences. `length` replaces the lengths of the task.
    """

    batch: int = Limits(default=256, ge=1)
    seed: int = Limits(default=0, ge=0, lt=2**63)
    length: int | None = Limits(default=None, ge=1)

    @model_validator(mode="after")
    def _room(self) -> "LinearSampled":
        try:
            require_memory("a batch", "take fewer sequences", self.batch, max(self.task.contexts), self.process.dim)
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def task(self) -> RegressionTask:
        if self.length is None:
            return self.process
        return RegressionTask(eigenvalues=self.process.eigenvalues, contexts=(self.length,))

    @property
    def population(self) -> LinearPopulation:
        """The loss of all sequences."""
        return LinearPopulation(model=self.model, process=self.task)

    @property
    def data(self) -> Any:
        return self.draw(0)

    def draw(self, step: int) -> dict[str, np.ndarray]:
        return draw_sequences(self.task, key(self.seed, "batch", step), self.batch)

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jnp

        seen = jnp.einsum("si,ij,sj->s", data["beta"], attention_map(params, self.model.merged), data["query"])
        return jnp.mean((data["answer"] - seen) ** 2)

    def value(self, params: Params) -> float:
        return self.population.value(params)

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self.population.grad(params)

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        """The field of all sequences, for what is recorded."""
        return self.population.flat(layout, rates)

    def step_gradient(self, layout: Layout) -> StepGradient:
        """Half of the gradient that a step sees: the push G of its batch in place of the mean one [LIN:flow]."""
        return flat_gradient(lambda params, step: self._descend(params, self.draw(step)), layout)

    def _descend(self, params: Params, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        missed = data["answer"] - np.einsum("si,ij,sj->s", data["beta"], self.model.whole(params), data["query"])
        push = np.einsum("s,si,sj->ij", missed, data["beta"], data["query"]) / len(missed)
        v = np.asarray(params["v"])
        if self.model.merged:
            return {"v": -np.einsum("hij,ij->h", params["U"], push), "U": -v[:, None, None] * push}
        keys, queries = params["K"], params["Q"]
        turned = np.einsum("ij,hrj->hri", push, queries)
        back = np.einsum("ij,hri->hrj", push, keys)
        value = np.einsum("hri,hri->h", keys, turned)
        return {"v": -value, "K": -v[:, None, None] * turned, "Q": -v[:, None, None] * back}
