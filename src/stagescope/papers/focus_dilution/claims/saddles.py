"""Focus and dilution at its critical points: rates, directions, linear prediction, and what follows at second order."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison
from stagescope.landscape.growth_fit import last_rise
from stagescope.papers.focus_dilution import forms
from stagescope.papers.focus_dilution.evidence import Evidence, following, passing, small_flow
from stagescope.papers.focus_dilution.family import slopes
from stagescope.papers.focus_dilution.ladder.visit import SaddleVisit

Compare = Callable[[Evidence], Comparison]


def _rate(r: int, rq: int, tolerance: float, closed: Callable[[Evidence], float] | None = None) -> Compare:
    """The rate of the opening against `closed`, its closed form, or the singular value of the small matrix at the point."""

    def compare(evidence: Evidence) -> Comparison:
        visit = evidence.visit(r, rq)
        if visit is None or visit.small.opening is None:
            return Comparison("-", None, tolerance, None, f"nothing opens at ({r},{rq})")
        at_point = visit.small.opening.rate
        predicted = at_point if closed is None else closed(evidence)
        if visit.rise is None or visit.local_rate is None:
            return Comparison(predicted, None, tolerance, None, "the opening does not rise tenfold in this run")
        off = visit.rise.rate / predicted
        reason = f"measured/predicted = {off:.3f} over a tenfold rise of the {visit.small.opening.block} mode"
        reason += "" if closed is None else f"; rate of the small matrix at the point reached {at_point:.4g}"
        reason += f"; rate linearised at the run itself {visit.local_rate:.4g}"
        return Comparison(predicted, visit.rise.rate, tolerance, abs(off - 1) <= tolerance, reason)

    return compare


def _size(evidence: Evidence) -> float:
    return abs(evidence.rate)


def _directions(r: int, rq: int, least: float) -> Compare:
    def compare(evidence: Evidence) -> Comparison:
        visit = evidence.visit(r, rq)
        if visit is None or not visit.cosines:
            return Comparison(f"> {least}", None, least, None, f"the opening predicted at ({r},{rq}) did not open in this run")
        low = min(visit.cosines)
        shown = " and ".join(f"{cosine:.4f}" for cosine in visit.cosines)
        reason = f"cosines with the predicted new column of W0 and row of W1: {shown} at {visit.event}"
        return Comparison(f"> {least}", low, least, low > least, reason)

    return compare


def _vanishing(r: int, rq: int, which: int) -> Compare:
    """GM (0) or GP (1) at the critical point of the small model; zero is up to the residual of a search, 1e-10."""
    tolerance = 1e-10

    def compare(evidence: Evidence) -> Comparison:
        visit = evidence.visit(r, rq)
        if visit is None:
            return Comparison(0.0, None, tolerance, None, f"the run has no stay at ({r},{rq})")
        size = float(np.abs(slopes(evidence.law, visit.small.point.params)[which]).max())
        reason = f"largest entry of {('dL/dM', 'dL/dPhi')[which]} {size:.1e}, residual |F| {visit.small.point.residual:.1e}"
        return Comparison(0.0, size, tolerance, size <= tolerance, reason)

    return compare


def _linear(r: int, rq: int, tolerance: float) -> Compare:
    """The growing part at the end of the rise: predicted by exp(J t) from the plateau, against the run's."""

    def compare(evidence: Evidence) -> Comparison:
        visit, label = evidence.visit(r, rq), (r, rq)
        opened = None if visit is None else visit.opened
        if visit is None or opened is None or opened <= visit.time[visit.frame]:
            return Comparison(1.0, None, tolerance, None, f"nothing opens after the plateau ({r},{rq})")
        last, local = visit.trajectory.frame(opened), evidence.linear[label]
        ahead = float(visit.time[last] - visit.time[visit.frame])
        predicted = local.unstable(visit.trajectory.at(visit.frame), ahead)
        measured = local.unstable(visit.trajectory.at(last))
        cosine = float(predicted @ measured / np.linalg.norm(predicted) / np.linalg.norm(measured))
        ratio = float(np.linalg.norm(measured) / np.linalg.norm(predicted))
        holds = cosine > 0.99 and abs(ratio - 1) <= tolerance
        reason = (
            f"growing part at {ahead:.3g} after the plateau: cosine {cosine:.4f} (> .99), size measured/predicted {ratio:.3f}"
        )
        return Comparison(1.0, ratio, tolerance, holds, reason)

    return compare


def redistribution(evidence: Evidence, visit: SaddleVisit) -> np.ndarray:
    """D = (1 - pi_f) gamma_f - pi_f sum_{i != f} gamma_i with gamma = W0 alpha, f the frequent token, less its start.

    The sign of gamma is such that the frequent token's entry is positive on the plateau. Condensation moves W0 along pi, which
    does not change D, so its start is its value on the plateau before attention moves it [FD:redistribution].
    """
    gamma = evidence.curves.params["W0"] @ visit.place.S[0]
    gamma = gamma * np.sign(gamma[visit.frame, evidence.curves.frequent])
    return _spread(evidence, gamma) - _spread(evidence, gamma[0])


def _spread(evidence: Evidence, gamma: np.ndarray) -> np.ndarray:
    frequent = evidence.curves.frequent
    share = float(evidence.pi[frequent])
    return gamma[..., frequent] - share * gamma.sum(axis=-1)


