"""Observables of positional heads on a text: attention on each lag, agreement of heads, and the loss."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.corpora.kernel import lagged_pairs
from stagescope.corpora.vocabulary import tally
from stagescope.errors import InputError
from stagescope.papers.incremental.specialisation import GroupMass
from stagescope.papers.incremental.text.information import LagInformation, lag_information
from stagescope.papers.incremental.text.loss import TextHeads
from stagescope.papers.rebuild import rebuilt
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
        own, before = windows[:, -1], windows[:, -1 - first]
        return -np.array([np.log(corpus.stationary[own]).mean(), np.log(laws[before, own]).mean()])

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
    law = rebuilt(run.spec["field"])
    if not isinstance(law, TextHeads):
        raise InputError(f"expected a run of TextHeads, got one of {run.spec['field']['type']}")
    return TextLagCurves(run.time, run.series["loss"], {name: run.params[name] for name in run.params}, law)
