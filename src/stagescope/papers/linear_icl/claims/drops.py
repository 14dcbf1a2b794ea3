"""Separate heads of any rank: the first drop, which head makes it, and the time course of its value."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.papers.linear_icl import forms, nulls
from stagescope.papers.linear_icl.evidence import LIMITS, Evidence, of_flow, separated, small_start, undecided

NEAR, FAR = 0.01, 0.03
"""Relative tolerance of the first drop from small starts, and from larger ones."""
COURSE = 0.01
"""Tolerance of v(t), in units of v_inf."""


def _first(evidence: Evidence) -> Regime:
    return of_flow(
        evidence,
        False,
        small_start(evidence, LIMITS.first),
        (bool(evidence.predicted), "no head blows up from this start"),
        (evidence.reached > 0, "the run ends before its first drop"),
        holds=f"separate heads from {evidence.size:.2g} of their final value, purity {evidence.purity:.2g}",
    )


def _first_drop(evidence: Evidence) -> Comparison:
    if not evidence.predicted or evidence.times[0] is None:
        return undecided("no first drop")
    drop, measured = evidence.predicted[0], evidence.times[0]
    tolerance = NEAR if small_start(evidence, LIMITS.small)[0] else FAR
    reason = f"the first drop is at t={measured:.6g}, predicted {drop.time:.6g} from T of {evidence.model.heads} heads"
    return agreement(drop.time, measured, tolerance * drop.time, reason, predicted_error=_earlier(evidence), unit="t")


def _earlier(evidence: Evidence) -> float:
    """How much earlier the first drop comes because other heads grow with the winner."""
    drop = evidence.predicted[0]
    waits = np.array([wait for wait in drop.waits if np.isfinite(wait)])
    return drop.time - forms.joint_drop(evidence.task, drop.direction, waits)


def _winner(evidence: Evidence) -> Comparison:
    """The head whose value rises at the first drop."""
    if not evidence.predicted or evidence.times[0] is None:
        return undecided("no first drop")
    drop = evidence.predicted[0]
    shares = np.abs(evidence.curves.shares[int(np.searchsorted(evidence.curves.time, evidence.times[0])), :, drop.direction])
    head = int(np.argmax(shares))
    said = f"head {head + 1} makes the first drop; head {drop.head + 1} has the least T"
    return Comparison(drop.head + 1, head + 1, "exact", head == drop.head, said, unit="head")


def _several_heads(evidence: Evidence) -> Regime:
    found = _first(evidence)
    if found.applies and evidence.model.heads == 1:
        return Regime(False, "there is one head", applies=False)
    ratio = evidence.predicted[0].ratio if evidence.predicted else np.inf
    if found.holds and ratio < LIMITS.apart:
        return Regime(False, f"two heads are within a factor {ratio:.3g} of each other's T, below {LIMITS.apart:g}")
    return found


def _course_regime(evidence: Evidence) -> Regime:
    found = of_flow(evidence, False, small_start(evidence, LIMITS.course), holds="")
    if found.applies and evidence.model.rank != 1:
        return Regime(False, "the scalar law is of heads of rank one", applies=False)
    if not found.applies or not found.holds:
        return found
    if not (apart := separated(evidence))[0]:
        return Regime(False, apart[1])
    ratio = evidence.predicted[0].ratio if evidence.predicted else 0.0
    if ratio < LIMITS.apart:
        return Regime(False, f"two heads are within a factor {ratio:.3g} of each other's T, below {LIMITS.apart:g}")
    return _first(evidence)


def _course(evidence: Evidence) -> Comparison:
    """|v| of the first winner from long before its drop to halfway to the second one, against the scalar law."""
    if not evidence.predicted or evidence.predicted[0].blow_up is None or evidence.times[0] is None:
        return undecided("no first drop", 0.0, COURSE)
    drop, times = evidence.predicted[0], evidence.times
    begin, blow_up = evidence.predicted[0].time, evidence.predicted[0].blow_up
    assert blow_up is not None
    after = times[1] if len(times) > 1 else None
    stop = float(evidence.curves.time[-1]) if after is None else (begin + after) / 2
    inside = np.flatnonzero((evidence.curves.time > 0.5 * begin) & (evidence.curves.time < stop))
    if inside.size < 5:
        return undecided("too few frames around the first drop", 0.0, COURSE)
    seen = np.abs(np.asarray(evidence.curves.params["v"])[inside, drop.head])
    law = forms.value_course(evidence.task, drop.direction, evidence.curves.time[inside] - blow_up)
    off = float(np.max(np.abs(seen - law))) / forms.head_value(evidence.task, (drop.direction,))
    reason = f"|v| of head {drop.head + 1} differs from the scalar law by at most {off:.2g} of its end"
    reason += f"; it has {evidence.mixed:.2g} of other directions"
    # what a head has of other directions adds its square to E = v^2
    return agreement(0.0, off, COURSE, reason, predicted_error=min(evidence.mixed**2 / 2, 1.0), unit="of v_inf")


CLAIMS = (
    claim(
        "LIN:first-drop",
        "The first drop comes at the least blow-up time of all heads, plus the delay of the scalar law",
        _first,
        _first_drop,
        "d1",
        kind="prediction",
        null=nulls.STRETCHED,
        rules=2,
    ),
    claim(
        "LIN:blow-up",
        "The head with the least blow-up time makes the first drop",
        _several_heads,
        _winner,
        "d1",
        kind="pattern",
        null=nulls.OTHER_HEADS,
        rules=2,
    ),
    claim(
        "LIN:scalar",
        "The value of the first winner follows the scalar law, shifted to its blow-up time",
        _course_regime,
        _course,
        "d1",
        kind="prediction",
        null=(nulls.SMALL_STRETCHED, nulls.OTHER_HEADS),
        rules=2,
    ),
)
