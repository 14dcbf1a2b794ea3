"""All claims of focus and dilution; here are the laws of the initial scale and of the asymmetry of rare tokens."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stagescope.claims.comparison import (
    Comparison,
    Condition,
    OverRuns,
    Regime,
    agreement,
    narrowed,
    not_applicable,
    regime_of,
    undecided,
)
from stagescope.flow.softmax import softmax
from stagescope.landscape.linearise import Rise, last_rise
from stagescope.landscape.saddle_path import plain_time
from stagescope.papers.focus_dilution.claims_adam import ADAM_CLAIMS
from stagescope.papers.focus_dilution.claims_cycle import claim, flow_claim
from stagescope.papers.focus_dilution.evidence import Evidence, opening, reaching_second, small_flow
from stagescope.papers.focus_dilution.family import (
    saturated_attention,
    saturated_kappa,
    saturation_boundary,
    stall_boundary,
    symmetric_margin,
)
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
        if not (decision := regime(evidence)).holds:
            return decision
    return Regime(True, f"initial rms {evidence.scale:.1e}; stays at (0,0), (1,0) and (1,1)")


LABELS, LEGS = ((0, 0), (1, 0), (1, 1)), ("E1", "Q1-E1", "E2-Q1")


def _legs(evidence: Evidence) -> np.ndarray | None:
    """E1, Q1 - E1 and E2 - Q1; None where one of them was not reached."""
    times = (evidence.openings["E1"], evidence.openings["Q1"], evidence.second)
    if None in times:
        return None
    first, attention_time, second = (float(t) for t in times if t is not None)
    return np.array([first, attention_time - first, second - attention_time])


@flow_claim("FD:eps-law", _scaled)
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
    per_decade, legs_by_scale, smaller = np.log(10.0) / np.array(rates), [legs], evidence
    for decades in (1, 2):
        until = float(1.2 * evidence.second + LIMITS.margin * decades * per_decade.sum())
        smaller = Evidence(evidence.run, evidence.companion("from_scaled", 10.0**-decades, until))
        if (legs := _legs(smaller)) is None:
            words = f"from a start {10**decades} times smaller: E2 was not reached"
            return undecided(words, 1.0, LIMITS.rate, unit)
        legs_by_scale.append(legs)
    early, late = (legs_by_scale[1] - legs_by_scale[0]) / per_decade, (legs_by_scale[2] - legs_by_scale[1]) / per_decade
    points = {label: None if visit is None else visit.small for label, visit in visits.items()}
    doubts = np.array([abs(distance_shift(smaller.visit(*label, point))) for label, point in points.items()])
    worst = int(np.argmax(np.abs(late - 1)))
    ratios = ", ".join(f"{name} {ratio:.3f}" for name, ratio in zip(LEGS, late, strict=True))
    errors = {"predicted_error": float(doubts.max()), "measured_error": float(np.abs(late - early).max())}
    reason = f"delay per decade of eps over ln 10/rate: {ratios}"
    # E2 of the three runs over the size of their starts; predicted from that of the smallest start.
    decades, seconds = np.arange(3), [run_legs.sum() for run_legs in legs_by_scale]
    starts, predicted = evidence.scale * 10.0**-decades, seconds[-1] - (2 - decades) * per_decade.sum()
    over = OverRuns(tuple(starts), tuple(seconds), tuple(predicted), "initial rms", "E2 (t)", log_x=True)
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
        deviation = self.law.process.stationary - self.mean
        deviation[self.frequent] = 0.0
        return deviation

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
        """The symmetric point (1,1) at delta = 0; the flow from a symmetric start stays symmetric [FD:degenerate]."""
        loss = self.at(0.0)
        return small_point(loss, condensed_start(loss, 1.0), 1, 1)

    def near(self, delta: float) -> SmallPoint:
        """The point (1,1) that continues the symmetric one to a small delta, in steps that double it."""
        small, least = self.symmetric, LIMITS.deltas[1] * self.mean
        steps = max(0, math.ceil(math.log2(delta / least)))
        for step in range(steps, -1, -1):
            small = nearest_point(self.at(delta / 2**step), small.point.params, 1, 1)
        return small

    def rate(self, delta: float) -> float | None:
        """The fastest embedding rate there; None where the symmetric point does not continue to this delta."""
        small = self.near(delta)
        rate = max(o.rate for o in small.openings["embedding"]) if small.point.found and "embedding" in small.room else 0.0
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

    @property
    def persistence(self) -> float:
        chain = self.law.process
        assert isinstance(chain, LazyChain)
        return chain.persistence

    @property
    def boundary(self) -> float:
        """The persistence above which the symmetric points have a saturated end."""
        return saturation_boundary(float(self.law.process.stationary[self.frequent]), self.law.process.vocab)

    @cached_property
    def member(self) -> str:
        """Which of the symmetric points the flow reaches: E = scale eta gamma_0^2, and attention on the frequent token."""
        small, frequent = self.symmetric.point.params, self.frequent
        strength = float(self.law.model.scores(small)[frequent, frequent])
        on_frequent = self.law.model.attention(small, self.at(0.0).process.stationary)[:, frequent]
        numbers = f"E = {strength:.3g}, A_00 = {on_frequent[frequent]:.4f}, A_i0 = {np.delete(on_frequent, frequent).max():.3g}"
        end = "" if self.persistence > self.boundary else f"; there is no saturated end below persistence {self.boundary:.3f}"
        return f"the symmetric point of this flow has {numbers}{end}"


def family_of(evidence: Evidence) -> Asymmetry | None:
    """None for chains that are not of the family, or whose rare tokens are far from equal."""
    if not isinstance(evidence.law.process, LazyChain) or evidence.law.process.vocab < 3 or evidence.rate <= 0:
        return None
    asymmetry = Asymmetry(evidence.law, evidence.curves.frequent)
    return asymmetry if asymmetry.delta <= LIMITS.almost_equal * asymmetry.mean and asymmetry.mean < evidence.pi.max() else None


def _family(evidence: Evidence) -> Regime:
    asymmetry = family_of(evidence)
    if asymmetry is None:
        return not_applicable("applies only to lazy chains whose rare tokens are almost equal")
    condition = evidence.openings["Q1"] is not None, "Q1 was not reached: the run does not come to (1,1)"
    if condition[0]:
        condition = asymmetry.symmetric.of_its_label, "no symmetric point (1,1) was found: the search ended elsewhere"
    return small_flow(evidence, condition, holds=f"rare tokens deviate by {asymmetry.delta / asymmetry.mean:.1%} of their mean")


def _lifted(evidence: Evidence) -> Regime:
    """Almost equal rare tokens, and a flow to E2 that stays at (1,1), where a direction opens at a rate of order delta."""
    base = _family(evidence)
    asymmetry = family_of(evidence)
    if not base.holds or asymmetry is None:
        return base
    if asymmetry.delta <= LIMITS.equal:
        return not_applicable("rare tokens are equal: there is no delta to halve")
    if asymmetry.tangential > LIMITS.no_rate:
        return Regime(False, f"{UNSTABLE} (rate {asymmetry.tangential:.3g}): flows leave it before asymmetry does")
    for regime in (reaching_second, opening(1, 1)):
        if not (further := regime(evidence)).holds:
            return further
    least = asymmetry.delta / LIMITS.doublings[-1]
    place, rate = f"delta/{LIMITS.doublings[-1]}", asymmetry.rate(least)
    if rate is None or asymmetry.kappa is None:
        return Regime(False, f"the symmetric point does not continue to {place}")
    if (beyond := abs(rate / (asymmetry.kappa[1] * least) - 1)) > LIMITS.linear_delta:
        return Regime(False, f"at {place} the rate is {beyond:.0%} from kappa delta: delta is not small")
    return base


@claim("FD:delta-law", _lifted)
def _delta_law(evidence: Evidence) -> Comparison:
    """The exponent of the measured rate in the limit of small delta.

    Exponents between delta, delta/2, delta/4 and delta/8 have an error of order delta; two neighbours give a limit without
    it. The difference of the two limits is the error of the measurement; what the distance of a run from its point does to
    its rate is the error of the prediction. The limit is -log2 of r(delta/2) r(delta/8)^2 / r(delta/4)^3; the three distances
    enter with these weights and their signs, so that a part of order delta cancels like that of the rates.
    """
    unit, asymmetry, attention_time, second = "exponent", family_of(evidence), evidence.openings["Q1"], evidence.second
    if asymmetry is None or attention_time is None or second is None:
        return undecided("E2 was not reached", 1.0, LIMITS.rate, unit)
    rates, doubts = [], []
    for parts in LIMITS.doublings:
        until = LIMITS.margin * (attention_time + parts * (second - attention_time))
        change = asymmetry.deviation * (1 / parts - 1)
        member = evidence if parts == 1 else Evidence(evidence.run, evidence.companion("on_other_law", change.tolist(), until))
        visit = member.visit(1, 1)
        if visit is None or visit.rise is None:
            words = f"at delta/{parts} the opening does not rise tenfold while the flow stays at (1,1)"
            return undecided(words, 1.0, LIMITS.rate, unit)
        rates.append(visit.rise.rate)
        doubts.append(distance_shift(visit))
    exponents = -np.diff(np.log2(rates))
    before, limit = (2 * exponents[1:] - exponents[:-1]).tolist()
    lists = [" ".join(f"{x:.3g}" for x in numbers) for numbers in (rates, exponents)]
    reason = f"rates at (1,1) with delta/1, /2, /4, /8: {lists[0]}; exponents {lists[1]}, limit {limit:.3f}"
    doubt = abs(doubts[1] - 3 * doubts[2] + 2 * doubts[3]) / math.log(2)
    errors = {"predicted_error": doubt, "measured_error": abs(limit - before)}
    return agreement(1.0, limit, LIMITS.rate, reason, **errors, unit=unit)


# Focus and dilution at the saturated end of the symmetric points, A_00 = 1 and A_i0 = 0, of which Prop. 3.8 and Thm. 3.9 speak.


def _population_flow(evidence: Evidence) -> Regime:
    """A gradient flow on infinitely long contexts, from any start."""
    long = isinstance(evidence.curves.law, TokenPopulation), "contexts are not infinitely long"
    return regime_of(
        (evidence.is_flow, "not a gradient flow"), evidence.equal_rates, long, holds="flow of infinitely long contexts"
    )


def _off_saturation(evidence: Evidence) -> np.ndarray:
    """The largest difference of the run's attention from that of the saturated end, in every frame."""
    at_end = saturated_attention(evidence.pi, evidence.curves.frequent)
    return np.abs(evidence.curves.attention - at_end).max(axis=(1, 2))


