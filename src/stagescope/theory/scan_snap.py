"""Scan and snap: the paper's statements as claims that can be put to a run."""

import numpy as np

from stagescope.detect.stage import peak
from stagescope.keys import key
from stagescope.theory import scan_snap_forms as forms
from stagescope.theory.claim import Claim, Comparison, Regime
from stagescope.theory.scan_snap_evidence import WEAK, Evidence

SIGN = 1e-9
"""A velocity counts as zero below this fraction of the largest one: rounding of the right-hand side."""
NOISE = 0.05
"""The same for steps on sampled batches, whose noise moves every token."""
CONSERVED = 1e-9
LONG = 64
MOVED = 1e-9
"""Changes of scores below this are rounding of the integrator, not motion."""
STILL = "attention never moved (by more than 1e-9)"
VISIBLE = 1e-3
"""Differences of entropy below this, in nats, decide nothing."""
FOLLOWS = 0.01
"""Steps whose final entropy is within this of the flow's, in nats, follow the flow."""
_ADAM = Regime(False, "the paper speaks of gradient steps; Adam rescales every entry", applies=False)
_ANY = Regime(True, "any run")


def _wrong(*conditions: tuple[bool, str], holds: str) -> Regime:
    """In regime if every condition holds; the sentence names those that do not."""
    failed = [sentence for good, sentence in conditions if not good]
    return Regime(not failed, "; ".join(failed) if failed else holds)


def _gradient_run(evidence: Evidence) -> Regime:
    return _ADAM if evidence.is_adam else Regime(True, "any gradient or modified-decoder run")


def _row_sums(evidence: Evidence) -> Comparison:
    weights = evidence.law.model.multiplicity
    sums = (evidence.run.params["Y"] @ weights, evidence.run.params["Z"].sum(axis=2))
    drift = max(float(np.max(np.abs(total - total[0]))) for total in sums)
    return Comparison(0.0, drift, CONSERVED, drift <= CONSERVED, f"row sums of Y and Z drift by at most {drift:.1e}")


def _any(evidence: Evidence) -> Regime:
    return _ANY


def _length_rate(evidence: Evidence) -> Comparison:
    """Mean |v - c|_1 of contexts drawn at the last frame's scores, over the length."""
    lengths = (32, 128, 512, 2048)
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
        scores = np.where(p > 0, evidence.curves.scores[-1, n], -np.inf)
        weights = random.multinomial(length, p / p.sum(), size=draws) * np.exp(scores - scores.max())
        total += float(np.mean(np.abs(weights / weights.sum(axis=1, keepdims=True) - c).sum(axis=1)))
    return total / evidence.classes


def _paper_data(evidence: Evidence) -> tuple[tuple[bool, str], ...]:
    """What the paper's data model always has: a target for every class, and long contexts."""
    length = evidence.run.spec["field"].get("length", LONG)
    short = f"contexts of {length} tokens are short of the long-sequence limit ({LONG} or more)"
    return (evidence.own_target, "classes share a target"), (length >= LONG, short)


def _distinct_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return _ADAM
    own = (evidence.own_query, "classes share a query: a distinct token can then fall late")
    start = (not np.any(evidence.run.params["Z"][0]), "Z(0) is not zero")
    return _wrong(own, start, *_paper_data(evidence), holds="one query and one target per class, Z(0) = 0")


def _moves(evidence: Evidence) -> np.ndarray:
    """Velocities of the scores in a flow, displacements in steps; the start, where nothing moves yet, is left out."""
    curves = evidence.curves
    return (curves.velocity if evidence.is_flow else curves.scores - curves.scores[:1])[1:]


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
    return Comparison("growth >= 0", least, limit, least >= -limit, reason)


