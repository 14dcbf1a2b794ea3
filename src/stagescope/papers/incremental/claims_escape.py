"""How heads leave plateau 1: rates of the landscape against the run, closed forms, and the law of initial noises."""

from dataclasses import dataclass

import numpy as np

from stagescope.claims.claim import ClaimTable
from stagescope.claims.comparison import Comparison, Condition, Regime, agreement, narrowed, not_applicable, regime_of, undecided
from stagescope.landscape.spectrum import spectrum
from stagescope.papers.incremental.companion_options import long_plateau
from stagescope.papers.incremental.evidence import Evidence
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.regression import noises, wkb_times
from stagescope.papers.incremental.regression_paths import has_room, head_deviations, parting_times
from stagescope.papers.incremental.study import WORDS

claim = ClaimTable(WORDS.claims)


PER_TIME = "1/t"
SIMPSON = np.array([1, 4, 1]) / 6


def flows(evidence: Evidence) -> Regime:
    """The regression flow at equal rates from V = 0 and small logits."""
    forms = evidence.task.forms
    if forms is None:
        return not_applicable("this run is no regression flow")
    return regime_of(
        (evidence.is_flow, "the run is no flow"),
        (set(evidence.rates.values()) == {1.0}, "the rates of the blocks are not 1"),
        (not np.any(evidence.run.params["V"][0]), "values do not start at zero"),
        (evidence.sigma <= 1.5 * LIMITS.logits, f"initial logits have size {evidence.sigma:.1e}, above {LIMITS.logits:g}"),
        holds=f"{'mirror' if forms.mirror else 'exact'} flow from small logits",
    )


def leaving(evidence: Evidence) -> Regime:
    """A flow that can leave plateau 1."""
    base, forms = flows(evidence), evidence.task.forms
    if not base.applies or forms is None:
        return base
    if evidence.identical:
        return not_applicable("heads start exactly equal and do not part")
    stuck = _stuck(forms.heads, len(forms.gains))
    if stuck is None and forms.gains[0] == forms.gains[1]:
        stuck = f"g_1 = g_2 = {forms.gains[0]:g}: the closed forms need a second gain below the first"
    return base if stuck is None else not_applicable(stuck)


def _stuck(heads: int, groups: int) -> str | None:
    """Why nothing leaves plateau 1."""
    if heads < 2:
        return "nothing leaves plateau 1: there is one head"
    return "nothing leaves plateau 1: there is one group" if groups < 2 else None


def _moving(evidence: Evidence) -> Regime:
    """Heads on a flow time that can leave plateau 1."""
    stuck = _stuck(evidence.task.heads, len(evidence.task.gains))
    if stuck is not None:
        return not_applicable(stuck)
    if not evidence.reduces:
        return not_applicable("this run has no flow time, or its model no reduction to one head, to compare rates with")
    if evidence.identical:
        return not_applicable("heads start exactly equal and do not part")
    conditions = *evidence.assumptions(noisy=False), evidence.alike(LIMITS.nearly_equal), _room_to_grow(evidence)
    return regime_of(*conditions, holds="flow time, heads alike at the start")


def _rising(evidence: Evidence) -> Regime:
    """A flow whose heads have room to part on plateau 1."""
    return narrowed(leaving(evidence), _room_to_grow(evidence))


def _room_to_grow(evidence: Evidence) -> Condition:
    begin, largest = _arrival(evidence), LIMITS.sharp / LIMITS.growth
    size = 0.0 if begin is None else evidence.spread[begin]
    return size <= largest, f"heads differ by {size:.1e} on arrival at plateau 1, above {largest:g}: no room to grow"


def _arrival(evidence: Evidence) -> int | None:
    """The first frame on plateau 1."""
    inside = np.flatnonzero(evidence.heads.loss <= evidence.levels[1] + LIMITS.fair * evidence.steps[0])
    return int(inside[0]) if inside.size else None


@dataclass(frozen=True)
class Rise:
    """The last tenfold rise of the difference of heads while it is small: its frames and mean rate."""

    first: int
    last: int
    rate: float

    def thirds(self, time: np.ndarray) -> np.ndarray:
        """Its beginning, middle and end, for a mean by Simpson's rule."""
        return np.linspace(time[self.first], time[self.last], 3)


def rise(evidence: Evidence) -> Rise | None:
    """The growth fit on plateau 1, where heads part linearly; None where the growing mode never dominates the initial noise."""
    begin = _arrival(evidence)
    if begin is None or evidence.identical:
        return None
    amplitude, clock = evidence.spread * evidence.size, evidence.time
    over = np.flatnonzero(evidence.spread[begin:] > LIMITS.sharp)
    last = begin + int(over[0]) - 1 if over.size else len(amplitude) - 1
    if last <= begin:
        return None
    inside = amplitude[begin : last + 1]
    if inside.min() * LIMITS.growth > amplitude[last]:
        return None
    first = begin + int(np.flatnonzero(inside <= amplitude[last] / LIMITS.decade)[-1])
    grown = float(amplitude[last] / amplitude[first])
    return Rise(first, last, float(np.log(grown) / (clock[last] - clock[first])))