def _saturated_stay(evidence: Evidence) -> np.ndarray:
    """The frames from the first at which the run is at the saturated end, in attention and in speed, until E2."""
    saturated = (_off_saturation(evidence) <= LIMITS.saturated) & (evidence.trajectory.speed <= LIMITS.saturated)
    until = np.inf if evidence.second is None else evidence.second
    return np.flatnonzero(np.maximum.accumulate(saturated) & (evidence.time <= until))


def _saturated(evidence: Evidence) -> Regime:
    """Equal rare tokens, and a flow that is at the saturated end of the symmetric points, wherever it started."""
    family = family_of(evidence)
    if family is None or family.delta > LIMITS.equal:
        return not_applicable("applies only to lazy chains with equal rare tokens")
    base, off, stay = _population_flow(evidence), _off_saturation(evidence), _saturated_stay(evidence)
    words = f"attention comes to {off.min():.2g} of the saturated end, of which Proposition 3.8 speaks; {family.member}"
    if off.min() <= LIMITS.saturated:
        words = f"attention saturates, but |F| does not fall to {LIMITS.saturated:g} while rare tokens are alike"
    # A rate is none if it is a hundredth of that at which attention opens: the stay must show it.
    least_length, length = 1 / (LIMITS.negligible * abs(evidence.rate)), float(np.ptp(evidence.time[stay])) if len(stay) else 0.0
    short = f"the stay at the saturated end lasts t = {length:.4g}, and a rate of c/100 shows after {least_length:.4g}"
    holds = f"flow at the saturated end for t = {length:.4g}, equal rare tokens"
    return narrowed(replace(base, sentence=holds), (len(stay) >= 2, words), (length >= least_length, short))


