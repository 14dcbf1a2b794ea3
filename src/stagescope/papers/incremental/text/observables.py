"""Observables of positional heads on a text: attention on each lag, agreement of heads, and the loss."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

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
        """Losses on the train part of the best predictor that sees no lag, and of the best one that sees the first lag alone.

        They come from the counts of the text, bias included: a student of the text can reach them.
        """
        unigram, found = self.law.process.unigram_loss(), self.information
        return np.array([unigram, unigram - float(found.alone.max()) - found.bias])

    @cached_property
    def information(self) -> LagInformation:
        """The importance of each lag, measured on the text [ISA:text-importance]."""
        return lag_information(self.law.process, self.law.model.context)

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
