"""Incremental learning as a staircase: levels, order, classes, competing then cooperating heads, and how far H heads get."""

import numpy as np

from stagescope.claims.claim import Claim, Comparison, Regime
from stagescope.detect.stage import first_crossing
from stagescope.papers.incremental.evidence import Evidence, on_the_ladder, several_heads
from stagescope.papers.incremental.stages import ALIKE, APART, SPLIT

ACQUIRED = 0.2
"""A feature is acquired if this share of its true size is ever reached: when it passes half of the smallest such maximum."""
LONG = 10.0
"""A stay on plateau 1 is believed once this many t_1 have passed."""
ROUNDING = 1e-6
"""Heads that started equal and differ by no more than this at t_1 are parted by rounding later, if at all."""
SAME = {True: 1e-9, False: 1e-6}
"""How far two equal motions may drift apart, in shares of the whole ladder: exact steps (True), or a solver's tolerance."""


def _plateaus(evidence: Evidence) -> Comparison:
    """P1: the worst (loss - l_j) / (l_{j-1} - l_j) over the plateaus the run rested on.

    A run may still be on its way down to the level; below it by more than the level's error it is no member of the class.
    Too far above it the row is violated only if the run had settled, by the rule that decides whether a last plateau is
    rested on: heads that leave while the loss still falls towards the level show nothing of where it would have gone.
    """
    found = [plateau for j in range(1, evidence.reached + 1) if (plateau := evidence.rested(j)) is not None]
    if not found:
        why = "t_1 was not reached" if evidence.reached == 0 else f"t_{evidence.reached} was passed, but no plateau was rested on"
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
        shown += f"; left before it settled, still falling by a share of the step in a doubling of t: {', '.join(early)}"
    if within is False and worst < 0:
        shown += f"; more than {allowed[at]:.1%} below level {found[at].j} is no member of class {found[at].j}"
    return Comparison(0.0, worst, float(allowed[at]), within, shown + _unseen(evidence))


def _unseen(evidence: Evidence) -> str:
    """Which of the reachable plateaus a run says nothing of."""
    missing = [str(j) for j in range(1, evidence.task.reachable + 1) if j > evidence.reached or evidence.rested(j) is None]
    return f"; nothing is said of plateau {' and '.join(missing)}" if missing else ""


def _order(evidence: Evidence) -> Comparison:
    """P1: the learned shares of the features pass one common bar in the order of importance.

    A share is what the model's map has of the true one, 1 where they agree. It is no loss: it need not pass the bar at t_j.
    """
    expected = "in order of importance"
    if evidence.learned is None:
        return Comparison(expected, None, "order", None, "what this model has learned of each feature is not read off")
    highest = evidence.learned.max(axis=0)
    bar = float(np.min(highest, where=highest >= ACQUIRED, initial=1.0)) / 2
    when = [
        first_crossing(evidence.time, share, bar, rising=True) if top >= ACQUIRED else None
        for share, top in zip(evidence.learned.T, highest, strict=True)
    ]
    known = [t for t in when if t is not None]
    shown = ", ".join(f"{i}: {'never' if t is None else f'{t:.4g}'}" for i, t in enumerate(when, start=1))
    most = "largest shares of the true maps " + " ".join(f"{top:.2f}" for top in highest)
    if len(known) < 2:
        few = f"fewer than two features were acquired ({shown}): {most}, {ACQUIRED:g} is needed"
        return Comparison(expected, None, "order", None, few + _fits_otherwise(evidence, len(known)))
    ordered = all(t is None for t in when[len(known) :]) and bool(np.all(np.diff(known) > 0))
    reason = f"shares of the true maps pass {bar:.2f} at {evidence.run.clock} = {shown}; {most}"
    return Comparison(expected, shown, "order", ordered, reason)


def _fits_otherwise(evidence: Evidence, acquired: int) -> str:
    """Why a loss may have descended the ladder without the true maps."""
    if evidence.reached <= acquired:
        return ""
    return f"; t_{evidence.reached} was passed all the same, as the loss falls with any scores that predict as the class does"


def _predicts(evidence: Evidence) -> Regime:
    if not evidence.task.predicts:
        return Regime(False, "the flow predicts no tokens", applies=False)
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
    """P2: on plateau 1 all heads look at the most important group."""
    plateau = evidence.rested(1) if evidence.reached else None
    if plateau is None:
        return Comparison(f">= {ALIKE}", None, ALIKE, None, "plateau 1 was not reached, or not rested on")
    frame = evidence.frame(plateau.t)
    agree, tops = float(evidence.heads.agreement[frame]), evidence.heads.mass[frame].argmax(axis=1)
    groups = " ".join(str(top + 1) for top in tops)
    reason = f"on plateau 1 heads agree to {agree:.3f}, their top groups are {groups}"
    return Comparison(f">= {ALIKE}", agree, ALIKE, agree >= ALIKE and not tops.any(), reason)


def _splitting(evidence: Evidence) -> Regime:
    """No more heads than groups: others must share a group and stay alike."""
    base, heads, groups = several_heads(evidence), evidence.task.heads, len(evidence.task.gains)
    if not base.applies or not base.holds:
        return base
    return base if heads <= groups else Regime(False, f"{heads} heads on {groups} groups: some share one and stay alike")


