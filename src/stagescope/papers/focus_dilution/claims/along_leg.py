"""The rate along the predicted leg, where a run leaves a critical point before it has settled there [FD:ladder]."""

import math
from dataclasses import dataclass

import numpy as np

from stagescope.claims.comparison import Comparison, agreement
from stagescope.landscape.linearise import last_rise
from stagescope.papers.focus_dilution.evidence import Evidence
from stagescope.papers.focus_dilution.stages import THRESHOLDS

RISE = 10**0.5
"""By which factor the next singular value of W0 grows up to its event while a rate is measured; below, a start of 1e-3 shows."""


@dataclass(frozen=True)
class LegRate:
    """The largest local rate along a predicted leg, averaged while the embedding direction that opens grows by `RISE`."""

    event: str
    rate: float
    error: float


def leg_rate(evidence: Evidence, r: int, rq: int) -> LegRate | None:
    """The rate along the predicted leg (r, rq); None where no path is predicted, or no embedding direction opens on it.

    The flow is linear in the stacked blocks, E' = N E, also for a pattern that has joined the path. So it grows by a factor
    while the integral of the largest local rate is the logarithm of this factor. The error is what the interval of the event
    does: it moves the stretch of the path over which the rate is averaged.
    """
    path = evidence.predicted[0]
    leg = None if path is None else path.leg(f"({r},{rq})")
    if path is None or leg is None or leg.opens != "embedding" or leg.t_out is None or not path.rates:
        return None
    event = f"E{r + 1}"
    ends = [end for end in (leg.t_out, path.events[event].low, path.events[event].high) if end is not None]
    found = [_mean(path.time, path.rates["embedding"], end) for end in ends]
    if found[0] is None:
        return None
    return LegRate(event, found[0], max(abs(rate - found[0]) for rate in found if rate is not None))


def _mean(time: np.ndarray, rates: np.ndarray, end: float) -> float | None:
    """ln `RISE` over the time in which the integral of the rates up to `end` is as much; None where it is never."""
    until = np.append(time[time < end], end)
    at = np.interp(until, time, rates)
    folds = np.concatenate([[0.0], np.cumsum(np.diff(until) * (at[1:] + at[:-1]) / 2)])
    left = folds[-1] - math.log(RISE)
    return math.log(RISE) / (end - float(np.interp(left, folds, until))) if left > 0 else None


def along_leg(evidence: Evidence, r: int, rq: int, tolerance: float) -> Comparison | None:
    """The rate at which the run opens its next embedding direction against that along the predicted leg; None without one."""
    found, curves = leg_rate(evidence, r, rq), evidence.curves
    if found is None or evidence.openings.get(found.event) is None:
        return None
    rise = last_rise(curves.time, curves.embedding_values[:, r], THRESHOLDS.level / RISE, THRESHOLDS.level)
    if rise is None:
        return None
    shown = f"measured/predicted = {rise.rate / found.rate:.3f} along the leg ({r},{rq}) predicted from the start"
    reason = f"{shown}, over the last half-decade before {found.event}"
    return agreement(found.rate, rise.rate, tolerance * found.rate, reason, predicted_error=found.error, unit="1/t")
