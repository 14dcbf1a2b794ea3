"""The exact loss: a model on a process."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stagescope.fields.field import FlatField, Objective, OfModel
from stagescope.params import Layout
from stagescope.spec import Described, Spec
from unigram_paper.kernel import descend
from unigram_paper.model import Bias
from unigram_paper.process import Unigram


class BiasPopulation(OfModel, Described, Objective):
    """L = log sum_j exp(b_j) - pi . b [unigram:loss]."""

    model: Bias
    process: Unigram

    def describe(self) -> Spec:
        return Described.describe(self)

    @property
    def data(self) -> np.ndarray:
        return np.array(self.process.pi)

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jax, jnp

        return jax.scipy.special.logsumexp(params["b"]) - jnp.dot(data, params["b"])

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        pi, rate = self.data, rates["b"]

        def flat(vector: np.ndarray, out: np.ndarray) -> float:
            return descend(vector, out, pi, rate)

        return flat
