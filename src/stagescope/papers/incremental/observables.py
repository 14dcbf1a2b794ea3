"""What is measured on a run: agreement and specialisation of heads, curves of students and of the regression flow."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.core.errors import InputError
from stagescope.core.params import key
from stagescope.flow.field import as_field
from stagescope.flow.record import LogSpaced
from stagescope.flow.softmax import log_softmax, log_sum_exp
from stagescope.papers.incremental.levels import ClassLevels, class_levels
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.loss import LaggedLoss
from stagescope.papers.incremental.regression import (
    Regression,
    RegressionForms,
    RegressionHeads,
    RegressionSampled,
    RegressionTransformer,
)
from stagescope.papers.incremental.study import IncrementalOptions
from stagescope.processes.strategies import Strategies
from stagescope.readings.rebuild import rebuilt
from stagescope.readings.replay import Replay, position_of
from stagescope.runs.run import Run


class GroupMass:
    """Curves of heads that have a mass on each group of lags, or on the position of each feature."""

    @cached_property
    @abstractmethod
    def mass(self) -> np.ndarray:
        """Attention of each head on each group (frames, H, k) [ISA:mass]."""

    @cached_property
    def values(self) -> np.ndarray | None:
        """What each head adds to the output for what it sees (frames, H, ...); None where that is no matrix."""
        return None

    @cached_property
    def parts(self) -> np.ndarray | None:
        """What each head adds to `learned` (frames, H, k); None where that is not known."""
        return None

    @property
    def learned(self) -> np.ndarray | None:
        """The share of each true map that the heads have learned (frames, k): 1 where they agree [ISA:order]."""
        return None if self.parts is None else self.parts.sum(axis=1)

    @cached_property
    def value_agreement(self) -> np.ndarray | None:
        """Mean cosine between the values of two heads (frames,), nan while those of a head are zero."""
        return None if self.values is None else agreement(self.values.reshape(*self.values.shape[:2], -1))

    @cached_property
    def contrast(self) -> np.ndarray:
        """How far heads have split the groups among themselves (frames,)."""
        return contrast(self.mass)

    @cached_property
    def specialisation(self) -> np.ndarray:
        """Mass of the best matching of heads to groups, mean over matched pairs (frames,)."""
        return specialisation(self.mass)

    @cached_property
    def mass_agreement(self) -> np.ndarray:
        """Mean cosine between the masses of two heads (frames,)."""
        return agreement(self.mass)


def agreement(rows: np.ndarray) -> np.ndarray:
    """Mean cosine between two heads' rows (..., H, N) of attention, mass or values; 1 for one head, nan for rows of zeros."""
    heads = rows.shape[-2]
    if heads == 1:
        return np.ones(rows.shape[:-2])
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    rows = rows / np.where(lengths > 0, lengths, np.nan)
    total = np.sum(np.sum(rows, axis=-2) ** 2, axis=-1)
    return (total - heads) / (heads * (heads - 1))


def specialisation(mass: np.ndarray) -> np.ndarray:
    """Hungarian matching of heads to groups on the mass (frames, H, k), mean over the min(H, k) matched pairs.

    1 where every group has a head of its own, or every head a group; equal heads have the mean of their largest masses
    [ISA:specialisation].
    """
    from scipy.optimize import linear_sum_assignment

    return np.array([frame[linear_sum_assignment(frame, maximize=True)].mean() for frame in mass])


def contrast(mass: np.ndarray) -> np.ndarray:
    """The same matching on the mass (frames, H, k) less its mean over heads.

    0 for equal heads, (k - 1)/k where k heads split k groups [ISA:contrast].
    """
    return specialisation(mass - mass.mean(axis=1, keepdims=True))


STEPS: int = IncrementalOptions.model_fields["frames"].default
"""Frames of the replay of a descent, at equal ratios from step 1: those of the study, so that a run of it needs no replay."""


