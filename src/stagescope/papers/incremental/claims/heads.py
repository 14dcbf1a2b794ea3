"""Heads that compete, then cooperate, and heads that start exactly equal."""

from dataclasses import dataclass

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.detect.events import first_crossing
from stagescope.papers.incremental import nulls
from stagescope.papers.incremental.claims.regimes import on_the_ladder, parts, several_heads
from stagescope.papers.incremental.evidence import Evidence

COST = "a run of one head, as long as this one"
SHARE, ATTENTION = "of the step", "of the attention, above that on any other group"


@dataclass(frozen=True)
class EqualThresholds:
    """When heads that started equal are still equal, and how long they must stay."""

    stay: float = 10.0
    """A stay on plateau 1 needs a run of this many t_1: a decade of time beyond the first transition."""
    rounding: float = 1e-6
    """Relative difference of heads up to which they count as equal; only rounding parts them later."""
    same_steps: float = 1e-9
    """Largest difference between two equal motions in shares of the ladder: the same steps, up to rounding."""
    same_flow: float = 1e-6
    """The same for flows, up to the tolerance of the solver."""


EQUAL = EqualThresholds()


def _competition(evidence: Evidence) -> Comparison:
    """P2: on plateau 1 every head attends more to the most important group than to any other, wherever inside it.

    It must also have gained more there than elsewhere, as a share of what it could gain: uniform attention is on a large group
    without any learning.
    """
    plateau = next((p for p in evidence.rests if p.j == 1), None)
    if plateau is None:
        why = evidence.no_rest() if not evidence.rests else "the run does not rest on plateau 1"
        return Comparison("> 0", None, 0.0, None, why, unit=ATTENTION)
    frame, mass = evidence.frame(plateau.t), evidence.heads.mass
    first, now, error = mass[0], mass[frame], evidence.change(frame, mass)
    gained = (now - first) / np.maximum(1 - first, 1e-12)
    margin = float(min(np.min(each[:, :1] - each[:, 1:]) for each in (now, gained)))
    holds = True if margin > error else False if margin < -error else None
    shown = " ".join(f"{each:.2f}" for each in now[:, 0])
    reason = f"on plateau 1 the heads have {shown} of their attention on group 1, {first[:, 0].min():.2f} at the start"
    return Comparison("> 0", margin, 0.0, holds, reason, measured_error=error, unit=ATTENTION)


def _splitting(evidence: Evidence) -> Regime:
    """No more heads than groups: further heads share a group and stay alike."""
    base, heads, groups = several_heads(evidence), evidence.task.heads, len(evidence.task.gains)
    if not base.applies or not parts(evidence).applies:
        return base if not base.applies else parts(evidence)
    if not base.holds:
        return base
    return (
        base if heads <= groups else Regime(False, f"{heads} heads on {groups} groups: some heads share a group and stay alike")
    )


def _cooperation(evidence: Evidence) -> Comparison:
    """P2: heads part after t_1 and before plateau 2; on the last plateau each of the first min(H, k) groups has its own head."""
    last, unit = evidence.task.reachable, "groups"
    plateau, onset = evidence.rested(last) if evidence.reached >= last else None, evidence.heads.onset
    if plateau is None:
        why = f"the run does not rest on plateau {last}: heads have not divided the groups yet"
        return Comparison(last, None, "all", None, why, unit=unit)
    frame = evidence.frame(plateau.t)
    error = evidence.change(frame, evidence.heads.shares)
    owners = evidence.heads.owners(frame, error)
    own = len({head for head in owners if head is not None})
    first, second = evidence.heads.crossings[0], evidence.plateaus[1]
    before = float(evidence.time[-1]) if second is None else second.t
    shown = " ".join("-" if head is None else str(head + 1) for head in owners)
    reason = f"on plateau {last} the groups have heads {shown} (shares ± {error:.2f}); heads part at {onset}"
    reason += f", t_1 is {first}, plateau 2 is at {before:.4g}"
    shared = own < sum(head is not None for head in owners)
    if onset.interval is None or first.interval is None:
        return Comparison(last, own, "all", False if shared or onset.state == "at the start" else None, reason, unit=unit)
    outside = onset.interval[1] < first.interval[0] or onset.interval[0] > before
    inside = onset.interval[0] > first.interval[1] and onset.interval[1] <= before
    holds = False if outside or shared else True if inside and own == last else None
    return Comparison(last, own, "all", holds, reason, unit=unit)


