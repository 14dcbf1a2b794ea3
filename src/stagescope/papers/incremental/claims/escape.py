"""How heads leave plateau 1: rates of the landscape against the run, and the closed forms of the regression flow."""

from dataclasses import dataclass

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.landscape.spectrum import spectrum
from stagescope.papers.incremental import nulls
from stagescope.papers.incremental.claims import elsewhere
from stagescope.papers.incremental.evidence import ESCAPE_NOISES, EqualHeads, Evidence

PER_TIME = "1/t"
RESOLVED = 0.002
"""Relative error of a t_2 of the companion flows: 2000 frames over five decades, interpolated."""


@dataclass(frozen=True)
class EscapeThresholds:
    """The regimes of the claims about the escape from plateau 1, and their relative tolerances (science page, section 3)."""

    slope: float = 0.10
    """Of the escape slope; how far the limit is reached at finite noise is an error of the prediction."""
    wkb: float = 0.10
    """Of t_2 by WKB; an independent implementation had up to .05."""
    rate: float = 0.05
    """Of the closed form of the parting rate against the spectrum."""
    parting: float = 0.15
    """Of the spectrum's rate against the run."""
    on_plateau: float = 0.1
    """A run is on plateau 1 once its loss is within this share of the step above the level."""
    linear: float = 0.03
    """Heads part linearly up to this relative difference."""
    rise: float = 10.0
    """The parting rate is that of the last rise by this factor in the linear range."""
    growth: float = 30.0
    """The difference must grow by this factor: modes that do not grow are then at most a third at the start of the rise."""
    degenerate: float = 0.02
    """H - 1 rates count as equal within this."""
    nearly_equal: float = 0.99
    """Least agreement at the start for rates of the linearisation at equal heads."""
    logits: float = 0.01
    """Largest initial noise on the logits for the closed forms; the root mean square of a run may be 1.5 times this."""
    settled: float = 0.01
    """The closed form of the rate is of leading order in the attention off the first position: it is read where equal heads
    have this share there, which is then its relative error."""


ESCAPE = EscapeThresholds()


def flows(evidence: Evidence) -> Regime:
    """The regression flow at equal rates from V = 0 and small logits."""
    forms = evidence.task.forms
    if forms is None:
        return Regime(False, "this run is no regression flow", applies=False)
    kinds = (
        (evidence.run.spec["dynamics"]["type"] == "GradientFlow", "the run is no flow"),
        (set(evidence.rates.values()) == {1.0}, "the rates of the blocks are not 1"),
        (not np.any(evidence.run.params["V"][0]), "values do not start at zero"),
        (evidence.sigma <= 1.5 * ESCAPE.logits, f"initial logits have size {evidence.sigma:.1e}, above {ESCAPE.logits:g}"),
    )
    failed = [sentence for good, sentence in kinds if not good]
    return Regime(not failed, "; ".join(failed) or f"{'mirror' if forms.mirror else 'exact'} flow from small logits")


def _leaving(evidence: Evidence) -> Regime:
    """A flow that can leave plateau 1."""
    base, forms = flows(evidence), evidence.task.forms
    if not base.applies or forms is None:
        return base
    if evidence.identical:
        return Regime(False, "heads start exactly equal and do not part", applies=False)
    stuck = _stuck(forms.heads, len(forms.gains))
    if stuck is None and forms.gains[0] == forms.gains[1]:
        stuck = f"g_1 = g_2 = {forms.gains[0]:g}: the closed forms need a second gain below the first"
    return base if stuck is None else Regime(False, stuck, applies=False)


def _stuck(heads: int, groups: int) -> str | None:
    """Why nothing leaves plateau 1."""
    if heads < 2:
        return "nothing leaves plateau 1: there is one head"
    return "nothing leaves plateau 1: there is one group" if groups < 2 else None


def _limit(evidence: Evidence) -> Regime:
    """The closed form of the slope is a limit; how far it is reached is decided from H, N and the gains alone."""
    base, forms = _leaving(evidence), evidence.task.forms
    if not base.holds or forms is None:
        return base
    error = _limit_error(evidence)
    sentence = f"at noises {ESCAPE_NOISES[0]:g} to {ESCAPE_NOISES[-1]:g} the slope is within {error:.0%} of its limit"
    if error > ESCAPE.slope / 2:
        return Regime(False, f"{sentence}, more than half of the tolerance")
    return Regime(True, f"{base.sentence}; {sentence}")


def _limit_error(evidence: Evidence) -> float:
    """Relative difference between the slope at finite noises, from the leftover 1/N, and its limit."""
    forms = evidence.task.forms
    assert forms is not None
    return abs(forms.slope_between(np.array(ESCAPE_NOISES)) / forms.escape_slope - 1)


