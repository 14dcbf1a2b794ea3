"""Scan and snap: the paper's statements as claims that can be put to a run."""

import numpy as np

from stagescope.claims.claim import Claim, Comparison, Regime
from stagescope.detect.stage import peak
from stagescope.keys import key
from stagescope.papers.scan_snap.claims import theorems
from stagescope.papers.scan_snap.evidence import ADAM, STILL, Evidence, regime_of
from stagescope.papers.scan_snap.model import attention

SIGN = 1e-9
"""A velocity counts as zero below this fraction of the largest one: rounding of the right-hand side."""
NOISE = 0.05
"""The same for steps on sampled batches, whose noise moves every token."""
CONSERVED = 1e-9
LONG = 64
"""Tokens from which a context counts as long; the gap to the limit falls like L^-1/2."""
VISIBLE = 1e-3
"""Differences of entropy below this, in nats, decide nothing."""
FOLLOWS = 0.01
"""Steps whose final entropy is within this of the flow's, in nats, follow the flow."""
_ANY = Regime(True, "any run")


def _gradient_run(evidence: Evidence) -> Regime:
    return ADAM if evidence.is_adam else Regime(True, "any gradient or modified-decoder run")


def row_sums(evidence: Evidence) -> Comparison:
    """How far row sums of Y and Z drift; on a text too."""
    weights = evidence.law.model.multiplicity
    sums = (evidence.run.params["Y"] @ weights, evidence.run.params["Z"].sum(axis=2))
    size = max(1.0, *(float(np.max(np.abs(evidence.run.params[name]))) for name in ("Y", "Z")))
    drift = max(float(np.max(np.abs(total - total[0]))) for total in sums) / (size * np.sqrt(evidence.outputs))
    reason = f"row sums of Y and Z drift by at most {drift:.1e} of the largest parameter"
    return Comparison(0.0, drift, CONSERVED, drift <= CONSERVED, reason)


def _any(evidence: Evidence) -> Regime:
    return _ANY


def _length_rate(evidence: Evidence) -> Comparison:
    """Mean |v - c|_1 of contexts drawn at the last frame's scores, over the length."""
    lengths = (32, 128, 512, 2048)
    attended = np.take_along_axis(evidence.curves.table, evidence.curves.attention[-1].argmax(axis=1)[:, None], axis=1)
    if lengths[0] * float(attended.min()) < 1:
        return Comparison(-0.5, None, 0.1, None, "the most attended token is missing from most contexts of 32 tokens")
    gaps = [_length_gap(evidence, length) for length in lengths]
    if min(gaps) < 1e-12:
        return Comparison(-0.5, None, 0.1, None, "contexts of one token are all alike: length does not matter")
    slope = float(np.polyfit(np.log(lengths), np.log(gaps), 1)[0])
    reason = f"|v - c|_1 falls from {gaps[0]:.3f} at length 32 to {gaps[-1]:.4f} at 2048, slope {slope:.3f}"
    return Comparison(-0.5, slope, 0.1, abs(slope + 0.5) <= 0.1, reason)


def _length_gap(evidence: Evidence, length: int, draws: int = 200) -> float:
    random = key(evidence.run.seed, "claims", "length", length)
    total = 0.0
    for n, (c, p) in enumerate(zip(evidence.curves.attention[-1], evidence.curves.table, strict=True)):
        counts = random.multinomial(length, p / p.sum(), size=draws)
        total += float(np.mean(np.abs(attention(evidence.curves.scores[-1, n], counts) - c).sum(axis=1)))
    return total / evidence.classes


def _paper_data(evidence: Evidence) -> tuple[tuple[bool, str], ...]:
    """What the paper's data model always has: a target for every class, and long contexts."""
    length = evidence.run.spec["field"].get("length", LONG)
    short = f"contexts of {length} tokens are short of the long-sequence limit ({LONG} or more)"
    return (evidence.own_target, "classes share a target"), (length >= LONG, short)


def _distinct_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    own = (evidence.own_query, "classes share a query: a distinct token can then fall late")
    start = (evidence.zero_start, "the start is not zero")
    return regime_of(own, start, *_paper_data(evidence), holds="one query and one target per class, zero start")


def _moves(evidence: Evidence) -> np.ndarray:
    """Velocities of the scores in a flow, displacements in steps; the start, where nothing moves yet, is left out."""
    curves = evidence.curves
    return (curves.velocity if evidence.is_flow else curves.scores - curves.scores[:1])[1:]


def _signed(growth: float, limit: float, sampled: bool) -> bool | None:
    """Whether growth has the right sign; steps on sampled batches cannot tell within their noise."""
    if sampled and -limit <= growth < 0:
        return None
    return growth >= -limit


