"""The numbers of a phase diagram: its cells and their values, with intervals over seeds."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from stagescope.diagrams.selection import Selection
from stagescope.diagrams.texts import (
    START_PARTS,
    clock_notes,
    clocks_of,
    fixed_text,
    joined,
    known_until,
    lack_text,
    none_word,
    state_notes,
)
from stagescope.errors import InputError
from stagescope.sweeping.axes import Axis, Value
from stagescope.sweeping.columns import CLOCKED, Column
from stagescope.sweeping.rows import Row, outcome, reached_end
from stagescope.sweeping.statistics import CONFIDENCE, summarised
from stagescope.sweeping.table import Sweep
from stagescope.views.figure import Numbers

MOST_PANELS = 6
MOST_SERIES = 7
MOST_CATEGORIES = 7
"""Colours that everybody can tell apart; rarer categories share a grey."""
OTHER = "other"
EMPTY = "(none)"
"""How an empty text is shown, such as the reason of a run that did not fail."""
VERDICTS = ("confirmed", "violated", "inconclusive", "not applicable")


def numbers(sweep: Sweep, chosen: Selection) -> Numbers:
    """Everything that is drawn; one panel for each value of the axes that are neither drawn nor cut.

    A cell has the counts of `Sweep.statistics` and `value`, the median or the most frequent word. Where that is None, `lack`
    says why, and `ends` where the runs ended that a longer run would add to. `start`: the event was there at the start.
    """
    axes = {axis.name: axis for axis in sweep.axes}
    column = sweep.column_of(chosen.color)
    cuts = [(at, rows) for at, rows in _cuts(sweep, axes, chosen, column) if rows]
    if not cuts:
        raise InputError(f"no cell has {', '.join(f'{name} = {value}' for name, value in chosen.at.items())} together")
    shown = [row for _, rows in cuts for row in rows]
    timed = column.kind == "time"
    panels = [{"at": at, "cells": list(_cells(column, rows, chosen))} for at, rows in cuts]
    found: Numbers = {
        "study": sweep.plan.study,
        "sweep": sweep.folder.resolve().name,
        "fixed": dict(fixed_text(sweep)),
        "x": _axis(axes[chosen.x]),
        "y": _axis(axes[chosen.y]) if chosen.y is not None else None,
        "color": chosen.color,
        "kind": column.kind,
        "clocks": clocks_of(shown) if timed else [],
        "at": dict(chosen.at),
        "confidence": CONFIDENCE,
        "lacks": _lacks(column, [cell for panel in panels for cell in panel["cells"]]),
        "notes": [*state_notes(sweep), *(clock_notes(shown) if timed else [])],
        "panels": panels,
    }
    if column.kind == "word":
        found["categories"] = categories([column.reading(row).value for row in sweep.rows])
    return found


def _axis(axis: Axis) -> dict[str, Any]:
    return {"name": axis.name, "kind": axis.kind, "values": list(axis.values)}


def _lacks(column: Column, cells: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Legend of cells without a value; failures have their own reasons."""
    found = {}
    for lack in (*CLOCKED, "none"):
        those = [cell for cell in cells if cell["lack"] == lack]
        if those:
            said = lack_text(lack, joined(cell.get("ends", {}) for cell in those), none_word(column))
            several = lack in CLOCKED and any(cell["known"] for cell in those)
            found[lack] = f"{said}, by the median seed" if several else said
    return found


