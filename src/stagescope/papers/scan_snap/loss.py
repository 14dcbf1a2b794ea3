"""Scan and snap in the long-sequence limit: the exact population loss of PairwiseAttention on SequenceClasses."""

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.core.memory import require_memory, require_parameters, require_work
from stagescope.core.params import Layout
from stagescope.core.spec import Described, Seed
from stagescope.flow.by_kernel import ByKernel, Kernel, OnBatches
from stagescope.flow.field import Field, FlatField, OfModel
from stagescope.papers.scan_snap.model import PairwiseAttention, attention, features
from stagescope.papers.scan_snap.process import SequenceClasses


class Pairing(OfModel, Described):
    """A model and the classes it is trained on, with the arrays that the definition and the kernel read."""

    model: PairwiseAttention
    process: SequenceClasses

    @model_validator(mode="after")
    def _fits(self) -> "Pairing":
        required = PairwiseAttention.merged(self.process)
        for name in ("keys", "queries", "outputs"):
            absent = set(getattr(required, name)) - set(getattr(self.model, name))
            if absent:
                raise ValueError(f"the model's {name} lack token {min(absent)} of the process")
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
    def kernel(self) -> Kernel:
        from stagescope.papers.scan_snap.kernel import SCALES, gradient, hold, pinv

        law = pinv if isinstance(self, PairwisePinv) else gradient
        return Kernel(law, hold(*self.kernel_arguments), SCALES, ("Y", "Z"))


class PairwisePopulation(LimitPairing, ByKernel):
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
        return _population_loss(forward(params, data)[1], data)


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
        from stagescope.flow.autodiff import jax, jnp

        f, logits = forward(params, data)
        alpha = jnp.exp(logits - _log_sum(logits, data["multiplicity"])[:, None])
        residual = jax.nn.one_hot(data["target"], logits.shape[1]) - alpha
        modified = jnp.linalg.solve(f @ f.T, f)
        g = (residual * data["multiplicity"]) @ params["Y"].T
        z = f * (g - f * jnp.sum(f * g, axis=1, keepdims=True))
        weighted = data["prior"][:, None]
        attended = jnp.zeros_like(params["Z"]).at[data["query"]].add(weighted * z)
        return {"Y": modified.T @ (weighted * residual), "Z": attended}

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        return self.kernel.flat(layout, rates)


class PairwiseResidual(Pairing, ByKernel):
    """The population loss with a residual connection: the decoder reads f = (f_n + e_query) / sqrt(2) [SnS:residual].

    Of u = LN(LN(u~) + u_xT), where LN divides by the length, LN(u~) is f_n and u_xT is the query's own direction, which no
    context of its class has: so their sum has the length sqrt(2). The model has the queries among its keys: their rows of Y
    are read through the residual connection, and no attention falls on them.

    Args:
        model: the attention, with the queries of the process among its keys.
        process: the classes.

    Examples:
        >>> pairwise = PairwiseResidual.widened(ss.PairwiseAttention.merged(classes))
        >>> PairwiseResidual(model=pairwise, process=classes).value(pairwise.init()) == np.log(classes.vocab)
        True
    """

    @model_validator(mode="after")
    def _reads_queries(self) -> "PairwiseResidual":
        if absent := set(self.model.queries) - set(self.model.keys):
            raise ValueError(f"the residual connection reads query {min(absent)}, which is not among the keys of the model")
        return self

    @cached_property
    def kernel(self) -> None:
        """None: the definition itself is computed."""

    @classmethod
    def widened(cls, model: PairwiseAttention) -> PairwiseAttention:
        """The model with its queries among the keys."""
        return model.model_copy(update={"keys": tuple(sorted({*model.keys, *model.queries}))})

    @property
    def data(self) -> Any:
        return {**self.arrays, "own": np.array([self.model.keys.index(item.query) for item in self.process.classes])}

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.flow.autodiff import jax, jnp

        f = features(params["Z"][data["query"]], data["table"], jnp)
        f = (f + jax.nn.one_hot(data["own"], f.shape[1])) / jnp.sqrt(2.0)
        return _population_loss(f @ params["Y"], data)


