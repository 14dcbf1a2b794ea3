"""Columns of a sweep's table: how to read one from a row, why a row may have no value, and statistics over rows."""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from stagescope.claims.claim import Claim
from stagescope.sweeping.axes import Axis
from stagescope.sweeping.rows import Row, reached_end


@dataclass(frozen=True)
class Rules:
    """The rules in force: the version of each claim, and of the caller's own claims the digest of the module they are from."""

    versions: dict[str, int]
    sources: dict[str, str]

    @classmethod
    def of(cls, claims: Iterable[Claim], added: Iterable[Claim] = (), source: str | None = None) -> "Rules":
        added = tuple(added)
        return cls({claim.tag: claim.rules for claim in (*claims, *added)}, {claim.tag: source or "" for claim in added})

    def row(self) -> dict[str, Any]:
        """What a row says of the rules it was judged by."""
        return {"rules": self.versions, **({"own": self.sources} if self.sources else {})}


def version(row: Row, tag: str) -> tuple[int, str | None]:
    """The version of the rules by which a row was judged, and the module of a claim of the caller's own.

    A tag that a paper uses twice is numbered. Rows of version 0.1.0 say no version: it is 1.
    """
    rules = row.get("rules") or {}
    return rules.get(tag, rules.get(re.sub(r" \(\d+\)$", "", tag), 1)), (row.get("own") or {}).get(tag)


def newest_verdict(rows: Iterable[Row], tag: str) -> Callable[[Row], Any]:
    """Reads the verdict of a claim from the rows that were judged by the newest rules among them; None from the others.

    Of the caller's own modules the newest is the one that judged last: their digests have no order.
    """
    judged = [row for row in rows if tag in (row.get("verdicts") or {})]
    by_user = any(version(row, tag)[1] for row in judged)
    last = max(judged, key=lambda row: row.get("committed", 0) if by_user else version(row, tag)[0])
    newest = version(last, tag)
    return lambda row: (row.get("verdicts") or {}).get(tag) if version(row, tag) == newest else None


def outdated(row: Row, rules: Rules) -> bool:
    """Whether a row was judged when the claims, or the rules of one of them, were others than now."""
    judged_by = row.get("rules"), row.get("own") or {}
    return reached_end(row) and "verdicts" in row and judged_by != (rules.versions, rules.sources)


Kind = Literal["time", "number", "word"]
Lack = Literal["failed", "not reached", "in progress", "none"]
STAGES, LAST_STAGE = "stages", "last stage"
CLOCKED: tuple[Lack, ...] = ("not reached", "in progress")
"""What a longer run might have shown: the value is beyond the run's end."""


class Reading(NamedTuple):
    """What a row says in a column: a value, or why there is none.

    "failed": the run did not reach its end, and what it recorded on the way does not count. "not reached": a time that had
    not come by the run's end. "in progress": the stage had not ended by then. "none": the row has no such thing.
    """

    value: Any
    lack: Lack | None = None


@dataclass(frozen=True)
class Column:
    """A column by name. `part` of a row is where it belongs; a column that is none of a run's results has None.

    `horizon` is the flow time up to which its times are known, where that is not the end of the run.
    """

    name: str
    kind: Kind
    part: str | None
    read: Callable[[Row], Any]
    lacks: Callable[[Row], Lack] = lambda row: "none"
    horizon: float | None = None

    def reading(self, row: Row) -> Reading:
        """What counts of a row."""
        if self.part is not None and not reached_end(row):
            return Reading(None, "failed")
        value = self.read(row)
        return Reading(None, self.lacks(row)) if value is None else Reading(value)


def columns_of(axes: Sequence[Axis], rows: Sequence[Row]) -> dict[str, Column]:
    """Every column of a table, in its order; one name is one thing."""
    columns = [_row_column(axis.name, "word" if axis.kind == "categorical" else "number", "at", axis.name) for axis in axes]
    columns += [_row_column("seed", "number"), _row_column("status", "word"), _row_column("reason", "word")]
    for name in _names(rows, "events"):
        # an event of the run, or a later cycle of one, has not come yet; one that its model does not have will not
        columns.append(_part("time", "events", name, name, _lack("not reached", "events", name, name.rpartition(".")[0])))
    columns.append(Column(LAST_STAGE, "word", "stages", lambda row: row["stages"][-1] if row.get("stages") else None))
    columns.append(Column(STAGES, "word", "stages", lambda row: None if row.get("stages") is None else " > ".join(row["stages"])))
    columns += [_part("time", "starts", f"stage {name}", name, lambda row: "not reached") for name in _names(rows, "starts")]
    for name in _names(rows, "durations"):  # a stage that occurred and has no duration had not ended
        columns.append(_part("time", "durations", f"duration {name}", name, _lack("in progress", "durations", name)))
    verdicts = len(columns)
    columns += [_part("number", "numbers", name, name) for name in _names(rows, "numbers")]
    columns += _measure_columns(rows)
    columns += [Column("clock", "word", "run", _reader("clock")), Column("end", "number", "run", _reader("end"))]
    columns += [_row_column("seconds", "number"), _row_column("version", "word")]
    columns.append(Column("config", "word", None, lambda row: json.dumps(row["config"], sort_keys=True)))
    columns.append(_row_column("digest", "word"))
    names = {column.name for column in columns}
    named = {tag: f"claim {tag}" if tag in names else tag for tag in _names(rows, "verdicts")}
    columns[verdicts:verdicts] = [Column(name, "word", "verdicts", newest_verdict(rows, tag)) for tag, name in named.items()]
    table: dict[str, Column] = {}
    for column in columns:
        table.setdefault(column.name, column)
    return table


