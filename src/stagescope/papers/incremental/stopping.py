"""Early stopping on few sequences: rules on curves, convex fits, and the claims about both."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.claims.claim import ClaimTable
from stagescope.claims.comparison import Comparison, Regime, not_applicable, regime_of, undecided
from stagescope.core.errors import InputError
from stagescope.detect.limits import LIMITS as DETECTOR
from stagescope.detect.noise import TWO_SIDED
from stagescope.detect.transitions import transitions
from stagescope.flow.softmax import log_softmax
from stagescope.papers.incremental.levels import Contexts, RestrictedClass, drawn_moments, fit, fit_ridge
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.observables import LagCurves, lag_curves
from stagescope.papers.incremental.students import LaggedLoss
from stagescope.papers.incremental.study import WORDS
from stagescope.readings.evidence import Evidence
from stagescope.runs.run import Run

claim = ClaimTable(WORDS.claims)


Difference = Callable[[int, int], tuple[float, float]]
"""Mean and standard error of the held-out loss at one frame minus that at another, sequence by sequence."""


@dataclass(frozen=True)
class Stop:
    """The frame a rule hands back, and the frame at which it knows: training goes on until then."""

    frame: int
    decided: int


def patient_stop(step: np.ndarray, held_out: np.ndarray, patience: float) -> Stop:
    """Stop once the held-out loss has had no new least value for `patience` steps; hand back the frame of the least."""
    best = 0
    for i in range(len(step)):
        if held_out[i] < held_out[best]:
            best = i
        elif step[i] - step[best] >= patience:
            return Stop(best, i)
    return Stop(best, len(step) - 1)


def adaptive_stop(step: np.ndarray, training: np.ndarray, held_out: np.ndarray, difference: Difference) -> Stop:
    """Stop when a stage does not lower the held-out loss [ISA:stopping-rules].

    Stages are those that the paper-free detector finds in the training loss so far: every tenth of ln step it looks at the
    records up to now, and at no other. A transition is found once it is over. Then the least held-out loss since its beginning
    is compared with the least before: unless it is lower by more than one standard error of the difference, training stops and
    the older frame is handed back. It is patience counted in stages, not in steps: it waits on a plateau however long it lasts.
    """
    judged = 0.0
    for now in looks(step):
        falls = [transition for transition in transitions(step[: now + 1], training[: now + 1]) if transition.amplitude < 0]
        if not falls or falls[-1].t <= judged:
            continue
        judged = falls[-1].high
        begin = int(np.clip(np.searchsorted(step, falls[-1].start, side="right") - 1, 0, now - 1))
        old, new = int(np.argmin(held_out[: begin + 1])), begin + 1 + int(np.argmin(held_out[begin + 1 : now + 1]))
        mean, error = difference(new, old)
        if not mean < -error:
            return Stop(old, now)
    return Stop(int(np.argmin(held_out)), len(step) - 1)


def looks(step: np.ndarray) -> list[int]:
    """The frames at which the rule looks: the first with enough records, then every tenth of ln step, and the last."""
    looks, due = [], 0.0
    for i in range(DETECTOR.fewest - 1, len(step)):
        if step[i] >= due or i == len(step) - 1:
            looks.append(i)
            due = float(step[i]) * np.exp(LIMITS.patience)
    return looks


VALIDATION_SEED = 2**62
"""Of the sequences, with their true law, on which every loss is measured: the same ones for all runs of a task."""


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
        return self.law.judge(LIMITS.held_out, VALIDATION_SEED)

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
        gaps = self._sequence_losses(first) - self._sequence_losses(second)
        error = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else np.inf
        return float(gaps.mean()), error

    def _sequence_losses(self, frame: int) -> np.ndarray:
        """The held-out loss of every sequence."""
        model, tokens = self.law.model, self.held_law.all.by_sequence
        logits = model.logits(self.curves.at(frame), tokens)
        log_probabilities = np.take_along_axis(log_softmax(logits), tokens[:, model.context :, None], axis=-1)
        return -np.mean(log_probabilities[..., 0], axis=1)

    @cached_property
    def stops(self) -> Mapping[str, Stop]:
        """oracle, held-out, adaptive, end."""
        last = len(self.step) - 1
        return {
            "oracle": Stop(int(np.argmin(self.validation)), last),  # nobody can follow this rule, and no rule does better
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

    def _judged(self, matrices: np.ndarray) -> float:
        return self.law.process.soft_loss(self.validation_law.all.by_sequence, matrices, self.law.model.context)

    @cached_property
    def likelihood(self) -> Mapping[float, np.ndarray]:
        """By ridge: validation losses (k+1,) of the members of F_0 .. F_k that fit the training sequences best [ISA:ridge]."""
        process, start, tokens = self.law.process, self.law.model.context, self.law.all.by_sequence
        classes = len(process.groups) + 1
        logs = {ridge: np.full(classes, np.log(process.vocab)) for ridge in LIMITS.ridges}
        contexts, moments = Contexts.of(process, tokens, start), drawn_moments(process, tokens, start)
        for j in range(1, classes):
            class_contexts, matrices = contexts.known_to(j), None
            for ridge in LIMITS.ridges:  # from stiff to loose, each fit starts at the one before
                matrices, converged = fit(class_contexts, moments[:j], ridge, matrices)
                logs[ridge][j] = self._judged(matrices) if converged else np.nan
        return logs

    @cached_property
    def ridge(self) -> np.ndarray:
        """Validation losses (k+1,) of fits that know the lags and choose their ridge on a quarter of the data [ISA:ridge]."""
        return np.array([self._judged(item.matrices) if item.converged else np.nan for item in self._ridge_fits])

    @cached_property
    def _ridge_fits(self) -> list[RestrictedClass]:
        process, start, tokens = self.law.process, self.law.model.context, self.law.all.by_sequence
        return [fit_ridge(process, tokens, j, start) for j in range(len(process.groups) + 1)]

    def ridge_error(self, frame: int, groups: int) -> float:
        """Half the 95 % interval of the validation loss at a frame minus that of the ridge fit of a class, over sequences."""
        model, law = self.law.model, self.validation_law
        logits = model.logits(self.curves.at(frame), law.all.by_sequence)
        fitted = log_softmax(self._ridge_fits[groups].scores(law.all.by_sequence, model.context))
        differences = np.sum(law.all.soft.reshape(logits.shape) * (fitted - log_softmax(logits)), axis=-1).mean(axis=1)
        return TWO_SIDED * float(differences.std(ddof=1) / np.sqrt(len(differences)))

    @property
    def best_by_ridge(self) -> Mapping[float, int | None]:
        """j*: the class whose likelihood fit predicts best, for each ridge; None where a fit did not converge."""
        return {ridge: int(np.argmin(row)) if np.isfinite(row).all() else None for ridge, row in self.likelihood.items()}

    @property
    def best_class(self) -> int | None:
        """j* in the limit of no ridge; None where it has not settled (see LIMITS.ridges)."""
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
            **{f"loss.{rule}": self.loss(rule) for rule in self.stops},
            "loss.likelihood": float(np.min(self.likelihood[LIMITS.ridges[1]])),
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
    reason = no_stopping(curves.law) or (None if "step" in run.series else "a flow has no steps; early stopping needs a descent")
    if reason is not None:
        raise InputError(reason)
    if held_sequences is not None and held_sequences < 2:
        raise InputError(f"{held_sequences} held-out sequences have no standard error; take at least 2")
    if patience is not None and not (np.isfinite(patience) and patience > 0):
        raise InputError(f"patience is {patience:g} steps, but must be positive and finite")
    held_count = max(2, round(LIMITS.held_share * curves.law.sequences)) if held_sequences is None else held_sequences
    step = run.step.astype(float)
    waits = LIMITS.patience * float(step[-1]) if patience is None else patience
    return Stopping(curves, step, np.asarray(run.series["loss"]), held_count, waits)


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


class StoppingEvidence(Evidence):
    """The stops of a run, computed when a claim first looks at them."""

    @cached_property
    def stopping(self) -> Stopping | str:
        """Or the sentence that says why the run has none: soft labels, fresh sequences, a flow."""
        try:
            return stopping(self.run)
        except InputError as error:
            return str(error)

    @property
    def found(self) -> Stopping:
        """The stops, where a regime has made sure that there are some."""
        assert isinstance(self.stopping, Stopping)
        return self.stopping


def _counts(stopping: Stopping) -> float:
    losses = stopping.curves.levels.losses
    return LIMITS.counts * float(losses[0] - losses[-1])


def overfits(stopping: Stopping | str) -> Regime:
    """There is something to stop: the loss to the true law is higher at the end than at its least."""
    if isinstance(stopping, str):
        return not_applicable(stopping)
    least, gain, count = _counts(stopping), stopping.gain, stopping.law.sequences
    if gain <= least:
        return not_applicable(
            f"{count} sequences are not overfitted: {gain:.3g} above the best frame at the end ({least:.2g} counts)"
        )
    # a run that got worse has nothing to say of stopping if it never was on the ladder, or if there is none to see
    losses, excess = stopping.curves.levels.losses, stopping.validation - stopping.validation_law.floor
    half, height = float((losses[0] + losses[1]) / 2 - losses[-1]), float(losses[0] - losses[-1])
    best = float(excess.min())
    error = stopping.difference(stopping.stops["end"].frame, stopping.stops["oracle"].frame)[1]
    kinds = (
        (bool(np.isfinite(excess).all()), "a loss on the way is not finite"),
        (best <= half, f"t_1 was not passed: the best frame is {best:.3g} above Bayes, half-way is {half:.3g}"),
        (height > error, f"the ladder is {height:.2g} high, the held-out loss has a standard error of {error:.2g}"),
    )
    return regime_of(*kinds, holds=f"{count} sequences are overfitted: {gain:.3g} above the best frame at the end")


def decided(stopping: Stopping | str) -> Regime:
    """Moreover j* does not depend on the ridge, and the run has come as far as class j*."""
    regime = overfits(stopping)
    if not regime.holds or isinstance(stopping, str):
        return regime
    best = stopping.best_class
    if best is None:
        listing = ", ".join(f"{j} at ridge {ridge:g}" for ridge, j in stopping.best_by_ridge.items())
        return Regime(False, f"which likelihood fit is best has not settled as the ridge vanishes: {listing}")
    highest_class = max(stopping.nearest(stopping.stops[rule].frame) for rule in ("oracle", "end"))
    if highest_class < best:
        return Regime(False, f"the run ends as class {highest_class}, before class {best}: more steps are needed")
    listing = " and ".join(f"{ridge:g}" for ridge in LIMITS.ridges[-2:])
    return Regime(True, f"{regime.sentence}; class {best} is the best fit at ridges {listing}")


@claim("ISA:early-stopping", lambda evidence: decided(evidence.stopping))
def best_restricted(evidence: StoppingEvidence) -> Comparison:
    """The class nearest at the best stop against the class whose likelihood fit predicts best."""
    stopping = evidence.found
    stop, best = stopping.stops["oracle"].frame, stopping.best_by_ridge[LIMITS.ridges[-1]]
    near, clear = stopping.curves.nearest(stop)
    fits = ", ".join(f"F_{j} {loss:.3g}" for j, loss in enumerate(stopping.likelihood[LIMITS.ridges[-2]]))
    ridge = f"fits at ridge {LIMITS.ridges[-2]:g}: {fits}"
    reason = f"best stop at step {stopping.step[stop]:g} with loss {stopping.validation[stop]:.4g}; {ridge}"
    if not clear:
        reason += "; the nearest class is not nearer than the next by two standard errors"
    return Comparison("no class" if best is None else best, near, "the same class", near == best if clear else None, reason)


@claim("ISA:stop-ridge", lambda evidence: overfits(evidence.stopping))
def against_ridge(evidence: StoppingEvidence) -> Comparison:
    """The loss at the best stop above that of the best ridge fit; less than a hundredth of the ladder decides nothing."""
    stopping = evidence.found
    allowed = _counts(stopping)
    if not np.isfinite(stopping.ridge).all():
        return undecided("a ridge fit did not converge", "> 0", allowed, "nats")
    best, stopped = int(np.argmin(stopping.ridge)), stopping.loss("oracle")
    above = stopped - float(stopping.ridge[best])
    reason = f"loss {stopped:.4g} at the best stop, {stopped - above:.4g} by the ridge fit of class {best} that knows the lags"
    error = stopping.ridge_error(stopping.stops["oracle"].frame, best)
    holds = None if abs(above) <= allowed + error else above > 0
    return Comparison("> 0", above, allowed, holds, reason, measured_error=error, unit="nats")


STOPPING_CLAIMS = claim.claims


def stopping_measure(run: Run) -> dict[str, Any]:
    """`Stopping.row`, and `not_judged`: why the claim on early stopping does not apply to the run, None where it does."""
    stops = stopping(run)
    regime = decided(stops)
    return {**stops.row(), "not_judged": None if regime.holds else regime.sentence}