def _common_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return _ADAM
    if evidence.commons == 0:
        return Regime(False, "there are no common tokens", applies=False)
    if evidence.commons == 1:
        return _wrong(*_paper_data(evidence), holds="a single common token")
    return _wrong(
        *_paper_data(evidence),
        (evidence.symmetric, "classes are not symmetric (P(l|n) of common tokens, distinct profile or prior differ)"),
        (not np.any(evidence.run.params["Z"][0]), "Z(0) is not zero"),
        (evidence.own_query, "classes share a query"),
        holds=f"{evidence.commons} common tokens, symmetric classes, Z(0) = 0",
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
    return Comparison("growth <= 0", most, limit, most <= limit, reason)


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


def _chi_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return _ADAM
    fast = (evidence.ratio >= 100, f"eta_Y/eta_Z is {evidence.ratio:.3g}, but the identity needs eta_Y >> eta_Z (100 or more)")
    return _wrong(
        (evidence.is_flow, "finite steps"), fast, (evidence.own_query, "classes share a query"), holds="flow, eta_Y/eta_Z >= 100"
    )


def _chi_identity(evidence: Evidence) -> Comparison:
    """r(t)/r(0) = chi(t) for winner over runner-up at 3 t0 (or the end), error relative to chi - 1."""
    curves, errors = evidence.curves, []
    when = min(3 * evidence.t0, float(curves.time[-1]))
    if curves.time[-1] < evidence.t0:
        return Comparison(0.0, None, 0.05, None, f"the run ends before t0 = {evidence.t0:.4g}")
    for n in range(evidence.classes):
        own = np.flatnonzero(curves.distinct[n])
        ranked = own[np.argsort(-curves.attention[-1, n, own], kind="stable")][:2]
        if len(ranked) < 2 or np.isclose(*curves.table[n, ranked]):
            continue
        ratio = (curves.attention[:, n, ranked[0]] / curves.attention[:, n, ranked[1]]) ** 2 - 1
        chi = np.exp(2 * (curves.scores[:, n, ranked[0]] - curves.scores[0, n, ranked[0]]))
        measured, predicted = evidence.at(ratio / ratio[0], when), evidence.at(chi, when)
        errors.append(abs(measured - predicted) / abs(predicted - 1) if abs(predicted - 1) > MOVED else np.nan)
    if evidence.still or (errors and np.isnan(errors).any()):
        return Comparison(0.0, None, 0.05, None, STILL)
    if not errors:
        return Comparison(0.0, None, 0.05, None, "no class has two distinct tokens of different P(l|n)")
    error = float(np.mean(errors))
    return Comparison(0.0, error, 0.05, error <= 0.05, f"r(t)/r(0) differs from chi(t) by {error:.1%} of chi - 1 at t={when:.4g}")


def _modified_regime(evidence: Evidence, ratio: float) -> Regime:
    if evidence.is_adam:
        return _ADAM
    fast = f"eta_Y/eta_Z is {evidence.ratio:.3g}, below {ratio:g}"
    return _wrong(
        (evidence.is_flow, "finite steps"),
        (evidence.commons == 1, f"{evidence.commons} common tokens instead of one"),
        (evidence.symmetric, "classes are not symmetric"),
        (
            evidence.own_query or evidence.queries == 1,
            f"{evidence.queries} queries for {evidence.classes} classes, not one each or one for all",
        ),
        (evidence.own_target, "classes share a target"),
        (evidence.zero_start, "the start is not zero"),
        (evidence.ratio >= ratio, fast),
        (evidence.classes > 1, "a single class"),
        holds=f"flow, one common token, symmetric classes, eta_Y/eta_Z >= {ratio:g}",
    )


def _theorem_1(evidence: Evidence) -> Comparison:
    time, gaps = evidence.run.time, evidence.logit_gaps
    late = time >= 0.05 * evidence.t0
    if not late.any():
        return Comparison(1.0, None, 0.05, None, f"the run ends before a twentieth of t0 = {evidence.t0:.4g}")
    predicted = forms.logit_gap(time[late], evidence.outputs, evidence.classes, evidence.rates["Y"])
    ratios = gaps[late] / predicted
    worst = float(ratios[np.argmax(np.abs(ratios - 1))])
    which = "modified" if evidence.modified else "gradient"
    reason = f"own-minus-other logit over x(t) is {ratios.min():.3f} to {ratios.max():.3f} under the {which} decoder"
    return Comparison(1.0, worst, 0.05, abs(worst - 1) <= 0.05, reason)


def _no_growth(evidence: Evidence) -> str:
    """Why B(t0) cannot be compared, or nothing."""
    if evidence.classes < 2 or not evidence.curves.common[0].any():
        return "B needs several classes and a common token"
    if not evidence.curves.time[-1] >= evidence.t0:
        return f"the run ends before t0 = {evidence.t0:.4g}"
    return "" if evidence.rates["Z"] > 0 else "attention is frozen"


def _predicted_growth(evidence: Evidence, when: float) -> float:
    """B at a time: Gamma keeps the prior 1/K where each class has its own query."""
    drive = forms.driving(when, evidence.outputs, evidence.classes, evidence.rates["Y"], evidence.rates["Z"])
    p = float(evidence.curves.table[0][evidence.curves.common[0]][0])
    squares = float(np.sum(evidence.curves.table[0] ** 2))
    start = forms.start_constant(p, squares, evidence.classes)
    return float(forms.growth(drive / (evidence.classes if evidence.own_query else 1), start))


def _theorem_4(evidence: Evidence) -> Comparison:
    curves = evidence.curves
    missing = _no_growth(evidence)
    if missing:
        return Comparison(1.0, None, 0.25, None, missing)
    scores = np.mean(curves.scores[:, curves.common], axis=1)
    factor = evidence.at(scores, evidence.t0) / -_predicted_growth(evidence, evidence.t0)
    which = "modified" if evidence.modified else "gradient"
    reason = f"z_ct(t0) is {factor:.3f} of the corrected -B(t0) under the {which} decoder"
    return Comparison(1.0, factor, 0.25, abs(factor - 1) <= 0.25, reason)


def _sandwich(evidence: Evidence) -> Comparison:
    """2 f_l(0)^2 B <= ln chi_l <= 2 B at t0 and at the end; B/K where all classes share one query."""
    curves = evidence.curves
    missing = _no_growth(evidence)
    if missing:
        return Comparison("inside", None, "bounds", None, missing)
    growth = 2 * (evidence.winner(curves.scores) - evidence.winner(curves.scores)[:1])
    f2 = evidence.winner(curves.attention)[0] ** 2 / np.sum(curves.table**2, axis=1)
    share, inside, shown = 1 if evidence.own_query else evidence.classes, True, ""
    for when in (float(curves.time[-1]), evidence.t0):
        bound = 2 * _predicted_growth(evidence, when) / share
        chi = np.array([evidence.at(growth[:, n], when) for n in range(evidence.classes)])
        held = bool(np.all(chi >= f2 * bound) and np.all(chi <= bound))
        if not shown or not held:  # what is shown is what decides
            shown = f"ln chi = {chi.mean():.4f} against [{(f2 * bound).mean():.4f}, {bound:.4f}] at t={when:.4g}"
        inside &= held
    which = "modified" if evidence.modified else "gradient"
    return Comparison("inside", "inside" if inside else "outside", "bounds", inside, f"{shown} under the {which} decoder")


def _transition_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return _ADAM
    share = f"the common tokens' share f_c^2 = {evidence.common_share:.2f} is above {WEAK}: overlapping classes are slower"
    return _wrong(
        (evidence.is_flow and not evidence.modified, "not the gradient flow"),
        (evidence.commons == 1, f"{evidence.commons} common tokens instead of one"),
        (evidence.symmetric, "classes are not symmetric"),
        (evidence.common_share <= WEAK, share),
        (evidence.ratio >= 30, f"eta_Y/eta_Z is {evidence.ratio:.3g}, below 30"),
        holds="gradient flow, one weak common token, eta_Y/eta_Z >= 30",
    )


def _transition(evidence: Evidence) -> Comparison:
    top = peak(evidence.curves.time, evidence.curves.mean(evidence.winner(evidence.curves.velocity)))
    if top is None:
        return Comparison(1.0, None, "[0.75, 1.15]", None, "the winner's growth has not passed its peak")
    ratio = top[0] / evidence.t0
    reason = f"the winners grow fastest at {top[0]:.4g} = {ratio:.3f} K ln M / eta_Y"
    return Comparison(1.0, ratio, "[0.75, 1.15]", 0.75 <= ratio <= 1.15, reason)


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
    return _wrong((evidence.rates["Y"] > 0 and evidence.rates["Z"] > 0, "a rate is zero"), holds="flow")


def _sparsity(evidence: Evidence) -> Comparison:
    assert evidence.beside is not None
    faster = {**evidence.rates, "Y": 3 * evidence.rates["Y"]}
    other = Evidence.of(evidence.beside.rates(faster, float(evidence.curves.time[-1])))
    here, there = (float(e.curves.mean(e.curves.entropy)[-1]) for e in (evidence, other))
    reason = f"entropy on distinct tokens {here:.5f} at eta_Y/eta_Z = {evidence.ratio:.3g}, {there:.5f} at three times that"
    rise = there - here
    return Comparison("rise > 0", rise, VISIBLE, rise > 0 if abs(rise) > VISIBLE else None, reason)


def _scaling(evidence: Evidence) -> Comparison:
    assert evidence.beside is not None
    end = float(evidence.run.time[-1])
    other = evidence.beside.rates({name: 4 * rate for name, rate in evidence.rates.items()}, end / 4)
    gap = float(np.max(np.abs(other.params["Z"][-1] - evidence.run.params["Z"][-1])))
    return Comparison(0.0, gap, 1e-6, gap <= 1e-6, f"four times the rates for a quarter of the time: Z differs by {gap:.1e}")


def _finite_step_regime(evidence: Evidence) -> Regime:
    if evidence.is_adam:
        return _ADAM
    if evidence.is_flow or evidence.beside is None:
        return Regime(False, "a statement about steps", applies=False)
    if evidence.sampled:
        length = evidence.run.spec["field"]["length"]
        return Regime(False, f"contexts of {length} tokens end sparser as well: drop --length to see the steps alone")
    return Regime(True, "gradient steps, compared with the flow from the same start for the same effective time")


def _finite_step(evidence: Evidence) -> Comparison:
    assert evidence.beside is not None
    flow = Evidence.of(evidence.beside.flow(float(evidence.run.time[-1])))
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
    Claim("SnS:lemma-1", "Row sums of Y and Z are conserved", _gradient_run, _row_sums),
    Claim("SnS:lemma-2", "Attention of a context of length L tends to c_n like L^-1/2", _any, _length_rate),
    Claim("SnS:assumption-2", "Data assumption 2: eigenvalues of F^T F - I are below 1/K", _any, _assumption_2),
    Claim("SnS:theorem-2-distinct", "Scores of distinct tokens grow", _distinct_regime, _distinct_grow),
    Claim("SnS:theorem-2-common", "Scores of common tokens fall", _common_regime, _common_fall),
    Claim("SnS:order", "Distinct tokens are dropped in the order of their co-occurrence P(l|n)", _gradient_run, _order),
    Claim("SnS:theorem-3", "Winner over runner-up grows as chi: r(t) = r(0) chi(t)", _chi_regime, _chi_identity),
    Claim("SnS:sandwich", "2 f^2 B <= ln chi <= 2 B", lambda e: _modified_regime(e, 30), _sandwich),
    Claim(
        "SnS:theorem-1",
        "Own-minus-other logit follows e^x + (M-1)x = M eta_Y t/K + 1",
        lambda e: _modified_regime(e, 10),
        _theorem_1,
    ),
    Claim(
        "SnS:theorem-4",
        "The common token's score is -B(t0), B = 1/4 ln(1 + 4 Gamma/C0)",
        lambda e: _modified_regime(e, 10),
        _theorem_4,
    ),
    Claim("SnS:transition", "The transition is at K ln M / eta_Y", _transition_regime, _transition),
    Claim("SnS:snap", "After its peak the attention speed falls", _any, _speed_falls),
    Claim("SnS:sparsity", "A larger eta_Y/eta_Z ends less sparse", _flow_regime, _sparsity),
    Claim("SnS:scaling", "In the flow only eta_Y/eta_Z and time matter", _flow_regime, _scaling),
    Claim("SnS:finite-step", "Larger rates end sparser: an effect of finite steps", _finite_step_regime, _finite_step),
)
