"""Focus and dilution at its critical points: rates, directions, linear prediction, and what follows at second order."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from stagescope.claims.claim import Claim, Comparison
from stagescope.landscape.growth_fit import last_rise
from stagescope.papers.focus_dilution import forms
from stagescope.papers.focus_dilution.evidence import Evidence, following, passing, small_flow
from stagescope.papers.focus_dilution.family import slopes
from stagescope.papers.focus_dilution.ladder.passage import Passage

EXACT = 1e-10
REDISTRIBUTED = (0.001, 0.01)
"""D, less its start, is fitted where the next order does not show yet."""
MARK = 0.01
"""Where the second order is compared: the size of D."""

Compare = Callable[[Evidence], Comparison]


def _rate(r: int, rq: int, tolerance: float, closed: Callable[[Evidence], float] | None = None) -> Compare:
    """The rate of the opening against `closed`, its closed form, or the singular value of the small matrix at the point."""

    def compare(evidence: Evidence) -> Comparison:
        passage = evidence.passage(r, rq)
        if passage is None or passage.small.opening is None:
            return Comparison("-", None, tolerance, None, f"there is nothing that opens at ({r},{rq})")
        at_point = passage.small.opening.rate
        predicted = at_point if closed is None else closed(evidence)
        if passage.rise is None or passage.here is None:
            return Comparison(predicted, None, tolerance, None, "the run does not show a tenfold rise of the opening")
        off = passage.rise.rate / predicted
        reason = f"measured/predicted = {off:.3f} over a tenfold rise of the {passage.small.opening.block} mode"
        reason += "" if closed is None else f"; the small matrix at the point reached gives {at_point:.4g}"
        reason += f"; linearised at the run itself {passage.here:.4g}"
        return Comparison(predicted, passage.rise.rate, tolerance, abs(off - 1) <= tolerance, reason)

    return compare


def _mu0(evidence: Evidence) -> float:
    return forms.condensation_rate(evidence.pi)


def _size(evidence: Evidence) -> float:
    return abs(evidence.rate)


def _directions(r: int, rq: int, least: float) -> Compare:
    def compare(evidence: Evidence) -> Comparison:
        passage = evidence.passage(r, rq)
        if passage is None or not passage.cosines:
            return Comparison(f"> {least}", None, least, None, f"what opens at ({r},{rq}) did not open in this run")
        low = min(passage.cosines)
        shown = " and ".join(f"{cosine:.4f}" for cosine in passage.cosines)
        reason = f"cosines with the predicted new column of W0 and row of W1: {shown} at {passage.event}"
        return Comparison(f"> {least}", low, least, low > least, reason)

    return compare


def _vanishing(r: int, rq: int, which: int) -> Compare:
    """GM (0) or GP (1) at the critical point of the small model."""

    def compare(evidence: Evidence) -> Comparison:
        passage = evidence.passage(r, rq)
        if passage is None:
            return Comparison(0.0, None, EXACT, None, f"the run never has ({r},{rq})")
        size = float(np.abs(slopes(evidence.law, passage.small.point.params)[which]).max())
        reason = f"largest entry of {('dL/dM', 'dL/dPhi')[which]} {size:.1e}, residual |F| {passage.small.point.residual:.1e}"
        return Comparison(0.0, size, EXACT, size <= EXACT, reason)

    return compare


def _linear(r: int, rq: int, tolerance: float) -> Compare:
    """The growing part at the end of the rise, carried there by exp(J t) from the plateau, against the run's."""

    def compare(evidence: Evidence) -> Comparison:
        passage, label = evidence.passage(r, rq), (r, rq)
        opened = None if passage is None else passage.opened
        if passage is None or opened is None or opened <= passage.time[passage.frame]:
            return Comparison(1.0, None, tolerance, None, f"nothing opens after the plateau ({r},{rq}) to carry forward to")
        last, local = passage.seen.frame(opened), evidence.linear[label]
        ahead = float(passage.time[last] - passage.time[passage.frame])
        foreseen = local.unstable(passage.seen.at(passage.frame), ahead)
        seen = local.unstable(passage.seen.at(last))
        cosine = float(foreseen @ seen / np.linalg.norm(foreseen) / np.linalg.norm(seen))
        ratio = float(np.linalg.norm(seen) / np.linalg.norm(foreseen))
        holds = cosine > 0.99 and abs(ratio - 1) <= tolerance
        reason = f"growing part {ahead:.3g} after the plateau: cosine {cosine:.4f} (> .99), size measured/predicted {ratio:.3f}"
        return Comparison(1.0, ratio, tolerance, holds, reason)

    return compare


