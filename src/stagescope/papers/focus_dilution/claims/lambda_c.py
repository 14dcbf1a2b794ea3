"""Focus and dilution: where flows stay at the symmetric point of equal rare tokens, and where they leave it."""

import math
from dataclasses import dataclass

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime
from stagescope.landscape.saddle_path import plain_time
from stagescope.papers.focus_dilution.claims.asymmetry import LIMITS, family_of
from stagescope.papers.focus_dilution.evidence import Evidence
from stagescope.papers.focus_dilution.forms import stall_boundary


@dataclass(frozen=True)
class LeavingRule:
    """When a flow has left the symmetric point."""

    left: float = 0.1  # rare tokens whose embeddings differ by this share of the longest have left it
    held: float = 0.02  # and those that differ by less than this are still at it
    longer: float = 1.5  # a run that is this many times longer than its rate needs must have left


RULE = LeavingRule()


def _equal(evidence: Evidence) -> Regime:
    """Equal rare tokens, and a flow that comes to (1,1)."""
    found = family_of(evidence)
    if found is None or found.delta > LIMITS.equal:
        return Regime(False, "applies only to lazy chains with equal rare tokens", applies=False)
    failed = evidence.failures()
    if evidence.attentions[0] is None:
        failed.append("Q1 was not reached: the run does not come to (1,1)")
    critical = stall_boundary(float(evidence.pi.max()), len(evidence.pi))
    shown = "none" if critical is None else f"{critical:.4f}"
    return Regime(not failed, "; ".join(failed) or f"equal rare tokens, Q1 reached; lambda_c = {shown}")


def _spread(evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """Times from Q1 to E2 or the end, and by how much rare tokens differ along the first direction of W0, over its largest entry.

    The first direction alone: what opens beside it is no motion inside the rank-one model.
    """
    opened, time = evidence.attentions[0] or 0.0, evidence.curves.time
    end = float(time[-1]) if evidence.second is None else evidence.second
    frames = np.flatnonzero((time >= opened) & (time <= end))
    left = np.linalg.svd(evidence.curves.params["W0"][frames], full_matrices=False)[0][:, :, 0]
    rare = np.delete(left, evidence.curves.frequent, axis=1)
    return time[frames], np.ptp(rare, axis=1) / np.abs(left).max(axis=1)


def _lambda_c(evidence: Evidence) -> Comparison:
    found = family_of(evidence)
    assert found is not None
    predicted = "stays" if found.margin > 0 else "leaves"
    if evidence.attentions[0] is None:
        return Comparison(predicted, None, "exact", None, "Q1 was not reached")
    time, spread = _spread(evidence)
    if len(time) < 2:
        return Comparison(predicted, None, "exact", None, "no frame lies between Q1 and E2")
    most = float(spread.max())
    measured = "leaves" if most > RULE.left else "stays" if most < RULE.held else None
    reason = f"embeddings of rare tokens differ by {most:.2g} of the longest at most, {spread[0]:.2g} at Q1"
    if measured is None:
        return Comparison(predicted, None, "exact", None, f"{reason}: neither left nor held")
    if predicted == "leaves" and measured == "stays":
        rate = found.tangential
        needed = RULE.longer * math.log(RULE.left / max(float(spread[0]), 1e-300)) / max(rate, 1e-300)
        if time[-1] - time[0] < needed:
            return Comparison(
                predicted, None, "exact", None, f"{reason}; at rate {rate:.2g} it needs t = {plain_time(needed, 3)} to leave"
            )
    return Comparison(predicted, measured, "exact", predicted == measured, reason)


CLAIMS = (
    claim(
        "FD:lambda-c",
        "With equal rare tokens a flow stays at the symmetric (1,1) where persistence is below lambda_c, and leaves it above",
        _equal,
        _lambda_c,
        "Q1",
        "E2",
        kind="prediction",
    ),
)