@claim("ISA:parting", _moving)
def _parting(evidence: Evidence) -> Comparison:
    """The spectrum at equal heads has H - 1 equal fastest modes, and the heads of the run part at their rate."""
    last_rise = rise(evidence)
    if evidence.reached == 0 or last_rise is None:
        noise = f"the difference of heads does not grow {LIMITS.growth:g}-fold on plateau 1 while it is small: no growth fit"
        no_rise = "heads start exactly equal" if evidence.identical else noise
        return undecided("t_1 was not reached" if evidence.reached == 0 else no_rise, "-", LIMITS.broad)
    times, equal = last_rise.thirds(evidence.time), evidence.companion("equal_heads", None)
    heads = evidence.task.heads  # the H fastest rates of the spectrum at equal heads
    spectra = [spectrum(evidence.law, equal.at(time), heads, evidence.rates).rates for time in times]
    rates = np.array([np.real(eigenvalues)[:heads] for eigenvalues in spectra])
    predicted, parting = float(SIMPSON @ rates[:, 0]), heads - 1
    split, off = float(np.max(1 - rates[:, parting - 1] / rates[:, 0])), last_rise.rate / predicted
    words = f"{parting} equal fastest rates (to {split:.0e})" if parting > 1 else "the fastest rate"
    reason = f"heads part at rate {last_rise.rate:.4g} between {times[0]:.4g} and {times[-1]:.4g}; at equal heads {words}"
    reason += f", mean {predicted:.4g}: measured/predicted {off:.3f}"
    limit = LIMITS.broad * predicted
    if split > LIMITS.exact:
        return Comparison(predicted, last_rise.rate, limit, False, f"{reason}; they are not equal", unit=PER_TIME)
    # the mean by the middle rate alone differs from Simpson's by the curvature of the rate, a bound of its error
    error = abs(predicted - float(rates[1, 0]))
    return agreement(predicted, last_rise.rate, limit, reason, predicted_error=error, unit=PER_TIME)


@claim("ISA:escape", _rising)
def _form(evidence: Evidence) -> Comparison:
    """P4: heads part at the rate of the closed form, from the mean attention of the run while they part.

    The form is of leading order in the attention off the first position: its share there is the relative error of the form.
    """
    forms, last_rise = evidence.task.forms, rise(evidence)
    if forms is None or evidence.reached == 0 or last_rise is None:
        no_rise = "t_1 was not reached" if evidence.reached == 0 else f"heads do not part {LIMITS.growth:g}-fold on plateau 1"
        return undecided(no_rise, "-", LIMITS.broad, PER_TIME)
    model, times = evidence.law.model, last_rise.thirds(evidence.time)
    frames = [evidence.frame(time) for time in times]
    attention = model.attention({name: evidence.run.params[name][frames] for name in evidence.run.params}).mean(axis=1)
    rates, off_share = forms.fastest(attention[:, model.at]), 1 - attention[:, model.at[0]]
    predicted, off = float(SIMPSON @ rates), float(SIMPSON @ off_share)
    reason = (
        f"heads part at rate {last_rise.rate:.4g} between {times[0]:.4g} and {times[-1]:.4g}, by the form {predicted:.4g} with"
    )
    reason += f" {off:.1%} of the attention off the first position: measured/predicted {last_rise.rate / predicted:.3f}"
    limit, error = LIMITS.broad * predicted, off * predicted
    return agreement(predicted, last_rise.rate, limit, reason, predicted_error=error, unit=PER_TIME)


@dataclass(frozen=True)
class Escapes:
    """t_2 of one draw at several noises, that of the run first; its WKB prediction from the run's, and the measured slope."""

    sigmas: np.ndarray
    times: np.ndarray
    predicted: np.ndarray
    slope: float


def escapes(evidence: Evidence) -> Escapes | None:
    """The escape of the run and of two companion flows, long enough for twice the predicted slope; None where one is missing."""
    forms = evidence.task.forms
    if forms is None or evidence.identical or evidence.reached < 2:
        return None
    sigmas = noises(evidence.sigma)
    until = float((2 * forms.escape_slope * np.log(1 / sigmas.min()) + np.sqrt(20 * forms.first_time)) ** 2)
    times = [evidence.times[1], *(evidence.companion("scaled", float(sigma), until).times[1] for sigma in sigmas[1:])]
    if None in times:
        return None
    escape_times, equal = np.array([float(t) for t in times if t is not None]), evidence.companion("equal_heads", until)
    if escape_times[0] > equal.time[-1]:
        return None
    mass = evidence.law.model.attention(equal.params)[:, 0, evidence.law.model.at]
    predicted = wkb_times(equal.time, forms.fastest(mass), (float(sigmas[0]), float(escape_times[0])), sigmas)
    return Escapes(sigmas, escape_times, predicted, float(np.polyfit(-np.log(sigmas), np.sqrt(escape_times), 1)[0]))


