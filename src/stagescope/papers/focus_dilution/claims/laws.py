"""Focus and dilution: how times depend on the initial scale, and what equal rare tokens do (stage IV)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.papers.focus_dilution.evidence import Evidence, beside, opening, reaching_second
from stagescope.papers.focus_dilution.family import slopes
from stagescope.papers.focus_dilution.ladder.points import NO_RATE, SmallPoint, condensed_start, nearest_point, small_point
from stagescope.papers.focus_dilution.ladder.visit import SaddleVisit
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.nulls import OTHER_PERSISTENCE, PERSISTENT, UNEQUAL
from stagescope.papers.focus_dilution.process import LazyChain


@dataclass(frozen=True)
class LawLimits:
    """Where the laws of the initial scale and of the asymmetry are claimed."""

    delay: float = 0.1  # of ln 10 / rate: rates are claimed to a tenth
    almost: float = 0.3  # rare tokens are almost equal if none is further from their mean than this share of it
    equal: float = 1e-9  # and equal if none is further than this
    deltas: tuple[float, float] = (1e-5, 1e-4)  # relative deviations at which kappa is measured; the error is of order delta
    stalled: float = 3.0  # a run shows a stall if it lasts for this many times Q1 without E2, as long as three further legs


LIMITS = LawLimits()


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
        """The point (1,1) that continues the symmetric one to a small delta."""
        return nearest_point(self.at(delta), self.symmetric.point.params, 1, 1)

    @cached_property
    def kappa(self) -> tuple[float, float] | None:
        """Exponent and factor of rate = kappa delta^exponent near delta = 0; None where the symmetric point does not continue."""
        points = [self.near(share * self.mean) for share in LIMITS.deltas]
        if not all(p.point.found and p.opening is not None for p in points):
            return None
        rates = [max(o.rate for o in p.openings["embedding"]) for p in points]
        exponent = np.log(rates[1] / rates[0]) / np.log(LIMITS.deltas[1] / LIMITS.deltas[0])
        return float(exponent), rates[0] / (LIMITS.deltas[0] * self.mean)

    @cached_property
    def tangential(self) -> float:
        """The fastest rate inside the rank-one model at the symmetric point."""
        return float(self.symmetric.point.rates[0])


def _asymmetry(evidence: Evidence) -> Asymmetry | None:
    """None for chains that are not of the family, or whose rare tokens are far from equal."""
    if not isinstance(evidence.law.process, LazyChain) or evidence.law.process.vocab < 3 or evidence.rate <= 0:
        return None
    found = Asymmetry(evidence.law, evidence.curves.frequent)
    return found if found.delta <= LIMITS.almost * found.mean and found.mean < evidence.pi.max() else None


def _family(evidence: Evidence) -> Regime:
    found = _asymmetry(evidence)
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


def _degenerate(evidence: Evidence) -> Comparison:
    found = _asymmetry(evidence)
    assert found is not None
    gm, gp = slopes(found.at(0.0), found.symmetric.point.params)
    fastest = max(opening.rate for kind in found.symmetric.openings.values() for opening in kind)
    size = max(float(np.abs(gm).max()), float(np.abs(gp).max()), fastest)
    reason = f"at delta = 0: dL/dM {np.abs(gm).max():.1e}, dL/dPhi {np.abs(gp).max():.1e}, fastest transverse rate {fastest:.1e}"
    return Comparison(0.0, size, 1e-10, size <= 1e-10, reason)


def _kappa(evidence: Evidence) -> Comparison:
    found = _asymmetry(evidence)
    assert found is not None
    if found.delta <= LIMITS.equal:
        return Comparison(1.0, None, 0.05, None, "rare tokens are equal: there is no delta to scale with")
    law = found.kappa
    if law is None:
        return Comparison(1.0, None, 0.05, None, "the symmetric point does not continue to small delta")
    slope, kappa = law
    here = f"at this chain kappa delta = {kappa * found.delta:.3g}"
    reason = f"rate ~ delta^{slope:.4f} with kappa = {kappa:.4f}, delta the largest deviation; {here}"
    return Comparison(1.0, slope, 0.05, abs(slope - 1) <= 0.05, reason)


def _tangential(evidence: Evidence) -> Comparison:
    found = _asymmetry(evidence)
    assert found is not None
    rate = found.tangential
    words = "stable" if rate <= NO_RATE else "unstable"
    reason = f"at delta = 0 the symmetric point is {words} inside the rank-one model: rate {rate:.3g}"
    return Comparison(0.0, rate, NO_RATE, rate <= NO_RATE, reason)


def _stalling(evidence: Evidence) -> Regime:
    found = _asymmetry(evidence)
    if found is None or found.delta > LIMITS.equal:
        return Regime(False, "applies only to lazy chains with equal rare tokens", applies=False)
    failed, opened = evidence.failures(), evidence.attentions[0]
    if opened is None:
        failed.append("Q1 was not reached: without it the claim is empty")
    elif evidence.curves.time[-1] < LIMITS.stalled * opened:
        failed.append(f"the run ends before {LIMITS.stalled:g} Q1 = {LIMITS.stalled * opened:.4g}")
    if found.tangential > NO_RATE:
        failed.append(f"the symmetric point is unstable inside the rank-one model (rate {found.tangential:.3g})")
    return Regime(not failed, "; ".join(failed) or "equal rare tokens, symmetric point stable inside the rank-one model")


def _stall(evidence: Evidence) -> Comparison:
    end, second = float(evidence.curves.time[-1]), evidence.second
    shown = "not reached" if second is None else f"{second:.4g}"
    return Comparison("not reached", shown, "exact", second is None, f"E2 {shown} by {evidence.run.clock} = {end:.4g}")


def _scaled(evidence: Evidence) -> Regime:
    """A flow from a small start that stays at (0,0), (1,0) and (1,1) and reaches E2."""
    for regime in (opening(0, 0), opening(1, 0), opening(1, 1), reaching_second):
        if not (found := regime(evidence)).holds:
            return found
    return Regime(True, f"initial rms {evidence.start:.1e}; stays at (0,0), (1,0) and (1,1)")


LABELS, LEGS = ((0, 0), (1, 0), (1, 1)), ("E1", "Q1-E1", "E2-Q1")


def _legs(evidence: Evidence) -> np.ndarray | None:
    """E1, Q1 - E1 and E2 - Q1; None where one of them was not reached."""
    times = (evidence.embeddings[0], evidence.attentions[0], evidence.second)
    if None in times:
        return None
    first, opened, second = (float(t) for t in times if t is not None)
    return np.array([first, opened - first, second - opened])


def _eps_law(evidence: Evidence) -> Comparison:
    """The delay of each leg from eps/10 to eps/100 over ln 10 / rate, and how it differs from that between eps and eps/10.

    The law is one of the limit of small starts. The difference between two decades is the error of the measurement; what the
    run's distance from the points still does to their rates at eps/100 is the error of the prediction.
    """
    unit = "of the prediction"
    visits = [evidence.visit(*label) for label in LABELS]
    rates = [visit.small.opening.rate for visit in visits if visit is not None and visit.small.opening is not None]
    legs = _legs(evidence)
    if legs is None or evidence.second is None or evidence.companion is None or len(rates) < 3:
        return Comparison(1.0, None, LIMITS.delay, None, "E2 was not reached, or nothing opens at one of the saddles", unit=unit)
    per_decade, found, smaller = np.log(10.0) / np.array(rates), [legs], evidence
    for decades in (1, 2):
        until = float(1.2 * evidence.second + 1.5 * decades * per_decade.sum())
        smaller = Evidence(evidence.run, evidence.companion(10.0**-decades, until))
        if (legs := _legs(smaller)) is None:
            words = f"from a start {10**decades} times smaller: E2 was not reached"
            return Comparison(1.0, None, LIMITS.delay, None, words, unit=unit)
        found.append(legs)
    early, late = (found[1] - found[0]) / per_decade, (found[2] - found[1]) / per_decade
    doubts = np.array([_doubt(smaller.visit(*label)) for label in LABELS])
    worst = int(np.argmax(np.abs(late - 1)))
    shown = ", ".join(f"{name} {ratio:.3f}" for name, ratio in zip(LEGS, late, strict=True))
    errors = {"predicted_error": float(doubts.max()), "measured_error": float(np.abs(late - early).max())}
    reason = f"delay per decade of eps over ln 10/rate: {shown}"
    return agreement(1.0, float(late[worst]), LIMITS.delay, reason, **errors, unit=unit)


def _doubt(visit: SaddleVisit | None) -> float:
    """The relative error of the rate at a point because the run is not at it; 1 where there is no such point."""
    if visit is None or visit.small.opening is None or visit.local_rate is None:
        return 1.0
    return abs(visit.local_rate / visit.small.opening.rate - 1)


CLAIMS = (
    claim(
        "FD:eps-law",
        "A tenfold smaller start delays each event by ln 10 over its rate",
        _scaled,
        _eps_law,
        "E1",
        "E2",
        kind="prediction",
        null=OTHER_PERSISTENCE,
        rules=3,
        elsewhere=beside,
        cost="2 flows from starts 10 and 100 times smaller, each about twice as long as this one",
    ),
    claim(
        "FD:degenerate",
        "With equal rare tokens the symmetric (1,1) has no transverse rate",
        _family,
        _degenerate,
        "Q1",
        kind="identity",
        rules=2,
    ),
    claim(
        "FD:kappa",
        "Asymmetry lifts the degenerate point: the top embedding rate is kappa delta",
        _family,
        _kappa,
        "Q1",
        "E2",
        kind="identity",
        rules=2,
        cost="2 searches for critical points at small delta",
    ),
    claim(
        "FD:tangential",
        "At delta = 0 nothing grows inside the rank-one model either",
        _family,
        _tangential,
        "Q1",
        kind="prediction",
        null=PERSISTENT,
        rules=2,
        rare=True,
    ),
    claim(
        "FD:stall",
        "Without asymmetry the flow stalls at (1,1)",
        _stalling,
        _stall,
        "Q1",
        "end",
        kind="prediction",
        null=UNEQUAL,
        rules=2,
        rare=True,
    ),
)
