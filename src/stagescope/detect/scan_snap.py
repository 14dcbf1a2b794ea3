"""The stages of scan and snap on class-averaged attention [SnS:stages].

onset   common tokens have lost 2 % of their attention
winner  the strongest distinct token has 1.25 times the attention of the strongest common one
peak    attention moves fastest
snap    after the peak, the speed is below 10 % of it
"""

import numpy as np

from stagescope.detect.stage import Stage, Stages, first_crossing, peak

ONSET_LOSS, WINNER_RATIO, SNAP_SPEED = 0.02, 1.25, 0.10


def detect(
    time: np.ndarray,
    common_mass: np.ndarray,
    top_distinct: np.ndarray,
    top_common: np.ndarray,
    speed: np.ndarray,
    *,
    clock: str,
    status: str,
) -> Stages:
    """Stages from five class-averaged curves over the run's clock."""
    events: dict[str, float | None] = dict.fromkeys(("onset", "winner", "peak", "snap"))
    notes: dict[str, str] = {}
    end = f"by {clock}={time[-1]:.4g}"
    if common_mass[0] > 0:
        level = (1 - ONSET_LOSS) * common_mass[0]
        events["onset"] = first_crossing(time, common_mass, level, rising=False)
        events["winner"] = first_crossing(time, top_distinct - WINNER_RATIO * top_common, 0.0, rising=True)
        notes["onset"] = f"common tokens kept {common_mass.min() / common_mass[0]:.1%} of their attention or more {end}"
        best = float(np.max(top_distinct / top_common))
        notes["winner"] = f"the strongest distinct token reached {best:.3g} x the strongest common one {end}"
    else:
        notes["onset"] = notes["winner"] = "there are no common tokens"
    top = peak(time, speed)
    if top is None:
        still = np.max(speed) <= 0
        notes["peak"] = "attention never moved" if still else f"attention was still accelerating {end}"
        notes["snap"] = "no peak of the attention speed was passed"
    else:
        events["peak"] = top[0]
        after = float(max(top[0], time[int(np.argmax(speed))]))
        events["snap"] = first_crossing(time, speed, SNAP_SPEED * top[1], rising=False, after=after)
        notes["snap"] = f"the attention speed fell to {speed[-1] / top[1]:.1%} of its peak {end}"
    missing = {name: notes[name] for name, found in events.items() if found is None}
    stages = _stages(events, time, common_mass, top_distinct / np.where(top_common > 0, top_common, np.nan), speed)
    return Stages(status, clock, events, stages, missing)


def _stages(
    events: dict[str, float | None], time: np.ndarray, common: np.ndarray, ratio: np.ndarray, speed: np.ndarray
) -> tuple[Stage, ...]:
    def at(curve: np.ndarray, when: float) -> float:
        return float(np.interp(when, time, curve))

    start, end = float(time[0]), float(time[-1])
    onset, snap = events["onset"], events["snap"]
    if onset is None:
        kept = f"common mass {common[0]:.3f} -> {common[-1]:.3f}"
        return (Stage("uniform", start, None, kept),)
    found = [Stage("uniform", start, onset, f"common mass {common[0]:.3f} -> {at(common, onset):.3f}")]
    if snap is not None and snap <= onset:  # it stopped moving before the common tokens had lost 2 %
        found.append(Stage("snapped", onset, None, f"common mass ends at {common[-1]:.3f}"))
        return tuple(found)
    last = end if snap is None else snap
    evidence = f"common mass {at(common, onset):.3f} -> {at(common, last):.3f}, distinct/common {at(ratio, last):.3g}"
    found.append(Stage("scan", onset, snap, evidence))
    if snap is not None:
        rest = f"speed {at(speed, snap):.2e} -> {speed[-1]:.2e}, common mass ends at {common[-1]:.3f}"
        found.append(Stage("snapped", snap, None, rest))
    return tuple(found)
