"""Scan and snap on sampled contexts of finite length, stored as token counts, which are a sufficient statistic."""

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.fields.field import FlatField, Objective
from stagescope.memory import require_memory, require_work
from stagescope.papers.scan_snap.loss import Pairing, PairwisePopulation
from stagescope.params import Layout, Params

Steps = Callable[[np.ndarray, np.ndarray, int, int], int]
"""(parameters, momentum buffer, first step, how many) -> steps that stayed finite; both vectors are changed in place."""


class PairwiseSampled(Pairing, Objective):
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
    seed: int = Limits(default=0, ge=0, lt=2**63)
    precision: Literal["float64", "float32"] = "float64"

    @model_validator(mode="after")
    def _columns(self) -> "PairwiseSampled":
        if self.model.rest:
            raise ValueError("sampled training keeps a column for every output: use PairwiseAttention.every_output")
        widest = max(len(item.tokens) for item in self.process.classes)
        require_memory(f"a batch of {self.batch:,} contexts", "lower --batch", self.batch, widest)
        drawn = f"a step on {self.batch:,} contexts of {self.length:,} tokens"
        require_work(drawn, "lower --length or --batch", self.batch, self.length)
        return self

    @cached_property
    def limit(self) -> PairwisePopulation:
        """The same problem at infinite length."""
        return PairwisePopulation(model=self.model, process=self.process)

    def value(self, params: Params) -> float:
        return self.limit.value(params)

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self.limit.grad(params)

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        return self.limit.flat(layout, rates)

    def loss(self, params: Any, data: Any) -> Any:
        """The definition, on a batch: counts (B, widest) over the support of each sample's class."""
        from stagescope.autodiff import jax, jnp

        support, counts, classes = data["support"][data["classes"]], data["counts"], data["classes"]
        scores = params["Z"][data["query"][classes][:, None], support]
        shifted = jnp.where(counts > 0, scores, -jnp.inf)
        v = counts * jnp.exp(shifted - jnp.max(shifted, axis=1, keepdims=True))
        f = v / jnp.linalg.norm(v, axis=1, keepdims=True)
        logits = jnp.einsum("bi,bij->bj", f, params["Y"][support])
        own = jnp.take_along_axis(logits, data["target"][classes][:, None], axis=1)[:, 0]
        return jnp.mean(jax.scipy.special.logsumexp(logits, axis=1) - own)

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

    @property
    def _columns_of_classes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.kernel_arguments[2], self.rows["query"], self.rows["target"]

    def fused(self, layout: Layout, decay: float, lr: Mapping[str, float]) -> Steps:
        """Momentum SGD: one kernel call for many steps."""
        return self._steps(layout, decay, lr, self.seed)

    def _steps(self, layout: Layout, decay: float, lr: Mapping[str, float], seed: int) -> Steps:
        sizes, rates = (seed, self.length, self.batch), (decay, lr["Y"], lr["Z"])

        def double(theta: np.ndarray, memory: np.ndarray, first: int, count: int) -> int:
            from stagescope.papers.scan_snap.sampled_kernel import heavy_ball

            now, pull = layout.unpack(theta), layout.unpack(memory)
            blocks = (now["Y"], now["Z"], pull["Y"], pull["Z"])
            return heavy_ball(*blocks, first, count, *sizes, self.tables, self._columns_of_classes, *rates)

        def single(theta: np.ndarray, memory: np.ndarray, first: int, count: int) -> int:
            from stagescope.papers.scan_snap.single_kernel import heavy_ball_single, padded

            given = [layout.unpack(vector)[name] for vector in (theta, memory) for name in ("Y", "Z")]
            y, z, my, mz = blocks = [padded(block) if n % 2 == 0 else block.astype(np.float32) for n, block in enumerate(given)]
            places, single_rates = (self.tables, self._columns_of_classes), (np.float32(rate) for rate in rates)
            taken = heavy_ball_single(y, z, my, mz, given[0].shape[1], first, count, *sizes, *places, *single_rates)
            for before, after in zip(given, blocks, strict=True):
                before[:] = after[:, : before.shape[1]]
            return taken

        return single if self.precision == "float32" else double

    def train_many(
        self, seeds: np.ndarray, scale: float, lr_y: np.ndarray, lr_z: np.ndarray, steps: int, decay: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Final Y and Z of many runs that differ in seed and rates, and the steps each took, one kernel call a run."""
        ends, taken = [], []
        for seed, rate_y, rate_z in zip(np.asarray(seeds).tolist(), lr_y, lr_z, strict=True):
            start = self.model.init(seed, scale)
            layout = Layout.of(start)
            theta = layout.pack(start)
            advance = self._steps(layout, decay, {"Y": float(rate_y), "Z": float(rate_z)}, seed)
            taken.append(advance(theta, np.zeros_like(theta), 0, steps))
            ends.append(layout.unpack(theta))
        y, z = (np.stack([end[name] for end in ends]) for name in ("Y", "Z"))
        return y, z, np.array(taken)
