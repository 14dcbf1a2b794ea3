"""Scan and snap in the long-sequence limit: the exact population loss of PairwiseAttention on SequenceClasses."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import model_validator

from stagescope.fields.field import Compiled, Field, Objective, OfModel
from stagescope.papers.scan_snap.model import PairwiseAttention
from stagescope.papers.scan_snap.process import SequenceClasses
from stagescope.params import Layout, Params
from stagescope.spec import Described


class Pairing(OfModel, Described):
    """A model and the classes it is trained on, with the arrays that the definition and the kernel read."""

    model: PairwiseAttention
    process: SequenceClasses

    @model_validator(mode="after")
    def _fits(self) -> "Pairing":
        needed = PairwiseAttention.merged(self.process)
        for name in ("keys", "queries", "outputs"):
            missing = set(getattr(needed, name)) - set(getattr(self.model, name))
            if missing:
                raise ValueError(f"the model's {name} lack token {min(missing)} of the process")
        if self.model.vocab != self.process.vocab:
            raise ValueError(f"model vocabulary {self.model.vocab} differs from the process's {self.process.vocab}")
        return self

    @property
    def multiplicity(self) -> Mapping[str, np.ndarray]:
        return {"Y": self.model.multiplicity}

    @cached_property
    def rows(self) -> dict[str, np.ndarray]:
        """Row of Z and column of Y for each class, and the prior (K,)."""
        query = {token: i for i, token in enumerate(self.model.queries)}
        target = {token: i for i, token in enumerate(self.model.outputs)}
        return {
            "query": np.array([query[item.query] for item in self.process.classes]),
            "target": np.array([target[item.target] for item in self.process.classes]),
            "prior": self.process.weights,
        }

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """What the JAX definition reads."""
        return {**self.rows, "table": self.process.table(self.model.keys), "multiplicity": self.model.multiplicity}

    @cached_property
    def kernel_arguments(self) -> tuple:
        """What the Numba kernels read: contexts by class, restricted to their support."""
        column = {token: i for i, token in enumerate(self.model.keys)}
        items = self.process.classes
        start = np.concatenate([[0], np.cumsum([len(item.tokens) for item in items])])
        keys = np.array([column[token] for item in items for token in item.tokens])
        logp = np.log(np.concatenate([item.probabilities for item in items]))
        shape = (len(self.model.keys), len(self.model.multiplicity), len(self.model.queries))
        rows = self.rows
        return shape, start, keys, logp, rows["prior"], rows["query"], rows["target"], self.model.multiplicity


class LimitPairing(Pairing):
    """What the two laws of the long-sequence limit share: the data of their definitions, and how their kernels are called."""

    @property
    def data(self) -> Any:
        return self.arrays

    @cached_property
    def _held(self) -> np.ndarray:
        from stagescope.papers.scan_snap.kernel import hold

        return hold(*self.kernel_arguments)

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> Compiled:
        from stagescope.fields.compiled import direct
        from stagescope.papers.scan_snap.kernel import SCALES, gradient, pinv

        if layout.names != ("Y", "Z"):
            raise ValueError(f"the kernel reads blocks in the order Y, Z; got {', '.join(layout.names)}")
        held = self._held.copy()
        held[SCALES] = -rates["Y"], -rates["Z"]
        return direct(pinv if isinstance(self, PairwisePinv) else gradient, layout.size, held)


class PairwisePopulation(LimitPairing, Objective):
    """L = -sum_n p_n [ y_n . f_n - log sum_j exp((Y^T f_n)_j) ], L -> infinity [SnS:lemma-2].

    Args:
        model: the attention.
        process: the classes.

    Examples:
        >>> pairwise = ss.PairwiseAttention.merged(classes)
        >>> law = ss.PairwisePopulation(model=pairwise, process=classes)
        >>> print(f"{law.value(pairwise.init()):.4f} {np.log(classes.vocab):.4f}")
        2.5649 2.5649
    """

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jnp

        _, logits = forward(params, data)
        own = jnp.take_along_axis(logits, data["target"][:, None], axis=1)[:, 0]
        return jnp.sum(data["prior"] * (_log_sum(logits, data["multiplicity"]) - own))

    def value(self, params: Params) -> float:
        return self._kernel(params)[0]

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self._kernel(params)[1]

    def _kernel(self, params: Params) -> tuple[float, dict[str, np.ndarray]]:
        from stagescope.papers.scan_snap.kernel import gradient

        layout = Layout.of({"Y": params["Y"], "Z": params["Z"]})
        out = np.empty(layout.size)
        return gradient(layout.pack(params), out, self._held.copy()), layout.unpack(out)


class PairwisePinv(LimitPairing, Field):
    """The modified decoder of the paper's theorems: a field that is not a gradient [SnS:lemma-3].

    The step of Y uses column n of F (F^T F)^-1, F = [f_1 .. f_K], in place of f_n; Z moves as under the gradient.

    Args:
        model: the attention.
        process: the classes.

    Examples:
        >>> law = ss.PairwisePinv(model=ss.PairwiseAttention.merged(classes), process=classes)
        >>> isinstance(law, ss.Objective)  # a field that is no gradient
        False
    """

    @model_validator(mode="after")
    def _independent(self) -> "PairwisePinv":
        table = self.process.table(self.model.keys)
        if np.linalg.matrix_rank(table) < len(table):
            raise ValueError("the classes' contexts are linearly dependent: F^T F has no inverse; use --decoder gradient")
        return self

    def law(self, params: Any, data: Any) -> Any:
        from stagescope.autodiff import jax, jnp

        f, logits = forward(params, data)
        alpha = jnp.exp(logits - _log_sum(logits, data["multiplicity"])[:, None])
        residual = jax.nn.one_hot(data["target"], logits.shape[1]) - alpha
        modified = jnp.linalg.solve(f @ f.T, f)
        g = (residual * data["multiplicity"]) @ params["Y"].T
        z = f * (g - f * jnp.sum(f * g, axis=1, keepdims=True))
        weighted = data["prior"][:, None]
        attended = jnp.zeros_like(params["Z"]).at[data["query"]].add(weighted * z)
        return {"Y": modified.T @ (weighted * residual), "Z": attended}


def forward(params: Any, data: Any) -> Any:
    """Features f_n (K, keys) and logits (K, columns) of all classes, as JAX expressions."""
    from stagescope.autodiff import jnp

    table = data["table"]
    scores = jnp.where(table > 0, params["Z"][data["query"]], -jnp.inf)
    weights = table * jnp.exp(scores - jnp.max(scores, axis=1, keepdims=True))
    f = weights / jnp.linalg.norm(weights, axis=1, keepdims=True)
    return f, f @ params["Y"]


def _log_sum(logits: Any, multiplicity: Any) -> Any:
    from stagescope.autodiff import jax

    return jax.scipy.special.logsumexp(logits, b=multiplicity, axis=1)
