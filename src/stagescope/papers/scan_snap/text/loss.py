"""Scan and snap on topical classes of a text: PairwiseAttention on the windows before a query word [SnS:text-windows]."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.fields.field import FlatField, Found, Objective, OfModel, StepGradient, flat_field, flat_gradient
from stagescope.keys import key
from stagescope.memory import require_work
from stagescope.papers.scan_snap.model import PairwiseAttention
from stagescope.papers.scan_snap.text.process import PartName, TopicWindows, Windows
from stagescope.params import Layout, Params
from stagescope.spec import Described


def on_windows(process: TopicWindows) -> PairwiseAttention:
    """The model of one query: the types in its windows, the next words and one column for all other outputs."""
    return PairwiseAttention(vocab=process.vocab, keys=process.keys, queries=(process.token,), outputs=process.targets)


class PairwiseWindows(OfModel, Described, Objective):
    """L = - mean over windows of log softmax(Y^T f)_next, f ~ N_l exp(z_l) of unit length [SnS:text-windows].

    The softmax is over the whole vocabulary; words that are never next share the merged column. A step of a descent uses
    `batch` windows, drawn from (seed, step), or all if `batch` is None. `value`, `grad` and the recorded loss are over all.

    Args:
        model: the attention.
        process: the windows.
        batch: windows in a step; None takes all.
        seed: of the draws.
        part: "train" or "held-out".

    Examples:
        >>> from stagescope.papers.scan_snap.text.loss import on_windows
        >>> windows = ss.topic_windows(ss.read_corpus("words.txt", vocab=9), "the", ("cat", "dog"), window=4, least=1)
        >>> pairwise = on_windows(windows)
        >>> law = ss.PairwiseWindows(model=pairwise, process=windows, batch=None)
        >>> print(f"{law.value(pairwise.init()):.2f}")
        2.20
    """

    model: PairwiseAttention
    process: TopicWindows
    batch: int | None = Limits(default=256, ge=1)
    seed: int = Limits(default=0, ge=0, lt=2**63)
    part: PartName = "train"

    @model_validator(mode="after")
    def _fits(self) -> "PairwiseWindows":
        if self.model.vocab != self.process.vocab:
            raise ValueError(f"model vocabulary {self.model.vocab} differs from the corpus's {self.process.vocab}")
        if len(self.model.queries) != 1:
            raise ValueError(f"windows have one query word, but the model has {len(self.model.queries)} queries")
        step = f"a step on {self.batch or 1:,} windows of {self.process.window:,} tokens"
        require_work(step, "lower --batch or --window", self.batch or 1, self.process.window)
        return self

    @property
    def multiplicity(self) -> Mapping[str, np.ndarray]:
        return {"Y": self.model.multiplicity}

    @cached_property
    def windows(self) -> Windows:
        return self.process.part(self.part)

    @cached_property
    def _columns(self) -> tuple[np.ndarray, ...]:
        """Windows as the kernel reads them: keys and targets as rows and columns of the model's Y."""
        model, process, windows = self.model, self.process, self.windows
        row = np.array([model.keys.index(token) for token in process.keys])
        column = np.array([model.outputs.index(token) for token in process.targets])
        return windows.start, row[windows.key], windows.count, column[windows.target]

    @cached_property
    def _all(self) -> np.ndarray:
        return np.arange(len(self.windows))

    def minibatch(self, step: int) -> np.ndarray:
        """The windows of one step."""
        if self.batch is None:
            return self._all
        return key(self.seed, "windows", step).integers(len(self.windows), size=self.batch)

    def _padded(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """What the definition reads: keys and counts (B, widest) of some windows, with zero counts in narrower windows."""
        start, keys, count, target = self._columns
        sizes = np.diff(start)[rows]
        inside = np.arange(sizes.max()) < sizes[:, None]
        place = np.where(inside, start[rows][:, None] + np.arange(sizes.max()), 0)
        return {"keys": keys[place], "counts": np.where(inside, count[place], 0.0), "target": target[rows]}

    @property
    def data(self) -> Any:
        return self._padded(self._all)

    def draw(self, step: int) -> Any:
        return None if self.batch is None else self._padded(self.minibatch(step))

    def loss(self, params: Any, data: Any) -> Any:
        """The definition, window by window."""
        from stagescope.autodiff import jax, jnp

        counts = data["counts"]
        scores = jnp.where(counts > 0, params["Z"][0][data["keys"]], -jnp.inf)
        v = counts * jnp.exp(scores - jnp.max(scores, axis=1, keepdims=True))
        f = v / jnp.linalg.norm(v, axis=1, keepdims=True)
        logits = jnp.einsum("bi,bij->bj", f, params["Y"][data["keys"]])
        own = jnp.take_along_axis(logits, data["target"][:, None], axis=1)[:, 0]
        return jnp.mean(jax.scipy.special.logsumexp(logits, b=self.model.multiplicity, axis=1) - own)

    def _kernel(self, params: Params, rows: np.ndarray) -> Found:
        from stagescope.papers.scan_snap.text.kernel import gradient

        out = self.model.init()
        y, z = (np.array(block, dtype=float) for block in (params["Y"], params["Z"][0]))  # recorded arrays are read-only
        start, keys, count, target = self._columns
        loss = gradient(y, z, rows, start, keys, count, target, self.model.multiplicity, out["Y"], out["Z"][0])
        return float(loss), out

    def value(self, params: Params) -> float:
        return self._kernel(params, self._all)[0]

    def log_laws(self, params: Params) -> np.ndarray:
        """The logarithm of the predicted law of the outputs on every window (windows, outputs)."""
        start, keys, count, _ = self._columns
        row, own = self.windows.row, np.asarray(params["Z"][0])[keys]
        weights = count * np.exp(own - np.maximum.reduceat(own, start[:-1])[row])
        weights = weights / np.sqrt(np.add.reduceat(weights**2, start[:-1]))[row]
        logits = np.add.reduceat(weights[:, None] * np.asarray(params["Y"])[keys], start[:-1], axis=0)
        top = logits.max(axis=1, keepdims=True)
        return logits - top - np.log(np.exp(logits - top) @ self.model.multiplicity)[:, None]

    def values(self, params: Params) -> np.ndarray:
        """The loss of every frame of recorded parameters."""
        return np.array([self.value({"Y": y, "Z": z}) for y, z in zip(params["Y"], params["Z"], strict=True)])

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self._kernel(params, self._all)[1]

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        return flat_field(lambda params: self._kernel(params, self._all), layout, rates)

    def step_gradient(self, layout: Layout) -> StepGradient:
        """The gradient that a step of a descent uses."""
        return flat_gradient(lambda params, step: self._kernel(params, self.minibatch(step))[1], layout)
