"""Incremental learning as a ladder: levels, order, classes, and the limit of H heads."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.detect.events import crossing
from stagescope.detect.noise import TWO_SIDED, delay, flutter
from stagescope.detect.stage import Event
from stagescope.papers.incremental import nulls
from stagescope.papers.incremental.claims.regimes import on_the_ladder, parts
from stagescope.papers.incremental.evidence import Evidence

SHARE = "of the step"


@dataclass(frozen=True)
class LearningThresholds:
    """When a feature is acquired."""

    acquired: float = 0.5
    """A feature is acquired if half of the true map is learned at the end: the model then has most of it. The time is that of
    half of what is learned: a class that lacks other features has a smaller map than the true one."""


LEARNING = LearningThresholds()


def _plateaus(evidence: Evidence) -> Comparison:
    """P1: where each plateau would end, less its level l_j, in shares of the step l_{j-1} - l_j; the worst of them.

    Above its level a run may still be falling, which its error counts. Below it by more than the error of the level it is no
    member of the class.
    """
    found = evidence.rests
    if not found:
        return Comparison(0.0, None, evidence.tolerance, None, evidence.no_rest(), unit=SHARE)
    rows, shown = [], []
    for plateau in found:
        gap, error = evidence.gap(plateau)
        limit = evidence.allowed(gap, plateau.j)
        rows.append((agreement(0.0, gap, limit, "", measured_error=error, unit=SHARE).holds, abs(gap) / limit, gap, limit, error))
        shown.append(
            f"plateau {plateau.j} at {plateau.loss:.4g}, level {plateau.level:.4g} (would end {gap:+.1%} ± {error:.1%} from it)"
        )
    verdicts = [row[0] for row in rows]
    holds = False if False in verdicts else None if None in verdicts else True
    _, _, gap, limit, error = max((row for row in rows if row[0] is holds), key=lambda row: row[1])
    return Comparison(0.0, gap, limit, holds, ", ".join(shown) + _unseen(evidence), measured_error=error, unit=SHARE)


def _unseen(evidence: Evidence) -> str:
    """The reachable plateaus that are not compared."""
    seen = [plateau.j for plateau in evidence.rests]
    missing = [str(j) for j in range(1, evidence.task.reachable + 1) if j not in seen]
    return f"; not compared: plateau {', '.join(missing)}" if missing else ""


def _order(evidence: Evidence) -> Comparison:
    """P1: features are half-way to their learned share in the order of importance.

    A share is the component of the model's map along the true one, 1 where they agree. It need not be half-way at t_j. Two
    features whose intervals overlap have no order.
    """
    expected, half = "in order of importance", LEARNING.acquired
    if evidence.learned is None:
        return Comparison(expected, None, "order", None, "the learned shares of features are not known for this model")
    when = [_acquired(evidence, share) for share in evidence.learned.T]
    shown = ", ".join(f"{i}: {event}" for i, event in enumerate(when, start=1))
    most = "shares of the true maps at the end " + " ".join(f"{top:.2f}" for top in evidence.learned[-1])
    known = [event for event in when if event.state == "reached"]
    if any(event.state == "at the start" for event in when):
        return Comparison(expected, None, "order", None, f"a feature is there at the start ({shown})")
    if len(known) < 2:
        few = f"fewer than two features were acquired ({shown}): {most}, {half:g} is needed"
        return Comparison(expected, None, "order", None, few + _fits_otherwise(evidence, len(known)))
    reason = f"features are half learned at {evidence.run.clock} = {shown}; {most}"
    ends = [(event.low or 0.0, event.high or 0.0) if event.state == "reached" else (np.inf, np.inf) for event in when]
    if any(later[1] < earlier[0] for i, earlier in enumerate(ends) for later in ends[i + 1 :]):
        return Comparison(expected, shown, "order", False, reason)
    clear = all(earlier[1] < later[0] for earlier, later in pairwise(ends[: len(known)]))
    return Comparison(expected, shown, "order", True if clear else None, reason + ("" if clear else "; intervals overlap"))


def _acquired(evidence: Evidence, share: np.ndarray) -> Event:
    """When half of what is learned of a feature in the end is learned; under steps, to within their noise."""
    time, level = evidence.time, float(share[-1]) / 2 if share[-1] >= LEARNING.acquired else np.inf
    if evidence.heads.smooth:
        return crossing(time, share, level, rising=True)
    found = crossing(time, share, level, rising=True, error=TWO_SIDED * flutter(time, share))
    if found.time is None or found.low is None or found.high is None or getattr(evidence.law, "batch", None) is None:
        return found
    half = delay(time, share, level, found.time)  # batches move the share as a random walk
    return replace(found, low=max(0.0, min(found.low, found.time - half)), high=max(found.high, found.time + half))


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
    found, wanted = evidence.rests, "class = stage"
    if not found:
        return Comparison(wanted, None, "exact", None, evidence.no_rest())
    frames = {p.j: evidence.frame(p.t) for p in found}
    classes = {j: evidence.heads.nearest(frame) for j, frame in frames.items()}
    if None in classes.values():
        return Comparison(wanted, None, "exact", None, "divergences from the classes are not known for this model")
    sure = {j: evidence.heads.clear(frame) for j, frame in frames.items()}
    shown = ", ".join(f"plateau {j}: class {near}{'' if sure[j] else ' (not clear)'}" for j, near in classes.items())
    wrong = any(sure[j] and j != near for j, near in classes.items())
    holds = False if wrong else True if all(sure.values()) else None
    return Comparison(wanted, shown, "exact", holds, shown + _unseen(evidence))


def _ordered(evidence: Evidence) -> Regime:
    if evidence.task.reachable < 2:
        return Regime(False, "there is one head or one group: only one feature can be learned", applies=False)
    return parts(evidence)


def _reachable(evidence: Evidence) -> Comparison:
    """P3: H heads end on plateau min(H, k)."""
    last, limit = evidence.task.reachable, evidence.tolerance
    low = float(evidence.heads.loss.min())
    below = float((low - evidence.levels[last]) / evidence.steps[last - 1])
    which = f"level {last} = min({evidence.task.heads}, {len(evidence.task.gains)})"
    reason = f"the least loss is {below:+.2%} of the step from {which}"
    error = (evidence.task.errors[last] if evidence.task.errors else 0.0) / float(evidence.steps[last - 1])
    if below + error < -evidence.allowed(below, last):
        return Comparison(0.0, below, limit, False, reason, measured_error=error, unit=SHARE)
    plateau = evidence.rested(last) if evidence.reached >= last else None
    if plateau is None:
        return Comparison(0.0, below, limit, None, f"{reason}; the run does not rest on plateau {last}", unit=SHARE)
    gap, error = evidence.gap(plateau)
    return agreement(0.0, gap, evidence.allowed(gap, last), reason, measured_error=error, unit=SHARE)


CLAIMS = (
    claim(
        "ISA:plateaus",
        "Each plateau is the best loss of its class",
        on_the_ladder,
        _plateaus,
        "t1",
        "end",
        kind="prediction",
        group="ISA:levels",
        null=(nulls.FADED, nulls.FROZEN),
        rules=2,
    ),
    claim(
        "ISA:order",
        "Features are acquired in the order of their importance",
        _ordered,
        _order,
        "t*",
        kind="pattern",
        null=(nulls.SWAPPED, nulls.FROZEN),
        rules=3,
    ),
    claim(
        "ISA:nearest",
        "On plateau j the model predicts as class j",
        _predicts,
        _nearest,
        "plateau *",
        kind="pattern",
        group="ISA:levels",
        null=(nulls.DIMMED,),
        rules=2,
    ),
    claim(
        "ISA:head-limit",
        "H heads end on plateau min(H, k)",
        parts,
        _reachable,
        "end",
        kind="prediction",
        null=(nulls.FADED,),
        rules=2,
    ),
)
