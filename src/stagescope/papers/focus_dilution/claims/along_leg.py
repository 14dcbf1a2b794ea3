"""Rates along the predicted leg, where a run leaves a critical point before it has settled there [FD:ladder]."""

import math
from dataclasses import dataclass

import numpy as np

from stagescope.claims.comparison import Comparison, agreement
from stagescope.landscape.growth_fit import Rise, last_rise
from stagescope.landscape.saddle_path import Leg, SaddlePath
from stagescope.papers.focus_dilution.evidence import Evidence

SPAN = 10**0.5
"""The rise over which a rate is measured, on the run and on the path: up to the size at which a pattern joins the path."""


@dataclass(frozen=True)
class LegRate:
    """The largest local rate along a predicted leg, averaged in time while what opens grows by `SPAN` up to `size`."""

    leg: Leg
    rate: float
    error: float
    size: float


def leg_rate(evidence: Evidence, r: int, rq: int) -> LegRate | None:
    """The rate along the predicted leg (r, rq); None where no path is predicted, or nothing opens on this leg."""
    path = evidence.predicted[0]
    leg = None if path is None else path.leg(f"({r},{rq})")
    if path is None or leg is None or leg.opens is None or leg.t_out is None or leg.opens not in path.rates:
        return None
    window = _window(path, leg.opens, leg.t_out)
    if window is None:
        return None
    time, rates = path.time[window], path.rates[leg.opens][window]
    rate = float(np.trapezoid(rates, time) / (time[-1] - time[0]))
    event = path.events[f"E{r + 1}" if leg.opens == "embedding" else f"Q{rq + 1}"]
    half = 0.0 if event.low is None or event.high is None else (event.high - event.low) / 2
    return LegRate(leg, rate, rate * half / (leg.t_out - leg.t_in), math.exp(path.sizes[leg.opens][window.stop - 1]))


def _window(path: SaddlePath, kind: str, before: float) -> slice | None:
    """Records over which the last pattern that joins before a time rises; a join is where the largest part outside falls."""
    sizes = path.sizes[kind]
    joins = np.flatnonzero((np.diff(path.time) == 0) & (np.diff(sizes) < 0) & (path.time[:-1] <= before))
    if not joins.size:
        return None
    last, earlier = int(joins[-1]), int(joins[-2]) + 1 if joins.size > 1 else 0
    lower = np.flatnonzero(sizes[earlier : last + 1] <= sizes[last] - math.log(SPAN))
    first = earlier + int(lower[-1]) if lower.size else last
    return slice(first, last + 1) if path.time[last] > path.time[first] else None


def _rise(evidence: Evidence, found: LegRate, r: int, rq: int) -> Rise | None:
    """The rise of the run's next singular value of W0, or of queries and keys, up to the size at which it joins the path.

    A pattern of size s has s / 2^.5 in W0, and s^2 / 2 in WQ WK^T.
    """
    curves = evidence.curves
    values = curves.embedding_values[:, r : r + 1] if found.leg.opens == "embedding" else curves.key_values[:, rq : rq + 1] ** 0.5
    high = found.size / 2**0.5
    return last_rise(curves.time, values[:, 0], high / SPAN, high) if values.size else None


def along_leg(evidence: Evidence, r: int, rq: int, tolerance: float) -> Comparison | None:
    """The rate at which the run opens its next direction against the rate along the predicted leg; None where there is none."""
    found = leg_rate(evidence, r, rq)
    rise = None if found is None else _rise(evidence, found, r, rq)
    if found is None or rise is None:
        return None
    shown = f"measured/predicted = {rise.rate / found.rate:.3f} along the leg ({r},{rq}) that is predicted from the start"
    reason = f"{shown}, while the {found.leg.opens} pattern grows by {SPAN:.2f} to {found.size:.2g}"
    return agreement(found.rate, rise.rate, tolerance * found.rate, reason, predicted_error=found.error, unit="1/t")
