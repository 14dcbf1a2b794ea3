"""Incremental learning as a ladder: levels, order, classes, competing then cooperating heads, and the limit of H heads."""

from dataclasses import dataclass

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime
from stagescope.detect.events import first_crossing
from stagescope.papers.incremental.evidence import Evidence, on_the_ladder, several_heads
from stagescope.papers.incremental.stages import HEADS


@dataclass(frozen=True)
class LearningThresholds:
    """When a feature is acquired, and when heads that started equal are still equal."""

    acquired: float = 0.2
    """A feature is acquired if its learned share ever reaches this."""
    stay: float = 10.0
    """A stay on plateau 1 needs a run of this many t_1."""
    rounding: float = 1e-6
    """Relative difference of heads up to which they count as equal; only rounding parts them later."""
    same_steps: float = 1e-9
    """Largest difference between two equal motions in shares of the ladder: the same steps, up to rounding."""
    same_flow: float = 1e-6
    """The same for flows, up to the tolerance of the solver."""


LEARNING = LearningThresholds()


def _plateaus(evidence: Evidence) -> Comparison:
    """P1: the worst (loss - l_j) / (l_{j-1} - l_j) over the plateaus the run rested on.

    Above its level a run may still be falling. Below it by more than the error of the level it is no member of the class.
    Too far above it the row is violated only if the run had settled, by the same rule as for the last plateau: if heads leave
    while the loss still falls towards the level, its limit is not known.
    """
    found = [plateau for j in range(1, evidence.reached + 1) if (plateau := evidence.rested(j)) is not None]
    if not found:
        why = (
            "t_1 was not reached"
            if evidence.reached == 0
            else f"t_{evidence.reached} was passed, but the run rests on no plateau"
        )
        return Comparison(0.0, None, evidence.tolerance, None, why)
    gaps = np.array([(p.loss - p.level) / evidence.steps[p.j - 1] for p in found])
    allowed = np.array([evidence.allowed(gap, p.j) for p, gap in zip(found, gaps, strict=True)])
    at = int(np.argmax(np.abs(gaps) / allowed))
    outside = np.abs(gaps) > allowed
    falling = np.array([evidence.fall(p) > evidence.tolerance for p in found]) & (gaps > 0)
    worst, within = float(gaps[at]), None if np.any(outside) and not np.any(outside & ~falling) else not np.any(outside)
    shown = ", ".join(
        f"plateau {p.j} at {p.loss:.4g}, level {p.level:.4g} ({g:+.1%} of the step)" for p, g in zip(found, gaps, strict=True)
    )
    early = [f"plateau {p.j} ({evidence.fall(p):.0%})" for p in (found[i] for i in np.flatnonzero(outside & falling))]
    if early:
        shown += f"; left while the loss still fell, share of the step in a doubling of t: {', '.join(early)}"
    if within is False and worst < 0:
        shown += f"; no member of class {found[at].j} is more than {allowed[at]:.1%} of the step below level {found[at].j}"
    return Comparison(0.0, worst, float(allowed[at]), within, shown + _unseen(evidence))


def _unseen(evidence: Evidence) -> str:
    """The reachable plateaus that are not compared."""
    missing = [str(j) for j in range(1, evidence.task.reachable + 1) if j > evidence.reached or evidence.rested(j) is None]
    return f"; not compared: plateau {', '.join(missing)}" if missing else ""


def _order(evidence: Evidence) -> Comparison:
    """P1: the learned shares of the features pass one common bar in the order of importance.

    A share is the component of the model's map along the true one, 1 where they agree. It need not pass the bar at t_j.
    """
    expected = "in order of importance"
    if evidence.learned is None:
        return Comparison(expected, None, "order", None, "the learned shares of features are not known for this model")
    highest = evidence.learned.max(axis=0)
    bar = float(np.min(highest, where=highest >= LEARNING.acquired, initial=1.0)) / 2
    when = [
        first_crossing(evidence.time, share, bar, rising=True) if top >= LEARNING.acquired else None
        for share, top in zip(evidence.learned.T, highest, strict=True)
    ]
    known = [t for t in when if t is not None]
    shown = ", ".join(f"{i}: {'never' if t is None else f'{t:.4g}'}" for i, t in enumerate(when, start=1))
    most = "largest shares of the true maps " + " ".join(f"{top:.2f}" for top in highest)
    if len(known) < 2:
        few = f"fewer than two features were acquired ({shown}): {most}, at least {LEARNING.acquired:g} is needed"
        return Comparison(expected, None, "order", None, few + _fits_otherwise(evidence, len(known)))
    ordered = all(t is None for t in when[len(known) :]) and bool(np.all(np.diff(known) > 0))
    reason = f"shares of the true maps pass {bar:.2f} at {evidence.run.clock} = {shown}; {most}"
    return Comparison(expected, shown, "order", ordered, reason)


