"""Statistics of a column over rows, with bootstrap intervals: the same rows give the same numbers."""

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from stagescope.sweeping.columns import CLOCKED, Column
from stagescope.sweeping.rows import Row

CONFIDENCE, RESAMPLES, MOST_AT_ONCE = 0.95, 2000, 500
Interval = tuple[float, float | None]
"""Lower and upper end; an upper end of None lies beyond the end of the runs."""


def summarised(column: Column, rows: Sequence[Row], confidence: float, *, of_mean: bool = True) -> dict[str, Any]:
    """What rows say in a column, those that failed left out and counted.

    A time that had not come by a run's end is later than every one that had: the median knows what to do with it, and is None
    where it is among them; a mean does not exist then. `of_mean`: with an interval of the mean, too.
    """
    readings = [column.reading(row) for row in rows]
    known = [reading.value for reading in readings if reading.lack is None]
    counts = {"rows": len(rows), "known": len(known), "failed": sum(reading.lack == "failed" for reading in readings)}
    if column.kind == "word":
        return {**counts, "shares": _shares(known, confidence)}
    beyond = sum(reading.lack in CLOCKED for reading in readings)
    return {**counts, "beyond": beyond, **_centre(known, beyond, confidence, of_mean)}


def _centre(known: Sequence[float], beyond: int, confidence: float, of_mean: bool) -> dict[str, Any]:
    """Mean and median with their intervals."""
    values = np.array([*known, *[math.inf] * beyond], dtype=float)
    if not len(values):
        return {"mean": None, "mean_interval": None, "median": None, "median_interval": None}
    found = {"median": _inside(float(median(values))), "median_interval": interval(values, median, confidence)}
    if beyond:
        return {"mean": None, "mean_interval": None, **found}
    around = interval(values, np.mean, confidence) if of_mean else None
    return {"mean": float(np.mean(values)), "mean_interval": around, **found}


def median(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Also of infinite ones: half-way between a number and infinity is infinity."""
    ordered, n = np.sort(values, axis=axis), values.shape[axis]
    return (np.take(ordered, (n - 1) // 2, axis) + np.take(ordered, n // 2, axis)) / 2


def _shares(known: Sequence[Any], confidence: float) -> dict[str, Any]:
    found = {}
    for value in dict.fromkeys(known):
        hits = tuple(each == value for each in known)
        found[str(value)] = {"share": sum(hits) / len(hits), "interval": _share_interval(hits, confidence)}
    return found


@lru_cache(4096)
def _share_interval(hits: tuple[bool, ...], confidence: float) -> Interval | None:
    return interval(np.array(hits, dtype=float), np.mean, confidence)


def interval(values: np.ndarray, statistic: Callable[..., Any], confidence: float) -> Interval | None:
    """Percentile bootstrap over the seeds of a cell, from the same draws for every cell; None of one row, or if all is beyond."""
    if len(values) < 2 or not math.isfinite(values.min()):
        return None
    if not np.any(values != values[0]):
        return float(values[0]), float(values[0])
    tail = (1 - confidence) / 2
    method = "linear" if np.all(np.isfinite(values)) else "higher"  # nothing lies half-way to infinity
    low, high = np.percentile(_resampled(values, statistic), [100 * tail, 100 * (1 - tail)], method=method).tolist()
    return (low, _inside(high)) if math.isfinite(low) else None


def _resampled(values: np.ndarray, statistic: Callable[..., Any]) -> np.ndarray:
    """The statistic of every resample; of many rows one after another, because all at once would fill the memory."""
    n = len(values)
    if n <= MOST_AT_ONCE:
        return statistic(values[resamples(n)], axis=1)
    draws = np.random.default_rng(0)
    return np.array([statistic(values[draws.integers(0, n, n)], axis=0) for _ in range(RESAMPLES)])


def _inside(value: float) -> float | None:
    return value if math.isfinite(value) else None


@cache
def resamples(n: int) -> np.ndarray:
    """The draws behind the bootstrap intervals of n rows: which row each resample takes, from a fixed generator."""
    found = np.random.default_rng(0).integers(0, n, (RESAMPLES, n))
    found.setflags(write=False)
    return found
