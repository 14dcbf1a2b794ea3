"""The numbers of a phase diagram: what it shows, lines of theory, its cells and their values, with intervals over seeds.

The last part has its sentences: why a cell has no value, where runs ended, what is missing, which clocks there are.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from stagescope.core.errors import InputError, unknown
from stagescope.core.spec import Json
from stagescope.readings.registry import studies
from stagescope.readings.study import Boundary
from stagescope.show.diagram_areas import Ruler
from stagescope.show.portrait import setting_text
from stagescope.sweeping.axes import Axis, Scale, Value
from stagescope.sweeping.columns import CLOCKED, CONFIDENCE, LAST_STAGE, Column, summarised
from stagescope.sweeping.plan import color_of
from stagescope.sweeping.rows import Row, outcome, reached_end
from stagescope.sweeping.table import PREFIX, Sweep, same
from stagescope.views.figure import CATEGORIES, Numbers

Ends = dict[str, list[float]]
"""By clock, the first and the last place where runs ended."""
AT_START = "there at the start"
START_PARTS = ("events", "starts")
"""Parts of a row whose times are moments: one at 0 had come before the run began."""


@dataclass(frozen=True)
class Selection:
    """Axes across and up, the column that gives the colour, and where it cuts the other axes."""

    x: str
    y: str | None
    color: str
    cut: Mapping[str, Value]


def select(sweep: Sweep, x: str, y: str | None, color: str | None, cut: Mapping[str, Any]) -> Selection:
    """The selection, checked; errors name what is wrong and the nearest thing that exists."""
    if not len(sweep):
        raise InputError(f"{sweep.folder}: the sweep has no row yet, so there is nothing to draw; continue it first")
    names = [axis.name for axis in sweep.axes]
    x, y = _axis_name(sweep, x), None if y is None else _axis_name(sweep, y)
    cut = {_axis_name(sweep, name): value for name, value in cut.items()}
    if x == y:
        raise InputError(f"x and y are both {x}; choose two axes, or x alone for a curve (axes: {', '.join(names)})")
    for name in cut:
        if name in (x, y):
            raise InputError(f"{name} is drawn as an axis, so it cannot be cut at {cut[name]}; leave one of the two out")
    return Selection(x, y, _color(sweep, color), {name: _match(sweep, name, value) for name, value in cut.items()})


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
    """The column given; by default that of a named sweep, else the last stage of runs, else how they ended."""
    if color is None:
        color = color_of(sweep.plan.study, sweep.plan.preset)  # the column that answers the question of a named sweep
        if color in sweep.columns:
            return color
        last = sweep.column_of(LAST_STAGE)
        return LAST_STAGE if any(last.reading(row).lack is None for row in sweep.rows) else "status"
    if color not in sweep.columns and len(sweep.failed) == len(sweep) and not color.startswith(PREFIX):
        raise InputError(f"every run of this sweep failed, so there is no {color}; --color status or --color reason shows how")
    sweep.column_of(color)
    return color


def _match(sweep: Sweep, name: str, value: Any) -> Value:
    """The value of an axis that a person means, who may have typed a number with fewer digits."""
    values = list(dict.fromkeys(row["at"][name] for row in sweep.rows))
    for candidate in values:
        if candidate == value or str(candidate).lower() == str(value).lower():
            return candidate
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise unknown(f"value of {name}", str(value), map(str, values)) from None
    numbers = [candidate for candidate in values if isinstance(candidate, int | float) and not isinstance(candidate, bool)]
    near = sorted(numbers, key=lambda candidate: abs(candidate - number))[:5]
    if near and same(near[0], number):
        return near[0]
    raise InputError(
        f"no cell has {name} = {value}; the nearest have {', '.join(f'{candidate:.6g}' for candidate in sorted(near))}"
    )


def find_boundary(sweep: Sweep, selection: Selection, name: str) -> Boundary:
    """The boundary of that name, refused where the study has none, or where the diagram has other axes."""
    boundaries = studies()[sweep.plan.study].boundaries if sweep.plan.study in studies() else {}
    if not boundaries:
        raise InputError(f"the study {sweep.plan.study} has no boundaries; leave --boundary {name} out")
    if name not in boundaries:
        raise unknown(f"boundary of {sweep.plan.study}", name, boundaries)
    boundary = boundaries[name]
    if {selection.x, selection.y} != set(boundary.axes):
        axes = selection.x if selection.y is None else f"{selection.x} and {selection.y}"
        raise InputError(
            f"the boundary {name} is a line over {' and '.join(boundary.axes)}, and this diagram is over {axes}; "
            f"draw one with --x {boundary.axes[0]} --y {boundary.axes[1]}"
        )
    return boundary


def boundary_line(sweep: Sweep, boundary: Boundary, name: str, cut: Mapping[str, Any]) -> Json:
    """The line in one panel: values of both axes by name, None where there is no such place, and its title.

    It has 80 points, at equal distances along its first axis.
    """
    axis = next(axis for axis in sweep.axes if axis.name == boundary.axes[0])
    ruler = Ruler(Scale(axis.kind, axis.values))
    values = [ruler.value(float(place)) for place in np.linspace(*ruler.reach, 80)]
    places = boundary.line({**sweep.plan.fixed, **cut}, values)
    return {"name": name, "title": boundary.title, boundary.axes[0]: values, boundary.axes[1]: places}


MOST_CATEGORIES = len(CATEGORIES) - 1
"""Colours that everybody can tell apart, but for the grey that rarer categories share."""
OTHER = "other"
EMPTY = "(none)"
"""How an empty text is shown, such as the reason of a run that did not fail."""
VERDICTS = ("confirmed", "violated", "inconclusive", "not applicable")


def numbers(sweep: Sweep, selection: Selection) -> Numbers:
    """Everything that is drawn; one panel for each value of the axes that are neither drawn nor cut.

    A cell has the counts of `Sweep.statistics` and `value`, the median or the most frequent word. Where that is None, `lack`
    says why, and `ends` where the runs ended that a longer run would add to. `start`: the event was there at the start.
    """
    axes = {axis.name: axis for axis in sweep.axes}
    column = sweep.column_of(selection.color)
    cuts = [(cut, rows) for cut, rows in _cuts(sweep, axes, selection, column) if rows]
    if not cuts:
        raise InputError(f"no cell has {', '.join(f'{name} = {value}' for name, value in selection.cut.items())} together")
    drawn_rows = [row for _, rows in cuts for row in rows]
    timed = column.kind == "time"
    panels = [{"at": cut, "cells": list(_cells(column, rows, selection))} for cut, rows in cuts]
    facts: Numbers = {
        "study": sweep.plan.study,
        "sweep": sweep.folder.resolve().name,
        "fixed": dict(fixed_text(sweep)),
        "x": _axis(axes[selection.x]),
        "y": _axis(axes[selection.y]) if selection.y is not None else None,
        "color": selection.color,
        "kind": column.kind,
        "clocks": clocks_of(drawn_rows) if timed else [],
        "at": dict(selection.cut),
        "confidence": CONFIDENCE,
        "lacks": _lacks(column, [cell for panel in panels for cell in panel["cells"]]),
        "notes": [*state_notes(sweep), *(clock_notes(drawn_rows) if timed else [])],
        "panels": panels,
    }
    if column.kind == "word":
        facts["categories"] = categories([column.reading(row).value for row in sweep.rows])
    return facts


def _axis(axis: Axis) -> Json:
    return {"name": axis.name, "kind": axis.kind, "values": list(axis.values)}


def _lacks(column: Column, cells: Sequence[Json]) -> dict[str, str]:
    """Legend of cells without a value; failures have their own reasons."""
    texts = {}
    for lack in (*CLOCKED, "none"):
        those = [cell for cell in cells if cell["lack"] == lack]
        if those:
            sentence = lack_text(lack, joined_ends(cell.get("ends", {}) for cell in those), none_word(column))
            several = lack in CLOCKED and any(cell["known"] for cell in those)
            texts[lack] = f"{sentence}, by the median seed" if several else sentence
    return texts


def _cuts(
    sweep: Sweep, axes: Mapping[str, Axis], selection: Selection, column: Column
) -> Iterator[tuple[dict[str, Value], list[Row]]]:
    """Rows by the values of the axes that are neither drawn nor cut, where those are of the grid."""
    free = [axis for name, axis in axes.items() if name not in (selection.x, selection.y, *selection.cut)]
    count = math.prod(len(axis.values) for axis in free)
    words = selection.y is None and column.kind == "word"
    limit = 6 if selection.y is not None else 1 if words else MOST_CATEGORIES
    if count > limit:
        longest = max(free, key=lambda axis: len(axis.values))
        kind = "panels" if selection.y is not None else "rows of dots for every name" if words else "curves"
        reason = f" where there is room for 1: {selection.color} is words, not a number" if words else f", more than {limit}"
        instead = f", or draw a map with --y {longest.name}" if selection.y is None else ""
        raise InputError(
            f"{' and '.join(axis.name for axis in free)} would give {count} {kind}{reason}; choose a value with "
            f"--at {longest.name}={longest.values[len(longest.values) // 2]}{instead}"
        )
    groups: dict[tuple[Value, ...], list[Row]] = {}
    for row in sweep.rows:
        if all(row["at"][name] == value for name, value in selection.cut.items()):
            groups.setdefault(tuple(row["at"][axis.name] for axis in free), []).append(row)
    for values in product(*(axis.values for axis in free)):
        cut = {axis.name: value for axis, value in zip(free, values, strict=True)}
        yield cut, groups.get(values, [])


def _cells(column: Column, rows: list[Row], selection: Selection) -> Iterator[Json]:
    names = [selection.x] if selection.y is None else [selection.x, selection.y]
    groups: dict[tuple[Value, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row["at"][name] for name in names), []).append(row)
    for place, members in groups.items():
        broken = Counter(outcome(row["status"], row["reason"]) for row in members if not reached_end(row))
        yield dict(zip(("x", "y"), place, strict=False)) | cell_of(column, members) | {"reasons": dict(broken.most_common())}


def cell_of(column: Column, rows: Sequence[Row]) -> Json:
    """What rows say together: counts, the median with its interval or the most frequent word, and why there is none."""
    entry = summarised(column, rows, CONFIDENCE, of_mean=False)
    counts = {name: entry[name] for name in ("rows", "known", "failed")} | {"beyond": entry.get("beyond", 0)}
    if column.kind == "word":
        shares = entry["shares"]
        commonest = max(shares, key=lambda name: (shares[name]["share"], name), default=None)
        return {**counts, "value": commonest, "lack": _lack(counts, []) if commonest is None else None, "shares": shares}
    beyond = [row for row in rows if column.reading(row).lack in CLOCKED]
    value = entry["median"]
    facts = {**counts, "value": value, "interval": entry["median_interval"], "mean": entry["mean"]}
    facts["lack"] = _lack(counts, [column.reading(row).lack for row in beyond]) if value is None else None
    if column.kind == "time":
        facts |= {"ends": known_until(column, beyond), "start": value == 0 and column.part in START_PARTS}
    return facts


def _lack(counts: Mapping[str, int], beyond: Sequence[str | None]) -> str:
    if beyond:
        return Counter(beyond).most_common(1)[0][0] or ""
    return "failed" if counts["failed"] == counts["rows"] else "none"


def disagree(cell: Json) -> bool:
    """Whether seeds of a cell say different things: other words, a value for some only, or some failed."""
    counts = (cell["known"], cell["beyond"], cell["failed"])
    kinds = sum(count > 0 for count in (*counts, cell["rows"] - sum(counts)))
    return kinds > 1 or len(cell.get("shares", ())) > 1


def categories(values: list[Any]) -> list[str]:
    """Verdicts in their own order, others by how many rows have them, so that every cut has the same colours.

    The rarest are one, called other.
    """
    names = ranked(values)
    return names if len(names) <= MOST_CATEGORIES else [*names[:MOST_CATEGORIES], OTHER]


def ranked(values: list[Any]) -> list[str]:
    """Words in the order of their colours."""
    counts = Counter(str(value) for value in values if value is not None)
    if counts.keys() <= set(VERDICTS):
        return [name for name in VERDICTS if name in counts]
    return sorted(counts, key=lambda name: (-counts[name], name))


def known_until(column: Column, rows: Iterable[Row]) -> Ends:
    """Up to where times of a column are known: where the runs ended, or the column's own horizon."""
    if column.horizon is not None:
        return {"t": [column.horizon] * 2}
    # Rows without an end or a clock are left out.
    return joined_ends({row["clock"]: [row["end"]] * 2} for row in rows if row.get("end") is not None and row.get("clock"))


