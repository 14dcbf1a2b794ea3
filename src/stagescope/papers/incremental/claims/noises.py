"""When heads leave plateau 1 at other initial noises: the escape law and WKB, by companion flows beside the run."""

from dataclasses import dataclass

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.papers.incremental import nulls
from stagescope.papers.incremental.claims import elsewhere
from stagescope.papers.incremental.claims.escape import leaving
from stagescope.papers.incremental.evidence import Evidence
from stagescope.papers.incremental.forms import noises, wkb_times
from stagescope.papers.incremental.regression.path import has_room, head_deviations, parting_times

COST = "2 flows at other noises, of up to 200 t_2, and one of equal heads"


@dataclass(frozen=True)
class NoiseThresholds:
    """Relative tolerances of the escape law and WKB (science page, section 3), and the error of a time."""

    slope: float = 0.10
    """Of the escape slope; how far the limit is reached at finite noise is an error of the prediction."""
    wkb: float = 0.10
    """Of t_2 by WKB; an independent implementation had up to .05."""
    one_path: float = 0.02
    """Of t_2 from one path of equal heads (science page landscape, section 2: up to .011 at noise .01)."""
    resolved: float = 0.002
    """Relative error of a t_2 of the companion flows: 2000 frames over five decades, interpolated."""


NOISES = NoiseThresholds()


@dataclass(frozen=True)
class Escapes:
    """t_2 of one draw at several noises, that of the run first; its WKB prediction from the run's, and the measured slope."""

    sigmas: np.ndarray
    when: np.ndarray
    predicted: np.ndarray
    slope: float


def escapes(evidence: Evidence) -> Escapes | None:
    """The escape of the run and of two companion flows, long enough for twice the predicted slope; None where one is missing."""
    forms, scaled, equal = evidence.task.forms, evidence.companions.scaled, evidence.companions.equal
    if forms is None or scaled is None or equal is None or evidence.identical or evidence.reached < 2:
        return None
    sigmas = noises(evidence.sigma)
    until = float((2 * forms.escape_slope * np.log(1 / sigmas.min()) + np.sqrt(20 * forms.first_time)) ** 2)
    found = [evidence.times[1], *(scaled(float(sigma), until).times[1] for sigma in sigmas[1:])]
    if None in found:
        return None
    when, same = np.array([float(t) for t in found if t is not None]), equal(until)
    if when[0] > same.time[-1]:
        return None
    mass = evidence.law.model.attention(same.params)[:, 0, evidence.law.model.at]
    predicted = wkb_times(same.time, forms.fastest(mass), (float(sigmas[0]), float(when[0])), sigmas)
    return Escapes(sigmas, when, predicted, float(np.polyfit(-np.log(sigmas), np.sqrt(when), 1)[0]))


def _limit(evidence: Evidence) -> Regime:
    """The closed form of the slope is a limit; how far it is reached is decided from H, N, the gains and the noise alone."""
    base, forms = leaving(evidence), evidence.task.forms
    if not base.holds or forms is None:
        return base
    sigmas, error = noises(evidence.sigma), forms.limit_error(evidence.sigma)
    sentence = f"at noises {sigmas[0]:.2g} to {sigmas[-1]:.2g} the slope is within {error:.0%} of its limit"
    if error > NOISES.slope / 2:
        return Regime(False, f"{sentence}, more than half of the tolerance")
    return Regime(True, f"{base.sentence}; {sentence}")


def _no_escape(evidence: Evidence) -> str:
    return "t_2 was not reached" if evidence.reached < 2 else "a companion flow does not leave plateau 1 at its noise"


def _slope(evidence: Evidence) -> Comparison:
    """P4: sqrt(t_2) against ln(1/sigma), of the run and companion flows."""
    forms, found = evidence.task.forms, escapes(evidence)
    if forms is None or found is None:
        return Comparison("-", None, NOISES.slope, None, _no_escape(evidence), unit="sqrt(t)")
    off = found.slope / forms.escape_slope
    shown, sizes = ", ".join(f"{when:.4g}" for when in found.when), ", ".join(f"{sigma:.2g}" for sigma in found.sigmas)
    reason = f"t_2 = {shown} at noise {sizes} on the logits, the run's first: slope measured/predicted {off:.3f}"
    limit, error = NOISES.slope * forms.escape_slope, forms.limit_error(evidence.sigma) * forms.escape_slope
    span = float(np.ptp(np.log(found.sigmas)))
    own = NOISES.resolved / 2 * float(np.sqrt(found.when.max())) / span
    return agreement(forms.escape_slope, found.slope, limit, reason, predicted_error=error, measured_error=own, unit="sqrt(t)")