def _cooperation(evidence: Evidence) -> Comparison:
    """P2: then they part between t_1 and t_2, and share the groups out."""
    last, wanted = evidence.task.reachable, f"<= {APART}"
    if evidence.reached < last:
        return Comparison(wanted, None, APART, None, f"t_{last} was not reached: heads have not shared the groups out yet")
    plateau = evidence.plateaus[last - 1]
    frame = len(evidence.time) - 1 if plateau is None else evidence.frame(plateau.t)
    tops = " ".join(str(top + 1) for top in evidence.heads.mass[frame].argmax(axis=1))
    agree, contrast = float(evidence.heads.agreement[frame]), float(evidence.heads.contrast[frame])
    alike = np.flatnonzero(evidence.heads.agreement >= ALIKE)
    onset = float(evidence.time[alike[-1]]) if alike.size else 0.0
    first, second = (float(t) for t in evidence.times[:2] if t is not None)
    parted = f"they part at {onset:.4g}" if alike.size else f"they never agree to {ALIKE}"
    reason = (
        f"on plateau {last} heads agree to {agree:.2f} with contrast {contrast:.2f} (>= {SPLIT}), top groups {tops}; {parted}"
    )
    holds = agree <= APART and contrast >= SPLIT and first <= onset <= second
    if not holds and agree < ALIKE and first <= onset <= second:
        return Comparison(wanted, agree, APART, None, f"{reason}: neither alike nor shared out")
    return Comparison(wanted, agree, APART, holds, f"{reason} (t_1 {first:.4g}, t_2 {second:.4g})")


def _equal_start(evidence: Evidence) -> Regime:
    if not evidence.identical or evidence.task.heads == 1:
        return Regime(False, "speaks of several heads that start exactly equal", applies=False)
    return Regime(True, "heads start exactly equal")


def _equal_ladder(evidence: Evidence) -> Regime:
    base = _equal_start(evidence)
    return on_the_ladder(evidence) if base.applies else base


def _one_head(evidence: Evidence) -> Comparison:
    """P2: the loss of equal heads is that of one head, with H times the value and its rates."""
    limit = SAME[evidence.run.spec["dynamics"]["type"] == "Descent"]
    if evidence.equal is None:
        return Comparison(0.0, None, limit, None, "there is no one-head motion for this model and optimiser")
    loss = evidence.run.series.get("loss", evidence.heads.loss)  # the mirror law records none
    together = evidence.spread <= ROUNDING
    apart = np.abs(loss - np.interp(evidence.run.time, evidence.equal.time, evidence.equal.loss))[together]
    gap = float(apart.max() / evidence.steps.sum())
    until = float(evidence.run.time[together][-1])
    reason = f"losses differ by at most {gap:.1e} of the ladder up to {evidence.run.clock} = {until:.4g}"
    return Comparison(0.0, gap, limit, gap <= limit, reason + _parted(evidence))


def _parted(evidence: Evidence) -> str:
    parted = first_crossing(evidence.run.time, evidence.spread, ROUNDING, rising=True)
    return "" if parted is None else f"; rounding parts the heads at {parted:.4g}"


def _stays(evidence: Evidence) -> Comparison:
    """P3: equal heads never leave plateau 1."""
    first, limit, end = evidence.times[0], evidence.tolerance, float(evidence.time[-1])
    if first is None or end < LONG * first:
        why = "t_1 was not reached" if first is None else f"the run ends before {LONG:g} t_1 = {LONG * first:.4g}"
        return Comparison(0.0, None, limit, None, why)
    gap = float((evidence.heads.loss[-1] - evidence.levels[1]) / evidence.steps[0])
    reason = f"the last loss is {gap:+.2%} of the step from level 1 at {evidence.run.clock} = {end:.4g}, {end / first:.0f} t_1"
    early = float(np.interp(first, evidence.run.time, evidence.spread))
    if early <= ROUNDING < float(evidence.spread.max()):
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
    Claim(
        tag="ISA:plateaus",
        statement="Each plateau is the best loss of its class",
        regime=on_the_ladder,
        compare=_plateaus,
        shown=("t1", "end"),
    ),
    Claim(
        tag="ISA:order",
        statement="Features are acquired in the order of their importance",
        regime=on_the_ladder,
        compare=_order,
        shown=("t*",),
    ),
    Claim(
        tag="ISA:nearest",
        statement="On plateau j the model predicts as class j",
        regime=_predicts,
        compare=_nearest,
        shown=("plateau *",),
    ),
    Claim(
        tag="ISA:competition",
        statement="On plateau 1 all heads look at the most important group",
        regime=several_heads,
        compare=_competition,
        shown=("plateau 1",),
    ),
    Claim(
        tag="ISA:cooperation",
        statement="Heads then part between t_1 and t_2 and share the groups out",
        regime=_splitting,
        compare=_cooperation,
        shown=("t1", "t2"),
    ),
    Claim(
        tag="ISA:symmetric",
        statement="Equal heads move as one head",
        regime=_equal_start,
        compare=_one_head,
        shown=("start", "end"),
    ),
    Claim(
        tag="ISA:stays", statement="Equal heads never leave plateau 1", regime=_equal_ladder, compare=_stays, shown=("t1", "end")
    ),
    Claim(
        tag="ISA:head-limit",
        statement="H heads end on plateau min(H, k)",
        regime=on_the_ladder,
        compare=_reachable,
        shown=("end",),
    ),
)