def dense(run: Run, replay: Callable[[np.ndarray], Run | None] | None = None) -> Run:
    """A run replayed from its first frame to its last at frames that depend on its length alone; itself if it has those.

    A run whose numbers broke down cannot be replayed to its end and is read as it is; so is one whose law misses a frame.
    """
    if run.frames < 2 or run.status in ("diverged", "failed"):
        return run
    if "step" in run.series:
        positions = LogSpaced(frames=STEPS).steps(int(run.step[-1]))
    else:
        end = float(run.t[-1])
        positions = LogSpaced(frames=LIMITS.frames, first=LIMITS.first * end).times(end)
    if np.array_equal(position_of(run), positions):
        return run
    again = (replay or Replay(run, as_field(rebuilt(run.spec["field"]))).refined)(positions)
    if again is None:
        return run
    thinned = again.only(np.flatnonzero(np.isin(position_of(again), positions)))
    return replace(thinned, study=run.study, config=run.config)  # with the options of the study that made the run


@dataclass(frozen=True)
class LagCurves(GroupMass):
    """A run of PositionalHeads, ContentHeads or Transformer, frame by frame [ISA:mass].

    Attention is that of the first layer, over a fixed sample of contexts where it depends on the tokens.

    Examples:
        >>> student = ss.PositionalHeads(vocab=3, heads=2, context=2, targets=4)
        >>> law = ss.HeadsLoss(model=student, process=lagged, sequences=50)
        >>> trained = ss.evolve(law, student.init(seed=0), ss.Descent(optimizer=ss.GD(), lr=1.0, steps=50), record=ss.Every(n=10))
        >>> ss.lag_curves(trained).mass.shape[0]  # one entry a frame
        6
    """

    time: np.ndarray
    params: dict[str, np.ndarray]
    law: LaggedLoss
    compared: int = LIMITS.compared

    @property
    def frames(self) -> int:
        return len(self.time)

    def at(self, frame: int) -> dict[str, np.ndarray]:
        """The parameters of one frame."""
        return {name: block[frame] for name, block in self.params.items()}

    def frame(self, time: float) -> int:
        """The frame nearest to a time or step."""
        return int(np.argmin(np.abs(self.time - time)))

    @cached_property
    def contexts(self) -> np.ndarray:
        """The sequences (`compared`, P + L) that students and classes are compared on."""
        model, process = self.law.model, self.law.process
        return process.sample(key(self.law.seed, "contexts"), self.compared, model.targets, model.context - process.reach)

    @cached_property
    def _attended(self) -> tuple[np.ndarray, ...]:
        """Attention (frames, H, L, positions), agreement (frames,), entropy (frames, H), one frame in memory at a time.

        Last the attention on each lag by the token there (frames, H, lags, d): a mean over contexts and targets.
        """
        means, agreements, entropies, by_token = [], [], [], []
        for frame in range(self.frames):
            attention = self.law.model.seen(self.at(frame), self.contexts[: LIMITS.attended])
            means.append(attention.mean(axis=0))
            agreements.append(agreement(np.swapaxes(attention, 0, 1).reshape(attention.shape[1], -1)))
            entropies.append(-np.sum(attention * np.log(np.maximum(attention, 1e-300)), axis=-1).mean(axis=(0, 2)))
            by_token.append([self._on_tokens(attention, lag) for lag in self.law.process.lags])
        return np.array(means), np.array(agreements), np.array(entropies), np.swapaxes(by_token, 1, 2)

    def _on_tokens(self, attention: np.ndarray, lag: int) -> np.ndarray:
        """Attention of each head on a lag by the token there (H, d); on a token that is never there, that on the lag."""
        model = self.law.model
        targets = np.arange(model.targets)
        places = model.context + targets - lag
        weights, tokens = attention[:, :, targets, places], self.contexts[: len(attention), places]
        overall = weights.mean(axis=(0, 2))
        if len(attention) == 1:  # attention does not depend on tokens
            return np.repeat(overall[:, None], model.vocab, axis=1)
        counts = np.bincount(tokens.ravel(), minlength=model.vocab)
        sums = [np.bincount(tokens.ravel(), weights[:, head].ravel(), model.vocab) for head in range(weights.shape[1])]
        return np.where(counts > 0, np.array(sums) / np.maximum(counts, 1), overall[:, None])

    @property
    def attention(self) -> np.ndarray:
        """Attention of each head, mean over contexts (frames, H, L, positions)."""
        return self._attended[0]

    @property
    def agreement(self) -> np.ndarray:
        """Mean cosine between the attention of two heads over contexts, targets and positions (frames,)."""
        return self._attended[1]

    @property
    def entropy(self) -> np.ndarray:
        """Mean entropy of the attention of each head (frames, H)."""
        return self._attended[2]

    def lag_attention(self, lag: int) -> np.ndarray:
        """Attention of each head on one lag, mean over contexts and targets (frames, H)."""
        model = self.law.model
        targets = np.arange(model.targets)
        return self.attention[:, :, targets, model.context + targets - lag].mean(axis=2)

    @cached_property
    def mass(self) -> np.ndarray:
        """Attention of each head on each lag group, mean over contexts and targets (frames, H, k) [ISA:mass].

        A lag that belongs to two groups counts in both.
        """
        return np.stack([np.sum([self.lag_attention(lag) for lag in group], axis=0) for group in self.law.process.groups], axis=2)

    @cached_property
    def values(self) -> np.ndarray | None:
        """The map of each head from token to logits (frames, H, d, d); None where that is no matrix."""
        maps = [self.law.model.token_maps(self.at(frame)) for frame in range(self.frames)]
        return None if maps[0] is None else np.array(maps)

    @cached_property
    def alignment(self) -> np.ndarray | None:
        """<V_h, A_i>/|A_i| (frames, H, k), V_h from token to logits; None where that is no matrix [ISA:alignment]."""
        if self.values is None:
            return None
        process = self.law.process
        features = process.features.stack(len(process.groups), process.vocab)
        units = features / np.linalg.norm(features, axis=(1, 2), keepdims=True)
        return np.einsum("fhyx,iyx->fhi", self.values, units)

    @cached_property
    def parts(self) -> np.ndarray | None:
        """What each head adds to <M_i, w_i x beta_i A_i> / |w_i x beta_i A_i|^2 (frames, H, k).

        Column x of M_il = sum_h s_h(t - l) V_h is what token x at lag l adds to the scores, mean over targets; where attention
        depends on the tokens, also over contexts with x at that lag. None for models whose heads are no matrices.
        """
        process = self.law.process
        if self.values is None:
            return None
        lags, shares = {lag: place for place, lag in enumerate(process.lags)}, []
        for number, (group, matrix) in enumerate(zip(process.groups, process.matrices, strict=True)):
            weights = np.array(process.group_weights(number))
            mixed = np.einsum("l,fhlx->fhx", weights, self._attended[3][:, :, [lags[lag] for lag in group]])
            along = np.einsum("fhyx,yx,fhx->fh", self.values, matrix, mixed)
            shares.append(along / (np.sum(weights**2) * np.sum(matrix**2)))
        return np.stack(shares, axis=2)

    @cached_property
    def held_out(self) -> LaggedLoss:
        return self.law.judge(LIMITS.held_out)

    @cached_property
    def excess(self) -> np.ndarray:
        """Held-out loss minus the entropy of its own targets (frames,): the noise of the sampled contexts cancels."""
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

    @cached_property
    def classes(self) -> Strategies:
        """The best members of the classes F_0 .. F_k on the contexts."""
        context = self.law.model.context
        return Strategies({f"F_{j}": fit.law(self.contexts, context) for j, fit in enumerate(self.levels.fits)})

    @cached_property
    def teachers(self) -> Strategies:
        """The truncated teachers T_0 .. T_k on the contexts [ISA:truncated]."""
        process, context = self.law.process, self.law.model.context
        counts = range(len(process.groups) + 1)
        return Strategies({f"T_{j}": process.predictive(self.contexts, context, groups=j) for j in counts})

    def logs(self, frame: int) -> np.ndarray:
        """Log probabilities that the model gives on the contexts at a frame (sequences, L, d)."""
        return log_softmax(self.law.model.logits(self.at(frame), self.contexts))

    def divergences(self, frame: int) -> np.ndarray:
        """Mean KL(F_j || model) for j = 0..k: the model predicts as the class of the least one."""
        return self.classes.divergences(self.logs(frame))

    def truncated_divergences(self, frame: int) -> np.ndarray:
        """Mean KL(T_j || model) from the truncated teachers T_j, j = 0..k."""
        return self.teachers.divergences(self.logs(frame))

    def nearest(self, frame: int) -> tuple[int, bool]:
        """The class that a frame predicts as, and whether it is nearer than every other by more than two standard errors."""
        return self.classes.nearest(self.logs(frame))


