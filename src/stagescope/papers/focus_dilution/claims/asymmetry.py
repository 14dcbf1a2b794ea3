"""Focus and dilution: what equal and almost equal rare tokens do (stage IV)."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.papers.focus_dilution.claims.eps_law import distance_shift
from stagescope.papers.focus_dilution.evidence import Evidence, opening, reaching_second
from stagescope.papers.focus_dilution.forms import symmetric_margin
from stagescope.papers.focus_dilution.ladder.points import NO_RATE, SmallPoint, condensed_start, nearest_point, small_point
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.process import LazyChain


@dataclass(frozen=True)
class AsymmetryLimits:
    """Where the laws of the asymmetry are claimed."""

    almost: float = 0.3  # rare tokens are almost equal if none is further from their mean than this share of it
    equal: float = 1e-9  # and equal if none is further than this
    deltas: tuple[float, float] = (1e-5, 1e-4)  # relative deviations at which kappa is measured; the error is of order delta
    rounding: float = 1e-10  # a rate above this is none of rounding: points are zeros to about 1e-15
    parts: tuple[int, ...] = (1, 2, 4, 8)  # delta is divided by these for its law
    exponent: float = 0.1  # tolerance of the exponent of delta: rates are claimed to a tenth
    linear: float = 0.2  # the rate at the least delta is this near to kappa delta; beyond it no limit is taken
    stalled: float = 3.0  # a run shows a stall if it lasts for this many times Q1 without E2, as long as three further legs


LIMITS = AsymmetryLimits()
UNSTABLE = "the symmetric point is unstable inside the rank-one model"


@dataclass(frozen=True)
class Asymmetry:
    """A lazy chain as pi_f fixed and pi_i = mean + c_i delta for the others, with max |c_i| = 1 [FD:asymmetry]."""

    law: TokenPopulation
    frequent: int

    @cached_property
    def mean(self) -> float:
        pi = self.law.process.stationary
        return float((1 - pi[self.frequent]) / (len(pi) - 1))

    @cached_property
    def deviation(self) -> np.ndarray:
        """c_i delta, zero for the frequent token."""
        found = self.law.process.stationary - self.mean
        found[self.frequent] = 0.0
        return found

    @property
    def delta(self) -> float:
        return float(np.abs(self.deviation).max())

    def at(self, delta: float) -> TokenPopulation:
        """The loss on the member of the family with this delta."""
        chain = self.law.process
        assert isinstance(chain, LazyChain)
        pi = np.full(chain.vocab, self.mean)
        pi[self.frequent] = chain.stationary[self.frequent]
        if delta:
            pi += self.deviation * (delta / self.delta)
        return TokenPopulation(model=self.law.model, process=LazyChain(pi=tuple(pi.tolist()), persistence=chain.persistence))

    @cached_property
    def symmetric(self) -> SmallPoint:
        """The symmetric point (1,1) at delta = 0; the flow from a symmetric start stays symmetric."""
        loss = self.at(0.0)
        return small_point(loss, condensed_start(loss, 1e-3, 1.0), 1, 1)

    def near(self, delta: float) -> SmallPoint:
        """The point (1,1) that continues the symmetric one to a small delta, in steps that double it."""
        found, least = self.symmetric, LIMITS.deltas[1] * self.mean
        steps = max(0, math.ceil(math.log2(delta / least)))
        for step in range(steps, -1, -1):
            found = nearest_point(self.at(delta / 2**step), found.point.params, 1, 1)
        return found

    def rate(self, delta: float) -> float | None:
        """The fastest embedding rate there; None where the symmetric point does not continue to this delta."""
        found = self.near(delta)
        rate = max(o.rate for o in found.openings["embedding"]) if found.point.found and "embedding" in found.room else 0.0
        return rate if rate > LIMITS.rounding else None

    @property
    def beyond_linear(self) -> float:
        """The relative distance of the rate at the least delta of the law from kappa delta; infinite where there is none."""
        least = self.delta / LIMITS.parts[-1]
        rate = self.rate(least)
        return math.inf if rate is None or self.kappa is None else abs(rate / (self.kappa[1] * least) - 1)

    @cached_property
    def kappa(self) -> tuple[float, float] | None:
        """Exponent and factor of rate = kappa delta^exponent near delta = 0; None where the symmetric point does not continue."""
        first, second = (self.rate(share * self.mean) for share in LIMITS.deltas)
        if first is None or second is None:
            return None
        exponent = np.log(second / first) / np.log(LIMITS.deltas[1] / LIMITS.deltas[0])
        return float(exponent), first / (LIMITS.deltas[0] * self.mean)

    @property
    def margin(self) -> float:
        """Above 0 where the symmetric point is stable inside the rank-one model, in closed form."""
        chain = self.law.process
        assert isinstance(chain, LazyChain)
        return symmetric_margin(chain.persistence, float(chain.stationary[self.frequent]), chain.vocab)

    @cached_property
    def tangential(self) -> float:
        """The fastest rate inside the rank-one model at the symmetric point."""
        return float(self.symmetric.point.rates[0])


def family_of(evidence: Evidence) -> Asymmetry | None:
    """None for chains that are not of the family, or whose rare tokens are far from equal."""
    if not isinstance(evidence.law.process, LazyChain) or evidence.law.process.vocab < 3 or evidence.rate <= 0:
        return None
    found = Asymmetry(evidence.law, evidence.curves.frequent)
    return found if found.delta <= LIMITS.almost * found.mean and found.mean < evidence.pi.max() else None


def _family(evidence: Evidence) -> Regime:
    found = family_of(evidence)
    if found is None:
        return Regime(False, "applies only to lazy chains whose rare tokens are almost equal", applies=False)
    failed = evidence.failures()
    if evidence.attentions[0] is None:
        failed.append("Q1 was not reached: the run does not come to (1,1)")
    elif not found.symmetric.of_its_label:
        failed.append("no symmetric point (1,1) was found: the search ended elsewhere")
    if failed:
        return Regime(False, "; ".join(failed))
    return Regime(True, f"rare tokens deviate by {found.delta / found.mean:.1%} of their mean")


def _lifted(evidence: Evidence) -> Regime:
    """Almost equal rare tokens, and a flow to E2 that stays at (1,1), where a direction opens at a rate of order delta."""
    found = _family(evidence)
    asymmetry = family_of(evidence)
    if not found.holds or asymmetry is None:
        return found
    if asymmetry.delta <= LIMITS.equal:
        return Regime(False, "rare tokens are equal: there is no delta to halve", applies=False)
    if asymmetry.tangential > NO_RATE:
        return Regime(False, f"{UNSTABLE} (rate {asymmetry.tangential:.3g}): flows leave it before asymmetry does")
    for regime in (reaching_second, opening(1, 1)):
        if not (more := regime(evidence)).holds:
            return more
    if (beyond := asymmetry.beyond_linear) > LIMITS.linear:
        least = f"delta/{LIMITS.parts[-1]}"
        far = f"at {least} the rate is {beyond:.0%} from kappa delta: delta is not small"
        return Regime(False, far if math.isfinite(beyond) else f"the symmetric point does not continue to {least}")
    return found


def _delta_law(evidence: Evidence) -> Comparison:
    """The exponent of the measured rate in the limit of small delta.

    Exponents between delta, delta/2, delta/4 and delta/8 have an error of order delta; two neighbours give a limit without
    it. The difference of the two limits is the error of the measurement; what the distance of a run from its point does to
    its rate is the error of the prediction. The limit is -log2 of r(delta/2) r(delta/8)^2 / r(delta/4)^3; the three distances
    enter with these weights and their signs, so that a part of order delta cancels like that of the rates.
    """
    unit, asymmetry, opened, second = "exponent", family_of(evidence), evidence.attentions[0], evidence.second
    if asymmetry is None or opened is None or second is None or evidence.other_law is None:
        return Comparison(1.0, None, LIMITS.exponent, None, "E2 was not reached", unit=unit)
    rates, doubts = [], []
    for parts in LIMITS.parts:
        until = 1.5 * (opened + parts * (second - opened))
        change = asymmetry.deviation * (1 / parts - 1)
        at = evidence if parts == 1 else Evidence(evidence.run, evidence.other_law(change, until))
        visit = at.visit(1, 1)
        if visit is None or visit.rise is None:
            words = f"at delta/{parts} the opening does not rise tenfold while the flow stays at (1,1)"
            return Comparison(1.0, None, LIMITS.exponent, None, words, unit=unit)
        rates.append(visit.rise.rate)
        doubts.append(distance_shift(visit))
    exponents = -np.diff(np.log2(rates))
    before, limit = (2 * exponents[1:] - exponents[:-1]).tolist()
    shown = [" ".join(f"{x:.3g}" for x in numbers) for numbers in (rates, exponents)]
    reason = f"rates at (1,1) with delta/1, /2, /4, /8: {shown[0]}; exponents {shown[1]}, limit {limit:.3f}"
    doubt = abs(doubts[1] - 3 * doubts[2] + 2 * doubts[3]) / math.log(2)
    errors = {"predicted_error": doubt, "measured_error": abs(limit - before)}
    return agreement(1.0, limit, LIMITS.exponent, reason, **errors, unit=unit)


def _tangential(evidence: Evidence) -> Comparison:
    found = family_of(evidence)
    assert found is not None
    rate = found.tangential
    words = "stable" if rate <= NO_RATE else "unstable"
    reason = f"at delta = 0 the symmetric point is {words} inside the rank-one model: rate {rate:.3g}"
    return Comparison(0.0, rate, NO_RATE, rate <= NO_RATE, reason)


def _stalling(evidence: Evidence) -> Regime:
    found = family_of(evidence)
    if found is None or found.delta > LIMITS.equal:
        return Regime(False, "applies only to lazy chains with equal rare tokens", applies=False)
    failed, opened = evidence.failures(), evidence.attentions[0]
    if opened is None:
        failed.append("Q1 was not reached: without it the claim is empty")
    elif evidence.curves.time[-1] < LIMITS.stalled * opened:
        failed.append(f"the run ends before {LIMITS.stalled:g} Q1 = {LIMITS.stalled * opened:.4g}")
    if found.tangential > NO_RATE:
        failed.append(f"{UNSTABLE} (rate {found.tangential:.3g})")
    return Regime(not failed, "; ".join(failed) or "equal rare tokens, symmetric point stable inside the rank-one model")


def _stall(evidence: Evidence) -> Comparison:
    end, second = float(evidence.curves.time[-1]), evidence.second
    shown = "not reached" if second is None else f"{second:.4g}"
    return Comparison("not reached", shown, "exact", second is None, f"E2 {shown} by {evidence.run.clock} = {end:.4g}")


CLAIMS = (
    claim(
        "FD:delta-law",
        "Halving the asymmetry halves the rate at which the flow leaves (1,1)",
        _lifted,
        _delta_law,
        "Q1",
        "E2",
        kind="prediction",
        rules=2,
        cost="3 flows at a half, a quarter and an eighth of the asymmetry, up to eight times as long as this one",
    ),
    claim(
        "FD:tangential",
        "At delta = 0 nothing grows inside the rank-one model either",
        _family,
        _tangential,
        "Q1",
        kind="prediction",
        rules=2,
    ),
    claim(
        "FD:stall",
        "Without asymmetry the flow stalls at (1,1)",
        _stalling,
        _stall,
        "Q1",
        "end",
        kind="prediction",
        rules=2,
    ),
)
