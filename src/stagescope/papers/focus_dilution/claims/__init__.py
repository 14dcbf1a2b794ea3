"""Focus and dilution: claims on the stages of the first cycle, and the list of all claims."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison
from stagescope.detect.events import first_crossing
from stagescope.papers.focus_dilution import forms
from stagescope.papers.focus_dilution.claims import laws, saddles
from stagescope.papers.focus_dilution.evidence import Evidence, small_flow
from stagescope.papers.focus_dilution.stages import row_cycles


def _condensation_direction(evidence: Evidence) -> Comparison:
    when = evidence.embeddings[0]
    if when is None:
        return Comparison("> 0.99", None, 0.99, None, "E1 was not reached")
    frame = int(np.searchsorted(evidence.curves.time, when))
    left, right = forms.condensation_directions(evidence.curves.pi)
    u = np.linalg.svd(evidence.curves.params["W0"][frame])[0][:, 0]
    w = np.linalg.svd(evidence.curves.params["W1"][frame])[2][0]
    least = float(min(abs(u @ left), abs(w @ right)))
    reason = f"|cos| of W0 with pi {abs(u @ left):.4f}, of W1 with pi - 1/d {abs(w @ right):.4f} at E1"
    return Comparison("> 0.99", least, 0.99, least > 0.99, reason)


def _frozen(evidence: Evidence) -> Comparison:
    when = evidence.embeddings[0]
    if when is None:
        return Comparison(1.0, None, 0.05, None, "E1 was not reached")
    top = evidence.curves.key_values[:, 0]
    ratio = float(np.interp(when, evidence.curves.time, top) / top[0]) if top[0] > 0 else np.nan
    if not np.isfinite(ratio):
        return Comparison(1.0, None, 0.05, None, "WQ or WK starts at zero")
    return Comparison(1.0, ratio, 0.05, abs(ratio - 1) <= 0.05, f"sv_1(WQ WK^T) at E1 is {ratio:.4f} of its start")


def _focus_direction(evidence: Evidence) -> Comparison:
    visit, sign = evidence.visit(1, 0), np.sign(evidence.rate)
    if visit is None or visit.opened is None:
        return Comparison(f"{sign:+.0f}", None, 0.99, None, "attention does not open from (1,0) in this run")
    frame = visit.trajectory.frame(visit.opened)
    phi, target = evidence.curves.scores[frame], np.outer(evidence.pi, evidence.pi)
    cosine = float(np.sum(phi * target) / np.linalg.norm(phi) / np.linalg.norm(target))
    word, size = ("focus" if sign > 0 else "defocus"), evidence.curves.score_values[frame, 0]
    reason = f"c = {evidence.rate:.4g} predicts {word}; cos(Phi, pi pi^T) = {cosine:+.4f} when sv_1(Phi) is {size:.2g}"
    return Comparison(f"{sign:+.0f}", cosine, 0.99, sign * cosine > 0.99, reason)


def _order(evidence: Evidence) -> Comparison:
    times = (evidence.embeddings[0], evidence.attentions[0], evidence.second)
    if None in times:
        missing = ("E1", "Q1", "E2")[times.index(None)]
        return Comparison("E1 < Q1 < E2", None, "order", None, f"{missing} was not reached")
    first, opened, second = (float(t) for t in times if t is not None)
    shown = f"E1 {first:.4g}, Q1 {opened:.4g}, E2 {second:.4g}"
    return Comparison("E1 < Q1 < E2", shown, "order", first < opened < second, shown)


def _dilution(evidence: Evidence) -> Comparison:
    """A row is back at its base when its embedding crosses zero along the condensed direction."""
    curves, first = evidence.curves, evidence.embeddings[0]
    if first is None:
        return Comparison(0.0, None, 0.02, None, "E1 was not reached")
    second = evidence.second if evidence.second is not None else float(curves.time[-1])
    start = int(np.searchsorted(curves.time, first))
    alpha = np.linalg.svd(curves.params["W0"][start])[2][0]
    gamma = curves.params["W0"] @ alpha
    base = float(curves.pi[curves.frequent])
    attention = curves.attention[:, :, curves.frequent]
    cycles = row_cycles(curves.time, attention, base, (first, second), float(np.sign(evidence.rate)), curves.frequent)
    gaps = []
    for cycle in cycles:
        if cycle.focus is None or cycle.complete is None or cycle.complete > second:
            continue
        sign = float(np.sign(np.interp(cycle.focus, curves.time, gamma[:, cycle.row])))
        crossed = first_crossing(curves.time, sign * gamma[:, cycle.row], 0.0, rising=False, after=cycle.focus)
        if crossed is not None:
            gaps.append(abs(crossed - cycle.complete) / cycle.complete)
    if not gaps:
        return Comparison(0.0, None, 0.02, None, "no row focused and returned to its base before E2 or the end")
    worst = max(gaps)
    reason = f"{len(gaps)} rows return to their base; gamma_i crosses zero within {worst:.2%} of that time"
    return Comparison(0.0, worst, 0.02, worst <= 0.02, reason)


CLAIMS = (
    *saddles.CLAIMS,
    claim("FD:directions", "Embeddings condense: W0 along pi, W1 along pi - 1/d", small_flow, _condensation_direction, "E1"),
    claim("FD:frozen", "Attention is frozen while embeddings condense", small_flow, _frozen, "start", "E1"),
    claim("FD:focus", "Attention opens along sign(c) pi pi^T: focus or defocus", small_flow, _focus_direction, "Q1"),
    claim(
        "FD:dilution", "A row is diluted exactly when its embedding crosses zero", small_flow, _dilution, "focus*", "dilution*"
    ),
    claim("FD:stages", "Embedding, attention, embedding open in this order", small_flow, _order, "E1", "E2"),
    *laws.CLAIMS,
)