def _moving(evidence: Evidence) -> Regime:
    """Heads on a flow time that can leave plateau 1."""
    stuck = _stuck(evidence.task.heads, len(evidence.task.gains))
    if stuck is not None:
        return Regime(False, stuck, applies=False)
    if evidence.companions.equal is None:
        return Regime(
            False, "this run has no flow time, or its model no reduction to one head, to compare rates with", applies=False
        )
    if evidence.identical:
        return Regime(False, "heads start exactly equal and do not part", applies=False)
    failed = evidence.failures(noisy=False) | evidence.unlike(ESCAPE.nearly_equal)
    begin, most = _arrival(evidence), ESCAPE.linear / ESCAPE.growth
    if begin is not None and evidence.spread[begin] > most:
        failed["room"] = f"heads differ by {evidence.spread[begin]:.1e} on arrival at plateau 1, above {most:g}: no room to grow"
    return Regime(not failed, "; ".join(failed.values()) or "flow time, heads alike at the start")


def _arrival(evidence: Evidence) -> int | None:
    """The first frame on plateau 1."""
    inside = np.flatnonzero(evidence.heads.loss <= evidence.levels[1] + ESCAPE.on_plateau * evidence.steps[0])
    return int(inside[0]) if inside.size else None


@dataclass(frozen=True)
class Rise:
    """The last tenfold rise of the difference of heads while it is small: its frames and mean rate."""

    first: int
    last: int
    rate: float


def rise(evidence: Evidence) -> Rise | None:
    """The growth fit on plateau 1, where heads part linearly; None where the growing mode never dominates the initial noise."""
    begin = _arrival(evidence)
    if begin is None or evidence.identical:
        return None
    amplitude, clock = evidence.spread * evidence.size, evidence.time
    over = np.flatnonzero(evidence.spread[begin:] > ESCAPE.linear)
    last = begin + int(over[0]) - 1 if over.size else len(amplitude) - 1
    if last <= begin:
        return None
    inside = amplitude[begin : last + 1]
    if inside.min() * ESCAPE.growth > amplitude[last]:
        return None
    first = begin + int(np.flatnonzero(inside <= amplitude[last] / ESCAPE.rise)[-1])
    grown = float(amplitude[last] / amplitude[first])
    return Rise(first, last, float(np.log(grown) / (clock[last] - clock[first])))


def _fastest(evidence: Evidence, equal: EqualHeads, when: float) -> np.ndarray:
    """The H fastest rates of the spectrum at equal heads."""
    found = spectrum(evidence.law, equal.at(when), evidence.task.heads, evidence.rates)
    return np.real(found.rates)[: evidence.task.heads]


def _parting(evidence: Evidence) -> Comparison:
    """The spectrum at equal heads has H - 1 equal fastest modes, and the heads of the run part at their rate."""
    found, equal = rise(evidence), evidence.equal
    if evidence.reached == 0 or found is None or equal is None:
        noise = f"the difference of heads does not grow {ESCAPE.growth:g}-fold on plateau 1 while it is small: no growth fit"
        why = "heads start exactly equal" if evidence.identical else noise
        return Comparison("-", None, ESCAPE.parting, None, "t_1 was not reached" if evidence.reached == 0 else why)
    times = np.linspace(evidence.time[found.first], evidence.time[found.last], 3)
    rates = np.array([_fastest(evidence, equal, when) for when in times])
    simpson = np.array([1, 4, 1]) / 6  # the mean of the rate over the rise, by Simpson's rule
    predicted, parting = float(simpson @ rates[:, 0]), evidence.task.heads - 1
    split, off = float(np.max(1 - rates[:, parting - 1] / rates[:, 0])), found.rate / predicted
    words = f"{parting} equal fastest rates (to {split:.0e})" if parting > 1 else "the fastest rate"
    reason = f"heads part at rate {found.rate:.4g} between {times[0]:.4g} and {times[-1]:.4g}; at equal heads {words}"
    reason += f", mean {predicted:.4g}: measured/predicted {off:.3f}"
    limit = ESCAPE.parting * predicted
    if split > ESCAPE.degenerate:
        return Comparison(predicted, found.rate, limit, False, f"{reason}; they are not equal", unit=PER_TIME)
    # the mean by the middle rate alone differs from Simpson's by the curvature of the rate, a bound of its error
    error = abs(predicted - float(rates[1, 0]))
    return agreement(predicted, found.rate, limit, reason, predicted_error=error, unit=PER_TIME)


