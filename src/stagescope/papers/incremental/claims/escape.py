"""How heads leave plateau 1: the landscape's rates against the run, and the closed forms of the regression flow."""

from dataclasses import dataclass

import numpy as np

from stagescope.claims.claim import Claim, Comparison, Regime
from stagescope.landscape.critical import critical_point
from stagescope.landscape.spectrum import spectrum
from stagescope.papers.incremental.evidence import SIGMAS, Equal, Evidence

SLOPE = {True: 0.25, False: 0.10}
"""Tolerance of the escape slope: mirror (True), whose limit has corrections log(t)/t, and exact."""
WKB, RATE, PARTING = 0.10, 0.05, 0.15
ON_PLATEAU = 0.1
"""A run is on plateau 1 from where its loss is within this share of the step above the level."""
LINEAR, RISE, ABOVE = 0.03, 10.0, 30.0
"""Heads part linearly up to this relative difference; the rate is that of the last tenfold rise before it.

What does not grow is then a third of the difference at the beginning of that rise, or less: the end must be 30 times it.
"""
SIMPSON = np.array([1, 4, 1]) / 6
"""Weights of the spectra at the beginning, the middle and the end of that rise."""
DEGENERATE = 0.02
"""H - 1 rates count as equal within this."""
NEARLY_EQUAL = 0.99
"""Agreement at the start from which rates are those of the linearisation at equal heads."""
SMALL_LOGITS, ELSEWHERE = 0.01, 0.3
"""Initial logits, and attention that is not on the first place on plateau 1, up to which the closed forms are promised."""


def flows(evidence: Evidence) -> Regime:
    """The regression flow at equal rates from V = 0 and small logits."""
    forms = evidence.task.forms
    if forms is None:
        return Regime(False, "speaks of the regression flow", applies=False)
    kinds = (
        (evidence.run.spec["dynamics"]["type"] == "GradientFlow", "not a flow"),
        (set(evidence.rates.values()) == {1.0}, "block rates are not 1"),
        (not np.any(evidence.run.params["V"][0]), "values do not start at zero"),
        (evidence.sigma <= 1.5 * SMALL_LOGITS, f"initial logits of {evidence.sigma:.1e} are above {SMALL_LOGITS:g}"),
    )
    failed = [sentence for good, sentence in kinds if not good]
    return Regime(not failed, "; ".join(failed) or f"{'mirror' if forms.mirror else 'exact'} flow from small logits")


def _leaving(evidence: Evidence) -> Regime:
    """A flow that can leave plateau 1."""
    base, forms = flows(evidence), evidence.task.forms
    if not base.applies or forms is None:
        return base
    stuck = _stuck(forms.heads, len(forms.gains))
    if stuck is None and forms.gains[0] == forms.gains[1]:
        stuck = f"g_1 = g_2 = {forms.gains[0]:g}: the closed forms need a second gain below the first"
    return base if stuck is None else Regime(False, stuck, applies=False)


def _stuck(heads: int, groups: int) -> str | None:
    """Why nothing leaves plateau 1."""
    if heads < 2:
        return "nothing leaves plateau 1: there is one head"
    return "nothing leaves plateau 1: there is one group" if groups < 2 else None


def _settled(evidence: Evidence) -> Regime:
    """The rate's closed form is of leading order in the attention that is not on the first place yet.

    That share is read off the motion of equal heads when the run is on plateau 1; the rates, which are compared, are not.
    """
    base, plateau = _leaving(evidence), evidence.plateaus[0] if evidence.reached else None
    if not base.holds or plateau is None or evidence.equal is None:
        return base
    model = evidence.law.model
    left = 1 - float(model.attention(evidence.equal.at(plateau.t))[0, model.at[0]])
    sentence = f"on plateau 1 a share {left:.2f} of the attention is elsewhere"
    if left > ELSEWHERE:
        return Regime(False, f"{sentence}, above {ELSEWHERE:g}")
    return Regime(True, f"{base.sentence}; {sentence}")


