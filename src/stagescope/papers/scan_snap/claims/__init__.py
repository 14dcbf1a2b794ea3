"""The statements of the scan-and-snap paper as claims that can be checked on a run."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime
from stagescope.detect.events import peak
from stagescope.keys import key
from stagescope.papers.scan_snap.claims import theorems
from stagescope.papers.scan_snap.evidence import ADAM, LIMITS, Evidence, not_moved, regime_of
from stagescope.papers.scan_snap.model import attention


def _gradient_run(evidence: Evidence) -> Regime:
    return ADAM if evidence.is_adam else Regime(True, "a run by gradients or with the modified decoder")


def row_sums(evidence: Evidence) -> Comparison:
    """Drift of the row sums of Y and Z; also used for runs on a text."""
    weights = evidence.law.model.multiplicity
    sums = (evidence.run.params["Y"] @ weights, evidence.run.params["Z"].sum(axis=2))
    size = max(1.0, *(float(np.max(np.abs(evidence.run.params[name]))) for name in ("Y", "Z")))
    drift = max(float(np.max(np.abs(total - total[0]))) for total in sums) / (size * np.sqrt(evidence.outputs))
    reason = f"row sums of Y and Z drift by at most {drift:.1e} of the largest parameter"
    return Comparison(0.0, drift, LIMITS.conserved, drift <= LIMITS.conserved, reason)


def _any(evidence: Evidence) -> Regime:
    return Regime(True, "any run")


def _length_rate(evidence: Evidence) -> Comparison:
    """Slope of mean |v - c|_1 over the length of contexts, drawn with the scores of the last frame."""
    lengths, tolerance = (32, 128, 512, 2048), LIMITS.length_slope
    attended = np.take_along_axis(evidence.curves.table, evidence.curves.attention[-1].argmax(axis=1)[:, None], axis=1)
    if lengths[0] * float(attended.min()) < 1:
        return Comparison(-0.5, None, tolerance, None, "the most attended token is missing from most contexts of 32 tokens")
    gaps = [_length_gap(evidence, length) for length in lengths]
    if min(gaps) < 1e-12:
        return Comparison(-0.5, None, tolerance, None, "every context has one token only, so its length does not matter")
    slope = float(np.polyfit(np.log(lengths), np.log(gaps), 1)[0])
    reason = f"|v - c|_1 falls from {gaps[0]:.3f} at length 32 to {gaps[-1]:.4f} at 2048, slope {slope:.3f}"
    return Comparison(-0.5, slope, tolerance, abs(slope + 0.5) <= tolerance, reason)


def _length_gap(evidence: Evidence, length: int, draws: int = 200) -> float:
    random = key(evidence.run.seed or 0, "claims", "length", length)
    total = 0.0
    for n, (c, p) in enumerate(zip(evidence.curves.attention[-1], evidence.curves.table, strict=True)):
        counts = random.multinomial(length, p / p.sum(), size=draws)
        total += float(np.mean(np.abs(attention(evidence.curves.scores[-1, n], counts) - c).sum(axis=1)))
    return total / evidence.classes


def _paper_data(evidence: Evidence) -> tuple[tuple[bool, str], ...]:
    """Conditions of the paper's data model: one target per class, and long contexts."""
    length = evidence.run.spec["field"].get("length", LIMITS.long_context)
    short = f"contexts have {length} tokens; the long-sequence limit needs {LIMITS.long_context} or more"
    return (evidence.own_target, "classes share a target"), (length >= LIMITS.long_context, short)


def _distinct_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    own = (evidence.own_query, "classes share a query, and then a distinct token can fall late")
    start = (evidence.zero_start, "the start is not zero")
    return regime_of(own, start, *_paper_data(evidence), holds="one query and one target per class, zero start")


def _moves(evidence: Evidence) -> np.ndarray:
    """Velocities of the scores in a flow, their changes since the start in a descent; without the first frame."""
    curves = evidence.curves
    return (curves.velocity if evidence.is_flow else curves.scores - curves.scores[:1])[1:]


def _signed(growth: float, limit: float, sampled: bool) -> bool | None:
    """Whether growth has the right sign; None where it is negative within the noise of sampled batches."""
    if sampled and -limit <= growth < 0:
        return None
    return growth >= -limit


def _slack(evidence: Evidence) -> tuple[float, str]:
    """The size below which a wrong sign means nothing, and the words for it."""
    noise = f", with {LIMITS.batch_noise:.0%} allowed for batch noise"
    return (LIMITS.batch_noise, noise) if evidence.sampled else (LIMITS.sign, "")