def _rate(evidence: Evidence) -> Comparison:
    """P4: the closed form against the spectrum at equal heads, where they have left all but 1 % of the other positions."""
    forms, make, limit = evidence.task.forms, evidence.companions.equal, ESCAPE.rate
    if forms is None or make is None or 1 not in [plateau.j for plateau in evidence.rests]:
        return Comparison("-", None, limit, None, "the run does not rest on plateau 1", unit=PER_TIME)
    equal, model = make(_settling(evidence)), evidence.law.model
    left = 1 - model.attention(equal.params)[:, 0, model.at[0]]
    settled = np.flatnonzero((left <= ESCAPE.settled) & (equal.time > float(evidence.times[0] or 0.0)))
    if not settled.size:
        why = f"equal heads keep a share {left[-1]:.2g} of their attention off the first position up to {equal.time[-1]:.3g}"
        return Comparison("-", None, limit, None, why, unit=PER_TIME)
    when = float(equal.time[settled[0]])
    form = float(forms.fastest(model.attention(equal.at(when))[0, model.at]))
    rate = float(_fastest(evidence, equal, when)[0])
    reason = f"at t = {when:.4g}, with {ESCAPE.settled:.0%} of the attention elsewhere, measured/predicted {rate / form:.3f}"
    return agreement(form, rate, limit * form, reason, predicted_error=ESCAPE.settled * form, unit=PER_TIME)


def _settling(evidence: Evidence) -> float:
    """Twice the time at which, by the closed form, N positions together keep the settled share of the attention."""
    forms = evidence.task.forms
    assert forms is not None
    each = ESCAPE.settled / forms.positions
    time = 1 / (forms.gap() * each) if forms.mirror else 1 / (2 * forms.positions * forms.gap() * each**2)
    return max(2 * time, float(evidence.time[-1]))


def _no_escape(evidence: Evidence) -> str:
    return "t_2 was not reached" if evidence.reached < 2 else "no companion flow leaves plateau 1 at smaller noise"


def _slope(evidence: Evidence) -> Comparison:
    """P4: sqrt(t_2) against ln(1/sigma), by companion flows."""
    forms, found = evidence.task.forms, evidence.escapes
    if forms is None or found is None or evidence.reached < 2:
        return Comparison("-", None, ESCAPE.slope, None, _no_escape(evidence), unit="sqrt(t)")
    off = found.slope / forms.escape_slope
    shown, noises = ", ".join(f"{when:.4g}" for when in found.when), ", ".join(f"{sigma:g}" for sigma in ESCAPE_NOISES)
    reason = f"t_2 = {shown} at noise {noises} on the logits: slope measured/predicted {off:.3f}"
    limit, error = ESCAPE.slope * forms.escape_slope, _limit_error(evidence) * forms.escape_slope
    return agreement(forms.escape_slope, found.slope, limit, reason, predicted_error=error, unit="sqrt(t)")


def _wkb(evidence: Evidence) -> Comparison:
    """P5: t_2 at two smaller noises, calibrated at the largest."""
    found = evidence.escapes
    if found is None or evidence.reached < 2:
        return Comparison(1.0, None, ESCAPE.wkb, None, _no_escape(evidence), unit="t_2")
    ratios = (found.predicted / found.when)[1:]
    if not np.isfinite(ratios).all():
        return Comparison(1.0, None, ESCAPE.wkb, None, "the companion run of equal heads ends before the escape", unit="t_2")
    worst = float(ratios[np.argmax(np.abs(ratios - 1))])
    shown = " and ".join(f"{ratio:.3f}" for ratio in ratios)
    first, *others = (f"{sigma:g}" for sigma in ESCAPE_NOISES)
    reason = f"t_2 predicted/measured {shown} at noise {' and '.join(others)} on the logits, calibrated at {first}"
    return agreement(1.0, worst, ESCAPE.wkb, reason, measured_error=RESOLVED, unit="t_2")


CLAIMS = (
    claim(
        "ISA:parting",
        "On plateau 1 H - 1 equal modes part the heads, at the rate of the landscape",
        _moving,
        _parting,
        "t1",
        "t2",
        kind="prediction",
        null=(nulls.SHAKEN, nulls.FIRST_ONLY, nulls.FROZEN),
        rules=2,
    ),
    claim(
        "ISA:escape",
        "The parting rate on plateau 1 is that of the closed form",
        _leaving,
        _rate,
        "t1",
        "t2",
        kind="prediction",
        null=(nulls.CUT_FIRST, nulls.FROZEN),
        rules=2,
    ),
    claim(
        "ISA:escape-law",
        "The escape law: sqrt(t_2) is linear in ln(1/sigma), with the slope of the closed form",
        _limit,
        _slope,
        "t2",
        kind="prediction",
        null=(nulls.CUT, nulls.FIRST_ONLY),
        group="ISA:escapes",
        rules=2,
        elsewhere=elsewhere.long_plateau,
    ),
    claim(
        "ISA:wkb",
        "WKB calibrated at one noise predicts t_2 at smaller ones",
        _leaving,
        _wkb,
        "t2",
        kind="prediction",
        null=(nulls.CUT, nulls.FIRST_ONLY),
        group="ISA:escapes",
        rules=2,
    ),
)
