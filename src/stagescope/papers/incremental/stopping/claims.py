"""Claims about early stopping of students on drawn tokens [ISA:early-stopping]."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime
from stagescope.errors import InputError
from stagescope.papers.incremental import nulls
from stagescope.papers.incremental.stopping.observables import RIDGES, Stopping, stopping
from stagescope.runs.run import Run

COUNTS = 0.01
"""Differences in loss below this share of the whole ladder l_0 - l_k are no gain and no loss."""


@dataclass(frozen=True)
class StoppingEvidence:
    """The stops of a run, computed when a claim first looks at them."""

    run: Run

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


def _counts(found: Stopping) -> float:
    losses = found.curves.levels.losses
    return COUNTS * float(losses[0] - losses[-1])


def overfits(found: Stopping | str) -> Regime:
    """There is something to stop: the loss to the true law is higher at the end than at its least."""
    if isinstance(found, str):
        return Regime(False, found, applies=False)
    least, gain = _counts(found), found.gain
    if gain <= least:
        said = (
            f"{found.law.sequences} sequences are not overfitted: {gain:.3g} above the best frame at the end ({least:.2g} counts)"
        )
        return Regime(False, said, applies=False)
    failed = _unlearned(found)
    if failed:
        return Regime(False, "; ".join(failed))
    return Regime(True, f"{found.law.sequences} sequences are overfitted: {gain:.3g} above the best frame at the end")


def _unlearned(found: Stopping) -> list[str]:
    """Why a run that got worse has nothing to say of stopping: it never was on the ladder, or there is none to see."""
    losses, excess = found.curves.levels.losses, found.validation - found.validation_law.floor
    half, height = float((losses[0] + losses[1]) / 2 - losses[-1]), float(losses[0] - losses[-1])
    best = float(excess.min())
    error = found.difference(found.stops["end"].frame, found.stops["oracle"].frame)[1]
    kinds = (
        (bool(np.isfinite(excess).all()), "a loss on the way is not finite"),
        (best <= half, f"t_1 was not passed: the best frame is {best:.3g} above Bayes, half-way is {half:.3g}"),
        (height > error, f"the ladder is {height:.2g} high, the held-out loss has a standard error of {error:.2g}"),
    )
    return [sentence for good, sentence in kinds if not good]


def decided(found: Stopping | str) -> Regime:
    """Moreover j* does not depend on the ridge, and the run has come as far as class j*."""
    regime = overfits(found)
    if not regime.holds or isinstance(found, str):
        return regime
    best = found.best_class
    if best is None:
        by = ", ".join(f"{j} at ridge {ridge:g}" for ridge, j in found.best_by_ridge.items())
        return Regime(False, f"which likelihood fit is best has not settled as the ridge vanishes: {by}")
    reached = max(found.nearest(found.stops[rule].frame) for rule in ("oracle", "end"))
    if reached < best:
        return Regime(False, f"the run ends as class {reached}, before class {best}: more steps are needed")
    return Regime(True, f"{regime.sentence}; class {best} is the best fit at ridges {RIDGES[-2]:g} and {RIDGES[-1]:g}")


def best_restricted(evidence: StoppingEvidence) -> Comparison:
    """The class nearest at the best stop against the class whose likelihood fit predicts best."""
    found = evidence.found
    stop, best = found.stops["oracle"].frame, found.best_by_ridge[RIDGES[-1]]
    near, clear = found.curves.nearest(stop)
    fits = ", ".join(f"F_{j} {loss:.3g}" for j, loss in enumerate(found.likelihood[RIDGES[-2]]))
    reason = (
        f"best stop at step {found.step[stop]:g} with loss {found.validation[stop]:.4g}; fits at ridge {RIDGES[-2]:g}: {fits}"
    )
    if not clear:
        reason += "; the nearest class is not nearer than the next by two standard errors"
    return Comparison("no class" if best is None else best, near, "the same class", near == best if clear else None, reason)


def against_ridge(evidence: StoppingEvidence) -> Comparison:
    """The loss at the best stop above that of the best ridge fit; less than a hundredth of the ladder decides nothing."""
    found = evidence.found
    allowed = _counts(found)
    if not np.isfinite(found.ridge).all():
        return Comparison("> 0", None, allowed, None, "a ridge fit did not converge", unit="nats")
    best, stopped = int(np.argmin(found.ridge)), found.loss("oracle")
    above = stopped - float(found.ridge[best])
    reason = f"loss {stopped:.4g} at the best stop, {stopped - above:.4g} by the ridge fit of class {best} that knows the lags"
    error = found.ridge_error(found.stops["oracle"].frame, best)
    holds = None if abs(above) <= allowed + error else above > 0
    return Comparison("> 0", above, allowed, holds, reason, measured_error=error, unit="nats")


STOPPING_CLAIMS = (
    claim(
        "ISA:early-stopping",
        "Early stopping picks the best restricted class",
        lambda evidence: decided(evidence.stopping),
        best_restricted,
        "start",
        "end",
        kind="pattern",
        null=(nulls.BORROWED,),
        rules=2,
    ),
    claim(
        "ISA:stop-ridge",
        "A ridge fit that knows the lags predicts better than the model at its best stop",
        lambda evidence: overfits(evidence.stopping),
        against_ridge,
        "start",
        "end",
        kind="pattern",
        null=(nulls.BORROWED,),
        rules=3,
    ),
)
