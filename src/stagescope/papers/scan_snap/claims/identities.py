"""Statements of scan and snap that cannot fail: they check the numerics, not the theory."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime
from stagescope.dynamics.dynamics import SolveFailed
from stagescope.keys import key
from stagescope.papers.scan_snap.evidence import ADAM, LIMITS, Evidence, regime_of, undecided
from stagescope.papers.scan_snap.model import attention


def _gradient_run(evidence: Evidence) -> Regime:
    return ADAM if evidence.is_adam else Regime(True, "a run by gradients or with the modified decoder")


def row_sums(evidence: Evidence) -> Comparison:
    """Drift of the row sums of Y and Z; also used for runs on a text."""
    weights = evidence.law.model.multiplicity
    sums = (evidence.run.params["Y"] @ weights, evidence.run.params["Z"].sum(axis=2))
    ends = [end(evidence.run.params[name]) for name in ("Y", "Z") for end in (np.max, np.min)]  # no copy of |Y|, |Z|
    size = max(1.0, float(np.max(np.abs(ends))))
    drift = max(float(np.max(np.abs(total - total[0]))) for total in sums) / (size * np.sqrt(evidence.outputs))
    reason = f"row sums of Y and Z drift by at most {drift:.1e} of the largest parameter"
    single = evidence.run.spec["field"].get("precision") == "float32"
    tolerance = LIMITS.conserved_single if single else LIMITS.conserved
    return Comparison(0.0, drift, tolerance, drift <= tolerance, reason, unit="of the largest parameter")


def _any(evidence: Evidence) -> Regime:
    return Regime(True, "any run")


def _length_rate(evidence: Evidence) -> Comparison:
    """Slope of mean |v - c|_1 over the length of contexts, drawn with the scores of the last frame.

    The law is one of long contexts: in short ones the most attended token may be missing.
    """
    lengths, tolerance = (2048, 8192, 32768), LIMITS.length_slope
    on = evidence.curves.supports
    attended = on.chance[on.argtops(evidence.curves.c[-1])]
    if lengths[0] * float(attended.min()) < 1:
        return undecided(f"the most attended token is missing from most contexts of {lengths[0]} tokens", -0.5, tolerance)
    gaps = [_length_gap(evidence, length) for length in lengths]
    if min(gaps) < 1e-12:
        return undecided("every context has one token only, so its length does not matter", -0.5, tolerance)
    slope = float(np.polyfit(np.log(lengths), np.log(gaps), 1)[0])
    ends = f"{gaps[0]:.3g} at length {lengths[0]} to {gaps[-1]:.3g} at {lengths[-1]}"
    reason = f"|v - c|_1 falls from {ends}, slope {slope:.3f}"
    return Comparison(-0.5, slope, tolerance, abs(slope + 0.5) <= tolerance, reason, unit="log-log slope")


def _length_gap(evidence: Evidence, length: int, draws: int = 200) -> float:
    random = key(evidence.run.seed or 0, "claims", "length", length)
    curves, total = evidence.curves, 0.0
    for n, p in enumerate(curves.table):
        own = slice(*curves.supports.start[n : n + 2])
        counts = random.multinomial(length, p / p.sum(), size=draws)[:, curves.supports.key[own]]
        total += float(np.mean(np.abs(attention(curves.z[-1, own], counts) - curves.c[-1, own]).sum(axis=1)))
    return total / evidence.classes


def flow_regime(evidence: Evidence) -> Regime:
    """A flow in which both blocks of parameters move."""
    if not evidence.is_flow or evidence.companions is None:
        return Regime(False, "the claim is about the flow", applies=False)
    return regime_of((evidence.rates["Y"] > 0 and evidence.rates["Z"] > 0, "a rate is zero"), holds="flow")


def _scaling(evidence: Evidence) -> Comparison:
    assert evidence.companions is not None
    end, tolerance = float(evidence.run.time[-1]), LIMITS.scaling
    try:
        other = evidence.companions.rates({name: 4 * rate for name, rate in evidence.rates.items()}, end / 4)
    except SolveFailed as failure:
        return undecided(f"the companion flow {failure}", 0.0, tolerance)
    gap = float(np.max(np.abs(other["Z"] - evidence.run.params["Z"][-1])))
    reason = f"with four times the rates for a quarter of the time, Z differs by {gap:.1e}"
    return Comparison(0.0, gap, tolerance, gap <= tolerance, reason, unit="score")


CLAIMS = (
    claim("SnS:lemma-1", "Row sums of Y and Z are conserved", _gradient_run, row_sums, "start", "end", kind="identity"),
    claim(
        "SnS:lemma-2",
        "Attention of a context of length L tends to c_n like L^-1/2",
        _any,
        _length_rate,
        "end",
        kind="identity",
        rules=2,
    ),
    claim(
        "SnS:scaling",
        "In the flow only eta_Y/eta_Z and time matter",
        flow_regime,
        _scaling,
        "end",
        kind="identity",
        cost="1 flow, as long as the run",
    ),
)