@claim("FD:tangential", _saturated)
def _tangential(evidence: Evidence) -> Comparison:
    """By how many e-folds gamma and beta of equal rare tokens part along the first direction, from the saturated end on."""
    family, stay, curves = family_of(evidence), _saturated_stay(evidence), evidence.curves
    if family is None or len(stay) < 2:
        return undecided("the run is not at the saturated end", 0.0, 1.0, "e-folds")
    w0, w1 = (curves.params[name][stay] for name in ("W0", "W1"))
    alpha = np.linalg.svd(np.concatenate([w0[0], w1[0].T]), full_matrices=False)[2][0]
    rare = np.concatenate([np.delete(part, curves.frequent, axis=1)[None] for part in (w0 @ alpha, alpha @ w1)])
    parted = np.sqrt(np.sum((rare - rare.mean(axis=2, keepdims=True)) ** 2, axis=(0, 2)))
    folds = float(np.log(np.maximum(parted, LIMITS.lost) / max(parted[0], LIMITS.lost)).max())
    reason = f"embeddings and outputs of rare tokens differ by {parted[0]:.2g} when attention has saturated"
    reason += f", and by {parted.max():.2g} at most until t = {evidence.time[stay[-1]]:.4g}"
    return Comparison(0.0, folds, 1.0, folds <= 1, reason, unit="e-folds")