def _limit(evidence: Evidence) -> Regime:
    """The closed form of the slope is a limit; how far it is reached is decided from H, N, the gains and the noise alone."""
    base, forms = leaving(evidence), evidence.task.forms
    if not base.holds or forms is None:
        return base
    sigmas, error = noises(evidence.sigma), forms.limit_error(evidence.sigma)
    sentence = f"at noises {sigmas[0]:.2g} to {sigmas[-1]:.2g} the slope is within {error:.0%} of its limit"
    if error > LIMITS.fair / 2:
        return Regime(False, f"{sentence}, more than half of the tolerance")
    return Regime(True, f"{base.sentence}; {sentence}")


def _no_escape(evidence: Evidence) -> str:
    return "t_2 was not reached" if evidence.reached < 2 else "a companion flow does not leave plateau 1 at its noise"


@claim("ISA:escape-law", _limit, elsewhere=long_plateau)
def _slope(evidence: Evidence) -> Comparison:
    """P4: sqrt(t_2) against ln(1/sigma), of the run and companion flows."""
    forms, measured_escapes = evidence.task.forms, escapes(evidence)
    if forms is None or measured_escapes is None:
        return undecided(_no_escape(evidence), "-", LIMITS.fair, "sqrt(t)")
    off = measured_escapes.slope / forms.escape_slope
    listing = ", ".join(f"{time:.4g}" for time in measured_escapes.times)
    sizes = ", ".join(f"{sigma:.2g}" for sigma in measured_escapes.sigmas)
    reason = f"t_2 = {listing} at noise {sizes} on the logits, the run's first: slope measured/predicted {off:.3f}"
    limit, error = LIMITS.fair * forms.escape_slope, forms.limit_error(evidence.sigma) * forms.escape_slope
    span = float(np.ptp(np.log(measured_escapes.sigmas)))
    resolved = LIMITS.resolved / 2 * float(np.sqrt(measured_escapes.times.max())) / span
    return agreement(
        forms.escape_slope, measured_escapes.slope, limit, reason, predicted_error=error, measured_error=resolved, unit="sqrt(t)"
    )


@claim("ISA:wkb", leaving)
def _wkb(evidence: Evidence) -> Comparison:
    """P5: t_2 at two other noises, calibrated at the run's own."""
    measured_escapes = escapes(evidence)
    if measured_escapes is None:
        return undecided(_no_escape(evidence), 1.0, LIMITS.fair, "t_2")
    ratios = (measured_escapes.predicted / measured_escapes.times)[1:]
    if not np.isfinite(ratios).all():
        return undecided("the companion run of equal heads ends before the escape", 1.0, LIMITS.fair, "t_2")
    worst = float(ratios[np.argmax(np.abs(ratios - 1))])
    listing = " and ".join(f"{ratio:.3f}" for ratio in ratios)
    first, *scaled = (f"{sigma:.2g}" for sigma in measured_escapes.sigmas)
    reason = f"t_2 predicted/measured {listing} at noise {' and '.join(scaled)} on the logits, calibrated by the run at {first}"
    return agreement(1.0, worst, LIMITS.fair, reason, measured_error=LIMITS.resolved, unit="t_2")


def _room(evidence: Evidence) -> Regime:
    """Heads that start near enough for their differences to obey the linear law beside equal heads."""
    base = leaving(evidence)
    if not base.holds:
        return base
    size = float(np.exp(head_deviations(evidence.run.at(0))[2]))
    return base if has_room(size) else Regime(False, f"heads differ by {size:.2g} at the start: no room to grow")


@claim("ISA:t2", _room)
def _one_path(evidence: Evidence) -> Comparison:
    """t_2 at the run's noise and at two others, all from one path of equal heads that start from uniform attention."""
    measured_escapes = escapes(evidence)
    if measured_escapes is None:
        return undecided(_no_escape(evidence), 1.0, LIMITS.exact, "t_2")
    _, deviations, size = head_deviations(evidence.run.at(0))
    sizes = size + np.log(measured_escapes.sigmas / measured_escapes.sigmas[0])
    predicted = parting_times(evidence.law, deviations, sizes, 10 * float(measured_escapes.times.max()))
    if any(event.t is None for event in predicted):
        return undecided("heads do not part on the path of equal heads", 1.0, LIMITS.exact, "t_2")
    ratios = np.array([float(event.t or np.nan) for event in predicted]) / measured_escapes.times
    worst = int(np.argmax(np.abs(ratios - 1)))
    error = float((predicted[worst].high or 0.0) - (predicted[worst].t or 0.0)) / float(measured_escapes.times[worst])
    listing, noise = ", ".join(f"{ratio:.4f}" for ratio in ratios), ", ".join(f"{sigma:.2g}" for sigma in measured_escapes.sigmas)
    reason = f"t_2 predicted/measured {listing} at noise {noise} on the logits, from one path of equal heads; no run is used"
    resolved = LIMITS.resolved
    return agreement(1.0, float(ratios[worst]), LIMITS.exact, reason, predicted_error=error, measured_error=resolved, unit="t_2")


ESCAPE_CLAIMS = claim.claims