def lag_curves(run: Run, compared: int = LIMITS.compared) -> LagCurves:
    """The curves of a run of HeadsLoss, ContentLoss or TransformerLoss; divergences are over `compared` sequences.

    Args:
        run: a run of one of these losses.
        compared: sequences on which laws are compared.

    Examples:
        >>> student = ss.PositionalHeads(vocab=3, heads=2, context=2, targets=4)
        >>> law = ss.HeadsLoss(model=student, process=lagged, sequences=50)
        >>> trained = ss.evolve(law, student.init(seed=0), ss.Descent(lr=1.0, steps=50), record=ss.Every(n=10))
        >>> ss.lag_curves(trained).attention.shape[:2]  # frames, heads
        (6, 2)
    """
    law = law_of(run, LaggedLoss, "HeadsLoss, ContentLoss or TransformerLoss")
    return LagCurves(run.time, dict(run.params), law, compared)


def law_of(run: Run, kinds: Any, named: str) -> Any:
    """The law of a run, rebuilt, if it is one of some kinds."""
    law = rebuilt(run.spec["field"])
    if not isinstance(law, kinds):
        raise InputError(f"expected a run of {named}, got one of {run.spec['field']['type']}")
    return law


@dataclass(frozen=True)
class HeadCurves(GroupMass):
    """A run of RegressionHeads under either law, or of the transformer they are the average of, frame by frame [ISA:heads].

    Examples:
        >>> heads = ss.RegressionHeads(positions=3, gains=(2.0, 1.0), heads=2)
        >>> flow = ss.evolve(ss.RegressionLoss(model=heads), heads.init(seed=0), ss.GradientFlow(), until=20)
        >>> float(ss.head_curves(flow).time[-1])
        20.0
    """

    time: np.ndarray
    params: dict[str, np.ndarray]
    model: RegressionHeads | RegressionTransformer
    mirror: bool

    @cached_property
    def loss(self) -> np.ndarray:
        """|R|^2/2 (frames,), also where the law has no objective."""
        return self.model.losses(self.params)

    @cached_property
    def attention(self) -> np.ndarray:
        """s (frames, H, N)."""
        return self.model.attention(self.params)

    @property
    def forms(self) -> RegressionForms:
        """The closed forms of this model and law."""
        model = self.model.reduced if isinstance(self.model, RegressionTransformer) else self.model
        return model.forms(self.mirror)

    @cached_property
    def parts(self) -> np.ndarray:
        """What each head adds to <P e_{p_i}, f_i> / g_i (frames, H, k)."""
        return self.model.copies * self.model.reduce(self.params)["V"] * self.mass / np.array(self.model.gains)

    @cached_property
    def mass(self) -> np.ndarray:
        """Attention of each head on the positions of the features (frames, H, k)."""
        return self.attention[:, :, self.model.at]

    @cached_property
    def agreement(self) -> np.ndarray:
        """Mean cosine between the attention of two heads (frames,); 1 for a single head."""
        return agreement(self.attention)

    @cached_property
    def values(self) -> np.ndarray:
        return self.params["V"]

    @cached_property
    def invariant(self) -> np.ndarray:
        """What each head conserves (frames, H): sum_n a_n, or |V|^2/2 - log sum_n exp(a_n) under the mirror law."""
        a = self.params["a"]
        if not self.mirror:
            return a.sum(axis=2)
        return np.sum(self.params["V"] ** 2, axis=2) / 2 - log_sum_exp(a)


def head_curves(run: Run) -> HeadCurves:
    """The curves of a run of RegressionLoss, MirrorFlow or RegressionSampled.

    Args:
        run: a run of these laws.

    Examples:
        >>> heads = ss.RegressionHeads(positions=3, gains=(2.0, 1.0), heads=2)
        >>> flow = ss.evolve(ss.RegressionLoss(model=heads), heads.init(seed=0), ss.GradientFlow(), until=20)
        >>> len(ss.head_curves(flow).time)
        400
    """
    law = law_of(run, Regression | RegressionSampled, "RegressionLoss, MirrorFlow or RegressionSampled")
    mirror = isinstance(law, Regression) and law.mirror
    return HeadCurves(run.time, dict(run.params), law.model, mirror)
