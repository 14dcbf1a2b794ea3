"""Focus and dilution: how times depend on the initial scale, and what equal rare tokens do (stage IV)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.claim import Claim, Comparison, Regime
from stagescope.landscape.ladder import NEAR
from stagescope.papers.focus_dilution.evidence import Evidence, following, small_flow
from stagescope.papers.focus_dilution.family import slopes
from stagescope.papers.focus_dilution.ladder.points import SmallPoint, condensed_start, nearest_point, small_point
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.process import LazyChain
from stagescope.papers.focus_dilution.stages import passes

DECADE = 10.0
LARGEST_EPS = 1.5e-3
"""Initial rms up to which the law of the initial scale is promised."""
ALMOST = 0.3
"""Rare tokens are almost equal if none is further from their mean than this share of it."""
EQUAL = 1e-9
SMALL_DELTAS = (1e-5, 1e-4)
"""Largest deviations, relative to the mean of the rare tokens, at which the kappa law is read off."""
NO_RATE = 1e-7
LONG_AFTER = 3.0
"""A stall is believed once this many times the opening time of attention has passed."""


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
        """The symmetric point (1,1) at delta = 0: a symmetric start stays symmetric."""
        loss = self.at(0.0)
        return small_point(loss, condensed_start(loss, 1e-3, 1.0), 1, 1)

    def near(self, delta: float) -> SmallPoint:
        """The point (1,1) that continues the symmetric one to a small delta."""
        return nearest_point(self.at(delta), self.symmetric.point.params, 1, 1)

    @cached_property
    def tangential(self) -> float:
        """The fastest rate inside the rank-one model at the symmetric point."""
        return float(self.symmetric.point.rates[0])


def _asymmetry(evidence: Evidence) -> Asymmetry | None:
    """None for chains that are not of the family, or whose rare tokens are far from equal."""
    if not isinstance(evidence.law.process, LazyChain) or evidence.law.process.vocab < 3 or evidence.rate <= 0:
        return None
    found = Asymmetry(evidence.law, evidence.curves.frequent)
    return found if found.delta <= ALMOST * found.mean and found.mean < evidence.pi.max() else None


def _family(evidence: Evidence) -> Regime:
    found = _asymmetry(evidence)
    if found is None:
        return Regime(False, "speaks of lazy chains whose rare tokens are almost equal", applies=False)
    failed = evidence.failures()
    if evidence.attentions[0] is None:
        failed.append("Q1 was not reached: the run says nothing of (1,1)")
    elif not found.symmetric.of_its_label:
        failed.append("the symmetric point (1,1) was not reached: the search ended elsewhere")
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
    if found.delta <= EQUAL:
        return Comparison(1.0, None, 0.05, None, "rare tokens are equal: there is no delta to scale with")
    points = [found.near(share * found.mean) for share in SMALL_DELTAS]
    if not all(p.point.found and p.opening is not None for p in points):
        return Comparison(1.0, None, 0.05, None, "the symmetric point does not continue to small delta")
    rates = [max(o.rate for o in p.openings["embedding"]) for p in points]
    slope = float(np.log(rates[1] / rates[0]) / np.log(SMALL_DELTAS[1] / SMALL_DELTAS[0]))
    kappa = rates[0] / (SMALL_DELTAS[0] * found.mean)
    here = f"at this chain kappa delta = {kappa * found.delta:.3g}"
    reason = f"rate ~ delta^{slope:.4f} with kappa = {kappa:.4f}, delta the largest deviation; {here}"
    return Comparison(1.0, slope, 0.05, abs(slope - 1) <= 0.05, reason)


def _tangential(evidence: Evidence) -> Comparison:
    found = _asymmetry(evidence)
    assert found is not None
    rate = found.tangential
    words = "nothing grows" if rate <= NO_RATE else "the symmetric point is unstable already"
    return Comparison(0.0, rate, NO_RATE, rate <= NO_RATE, f"{words} inside the rank-one model at delta = 0: rate {rate:.3g}")


def _stalling(evidence: Evidence) -> Regime:
    found = _asymmetry(evidence)
    if found is None or found.delta > EQUAL:
        return Regime(False, "speaks of lazy chains with equal rare tokens", applies=False)
    failed, opened = evidence.failures(), evidence.attentions[0]
    if opened is None:
        failed.append("Q1 was not reached: the test is empty")
    elif evidence.curves.time[-1] < LONG_AFTER * opened:
        failed.append(f"the run ends before {LONG_AFTER:g} Q1 = {LONG_AFTER * opened:.4g}")
    if found.tangential > NO_RATE:
        failed.append(f"the symmetric point is unstable inside the rank-one model (rate {found.tangential:.3g})")
    return Regime(not failed, "; ".join(failed) or "equal rare tokens, symmetric point stable inside the rank-one model")


def _stall(evidence: Evidence) -> Comparison:
    end, second = float(evidence.curves.time[-1]), evidence.second
    shown = "not reached" if second is None else f"{second:.4g}"
    return Comparison("not reached", shown, "exact", second is None, f"E2 {shown} by {evidence.run.clock} = {end:.4g}")


def _scaled(evidence: Evidence) -> Regime:
    """The law of eps needs both saddles followed, also the last; its legs are then logarithms over rates."""
    base = small_flow(evidence)
    if evidence.start > LARGEST_EPS:
        return Regime(False, f"initial rms {evidence.start:.1e} is above {LARGEST_EPS:g}")
    for regime in (base, following(0, 0)(evidence), following(1, 0)(evidence), following(1, 1)(evidence)):
        if not regime.holds:
            return regime
    return Regime(True, f"initial rms {evidence.start:.1e}; both saddles are followed")


def _away(beside: Evidence) -> str:
    """Why a run beside does not follow the two saddles, empty where it does."""
    for r, rq in ((1, 0), (1, 1)):
        passage = beside.passage(r, rq)
        if passage is None or not passage.small.of_its_label or passage.distance > NEAR:
            return f"the run is not near ({r},{rq})"
        if passage.astray:
            return passage.astray
    return ""


def _eps_law(evidence: Evidence) -> Comparison:
    """Between eps/10 and eps/100: E1 + ln 10/mu0, Q1 - E1 + ln 10/c, E2 - Q1 + ln 10/mu11."""
    rows = [evidence.passage(*label) for label in ((0, 0), (1, 0), (1, 1))]
    rates = [p.small.opening.rate for p in rows if p is not None and p.small.opening is not None]
    if evidence.second is None or evidence.beside is None:
        return Comparison(1.0, None, 0.03, None, "E2 was not reached")
    if len(rates) < 3:
        return Comparison(1.0, None, 0.03, None, "at one of the first three saddles nothing opens: there is no rate to divide by")
    per_decade = np.log(DECADE) / np.array(rates)
    legs = []
    for decades in (1, 2):
        until = float(evidence.second + 1.3 * decades * per_decade.sum() + 0.2 * evidence.second)
        curves = evidence.beside(DECADE**-decades, until)
        times = (*passes(curves.time, curves.embedding_values)[:2], passes(curves.time, curves.score_values)[0])
        start = f"from a start {DECADE**decades:g} times smaller"
        if None in times:
            return Comparison(1.0, None, 0.03, None, f"{start} E2 was not reached")
        away = _away(Evidence(evidence.run, curves))
        if away:
            return Comparison(1.0, None, 0.03, None, f"{start} {away}")
        first, second, opened = (float(t) for t in times if t is not None)
        legs.append((first, opened - first, second - opened))
    ratios = (np.array(legs[1]) - np.array(legs[0])) / per_decade
    worst = float(ratios[np.argmax(np.abs(ratios - 1))])
    reason = "delay per decade of eps over ln 10/rate: " + ", ".join(
        f"{name} {ratio:.3f}" for name, ratio in zip(("E1", "Q1-E1", "E2-Q1"), ratios, strict=True)
    )
    return Comparison(1.0, worst, 0.03, abs(worst - 1) <= 0.03, reason)


CLAIMS = (
    Claim(
        tag="FD:eps-law",
        statement="A tenfold smaller start delays each event by ln 10 over its rate",
        regime=_scaled,
        compare=_eps_law,
        shown=("E1", "E2"),
    ),
    Claim(
        tag="FD:degenerate",
        statement="With equal rare tokens the symmetric (1,1) has no transverse rate",
        regime=_family,
        compare=_degenerate,
        shown=("Q1",),
    ),
    Claim(
        tag="FD:kappa",
        statement="Asymmetry lifts it: the top embedding rate is kappa delta",
        regime=_family,
        compare=_kappa,
        shown=("Q1", "E2"),
    ),
    Claim(
        tag="FD:tangential",
        statement="At delta = 0 nothing grows inside the rank-one model either",
        regime=_family,
        compare=_tangential,
        shown=("Q1",),
    ),
    Claim(
        tag="FD:stall",
        statement="Without asymmetry the flow stalls at (1,1)",
        regime=_stalling,
        compare=_stall,
        shown=("Q1", "end"),
    ),
)
