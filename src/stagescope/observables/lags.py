"""What a run of positional heads shows: attention on the lag groups, how alike heads are, and which class they predict as."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.described import build
from stagescope.errors import InputError
from stagescope.keys import key
from stagescope.objectives.heads import HeadsLoss, held_out
from stagescope.observables.regression import agreement, contrast
from stagescope.processes.class_levels import ClassLevels, class_levels
from stagescope.runs.run import Run

HELD_OUT = 3000
"""Sequences the held-out loss is over."""
CONTEXTS = 500
"""Sequences on which predictions are compared with those of the classes."""


@dataclass(frozen=True)
class LagCurves:
    """A run of PositionalHeads, frame by frame [ISA:mass]."""

    time: np.ndarray
    params: dict[str, np.ndarray]
    law: HeadsLoss

    @cached_property
    def attention(self) -> np.ndarray:
        """softmax(a) (frames, H, L, positions)."""
        return self.law.model.attention(self.params)

    @cached_property
    def mass(self) -> np.ndarray:
        """Attention of each head on each lag group, mean over targets (frames, H, k) [ISA:mass]."""
        model, process = self.law.model, self.law.process
        targets = np.arange(model.targets)
        groups = []
        for group in process.groups:
            each = [self.attention[:, :, targets, model.context + targets - lag] for lag in group]
            groups.append(np.sum(each, axis=0).mean(axis=2))
        return np.stack(groups, axis=2)

    @cached_property
    def agreement(self) -> np.ndarray:
        """Mean cosine between the attention of two heads (frames,)."""
        shape = self.attention.shape
        return agreement(self.attention.reshape(*shape[:2], -1))

    @cached_property
    def contrast(self) -> np.ndarray:
        """How far heads have split the groups among themselves (frames,)."""
        return contrast(self.mass)

    @cached_property
    def held_out(self) -> HeadsLoss:
        law = self.law
        return held_out(law.model, law.process, HELD_OUT, law.seed)

    @cached_property
    def excess(self) -> np.ndarray:
        """Held-out loss above the entropy of its own targets (frames,): free of the noise of the contexts drawn."""
        return self.held_out.values(self.params) - self.held_out.floor

    @cached_property
    def levels(self) -> ClassLevels:
        """Where plateaus should lie [ISA:levels]."""
        model, process = self.law.model, self.law.process
        return class_levels(process, model.targets, model.context - process.reach)

    @cached_property
    def steps(self) -> np.ndarray:
        """The levels above the last, (k + 1,), to be compared with `excess`."""
        return self.levels.losses - self.levels.bayes

    def divergences(self, frame: int) -> np.ndarray:
        """Mean KL(F_j || model) for j = 0..k: the least says which class the model predicts as."""
        model, process = self.law.model, self.law.process
        tokens = process.sample(key(self.law.seed, "contexts"), CONTEXTS, model.targets, model.context - process.reach)
        logits = model.logits({name: block[frame] for name, block in self.params.items()}, tokens)
        logs = logits - logits.max(axis=-1, keepdims=True)
        logs -= np.log(np.sum(np.exp(logs), axis=-1, keepdims=True))
        laws = [fit.law(tokens, model.context) for fit in self.levels.fits]
        return np.array([np.mean(np.sum(p * (np.log(np.maximum(p, 1e-300)) - logs), axis=-1)) for p in laws])


def lag_curves(run: Run) -> LagCurves:
    """The curves of a run of HeadsLoss."""
    law = build(run.spec["field"])
    if not isinstance(law, HeadsLoss):
        raise InputError(f"expected a run of HeadsLoss, got one of {run.spec['field']['type']}")
    return LagCurves(run.time, {name: run.params[name] for name in run.params}, law)