def joined_ends(ends: Iterable[Ends]) -> Ends:
    ends_of_all: Ends = {}
    for one in ends:
        for clock, (low, high) in one.items():
            before = ends_of_all.setdefault(clock, [low, high])
            ends_of_all[clock] = [min(before[0], low), max(before[1], high)]
    return ends_of_all


def ends_text(ends: Ends) -> str:
    """`t = 4000`, `t = 800 to 4000`, `t = 800 or step 300`; without any end: `the end of the run`."""
    texts = []
    for clock, (low, high) in ends.items():
        span = f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
        texts.append(f"step {span}" if clock == "step" else f"{clock} = {span}")
    return " or ".join(texts) or "the end of the run"


def lack_text(lack: str, ends: Ends, none: str) -> str:
    """Why there is no value; `none` is the word for a row that has no such thing."""
    if lack == "not reached":
        return f"not reached by {ends_text(ends)}"
    if lack == "in progress":
        return f"in progress at the end ({ends_text(ends)})" if ends else "in progress at the end"
    return none if lack == "none" else lack


def none_word(column: Column) -> str:
    """What it means that a run which reached its end has no such thing."""
    return "no such stage" if column.part == "durations" else "not judged" if column.part == "verdicts" else "no value"


def state_notes(sweep: Sweep) -> list[str]:
    """What a reader must know of a sweep that is not whole."""
    sentences = []
    if sweep.missing:
        sentences.append(f"{len(sweep)} of {len(sweep) + sweep.missing} points: the sweep is not complete")
    if sweep.damaged and sweep.missing:
        count = len(sweep.damaged)
        sentences.append(f"{count} damaged row{'s' if count > 1 else ''} left out")
    return sentences


