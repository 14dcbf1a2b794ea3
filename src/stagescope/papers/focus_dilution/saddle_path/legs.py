"""Legs and events read off a walk along a saddle path."""

import numpy as np

from stagescope.landscape.saddle_path import Leg, Place
from stagescope.papers.focus_dilution.family import escape_matrices
from stagescope.papers.focus_dilution.ladder.points import NO_RATE
from stagescope.papers.focus_dilution.loss import TokenLoss
from stagescope.papers.focus_dilution.saddle_path.small_flow import SmallModel, Stopped
from stagescope.papers.focus_dilution.saddle_path.walk import BLOCKS, SETTLED, Walked
from stagescope.papers.focus_dilution.stages import passes

FOLLOWED = 1e6
"""How much longer than the path itself the small model's flow is followed to see whether it settles."""
POWER = 3.0
"""A flow whose speed falls more slowly than the inverse third power of time has no end at a finite place."""


def event_names(loss: TokenLoss) -> list[str]:
    """E_k and Q_k, as many as W0 and Phi have singular values."""
    (d, m), keys = loss.model.shapes["W0"], loss.model.shapes["WQ"][1]
    return [*(f"E{k + 1}" for k in range(min(d, m))), *(f"Q{k + 1}" for k in range(min(d, m, keys)))]


def event_times(walked: list[Walked], loss: TokenLoss) -> dict[str, float]:
    """When the k-th singular value of W0 or of Phi passes .1 on the path, as for runs [FD:stages]."""
    names, time = event_names(loss), np.concatenate([leg.time for leg in walked])
    found: dict[str, float] = {}
    for letter in "EQ":
        count = sum(name[0] == letter for name in names)
        values = np.vstack([_padded(_values(leg, letter), len(leg.time), count) for leg in walked])
        times = passes(time, values)
        found |= {f"{letter}{k + 1}": when for k, when in enumerate(times) if when is not None}
    return found


def _values(leg: Walked, letter: str) -> np.ndarray:
    """Singular values of W0 or Phi along a leg, those that the small model can have."""
    if leg.model is None:
        return np.zeros((len(leg.time), 0))
    small = leg.model.unpacked(leg.points)
    if letter == "E":
        return np.linalg.svd(small["W0"], compute_uv=False)
    return np.linalg.svd(leg.model.loss.model.scores(small), compute_uv=False)[:, : leg.model.rq]


def _padded(values: np.ndarray, frames: int, count: int) -> np.ndarray:
    out = np.zeros((frames, count))
    most = min(values.shape[1], count)
    out[:, :most] = values[:, :most]
    return out


def leg_of(walked: Walked, loss: TokenLoss) -> Leg:
    """A leg as it is reported."""
    state = _place(walked)
    local = None if walked.opened is None else float(walked.rates[-1][BLOCKS.index(walked.opened)])
    return Leg(
        label=walked.state.label,
        t_in=float(walked.time[0]),
        t_out=None if walked.opened is None else float(walked.time[-1]),
        loss=walked.loss,
        state=state,
        opens=walked.opened,
        rates=_rates(walked, loss) if state == "settled" and walked.opened else (),
        local_rate=local,
    )


def _rates(walked: Walked, loss: TokenLoss) -> tuple[float, ...]:
    law = escape_matrices(loss, walked.state.small)[walked.opened or "embedding"]
    return tuple(float(rate) for rate in np.linalg.svd(law, compute_uv=False) if rate > NO_RATE)


def _place(walked: Walked) -> Place:
    if walked.speed < SETTLED:
        return "settled"
    assert walked.model is not None
    return "at infinity" if _endless(walked.model, walked.points[-1], float(walked.time[-1])) else "passed"


def _endless(model: SmallModel, point: np.ndarray, t: float) -> bool:
    """Whether the small model's flow never settles: its speed falls by a power of time only."""
    times, speeds = [], []
    try:
        for now, vector in model.steps(point, 0.0, FOLLOWED * max(t, 1.0)):
            speed = float(np.linalg.norm(model.velocity(vector)[0]))
            if speed < SETTLED:
                break
            times.append(now)
            speeds.append(speed)
    except Stopped:
        return False
    late = np.array(times) > times[-1] / 10 if times else np.zeros(0, dtype=bool)
    if np.sum(late) < 3:
        return False
    slope = np.polyfit(np.log(np.array(times)[late]), np.log(np.array(speeds)[late]), 1)[0]
    return bool(slope > -POWER)