def _distinct_grow(evidence: Evidence) -> Comparison:
    if evidence.still:
        return not_moved("growth >= 0", LIMITS.sign)
    curves, change = evidence.curves, _moves(evidence)
    least = float(np.min(np.where(curves.distinct, change, np.inf))) / float(np.max(np.abs(change)))
    limit, slack = _slack(evidence)
    fell = int((np.where(curves.distinct, curves.scores[-1] - curves.scores[0], np.inf) < 0).sum())
    ended = f"{fell} of {int(curves.distinct.sum())} distinct scores end lower"
    reason = f"{ended}; the least growth at any time is {least:.1e} of the largest change{slack}"
    return Comparison("growth >= 0", least, limit, _signed(least, limit, evidence.sampled), reason)


def _common_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    if evidence.commons == 0:
        return Regime(False, "there are no common tokens", applies=False)
    if evidence.commons == 1:
        return regime_of(*_paper_data(evidence), (evidence.zero_start, "the start is not zero"), holds="a single common token")
    return regime_of(
        *_paper_data(evidence),
        (evidence.symmetric, "classes are not symmetric (P(l|n) of common tokens, distinct profile or prior differ)"),
        (evidence.zero_start, "the start is not zero"),
        (evidence.own_query, "classes share a query"),
        holds=f"{evidence.commons} common tokens, symmetric classes, zero start",
    )


def _common_fall(evidence: Evidence) -> Comparison:
    if evidence.still:
        return not_moved("growth <= 0", LIMITS.sign)
    curves, change = evidence.curves, _moves(evidence)
    most = float(np.max(np.where(curves.common, change, -np.inf))) / float(np.max(np.abs(change)))
    limit, slack = _slack(evidence)
    grew = int((np.where(curves.common, curves.scores[-1] - curves.scores[0], -np.inf) > 0).sum())
    ended = f"{grew} of {int(curves.common.sum())} common scores end higher"
    reason = f"{ended}; the largest growth at any time is {most:.1e} of the largest change{slack}"
    return Comparison("growth <= 0", most, limit, _signed(-most, limit, evidence.sampled), reason)


def _order(evidence: Evidence) -> Comparison:
    """Of two neighbours in P(l|n) among the distinct tokens of a class, the rarer one must not grow more."""
    curves = evidence.curves
    growth = curves.scores[-1] - curves.scores[0]
    right = total = 0
    for n in range(evidence.classes):
        own = np.flatnonzero(curves.distinct[n])
        own = own[np.argsort(curves.table[n, own], kind="stable")]
        steps = np.diff(growth[n, own])[np.diff(curves.table[n, own]) > 1e-12]
        tie = 1e-9 * float(np.max(np.abs(growth)))
        right, total = right + int(np.sum(steps >= -tie)), total + len(steps)
    if evidence.still:
        return not_moved(1.0, 0.0)
    if total == 0:
        return Comparison(1.0, None, 0.0, None, "no two distinct tokens of a class differ in P(l|n)")
    share = right / total
    allowed = 0.1 if evidence.sampled else 0.0  # batch noise may swap one pair in ten
    reason = f"{right} of {total} neighbouring pairs keep the order of P(l|n)"
    return Comparison(1.0, share, allowed, share >= 1 - allowed, reason)


def _speed_falls(evidence: Evidence) -> Comparison:
    curves = evidence.curves
    speed = curves.mean(curves.speed)
    top = None if evidence.still else peak(curves.time, speed)
    if top is None:
        return Comparison("slope < 0", None, "sign", None, "the attention speed has not passed a peak")
    late = (curves.time >= 3 * top[0]) & (speed > 0) & (curves.time > 0)
    if late.sum() < 5:
        why = f"the peak is at {top[0]:.4g}, and the run ends before three times that"
        return Comparison("slope < 0", None, "sign", None, why)
    slope = float(np.polyfit(np.log(curves.time[late]), np.log(speed[late]), 1)[0])
    ends = f"the speed ends at {speed[-1] / top[1]:.1%} of its peak"
    reason = f"from three times the peak time on, the log-log slope of the speed is {slope:.2f}; {ends}"
    return Comparison("slope < 0", slope, "sign", slope < 0 and speed[-1] < top[1], reason)


def _flow_regime(evidence: Evidence) -> Regime:
    if not evidence.is_flow or evidence.companions is None:
        return Regime(False, "the claim is about the flow", applies=False)
    return regime_of((evidence.rates["Y"] > 0 and evidence.rates["Z"] > 0, "a rate is zero"), holds="flow")