def _equal_start(evidence: Evidence) -> Regime:
    if not evidence.identical or evidence.task.heads == 1:
        return Regime(False, "heads do not start exactly equal, or there is one head", applies=False)
    return Regime(True, "heads start exactly equal")


def _equal_ladder(evidence: Evidence) -> Regime:
    base = _equal_start(evidence)
    return on_the_ladder(evidence) if base.applies else base


def _one_head(evidence: Evidence) -> Comparison:
    """P2: the loss of equal heads is that of one head with H times the values, at scaled rates."""
    descends = evidence.run.spec["dynamics"]["type"] == "Descent"
    limit = EQUAL.same_steps if descends else EQUAL.same_flow
    if evidence.equal is None:
        return Comparison(0.0, None, limit, None, "this model and optimiser have no reduction to one head")
    loss = evidence.run.series.get("loss", evidence.heads.loss)  # the mirror law records no loss
    together = evidence.spread <= EQUAL.rounding
    apart = np.abs(loss - np.interp(evidence.run.time, evidence.equal.time, evidence.equal.loss))[together]
    gap = float(apart.max() / evidence.steps.sum())
    until = float(evidence.run.time[together][-1])
    reason = f"losses differ by at most {gap:.1e} of the ladder up to {evidence.run.clock} = {until:.4g}"
    return Comparison(0.0, gap, limit, gap <= limit, reason + _parted(evidence))


def _parted(evidence: Evidence) -> str:
    parted = first_crossing(evidence.run.time, evidence.spread, EQUAL.rounding, rising=True)
    return "" if parted is None else f"; rounding parts the heads at {parted:.4g}"


def _stays(evidence: Evidence) -> Comparison:
    """P3: equal heads never leave plateau 1."""
    first, limit, end = evidence.times[0], evidence.tolerance, float(evidence.time[-1])
    plateau = evidence.rested(1) if evidence.reached else None
    if first is None or end < EQUAL.stay * first or (plateau is None and evidence.reached == 1):
        why = f"the run ends before {EQUAL.stay:g} t_1, or does not rest"
        return Comparison(0.0, None, limit, None, "t_1 was not reached" if first is None else why, unit=SHARE)
    gap = float((evidence.heads.loss[-1] - evidence.levels[1]) / evidence.steps[0])
    error = 0.0 if plateau is None else evidence.gap(plateau)[1]
    reason = f"the last loss is {gap:+.2%} of the step from level 1 at {evidence.run.clock} = {end:.4g}, {end / first:.0f} t_1"
    early = float(np.interp(first, evidence.run.time, evidence.spread))
    if early <= EQUAL.rounding < float(evidence.spread.max()):
        return Comparison(0.0, gap, limit, None, reason + _parted(evidence), unit=SHARE)
    return agreement(0.0, gap, evidence.allowed(gap, 1), reason, measured_error=error, unit=SHARE)


CLAIMS = (
    claim(
        "ISA:competition",
        "On plateau 1 all heads attend to the most important group",
        several_heads,
        _competition,
        "plateau 1",
        kind="pattern",
        null=(nulls.WAITING,),
        rules=2,
    ),
    claim(
        "ISA:cooperation",
        "Heads then part after t_1, before plateau 2, and divide the groups",
        _splitting,
        _cooperation,
        "t1",
        "t2",
        kind="pattern",
        null=(nulls.WAITING,),
        rules=2,
    ),
    claim("ISA:symmetric", "Equal heads move as one head", _equal_start, _one_head, "start", "end", kind="identity", cost=COST),
    claim(
        "ISA:stays",
        "Equal heads never leave plateau 1",
        _equal_ladder,
        _stays,
        "t1",
        "end",
        kind="prediction",
        null=(nulls.PARTED,),
        rules=2,
    ),
)
