"""All claims of focus and dilution; here are the laws of the initial scale and of the asymmetry of rare tokens."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, OverRuns, Regime, agreement, not_applicable, undecided
from stagescope.landscape.saddle_path import plain_time
from stagescope.papers.focus_dilution.claims_adam import ADAM_CLAIMS
from stagescope.papers.focus_dilution.claims_cycle import CYCLE_CLAIMS, PATH_CLAIMS
from stagescope.papers.focus_dilution.claims_saddles import SADDLE_CLAIMS
from stagescope.papers.focus_dilution.companion_options import another_flow
from stagescope.papers.focus_dilution.evidence import Evidence, opening, reaching_second, small_flow
from stagescope.papers.focus_dilution.family import stall_boundary, symmetric_margin
from stagescope.papers.focus_dilution.ladder import (
    SaddleVisit,
    SmallPoint,
    condensed_start,
    nearest_point,
    small_point,
)
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.model import LazyChain

# Focus and dilution: how times depend on the initial scale.


def _scaled(evidence: Evidence) -> Regime:
    """A flow from a small start that stays at (0,0), (1,0) and (1,1) and reaches E2."""
    for regime in (opening(0, 0), opening(1, 0), opening(1, 1), reaching_second):
        if not (found := regime(evidence)).holds:
            return found
    return Regime(True, f"initial rms {evidence.scale:.1e}; stays at (0,0), (1,0) and (1,1)")


LABELS, LEGS = ((0, 0), (1, 0), (1, 1)), ("E1", "Q1-E1", "E2-Q1")


def _legs(evidence: Evidence) -> np.ndarray | None:
    """E1, Q1 - E1 and E2 - Q1; None where one of them was not reached."""
    times = (evidence.openings["E1"], evidence.openings["Q1"], evidence.second)
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
    visits = {label: evidence.visit(*label) for label in LABELS}
    rates = [visit.small.opening.rate for visit in visits.values() if visit is not None and visit.small.opening is not None]
    legs = _legs(evidence)
    if legs is None or evidence.second is None or len(rates) < 3:
        return undecided("E2 was not reached, or nothing opens at one of the saddles", 1.0, LIMITS.rate, unit)
    per_decade, found, smaller = np.log(10.0) / np.array(rates), [legs], evidence
    for decades in (1, 2):
        until = float(1.2 * evidence.second + LIMITS.margin * decades * per_decade.sum())
        smaller = Evidence(evidence.run, evidence.companion("from_scaled", 10.0**-decades, until))
        if (legs := _legs(smaller)) is None:
            words = f"from a start {10**decades} times smaller: E2 was not reached"
            return undecided(words, 1.0, LIMITS.rate, unit)
        found.append(legs)
    early, late = (found[1] - found[0]) / per_decade, (found[2] - found[1]) / per_decade
    known = {label: None if visit is None else visit.small for label, visit in visits.items()}
    doubts = np.array([abs(distance_shift(smaller.visit(*label, point))) for label, point in known.items()])
    worst = int(np.argmax(np.abs(late - 1)))
    shown = ", ".join(f"{name} {ratio:.3f}" for name, ratio in zip(LEGS, late, strict=True))
    errors = {"predicted_error": float(doubts.max()), "measured_error": float(np.abs(late - early).max())}
    reason = f"delay per decade of eps over ln 10/rate: {shown}"
    # E2 of the three runs over the size of their starts; predicted from that of the smallest start.
    decades, seconds = np.arange(3), [each.sum() for each in found]
    at, predicted = evidence.scale * 10.0**-decades, seconds[-1] - (2 - decades) * per_decade.sum()
    over = OverRuns(tuple(at), tuple(seconds), tuple(predicted), "initial rms", "E2 (t)", log_x=True)
    return agreement(1.0, float(late[worst]), LIMITS.rate, reason, **errors, unit=unit, over_runs=over)


def distance_shift(visit: SaddleVisit | None) -> float:
    """The relative change of the rate at a point because the run is not at it; 1 where there is no such point."""
    if visit is None or visit.small.opening is None or visit.local_rate is None:
        return 1.0
    return visit.local_rate / visit.small.opening.rate - 1


# Focus and dilution: what equal and almost equal rare tokens do (stage IV).


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
        return small_point(loss, condensed_start(loss, 1.0), 1, 1)

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
        return rate if rate > LIMITS.lost else None

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
    return found if found.delta <= LIMITS.almost_equal * found.mean and found.mean < evidence.pi.max() else None


def _family(evidence: Evidence) -> Regime:
    found = family_of(evidence)
    if found is None:
        return not_applicable("applies only to lazy chains whose rare tokens are almost equal")
    at = evidence.openings["Q1"] is not None, "Q1 was not reached: the run does not come to (1,1)"
    if at[0]:
        at = found.symmetric.of_its_label, "no symmetric point (1,1) was found: the search ended elsewhere"
    return small_flow(evidence, at, holds=f"rare tokens deviate by {found.delta / found.mean:.1%} of their mean")


def _lifted(evidence: Evidence) -> Regime:
    """Almost equal rare tokens, and a flow to E2 that stays at (1,1), where a direction opens at a rate of order delta."""
    found = _family(evidence)
    asymmetry = family_of(evidence)
    if not found.holds or asymmetry is None:
        return found
    if asymmetry.delta <= LIMITS.equal:
        return not_applicable("rare tokens are equal: there is no delta to halve")
    if asymmetry.tangential > LIMITS.no_rate:
        return Regime(False, f"{UNSTABLE} (rate {asymmetry.tangential:.3g}): flows leave it before asymmetry does")
    for regime in (reaching_second, opening(1, 1)):
        if not (more := regime(evidence)).holds:
            return more
    least = asymmetry.delta / LIMITS.doublings[-1]
    where, rate = f"delta/{LIMITS.doublings[-1]}", asymmetry.rate(least)
    if rate is None or asymmetry.kappa is None:
        return Regime(False, f"the symmetric point does not continue to {where}")
    if (beyond := abs(rate / (asymmetry.kappa[1] * least) - 1)) > LIMITS.linear_delta:
        return Regime(False, f"at {where} the rate is {beyond:.0%} from kappa delta: delta is not small")
    return found


def _delta_law(evidence: Evidence) -> Comparison:
    """The exponent of the measured rate in the limit of small delta.

    Exponents between delta, delta/2, delta/4 and delta/8 have an error of order delta; two neighbours give a limit without
    it. The difference of the two limits is the error of the measurement; what the distance of a run from its point does to
    its rate is the error of the prediction. The limit is -log2 of r(delta/2) r(delta/8)^2 / r(delta/4)^3; the three distances
    enter with these weights and their signs, so that a part of order delta cancels like that of the rates.
    """
    unit, asymmetry, opened, second = "exponent", family_of(evidence), evidence.openings["Q1"], evidence.second
    if asymmetry is None or opened is None or second is None:
        return undecided("E2 was not reached", 1.0, LIMITS.rate, unit)
    rates, doubts = [], []
    for parts in LIMITS.doublings:
        until = LIMITS.margin * (opened + parts * (second - opened))
        change = asymmetry.deviation * (1 / parts - 1)
        at = evidence if parts == 1 else Evidence(evidence.run, evidence.companion("on_other_law", change.tolist(), until))
        visit = at.visit(1, 1)
        if visit is None or visit.rise is None:
            words = f"at delta/{parts} the opening does not rise tenfold while the flow stays at (1,1)"
            return undecided(words, 1.0, LIMITS.rate, unit)
        rates.append(visit.rise.rate)
        doubts.append(distance_shift(visit))
    exponents = -np.diff(np.log2(rates))
    before, limit = (2 * exponents[1:] - exponents[:-1]).tolist()
    shown = [" ".join(f"{x:.3g}" for x in numbers) for numbers in (rates, exponents)]
    reason = f"rates at (1,1) with delta/1, /2, /4, /8: {shown[0]}; exponents {shown[1]}, limit {limit:.3f}"
    doubt = abs(doubts[1] - 3 * doubts[2] + 2 * doubts[3]) / math.log(2)
    errors = {"predicted_error": doubt, "measured_error": abs(limit - before)}
    return agreement(1.0, limit, LIMITS.rate, reason, **errors, unit=unit)


def _tangential(evidence: Evidence) -> Comparison:
    found = family_of(evidence)
    assert found is not None
    rate = found.tangential
    words = "stable" if rate <= LIMITS.no_rate else "unstable"
    reason = f"at delta = 0 the symmetric point is {words} inside the rank-one model: rate {rate:.3g}"
    return Comparison(0.0, rate, LIMITS.no_rate, rate <= LIMITS.no_rate, reason)


def _stalling(evidence: Evidence) -> Regime:
    found = family_of(evidence)
    if found is None or found.delta > LIMITS.equal:
        return not_applicable("applies only to lazy chains with equal rare tokens")
    long, opened = (False, "Q1 was not reached: without it the claim is empty"), evidence.openings["Q1"]
    if opened is not None:
        least = LIMITS.plateau * opened
        long = evidence.time[-1] >= least, f"the run ends before {LIMITS.plateau:g} Q1 = {least:.4g}"
    stable = found.tangential <= LIMITS.no_rate, f"{UNSTABLE} (rate {found.tangential:.3g})"
    return small_flow(evidence, long, stable, holds="equal rare tokens, symmetric point stable inside the rank-one model")


def _stall(evidence: Evidence) -> Comparison:
    end, second = evidence.end, evidence.second
    shown = "not reached" if second is None else f"{second:.4g}"
    return Comparison("not reached", shown, "exact", second is None, f"E2 {shown} by {evidence.run.clock} = {end:.4g}")


# Focus and dilution: where flows stay at the symmetric point of equal rare tokens, and where they leave it.


def _equal(evidence: Evidence) -> Regime:
    """Equal rare tokens, and a flow that comes to (1,1)."""
    found = family_of(evidence)
    if found is None or found.delta > LIMITS.equal:
        return not_applicable("applies only to lazy chains with equal rare tokens")
    opened = evidence.openings["Q1"] is not None, "Q1 was not reached: the run does not come to (1,1)"
    critical = stall_boundary(float(evidence.pi.max()), len(evidence.pi))
    shown = "none" if critical is None else f"{critical:.4f}"
    return small_flow(evidence, opened, holds=f"equal rare tokens, Q1 reached; lambda_c = {shown}")


def _lambda_c(evidence: Evidence) -> Comparison:
    found = family_of(evidence)
    assert found is not None
    predicted, opened = "stays" if found.margin > 0 else "leaves", evidence.openings["Q1"]
    if opened is None:
        return undecided("Q1 was not reached", predicted, "exact")
    # From Q1 to E2 or the end, by how much rare tokens differ along the first direction of W0, over its largest entry. The
    # first direction alone: what opens beside it is no motion inside the rank-one model.
    end = np.inf if evidence.second is None else evidence.second
    inside = (evidence.time >= opened) & (evidence.time <= end)
    time = evidence.time[inside]
    if len(time) < 2:
        return undecided("no frame lies between Q1 and E2", predicted, "exact")
    left = np.linalg.svd(evidence.curves.params["W0"][inside], full_matrices=False)[0][:, :, 0]
    spread = np.ptp(np.delete(left, evidence.curves.frequent, axis=1), axis=1) / np.abs(left).max(axis=1)
    most = float(spread.max())
    measured = "leaves" if most > LIMITS.level else "stays" if most < LIMITS.outside else None
    reason = f"embeddings of rare tokens differ by {most:.2g} of the longest at most, {spread[0]:.2g} at Q1"
    if measured is None:
        return undecided(f"{reason}: neither left nor held", predicted, "exact")
    if predicted == "leaves" and measured == "stays":
        rate = found.tangential
        needed = LIMITS.margin * math.log(LIMITS.level / max(float(spread[0]), 1e-300)) / max(rate, 1e-300)
        if time[-1] - time[0] < needed:
            return undecided(f"{reason}; at rate {rate:.2g} it needs t = {plain_time(needed, 3)} to leave", predicted, "exact")
    return Comparison(predicted, measured, "exact", predicted == measured, reason)


CLAIMS = (
    *SADDLE_CLAIMS,
    *CYCLE_CLAIMS,
    claim(
        "FD:eps-law",
        "A tenfold smaller start delays each event by ln 10 over its rate",
        _scaled,
        _eps_law,
        "E1",
        "E2",
        kind="prediction",
        rules=3,
        elsewhere=another_flow,
        cost="2 flows from starts 10 and 100 times smaller, each about twice as long as this one",
    ),
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
    claim(
        "FD:lambda-c",
        "With equal rare tokens a flow stays at the symmetric (1,1) where persistence is below lambda_c, and leaves it above",
        _equal,
        _lambda_c,
        "Q1",
        "E2",
        kind="prediction",
    ),
    *PATH_CLAIMS,
    *ADAM_CLAIMS,
)
