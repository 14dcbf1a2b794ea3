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

CORNERS = 20
"""Corners per decade of time of the polygon along which the way of attention is measured: sides of 12 % of the time."""


@dataclass(frozen=True)
class ClassAttention:
    """Attention of every class over a run, in the long-sequence limit.

    `attention` is c_{l|n} (frames, classes, keys); `scores` and their velocity z_ml, dz_ml/dt are those of the class's
    query, and `decoder` is Y (frames, keys, columns). Masks say which keys are distinct tokens of a class and which are common.
    """

    time: np.ndarray
    clock: str
    attention: np.ndarray
    scores: np.ndarray
    velocity: np.ndarray
    decoder: np.ndarray
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
    def moved(self) -> np.ndarray:
        """Share of attention that is on other tokens than at the start, |c - c(0)|_1 / 2, mean over classes (frames,)."""
        return self.mean(np.abs(self.attention - self.attention[:1]).sum(axis=2)) / 2

    @cached_property
    def path(self) -> np.ndarray:
        """Length of the way that attention has gone, mean over classes (frames,), as a share of all attention.

        It is measured along a polygon with `CORNERS` corners per decade of time, so that the jitter of single steps is no way.
        """
        corners = _corners(self.time)
        sides = self.mean(np.abs(np.diff(self.attention[corners], axis=0)).sum(axis=2)) / 2
        return np.interp(self.time, self.time[corners], np.concatenate([[0.0], np.cumsum(sides)]))

    @cached_property
    def behind(self) -> np.ndarray:
        """Share of the way to ten times this time that lies behind, if the way grows on as while time last tripled (frames,).

        path ~ t^q with q = ln(path(t) / path(t/3)) / ln 3, so the share is 10^-q. The way grows ever more slowly after the
        transition, so the true share is larger.
        """
        before = np.interp(self.time / 3, self.time, self.path)
        shares = before / np.where(self.path > 0, self.path, 1.0)
        return shares ** (np.log(10) / np.log(3))

    @cached_property
    def entropy(self) -> np.ndarray:
        """Entropy of c_n renormalised on the class's distinct tokens (frames, classes), in nats."""
        return distinct_entropy(self.attention, self.distinct)


def _corners(time: np.ndarray) -> np.ndarray:
    """Frames about equally spaced in the logarithm of time, with the first and the last."""
    if len(time) < 3:
        return np.arange(len(time))
    wanted = np.geomspace(time[1], time[-1], max(2, int(CORNERS * np.log10(time[-1] / time[1]))))
    return np.unique([0, *np.searchsorted(time, wanted * (1 - 1e-12)), len(time) - 1])


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
        decoder=run.params["Y"],
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
