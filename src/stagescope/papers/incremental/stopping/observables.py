"""Early stopping of one run: its stops, what they cost, the class they are nearest to, and convex fits on the same data."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.detect.noise import TWO_SIDED
from stagescope.errors import InputError
from stagescope.fields.softmax import log_softmax
from stagescope.papers.incremental.levels.classes import Contexts, RestrictedClass, drawn_moments, fit, fit_ridge
from stagescope.papers.incremental.observables import LagCurves, lag_curves
from stagescope.papers.incremental.stopping.rules import Stop, adaptive_stop, oracle_stop, patient_stop
from stagescope.papers.incremental.students.positional_loss import LaggedLoss
from stagescope.runs.run import Run

VALIDATION, VALIDATION_SEED = 3000, 2**62
"""Sequences, with their true law, on which every loss is measured: the same ones for all runs of a task."""
SHARE = 0.25
"""Held-out sequences, with hard labels, per training sequence, unless their number is given; `fit_ridge` sets as many aside."""
PATIENCE = 0.1
"""Share of the run's steps that the held-out rule waits for a new least value, unless its patience is given."""
RIDGES = (1e-4, 1e-5, 1e-6)
"""Ridges of the likelihood fits. The last two are nearly none: the fit is settled if they agree on the best class.

Drawn tokens of few sequences are separable: as the ridge vanishes, W and with it the loss grow without end, but by a multiple of
ln(1/ridge) that depends on the class, so that the order of the classes settles. Below 1e-6 the ridge is lost in the tolerance of
the fit; at 1e-4 it already regularises.
"""


@dataclass(frozen=True)
class Stopping:
    """Rules and fits of one run on a fixed sample with hard labels [ISA:stopping-rules].

    Examples:
        >>> student = ss.PositionalHeads(vocab=3, heads=2, context=2, targets=4)
        >>> law = ss.HeadsLoss(model=student, process=lagged, sequences=20)
        >>> trained = ss.evolve(law, student.init(seed=0), ss.Descent(lr=1.0, steps=100), record=ss.Every(n=10))
        >>> sorted(ss.stopping(trained).stops)
        ['adaptive', 'end', 'held-out', 'oracle']
    """

    curves: LagCurves
    step: np.ndarray
    training: np.ndarray
    held_sequences: int
    patience: float

    @property
    def law(self) -> LaggedLoss:
        return self.curves.law

    @cached_property
    def validation_law(self) -> LaggedLoss:
        return self.law.judge(VALIDATION, VALIDATION_SEED)

    @cached_property
    def validation(self) -> np.ndarray:
        """Loss to the true law on the validation sequences (frames,)."""
        return self.validation_law.values(self.curves.params)

    @cached_property
    def held_law(self) -> LaggedLoss:
        """A small sample that no training sees, with the tokens drawn as labels: what a user has."""
        return self.law.judge(self.held_sequences, labels="hard")

    @cached_property
    def held(self) -> np.ndarray:
        """Held-out loss with hard labels (frames,)."""
        return self.held_law.values(self.curves.params)

    def difference(self, first: int, second: int) -> tuple[float, float]:
        """Mean and standard error of the held-out loss at one frame minus that at another, over sequences."""
        gaps = self._each(first) - self._each(second)
        error = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else np.inf
        return float(gaps.mean()), error

    def _each(self, frame: int) -> np.ndarray:
        """The held-out loss of every sequence."""
        model, tokens = self.law.model, self.held_law.all.tokens.T.astype(np.int64)
        logits = model.logits({name: block[frame] for name, block in self.curves.params.items()}, tokens)
        drawn = np.take_along_axis(log_softmax(logits), tokens[:, model.context :, None], axis=-1)
        return -np.mean(drawn[..., 0], axis=1)

    @cached_property
    def stops(self) -> Mapping[str, Stop]:
        """oracle, held-out, adaptive, end."""
        last = len(self.step) - 1
        return {
            "oracle": oracle_stop(self.validation),
            "held-out": patient_stop(self.step, self.held, self.patience),
            "adaptive": adaptive_stop(self.step, self.training, self.held, self.difference),
            "end": Stop(last, last),
        }

    def loss(self, rule: str) -> float:
        """Validation loss at the frame that a rule hands back."""
        return float(self.validation[self.stops[rule].frame])

    @property
    def gain(self) -> float:
        """Validation loss at the end above that at the best stop."""
        return self.loss("end") - self.loss("oracle")

    def nearest(self, frame: int) -> int:
        """The class the model predicts as at a frame: argmin_j KL(F_j || model)."""
        return int(np.argmin(self.curves.divergences(frame)))

    @cached_property
    def _tokens(self) -> np.ndarray:
        return self.law.all.tokens.T.astype(np.int64)

    def _judged(self, matrices: np.ndarray) -> float:
        tokens = self.validation_law.all.tokens.T.astype(np.int64)
        return self.law.process.soft_loss(tokens, matrices, self.law.model.context)

    @cached_property
    def likelihood(self) -> Mapping[float, np.ndarray]:
        """By ridge: validation losses (k+1,) of the members of F_0 .. F_k that fit the training sequences best [ISA:ridge]."""
        process, start = self.law.process, self.law.model.context
        classes = len(process.groups) + 1
        found = {ridge: np.full(classes, np.log(process.vocab)) for ridge in RIDGES}
        contexts, moments = Contexts.of(process, self._tokens, start), drawn_moments(process, self._tokens, start)
        for j in range(1, classes):
            known, matrices = contexts.known_to(j), None
            for ridge in RIDGES:  # from stiff to loose, each fit starts at the one before
                matrices, converged = fit(known, moments[:j], ridge, matrices)
                found[ridge][j] = self._judged(matrices) if converged else np.nan
        return found

    @cached_property
    def ridge(self) -> np.ndarray:
        """Validation losses (k+1,) of fits that know the lags and choose their ridge on a quarter of the data [ISA:ridge]."""
        return np.array([self._judged(item.matrices) if item.converged else np.nan for item in self._ridge_fits])

    @cached_property
    def _ridge_fits(self) -> list[RestrictedClass]:
        process, start = self.law.process, self.law.model.context
        return [fit_ridge(process, self._tokens, j, start) for j in range(len(process.groups) + 1)]

    def ridge_error(self, frame: int, groups: int) -> float:
        """Half the 95 % interval of the validation loss at a frame minus that of the ridge fit of a class, over sequences."""
        model, law = self.law.model, self.validation_law
        tokens = law.all.tokens.T.astype(np.int64)
        logits = model.logits({name: block[frame] for name, block in self.curves.params.items()}, tokens)
        fitted = log_softmax(self._ridge_fits[groups].scores(tokens, model.context))
        each = np.sum(law.all.soft.reshape(logits.shape) * (fitted - log_softmax(logits)), axis=-1).mean(axis=1)
        return TWO_SIDED * float(each.std(ddof=1) / np.sqrt(len(each)))

    @property
    def best_by_ridge(self) -> Mapping[float, int | None]:
        """j*: the class whose likelihood fit predicts best, for each ridge; None where a fit did not converge."""
        return {ridge: int(np.argmin(row)) if np.isfinite(row).all() else None for ridge, row in self.likelihood.items()}

    @property
    def best_class(self) -> int | None:
        """j* in the limit of no ridge; None where it has not settled (see RIDGES)."""
        *_, before, last = self.best_by_ridge.values()
        return last if last == before else None

    def row(self) -> dict[str, Any]:
        """The run in numbers, without its curves.

        Of each rule `loss.RULE` at the frame it hands back, `step.RULE` of that frame, `decided.RULE` when training ends, and the
        nearest `class.RULE`; `loss.likelihood` and `loss.ridge` of the best fits; the `gain` of the oracle over the end. Lists of
        fits are by class, from 0.
        """
        stops = self.stops.items()
        return {
            **{f"loss.{rule}": float(self.validation[stop.frame]) for rule, stop in stops},
            "loss.likelihood": float(np.min(self.likelihood[RIDGES[1]])),
            "loss.ridge": float(np.min(self.ridge)),
            **{f"step.{rule}": int(self.step[stop.frame]) for rule, stop in stops},
            **{f"decided.{rule}": int(self.step[stop.decided]) for rule, stop in stops},
            **{f"class.{rule}": self.nearest(stop.frame) for rule, stop in stops},
            "gain": self.gain,
            "best_class": self.best_class,
            "held_sequences": self.held_sequences,
            "patience": self.patience,
            "levels": self.curves.levels.losses.tolist(),
            "best_by_ridge": {f"{ridge:g}": best for ridge, best in self.best_by_ridge.items()},
            "likelihood": {f"{ridge:g}": losses.tolist() for ridge, losses in self.likelihood.items()},
            "ridge": self.ridge.tolist(),
        }


