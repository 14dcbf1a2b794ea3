"""The stages of scan and snap on a text, from held-out attention [SnS:text-stages].

prior    topical classes: common types have most attention, because the prior is learned through them; transformer: the loss
         falls below the least loss without a context, which is the entropy of the words
onset    after the prior, common types have lost 2 % of the attention they had then (topical classes)
doubled  distinct types have twice the attention they started with (topical classes)
peak     after the prior, attention moves most between two checkpoints, and twice as much as at the end
snap     after the peak, an eighth of the way since the prior is still to go; known where time triples after it
"""

from collections.abc import Mapping
from functools import partial

import numpy as np

from stagescope.detect.events import crossing, first_crossing
from stagescope.detect.noise import TWO_SIDED, variation
from stagescope.detect.stage import Event, Stage, Stages
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.stages import lasting, stage_of
from stagescope.papers.scan_snap.text.observables import Masses, Motion, TextAttention


def after_prior(curves: TextAttention) -> tuple[float | None, np.ndarray]:
    """When the prior is learned, and the intervals between checkpoints that begin after it.

    While the prior is learned, attention moves towards any token that can carry it. This motion is not part of the scan.
    """
    masses = curves.masses
    if masses is None:
        prior = first_crossing(curves.time, curves.loss, curves.prior_loss, rising=False)
    else:
        top = int(np.argmax(masses[0]))
        prior = float(curves.time[top]) if top < len(curves.time) - 1 else None
    later = np.zeros(len(curves.motion.start), dtype=bool) if prior is None else curves.motion.start >= prior
    return prior, np.flatnonzero(later)


def detect(curves: TextAttention, *, clock: str, status: str) -> Stages:
    """Stages from the curves of a run."""
    masses = curves.masses
    end = f"by {clock}={curves.time[-1]:.4g}"
    never = f"the loss did not fall below {curves.prior_loss:.3f}, the least loss without a context, {end}"
    notes = {"prior": never if masses is None else f"attention on common types was still rising {end}"}
    prior, later = after_prior(curves)
    events = {"prior": _prior(curves, masses, prior)}
    if masses is not None:
        events |= _shifts(curves.time, *masses, prior, notes, end)
    events |= _moves(curves.motion, later, notes, end)
    reasons = {name: notes[name] for name, event in events.items() if event.time is None}
    times = {name: event.time for name, event in events.items()}
    return Stages.of(status, clock, events, _stages(curves, masses, times, later), reasons)


def _prior(curves: TextAttention, masses: Masses | None, prior: float | None) -> Event:
    if prior is None:
        return Event.missing()
    if masses is None:
        return crossing(curves.time, curves.loss, curves.prior_loss, False, how="crossing; spacing of frames")
    curve = masses[0]
    # The 95 % half-width of the curve from the noise of one tenth of the run, as that of a random walk.
    error = TWO_SIDED * float(np.sqrt(variation(curves.time, curve)[-1] / LIMITS.late))
    times = curves.time[curve >= curve.max() - error]
    return Event(prior, float(times[0]), float(times[-1]), how="most attention on common types")


def _crossed(time: np.ndarray, curve: np.ndarray, level: float, *, rising: bool, after: float = 0.0) -> Event:
    """A crossing; its interval is from the noise that the curve has gathered since `after`."""
    gathered = variation(time, curve)
    error = TWO_SIDED * np.sqrt(np.maximum(gathered - np.interp(after, time, gathered), 0.0))
    return crossing(time, curve, level, rising, error=error, after=after, how="crossing; noise of the run")


def _shifts(
    time: np.ndarray, common: np.ndarray, distinct: np.ndarray, prior: float | None, notes: dict[str, str], end: str
) -> dict[str, Event]:
    """When attention has left common types, and when it has doubled on distinct ones."""
    onset = doubled = Event.missing()
    notes["onset"] = notes["doubled"] = "there are no such types" if prior is not None else "the prior was not learned"
    if prior is not None and common[0] > 0:
        onset = _crossed(time, common, (1 - LIMITS.onset_loss) * common.max(), rising=False, after=prior)
        lowest = common[time >= prior].min() / common.max()
        notes["onset"] = f"attention on common types fell to {lowest:.1%} of what they had at the prior {end}"
    if prior is not None and distinct[0] > 0:
        doubled = _crossed(time, distinct, 2 * distinct[0], rising=True, after=prior)
        notes["doubled"] = f"attention on distinct types reached {distinct.max() / distinct[0]:.2f} times its start {end}"
    return {"onset": onset, "doubled": doubled}