def _cuts(
    sweep: Sweep, axes: Mapping[str, Axis], chosen: Selection, column: Column
) -> Iterator[tuple[dict[str, Value], list[Row]]]:
    """Rows by the values of the axes that are neither drawn nor cut, where those are of the grid."""
    free = [axis for name, axis in axes.items() if name not in (chosen.x, chosen.y, *chosen.at)]
    count = math.prod(len(axis.values) for axis in free)
    words = chosen.y is None and column.kind == "word"
    most = MOST_PANELS if chosen.y is not None else 1 if words else MOST_SERIES
    if count > most:
        many = max(free, key=lambda axis: len(axis.values))
        what = "panels" if chosen.y is not None else "rows of dots for every name" if words else "curves"
        why = f" where there is room for 1: {chosen.color} is words, not a number" if words else f", more than {most}"
        instead = f", or draw a map with --y {many.name}" if chosen.y is None else ""
        raise InputError(
            f"{' and '.join(axis.name for axis in free)} would give {count} {what}{why}; choose a value with "
            f"--at {many.name}={many.values[len(many.values) // 2]}{instead}"
        )
    groups: dict[tuple[Value, ...], list[Row]] = {}
    for row in sweep.rows:
        if all(row["at"][name] == value for name, value in chosen.at.items()):
            groups.setdefault(tuple(row["at"][axis.name] for axis in free), []).append(row)
    for values in product(*(axis.values for axis in free)):
        shown = {axis.name: value for axis, value in zip(free, values, strict=True)}
        yield shown, groups.get(values, [])


def _cells(column: Column, rows: list[Row], chosen: Selection) -> Iterator[dict[str, Any]]:
    by = [chosen.x] if chosen.y is None else [chosen.x, chosen.y]
    groups: dict[tuple[Value, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row["at"][name] for name in by), []).append(row)
    for place, members in groups.items():
        broken = Counter(outcome(row["status"], row["reason"]) for row in members if not reached_end(row))
        yield dict(zip(("x", "y"), place, strict=False)) | cell_of(column, members) | {"reasons": dict(broken.most_common())}


def cell_of(column: Column, rows: Sequence[Row]) -> dict[str, Any]:
    """What rows say together: counts, the median with its interval or the most frequent word, and why there is none."""
    entry = summarised(column, rows, CONFIDENCE, of_mean=False)
    counts = {name: entry[name] for name in ("rows", "known", "failed")} | {"beyond": entry.get("beyond", 0)}
    if column.kind == "word":
        shares = entry["shares"]
        most = max(shares, key=lambda name: (shares[name]["share"], name), default=None)
        return {**counts, "value": most, "lack": _lack(counts, []) if most is None else None, "shares": shares}
    beyond = [row for row in rows if column.reading(row).lack in CLOCKED]
    value = entry["median"]
    found = {**counts, "value": value, "interval": entry["median_interval"], "mean": entry["mean"]}
    found["lack"] = _lack(counts, [column.reading(row).lack for row in beyond]) if value is None else None
    if column.kind == "time":
        found |= {"ends": known_until(column, beyond), "start": value == 0 and column.part in START_PARTS}
    return found


def _lack(counts: Mapping[str, int], beyond: Sequence[str | None]) -> str:
    if beyond:
        return Counter(beyond).most_common(1)[0][0] or ""
    return "failed" if counts["failed"] == counts["rows"] else "none"


def disagree(cell: Mapping[str, Any]) -> bool:
    """Whether seeds of a cell say different things: other words, a value for some only, or some failed."""
    counts = (cell["known"], cell["beyond"], cell["failed"])
    kinds = sum(count > 0 for count in (*counts, cell["rows"] - sum(counts)))
    return kinds > 1 or len(cell.get("shares", ())) > 1


def categories(values: list[Any]) -> list[str]:
    """Verdicts in their own order, others by how many rows have them, so that every cut has the same colours.

    The rarest are one, called other.
    """
    found = ranked(values)
    return found if len(found) <= MOST_CATEGORIES else [*found[:MOST_CATEGORIES], OTHER]


def ranked(values: list[Any]) -> list[str]:
    """Words in the order of their colours."""
    counts = Counter(str(value) for value in values if value is not None)
    if counts.keys() <= set(VERDICTS):
        return [name for name in VERDICTS if name in counts]
    return sorted(counts, key=lambda name: (-counts[name], name))
