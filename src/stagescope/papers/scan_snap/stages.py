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
    moved: bool,
    winners: str,
    clock: str,
    status: str,
) -> Stages:
    """Stages from class-averaged curves over the run's clock; `moved` is False where attention changed by rounding only."""
    events: dict[str, float | None] = dict.fromkeys(("onset", "winner", "peak", "snap"))
    notes: dict[str, str] = {}
    end = f"by {clock}={time[-1]:.4g}"
    if common_mass[0] > 0:
        level = (1 - ONSET_LOSS) * common_mass[0]
        events["onset"] = first_crossing(time, common_mass, level, rising=False)
        events["winner"] = first_crossing(time, top_distinct - WINNER_RATIO * top_common, 0.0, rising=True)
        notes["onset"] = f"attention on common tokens was never below {common_mass.min() / common_mass[0]:.1%} of its start {end}"
        best = float(np.max(top_distinct / top_common))
        notes["winner"] = f"the strongest distinct token reached {best:.3g} x the strongest common one {end}"
    else:
        notes["onset"] = notes["winner"] = "there are no common tokens"
    still = not moved
    top = None if still else peak(time, speed)
    if top is None:
        notes["peak"] = "attention never moved" if still else f"attention was still accelerating {end}"
        notes["snap"] = "no peak of the attention speed was passed"
    else:
        events["peak"] = top[0]
        after = float(max(top[0], time[int(np.argmax(speed))]))
        events["snap"] = first_crossing(time, speed, SNAP_SPEED * top[1], rising=False, after=after)
        notes["snap"] = f"the attention speed fell to {speed[-1] / top[1]:.1%} of its peak {end}"
    missing = {name: notes[name] for name, found in events.items() if found is None}
    ratio = top_distinct / np.where(top_common > 0, top_common, np.nan)
    return Stages(status, clock, events, _stages(events, time, common_mass, ratio, winners), missing)


def _stages(
    events: dict[str, float | None], time: np.ndarray, common: np.ndarray, ratio: np.ndarray, winners: str
) -> tuple[Stage, ...]:
    """Uniform until attention is seen to move (onset or peak, whichever is first), scan until the snap, then snapped."""

    def mass(start: float, stop: float) -> str:
        before, after = np.interp((start, stop), time, common)
        return f"common mass {before:.3f} -> {after:.3f}"

    first, end = float(time[0]), float(time[-1])
    seen = [when for when in (events["onset"], events["peak"]) if when is not None]
    if not seen:
        return (Stage("uniform", first, None, mass(first, end)),)
    begin, snap = min(seen), events["snap"]
    last = end if snap is None else snap
    leads = f", distinct/common {float(np.interp(last, time, ratio)):.3g}" if np.isfinite(ratio[0]) else ""
    found = [Stage("uniform", first, begin, mass(first, begin)), Stage("scan", begin, snap, mass(begin, last) + leads)]
    if snap is not None:
        found.append(Stage("snapped", snap, None, f"{mass(snap, end)}; {winners}"))
    return tuple(stage for stage in found if stage.stop is None or stage.stop > stage.start)