def _names(rows: Sequence[Row], part: str) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.get(part) or ()))


def _measure_columns(rows: Sequence[Row]) -> list[Column]:
    """What the study's own measures gave, as MEASURE.KEY: numbers and words. Lists and mappings are no columns."""
    values: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        for measure, numbers in (row.get("measures") or {}).items():
            for key, value in numbers.items():
                values.setdefault((measure, key), []).append(value)
    columns = []
    for (measure, key), column_values in values.items():
        kind: Kind = "word" if any(isinstance(value, str) for value in column_values) else "number"
        if not any(isinstance(value, list | dict) for value in column_values):
            columns.append(Column(f"{measure}.{key}", kind, "numbers", _reader("measures", measure, key)))
    return columns


def _reader(*names: str) -> Callable[[Row], Any]:
    """What a row has under names inside each other; None where it has nothing there."""

    def read(row: Any) -> Any:
        for name in names:
            row = (row or {}).get(name)
        return row

    return read


def _row_column(name: str, kind: Kind, *places: str) -> Column:
    return Column(name, kind, None, _reader(*places or (name,)))


def _part(kind: Kind, part: str, name: str, key: str, lacks: Callable[[Row], Lack] = lambda row: "none") -> Column:
    return Column(name, kind, part, _reader(part, key), lacks)


def _lack(lack: Lack, part: str, *names: str) -> Callable[[Row], Lack]:
    """Why there is no value in rows that have one of the names in a part of theirs."""
    return lambda row: lack if any(name in (row.get(part) or {}) for name in names) else "none"


CONFIDENCE, RESAMPLES, MOST_AT_ONCE = 0.95, 2000, 500
Interval = tuple[float, float | None]
"""Lower and upper end; an upper end of None lies beyond the end of the runs."""


def summarised(column: Column, rows: Sequence[Row], confidence: float, *, of_mean: bool = True) -> dict[str, Any]:
    """What rows say in a column, those that failed left out and counted.

    A time that had not come by a run's end is later than every one that had: the median knows what to do with it, and is None
    where it is among them; a mean does not exist then. `of_mean`: with an interval of the mean, too.
    """
    readings = [column.reading(row) for row in rows]
    known_values = [reading.value for reading in readings if reading.lack is None]
    counts = {"rows": len(rows), "known": len(known_values), "failed": sum(reading.lack == "failed" for reading in readings)}
    if column.kind == "word":
        shares = {}
        for value in dict.fromkeys(known_values):
            hits = tuple(entry == value for entry in known_values)
            shares[str(value)] = {"share": sum(hits) / len(hits), "interval": _share_interval(hits, confidence)}
        return {**counts, "shares": shares}
    beyond = sum(reading.lack in CLOCKED for reading in readings)
    values = np.array([*known_values, *[math.inf] * beyond], dtype=float)
    centre: dict[str, Any] = dict.fromkeys(("mean", "mean_interval", "median", "median_interval"))
    if len(values):
        centre |= {"median": _inside(float(median(values))), "median_interval": interval(values, median, confidence)}
        centre["mean"] = None if beyond else float(np.mean(values))
        if of_mean and not beyond:
            centre["mean_interval"] = interval(values, np.mean, confidence)
    return {**counts, "beyond": beyond, **centre}


def median(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Also of infinite ones: half-way between a number and infinity is infinity."""
    ordered, n = np.sort(values, axis=axis), values.shape[axis]
    return (np.take(ordered, (n - 1) // 2, axis) + np.take(ordered, n // 2, axis)) / 2


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
    n = len(values)
    if n <= MOST_AT_ONCE:
        statistics = statistic(values[resamples(n)], axis=1)
    else:  # many rows one after another, because all at once would fill the memory
        draws = np.random.default_rng(0)
        statistics = np.array([statistic(values[draws.integers(0, n, n)], axis=0) for _ in range(RESAMPLES)])
    low, high = np.percentile(statistics, [100 * tail, 100 * (1 - tail)], method=method).tolist()
    return (low, _inside(high)) if math.isfinite(low) else None


def _inside(value: float) -> float | None:
    return value if math.isfinite(value) else None


@cache
def resamples(n: int) -> np.ndarray:
    """The draws behind the bootstrap intervals of n rows: which row each resample takes, from a fixed generator."""
    draws = np.random.default_rng(0).integers(0, n, (RESAMPLES, n))
    draws.setflags(write=False)
    return draws