class PairwiseHeads(Pairing, ByKernel):
    """The population loss of several heads, each with its own Y and Z: logits sum_h Y_h^T f_h [SnS:heads].

    Rows of the blocks Y and Z are those of the first head, then of the second, and so on.

    Args:
        model: the attention of one head.
        process: the classes.
        heads: how many.

    Examples:
        >>> law = PairwiseHeads(model=ss.PairwiseAttention.merged(classes), process=classes, heads=3)
        >>> law.shapes
        {'Y': (27, 3), 'Z': (6, 9)}
    """

    heads: int = Limits(ge=1)

    @model_validator(mode="after")
    def _fit_in_memory(self) -> "PairwiseHeads":
        require_parameters(self.shapes, "take fewer heads, tokens or classes", vocab=self.model.vocab, heads=self.heads)
        return self

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return {"Y": ("head and key", "output"), "Z": ("head and query", "key")}

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        return {name: (self.heads * rows, columns) for name, (rows, columns) in self.model.shapes.items()}

    @property
    def data(self) -> Any:
        return self.arrays

    @cached_property
    def kernel(self) -> None:
        """None: the definition itself is computed."""

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.flow.autodiff import jnp

        y, z = (params[name].reshape(self.heads, *self.model.shapes[name]) for name in ("Y", "Z"))
        logits = jnp.einsum("hnk,hkj->nj", features(z[:, data["query"]], data["table"], jnp), y)
        return _population_loss(logits, data)

    def attention(self, z: np.ndarray) -> np.ndarray:
        """c_{l|n} of every head (heads, classes, keys) at the scores Z."""
        scores = z.reshape(self.heads, *self.model.shapes["Z"])[:, self.rows["query"]]
        return attention(scores, self.arrays["table"])


def forward(params: Any, data: Any) -> Any:
    """Features f_n (K, keys) and logits (K, columns) of all classes, as JAX expressions."""
    from stagescope.flow.autodiff import jnp

    f = features(params["Z"][data["query"]], data["table"], jnp)
    return f, f @ params["Y"]


def _population_loss(logits: Any, data: Any) -> Any:
    """sum_n p_n (log sum_j exp(logit_j) - logit of the target), as a JAX expression."""
    from stagescope.flow.autodiff import jnp

    target_logits = jnp.take_along_axis(logits, data["target"][:, None], axis=1)[:, 0]
    return jnp.sum(data["prior"] * (_log_sum(logits, data["multiplicity"]) - target_logits))


def cross_entropy(y: Any, scores: Any, counts: Any, keys: Any, target: Any, multiplicity: Any = None) -> Any:
    """Mean loss of contexts with the counts (B, widest) of their keys, as a JAX expression."""
    from stagescope.flow.autodiff import jnp

    logits = jnp.einsum("bi,bij->bj", features(scores, counts, jnp), y[keys])
    target_logits = jnp.take_along_axis(logits, target[:, None], axis=1)[:, 0]
    return jnp.mean(_log_sum(logits, multiplicity) - target_logits)


def _log_sum(logits: Any, multiplicity: Any) -> Any:
    from stagescope.flow.autodiff import jax

    return jax.scipy.special.logsumexp(logits, b=multiplicity, axis=1)


# Scan and snap on sampled contexts of finite length, stored as token counts, which are a sufficient statistic.


Steps = Callable[[np.ndarray, np.ndarray, int, int], int]
"""(parameters, momentum buffer, first step, how many) -> steps that stayed finite; both vectors are changed in place."""


