"""Focus and dilution: along which directions embeddings condense and attention opens, and with which sign."""

from dataclasses import dataclass

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.papers.focus_dilution import forms
from stagescope.papers.focus_dilution.evidence import Evidence, beside, small_flow
from stagescope.papers.focus_dilution.stages import first_move, passes


@dataclass(frozen=True)
class FirstTolerances:
    """How far the first moves may be from what is predicted."""

    cosine: float = 0.01  # W0 along pi, W1 along pi - 1/d, Phi along pi pi^T: 8 degrees
    frozen: float = 0.05  # relative change of sv_1(WQ WK^T) by E1
    seen: float = 0.03  # size of Phi at which its direction is read, and a third of it
    smallest: float = 1e-6  # move of attention that has a sign, far above the error of a flow (1e-10)


LIMITS = FirstTolerances()


def _condensation_direction(evidence: Evidence) -> Comparison:
    """Cosines at E1; what is left of the start, of norm eps sqrt(d) against .1, tilts them by half its square."""
    when = evidence.embeddings[0]
    if when is None:
        return Comparison(1.0, None, LIMITS.cosine, None, "E1 was not reached", unit="cosine")
    frame = min(int(np.searchsorted(evidence.curves.time, when)), len(evidence.curves.time) - 1)
    left, right = forms.condensation_directions(evidence.curves.pi)
    u = np.linalg.svd(evidence.curves.params["W0"][frame])[0][:, 0]
    w = np.linalg.svd(evidence.curves.params["W1"][frame])[2][0]
    least = float(min(abs(u @ left), abs(w @ right)))
    reason = f"|cos| of W0 with pi {abs(u @ left):.4f}, of W1 with pi - 1/d {abs(w @ right):.4f} at E1"
    error = (evidence.start * len(evidence.pi) ** 0.5 / 0.1) ** 2 / 2
    return agreement(1.0, least, LIMITS.cosine, reason, predicted_error=error, unit="cosine")


def _frozen(evidence: Evidence) -> Comparison:
    when, unit = evidence.embeddings[0], "share of the start"
    if when is None:
        return Comparison(1.0, None, LIMITS.frozen, None, "E1 was not reached", unit=unit)
    top = evidence.curves.key_values[:, 0]
    if top[0] <= 0:
        return Comparison(1.0, None, LIMITS.frozen, None, "WQ or WK starts at zero", unit=unit)
    ratio = float(np.interp(when, evidence.curves.time, top) / top[0])
    return agreement(1.0, ratio, LIMITS.frozen, f"sv_1(WQ WK^T) at E1 is {ratio:.4f} of its start", unit=unit)


def _focus_direction(evidence: Evidence) -> Comparison:
    """cos(Phi, pi pi^T) in the limit of a small Phi: by a line through its values where sv_1(Phi) passes .01 and .03.

    The error is the difference between those two.
    """
    sign, curves = float(np.sign(evidence.rate)), evidence.curves
    found = []
    for size in (LIMITS.seen / 3, LIMITS.seen):
        when = passes(curves.time, curves.score_values[:, :1], size)[0]
        if when is None or (evidence.second is not None and when > evidence.second):
            return Comparison(sign, None, LIMITS.cosine, None, f"sv_1(Phi) stays below {size:.2g} before E2", unit="cosine")
        frame = min(int(np.searchsorted(curves.time, when)), len(curves.time) - 1)
        phi = curves.law.model.scores({name: block[frame] for name, block in curves.params.items()})
        target = np.outer(evidence.pi, evidence.pi)
        found.append(float(np.sum(phi * target) / np.linalg.norm(phi) / np.linalg.norm(target)))
    word, limit = "focus" if sign > 0 else "defocus", 1.5 * found[0] - 0.5 * found[1]
    reason = f"c = {evidence.rate:.4g} predicts {word}; cos(Phi, pi pi^T) = {found[1]:+.4f} when sv_1(Phi) is {LIMITS.seen}"
    return agreement(sign, limit, LIMITS.cosine, reason, measured_error=abs(found[1] - found[0]), unit="cosine")


def _sign(evidence: Evidence) -> Comparison:
    moved, c = first_move(evidence.curves), evidence.rate
    if moved is None or abs(moved) < LIMITS.smallest:
        return Comparison(float(np.sign(c)), None, "sign", None, "attention does not move in this run")
    word = "towards" if moved > 0 else "away from"
    reason = f"c = {c:+.3g}; the mean attention on the frequent token first moves by {moved:+.2g}, {word} it"
    return Comparison(float(np.sign(c)), moved, "sign", c * moved > 0, reason, 0.0, LIMITS.smallest, "attention")


def _signed(evidence: Evidence) -> Regime:
    """A flow from a small start whose c is not zero to rounding."""
    base = small_flow(evidence)
    nothing = abs(evidence.rate) <= 1e-12
    return Regime(False, "c is zero: attention has nothing to learn at (1,0)") if base.holds and nothing else base


CLAIMS = (
    claim(
        "FD:directions",
        "Embeddings condense: W0 along pi, W1 along pi - 1/d",
        small_flow,
        _condensation_direction,
        "E1",
        kind="prediction",
        group="origin",
        rules=2,
        elsewhere=beside,
    ),
    claim(
        "FD:frozen",
        "Attention is frozen while embeddings condense",
        small_flow,
        _frozen,
        "start",
        "E1",
        kind="prediction",
        group="origin",
        rules=2,
        elsewhere=beside,
    ),
    claim(
        "FD:focus",
        "Attention opens along sign(c) pi pi^T: focus or defocus",
        _signed,
        _focus_direction,
        "Q1",
        kind="prediction",
        group="first move of attention",
        rules=2,
        elsewhere=beside,
    ),
    claim(
        "FD:sign",
        "The sign of c decides between focus and defocus",
        _signed,
        _sign,
        "Q1",
        "focus*",
        kind="prediction",
        group="first move of attention",
        rules=3,
        elsewhere=beside,
    ),
)