def _sparsity(evidence: Evidence) -> Comparison:
    assert evidence.companions is not None
    tolerance, speed = LIMITS.entropy, evidence.curves.mean(evidence.curves.speed)
    if evidence.still or speed[-1] > 0.1 * speed.max():
        return Comparison("rise > 0", None, tolerance, None, "attention has not slowed down yet, so its sparsity is not final")
    faster = {**evidence.rates, "Y": 3 * evidence.rates["Y"]}
    companion = evidence.companions.rates(faster, float(evidence.curves.time[-1]))
    if not companion.done:
        return Comparison("rise > 0", None, tolerance, None, f"the companion flow {companion.reason}")
    here, there = evidence.final_entropy, Evidence.of(companion).final_entropy
    ratio = f"eta_Y/eta_Z = {evidence.ratio:.3g}"
    reason = f"entropy on distinct tokens is {here:.5f} nats at {ratio} and {there:.5f} at three times this ratio"
    rise = there - here
    return Comparison("rise > 0", rise, tolerance, rise > 0 if abs(rise) > tolerance else None, reason)


def _scaling(evidence: Evidence) -> Comparison:
    assert evidence.companions is not None
    end, tolerance = float(evidence.run.time[-1]), LIMITS.scaling
    other = evidence.companions.rates({name: 4 * rate for name, rate in evidence.rates.items()}, end / 4)
    if not other.done:
        return Comparison(0.0, None, tolerance, None, f"the companion flow {other.reason}")
    gap = float(np.max(np.abs(other.params["Z"][-1] - evidence.run.params["Z"][-1])))
    reason = f"with four times the rates for a quarter of the time, Z differs by {gap:.1e}"
    return Comparison(0.0, gap, tolerance, gap <= tolerance, reason)


def _finite_step_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    if evidence.is_flow or evidence.companions is None:
        return Regime(False, "the claim is about steps", applies=False)
    if evidence.sampled:
        length = evidence.run.spec["field"]["length"]
        return Regime(False, f"contexts of {length} tokens end sparser as well; leave out --length to see the steps alone")
    return Regime(True, "gradient steps, compared with the flow from the same start for the same effective time")


def _finite_step(evidence: Evidence) -> Comparison:
    assert evidence.companions is not None
    tolerance, flow = LIMITS.follows, evidence.companions.flow(float(evidence.run.time[-1]))
    if not flow.done:
        return Comparison("sparser", None, tolerance, None, f"the companion flow {flow.reason}")
    here, there = evidence.final_entropy, Evidence.of(flow).final_entropy
    steps = int(evidence.run.step[-1])
    numbers = f"entropy is {here:.4f} nats after {steps} steps and {there:.4f} in the flow, which has no step size"
    if abs(here - there) <= tolerance:
        return Comparison(f"< {there:.4f}", here, tolerance, None, f"{numbers}; these steps are small enough to follow the flow")
    which = "sparser than" if here < there else "less sparse than"
    return Comparison(f"< {there:.4f}", here, tolerance, here < there, f"{numbers}; the steps end {which} the flow")


def _assumption_2(evidence: Evidence) -> Comparison:
    f = evidence.curves.attention[0] / np.linalg.norm(evidence.curves.attention[0], axis=1, keepdims=True)
    worst = float(np.max(np.abs(np.linalg.eigvalsh(f @ f.T - np.eye(evidence.classes)))))
    limit = 1 / evidence.classes
    reason = f"the largest |eigenvalue| of F^T F - I at the start is {worst:.3f}; 1/K is {limit:.3f}"
    return Comparison(f"< {limit:.4g}", worst, "bound", worst < limit, reason)


CLAIMS = (
    claim("SnS:lemma-1", "Row sums of Y and Z are conserved", _gradient_run, row_sums, "start", "end"),
    claim("SnS:lemma-2", "Attention of a context of length L tends to c_n like L^-1/2", _any, _length_rate, "end"),
    claim("SnS:assumption-2", "Data assumption 2: eigenvalues of F^T F - I are below 1/K", _any, _assumption_2, "start"),
    claim("SnS:theorem-2-distinct", "Scores of distinct tokens grow", _distinct_regime, _distinct_grow, "start", "end"),
    claim("SnS:theorem-2-common", "Scores of common tokens fall", _common_regime, _common_fall, "start", "end"),
    claim("SnS:order", "Distinct tokens are dropped in the order of their co-occurrence P(l|n)", _distinct_regime, _order, "end"),
    *theorems.CLAIMS,
    claim("SnS:snap", "After its peak the attention speed falls", _any, _speed_falls, "peak", "end"),
    claim("SnS:sparsity", "A larger eta_Y/eta_Z ends less sparse", _flow_regime, _sparsity, "end"),
    claim("SnS:scaling", "In the flow only eta_Y/eta_Z and time matter", _flow_regime, _scaling, "end"),
    claim("SnS:finite-step", "Larger rates end sparser: an effect of finite steps", _finite_step_regime, _finite_step, "end"),
)