class PairwiseSampled(Pairing, OnBatches):
    """Mean cross-entropy of `batch` contexts of `length` tokens, drawn anew every step from (seed, step) [SnS:model].

    `value` and `grad`, and so the recorded loss, are those of the long-sequence limit [SnS:lemma-2]: exact and without
    batch noise. A descent takes its steps on the batches. `precision` is that of the steps of gradient descent and heavy
    ball; batches are the same in both, and all that is read of a run is float64.

    Args:
        model: the attention.
        process: the classes.
        length: tokens of a context.
        batch: contexts in a step.
        seed: of the draws.
        precision: of the steps.

    Examples:
        >>> every = ss.PairwiseAttention.every_output(classes)
        >>> law = ss.PairwiseSampled(model=every, process=classes, length=16, batch=8)
        >>> ss.evolve(law, every.init(), ss.Descent(lr=1.0, steps=20), record=ss.Every(n=10)).status
        'finished'
    """

    length: int = Limits(ge=2)
    batch: int = Limits(ge=1)
    seed: Seed = 0
    precision: Literal["float64", "float32"] = "float64"

    @model_validator(mode="after")
    def _columns(self) -> "PairwiseSampled":
        if self.model.rest:
            raise ValueError("sampled training keeps a column for every output: use PairwiseAttention.every_output")
        widest = max(len(item.tokens) for item in self.process.classes)
        require_memory(f"a batch of {self.batch:,} contexts", "lower --batch", self.batch, widest)
        step = f"a step on {self.batch:,} contexts of {self.length:,} tokens"
        require_work(step, "lower --length or --batch", self.batch, self.length)
        return self

    @cached_property
    def limit(self) -> PairwisePopulation:
        """The same problem at infinite length."""
        return PairwisePopulation(model=self.model, process=self.process)

    def loss(self, params: Any, data: Any) -> Any:
        """The definition, on a batch: counts (B, widest) over the support of each sample's class."""
        support, classes = data["support"][data["classes"]], data["classes"]
        scores = params["Z"][data["query"][classes][:, None], support]
        return cross_entropy(params["Y"], scores, data["counts"], support, data["target"][classes])

    def draw(self, step: int) -> Any:
        """The batch of a step, as the definition reads it; the kernel trains on the same draws."""
        sizes, counts = self.sample(step)
        start, keys = self.kernel_arguments[1], self.kernel_arguments[2]
        support = np.zeros((len(sizes), counts.shape[1]), dtype=np.int64)
        for n in range(len(sizes)):
            support[n, : start[n + 1] - start[n]] = keys[start[n] : start[n + 1]]
        rows = {"query": self.rows["query"], "target": self.rows["target"]}
        classes = np.repeat(np.arange(len(sizes)), sizes)
        return {"classes": classes, "counts": counts.astype(float), "support": support, **rows}

    def sample(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Samples per class (K,) and token counts (batch, widest support), class after class."""
        from stagescope.papers.scan_snap.sampled_kernel import draw_counts

        start = self.kernel_arguments[1]
        sizes = np.empty(len(self.process.classes), dtype=np.int64)
        counts = np.empty((self.batch, int(np.diff(start).max())), dtype=np.int32)
        draw_counts(self.seed, step, self.length, *self.tables, sizes, counts)
        return sizes, counts

    @cached_property
    def tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Inversion tables of the classes' contexts, and of the prior over classes."""
        from stagescope.papers.scan_snap.sampled_kernel import GUIDE, inverse_table

        start, logp, prior = (self.kernel_arguments[i] for i in (1, 3, 4))
        law = np.exp(logp)
        upper, guide = np.empty(law.size, np.uint64), np.empty((prior.size, GUIDE), np.int32)
        for n, (low, high) in enumerate(pairwise(start)):
            inverse_table(law[low:high], upper[low:high], guide[n])
        class_upper, class_guide = np.empty(prior.size, np.uint64), np.empty(GUIDE, np.int32)
        inverse_table(prior, class_upper, class_guide)
        return start, upper, guide, class_upper, class_guide

    def fused(self, layout: Layout, decay: float, lr: Mapping[str, float]) -> Steps:
        """Momentum SGD: one kernel call for many steps."""
        sizes, rates = (self.seed, self.length, self.batch), (decay, lr["Y"], lr["Z"])
        places = self.tables, (self.kernel_arguments[2], self.rows["query"], self.rows["target"])

        def double(theta: np.ndarray, memory: np.ndarray, first: int, count: int) -> int:
            from stagescope.papers.scan_snap.sampled_kernel import heavy_ball

            now, pull = layout.unpack(theta), layout.unpack(memory)
            return heavy_ball(now["Y"], now["Z"], pull["Y"], pull["Z"], first, count, *sizes, *places, *rates)

        def single(theta: np.ndarray, memory: np.ndarray, first: int, count: int) -> int:
            from stagescope.papers.scan_snap.sampled_kernel import heavy_ball_single, padded

            arrays = [layout.unpack(vector)[name] for vector in (theta, memory) for name in ("Y", "Z")]
            blocks = [padded(block) if n % 2 == 0 else block.astype(np.float32) for n, block in enumerate(arrays)]
            outputs, single_rates = arrays[0].shape[1], map(np.float32, rates)
            steps = heavy_ball_single(*blocks, outputs, first, count, *sizes, *places, *single_rates)
            for before, after in zip(arrays, blocks, strict=True):
                before[:] = after[:, : before.shape[1]]
            return steps

        return single if self.precision == "float32" else double

    def train_many(
        self, seeds: np.ndarray, scale: float, lr_y: np.ndarray, lr_z: np.ndarray, steps: int, decay: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Final Y and Z of many runs that differ in seed and rates, and the steps each took, one kernel call a run."""
        ends, step_counts = [], []
        for seed, rate_y, rate_z in zip(np.asarray(seeds).tolist(), lr_y, lr_z, strict=True):
            start = self.model.init(seed, scale)
            layout = Layout.of(start)
            theta = layout.pack(start)
            problem = self.model_copy(update={"seed": seed})
            advance = problem.fused(layout, decay, {"Y": float(rate_y), "Z": float(rate_z)})
            step_counts.append(advance(theta, np.zeros_like(theta), 0, steps))
            ends.append(layout.unpack(theta))
        y, z = (np.stack([end[name] for end in ends]) for name in ("Y", "Z"))
        return y, z, np.array(step_counts)
