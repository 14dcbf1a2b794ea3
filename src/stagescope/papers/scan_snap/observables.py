"""The tokens of all classes in one row, class after class: the entries on which class attention lives.

A class has a few tokens of a vocabulary that grows with the number of classes. So what is kept of a run has one number an
entry, not one for every class and token.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import entr

from stagescope.core.memory import require_memory
from stagescope.core.params import Layout, Params
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.loss import Pairing
from stagescope.papers.scan_snap.process import Segments
from stagescope.readings.rebuild import rebuilt
from stagescope.runs.run import Run


@dataclass(frozen=True)
class Supports(Segments):
    """Entry e is a token of class `of[e]`: column `key[e]` of Z, in row `row[e]`, with P(l|n) = `chance[e]`.

    Columns ascend in each class. `common` says which tokens other classes have too.
    """

    key: np.ndarray
    row: np.ndarray
    chance: np.ndarray
    common: np.ndarray
    keys: int

    @classmethod
    def of_law(cls, law: Pairing) -> "Supports":
        _, start, key, *_ = law.kernel_arguments
        items, keys = law.process.classes, law.model.keys
        class_of = np.repeat(np.arange(len(items)), np.diff(start))
        order = np.lexsort((key, class_of))
        chance = np.concatenate([item.probabilities for item in items])[order]
        common = np.isin(np.array(keys)[key[order]], sorted(law.process.common))
        return cls(start, key[order], law.rows["query"][class_of], chance, common, len(keys))

    @cached_property
    def local(self) -> np.ndarray:
        """Which tokens are common to several classes of the same query."""
        place = self.row * self.keys + self.key
        return np.bincount(place)[place] > 1

    def argtops(self, values: np.ndarray) -> np.ndarray:
        """The entry (classes,) of the first largest of each class; what is not a number is least."""
        values = np.nan_to_num(values, nan=-np.inf)
        best = np.flatnonzero(values == self.tops(values)[self.of])
        return best[np.searchsorted(best, self.start[:-1])]

    def attention(self, scores: np.ndarray) -> np.ndarray:
        """c_{l|n} ~ P(l|n) exp(z_l), entry by entry."""
        return self.attend(self.chance, scores)

    def entropy(self, attention: np.ndarray) -> np.ndarray:
        """Entropy in nats of attention, renormalised on the distinct tokens of each class (..., classes)."""
        distinct = np.where(self.common, 0.0, attention)
        share = distinct / self.sums(distinct)[..., self.of]
        return self.sums(entr(share))

    def dense(self, values: np.ndarray) -> np.ndarray:
        """Entries as matrices (..., classes, keys), 0 where a class has no such token."""
        out = np.zeros((*values.shape[:-1], len(self), self.keys), values.dtype)
        out[..., self.of, self.key] = values
        return out


# Observables of a scan-and-snap run: class attention c_n, its speed, common mass, entropy on distinct tokens.


@dataclass(frozen=True)
class Readout:
    """What the classes read from the decoder Y: `directions` and `pulls` are (frames, entries), as `Supports` orders them.

    `directions` are y_l of a class's own output minus the mean of the other classes' targets, or of all other outputs where
    there is one target; `pulls` are g = Y (e - alpha). `wrong` (frames,) is the probability that a class gives wrongly, and
    `on_targets` (frames,) the share of it on targets of other classes, both mean over classes.
    """

    directions: np.ndarray
    pulls: np.ndarray
    wrong: np.ndarray
    on_targets: np.ndarray


@dataclass(frozen=True)
class ClassAttention:
    """Attention of every class over a run, in the long-sequence limit, on the tokens of the classes.

    `c` is c_{l|n}, `z` and `dz` are the scores z_ml of the class's query and their velocity: all (frames, entries), as
    `supports` orders them. `farthest` and `fastest` (frames,) are the largest |z - z(0)| and |dz/dt| of all scores.

    Examples:
        >>> curves = ss.class_attention(snap)
        >>> curves.attention.shape  # frames, classes, tokens
        (400, 2, 9)
        >>> print(curves.mean(curves.common_mass)[[0, -1]].round(3))  # common tokens lose attention
        [0.645 0.425]
    """

    time: np.ndarray
    clock: str
    supports: Supports
    prior: np.ndarray
    c: np.ndarray
    z: np.ndarray
    dz: np.ndarray
    farthest: np.ndarray
    fastest: np.ndarray
    read: Callable[[], Readout] = field(repr=False)

    @property
    def attention(self) -> np.ndarray:
        """c_{l|n} as matrices (frames, classes, keys), made when asked for: they are large where there are many classes."""
        size = (len(self.c), len(self.supports), self.supports.keys)
        require_memory("attention of all classes on all tokens", "read `c`, which has the tokens of each class only", *size)
        return self.supports.dense(self.c)

    @cached_property
    def table(self) -> np.ndarray:
        """P(l|n) (classes, keys)."""
        return self.supports.dense(self.supports.chance)

    @cached_property
    def common(self) -> np.ndarray:
        """Which keys are common tokens of a class (classes, keys)."""
        return self.supports.dense(self.supports.common)

    @cached_property
    def distinct(self) -> np.ndarray:
        """Which keys are distinct tokens of a class (classes, keys)."""
        return self.supports.dense(~self.supports.common)

    @cached_property
    def readout(self) -> Readout:
        """What the classes read from the decoder."""
        return self.read()

    def mean(self, per_class: np.ndarray) -> np.ndarray:
        """The average over classes, weighted by their prior, of a quantity (frames, classes)."""
        return per_class @ self.prior

    @cached_property
    def common_mass(self) -> np.ndarray:
        """Attention on common tokens (frames, classes)."""
        return self.supports.sums(self.c * self.supports.common)

    @cached_property
    def top_common(self) -> np.ndarray:
        return self.supports.tops(self.c * self.supports.common)

    @cached_property
    def top_distinct(self) -> np.ndarray:
        return self.supports.tops(self.c * ~self.supports.common)

    @cached_property
    def winners(self) -> np.ndarray:
        """The distinct token of each class with most attention at the end (classes,), as entries."""
        return self.supports.argtops(np.where(self.supports.common, -1.0, self.c[-1]))

    @cached_property
    def speed(self) -> np.ndarray:
        """|dc_n/dt|_1 from the right-hand side: dc = c (dz - c.dz)."""
        drift = self.supports.sums(self.c * self.dz)[:, self.supports.of]
        return self.supports.sums(np.abs(self.c * (self.dz - drift)))

    @cached_property
    def moved(self) -> np.ndarray:
        """Share of attention that is on other tokens than at the start, |c - c(0)|_1 / 2, mean over classes (frames,)."""
        return self.mean(self.supports.sums(np.abs(self.c - self.c[:1]))) / 2

    @cached_property
    def path(self) -> np.ndarray:
        """Length of the way that attention has gone, mean over classes (frames,), as a share of all attention.

        It is measured along a polygon with few corners per decade of time, so that the jitter of single steps is no way.
        """
        corners = _corners(self.time)
        sides = self.mean(self.supports.sums(np.abs(np.diff(self.c[corners], axis=0)))) / 2
        return np.interp(self.time, self.time[corners], np.concatenate([[0.0], np.cumsum(sides)]))

    @cached_property
    def behind(self) -> np.ndarray:
        """Share of the way to ten times this time that lies behind, if the way grows on as while time last tripled (frames,).

        path ~ t^q with q = ln(path(t) / path(t/3)) / ln 3, so the share is 10^-q. The way grows ever more slowly after the
        transition, so the true share is larger.
        """
        before = np.interp(self.time / LIMITS.longer, self.time, self.path)
        shares = before / np.where(self.path > 0, self.path, 1.0)
        return shares ** (np.log(10) / np.log(LIMITS.longer))

    @cached_property
    def entropy(self) -> np.ndarray:
        """Entropy of c_n renormalised on the class's distinct tokens (frames, classes), in nats."""
        return self.supports.entropy(self.c)


