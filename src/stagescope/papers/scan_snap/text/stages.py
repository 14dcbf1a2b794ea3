"""The stages of scan and snap on a text, from held-out attention [SnS:text-stages].

prior    topical classes: common types have most attention, because the prior is learned through them; transformer: the loss
         falls below the least loss without a context, which is the entropy of the words
onset    after the prior, common types have lost 2 % of the attention they started with (topical classes)
doubled  distinct types have twice the attention they started with (topical classes)
peak     after the prior, attention moves most between two checkpoints
snap     from here to the end, attention moves by less than 0.05 between checkpoints, and by less than half of its peak
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.detect.events import first_crossing
from stagescope.detect.stage import Stage, Stages
from stagescope.papers.scan_snap.stages import LEVELS
from stagescope.papers.scan_snap.text.observables import Masses, Motion, TextAttention


@dataclass(frozen=True)
class Freeze:
    """Attention is frozen where its total variation between checkpoints is below both levels."""

    variation: float = 0.05  # as in the independent numbers; after a snap, attention still moves by 0.01 to 0.02 per 50 steps
    of_largest: float = 0.5  # relative to the largest variation after the prior: small motion throughout is no snap

    def level(self, variation: np.ndarray) -> float:
        """The variation below which attention is frozen, from all variations after the prior."""
        return min(self.variation, self.of_largest * float(np.max(variation)))


FREEZE = Freeze()


def after_prior(curves: TextAttention, masses: Masses | None) -> tuple[float | None, np.ndarray]:
    """When the prior is learned, and the intervals between checkpoints that begin after it.

    While the prior is learned, attention moves towards any token that can carry it. This motion is not part of the scan.
    """
    if masses is None:
        prior = first_crossing(curves.time, curves.loss, curves.prior_loss, rising=False)
    else:
        top = int(np.argmax(masses[0]))
        prior = float(curves.time[top]) if top < len(curves.time) - 1 else None
    later = np.zeros(len(curves.motion.start), dtype=bool) if prior is None else curves.motion.start >= prior
    return prior, np.flatnonzero(later)


def detect(curves: TextAttention, masses: Masses | None, *, clock: str, status: str) -> Stages:
    """Stages from the curves of a run; `masses` is the attention on common and on distinct types of topical classes."""
    end = f"by {clock}={curves.time[-1]:.4g}"
    events: dict[str, float | None] = {}
    never = f"the loss did not fall below {curves.prior_loss:.3f}, the least loss without a context, {end}"
    notes = {"prior": never if masses is None else f"attention on common types was still rising {end}"}
    events["prior"], later = after_prior(curves, masses)
    if masses is not None:
        events |= _shifts(curves.time, *masses, events["prior"], notes, end)
    events |= _moves(curves.motion, later, notes, end)
    missing = {name: notes[name] for name, found in events.items() if found is None}
    return Stages(status, clock, events, _stages(curves, masses, events, later), missing)


def _shifts(
    time: np.ndarray, common: np.ndarray, distinct: np.ndarray, prior: float | None, notes: dict[str, str], end: str
) -> dict[str, float | None]:
    """When attention has left common types, and when it has doubled on distinct ones."""
    onset = doubled = None
    notes["onset"] = notes["doubled"] = "there are no such types" if prior is not None else "the prior was not learned"
    if prior is not None and common[0] > 0:
        onset = first_crossing(time, common, (1 - LEVELS.onset_loss) * common[0], rising=False, after=prior)
        notes["onset"] = f"attention on common types fell to {common[time >= prior].min() / common[0]:.1%} of its start {end}"
    if prior is not None and distinct[0] > 0:
        doubled = first_crossing(time, distinct, 2 * distinct[0], rising=True, after=prior)
        notes["doubled"] = f"attention on distinct types reached {distinct.max() / distinct[0]:.2f} times its start {end}"
    return {"onset": onset, "doubled": doubled}


def _moves(motion: Motion, later: np.ndarray, notes: dict[str, str], end: str) -> dict[str, float | None]:
    """When attention moves most, and from when on it is frozen."""
    if not later.size:
        notes["peak"] = notes["snap"] = f"there are no two checkpoints after the prior {end}"
        return {"peak": None, "snap": None}
    top = int(later[np.argmax(motion.variation[later])])
    peak = float(motion.start[top] + motion.stop[top]) / 2
    moving = later[motion.variation[later] >= FREEZE.level(motion.variation[later])]
    last, largest = motion.variation[-1], motion.variation[top]
    notes["snap"] = f"attention still moves by {last:.3f} between checkpoints {end}; the largest motion was {largest:.3f}"
    return {"peak": peak, "snap": float(motion.stop[moving[-1]]) if moving[-1] != later[-1] else None}


def _stages(
    curves: TextAttention, masses: Masses | None, events: dict[str, float | None], later: np.ndarray
) -> tuple[Stage, ...]:
    """The prior; the scan, from there to the snap; then snapped. The last stage has the motion after the prior as facts."""
    first, end = float(curves.time[0]), float(curves.time[-1])
    moved = curves.motion.variation[later]
    at_end = {"last_motion": float(moved[-1]), "largest_motion": float(moved.max())} if moved.size else {}
    shown = {"entropy": curves.entropy}
    if masses is not None:
        shown |= {"common mass": masses[0], "distinct mass": masses[1]}

    def stage(name: str, start: float, stop: float | None) -> Stage:
        said: list[str] = []
        facts: dict[str, Any] = {}
        for what, curve in shown.items():
            before, after = (float(x) for x in np.interp((start, end if stop is None else stop), curves.time, curve))
            said.append(f"{what} {before:.3f} -> {after:.3f}")
            key = what.replace(" ", "_")
            facts |= {f"{key}_start": before, f"{key}_stop": after}
        return Stage(name, start, stop, ", ".join(said), facts={**facts, **(at_end if stop is None else {})})

    prior, snap = events["prior"], events["snap"]
    if prior is None:
        return (stage("prior", first, None),)
    last = None if snap is None else max(snap, prior)
    found = [stage("prior", first, prior), stage("scan", prior, last)]
    if last is not None:
        found.append(stage("snapped", last, None))
    return tuple(item for item in found if item.stop is None or item.stop > item.start)