def _distinct_grow(evidence: Evidence) -> Comparison:
    curves = evidence.curves
    change = _moves(evidence)
    scale = float(np.max(np.abs(change)))
    if evidence.still:
        return Comparison("growth >= 0", None, SIGN, None, STILL)
    least = float(np.min(np.where(curves.distinct, change, np.inf))) / scale
    limit = NOISE if evidence.sampled else SIGN
    ended = np.where(curves.distinct, curves.scores[-1] - curves.scores[0], np.inf) < 0
    count = int(curves.distinct.sum())
    slack = f", with {NOISE:.0%} slack for batch noise" if evidence.sampled else ""
    reason = (
        f"{int(ended.sum())} of {count} distinct tokens end lower; least growth at any time {least:.1e} of the largest{slack}"
    )
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
    curves = evidence.curves
    change = _moves(evidence)
    scale = float(np.max(np.abs(change)))
    if evidence.still:
        return Comparison("growth <= 0", None, SIGN, None, STILL)
    most = float(np.max(np.where(curves.common, change, -np.inf))) / scale
    limit = NOISE if evidence.sampled else SIGN
    grew = int((np.where(curves.common, curves.scores[-1] - curves.scores[0], -np.inf) > 0).sum())
    slack = f", with {NOISE:.0%} slack for batch noise" if evidence.sampled else ""
    ended = f"{grew} of {int(curves.common.sum())} common scores end higher"
    reason = f"{ended}; largest growth at any time {most:.1e} of the largest{slack}"
    return Comparison("growth <= 0", most, limit, _signed(-most, limit, evidence.sampled), reason)


def _order(evidence: Evidence) -> Comparison:
    """Neighbours in P(l|n) among a class's distinct tokens: the rarer one must not end with more growth."""
    curves = evidence.curves
    growth = curves.scores[-1] - curves.scores[0]
    right = total = 0
    for n in range(evidence.classes):
        own = np.flatnonzero(curves.distinct[n])
        own = own[np.argsort(curves.table[n, own], kind="stable")]
        steps = np.diff(growth[n, own])[np.diff(curves.table[n, own]) > 1e-12]
        tie = 1e-9 * float(np.max(np.abs(growth)))
        right, total = right + int(np.sum(steps >= -tie)), total + len(steps)
    if total == 0 or evidence.still:
        return Comparison(1.0, None, 0.0, None, STILL if evidence.still else "no two distinct tokens of a class differ in P(l|n)")
    share = right / total
    allowed = 0.1 if evidence.sampled else 0.0
    return Comparison(
        1.0, share, allowed, share >= 1 - allowed, f"{right} of {total} neighbouring pairs keep the order of P(l|n)"
    )


def _speed_falls(evidence: Evidence) -> Comparison:
    curves = evidence.curves
    speed = curves.mean(curves.speed)
    top = None if evidence.still else peak(curves.time, speed)
    if top is None:
        return Comparison("slope < 0", None, "sign", None, "the attention speed has not passed its peak")
    late = (curves.time >= 3 * top[0]) & (speed > 0) & (curves.time > 0)
    if late.sum() < 5:
        return Comparison("slope < 0", None, "sign", None, f"the run ends before three times the peak at {top[0]:.4g}")
    slope = float(np.polyfit(np.log(curves.time[late]), np.log(speed[late]), 1)[0])
    reason = f"log-log slope {slope:.2f} from three times the peak on; the speed ends at {speed[-1] / top[1]:.1%} of the peak"
    return Comparison("slope < 0", slope, "sign", slope < 0 and speed[-1] < top[1], reason)


def _flow_regime(evidence: Evidence) -> Regime:
    if not evidence.is_flow or evidence.beside is None:
        return Regime(False, "a statement about the flow", applies=False)
    return regime_of((evidence.rates["Y"] > 0 and evidence.rates["Z"] > 0, "a rate is zero"), holds="flow")


def _sparsity(evidence: Evidence) -> Comparison:
    assert evidence.beside is not None
    speed = evidence.curves.mean(evidence.curves.speed)
    if evidence.still or speed[-1] > 0.1 * speed.max():
        return Comparison("rise > 0", None, VISIBLE, None, "attention has not slowed down yet: its sparsity is not settled")
    faster = {**evidence.rates, "Y": 3 * evidence.rates["Y"]}
    beside = evidence.beside.rates(faster, float(evidence.curves.time[-1]))
    if not beside.done:
        return Comparison("rise > 0", None, VISIBLE, None, f"the flow beside this run {beside.reason}")
    other = Evidence.of(beside)
    here, there = (float(e.curves.mean(e.curves.entropy)[-1]) for e in (evidence, other))
    reason = f"entropy on distinct tokens {here:.5f} at eta_Y/eta_Z = {evidence.ratio:.3g}, {there:.5f} at three times that"
    rise = there - here
    return Comparison("rise > 0", rise, VISIBLE, rise > 0 if abs(rise) > VISIBLE else None, reason)