def _corners(time: np.ndarray) -> np.ndarray:
    """Frames about equally spaced in the logarithm of time, with the first and the last."""
    if len(time) < 3:
        return np.arange(len(time))
    times = np.geomspace(time[1], time[-1], max(2, int(LIMITS.corners * np.log10(time[-1] / time[1]))))
    return np.unique([0, *np.searchsorted(time, times * (1 - 1e-12)), len(time) - 1])


def law_of(run: Run) -> Pairing:
    """The model and the process of a run."""
    law = rebuilt(run.spec["field"])
    assert isinstance(law, Pairing)
    return law


def class_attention(run: Run) -> ClassAttention:
    """Class attention at every frame of a run.

    Args:
        run: a run of scan and snap.

    Examples:
        >>> ss.class_attention(snap).entropy.shape
        (400, 2)
    """
    law = law_of(run)

    def readout() -> Readout:
        reader = Reader(law)
        for frame in range(run.frames):
            reader.see(run.at(frame))
        return reader.readout

    return follow(run, ((time, run.at(frame)) for frame, time in enumerate(run.time)), readout)


def follow(run: Run, frames: Iterable[tuple[float, Params]], read: Callable[[], Readout]) -> ClassAttention:
    """Class attention along frames of a run or of one like it, each a time and its parameters, of which nothing else is kept.

    The velocity of a flow is its right-hand side. Momentum and Adam do not move along the current gradient, so that of a
    descent is the difference of its frames.
    """
    law: Any = law_of(run)
    dynamics = run.spec["dynamics"]
    supports, is_flow = Supports.of_law(law), dynamics["type"] == "GradientFlow"
    layout = Layout.of(law.model.init())
    rates = {name: dynamics["rates"].get(name, 1.0) for name in layout.names}
    right_hand_side, velocity = law.flat(layout, rates) if is_flow else None, np.empty(layout.size)
    times, z, dz, farthest, fastest, first = [], [], [], [], [], None
    for time, params in frames:
        first = np.array(params["Z"]) if first is None else first
        times.append(time)
        z.append(params["Z"][supports.row, supports.key])
        farthest.append(np.max(np.abs(params["Z"] - first)))
        if right_hand_side is not None:
            right_hand_side(layout.pack(params), velocity)
            score_velocity = layout.unpack(velocity)["Z"]
            dz.append(score_velocity[supports.row, supports.key])
            fastest.append(np.max(np.abs(score_velocity)))
    frame_times, scores = np.array(times, dtype=float), np.array(z)
    if not is_flow:
        dz = np.gradient(scores, frame_times, axis=0) if len(frame_times) > 1 else np.zeros_like(scores)
    return ClassAttention(
        time=frame_times,
        clock=run.clock,
        supports=supports,
        prior=law.process.weights,
        c=supports.attention(scores),
        z=scores,
        dz=np.array(dz),
        farthest=np.array(farthest),
        fastest=np.array(fastest),
        read=read,
    )


class Reader:
    """Reads the decoder frame by frame; `readout` is what was read so far."""

    def __init__(self, law: Pairing) -> None:
        self.supports, self.multiplicity = Supports.of_law(law), law.model.multiplicity
        self.target = law.rows["target"]
        rival = np.zeros(len(self.multiplicity), dtype=np.int64)
        several = len(np.unique(self.target)) > 1
        rival[self.target if several else slice(None)] = 1
        rival[self.target] = 2
        self.rival, self.rows = rival, []

    def see(self, params: Params) -> None:
        from stagescope.papers.scan_snap.kernel import read_decoder

        supports = self.supports
        f = supports.features(supports.attention(params["Z"][supports.row, supports.key]))
        directions, pulls = np.empty_like(f), np.empty_like(f)
        y = np.ascontiguousarray(params["Y"])
        y.setflags(write=False)
        shares = read_decoder(y, supports.start, supports.key, f, self.target, self.rival, self.multiplicity, directions, pulls)
        self.rows.append((directions, pulls, *shares))

    @property
    def readout(self) -> Readout:
        return Readout(*map(np.array, zip(*self.rows, strict=True)))