def _fits_otherwise(evidence: Evidence, acquired: int) -> str:
    """A loss may descend the ladder without the true maps."""
    if evidence.reached <= acquired:
        return ""
    return f"; t_{evidence.reached} was passed nevertheless: other maps can predict as the class does"


def _predicts(evidence: Evidence) -> Regime:
    if not evidence.task.predicts:
        return Regime(False, "a regression flow predicts no tokens", applies=False)
    return on_the_ladder(evidence)


def _nearest(evidence: Evidence) -> Comparison:
    """P1: on plateau j the class nearest by KL(F_j || model) is j."""
    found = [plateau for j in range(1, evidence.reached + 1) if (plateau := evidence.rested(j)) is not None]
    if not found:
        return Comparison("class = stage", None, "exact", None, "the run rests on no plateau")
    classes = {p.j: evidence.heads.nearest(evidence.frame(p.t)) for p in found}
    if None in classes.values():
        return Comparison("class = stage", None, "exact", None, "divergences from the classes are not known for this model")
    shown = ", ".join(f"plateau {j}: class {near}" for j, near in classes.items())
    return Comparison("class = stage", shown, "exact", all(j == near for j, near in classes.items()), shown + _unseen(evidence))


def _competition(evidence: Evidence) -> Comparison:
    """P2: on plateau 1 all heads attend to the most important group."""
    plateau = evidence.rested(1) if evidence.reached else None
    if plateau is None:
        return Comparison(f">= {HEADS.alike}", None, HEADS.alike, None, "the run does not rest on plateau 1")
    frame = evidence.frame(plateau.t)
    agree, tops = float(evidence.heads.agreement[frame]), evidence.heads.mass[frame].argmax(axis=1)
    groups = " ".join(str(top + 1) for top in tops)
    reason = f"on plateau 1 the agreement of heads is {agree:.3f}, their top groups are {groups}"
    return Comparison(f">= {HEADS.alike}", agree, HEADS.alike, agree >= HEADS.alike and not tops.any(), reason)


def _splitting(evidence: Evidence) -> Regime:
    """No more heads than groups: further heads share a group and stay alike."""
    base, heads, groups = several_heads(evidence), evidence.task.heads, len(evidence.task.gains)
    if not base.applies or not base.holds:
        return base
    return (
        base if heads <= groups else Regime(False, f"{heads} heads on {groups} groups: some heads share a group and stay alike")
    )


def _cooperation(evidence: Evidence) -> Comparison:
    """P2: then they part between t_1 and t_2 and divide the groups."""
    last, apart = evidence.task.reachable, HEADS.apart
    wanted = f"<= {apart}"
    if evidence.reached < last:
        return Comparison(wanted, None, apart, None, f"t_{last} was not reached: heads have not divided the groups yet")
    plateau = evidence.plateaus[last - 1]
    frame = len(evidence.time) - 1 if plateau is None else evidence.frame(plateau.t)
    tops = " ".join(str(top + 1) for top in evidence.heads.mass[frame].argmax(axis=1))
    agree, contrast = float(evidence.heads.agreement[frame]), float(evidence.heads.contrast[frame])
    alike = np.flatnonzero(evidence.heads.agreement >= HEADS.alike)
    onset = float(evidence.time[alike[-1]]) if alike.size else 0.0
    first, second = (float(t) for t in evidence.times[:2] if t is not None)
    parted = f"heads part at {onset:.4g}" if alike.size else f"the agreement is never {HEADS.alike}"
    reason = f"on plateau {last} agreement {agree:.2f}, contrast {contrast:.2f} (>= {HEADS.split}), top groups {tops}; {parted}"
    holds = agree <= apart and contrast >= HEADS.split and first <= onset <= second
    if not holds and agree < HEADS.alike and first <= onset <= second:
        return Comparison(wanted, agree, apart, None, f"{reason}: heads are neither alike nor apart")
    return Comparison(wanted, agree, apart, holds, f"{reason} (t_1 {first:.4g}, t_2 {second:.4g})")


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
    limit = LEARNING.same_steps if descends else LEARNING.same_flow
    if evidence.equal is None:
        return Comparison(0.0, None, limit, None, "this model and optimiser have no reduction to one head")
    loss = evidence.run.series.get("loss", evidence.heads.loss)  # the mirror law records no loss
    together = evidence.spread <= LEARNING.rounding
    apart = np.abs(loss - np.interp(evidence.run.time, evidence.equal.time, evidence.equal.loss))[together]
    gap = float(apart.max() / evidence.steps.sum())
    until = float(evidence.run.time[together][-1])
    reason = f"losses differ by at most {gap:.1e} of the ladder up to {evidence.run.clock} = {until:.4g}"
    return Comparison(0.0, gap, limit, gap <= limit, reason + _parted(evidence))


