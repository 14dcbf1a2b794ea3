"""How heads leave plateau 1: rates of the landscape against the run, and the closed forms of the regression flow."""

from dataclasses import dataclass

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.landscape.spectrum import spectrum
from stagescope.papers.incremental import nulls
from stagescope.papers.incremental.evidence import Evidence
from stagescope.papers.incremental.task import EqualHeads

PER_TIME = "1/t"
SIMPSON = np.array([1, 4, 1]) / 6


@dataclass(frozen=True)
class EscapeThresholds:
    """The regimes of the claims about the escape from plateau 1, and their relative tolerances (science page, section 3)."""

    parting: float = 0.15
    """Of a rate, of the spectrum or in closed form, against the run."""
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


def leaving(evidence: Evidence) -> Regime:
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
    failed = [*(evidence.failures(noisy=False) | evidence.unlike(ESCAPE.nearly_equal)).values(), *_no_room(evidence)]
    return Regime(not failed, "; ".join(failed) or "flow time, heads alike at the start")


def _rising(evidence: Evidence) -> Regime:
    """A flow whose heads have room to part on plateau 1."""
    base, failed = leaving(evidence), _no_room(evidence)
    return Regime(False, failed[0]) if base.holds and failed else base


def _no_room(evidence: Evidence) -> list[str]:
    begin, most = _arrival(evidence), ESCAPE.linear / ESCAPE.growth
    if begin is None or evidence.spread[begin] <= most:
        return []
    return [f"heads differ by {evidence.spread[begin]:.1e} on arrival at plateau 1, above {most:g}: no room to grow"]


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

    def thirds(self, time: np.ndarray) -> np.ndarray:
        """Its beginning, middle and end, for a mean by Simpson's rule."""
        return np.linspace(time[self.first], time[self.last], 3)


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
    times = found.thirds(evidence.time)
    rates = np.array([_fastest(evidence, equal, when) for when in times])
    predicted, parting = float(SIMPSON @ rates[:, 0]), evidence.task.heads - 1
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


def _form(evidence: Evidence) -> Comparison:
    """P4: heads part at the rate of the closed form, from the mean attention of the run while they part.

    The form is of leading order in the attention off the first position: its share there is the relative error of the form.
    """
    forms, found = evidence.task.forms, rise(evidence)
    if forms is None or evidence.reached == 0 or found is None:
        why = "t_1 was not reached" if evidence.reached == 0 else f"heads do not part {ESCAPE.growth:g}-fold on plateau 1"
        return Comparison("-", None, ESCAPE.parting, None, why, unit=PER_TIME)
    model, times = evidence.law.model, found.thirds(evidence.time)
    frames = [evidence.frame(when) for when in times]
    attention = model.attention({name: evidence.run.params[name][frames] for name in evidence.run.params}).mean(axis=1)
    rates, left = forms.fastest(attention[:, model.at]), 1 - attention[:, model.at[0]]
    predicted, off = float(SIMPSON @ rates), float(SIMPSON @ left)
    reason = f"heads part at rate {found.rate:.4g} between {times[0]:.4g} and {times[-1]:.4g}, by the form {predicted:.4g} with"
    reason += f" {off:.1%} of the attention off the first position: measured/predicted {found.rate / predicted:.3f}"
    limit, error = ESCAPE.parting * predicted, off * predicted
    return agreement(predicted, found.rate, limit, reason, predicted_error=error, unit=PER_TIME)


CLAIMS = (
    claim(
        "ISA:parting",
        "On plateau 1 H - 1 equal modes part the heads, at the rate of the landscape",
        _moving,
        _parting,
        "t1",
        "t2",
        kind="prediction",
        null=(nulls.STRETCHED,),
        rules=2,
        cost="a run of equal heads, as long as this one",
    ),
    claim(
        "ISA:escape",
        "On plateau 1 heads part at the rate of the closed form",
        _rising,
        _form,
        "t1",
        "t2",
        kind="prediction",
        null=(nulls.STRETCHED,),
        rules=3,
    ),
)