def _scaling(evidence: Evidence) -> Comparison:
    assert evidence.beside is not None
    end = float(evidence.run.time[-1])
    other = evidence.beside.rates({name: 4 * rate for name, rate in evidence.rates.items()}, end / 4)
    if not other.done:
        return Comparison(0.0, None, 1e-6, None, f"the flow beside this run {other.reason}")
    gap = float(np.max(np.abs(other.params["Z"][-1] - evidence.run.params["Z"][-1])))
    return Comparison(0.0, gap, 1e-6, gap <= 1e-6, f"four times the rates for a quarter of the time: Z differs by {gap:.1e}")


def _finite_step_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return ADAM
    if evidence.is_flow or evidence.beside is None:
        return Regime(False, "a statement about steps", applies=False)
    if evidence.sampled:
        length = evidence.run.spec["field"]["length"]
        return Regime(False, f"contexts of {length} tokens end sparser as well: drop --length to see the steps alone")
    return Regime(True, "gradient steps, compared with the flow from the same start for the same effective time")


def _finite_step(evidence: Evidence) -> Comparison:
    assert evidence.beside is not None
    beside = evidence.beside.flow(float(evidence.run.time[-1]))
    if not beside.done:
        return Comparison("sparser", None, FOLLOWS, None, f"the flow beside this run {beside.reason}")
    flow = Evidence.of(beside)
    here, there = (float(e.curves.mean(e.curves.entropy)[-1]) for e in (evidence, flow))
    steps = int(evidence.run.step[-1])
    numbers = f"entropy {here:.4f} after {steps} steps, {there:.4f} in the flow, which does not know the rate"
    if abs(here - there) <= FOLLOWS:
        return Comparison(f"< {there:.4f}", here, FOLLOWS, None, f"{numbers}: these steps are small enough to follow it")
    which = "sparser than" if here < there else "less sparse than"
    return Comparison(f"< {there:.4f}", here, FOLLOWS, here < there, f"{numbers}: these steps end {which} the flow")


def _assumption_2(evidence: Evidence) -> Comparison:
    f = evidence.curves.attention[0] / np.linalg.norm(evidence.curves.attention[0], axis=1, keepdims=True)
    worst = float(np.max(np.abs(np.linalg.eigvalsh(f @ f.T - np.eye(evidence.classes)))))
    limit = 1 / evidence.classes
    reason = f"largest |eigenvalue| of F^T F - I at the start is {worst:.3f}, 1/K is {limit:.3f}"
    return Comparison(f"< {limit:.4g}", worst, "bound", worst < limit, reason)


CLAIMS = (
    Claim("SnS:lemma-1", "Row sums of Y and Z are conserved", _gradient_run, row_sums, ("start", "end")),
    Claim("SnS:lemma-2", "Attention of a context of length L tends to c_n like L^-1/2", _any, _length_rate, ("end",)),
    Claim("SnS:assumption-2", "Data assumption 2: eigenvalues of F^T F - I are below 1/K", _any, _assumption_2, ("start",)),
    Claim("SnS:theorem-2-distinct", "Scores of distinct tokens grow", _distinct_regime, _distinct_grow, ("start", "end")),
    Claim("SnS:theorem-2-common", "Scores of common tokens fall", _common_regime, _common_fall, ("start", "end")),
    Claim(
        "SnS:order", "Distinct tokens are dropped in the order of their co-occurrence P(l|n)", _distinct_regime, _order, ("end",)
    ),
    Claim(
        "SnS:theorem-3",
        "Winner over runner-up grows as chi: r(t) = r(0) chi(t)",
        theorems.chi_regime,
        theorems.chi_identity,
        ("start", "end"),
    ),
    Claim(
        "SnS:sandwich", "2 f^2 B <= ln chi <= 2 B", lambda e: theorems.modified_regime(e, 30), theorems.sandwich, ("start", "end")
    ),
    Claim(
        "SnS:theorem-1",
        "Own-minus-other logit follows e^x + (M-1)x = M eta_Y t/K + 1",
        lambda e: theorems.modified_regime(e, 10),
        theorems.theorem_1,
        ("start", "end"),
    ),
    Claim(
        "SnS:theorem-4",
        "The common token's score is -B(t0), B = 1/4 ln(1 + 4 Gamma/C0)",
        lambda e: theorems.modified_regime(e, 10),
        theorems.theorem_4,
        ("start", "end"),
    ),
    Claim("SnS:transition", "The transition is at K ln M / eta_Y", theorems.transition_regime, theorems.transition, ("peak",)),
    Claim("SnS:snap", "After its peak the attention speed falls", _any, _speed_falls, ("peak", "end")),
    Claim("SnS:sparsity", "A larger eta_Y/eta_Z ends less sparse", _flow_regime, _sparsity, ("end",)),
    Claim("SnS:scaling", "In the flow only eta_Y/eta_Z and time matter", _flow_regime, _scaling, ("end",)),
    Claim("SnS:finite-step", "Larger rates end sparser: an effect of finite steps", _finite_step_regime, _finite_step, ("end",)),
)