def _limit(evidence: Evidence) -> Regime:
    """The slope's closed form is a limit; decided from H, N and the gains alone, at the smallest noise that is timed."""
    base, forms = _leaving(evidence), evidence.task.forms
    if not base.holds or forms is None:
        return base
    left = forms.left_at_escape(SIGMAS[-1])
    sentence = f"by the forms the escape at noise {SIGMAS[-1]:g} leaves {left:.2f} of the initial attention on the second place"
    if left > 1:
        return Regime(False, f"{sentence}: more than there was, so the limit is not reached")
    return Regime(True, f"{base.sentence}; {sentence}")


def _moving(evidence: Evidence) -> Regime:
    """Any heads with a flow time that can leave plateau 1."""
    stuck = _stuck(evidence.task.heads, len(evidence.task.gains))
    if stuck is not None:
        return Regime(False, stuck, applies=False)
    if evidence.beside.equal is None:
        return Regime(False, "there is no flow time, or no one-head motion of this model, to compare rates with", applies=False)
    failed = evidence.failures(noisy=False) + evidence.unlike(NEARLY_EQUAL)
    return Regime(not failed, "; ".join(failed) or "flow time, heads alike at the start")


@dataclass(frozen=True)
class Rise:
    """The last tenfold rise of the heads' difference while it is small: its frames and mean rate."""

    first: int
    last: int
    rate: float


def rise(evidence: Evidence) -> Rise | None:
    """Where on plateau 1 heads part linearly; None where the growing part never outgrows the rest of the initial noise."""
    inside = np.flatnonzero(evidence.heads.loss <= evidence.levels[1] + ON_PLATEAU * evidence.steps[0])
    if not inside.size or evidence.identical:
        return None
    begin, amplitude, clock = int(inside[0]), evidence.spread * evidence.size, evidence.time
    over = np.flatnonzero(evidence.spread[begin:] > LINEAR)
    last = begin + int(over[0]) - 1 if over.size else len(amplitude) - 1
    if last <= begin:
        return None
    inside = amplitude[begin : last + 1]
    if inside.min() * ABOVE > amplitude[last]:
        return None
    first = begin + int(np.flatnonzero(inside <= amplitude[last] / RISE)[-1])
    grown = float(amplitude[last] / amplitude[first])
    return Rise(first, last, float(np.log(grown) / (clock[last] - clock[first])))


def _fastest(evidence: Evidence, equal: Equal, when: float) -> np.ndarray:
    """The H fastest rates at equal heads, by the general engine."""
    found = spectrum(evidence.law, equal.at(when), evidence.task.heads, evidence.rates)
    return np.real(found.rates)[: evidence.task.heads]


def _parting(evidence: Evidence) -> Comparison:
    """Plateau 1 by the landscape: H - 1 equal fastest modes at equal heads, and the run parts at their rate."""
    found, equal = rise(evidence), evidence.equal
    if evidence.reached == 0 or found is None or equal is None:
        noise = f"heads do not part {ABOVE:g}-fold while they are alike on plateau 1: what grows is not seen alone"
        why = "heads start exactly equal" if evidence.identical else noise
        return Comparison("-", None, PARTING, None, "t_1 was not reached" if evidence.reached == 0 else why)
    times = np.linspace(evidence.time[found.first], evidence.time[found.last], len(SIMPSON))
    rates = np.array([_fastest(evidence, equal, when) for when in times])
    predicted, parting = float(SIMPSON @ rates[:, 0]), evidence.task.heads - 1
    split, off = float(np.max(1 - rates[:, parting - 1] / rates[:, 0])), found.rate / predicted
    words = f"{parting} equal fastest rates (to {split:.0e})" if parting > 1 else "the fastest rate"
    reason = f"heads part at {found.rate:.4g} between {times[0]:.4g} and {times[-1]:.4g}; linearised at equal heads {words}"
    holds = abs(off - 1) <= PARTING and split <= DEGENERATE
    return Comparison(predicted, found.rate, PARTING, holds, f"{reason}, mean {predicted:.4g}: measured/predicted {off:.3f}")


