"""The page of a sweep: its table, what its cells say, and a viewer that draws any column over any axes (`viewer/diagram.js`)."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

import stagescope
from stagescope.core.spec import Json
from stagescope.readings.registry import studies, tags
from stagescope.show.bundle import Blocks, viewer_script, viewer_style
from stagescope.show.diagram_areas import Rect, Ruler, areas
from stagescope.show.diagram_numbers import (
    EMPTY,
    Selection,
    cell_of,
    clock_notes,
    clocks_of,
    disagree,
    fixed_text,
    known_until,
    lack_text,
    none_word,
    ranked,
    state_notes,
)
from stagescope.show.page import document, label, labels
from stagescope.show.portrait import run_command
from stagescope.sweeping.axes import Axis, Cell, Scale
from stagescope.sweeping.columns import CLOCKED, CONFIDENCE, Column, Interval
from stagescope.sweeping.rows import Row, outcome, reached_end
from stagescope.sweeping.table import Sweep

LACKS = (None, "failed", *CLOCKED, "none")
"""Why a cell has no value, by the number that travels; `viewer/sweep.js` has the same list.

To it 8 is added where seeds disagree, and 16 where the event was there at the start.
"""


def statistics(column: Column, cells: Sequence[Sequence[Row]], codes: Mapping[str, int], blocks: Blocks) -> Json:
    """What the cells say in a column; `codes` are the numbers of its words."""
    entries = [cell_of(column, rows) for rows in cells]
    states = [LACKS.index(one["lack"]) + 8 * disagree(one) + 16 * bool(one.get("start")) for one in entries]
    facts: Json = {"states": blocks.u8(np.array(states, np.uint8))}
    if column.kind == "word":
        values = np.array([codes.get(one["value"], -1) for one in entries], int)
        return facts | {"values": blocks.i32(values), "shares": _shares([one["shares"] for one in entries], codes, blocks)}
    values = np.array([one["value"] for one in entries], float)
    intervals = np.array([_ends(one["interval"]) for one in entries], float)
    some_interval = not np.all(np.isnan(intervals))
    return facts | {"values": blocks.f64(values), "intervals": blocks.f64(intervals) if some_interval else None}


def _ends(interval: Interval | None) -> tuple[float, float]:
    if interval is None:
        return np.nan, np.nan
    return interval[0], np.inf if interval[1] is None else interval[1]


def _shares(entries: Sequence[Json], codes: Mapping[str, int], blocks: Blocks) -> Json | None:
    """Cell, word, share and its interval, the largest first, where a cell has several words."""
    rows = [
        (cell, codes[word], one["share"], *_ends(one["interval"]))
        for cell, shares in enumerate(entries)
        if len(shares) > 1
        for word, one in sorted(shares.items(), key=lambda item: -item[1]["share"])
    ]
    return blocks.f64(np.array(rows, float)) if rows else None


def all_areas(sweep: Sweep, cells: Sequence[Cell], blocks: Blocks) -> list[Json]:
    """For every two axes the areas of all cells, each among those of its cut: how many each has, and where they lie."""
    rulers = [Ruler(Scale(axis.kind, axis.values)) for axis in sweep.axes]
    areas_of_panels = []
    for x, y in combinations(range(len(rulers)), 2):
        cuts: dict[Cell, list[Cell]] = {}
        for cell in cells:
            cuts.setdefault(tuple(value for i, value in enumerate(cell) if i not in (x, y)), []).append(cell)
        rects: dict[Cell, list[Rect]] = {}
        for members in cuts.values():
            covered = areas(rulers[x], rulers[y], [(cell[x], cell[y]) for cell in members])
            rects |= {cell: covered.get((cell[x], cell[y]), []) for cell in members}
        counts = np.array([len(rects[cell]) for cell in cells], int)
        places = np.array([rect for cell in cells for rect in rects[cell]], float)
        areas_of_panels.append({"axes": [x, y], "counts": blocks.i32(counts), "rects": blocks.f64(places)})
    return areas_of_panels


GROUPS = ("events", "starts", "durations", "verdicts", "numbers")
"""Parts of a row that have a heading of their own on the page."""
BETWEEN = "\0"
"""Between texts that travel as one block."""
Why = tuple[str, str]
"""Why a row has no value: the kind of lack, and the sentence."""


def diagram_page(sweep: Sweep, selection: Selection, boundary: Json | None = None) -> str:
    """The whole file; it opens with the columns chosen. The same sweep gives the same bytes. `boundary` is a line of theory."""
    blocks = Blocks()
    title = f"{sweep.folder.resolve().name}: sweep over {', '.join(axis.name for axis in sweep.axes)}"
    data = page_data(sweep, selection, title, blocks)
    if boundary is not None:
        # Names of its two axes, and places along each, None where it has none.
        axes = {axis.name: Ruler(Scale(axis.kind, axis.values)) for axis in sweep.axes if axis.name in boundary}
        places = [[None if value is None else ruler.place(value) for value in boundary[name]] for name, ruler in axes.items()]
        data["boundary"] = {
            "name": label(boundary["name"]),
            "title": label(boundary["title"]),
            "axes": labels(axes),
            "places": places,
        }
    return document(title, data, blocks, [], viewer_script("diagram"), [viewer_style("style", "panels", "diagram")], "diagram")


def page_data(sweep: Sweep, selection: Selection, title: str, blocks: Blocks) -> Json:
    """What the viewer draws; `viewer/types.js` says what the entries are."""
    axes = {axis.name: axis for axis in sweep.axes}
    columns = [sweep.column_of(name) for name in sweep.columns if name not in ("config", "digest")]
    numbers = {cell: i for i, cell in enumerate(sweep.cells)}
    whys = {("", ""): 0}
    study = studies()[sweep.plan.study].title if sweep.plan.study in studies() else ""
    # How runs ended that did not reach their end; -1 for the others.
    outcomes = [None if reached_end(row) else outcome(row["status"], row["reason"]) for row in sweep.rows]
    names = list(dict.fromkeys(one for one in outcomes if one is not None))
    codes = {name: i for i, name in enumerate(names)}
    return {
        "title": label(title),
        "version": stagescope.__version__,
        "study": label(f"{sweep.plan.study}: {study}" if study else sweep.plan.study),
        "rows": len(sweep),
        "notes": labels(state_notes(sweep)),
        "fixed": list(map(labels, fixed_text(sweep))),
        "axes": [_axis(axis, sweep.rows) for axis in axes.values()],
        "cells": blocks.i32(np.array([numbers[sweep.cell(row)] for row in sweep.rows], int)),
        "areas": all_areas(sweep, list(sweep.cells), blocks),
        "columns": [_column(column, sweep, axes.get(column.name), whys, blocks) for column in columns],
        "whys": _texts([f"{lack}\n{label(text)}" for lack, text in whys], blocks),
        "lacks": {lack: lack_text(lack, {}, "") for lack in CLOCKED},
        "clocks": labels(clocks_of(sweep.rows)),
        "clock_note": label("; ".join(clock_notes(sweep.rows))),
        "outcomes": {
            "values": blocks.i32(np.array([-1 if one is None else codes[one] for one in outcomes])),
            "names": labels(names),
        },
        "run": _texts(list(map(_commands, sweep.rows)), blocks),
        "confidence": CONFIDENCE,
        "start": {
            "x": label(selection.x),
            "y": None if selection.y is None else label(selection.y),
            "color": label(selection.color),
            "at": [[label(name), _word(value)] for name, value in selection.cut.items()],
        },
    }


def _axis(axis: Axis, rows: Sequence[Row]) -> Json:
    """An axis with the values of its grid (names of categories), and where those that rows have lie on it."""
    ruler, named = Ruler(Scale(axis.kind, axis.values)), axis.kind == "categorical"
    present = {row["at"][axis.name] for row in rows}
    present_values = [i for i, value in enumerate(axis.values) if value in present] if named else sorted(present)
    return {
        "name": label(axis.name),
        "named": named,
        "log": ruler.log,
        "ordinal": ruler.ordinal,
        "reach": list(ruler.reach),
        "values": [_word(value) for value in axis.values] if named else list(axis.values),
        "at": present_values,
        "places": present_values if named else [ruler.place(value) for value in present_values],
    }


def _word(value: Any) -> str:
    return label("none" if value is None else str(value) or EMPTY)


def _column(column: Column, sweep: Sweep, axis: Axis | None, whys: dict[Why, int], blocks: Blocks) -> Json:
    """What counts of every row: numbers with NaN for none, or numbers of words with -1; why there is none; and what cells say."""
    cells, readings = list(sweep.cells.values()), [column.reading(row) for row in sweep.rows]
    values = [reading.value for reading in readings]
    reason_numbers = np.zeros(len(readings), int)  # numbers of the reasons why rows have no value
    for i, (row, reading) in enumerate(zip(sweep.rows, readings, strict=True)):
        if reading.lack is not None:
            reason = reading.lack, lack_text(reading.lack, known_until(column, [row]), none_word(column))
            reason_numbers[i] = whys.setdefault(reason, len(whys))
    facts: Json = {
        "name": label(column.name),
        "group": "axes" if axis is not None else column.part if column.part in GROUPS else "run",
        "kind": column.kind,
        "about": label(tags()[column.name].says) if column.part == "verdicts" and column.name in tags() else "",
        "lacks": blocks.i32(reason_numbers) if reason_numbers.any() else None,
    }
    if column.kind != "word":
        return facts | {"values": blocks.f64(np.array(values, float)), "cells": statistics(column, cells, {}, blocks)}
    places = {value: i for i, value in enumerate(axis.values if axis is not None else ranked(values))}
    codes = np.array([places.get(value, -1) for value in values], int)
    cell_facts = statistics(column, cells, {str(value): i for value, i in places.items()}, blocks)
    return facts | {"values": blocks.i32(codes), "names": [_word(value) for value in places], "cells": cell_facts}


def _commands(row: Json) -> str:
    """Commands that make the run of a row again, and its report."""
    changed = {name: value for name, value in row["config"].items() if value is not None}
    folder = f"run-{row['digest'][:8]}"
    return f"{run_command(row['study'], changed, row['seed'], folder)}\nstagescope report {folder} --out {folder}.html --open"


def _texts(texts: Sequence[str], blocks: Blocks) -> Json:
    data = BETWEEN.join(text.replace(BETWEEN, "\ufffd") for text in texts).encode("utf-8", "replace")
    return blocks.u8(np.frombuffer(data, np.uint8))