def _moves(motion: Motion, later: np.ndarray, notes: dict[str, str], end: str) -> dict[str, Event]:
    """When attention moves most, and when almost all of its motion is over."""
    peak = peak_of(motion, later)
    if peak.time is None:
        few = f"there are no two checkpoints after the prior {end}"
        flat = f"after the prior attention never moved {LIMITS.above:g} times as much between checkpoints as at the end {end}"
        notes["peak"] = flat if later.size else few
        notes["snap"] = "the motion of attention did not pass a peak"
        return {"peak": peak, "snap": Event.missing()}
    ahead, total = motion.ahead[later], float(motion.ahead[later].max())
    notes["snap"] = f"attention moved by {total:.3f} in all after the prior, less than {LIMITS.small:g}"
    if total < LIMITS.small:
        return {"peak": peak, "snap": Event.missing()}
    error = TWO_SIDED * late_noise(motion)
    snap = crossing(motion.start[later], ahead, LIMITS.ahead * total, False, error=error, after=peak.time, how="motion to come")
    # The share of the motion since the prior that is still to come when time is a third of the end.
    share = float(np.interp(motion.stop[-1] / LIMITS.longer, motion.start[later], ahead) / total)
    notes["snap"] = (
        f"while time tripled to the end, attention went {share:.0%} of its way since the prior, above {LIMITS.ahead:.0%}"
    )
    certain = snap.time is not None and LIMITS.longer * snap.time <= motion.stop[-1]
    return {"peak": peak, "snap": snap if certain else Event.missing()}


def late_noise(motion: Motion) -> float:
    """Mean variation between checkpoints in the last tenth: what attention still moves, by noise if it has snapped."""
    return float(np.mean(last_tenth(motion.variation)))


def last_tenth(values: np.ndarray, least: int = 1) -> np.ndarray:
    return values[-max(least, len(values) // LIMITS.late) :]


def peak_of(motion: Motion, later: np.ndarray) -> Event:
    """The largest variation after the prior; its interval holds all that the scatter at the end cannot tell from it."""
    if later.size < 2:
        return Event.missing()
    variations = motion.variation[later]
    top, scatter = int(np.argmax(variations)), float(np.std(last_tenth(variations, 2)))
    if variations[top] < LIMITS.above * late_noise(motion) or top == later.size - 1:
        return Event.missing()
    ties = later[variations >= variations[top] - TWO_SIDED * scatter]
    middle = float(motion.start[later[top]] + motion.stop[later[top]]) / 2
    return Event(middle, float(motion.start[ties[0]]), float(motion.stop[ties[-1]]), how="largest motion between checkpoints")


def _stages(
    curves: TextAttention, masses: Masses | None, events: Mapping[str, float | None], later: np.ndarray
) -> tuple[Stage, ...]:
    """The prior; the scan, from there to the snap; then snapped. The last stage has the motion after the prior as facts."""
    first = float(curves.time[0])
    variations = curves.motion.variation[later]
    at_end = {"last_motion": float(variations[-1]), "largest_motion": float(variations.max())} if variations.size else {}
    stage_curves = {"entropy": curves.entropy}
    if masses is not None:
        stage_curves |= {"common mass": masses[0], "distinct mass": masses[1]}

    stage = partial(stage_of, curves.time, stage_curves, at_end)
    prior, snap = events["prior"], events["snap"]
    if prior is None:
        return (stage("prior", first, None),)
    last = None if snap is None else max(snap, prior)
    stages = [stage("prior", first, prior), stage("scan", prior, last)]
    if last is not None:
        stages.append(stage("snapped", last, None))
    return lasting(stages)
