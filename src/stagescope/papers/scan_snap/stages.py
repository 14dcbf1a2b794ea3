"""The stages of scan and snap on class-averaged attention [SnS:stages].

onset   common tokens have lost 2 % of the attention they started with
winner  the strongest distinct token has 1.25 times the attention of the strongest common one
peak    attention moves fastest
snap    after the peak, attention moves at less than 10 % of its peak speed
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.detect.events import first_crossing, peak
from stagescope.detect.stage import Stage, Stages


@dataclass(frozen=True)
class EventLevels:
    """Levels at which the events happen; those of the independent implementation, so that times can be compared."""

    onset_loss: float = 0.02  # share of their first attention that common tokens have lost at `onset`
    winner_ratio: float = 1.25  # attention of the strongest distinct token over that of the strongest common one at `winner`
    snap_speed: float = 0.10  # speed over its peak at `snap`: one order of magnitude slower


LEVELS = EventLevels()


def detect(
    time: np.ndarray,
    common_mass: np.ndarray,
    top_distinct: np.ndarray,
    top_common: np.ndarray,
    speed: np.ndarray,
    *,
    moved: bool,
    winners: Sequence[str],
    clock: str,
    status: str,
) -> Stages:
    """Stages from class-averaged curves over the run's clock.

    `moved` is False where attention changed by rounding only; `winners` names the strongest distinct token of each class.
    """
    events: dict[str, float | None] = dict.fromkeys(("onset", "winner", "peak", "snap"))
    notes: dict[str, str] = {}
    end = f"by {clock}={time[-1]:.4g}"
    if common_mass[0] > 0:
        level = (1 - LEVELS.onset_loss) * common_mass[0]
        events["onset"] = first_crossing(time, common_mass, level, rising=False)
        events["winner"] = first_crossing(time, top_distinct - LEVELS.winner_ratio * top_common, 0.0, rising=True)
        notes["onset"] = f"attention on common tokens was never below {common_mass.min() / common_mass[0]:.1%} of its start {end}"
        best = float(np.max(top_distinct / top_common))
        notes["winner"] = f"the strongest distinct token reached {best:.3g} times the strongest common one {end}"
    else:
        notes["onset"] = notes["winner"] = "there are no common tokens"
    top = peak(time, speed) if moved else None
    facts: dict[str, Any] = {"moved": moved}
    if top is None:
        notes["peak"] = f"attention was still accelerating {end}" if moved else "attention never moved"
        notes["snap"] = "the attention speed did not pass a peak"
    else:
        events["peak"] = top[0]
        after = float(max(top[0], time[int(np.argmax(speed))]))
        events["snap"] = first_crossing(time, speed, LEVELS.snap_speed * top[1], rising=False, after=after)
        facts["speed_over_peak"] = float(speed[-1] / top[1])
        notes["snap"] = f"the attention speed fell to {facts['speed_over_peak']:.1%} of its peak {end}"
    missing = {name: notes[name] for name, found in events.items() if found is None}
    ratio = top_distinct / np.where(top_common > 0, top_common, np.nan)
    return Stages(status, clock, events, _stages(events, time, common_mass, ratio, winners, facts), missing)


def _stages(
    events: dict[str, float | None],
    time: np.ndarray,
    common: np.ndarray,
    ratio: np.ndarray,
    winners: Sequence[str],
    at_end: dict[str, Any],
) -> tuple[Stage, ...]:
    """Uniform until onset or peak, whichever is first; scan until the snap; then snapped. `at_end` are facts of the last one."""
    first, end = float(time[0]), float(time[-1])

    def stage(name: str, start: float, stop: float | None, more: str = "", **facts: Any) -> Stage:
        before, after = (float(mass) for mass in np.interp((start, end if stop is None else stop), time, common))
        facts = {"common_mass_start": before, "common_mass_stop": after, **facts, **(at_end if stop is None else {})}
        return Stage(name, start, stop, f"common mass {before:.3f} -> {after:.3f}{more}", facts=facts)

    seen = [when for when in (events["onset"], events["peak"]) if when is not None]
    if not seen:
        return (stage("uniform", first, None),)
    begin, snap = min(seen), events["snap"]
    found = [stage("uniform", first, begin)]
    if np.isfinite(ratio[0]):
        lead = float(np.interp(end if snap is None else snap, time, ratio))
        shown = lead if np.isfinite(lead) else None
        found.append(stage("scan", begin, snap, f", distinct/common {lead:.3g}", distinct_over_common=shown))
    else:
        found.append(stage("scan", begin, snap))
    if snap is not None:
        named = list(winners[:3])
        listed = ", ".join([*named, "..."] if len(winners) > len(named) else named)
        found.append(stage("snapped", snap, None, f"; strongest tokens {listed}", winners=named, classes=len(winners)))
    return tuple(item for item in found if item.stop is None or item.stop > item.start)
