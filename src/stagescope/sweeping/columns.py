"""Columns of a sweep's table: what they are, how to read one from a row, and why a row may have no value."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from stagescope.sweeping.axes import Axis
from stagescope.sweeping.rows import Row, reached_end
from stagescope.sweeping.rules import newest_verdict

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
    found = [_whole(axis.name, "word" if axis.kind == "categorical" else "number", "at", axis.name) for axis in axes]
    found += [_whole("seed", "number"), _whole("status", "word"), _whole("reason", "word")]
    found += [_part("time", "events", name, name, _later(name)) for name in _names(rows, "events")]
    found.append(Column(LAST_STAGE, "word", "stages", lambda row: row["stages"][-1] if row.get("stages") else None))
    found.append(Column(STAGES, "word", "stages", lambda row: None if row.get("stages") is None else " > ".join(row["stages"])))
    found += [_part("time", "starts", f"stage {name}", name, lambda row: "not reached") for name in _names(rows, "starts")]
    found += [_part("time", "durations", f"duration {name}", name, _stays(name)) for name in _names(rows, "durations")]
    verdicts = len(found)
    found += [_part("number", "numbers", name, name) for name in _names(rows, "numbers")]
    found += _own(rows)
    found += [Column("clock", "word", "run", _reader("clock")), Column("end", "number", "run", _reader("end"))]
    found += [_whole("seconds", "number"), _whole("version", "word")]
    found.append(Column("config", "word", None, lambda row: json.dumps(row["config"], sort_keys=True)))
    found.append(_whole("digest", "word"))
    taken = {column.name for column in found}
    named = {tag: f"claim {tag}" if tag in taken else tag for tag in _names(rows, "verdicts")}
    found[verdicts:verdicts] = [Column(name, "word", "verdicts", newest_verdict(rows, tag)) for tag, name in named.items()]
    table: dict[str, Column] = {}
    for column in found:
        table.setdefault(column.name, column)
    return table


def _names(rows: Sequence[Row], part: str) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.get(part) or ()))


def _own(rows: Sequence[Row]) -> list[Column]:
    """What the study's own measures gave, as MEASURE.KEY: numbers and words. Lists and mappings are no columns."""
    values: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        for measure, found in (row.get("measures") or {}).items():
            for key, value in found.items():
                values.setdefault((measure, key), []).append(value)
    return [
        Column(
            f"{measure}.{key}",
            "word" if any(isinstance(v, str) for v in seen) else "number",
            "numbers",
            _reader("measures", measure, key),
        )
        for (measure, key), seen in values.items()
        if not any(isinstance(v, list | dict) for v in seen)
    ]


def _reader(*names: str) -> Callable[[Row], Any]:
    """What a row has under names inside each other; None where it has nothing there."""

    def read(row: Any) -> Any:
        for name in names:
            row = (row or {}).get(name)
        return row

    return read


def _whole(name: str, kind: Kind, *places: str) -> Column:
    return Column(name, kind, None, _reader(*places or (name,)))


def _part(kind: Kind, part: str, name: str, key: str, lacks: Callable[[Row], Lack] = lambda row: "none") -> Column:
    return Column(name, kind, part, _reader(part, key), lacks)


def _later(name: str) -> Callable[[Row], Lack]:
    """An event of the run, or a later cycle of one, has not come yet; one that its model does not have will not."""
    names = (name, name.rpartition(".")[0])
    return lambda row: "not reached" if any(each in (row.get("events") or {}) for each in names) else "none"


def _stays(name: str) -> Callable[[Row], Lack]:
    """A stage that occurred and has no duration had not ended."""
    return lambda row: "in progress" if name in (row.get("durations") or {}) else "none"
