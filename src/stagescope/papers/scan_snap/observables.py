"""Observables of a scan-and-snap run: class attention c_n, its speed, common mass, entropy on distinct tokens."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.fields.field import Field
from stagescope.papers.rebuild import rebuilt
from stagescope.papers.scan_snap.loss import Pairing
from stagescope.papers.scan_snap.model import attention
from stagescope.papers.scan_snap.process import SequenceClasses
from stagescope.params import Layout
from stagescope.runs.run import Run


@dataclass(frozen=True)
class ClassAttention:
    """Attention of every class over a run, in the long-sequence limit.

    `attention` is c_{l|n} (frames, classes, keys); `scores` and their velocity z_ml, dz_ml/dt are those of the class's
    query. Masks say which keys are distinct tokens of a class and which are common.
    """

    time: np.ndarray
    clock: str
    attention: np.ndarray
    scores: np.ndarray
    velocity: np.ndarray
    prior: np.ndarray
    table: np.ndarray
    distinct: np.ndarray
    common: np.ndarray

    def mean(self, per_class: np.ndarray) -> np.ndarray:
        """The average over classes, weighted by their prior, of a quantity (frames, classes)."""
        return per_class @ self.prior

    @cached_property
    def common_mass(self) -> np.ndarray:
        """Attention on common tokens (frames, classes)."""
        return np.sum(self.attention * self.common, axis=2)

    @cached_property
    def top_common(self) -> np.ndarray:
        return np.max(self.attention * self.common, axis=2)

    @cached_property
    def top_distinct(self) -> np.ndarray:
        return np.max(self.attention * self.distinct, axis=2)

    @cached_property
    def speed(self) -> np.ndarray:
        """|dc_n/dt|_1 from the right-hand side: dc = c (dz - c.dz)."""
        drift = np.sum(self.attention * self.velocity, axis=2, keepdims=True)
        return np.sum(np.abs(self.attention * (self.velocity - drift)), axis=2)

    @cached_property
    def entropy(self) -> np.ndarray:
        """Entropy of c_n renormalised on the class's distinct tokens (frames, classes), in nats."""
        return distinct_entropy(self.attention, self.distinct)


def distinct_entropy(attention: np.ndarray, distinct: np.ndarray) -> np.ndarray:
    """Entropy in nats of attention (..., classes, keys), renormalised on the distinct tokens of each class."""
    own = attention * distinct
    share = own / own.sum(axis=-1, keepdims=True)
    return -np.sum(share * np.log(np.where(share > 0, share, 1.0)), axis=-1)


def law_of(run: Run) -> Pairing:
    """The model and the process of a run."""
    found = rebuilt(run.spec["field"])
    assert isinstance(found, Pairing)
    return found


def class_attention(run: Run) -> ClassAttention:
    """Class attention at every frame of a run."""
    law = law_of(run)
    process: SequenceClasses = law.process
    keys = law.model.keys
    table = process.table(keys)
    rows = law.rows["query"]
    scores = run.params["Z"][:, rows]
    common = process.common_in(keys)
    return ClassAttention(
        time=run.time,
        clock=run.clock,
        attention=attention(scores, np.broadcast_to(table, scores.shape)),
        scores=scores,
        velocity=velocities(run, law)["Z"][:, rows],
        prior=process.weights,
        table=table,
        distinct=(table > 0) & ~common,
        common=common,
    )


def velocities(run: Run, law: Pairing) -> dict[str, np.ndarray]:
    """d(params)/d(clock) at every frame: from the right-hand side of a flow, from the steps taken by a descent.

    Momentum and Adam do not move along the current gradient, so the velocity of a descent is the difference of its frames.
    """
    if run.spec["dynamics"]["type"] != "GradientFlow":
        if run.frames < 2:
            return {name: np.zeros_like(run.params[name]) for name in run.params}
        return {name: np.gradient(run.params[name], run.time, axis=0) for name in run.params}
    field = law if isinstance(law, Field) else law.field()  # pyright: ignore[reportAttributeAccessIssue]
    layout = Layout.of(run.at(0))
    rates = {name: run.spec["dynamics"]["rates"].get(name, 1.0) for name in layout.names}
    flat = field.flat(layout, rates)
    out = np.empty((run.frames, layout.size))
    for frame in range(run.frames):
        flat(layout.pack(run.at(frame)), out[frame])
    return layout.unpack(out)
