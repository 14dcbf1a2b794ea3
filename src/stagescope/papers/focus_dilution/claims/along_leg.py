"""Rates along the predicted leg, where a run leaves a critical point before it has settled there [FD:ladder]."""

import math
from dataclasses import dataclass

import numpy as np

from stagescope.claims.comparison import Comparison, agreement
from stagescope.landscape.growth_fit import Rise, last_rise
from stagescope.landscape.saddle_path import Leg
from stagescope.papers.focus_dilution.evidence import Evidence

RISE = 10**0.5
"""By which factor what opens grows up to its event while its rate is measured; below, a start of 1e-3 still shows in W0."""


@dataclass(frozen=True)
class LegRate:
    """The largest local rate along a predicted leg, averaged while what opens at its end grows by `RISE` up to its event."""

    leg: Leg
    event: str
    rate: float
    error: float


def leg_rate(evidence: Evidence, r: int, rq: int) -> LegRate | None:
    """The rate along the predicted leg (r, rq); None where no path is predicted, or nothing opens on this leg.

    The flow is linear in the stacked blocks, E' = N E, also for a pattern that has joined the path. So it grows by a factor
    while the integral of the largest local rate is the logarithm of this factor.
    """
    path = evidence.predicted[0]
    leg = None if path is None else path.leg(f"({r},{rq})")
    if path is None or leg is None or leg.opens is None or leg.t_out is None or leg.opens not in path.rates:
        return None
    event = f"E{r + 1}" if leg.opens == "embedding" else f"Q{rq + 1}"
    before = path.time <= leg.t_out
    time = np.append(path.time[before], leg.t_out)
    rates = np.interp(time, path.time, path.rates[leg.opens])
    folds = np.concatenate([[0.0], np.cumsum(np.diff(time) * (rates[1:] + rates[:-1]) / 2)])
    needed = math.log(RISE)
    if folds[-1] <= needed:
        return None
    rate = needed / (leg.t_out - float(np.interp(folds[-1] - needed, folds, time)))
    at = path.events[event]
    half = 0.0 if at.low is None or at.high is None else (at.high - at.low) / 2
    return LegRate(leg, event, rate, rate * half / (leg.t_out - leg.t_in))


def _rise(evidence: Evidence, found: LegRate, r: int, rq: int) -> Rise | None:
    """The last rise of the run's next singular value up to the event: that of W0, or the root of that of WQ WK^T."""
    curves, when = evidence.curves, evidence.openings.get(found.event)
    values = curves.embedding_values[:, r] if found.leg.opens == "embedding" else curves.key_values[:, rq] ** 0.5
    if when is None:
        return None
    high = float(np.exp(np.interp(when, curves.time, np.log(np.maximum(values, np.finfo(float).tiny)))))
    return last_rise(curves.time, values, high / RISE, high)


def along_leg(evidence: Evidence, r: int, rq: int, tolerance: float) -> Comparison | None:
    """The rate at which the run opens its next direction against the rate along the predicted leg; None where there is none."""
    found = leg_rate(evidence, r, rq)
    rise = None if found is None else _rise(evidence, found, r, rq)
    if found is None or rise is None:
        return None
    shown = f"measured/predicted = {rise.rate / found.rate:.3f} along the leg ({r},{rq}) predicted from the start"
    reason = f"{shown}, over the last half-decade before {found.event}"
    return agreement(found.rate, rise.rate, tolerance * found.rate, reason, predicted_error=found.error, unit="1/t")