def _rise_at_saturation(evidence: Evidence, delta: float) -> Rise | None:
    """The tenfold rise of sv_2(W0) to a twentieth of delta: what it then does to attention is far below delta."""
    high = LIMITS.linear * delta
    return last_rise(evidence.time, evidence.curves.embedding_values[:, 1], high / LIMITS.growth, high)


def _three(evidence: Evidence) -> Regime:
    """A flow at the saturated end of three tokens whose rare ones are almost equal, wherever it started."""
    family = family_of(evidence)
    if family is None or len(evidence.pi) != 3 or family.delta <= LIMITS.equal:
        return not_applicable("applies only to lazy chains of three tokens, the rare ones almost equal")
    rise = _rise_at_saturation(evidence, family.delta)
    if rise is None:
        words = f"sv_2(W0) does not rise tenfold to {LIMITS.linear * family.delta:.2g}; {family.member}"
        return narrowed(_population_flow(evidence), (False, words))
    frequent = family.frequent
    at_end = saturated_attention(evidence.pi, frequent)[:, frequent]
    off = float(np.abs(evidence.curves.on_frequent[evidence.frame(rise.start)] - at_end).max())
    holds = f"attention on the frequent token is {off:.1g} from saturation, and delta^2 = {family.delta**2:.1g}"
    words = f"{holds}: Theorem 3.9 needs less; {family.member}"
    return narrowed(replace(_population_flow(evidence), sentence=holds), (off <= family.delta**2, words))


@claim("FD:kappa", _three)
def _kappa(evidence: Evidence) -> Comparison:
    """The slope of ln sv_2(W0) against kappa delta.

    The point is neutral along one direction, in which rare tokens part. Attention that is off by dA_i in row i moves dL/dM, and
    the rate with it, by pi_i |dA_i| |P_i - softmax_i| at most: the error of the prediction.
    """
    family = family_of(evidence)
    rise = None if family is None else _rise_at_saturation(evidence, family.delta)
    if family is None or len(evidence.pi) != 3 or rise is None:
        return undecided("sv_2(W0) does not rise tenfold while it is far below delta", "-", unit="1/t")
    kappa, chain = saturated_kappa(float(evidence.pi[family.frequent]), family.persistence), evidence.law.process
    predicted, errors = kappa * family.delta, []
    for frame in (evidence.frame(rise.start), evidence.frame(rise.stop)):
        attention = evidence.curves.attention[frame]
        logits = attention @ evidence.curves.params["W0"][frame] @ evidence.curves.params["W1"][frame]
        off = np.linalg.norm(attention - saturated_attention(evidence.pi, family.frequent), axis=1)
        errors.append(float(np.sum(evidence.pi * off * np.linalg.norm(chain.transition - softmax(logits), axis=1))))
    reason = f"rate/delta = {rise.rate / family.delta:.4f} over a tenfold rise of sv_2(W0), kappa = {kappa:.4f}"
    return agreement(predicted, rise.rate, LIMITS.rate * predicted, reason, predicted_error=max(errors), unit="1/t")


def _stalling(evidence: Evidence) -> Regime:
    asymmetry = family_of(evidence)
    if asymmetry is None or asymmetry.delta > LIMITS.equal:
        return not_applicable("applies only to lazy chains with equal rare tokens")
    stable = asymmetry.tangential <= LIMITS.no_rate, f"{UNSTABLE} (rate {asymmetry.tangential:.3g}); {asymmetry.member}"
    words = "equal rare tokens, symmetric point stable inside the rank-one model"
    return small_flow(evidence, _long(evidence), stable, holds=f"{words}; {asymmetry.member}")


