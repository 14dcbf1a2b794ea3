"""What is measured on heads on a text, and when they acquire one lag after another [ISA:text-stages]."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.corpora.kernel import lagged_pairs
from stagescope.corpora.vocabulary import tally
from stagescope.detect.events import crossing, first_crossing
from stagescope.detect.noise import TWO_SIDED, flutter
from stagescope.detect.stage import Event, Stage, Stages
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.observables import GroupMass, law_of
from stagescope.papers.incremental.text.loss import LagInformation, TextHeads, lag_information
from stagescope.readings.evidence import Evidence
from stagescope.runs.run import Run


@dataclass(frozen=True)
class TextLagCurves(GroupMass):
    """A run of TextHeads, frame by frame; the groups of `mass` are the single lags 1 .. P [ISA:mass]."""

    time: np.ndarray
    loss: np.ndarray
    params: dict[str, np.ndarray]
    law: TextHeads

    @cached_property
    def mass(self) -> np.ndarray:
        """Attention of each head on each lag (frames, H, P), nearest first."""
        return self.law.model.attention(self.params)[:, :, 0, ::-1]

    @cached_property
    def levels(self) -> np.ndarray:
        """Losses, on the windows of the recorded loss, of the best predictors that see no lag, and the first lag alone.

        The predictors are the counts of the train part, which a student of the text can reach.
        """
        corpus, first = self.law.process, self.information.first
        windows = self.law.seen_windows
        pairs = lagged_pairs(corpus.train, first, corpus.vocab)
        laws = pairs / np.maximum(pairs.sum(axis=1, keepdims=True), 1)
        tokens, before = windows[:, -1], windows[:, -1 - first]
        return -np.array([np.log(corpus.stationary[tokens]).mean(), np.log(laws[before, tokens]).mean()])

    @cached_property
    def information(self) -> LagInformation:
        """The importance of each lag, measured on the text [ISA:text-importance]."""
        return lag_information(self.law.process, self.law.model.context)

    @cached_property
    def held_information(self) -> LagInformation:
        """The same on the held-out part, which no head was fitted to."""
        return lag_information(self.law.process, self.law.model.context, "held-out")

    @cached_property
    def gain(self) -> float:
        """The share by which the held-out loss ends below that of the frequencies of the types."""
        corpus = self.law.process
        law = tally(corpus.held_out, corpus.vocab) / len(corpus.held_out)
        last = {name: block[-1] for name, block in self.params.items()}
        return float(1 - self.law.judge().value(last) / -np.sum(law * np.log(corpus.stationary)))

    @cached_property
    def held_out(self) -> np.ndarray:
        """The loss on the held-out part (frames,)."""
        return self.law.judge().values(self.params)


def text_lag_curves(run: Run) -> TextLagCurves:
    """The curves of a run of TextHeads."""
    return TextLagCurves(run.time, run.series["loss"], dict(run.params), law_of(run, TextHeads, "TextHeads"))


@dataclass(frozen=True)
class LagHeads:
    """What the detector reads: the attention of the heads on each lag (frames, H, P), nearest first, and the loss."""

    time: np.ndarray
    loss: np.ndarray
    mass: np.ndarray
    agreement: np.ndarray

    def tops(self, frame: int) -> tuple[int, ...]:
        """The lag of largest attention of each head."""
        return tuple(int(lag) + 1 for lag in self.mass[frame].argmax(axis=1))

    def frame(self, time: float) -> int:
        """The first frame at or after a time."""
        return min(int(np.searchsorted(self.time, time)), len(self.time) - 1)


def acquired(heads: LagHeads) -> tuple[tuple[int, float], ...]:
    """Acquired lags with their times, earliest first."""
    best = heads.mass.max(axis=1)
    times_of_lags = [
        (lag + 1, first_crossing(heads.time, best[:, lag], LIMITS.majority, rising=True)) for lag in range(best.shape[1])
    ]
    return tuple(sorted(((lag, time) for lag, time in times_of_lags if time is not None), key=lambda pair: pair[1]))


def detect(heads: LagHeads, *, clock: str, status: str) -> Stages:
    """Events t1, t2, ...: when the first, the second, ... lag was acquired; at most as many as heads and as lags."""
    times_of_lags, best = acquired(heads), heads.mass.max(axis=1)
    events, notes = {f"t{j}": Event.missing() for j in range(1, min(heads.mass.shape[1:]) + 1)}, {}
    # intervals are from the spacing of records and the noise of batches in the run
    for j, (lag, _) in enumerate(times_of_lags, start=1):
        definition, share = f"a head gives lag {lag} half of its attention", best[:, lag - 1]
        error = TWO_SIDED * flutter(heads.time, share)
        events[f"t{j}"] = crossing(heads.time, share, LIMITS.majority, True, error=error, how=definition)
        notes[f"t{j}"] = f"lag {lag}"
    reason, peaks, acquired_lags = "every lag was acquired", best.max(axis=0), {lag for lag, _ in times_of_lags}
    if unacquired := [lag for lag in range(1, len(peaks) + 1) if lag not in acquired_lags]:
        lag = max(unacquired, key=lambda one: peaks[one - 1])
        reason = f"no other lag had {LIMITS.majority:g} of a head's attention; lag {lag} had the most, {peaks[lag - 1]:.2f}"
    notes |= {name: reason for name, event in events.items() if event.time is None}
    return Stages.of(status, clock, events, _stages(heads, times_of_lags), notes)


def _stages(heads: LagHeads, times_of_lags: tuple[tuple[int, float], ...]) -> tuple[Stage, ...]:
    """`start`, then `1 lag`, `2 lags`, ... with the losses, and the top lags and agreement of heads at the end of each."""
    starts = (float(heads.time[0]), *(time for _, time in times_of_lags))
    stages = []
    for j, start in enumerate(starts):
        stop = starts[j + 1] if j + 1 < len(starts) else None
        frame = len(heads.time) - 1 if stop is None else heads.frame(stop)
        facts: dict[str, Any] = {
            "acquired": [lag for lag, _ in times_of_lags[:j]],
            "loss_start": float(heads.loss[heads.frame(start)]),
            "loss_end": float(heads.loss[frame]),
            "top_lags": list(heads.tops(frame)),
            "top_attention": heads.mass[frame].max(axis=1).tolist(),
            "agreement": float(heads.agreement[frame]),
        }
        lags, shares = " ".join(map(str, facts["top_lags"])), " ".join(f"{share:.2f}" for share in facts["top_attention"])
        loss = f"loss {facts['loss_start']:.4g} to {facts['loss_end']:.4g}"
        sentence = f"{loss}; at its end top lags {lags} with attention {shares}, agreement {facts['agreement']:.2f}"
        stages.append(Stage("start" if j == 0 else f"{j} lag{'s' * (j > 1)}", start, stop, sentence, facts=facts))
    return tuple(stages)


@dataclass(frozen=True, eq=False)
class TextEvidence(Evidence):
    """A run of heads on a text, the importance of its lags, and two levels: the losses of the best predictors that see no lag
    and the first lag alone. `held_information` is the importance on the held-out part, `gain` the share by which the held-out
    loss ends below that of the frequencies."""

    heads: LagHeads
    information: LagInformation
    levels: np.ndarray
    held_information: LagInformation
    gain: float

    @cached_property
    def acquired(self) -> tuple[tuple[int, float], ...]:
        """Lags and times, earliest first."""
        return acquired(self.heads)

    @property
    def count(self) -> int:
        return self.heads.mass.shape[1]

    @property
    def useless(self) -> str | None:
        """Why nothing was learned that holds on held-out text; None where something was."""
        if self.gain >= LIMITS.sampled:
            return None
        least = f"{LIMITS.sampled:.0%}: no lag is used there"
        return f"the held-out loss ends {self.gain:+.1%} below that of the frequencies, not {least}"

    @cached_property
    def attention(self) -> np.ndarray:
        """The attention of the best head on each lag, mean over the run on a logarithmic clock (P,)."""
        clock = np.log(self.heads.time + self.heads.time[-1] / 300)  # as for transitions: a step of zero has a place
        best = self.heads.mass.max(axis=1)
        return np.sum((best[1:] + best[:-1]) / 2 * np.diff(clock)[:, None], axis=0) / (clock[-1] - clock[0])

    @property
    def long(self) -> bool:
        """Whether the last lag was acquired so early that another one had time to follow."""
        return bool(self.acquired) and self.acquired[-1][1] <= LIMITS.late * self.heads.time[-1]

    @property
    def loss_settled(self) -> bool:
        """Whether the loss rests over the late part of the run."""
        late = self.heads.loss[self.heads.time >= (1 - LIMITS.late) * self.heads.time[-1]]
        return len(late) > 2 and float(np.ptp(late)) <= LIMITS.sampled * float(self.levels[0] - self.levels[1])

    @property
    def listing(self) -> str:
        """The acquired lags with their times."""
        clock = self.run.clock
        return ", ".join(f"lag {lag} at {clock} = {time:.4g}" for lag, time in self.acquired) or "no lag was acquired"
