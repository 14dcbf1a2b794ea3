"""What incremental learning says of a transformer that somebody trains: heads move together first, and part later.

The evidence is the reading of a watched run (`readings/watched.py`). Both claims ask for an open gate: the model must have
learned from context. Bars and their controls are in docs/watched-claims.md.
"""

from typing import Any

from stagescope.claims.claim import Claim, ClaimTable
from stagescope.claims.comparison import Comparison, Regime, at_least, narrowed, not_applicable
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.study import WORDS
from stagescope.watching.events import Together, first_layer, together

claim = ClaimTable(WORDS.claims)


def _cosines(run: Any) -> tuple[Together, Together] | None:
    """Cosine of the moves in the first layer whose heads move, when they do and at the end; None where no layer moves."""
    if "sketch" not in run.series or (first := first_layer(run, LIMITS.moved_distance)) is None:
        return None
    layer, frame = first
    return together(run, layer, frame), together(run, layer, run.frames - 1)


def _regime(evidence: Any) -> Regime:
    if "sketch" not in evidence.run.series:
        return not_applicable("asks for sketches of the patterns, which were not recorded")
    condition = _cosines(evidence.run) is not None, f"in no layer the heads move by {LIMITS.moved_distance:g} in the mean"
    return narrowed(Regime(evidence.gate.open, evidence.gate.sentence), condition)


def _both(evidence: Any) -> tuple[Together, Together, tuple[Together, Together] | None]:
    """The cosines of the run, and of its control."""
    cosines = _cosines(evidence.run)
    assert cosines is not None  # the regime holds
    return *cosines, None if evidence.control is None else _cosines(evidence.control.run)


@claim("ISA:watched-together", _regime)
def _first(evidence: Any) -> Comparison:
    early, _, control = _both(evidence)
    reason = (
        f"the heads of layer {early.layer} have moved by {LIMITS.moved_distance:g} at {early.step:.5g}; "
        f"the cosine is {early.cosine:.2f}"
    )
    return at_least(
        early.cosine,
        LIMITS.together,
        reason,
        measured_error=early.error,
        control=None if control is None else control[0].cosine,
        unit="mean cosine between moves of heads",
    )


@claim("ISA:watched-part", _regime)
def _later(evidence: Any) -> Comparison:
    early, late, control = _both(evidence)
    reason = f"the cosine of layer {early.layer} goes from {early.cosine:.2f} at {early.step:.5g} to {late.cosine:.2f} at the end"
    if early.cosine - early.error < LIMITS.together:
        sentence = f"{reason}: heads that were not together cannot part"
        return Comparison(LIMITS.parted, early.cosine - late.cosine, "at least", None, sentence, unit="fall of the mean cosine")
    return at_least(
        early.cosine - late.cosine,
        LIMITS.parted,
        reason,
        measured_error=(early.error**2 + late.error**2) ** 0.5,
        control=None if control is None else control[0].cosine - control[1].cosine,
        unit="fall of the mean cosine",
    )


def watched_claims() -> tuple[Claim, ...]:
    return claim.claims