def redistribution(evidence: Evidence, passage: Passage) -> np.ndarray:
    """D = (1 - pi_f) gamma_f - pi_f sum_{i != f} gamma_i with gamma = W0 alpha, f the frequent token, less its start.

    gamma is counted positive for the frequent token on the plateau. Condensation moves W0 along pi, which leaves D as it
    began: that is its value on the plateau, before attention moves it [FD:redistribution].
    """
    gamma = evidence.curves.params["W0"] @ passage.place.S[0]
    gamma = gamma * np.sign(gamma[passage.frame, evidence.curves.frequent])
    return _spread(evidence, gamma) - _spread(evidence, gamma[0])


def _spread(evidence: Evidence, gamma: np.ndarray) -> np.ndarray:
    frequent = evidence.curves.frequent
    share = float(evidence.pi[frequent])
    return gamma[..., frequent] - share * gamma.sum(axis=-1)


def _redistribution_rate(evidence: Evidence) -> Comparison:
    passage = evidence.passage(1, 0)
    if passage is None or passage.small.opening is None:
        return Comparison("-", None, 0.1, None, "the run never has (1,0)")
    moved = np.abs(redistribution(evidence, passage))
    predicted = 2 * passage.small.opening.rate
    rise = last_rise(evidence.curves.time, moved, *REDISTRIBUTED)
    if rise is None:
        return Comparison(predicted, None, 0.1, None, "D does not rise from .001 to .01")
    off = rise.rate / predicted
    reason = f"slope of log D / 2c = {off:.3f} while D rises from .001 to .01"
    return Comparison(predicted, rise.rate, 0.1, abs(off - 1) <= 0.1, reason)


def _second_order(evidence: Evidence) -> Comparison:
    """(2 c - J) w = F''[v, v]/2 at (1,0), v the growing attention: w moves the embeddings, and D with them."""
    passage = evidence.passage(1, 0)
    if passage is None:
        return Comparison("-", None, 0.25, None, "the run never has (1,0)")
    moved = redistribution(evidence, passage)
    after = np.flatnonzero(np.abs(moved) >= MARK)
    if not after.size:
        return Comparison("-", None, 0.25, None, f"D never moves by {MARK}")
    frame = int(after[0])
    now = passage.seen.at(frame)
    w = evidence.linear[(1, 0)].second_order(now)
    sign = np.sign((evidence.curves.params["W0"][passage.frame] @ passage.place.S[0])[evidence.curves.frequent])
    foreseen = float(_spread(evidence, sign * (w["W0"] @ passage.place.S[0])))
    seen = float(moved[frame])
    ratio = seen / foreseen
    holds = bool(foreseen * seen > 0 and abs(ratio - 1) <= 0.25)
    words = "away from" if foreseen > 0 else "towards"
    reason = f"D = {seen:+.4f}, predicted {foreseen:+.4f} (ratio {ratio:.3f}): embeddings move {words} the rare tokens"
    return Comparison(foreseen, seen, 0.25, holds, reason)


