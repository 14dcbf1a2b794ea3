"""Focus and dilution: what linearising at the first two saddles predicts, as claims that can be put to a run."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.detect.focus_dilution import passes, row_cycles
from stagescope.detect.stage import first_crossing
from stagescope.observables.token import TokenCurves
from stagescope.runs.run import Run
from stagescope.theory import focus_dilution_forms as forms
from stagescope.theory.claim import Claim, Comparison, Regime

NEAR = 0.3
"""Relative distance from a saddle beyond which its linearisation is not believed."""
SMALL_START = 3e-3
"""Largest rms of the initial parameters for which the run begins at the origin in the sense of the linearisation."""


@dataclass(frozen=True)
class Evidence:
    """A run with its curves, at a resolution that does not depend on how it was recorded."""

    run: Run
    curves: TokenCurves

    @property
    def is_flow(self) -> bool:
        return self.run.spec["dynamics"]["type"] == "GradientFlow"

    @cached_property
    def start(self) -> float:
        blocks = [self.run.params[name][0].ravel() for name in self.run.params]
        return float(np.sqrt(np.mean(np.concatenate(blocks) ** 2)))

    @cached_property
    def rate(self) -> float:
        law = self.curves.law
        return forms.attention_rate(self.curves.pi, law.process.transition, law.model.scale)

    @cached_property
    def embeddings(self) -> list[float | None]:
        return passes(self.curves.time, self.curves.embedding_values)

    @cached_property
    def opened(self) -> float | None:
        return passes(self.curves.time, self.curves.score_values)[0]

    @cached_property
    def window(self) -> tuple[int, int] | None:
        """Frames from E1 to the time at which Phi reaches .03, or None."""
        first = self.embeddings[0]
        until = first_crossing(self.curves.time, self.curves.score_values[:, 0], 0.03, rising=True)
        if first is None or until is None or until <= first:
            return None
        start, stop = (int(np.searchsorted(self.curves.time, when)) for when in (first, until))
        return (start, stop) if stop - start >= 5 else None

    @cached_property
    def distances(self) -> np.ndarray:
        """|W0 W1 - M*|/|M*| from the product at the saddle (1,0), at every frame."""
        pi = self.curves.pi
        centred = np.log(pi) - np.mean(np.log(pi))
        target = forms.plateau_amplitude(pi) ** 2 * np.outer(pi / np.linalg.norm(pi), centred / np.linalg.norm(centred))
        product = self.curves.params["W0"] @ self.curves.params["W1"]
        return np.linalg.norm(product - target, axis=(1, 2)) / np.linalg.norm(target)

    @cached_property
    def opening(self) -> tuple[np.ndarray, float, float] | None:
        """The opening mode |alpha.(WQ + sign(c) WK)|, which grows at |c|, and its rise: from near the saddle to Phi = .03.

        The other combination of WQ and WK decays and is left out.
        """
        if self.window is None:
            return None
        start, stop = self.window
        params = self.curves.params
        alpha = np.linalg.svd(params["W0"][(start + stop) // 2])[2][0]
        mode = np.linalg.norm(alpha @ params["WQ"] + np.sign(self.rate) * (alpha @ params["WK"]), axis=1)
        near = np.flatnonzero(self.distances[start : stop + 1] <= NEAR)
        arrived = float(mode[start + near[0]]) if near.size else np.inf
        return mode, max(3 * float(np.min(mode[start : stop + 1])), arrived), float(mode[stop])

    @property
    def equal_rates(self) -> bool:
        return all(rate == 1.0 for rate in self.run.spec["dynamics"]["rates"].values())

    def fit(self, amplitude: np.ndarray, low: float, high: float) -> float | None:
        """Slope of log amplitude over its last rise from `low` to `high`, or None."""
        reached = np.flatnonzero(amplitude >= high)
        below = np.flatnonzero(amplitude[: reached[0]] <= low) if reached.size else np.array([], dtype=int)
        if not below.size or reached[0] - below[-1] < 5:
            return None
        rise = slice(below[-1], reached[0] + 1)
        return float(np.polyfit(self.curves.time[rise], np.log(amplitude[rise]), 1)[0])


def _small_flow(evidence: Evidence) -> Regime:
    failed = [
        sentence
        for good, sentence in (
            (evidence.is_flow, "not a gradient flow"),
            (evidence.equal_rates, "block rates differ"),
            (evidence.start <= SMALL_START, f"initial rms {evidence.start:.1e} is above {SMALL_START:g}"),
        )
        if not good
    ]
    return Regime(not failed, "; ".join(failed) or "flow from a small start")


def _near_plateau(evidence: Evidence) -> Regime:
    """The linearisation at (1,0) speaks of a run that is near it for at least one e-fold of the opening of attention."""
    regime = _small_flow(evidence)
    if evidence.opening is None or evidence.opening[2] >= np.e * evidence.opening[1]:
        return regime
    assert evidence.window is not None
    nearest = float(np.min(evidence.distances[evidence.window[0] : evidence.window[1] + 1]))
    far = f"attention opens before the run is near the saddle (1,0): nearest relative distance {nearest:.2f}"
    return Regime(False, far if regime.holds else f"{regime.sentence}; {far}")


def _ratio(predicted: float, measured: float | None, tolerance: float, what: str) -> Comparison:
    if measured is None:
        return Comparison(predicted, None, tolerance, None, f"the run does not show the rise of {what}")
    off = measured / predicted
    return Comparison(
        predicted, measured, tolerance, abs(off - 1) <= tolerance, f"measured/predicted = {off:.3f} over the rise of {what}"
    )


def _condensation_rate(evidence: Evidence) -> Comparison:
    left, right = forms.condensation_directions(evidence.curves.pi)
    params = evidence.curves.params
    amplitude = np.linalg.norm(left @ params["W0"] + params["W1"] @ right, axis=1)
    top = 0.2 * forms.plateau_amplitude(evidence.curves.pi)
    slope = evidence.fit(amplitude, 5 * float(amplitude[0]), top)
    return _ratio(forms.condensation_rate(evidence.curves.pi), slope, 0.05, "the condensing mode")


def _condensation_direction(evidence: Evidence) -> Comparison:
    when = evidence.embeddings[0]
    if when is None:
        return Comparison("> 0.99", None, 0.99, None, "the first embedding direction never opened")
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
        return Comparison(1.0, None, 0.05, None, "the first embedding direction never opened")
    top = evidence.curves.key_values[:, 0]
    ratio = float(np.interp(when, evidence.curves.time, top) / top[0]) if top[0] > 0 else np.nan
    if not np.isfinite(ratio):
        return Comparison(1.0, None, 0.05, None, "WQ or WK starts at zero")
    return Comparison(1.0, ratio, 0.05, abs(ratio - 1) <= 0.05, f"sv_1(WQ WK^T) at E1 is {ratio:.4f} of its start")


def _attention_rate(evidence: Evidence) -> Comparison:
    rise = None if evidence.opening is None else evidence.fit(*evidence.opening)
    return _ratio(abs(evidence.rate), rise, 0.1, "the opening mode of attention")


def _focus_direction(evidence: Evidence) -> Comparison:
    when = first_crossing(evidence.curves.time, evidence.curves.score_values[:, 0], 0.03, rising=True)
    sign = np.sign(evidence.rate)
    if when is None:
        return Comparison(f"{sign:+.0f}", None, 0.99, None, "Phi never reached .03")
    frame = int(np.searchsorted(evidence.curves.time, when))
    phi, target = evidence.curves.scores[frame], np.outer(evidence.curves.pi, evidence.curves.pi)
    cosine = float(np.sum(phi * target) / np.linalg.norm(phi) / np.linalg.norm(target))
    word = "focus" if sign > 0 else "defocus"
    reason = f"c = {evidence.rate:.4g} predicts {word}; cos(Phi, pi pi^T) = {cosine:+.4f} when Phi reaches .03"
    return Comparison(f"{sign:+.0f}", cosine, 0.99, sign * cosine > 0.99, reason)


def _order(evidence: Evidence) -> Comparison:
    times = (evidence.embeddings[0], evidence.opened, evidence.embeddings[1] if len(evidence.embeddings) > 1 else None)
    if None in times:
        missing = ("E1", "Q1", "E2")[times.index(None)]
        return Comparison("E1 < Q1 < E2", None, "order", None, f"{missing} was not reached")
    first, opened, second = (float(t) for t in times if t is not None)
    shown = f"E1 {first:.4g}, Q1 {opened:.4g}, E2 {second:.4g}"
    return Comparison("E1 < Q1 < E2", shown, "order", first < opened < second, shown)


def _dilution(evidence: Evidence) -> Comparison:
    """A row is back at its base exactly when its embedding crosses zero along the condensed direction."""
    curves, first = evidence.curves, evidence.embeddings[0]
    second = evidence.embeddings[1] if len(evidence.embeddings) > 1 else None
    if first is None or second is None:
        return Comparison(0.0, None, 0.02, None, "there is no first cycle between E1 and E2")
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
        return Comparison(0.0, None, 0.02, None, "no row focused and returned to its base before E2")
    worst = max(gaps)
    reason = f"{len(gaps)} rows return to their base within {worst:.2%} of the time at which gamma_i crosses zero"
    return Comparison(0.0, worst, 0.02, worst <= 0.02, reason)


CLAIMS = (
    Claim("FD:origin", "At the origin one mode grows at rate mu0 = |pi| |pi - 1/d|", _small_flow, _condensation_rate),
    Claim("FD:condensed", "Embeddings condense: W0 along pi, W1 along pi - 1/d", _small_flow, _condensation_direction),
    Claim("FD:frozen", "Attention is frozen while embeddings condense", _small_flow, _frozen),
    Claim("FD:attention-rate", "At (1,0) attention opens at rate |c|", _near_plateau, _attention_rate),
    Claim("FD:focus", "Attention opens along sign(c) pi pi^T: focus or defocus", _small_flow, _focus_direction),
    Claim("FD:dilution", "A row is diluted exactly when its embedding crosses zero", _small_flow, _dilution),
    Claim("FD:stages", "Embedding, attention, embedding open in this order", _small_flow, _order),
)