def _rate(evidence: Evidence) -> Comparison:
    """P4: the closed form against the engine on plateau 1 of equal heads; that no critical point is near is said."""
    forms, equal = evidence.task.forms, evidence.equal
    plateau = evidence.rested(1) if evidence.reached else None
    if forms is None or equal is None or plateau is None:
        return Comparison("-", None, RATE, None, "plateau 1 was not reached, or not rested on")
    params = equal.at(plateau.t)
    mass = float(evidence.law.model.attention(params)[0, evidence.law.model.at[1]])
    form, rate = float(forms.rate(np.array(mass))), float(_fastest(evidence, equal, plateau.t)[0])
    point = critical_point(evidence.law, params, evidence.rates)
    near = f"|F| {point.residual:.1e} at relative distance {point.distance:.2f}"
    kind = f"a critical point ({near})" if point.found else f"none ({near}): the plateau is reached only at t = infinity"
    reason = f"at t = {plateau.t:.4g} with s_2 = {mass:.3g} linearised/form {rate / form:.3f}; of critical points least squares"
    return Comparison(form, rate, RATE, abs(rate / form - 1) <= RATE, f"{reason} finds {kind}")


def _no_escape(evidence: Evidence) -> str:
    return "t_2 was not reached" if evidence.reached < 2 else "no escapes from plateau 1 at smaller noise to compare"


def _slope(evidence: Evidence) -> Comparison:
    """P4: sqrt(t_2) against ln(1/sigma), by flows beside the run."""
    forms, found = evidence.task.forms, evidence.escapes
    if forms is None or found is None or evidence.reached < 2:
        return Comparison("-", None, 0.1, None, _no_escape(evidence))
    limit, off = SLOPE[forms.mirror], found.slope / forms.escape_slope
    shown = ", ".join(f"{when:.4g}" for when in found.when)
    reason = f"t_2 = {shown} at noise on the logits {SIGMAS[0]:g}, {SIGMAS[1]:g}, {SIGMAS[2]:g}: slope over the form {off:.3f}"
    return Comparison(forms.escape_slope, found.slope, limit, abs(off - 1) <= limit, reason)


def _wkb(evidence: Evidence) -> Comparison:
    """P5: t_2 at two smaller noises, calibrated at the largest."""
    found = evidence.escapes
    if found is None or evidence.reached < 2:
        return Comparison(1.0, None, WKB, None, _no_escape(evidence))
    ratios = (found.foretold / found.when)[1:]
    if not np.isfinite(ratios).all():
        return Comparison(1.0, None, WKB, None, "the symmetric trajectory ends before the escape")
    worst = float(ratios[np.argmax(np.abs(ratios - 1))])
    shown = " and ".join(f"{ratio:.3f}" for ratio in ratios)
    reason = f"foretold/measured t_2 at noise on the logits {SIGMAS[1]:g} and {SIGMAS[2]:g}, calibrated at {SIGMAS[0]:g}: {shown}"
    return Comparison(1.0, worst, WKB, abs(worst - 1) <= WKB, reason)


CLAIMS = (
    Claim(
        tag="ISA:parting",
        statement="On plateau 1 H - 1 equal modes part the heads, at the rate of the landscape",
        regime=_moving,
        compare=_parting,
        shown=("t1", "t2"),
    ),
    Claim(
        tag="ISA:escape",
        statement="The parting rate on plateau 1 is the closed form's",
        regime=_settled,
        compare=_rate,
        shown=("t1", "t2"),
    ),
    Claim(
        tag="ISA:escape-law",
        statement="The escape law: sqrt(t_2) is linear in ln(1/sigma), with the form's slope",
        regime=_limit,
        compare=_slope,
        shown=("t2",),
    ),
    Claim(
        tag="ISA:wkb", statement="WKB from one noise foretells t_2 at smaller ones", regime=_leaving, compare=_wkb, shown=("t2",)
    ),
)
