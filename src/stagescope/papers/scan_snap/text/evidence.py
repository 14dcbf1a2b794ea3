"""Evidence for the claims of scan and snap on a text: a run, its held-out attention, and its companion runs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.papers.scan_snap.text.loss import PairwiseWindows
from stagescope.papers.scan_snap.text.observables import TextAttention, TopicAttention
from stagescope.papers.scan_snap.text.stages import FREEZE, after_prior
from stagescope.runs.run import Run

LATE = 10
"""The end of a run is its last tenth; a run has come to rest if attention snapped in its first tenth."""


@dataclass(frozen=True)
class TextEvidence:
    """A run with its held-out attention, and how to make companion runs: at another step size, and at a constant one."""

    run: Run
    curves: TextAttention
    at_rate: Callable[[float], TextAttention]
    constant: Callable[[], TextAttention]

    @property
    def topics(self) -> TopicAttention:
        assert isinstance(self.curves, TopicAttention)
        return self.curves

    @property
    def has_topics(self) -> bool:
        return isinstance(self.curves, TopicAttention)

    @property
    def is_adam(self) -> bool:
        return self.run.spec["dynamics"]["optimizer"]["type"].startswith("Adam")

    @property
    def decays(self) -> bool:
        return self.run.spec["dynamics"]["half_life"] is not None

    @property
    def rate(self) -> float:
        return float(self.run.spec["dynamics"]["lr"])

    @property
    def law(self) -> PairwiseWindows:
        return self.topics.law

    @property
    def outputs(self) -> int:
        return self.topics.process.vocab

    @property
    def learned(self) -> bool:
        """Whether the model uses the windows: the loss ends below the least loss without them."""
        return bool(self.curves.loss[-1] < self.curves.prior_loss)

    @cached_property
    def scan(self) -> np.ndarray:
        """Intervals between checkpoints after the prior was learned."""
        return after_prior(self.curves, self.curves.masses)[1]

    @property
    def at_rest(self) -> bool:
        """Whether attention snapped in the first tenth of the run; scores and masses change for long after that."""
        if not self.scan.size:
            return False
        motion = self.curves.motion
        moving = self.scan[motion.variation[self.scan] >= FREEZE.level(motion.variation[self.scan])]
        return bool(LATE * motion.stop[moving[-1]] <= self.curves.time[-1])


def late_motion(curves: TextAttention) -> float | None:
    """Mean total variation between checkpoints in the last tenth of a run; None if there are too few checkpoints."""
    moved = curves.motion.variation
    return float(np.mean(moved[-(len(moved) // LATE) :])) if len(moved) >= LATE else None


def late_entropy(curves: TextAttention) -> float:
    """Mean entropy of attention over the last tenth of the frames; at a constant rate it changes from frame to frame."""
    return float(np.mean(curves.entropy[-max(1, len(curves.entropy) // LATE) :]))


def late_rise(curve: np.ndarray) -> np.ndarray:
    """Rise of curves (frames, ...) per doubling of the clock, from the means over the sixth and over the last tenth of a run."""
    tenth, half = max(1, len(curve) // LATE), len(curve) // 2
    rise = np.mean(curve[-tenth:], axis=0) - np.mean(curve[half : half + tenth], axis=0)
    return rise * np.log(2) / np.log(0.95 / 0.55)  # the middles of these tenths are less than a doubling apart


def rank_correlation(x: np.ndarray, y: np.ndarray, given: np.ndarray | None = None) -> float:
    """Spearman's correlation; with `given`, the partial correlation at equal ranks of it [SnS:text-distinct]."""
    from scipy.stats import rankdata

    rows = [rankdata(values) for values in (x, y, *(() if given is None else (given,)))]
    if any(np.ptp(row) == 0 for row in rows):
        return float("nan")
    table = np.corrcoef(rows)
    if given is None:
        return float(table[0, 1])
    return float((table[0, 1] - table[0, 2] * table[1, 2]) / np.sqrt((1 - table[0, 2] ** 2) * (1 - table[1, 2] ** 2)))


def highest(correlation: float, count: int) -> float:
    """A rank correlation of `count` pairs plus two standard errors, on Fisher's scale: variance (1 + r^2/2)/(n - 3)."""
    if abs(correlation) >= 1 or count <= 3:
        return 1.0
    return float(np.tanh(np.arctanh(correlation) + 2 * np.sqrt((1 + correlation**2 / 2) / (count - 3))))