def stopping(run: Run, held_sequences: int | None = None, patience: float | None = None) -> Stopping:
    """Where rules would have stopped a run on sequences of a lagged chain, and what convex fits make of the same sequences.

    `held_sequences`: size of the held-out sample of the held-out and adaptive rules, by default a quarter of the training
    sequences. `patience`: steps the held-out rule waits, by default a tenth of the run.

    Args:
        run: the run.
        held_sequences: size of the held-out sample.
        patience: steps that the held-out rule waits.

    Examples:
        >>> student = ss.PositionalHeads(vocab=3, heads=2, context=2, targets=4)
        >>> law = ss.HeadsLoss(model=student, process=lagged, sequences=20)
        >>> trained = ss.evolve(law, student.init(seed=0), ss.Descent(lr=1.0, steps=100), record=ss.Every(n=10))
        >>> ss.stopping(trained).patience
        10.0
    """
    curves = lag_curves(run)
    why = no_stopping(curves.law) or (None if "step" in run.series else "a flow has no steps; early stopping needs a descent")
    if why is not None:
        raise InputError(why)
    check_rules(held_sequences, patience)
    held = max(2, round(SHARE * curves.law.sequences)) if held_sequences is None else held_sequences
    step = run.step.astype(float)
    waits = PATIENCE * float(step[-1]) if patience is None else patience
    return Stopping(curves, step, np.asarray(run.series["loss"]), held, waits)


def check_rules(held_sequences: int | None, patience: float | None) -> None:
    """Refuse what the rules cannot work with; None stands for their defaults."""
    if held_sequences is not None and held_sequences < 2:
        raise InputError(f"{held_sequences} held-out sequences have no standard error; take at least 2")
    if patience is not None and not (np.isfinite(patience) and patience > 0):
        raise InputError(f"patience is {patience:g} steps, but must be positive and finite")


def no_stopping(law: Any) -> str | None:
    """Why early stopping has no meaning for runs of this loss, None where it has."""
    if not isinstance(law, LaggedLoss):
        return f"early stopping needs students on drawn sequences of a lagged chain, not {type(law).__name__}"
    if law.labels != "hard":
        return "labels are the true law, which cannot be overfitted as drawn tokens can; early stopping needs labels hard"
    if law.fresh:
        return "every step sees fresh sequences: there is no sample to overfit; early stopping needs a fixed one"
    if law.sequences < 2:
        return "there is 1 training sequence; the ridge fit sets a quarter aside, so early stopping needs at least 2"
    return None
