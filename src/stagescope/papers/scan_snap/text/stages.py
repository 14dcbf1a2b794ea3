"""The stages of scan and snap on a text, from held-out attention [SnS:text-stages].

prior    topical classes: common types have most attention, for the prior is learned through them; else: the loss falls below
         the least one without a context, the entropy of what is predicted
onset    after it, common types have lost 2 % of the attention they started with (topical classes)
doubled  distinct types have twice the attention they started with (topical classes)
peak     after the prior, attention moves most between checkpoints
snap     from here to the end, attention moves less than .05 between checkpoints, and less than half of its peak
"""

from typing import TYPE_CHECKING

import numpy as np

from stagescope.detect.stage import Stage, Stages, first_crossing
from stagescope.papers.scan_snap.stages import ONSET_LOSS

if TYPE_CHECKING:
    from stagescope.papers.scan_snap.text.observables import Motion, TextAttention

FROZEN, FALLS = 0.05, 0.5
"""Attention is frozen if its total variation between checkpoints is below the first, and below the second x its largest."""


Masses = tuple[np.ndarray, np.ndarray]
"""Held-out attention on common and on distinct types, over the frames."""


def after_prior(curves: "TextAttention", masses: Masses | None) -> tuple[float | None, np.ndarray]:
    """When the prior is learned, and the stretches between checkpoints that begin after it.

    While the prior is learned attention moves for its sake, towards whatever token can carry it: that is no scan.
    """
    if masses is None:
        prior = first_crossing(curves.time, curves.loss, curves.prior_loss, rising=False)
    else:
        top = int(np.argmax(masses[0]))
        prior = float(curves.time[top]) if top < len(curves.time) - 1 else None
    later = np.zeros(len(curves.motion.start), dtype=bool) if prior is None else curves.motion.start >= prior
    return prior, np.flatnonzero(later)


def detect(curves: "TextAttention", masses: Masses | None, *, clock: str, status: str) -> Stages:
    """Stages from the curves of a run; `masses` are those on common and on distinct types, where there are such."""
    end = f"by {clock}={curves.time[-1]:.4g}"
    events: dict[str, float | None] = {}
    never = f"the loss never fell below {curves.prior_loss:.3f}, the least without a context, {end}"
    notes = {"prior": never if masses is None else f"attention on common types was still rising {end}"}
    events["prior"], later = after_prior(curves, masses)
    if masses is not None:
        events |= _shifts(curves.time, *masses, events["prior"], notes, end)
    events |= _moves(curves.motion, later, notes, end)
    missing = {name: notes[name] for name, found in events.items() if found is None}
    return Stages(status, clock, events, _stages(curves, masses, events), missing)


def _shifts(
    time: np.ndarray, common: np.ndarray, distinct: np.ndarray, prior: float | None, notes: dict[str, str], end: str
) -> dict[str, float | None]:
    """When attention has left common types and gone to distinct ones."""
    onset = doubled = None
    notes["onset"] = notes["doubled"] = "there are no such types" if prior is not None else "the prior was not learned"
    if prior is not None and common[0] > 0:
        onset = first_crossing(time, common, (1 - ONSET_LOSS) * common[0], rising=False, after=prior)
        notes["onset"] = f"attention on common types fell to {common[time >= prior].min() / common[0]:.1%} of its start {end}"
    if prior is not None and distinct[0] > 0:
        doubled = first_crossing(time, distinct, 2 * distinct[0], rising=True, after=prior)
        notes["doubled"] = f"attention on distinct types reached {distinct.max() / distinct[0]:.2f} times its start {end}"
    return {"onset": onset, "doubled": doubled}


def still(variation: np.ndarray) -> float:
    """The motion below which attention counts as frozen: a motion that is small all along is no snap."""
    return min(FROZEN, FALLS * float(np.max(variation)))


def _moves(motion: "Motion", later: np.ndarray, notes: dict[str, str], end: str) -> dict[str, float | None]:
    if not later.size:
        notes["peak"] = notes["snap"] = f"no two checkpoints after the prior {end}"
        return {"peak": None, "snap": None}
    top = int(later[np.argmax(motion.variation[later])])
    peak = float(motion.start[top] + motion.stop[top]) / 2
    moving = later[motion.variation[later] >= still(motion.variation[later])]
    of = f"{motion.variation[-1]:.3f} between checkpoints, where {motion.variation[top]:.3f} was its most,"
    notes["snap"] = f"attention still moves by {of} {end}"
    return {"peak": peak, "snap": float(motion.stop[moving[-1]]) if moving[-1] != later[-1] else None}


def _stages(curves: "TextAttention", masses: Masses | None, events: dict[str, float | None]) -> tuple[Stage, ...]:
    """The prior, the scan from there to the snap, then snapped."""

    def seen(start: float, stop: float) -> str:
        at = (start, stop)
        said = "entropy {:.3f} -> {:.3f}".format(*np.interp(at, curves.time, curves.entropy))
        for name, mass in zip(("common", "distinct"), masses or (), strict=False):
            said += ", {} mass {:.3f} -> {:.3f}".format(name, *np.interp(at, curves.time, mass))
        return said

    first, end = float(curves.time[0]), float(curves.time[-1])
    prior, snap = events["prior"], events["snap"]
    if prior is None:
        return (Stage("prior", first, None, seen(first, end)),)
    last = end if snap is None else max(snap, prior)
    found = [Stage("prior", first, prior, seen(first, prior)), Stage("scan", prior, snap and last, seen(prior, last))]
    if snap is not None:
        found.append(Stage("snapped", last, None, seen(last, end)))
    return tuple(stage for stage in found if stage.stop is None or stage.stop > stage.start)