def _long(evidence: Evidence) -> Condition:
    """Whether a run lasts three times as long as attention takes to open."""
    attention_time = evidence.openings["Q1"]
    if attention_time is None:
        return False, "Q1 was not reached: without it the claim is empty"
    least = LIMITS.plateau * attention_time
    return bool(evidence.time[-1] >= least), f"the run ends before {LIMITS.plateau:g} Q1 = {least:.4g}"


@claim("FD:stall", _stalling)
def _stall(evidence: Evidence) -> Comparison:
    end, second = evidence.end, evidence.second
    second_text = "not reached" if second is None else f"{second:.4g}"
    family = family_of(evidence)
    reason = f"E2 {second_text} by {evidence.run.clock} = {end:.4g}" + (f"; {family.member}" if family is not None else "")
    return Comparison("not reached", second_text, "exact", second is None, reason)


# Focus and dilution: where flows stay at the symmetric point of equal rare tokens, and where they leave it.


def _equal(evidence: Evidence) -> Regime:
    """Equal rare tokens, and a flow that comes to (1,1)."""
    asymmetry = family_of(evidence)
    if asymmetry is None or asymmetry.delta > LIMITS.equal:
        return not_applicable("applies only to lazy chains with equal rare tokens")
    condition = evidence.openings["Q1"] is not None, "Q1 was not reached: the run does not come to (1,1)"
    critical = stall_boundary(float(evidence.pi.max()), len(evidence.pi))
    critical_text = "none" if critical is None else f"{critical:.4f}"
    return small_flow(evidence, condition, holds=f"equal rare tokens, Q1 reached; lambda_c = {critical_text}")


@dataclass(frozen=True)
class Parting:
    """How far embeddings of equal rare tokens part along the first direction of W0 between Q1 and E2, or the end.

    The first direction alone: what opens beside it is no motion inside the rank-one model. `largest` and `first`, at Q1, are
    shares of the longest embedding, `length` is the time between.
    """

    largest: float
    first: float
    length: float

    @property
    def way(self) -> str | None:
        return "leaves" if self.largest > LIMITS.level else "stays" if self.largest < LIMITS.outside else None

    @property
    def reason(self) -> str:
        return f"embeddings of rare tokens differ by {self.largest:.2g} of the longest at most, {self.first:.2g} at Q1"


def _parting(evidence: Evidence) -> Parting | None:
    """None where fewer than two frames lie between Q1 and E2."""
    attention_time, end = evidence.openings["Q1"], np.inf if evidence.second is None else evidence.second
    inside = (evidence.time >= (np.inf if attention_time is None else attention_time)) & (evidence.time <= end)
    time = evidence.time[inside]
    if len(time) < 2:
        return None
    vectors = np.linalg.svd(evidence.curves.params["W0"][inside], full_matrices=False)[0][:, :, 0]
    spread = np.ptp(np.delete(vectors, evidence.curves.frequent, axis=1), axis=1) / np.abs(vectors).max(axis=1)
    return Parting(float(spread.max()), float(spread[0]), float(time[-1] - time[0]))


@claim("FD:lambda-c", _equal)
def _lambda_c(evidence: Evidence) -> Comparison:
    asymmetry = family_of(evidence)
    assert asymmetry is not None
    predicted, parting = "stays" if asymmetry.margin > 0 else "leaves", _parting(evidence)
    if parting is None:
        words = "Q1 was not reached" if evidence.openings["Q1"] is None else "no frame lies between Q1 and E2"
        return undecided(words, predicted, "exact")
    if parting.way is None:
        return undecided(f"{parting.reason}: neither left nor held", predicted, "exact")
    if predicted == "leaves" and parting.way == "stays":
        rate = asymmetry.tangential
        least_length = LIMITS.margin * math.log(LIMITS.level / max(parting.first, 1e-300)) / max(rate, 1e-300)
        if parting.length < least_length:
            words = f"{parting.reason}; at rate {rate:.2g} it needs t = {plain_time(least_length, 3)} to leave"
            return undecided(words, predicted, "exact")
    return Comparison(predicted, parting.way, "exact", predicted == parting.way, f"{parting.reason}; {asymmetry.member}")


CLAIMS = (*claim.claims, *ADAM_CLAIMS)