def _third(evidence: Evidence) -> Comparison:
    """Reported, never judged: there is no clean saddle between (1,1) and (2,2), and (2,2) is often far."""
    found = _rate(2, 2, 0.1)(evidence)
    passage = evidence.passage(2, 2)
    cosines = () if passage is None else passage.cosines
    shown = ", cosines " + " ".join(f"{cosine:.3f}" for cosine in cosines) if cosines else ""
    return replace(found, holds=None, reason=f"reported, not judged: {found.reason}{shown}")


def _sign(evidence: Evidence) -> Comparison:
    passage = evidence.passage(1, 0)
    curves, frequent = evidence.curves, evidence.curves.frequent
    if passage is None or passage.opened is None:
        return Comparison("-", None, "sign", None, "attention does not open from (1,0) in this run")
    moved = float(curves.attention[passage.seen.frame(passage.opened), frequent, frequent] - evidence.pi[frequent])
    word = "towards" if moved > 0 else "away from"
    reason = f"c = {evidence.rate:+.3g}; attention of the frequent token on itself has moved {moved:+.4f}, {word} it"
    return Comparison(float(np.sign(evidence.rate)), float(np.sign(moved)), "sign", bool(evidence.rate * moved > 0), reason)


CLAIMS = (
    Claim(
        tag="FD:origin",
        statement="At the origin one mode grows at rate mu0 = |pi| |pi - 1/d|",
        regime=following(0, 0),
        compare=_rate(0, 0, 0.05, _mu0),
        shown=("start", "E1"),
    ),
    Claim(
        tag="FD:condensed",
        statement="At (1,0) dL/dM = 0: only attention can open",
        regime=passing(1, 0),
        compare=_vanishing(1, 0, 0),
        shown=("E1", "Q1"),
    ),
    Claim(
        tag="FD:attention-rate",
        statement="At (1,0) attention opens at rate |c|",
        regime=following(1, 0),
        compare=_rate(1, 0, 0.1, _size),
        shown=("E1", "Q1"),
    ),
    Claim(
        tag="FD:linear-condensed",
        statement="From the plateau (1,0), exp(Jt) predicts the escape",
        regime=following(1, 0),
        compare=_linear(1, 0, 0.3),
        shown=("E1", "Q1"),
    ),
    Claim(
        tag="FD:sign",
        statement="The sign of c decides between focus and defocus",
        regime=small_flow,
        compare=_sign,
        shown=("Q1", "focus*"),
    ),
    Claim(
        tag="FD:redistribution",
        statement="Embeddings redistribute at twice the rate of attention",
        regime=following(1, 0),
        compare=_redistribution_rate,
        shown=("E1", "Q1"),
    ),
    Claim(
        tag="FD:second-order",
        statement="Second order predicts sign and size of the redistribution",
        regime=following(1, 0),
        compare=_second_order,
        shown=("E1", "Q1"),
    ),
    Claim(
        tag="FD:focused",
        statement="At (1,1) dL/dPhi = 0: only embeddings can open",
        regime=passing(1, 1),
        compare=_vanishing(1, 1, 1),
        shown=("Q1", "E2"),
    ),
    Claim(
        tag="FD:embedding-rate",
        statement="At (1,1) an embedding direction opens at rate sv_1(B)",
        regime=following(1, 1),
        compare=_rate(1, 1, 0.1),
        shown=("Q1", "E2"),
    ),
    Claim(
        tag="FD:embedding-direction",
        statement="It opens along the singular vectors of B",
        regime=following(1, 1, directions=True),
        compare=_directions(1, 1, 0.98),
        shown=("Q1", "E2"),
    ),
    Claim(
        tag="FD:linear-focused",
        statement="From the plateau (1,1), exp(Jt) predicts the escape",
        regime=following(1, 1),
        compare=_linear(1, 1, 0.2),
        shown=("Q1", "E2"),
    ),
    Claim(
        tag="FD:third",
        statement="At (2,2) the third embedding direction opens at rate sv_1(B)",
        regime=passing(2, 2),
        compare=_third,
        shown=("Q2", "E3"),
    ),
)
