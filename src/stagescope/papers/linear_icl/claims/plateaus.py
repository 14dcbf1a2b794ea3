"""Linear attention: what a run does on its plateaus, in which order it learns, and what its flow conserves."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.papers.linear_icl import forms, nulls
from stagescope.papers.linear_icl.evidence import LIMITS, Evidence, all_drops, of_flow, separated, small_start, undecided


def _plateaus(evidence: Evidence) -> Regime:
    holds = f"separate heads from {evidence.size:.2g} of their final value, purity {evidence.purity:.2g}"
    return of_flow(evidence, False, small_start(evidence, LIMITS.small), separated(evidence), all_drops(evidence), holds=holds)


def _between(evidence: Evidence) -> dict[int, int]:
    """The frames of the plateaus after the first drop and before the last, by their number."""
    found = {m: evidence.plateau(m) for m in range(1, evidence.model.reach)}
    return {m: frame for m, frame in found.items() if frame is not None}


def _levels(evidence: Evidence) -> Comparison:
    """The worst plateau, in units of its own tolerance: short plateaus have a wider one.

    A direction may open inside a head while its value still rises, so plateaus inside heads of higher rank are not compared.
    """
    frames = {m: frame for m, frame in _between(evidence).items() if not evidence.is_inside(m)}
    if not frames:
        return undecided("there is no plateau between two drops of different heads", 0.0, 1.0)
    parts, off = [], []
    for m, frame in frames.items():
        room = LIMITS.short_level if evidence.is_short(m) else LIMITS.level
        loss, level = float(evidence.curves.loss[frame]), float(evidence.curves.levels[m])
        off.append(abs(loss - level) / (room * evidence.trace))
        parts.append(f"{m}: {loss:.6g} ({level:.6g}{', short' if evidence.is_short(m) else ''})")
    reason = f"loss on plateaus, level in brackets: {'; '.join(parts)}"
    return agreement(0.0, max(off), 1.0, reason, unit="of the tolerance of a plateau")


def _learned_at(evidence: Evidence) -> list[float]:
    """When M_ii first passes half of its final value, by direction; infinite where it does not."""
    passed = evidence.curves.learned >= 0.5
    return [float(evidence.curves.time[int(np.argmax(row))]) if row.any() else np.inf for row in passed.T]


def _order(evidence: Evidence) -> Comparison:
    when = _learned_at(evidence)
    order = [i + 1 for i in sorted(range(len(when)), key=lambda i: when[i]) if np.isfinite(when[i])]
    wanted = list(range(1, evidence.model.reach + 1))
    said = ", ".join(map(str, order))
    return Comparison(", ".join(map(str, wanted)), said, "order", order == wanted, f"directions are learned in the order {said}")


def _regression(evidence: Evidence) -> Comparison:
    """The largest entry by which M differs from principal component regression on a plateau on which heads become pure."""
    frames = {m: frame for m, frame in _between(evidence).items() if evidence.is_settled(m)}
    if not frames:
        return undecided("no plateau between two drops is so long that heads lose what they have of later directions", 0.0)
    top = float(forms.final_map(evidence.task)[0])
    off = {
        m: float(np.max(np.abs(evidence.curves.whole[frame] - forms.regression_map(evidence.task, m)))) / top
        for m, frame in frames.items()
    }
    worst = max(off, key=lambda m: off[m])
    said = f"on plateau {worst} M differs from regression on {worst} principal components by {off[worst]:.2g} of M_11"
    return agreement(0.0, off[worst], 0.01, said, unit="of M_11")


def _few(evidence: Evidence) -> Regime:
    model = evidence.model
    if not model.merged and model.reach == evidence.task.dim:
        return Regime(False, f"the heads can hold all {model.reach} directions", applies=False)
    late = evidence.curves.time >= 0.9 * evidence.curves.time[-1]
    still = float(np.ptp(evidence.curves.loss[late]))
    settled = still <= 0.01 * LIMITS.end * evidence.trace, f"the loss still moves by {still:.1e} in the last tenth of the run"
    return of_flow(evidence, False, all_drops(evidence), settled, holds=f"{model.reach} directions, and the loss is at rest")


def _end(evidence: Evidence) -> Comparison:
    level, loss = float(evidence.curves.levels[-1]), float(evidence.curves.loss[-1])
    reason = f"the loss ends at {loss:.8g}, level {level:.8g}"
    return agreement(level, loss, LIMITS.end * evidence.trace, reason, unit="loss")


def _any_flow(evidence: Evidence) -> Regime:
    failed = [why for why in evidence.failures() if why != "block rates differ"]
    if failed:
        return Regime(False, f"steps conserve nothing: {'; '.join(failed)}", applies=False)
    return Regime(not evidence.failures(), "block rates differ" if evidence.failures() else "a flow at equal rates")


def _conserved(evidence: Evidence) -> Comparison:
    held = evidence.curves.conserved
    size = max(1.0, float(np.max(np.square(evidence.curves.params["v"]))))
    drift = float(np.max(np.abs(held - held[0]))) / size
    reason = f"v^2 less the square of another block of a head drifts by {drift:.1e} of the largest v^2, or of 1"
    return Comparison(0.0, drift, LIMITS.conserved, drift <= LIMITS.conserved, reason, unit="of the largest v^2, or of 1")


CLAIMS = (
    claim(
        "LIN:conserved",
        "v^2 - |k|^2 and v^2 - |q|^2 of each head are conserved",
        _any_flow,
        _conserved,
        "start",
        "end",
        kind="identity",
    ),
    claim(
        "LIN:levels",
        "Plateau m has the loss l_m",
        _plateaus,
        _levels,
        "d1",
        "d*",
        kind="prediction",
        null=nulls.OTHER_CONTEXTS,
        rules=3,
    ),
    claim(
        "LIN:order",
        "Directions are learned in the order of the eigenvalues",
        _plateaus,
        _order,
        "d1",
        "d*",
        kind="pattern",
        null=nulls.REVERSED,
        rules=2,
    ),
    claim(
        "LIN:pcr",
        "On plateau m the model does regression on m principal components",
        _plateaus,
        _regression,
        "d1",
        "d*",
        kind="prediction",
        null=(nulls.OTHER_CONTEXTS, nulls.REVERSED),
        rules=2,
    ),
    claim(
        "LIN:few-heads",
        "H heads of rank R with H R < D end at l_HR",
        _few,
        _end,
        "end",
        kind="prediction",
        null=nulls.FEW_OTHER_CONTEXTS,
    ),
)