def _parted(evidence: Evidence) -> str:
    parted = first_crossing(evidence.run.time, evidence.spread, LEARNING.rounding, rising=True)
    return "" if parted is None else f"; rounding parts the heads at {parted:.4g}"


def _stays(evidence: Evidence) -> Comparison:
    """P3: equal heads never leave plateau 1."""
    first, limit, end = evidence.times[0], evidence.tolerance, float(evidence.time[-1])
    if first is None or end < LEARNING.stay * first:
        why = (
            "t_1 was not reached" if first is None else f"the run ends before {LEARNING.stay:g} t_1 = {LEARNING.stay * first:.4g}"
        )
        return Comparison(0.0, None, limit, None, why)
    gap = float((evidence.heads.loss[-1] - evidence.levels[1]) / evidence.steps[0])
    reason = f"the last loss is {gap:+.2%} of the step from level 1 at {evidence.run.clock} = {end:.4g}, {end / first:.0f} t_1"
    early = float(np.interp(first, evidence.run.time, evidence.spread))
    if early <= LEARNING.rounding < float(evidence.spread.max()):
        return Comparison(0.0, gap, limit, None, reason + _parted(evidence))
    return Comparison(0.0, gap, limit, abs(gap) <= evidence.allowed(gap, 1), reason)


def _reachable(evidence: Evidence) -> Comparison:
    """P3: H heads end on plateau min(H, k)."""
    last, limit = evidence.task.reachable, evidence.tolerance
    low = float(evidence.heads.loss.min())
    below = float((low - evidence.levels[last]) / evidence.steps[last - 1])
    which = f"level {last} = min({evidence.task.heads}, {len(evidence.task.gains)})"
    reason = f"the least loss is {below:+.2%} of the step from {which}"
    if below < -evidence.allowed(below, last):
        return Comparison(0.0, below, limit, False, reason)
    if evidence.reached < last or evidence.rested(last) is None:
        return Comparison(0.0, below, limit, None, f"{reason}; the run does not rest on plateau {last}")
    return Comparison(0.0, below, limit, below <= limit, reason)


CLAIMS = (
    claim("ISA:plateaus", "Each plateau is the best loss of its class", on_the_ladder, _plateaus, "t1", "end"),
    claim("ISA:order", "Features are acquired in the order of their importance", on_the_ladder, _order, "t*"),
    claim("ISA:nearest", "On plateau j the model predicts as class j", _predicts, _nearest, "plateau *"),
    claim(
        "ISA:competition", "On plateau 1 all heads attend to the most important group", several_heads, _competition, "plateau 1"
    ),
    claim("ISA:cooperation", "Heads then part between t_1 and t_2 and divide the groups", _splitting, _cooperation, "t1", "t2"),
    claim("ISA:symmetric", "Equal heads move as one head", _equal_start, _one_head, "start", "end"),
    claim("ISA:stays", "Equal heads never leave plateau 1", _equal_ladder, _stays, "t1", "end"),
    claim("ISA:head-limit", "H heads end on plateau min(H, k)", on_the_ladder, _reachable, "end"),
)