def _wkb(evidence: Evidence) -> Comparison:
    """P5: t_2 at two other noises, calibrated at the run's own."""
    found = escapes(evidence)
    if found is None:
        return Comparison(1.0, None, NOISES.wkb, None, _no_escape(evidence), unit="t_2")
    ratios = (found.predicted / found.when)[1:]
    if not np.isfinite(ratios).all():
        return Comparison(1.0, None, NOISES.wkb, None, "the companion run of equal heads ends before the escape", unit="t_2")
    worst = float(ratios[np.argmax(np.abs(ratios - 1))])
    shown = " and ".join(f"{ratio:.3f}" for ratio in ratios)
    first, *others = (f"{sigma:.2g}" for sigma in found.sigmas)
    reason = f"t_2 predicted/measured {shown} at noise {' and '.join(others)} on the logits, calibrated by the run at {first}"
    return agreement(1.0, worst, NOISES.wkb, reason, measured_error=NOISES.resolved, unit="t_2")


def _room(evidence: Evidence) -> Regime:
    """Heads that start near enough for their differences to obey the linear law beside equal heads."""
    base = leaving(evidence)
    if not base.holds:
        return base
    size = float(np.exp(head_deviations(evidence.run.at(0))[2]))
    return base if has_room(size) else Regime(False, f"heads differ by {size:.2g} at the start: no room to grow")


def _one_path(evidence: Evidence) -> Comparison:
    """t_2 at the run's noise and at two others, all from one path of equal heads that start from uniform attention."""
    found = escapes(evidence)
    if found is None:
        return Comparison(1.0, None, NOISES.one_path, None, _no_escape(evidence), unit="t_2")
    _, apart, size = head_deviations(evidence.run.at(0))
    sizes = size + np.log(found.sigmas / found.sigmas[0])
    predicted = parting_times(evidence.law, apart, sizes, 10 * float(found.when.max()))
    if any(each.t is None for each in predicted):
        return Comparison(1.0, None, NOISES.one_path, None, "heads do not part on the path of equal heads", unit="t_2")
    ratios = np.array([float(each.t or np.nan) for each in predicted]) / found.when
    worst = int(np.argmax(np.abs(ratios - 1)))
    error = float((predicted[worst].high or 0.0) - (predicted[worst].t or 0.0)) / float(found.when[worst])
    shown, noise = ", ".join(f"{ratio:.4f}" for ratio in ratios), ", ".join(f"{sigma:.2g}" for sigma in found.sigmas)
    reason = f"t_2 predicted/measured {shown} at noise {noise} on the logits, from one path of equal heads; no run is used"
    own = NOISES.resolved
    return agreement(1.0, float(ratios[worst]), NOISES.one_path, reason, predicted_error=error, measured_error=own, unit="t_2")


CLAIMS = (
    claim(
        "ISA:escape-law",
        "The escape law: sqrt(t_2) is linear in ln(1/sigma), with the slope of the closed form",
        _limit,
        _slope,
        "t2",
        kind="prediction",
        null=(nulls.STRETCHED,),
        group="ISA:escape-law",
        rules=3,
        elsewhere=elsewhere.long_plateau,
        cost=COST,
    ),
    claim(
        "ISA:wkb",
        "WKB calibrated at the noise of the run predicts t_2 at other ones",
        leaving,
        _wkb,
        "t2",
        kind="prediction",
        null=(nulls.STRETCHED,),
        group="ISA:escape-law",
        rules=3,
        cost=COST,
    ),
    claim(
        "ISA:t2",
        "One path of equal heads predicts t_2 at every initial noise, without a run",
        _room,
        _one_path,
        "t2",
        kind="prediction",
        null=(nulls.STRETCHED,),
        group="ISA:escape-law",
        cost=COST,
    ),
)
