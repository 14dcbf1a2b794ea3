"""How heads leave plateau 1: rates of the landscape against the run, and the closed forms of the regression flow."""

from dataclasses import dataclass

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime
from stagescope.landscape.critical import critical_point
from stagescope.landscape.spectrum import spectrum
from stagescope.papers.incremental.evidence import ESCAPE_NOISES, EqualHeads, Evidence


@dataclass(frozen=True)
class EscapeThresholds:
    """The regimes of the claims about the escape from plateau 1, and their relative tolerances."""

    slope_mirror: float = 0.25
    """Of the escape slope under the mirror law: its limit has corrections log(t)/t."""
    slope_exact: float = 0.10
    """Of the escape slope under the exact law."""
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
    elsewhere: float = 0.3
    """Largest attention off the first position on plateau 1 for the parting rate, whose form is of leading order in it.
    Chosen with the flows (H, ratio, N) = (5, 1.4, 20) and (6, 1.35, 12)."""


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
    """The closed form of the rate is of leading order in the attention off the first position.

    That share is measured on the companion run of equal heads when the run is on plateau 1, not on what is compared.
    """
    base, plateau = _leaving(evidence), evidence.plateaus[0] if evidence.reached else None
    if not base.holds or plateau is None or evidence.equal is None:
        return base
    model = evidence.law.model
    left = 1 - float(model.attention(evidence.equal.at(plateau.t))[0, model.at[0]])
    sentence = f"on plateau 1 a share {left:.2f} of the attention is off the first position"
    if left > ESCAPE.elsewhere:
        return Regime(False, f"{sentence}, above {ESCAPE.elsewhere:g}")
    return Regime(True, f"{base.sentence}; {sentence}")


def _limit(evidence: Evidence) -> Regime:
    """The closed form of the slope is a limit; decided from H, N and the gains alone, at the smallest noise."""
    base, forms = _leaving(evidence), evidence.task.forms
    if not base.holds or forms is None:
        return base
    noise = ESCAPE_NOISES[-1]
    left = forms.left_at_escape(noise)
    sentence = f"predicted attention on the second position at the escape is {left:.2f} of its start, at noise {noise:g}"
    if left > 1:
        return Regime(False, f"{sentence}: above 1, so the limit is not reached")
    return Regime(True, f"{base.sentence}; {sentence}")


def _moving(evidence: Evidence) -> Regime:
    """Heads on a flow time that can leave plateau 1."""
    stuck = _stuck(evidence.task.heads, len(evidence.task.gains))
    if stuck is not None:
        return Regime(False, stuck, applies=False)
    if evidence.companions.equal is None:
        return Regime(
            False, "this run has no flow time, or its model no reduction to one head, to compare rates with", applies=False
        )
    failed = evidence.failures(noisy=False) | evidence.unlike(ESCAPE.nearly_equal)
    return Regime(not failed, "; ".join(failed.values()) or "flow time, heads alike at the start")


@dataclass(frozen=True)
class Rise:
    """The last tenfold rise of the difference of heads while it is small: its frames and mean rate."""

    first: int
    last: int
    rate: float


def rise(evidence: Evidence) -> Rise | None:
    """The growth fit on plateau 1, where heads part linearly; None where the growing mode never dominates the initial noise."""
    inside = np.flatnonzero(evidence.heads.loss <= evidence.levels[1] + ESCAPE.on_plateau * evidence.steps[0])
    if not inside.size or evidence.identical:
        return None
    begin, amplitude, clock = int(inside[0]), evidence.spread * evidence.size, evidence.time
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
    holds = abs(off - 1) <= ESCAPE.parting and split <= ESCAPE.degenerate
    reason += f", mean {predicted:.4g}: measured/predicted {off:.3f}"
    return Comparison(predicted, found.rate, ESCAPE.parting, holds, reason)


def _rate(evidence: Evidence) -> Comparison:
    """P4: the closed form against the spectrum on plateau 1 of equal heads, and whether a critical point is near."""
    forms, equal = evidence.task.forms, evidence.equal
    plateau = evidence.rested(1) if evidence.reached else None
    if forms is None or equal is None or plateau is None:
        return Comparison("-", None, ESCAPE.rate, None, "the run does not rest on plateau 1")
    params = equal.at(plateau.t)
    mass = float(evidence.law.model.attention(params)[0, evidence.law.model.at[1]])
    form, rate = float(forms.rate(np.array(mass))), float(_fastest(evidence, equal, plateau.t)[0])
    point = critical_point(evidence.law, params, evidence.rates)
    near = f"|F| {point.residual:.1e} at relative distance {point.distance:.2f}"
    kind = "a critical point is near" if point.found else "no critical point is near, the plateau is reached only at t = infinity"
    reason = f"at t = {plateau.t:.4g} with s_2 = {mass:.3g} measured/predicted {rate / form:.3f}; {kind} ({near})"
    return Comparison(form, rate, ESCAPE.rate, abs(rate / form - 1) <= ESCAPE.rate, reason)


def _no_escape(evidence: Evidence) -> str:
    return "t_2 was not reached" if evidence.reached < 2 else "no companion flow leaves plateau 1 at smaller noise"


def _slope(evidence: Evidence) -> Comparison:
    """P4: sqrt(t_2) against ln(1/sigma), by companion flows."""
    forms, found = evidence.task.forms, evidence.escapes
    if forms is None or found is None or evidence.reached < 2:
        return Comparison("-", None, 0.1, None, _no_escape(evidence))
    limit, off = ESCAPE.slope_mirror if forms.mirror else ESCAPE.slope_exact, found.slope / forms.escape_slope
    shown, noises = ", ".join(f"{when:.4g}" for when in found.when), ", ".join(f"{sigma:g}" for sigma in ESCAPE_NOISES)
    reason = f"t_2 = {shown} at noise {noises} on the logits: slope measured/predicted {off:.3f}"
    return Comparison(forms.escape_slope, found.slope, limit, abs(off - 1) <= limit, reason)


def _wkb(evidence: Evidence) -> Comparison:
    """P5: t_2 at two smaller noises, calibrated at the largest."""
    found = evidence.escapes
    if found is None or evidence.reached < 2:
        return Comparison(1.0, None, ESCAPE.wkb, None, _no_escape(evidence))
    ratios = (found.predicted / found.when)[1:]
    if not np.isfinite(ratios).all():
        return Comparison(1.0, None, ESCAPE.wkb, None, "the companion run of equal heads ends before the escape")
    worst = float(ratios[np.argmax(np.abs(ratios - 1))])
    shown = " and ".join(f"{ratio:.3f}" for ratio in ratios)
    first, *others = (f"{sigma:g}" for sigma in ESCAPE_NOISES)
    reason = f"t_2 predicted/measured {shown} at noise {' and '.join(others)} on the logits, calibrated at {first}"
    return Comparison(1.0, worst, ESCAPE.wkb, abs(worst - 1) <= ESCAPE.wkb, reason)


CLAIMS = (
    claim(
        "ISA:parting",
        "On plateau 1 H - 1 equal modes part the heads, at the rate of the landscape",
        _moving,
        _parting,
        "t1",
        "t2",
    ),
    claim("ISA:escape", "The parting rate on plateau 1 is that of the closed form", _settled, _rate, "t1", "t2"),
    claim(
        "ISA:escape-law",
        "The escape law: sqrt(t_2) is linear in ln(1/sigma), with the slope of the closed form",
        _limit,
        _slope,
        "t2",
    ),
    claim("ISA:wkb", "WKB calibrated at one noise predicts t_2 at smaller ones", _leaving, _wkb, "t2"),
)
