"""Evidence for the claims of scan and snap on a text: a run, its held-out attention, and its companion runs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.comparison import CHANCE
from stagescope.detect.noise import TWO_SIDED
from stagescope.papers.scan_snap.text.held import HeldOut
from stagescope.papers.scan_snap.text.loss import PairwiseWindows
from stagescope.papers.scan_snap.text.observables import TextAttention, TopicAttention
from stagescope.papers.scan_snap.text.stages import SNAP, after_prior, peak_of
from stagescope.runs.run import Run

LATE = SNAP.late
"""The end of a run is its last tenth."""
LEARNED = 0.05
"""Least share by which a held-out loss must be below the entropy of the words: heads also move on words in random order, where
this share is 0."""


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
    def fitted(self) -> bool:
        """Whether the model uses the training windows: the loss ends below the least loss without them."""
        return bool(self.curves.loss[-1] < self.curves.prior_loss)

    @cached_property
    def held(self) -> HeldOut:
        """Statistics of topical classes on held-out windows."""
        return HeldOut(self.run, self.topics)

    @cached_property
    def unlearned(self) -> str | None:
        """Why nothing was learned that holds on held-out text; None where something was."""
        if self.has_topics:
            gain, chance = self.held.gain
            share = float(np.mean(chance >= gain))
            if gain > 0 and share <= CHANCE:
                return None
            return f"the best held-out loss is {-gain:+.3f} nats from that of the prior: what was learned is of no use there"
        gain = 1 - self.curves.held_loss / self.curves.prior_loss
        if gain >= LEARNED:
            return None
        return f"the held-out loss is {gain:+.1%} below the entropy of the words, not {LEARNED:.0%}: no context is used there"

    @cached_property
    def scan(self) -> np.ndarray:
        """Intervals between checkpoints after the prior was learned."""
        return after_prior(self.curves, self.curves.masses)[1]

    @cached_property
    def peak(self) -> float | None:
        """When attention moves most."""
        return peak_of(self.curves.motion, self.scan).time

    @property
    def scanned(self) -> bool:
        """Whether attention moved most in the first third of the run: what has not come by its end will not."""
        return self.peak is not None and 3 * self.peak <= float(self.curves.time[-1])


def late_motion(curves: TextAttention) -> float | None:
    """Mean total variation between checkpoints in the last tenth of a run; None if there are too few checkpoints."""
    moved = curves.motion.variation
    return float(np.mean(moved[-(len(moved) // LATE) :])) if len(moved) >= LATE else None


def late_entropy(curves: TextAttention) -> float:
    """Mean entropy of attention over the last tenth of the frames; at a constant rate it changes from frame to frame."""
    return float(np.mean(curves.entropy[-max(1, len(curves.entropy) // LATE) :]))


def entropy_error(curves: TextAttention) -> float:
    """The 95 % half-width of the entropy from frame to frame at the end; at least three frames are looked at."""
    return TWO_SIDED * float(np.std(curves.entropy[-max(3, len(curves.entropy) // LATE) :], ddof=1))
