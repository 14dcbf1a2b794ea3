"""The numbers of a phase diagram: which cells there are and what each says, with intervals over seeds."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from stagescope.errors import InputError, unknown
from stagescope.figures.figure import Numbers
from stagescope.sweeping.axes import Axis, Value
from stagescope.sweeping.rows import Row, reached_end
from stagescope.sweeping.table import CONFIDENCE, STAGES, Sweep

MOST_PANELS = 6
MOST_SERIES = 7
MOST_CATEGORIES = 7
"""Colours that everybody can tell apart; rarer categories share a grey."""
OTHER = "other"
EMPTY = "(none)"
"""How an empty text is shown, such as the reason of a run that did not fail."""
VERDICTS = ("confirmed", "violated", "inconclusive", "not applicable")
TYPED = 1e-5
"""Relative precision to which a person types a value."""


@dataclass(frozen=True)
class Asked:
    """What a diagram shows: axes across and up, the column that gives the colour, and where it cuts the other axes."""

    x: str
    y: str | None
    color: str
    at: Mapping[str, Value]


def asked(sweep: Sweep, x: str, y: str | None, color: str | None, at: Mapping[str, Any]) -> Asked:
    """The question, checked; errors name what is wrong and the nearest thing that exists."""
    if not len(sweep):
        raise InputError(f"{sweep.folder}: the sweep has no row yet, so there is nothing to draw; continue it first")
    names = [axis.name for axis in sweep.axes]
    x, y = _axis_name(sweep, x), None if y is None else _axis_name(sweep, y)
    at = {_axis_name(sweep, name): value for name, value in at.items()}
    if x == y:
        raise InputError(f"x and y are both {x}; choose two axes, or x alone for a curve (axes: {', '.join(names)})")
    for name in at:
        if name in (x, y):
            raise InputError(f"{name} is drawn as an axis, so it cannot be cut at {at[name]}; leave one of the two out")
    return Asked(x, y, _color(sweep, color), {name: _match(sweep, name, value) for name, value in at.items()})


def _axis_name(sweep: Sweep, name: str) -> str:
    """An axis as the sweep spells it; the command line may write init-scale for init_scale."""
    names = [axis.name for axis in sweep.axes]
    for spelled in (name, name.replace("-", "_")):
        if spelled in names:
            return spelled
    if name in sweep.columns:
        raise InputError(f"{name} is a result, not an axis of this sweep; axes: {', '.join(names)} (--color {name} shows it)")
    raise unknown("axis of this sweep", name, names)


def _color(sweep: Sweep, color: str | None) -> str:
    if color is None:
        return STAGES if any(value is not None for value in sweep.column(STAGES)) else "status"
    if color not in sweep.columns and len(sweep.failed) == len(sweep):
        raise InputError(f"every run of this sweep failed, so there is no {color}; --color status or --color reason shows how")
    sweep.reader(color)
    return color


def _match(sweep: Sweep, name: str, value: Any) -> Value:
    """The value of an axis that a person means, who may have typed a number with fewer digits."""
    known = _values(sweep, name)
    for each in known:
        if each == value or str(each).lower() == str(value).lower():
            return each
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise unknown(f"value of {name}", str(value), map(str, known)) from None
    numbers = [each for each in known if isinstance(each, int | float) and not isinstance(each, bool)]
    near = min(numbers, key=lambda each: abs(each - number), default=None)
    if near is not None and math.isclose(near, number, rel_tol=TYPED, abs_tol=1e-12):
        return near
    shown = sorted(sorted(numbers, key=lambda each: abs(each - number))[:5])
    raise InputError(f"no cell has {name} = {value}; the nearest have {', '.join(f'{each:.6g}' for each in shown)}")


def _values(sweep: Sweep, name: str) -> list[Value]:
    return list(dict.fromkeys(row["at"][name] for row in sweep.rows))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def numbers(sweep: Sweep, ask: Asked) -> Numbers:
    """Everything that is drawn; one panel for each value of the axes that are neither drawn nor cut."""
    axes = {axis.name: axis for axis in sweep.axes}
    column = sweep.column(ask.color)
    known = [value for value in column if value is not None]
    numeric = bool(known) and all(map(_is_number, known))
    panels = [
        {"at": at, "cells": list(_cells(sweep, rows, ask, numeric))} for at, rows in _cuts(sweep, axes, ask, numeric) if rows
    ]
    if not panels:
        raise InputError(f"no cell has {', '.join(f'{name} = {value}' for name, value in ask.at.items())} together")
    found: Numbers = {
        "study": sweep.plan.study,
        "sweep": sweep.folder.name,
        "x": _axis(axes[ask.x]),
        "y": _axis(axes[ask.y]) if ask.y is not None else None,
        "color": ask.color,
        "kind": "number" if numeric else "category",
        "absent": absent_word(sweep, ask.color),
        "clock": _clock(sweep, ask.color),
        "at": dict(ask.at),
        "confidence": CONFIDENCE,
        "panels": panels,
    }
    if not numeric:
        found["categories"] = categories(column)
    return found


def _axis(axis: Axis) -> dict[str, Any]:
    return {"name": axis.name, "kind": axis.kind, "values": list(axis.values)}


def _clock(sweep: Sweep, color: str) -> str | None:
    """What the numbers of an event or a stage are counted in; None for other columns, and where runs differ in it."""
    timed = color.startswith(("stage ", "duration ")) or any(color in (row.get("events") or {}) for row in sweep.rows)
    clocks = {row["clock"] for row in sweep.rows if row.get("clock")}
    return clocks.pop() if timed and len(clocks) == 1 else None


def absent_word(sweep: Sweep, color: str) -> str:
    """What it means that a run which reached its end has no value."""
    events = any(color in (row.get("events") or {}) for row in sweep.rows)
    return "not reached" if events else "no such stage" if color.startswith(("stage ", "duration ")) else "no value"


def _cuts(sweep: Sweep, axes: Mapping[str, Axis], ask: Asked, numeric: bool) -> Iterator[tuple[dict[str, Value], list[Row]]]:
    """Rows by the values of the axes that are neither drawn nor cut, where those are of the grid."""
    free = [axis for name, axis in axes.items() if name not in (ask.x, ask.y, *ask.at)]
    count = math.prod(len(axis.values) for axis in free)
    most = MOST_PANELS if ask.y is not None else MOST_SERIES if numeric else 1
    if count > most:
        many = max(free, key=lambda axis: len(axis.values))
        raise InputError(
            f"{' and '.join(axis.name for axis in free)} would give {count} {'curves' if ask.y is None else 'panels'}, more than "
            f"{most}; choose a value with --at {many.name}={many.values[len(many.values) // 2]}"
        )
    groups: dict[tuple[Value, ...], list[Row]] = {}
    for row in sweep.rows:
        if all(row["at"][name] == value for name, value in ask.at.items()):
            groups.setdefault(tuple(row["at"][axis.name] for axis in free), []).append(row)
    for values in product(*(axis.values for axis in free)):
        shown = {axis.name: value for axis, value in zip(free, values, strict=True)}
        yield shown, groups.get(values, [])


def _cells(sweep: Sweep, rows: list[Row], ask: Asked, numeric: bool) -> Iterator[dict[str, Any]]:
    part = replace(sweep, rows=tuple(rows))
    by = [ask.x] if ask.y is None else [ask.x, ask.y]
    groups: dict[tuple[Value, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row["at"][name] for name in by), []).append(row)
    color = ask.color if ask.color in part.columns else "reason"
    for entry in part.statistics(color, by):
        place = tuple(entry["at"].values())
        cell = dict(zip(("x", "y"), place, strict=False)) | _outcome(groups[place])
        yield cell | _said({} if color != ask.color else entry, numeric)


def _outcome(rows: list[Row]) -> dict[str, Any]:
    failed = [row for row in rows if not reached_end(row)]
    return {"rows": len(rows), "failed": len(failed), "reasons": dict(Counter(reason(row) for row in failed).most_common())}


def reason(row: Row) -> str:
    return f"{row['status']}: {row['reason']}" if row.get("reason") else str(row["status"])


def _said(entry: Mapping[str, Any], numeric: bool) -> dict[str, Any]:
    """Median with its interval, or the most frequent category with its share; None where no row has a value."""
    known = entry.get("known", 0)
    if numeric:
        value = entry.get("median")
        value = value if value is not None and math.isfinite(value) else None
        interval = entry.get("median_interval")
        interval = interval if interval is None or all(map(math.isfinite, interval)) else None
        return {
            "known": known if value is not None else 0,
            "value": value,
            "interval": interval,
            "mean": _finite(entry.get("mean")),
        }
    shares = entry.get("shares") or {}
    most = max(shares, key=lambda name: (shares[name]["share"], name), default=None)
    return {"known": known, "value": most, "shares": shares}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def categories(values: list[Any]) -> list[str]:
    """Verdicts in their own order, others by how many rows have them, so that every cut has the same colours.

    The rarest are one, called other.
    """
    counts = Counter(str(value) for value in values if value is not None)
    if counts.keys() <= set(VERDICTS):
        return [name for name in VERDICTS if name in counts]
    ranked = sorted(counts, key=lambda name: (-counts[name], name))
    return ranked if len(ranked) <= MOST_CATEGORIES else [*ranked[:MOST_CATEGORIES], OTHER]