def clocks_of(rows: Iterable[Row]) -> list[str]:
    """What times are counted in: t before steps."""
    return sorted({row["clock"] for row in rows if row.get("clock")}, reverse=True)


def clock_notes(rows: Sequence[Row]) -> list[str]:
    """That times are counted in different units, and where, as far as one axis decides it."""
    clocks = clocks_of(rows)
    if len(clocks) < 2:
        return []
    for name in rows[0]["at"]:
        values_by_clock: dict[str, dict[Any, None]] = {clock: {} for clock in clocks}
        for row in rows:
            if row.get("clock"):
                values_by_clock[row["clock"]][row["at"][name]] = None
        if sum(map(len, values_by_clock.values())) == len({value for values in values_by_clock.values() for value in values}):
            units = [f"in {_unit(clock)} for {name} = {', '.join(map(str, values))}" for clock, values in values_by_clock.items()]
            return [f"times are {' and '.join(units)}: they do not compare"]
    return [f"times are in {' or in '.join(map(_unit, clocks))}, by run: they do not compare"]


def _unit(clock: str) -> str:
    return "steps" if clock == "step" else clock


def fixed_text(sweep: Sweep) -> list[tuple[str, str]]:
    """Options that stay and are not the study's defaults, and how far its runs go."""
    if sweep.plan.study not in studies():
        return []
    fields = studies()[sweep.plan.study].options.model_fields
    swept = next((axis.values for axis in sweep.axes if axis.name == "optimizer"), (sweep.plan.fixed.get("optimizer"),))
    length = {"until" if optimizer == "flow" else "steps" for optimizer in swept} if None not in swept else {"until", "steps"}
    texts = []
    for name, value in sweep.plan.fixed.items():
        default = fields[name].default if name in fields else None
        default = list(default) if isinstance(default, tuple) else default
        if value is not None and (value != default or name in length):
            texts.append((name, setting_text(value)))
    return texts
