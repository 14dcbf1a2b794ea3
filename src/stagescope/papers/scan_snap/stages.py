"""The stages of scan and snap on class-averaged attention [SnS:stages].

onset   common tokens have lost 2 % of the attention they started with
winner  the strongest distinct token has 1.25 times the attention of the strongest common one
peak    attention moves fastest
slow    after the peak, attention moves at less than 10 % of its peak speed
snap    from here on attention is almost frozen: it has gone three quarters of the way that it goes in ten times the time
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import stdtrit

from stagescope.detect.events import crossing, peak, top
from stagescope.detect.stage import Event, Stage, Stages
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.observables import ClassAttention

NAMES = ("onset", "winner", "peak", "slow", "snap")


@dataclass(frozen=True)
class Averages:
    """Curves averaged over classes, at the frames of a run."""

    time: np.ndarray
    common_mass: np.ndarray
    top_distinct: np.ndarray
    top_common: np.ndarray
    speed: np.ndarray
    behind: np.ndarray  # share of the way to ten times this time that attention has gone
    moved: np.ndarray  # share of attention that is on other tokens than at the start

    @classmethod
    def of(cls, curves: ClassAttention) -> "Averages":
        names = ("common_mass", "top_distinct", "top_common", "speed")
        means = {name: curves.mean(getattr(curves, name)) for name in names}
        return cls(time=curves.time, behind=curves.behind, moved=curves.moved, **means)


def detect(
    curves: Averages,
    *,
    moves: bool,
    winners: Sequence[str],
    clock: str,
    status: str,
    replicas: Sequence[Averages] = (),
) -> Stages:
    """Stages from class-averaged curves over the run's clock.

    `moves` is False where attention changed by rounding only; `winners` names the strongest distinct token of each class.
    `replicas` are the curves of the same descent on other batches: their spread is the interval of an event.
    """
    events = find(curves, moves)
    if replicas:
        replica_events = [find(replica, moves) for replica in replicas]
        events = {
            name: _spread(event, [replica[name] for replica in replica_events], curves.time) for name, event in events.items()
        }
    facts: dict[str, Any] = {"moved": moves, "moved_share": float(curves.moved[-1]), "behind_share": float(curves.behind[-1])}
    if moves and peak(curves.time, curves.speed) is not None:
        facts["speed_over_peak"] = float(curves.speed[-1] / curves.speed.max())
    reasons = {name: _why(name, event, curves, moves, clock) for name, event in events.items() if event.time is None}
    return Stages.of(status, clock, events, _stages(events, curves, winners, facts), reasons)


def find(curves: Averages, moves: bool = True) -> dict[str, Event]:
    """The events on some curves, each with the interval that recording and solver leave."""
    events: dict[str, Event] = {name: Event.missing() for name in NAMES}
    time, mass = curves.time, curves.common_mass
    if mass[0] > 0:
        level, error = (1 - LIMITS.onset_loss) * mass[0], LIMITS.solver * mass[0]
        events["onset"] = crossing(time, mass, level, rising=False, error=error, how="loss of common mass")
        lead = curves.top_distinct - LIMITS.winner_ratio * curves.top_common
        events["winner"] = crossing(time, lead, 0.0, rising=True, error=LIMITS.solver, how="lead of the strongest token")
    highest = peak(time, curves.speed) if moves else None
    if highest is None:
        return events
    slow, error = LIMITS.slow_speed * highest[1], LIMITS.solver * highest[1]
    events["peak"] = top(time, curves.speed, error=error, how="largest speed")
    after = float(max(highest[0], time[int(np.argmax(curves.speed))]))
    events["slow"] = crossing(time, curves.speed, slow, rising=False, error=error, after=after, how="speed over its peak")
    events["snap"] = _snap(curves, after)
    return events


def _snap(curves: Averages, after: float) -> Event:
    """From when on to the end most of the way lies behind, if attention has moved materially since the start."""
    time, label = curves.time, "share of the way that lies behind"
    frozen = (curves.behind >= LIMITS.snap_behind) & (curves.moved >= LIMITS.material) & (time >= after)
    if not frozen[-1]:
        return Event.missing(how=label)
    moving = np.flatnonzero(~frozen)
    begin = float(time[moving[-1]]) if moving.size else after
    level = LIMITS.snap_behind
    return crossing(time, curves.behind, level, rising=True, error=LIMITS.solver, after=max(begin, after), how=label)


def _spread(event: Event, replicas: Sequence[Event], time: np.ndarray) -> Event:
    """The event with the 95 % interval that its spread over replicas gives; one not reached there counts as at the end."""
    if event.time is None:
        return event
    times = [
        replica.time if replica.time is not None else float(time[0] if replica.state == "at the start" else time[-1])
        for replica in replicas
    ]
    half = float(stdtrit(len(times) - 1, 0.975) * np.std(times, ddof=1))
    low, high = max(float(time[0]), event.time - half), min(float(time[-1]), event.time + half)
    return replace(event, low=low, high=high, how=f"{event.how}, {len(times)} other batches")


def _why(name: str, event: Event, curves: Averages, moves: bool, clock: str) -> str:
    """Why an event has no time."""
    end = f"by {clock}={curves.time[-1]:.4g}"
    if event.state == "at the start":
        return "it holds at the start already" if name != "peak" else "attention moves fastest at the start"
    if name in ("onset", "winner") and not curves.common_mass[0] > 0:
        return "there are no common tokens"
    if name == "onset":
        share = curves.common_mass.min() / curves.common_mass[0]
        return f"attention on common tokens was never below {share:.1%} of its start {end}"
    if name == "winner":
        best = float(np.max(curves.top_distinct / curves.top_common))
        return f"the strongest distinct token reached {best:.3g} times the strongest common one {end}"
    if not moves:
        return "attention never moved"
    if peak(curves.time, curves.speed) is None:
        return f"attention was still accelerating {end}"
    if name == "slow":
        return f"the attention speed fell to {curves.speed[-1] / curves.speed.max():.1%} of its peak {end}"
    if curves.moved[-1] < LIMITS.material:
        return f"only {curves.moved[-1]:.2g} of all attention has moved {end}"
    return f"attention has gone {curves.behind[-1]:.1%} of the way to ten times this time {end}"


def _stages(
    events: Mapping[str, Event], curves: Averages, winners: Sequence[str], at_end: Mapping[str, Any]
) -> tuple[Stage, ...]:
    """Uniform until onset or peak, whichever is first; scan until the snap; then snapped. `at_end` are facts of the last one."""
    time = curves.time
    first, end = float(time[0]), float(time[-1])
    stage = partial(stage_of, time, {"common mass": curves.common_mass}, at_end)

    times = [first if event.state == "at the start" else event.time for event in (events["onset"], events["peak"])]
    begun = [moment for moment in times if moment is not None]
    if not begun:
        return (stage("uniform", first, None),)
    begin, snap = min(begun), events["snap"].time
    stages = [stage("uniform", first, begin)]
    if curves.top_common[0] > 0:
        ratio = curves.top_distinct / np.where(curves.top_common > 0, curves.top_common, np.nan)
        lead = float(np.interp(end if snap is None else snap, time, ratio))
        finite_lead = lead if np.isfinite(lead) else None
        stages.append(stage("scan", begin, snap, f", distinct/common {lead:.3g}", distinct_over_common=finite_lead))
    else:
        stages.append(stage("scan", begin, snap))
    if snap is not None:
        named = list(winners[:3])
        listed = ", ".join([*named, "..."] if len(winners) > len(named) else named)
        stages.append(stage("snapped", snap, None, f"; strongest tokens {listed}", winners=named, classes=len(winners)))
    return lasting(stages)


def stage_of(
    time: np.ndarray,
    curves: Mapping[str, np.ndarray],
    at_end: Mapping[str, Any],
    name: str,
    start: float,
    stop: float | None,
    note: str = "",
    **facts: Any,
) -> Stage:
    """A stage with what the curves are where it begins and where it ends; `at_end` are facts of the one without an end."""
    sentences, ends = [], {}
    for label, curve in curves.items():
        before, after = map(float, np.interp((start, time[-1] if stop is None else stop), time, curve))
        sentences.append(f"{label} {before:.3f} -> {after:.3f}")
        key = label.replace(" ", "_")
        ends |= {f"{key}_start": before, f"{key}_stop": after}
    return Stage(name, start, stop, ", ".join(sentences) + note, facts={**ends, **facts, **(at_end if stop is None else {})})


def lasting(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Without those that end where they begin."""
    return tuple(stage for stage in stages if stage.stop is None or stage.stop > stage.start)