def _redistribution_rate(evidence: Evidence) -> Comparison:
    visit = evidence.visit(1, 0)
    if visit is None or visit.small.opening is None:
        return Comparison("-", None, 0.1, None, "the run has no stay at (1,0)")
    moved = np.abs(redistribution(evidence, visit))
    predicted = 2 * visit.small.opening.rate
    rise = last_rise(evidence.curves.time, moved, 0.001, 0.01)  # where the next order does not show yet
    if rise is None:
        return Comparison(predicted, None, 0.1, None, "D does not rise from .001 to .01")
    off = rise.rate / predicted
    reason = f"slope of log D / 2c = {off:.3f} while D rises from .001 to .01"
    return Comparison(predicted, rise.rate, 0.1, abs(off - 1) <= 0.1, reason)


def _second_order(evidence: Evidence) -> Comparison:
    """(2 c - J) w = F''[v, v]/2 at (1,0), v the growing attention: w moves the embeddings, and D with them, up to D = .01."""
    size = 0.01
    visit = evidence.visit(1, 0)
    if visit is None:
        return Comparison("-", None, 0.25, None, "the run has no stay at (1,0)")
    moved = redistribution(evidence, visit)
    after = np.flatnonzero(np.abs(moved) >= size)
    if not after.size:
        return Comparison("-", None, 0.25, None, f"|D| stays below {size}")
    frame = int(after[0])
    now = visit.trajectory.at(frame)
    w = evidence.linear[(1, 0)].second_order(now)
    sign = np.sign((evidence.curves.params["W0"][visit.frame] @ visit.place.S[0])[evidence.curves.frequent])
    predicted = float(_spread(evidence, sign * (w["W0"] @ visit.place.S[0])))
    measured = float(moved[frame])
    ratio = measured / predicted
    holds = bool(predicted * measured > 0 and abs(ratio - 1) <= 0.25)
    words = "away from" if predicted > 0 else "towards"
    reason = (
        f"D predicted {predicted:+.4f}, measured {measured:+.4f} (ratio {ratio:.3f}): embeddings move {words} the rare tokens"
    )
    return Comparison(predicted, measured, 0.25, holds, reason)


def _third(evidence: Evidence) -> Comparison:
    """Reported, never judged: no critical point is near the run between (1,1) and (2,2), and (2,2) is often far."""
    found = _rate(2, 2, 0.1)(evidence)
    visit = evidence.visit(2, 2)
    cosines = () if visit is None else visit.cosines
    shown = ", cosines " + " ".join(f"{cosine:.3f}" for cosine in cosines) if cosines else ""
    return replace(found, holds=None, reason=f"reported, not judged: {found.reason}{shown}")


def _sign(evidence: Evidence) -> Comparison:
    visit = evidence.visit(1, 0)
    curves, frequent = evidence.curves, evidence.curves.frequent
    if visit is None or visit.opened is None:
        return Comparison("-", None, "sign", None, "attention does not open from (1,0) in this run")
    moved = float(curves.attention[visit.trajectory.frame(visit.opened), frequent, frequent] - evidence.pi[frequent])
    word = "towards" if moved > 0 else "away from"
    reason = f"c = {evidence.rate:+.3g}; attention of the frequent token on itself moved by {moved:+.4f}, {word} it"
    return Comparison(float(np.sign(evidence.rate)), float(np.sign(moved)), "sign", bool(evidence.rate * moved > 0), reason)


CONDENSED, FOCUSED = following(1, 0), following(1, 1)
CLAIMS = (
    claim(
        "FD:origin",
        "At the origin one mode grows at rate mu0 = |pi| |pi - 1/d|",
        following(0, 0),
        _rate(0, 0, 0.05, lambda e: forms.condensation_rate(e.pi)),
        "start",
        "E1",
    ),
    claim("FD:condensed", "At (1,0) dL/dM = 0: only attention can open", passing(1, 0), _vanishing(1, 0, 0), "E1", "Q1"),
    claim("FD:attention-rate", "At (1,0) attention opens at rate |c|", CONDENSED, _rate(1, 0, 0.1, _size), "E1", "Q1"),
    claim(
        "FD:linear-condensed", "From the plateau (1,0), exp(Jt) predicts the escape", CONDENSED, _linear(1, 0, 0.3), "E1", "Q1"
    ),
    claim("FD:sign", "The sign of c decides between focus and defocus", small_flow, _sign, "Q1", "focus*"),
    claim(
        "FD:redistribution", "Embeddings redistribute at twice the rate of attention", CONDENSED, _redistribution_rate, "E1", "Q1"
    ),
    claim("FD:second-order", "Second order predicts sign and size of the redistribution", CONDENSED, _second_order, "E1", "Q1"),
    claim("FD:focused", "At (1,1) dL/dPhi = 0: only embeddings can open", passing(1, 1), _vanishing(1, 1, 1), "Q1", "E2"),
    claim("FD:embedding-rate", "At (1,1) an embedding direction opens at rate sv_1(B)", FOCUSED, _rate(1, 1, 0.1), "Q1", "E2"),
    claim(
        "FD:embedding-direction",
        "At (1,1) an embedding direction opens along the singular vectors of B",
        following(1, 1, directions=True),
        _directions(1, 1, 0.98),
        "Q1",
        "E2",
    ),
    claim("FD:linear-focused", "From the plateau (1,1), exp(Jt) predicts the escape", FOCUSED, _linear(1, 1, 0.2), "Q1", "E2"),
    claim("FD:third", "At (2,2) the third embedding direction opens at rate sv_1(B)", passing(2, 2), _third, "Q2", "E3"),
)
