"""The page of a sweep: its whole table, and a viewer that draws any column over any axes (`viewer/diagram.js`)."""

import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np

import stagescope
from stagescope.diagrams.asked import Asked
from stagescope.diagrams.numbers import EMPTY
from stagescope.diagrams.words import fixed_text, none_word, state_notes
from stagescope.papers.registry import studies, tags
from stagescope.reporting.blocks import Blocks
from stagescope.reporting.bundle import viewer_script, viewer_style
from stagescope.reporting.page import document
from stagescope.reporting.page_data import label
from stagescope.reporting.provenance import run_command
from stagescope.runs.run import DONE
from stagescope.sweeping.axes import Axis
from stagescope.sweeping.columns import CLOCKED, Column
from stagescope.sweeping.rows import Row
from stagescope.sweeping.statistics import CONFIDENCE, resamples
from stagescope.sweeping.table import Sweep

HIDDEN = ("config", "digest")
"""Columns of the table that say nothing to a reader, or what the commands of a row say."""
GROUPS = ("events", "starts", "durations", "verdicts", "numbers")
"""Parts of a row that have a heading of their own on the page."""
LACKS = (None, "failed", *CLOCKED, "none")
"""Why a row has no value, by the number that travels; `viewer/sweep.js` has the same list."""
BETWEEN = "\0"
"""Between texts that travel as one block."""


def diagram_page(sweep: Sweep, ask: Asked) -> str:
    """The whole file; it opens with what was asked for. The same sweep gives the same bytes."""
    blocks = Blocks()
    title = f"{sweep.folder.resolve().name}: sweep over {', '.join(axis.name for axis in sweep.axes)}"
    data = page_data(sweep, ask, title, blocks)
    return document(title, data, blocks, [], viewer_script("diagram"), [viewer_style("style", "panels", "diagram")], "diagram")


def page_data(sweep: Sweep, ask: Asked, title: str, blocks: Blocks) -> dict[str, Any]:
    """What the viewer draws; `viewer/types.js` says what the entries are."""
    axes = {axis.name: axis for axis in sweep.axes}
    columns = [sweep.column_of(name) for name in sweep.columns if name not in HIDDEN]
    study = studies()[sweep.plan.study].title if sweep.plan.study in studies() else ""
    return {
        "title": label(title),
        "version": stagescope.__version__,
        "name": label(sweep.plan.study),
        "study": label(f"{sweep.plan.study}: {study}" if study else sweep.plan.study),
        "rows": len(sweep),
        "notes": [label(note) for note in state_notes(sweep)],
        "fixed": [[label(name), label(text)] for name, text in fixed_text(sweep)],
        "axes": [{"name": label(name), "kind": axis.kind, "values": _shown(axis)} for name, axis in axes.items()],
        "columns": [_column(column, sweep.rows, axes.get(column.name), blocks) for column in columns],
        "done": list(DONE),
        "recreate": _texts([_recreate(sweep, row) for row in sweep.rows], blocks),
        "run": _texts([_run(row) for row in sweep.rows], blocks),
        "confidence": CONFIDENCE,
        "resamples": [[n, blocks.i32(resamples(n))] for n in _counts(sweep, columns)],
        "start": {
            "x": label(ask.x),
            "y": None if ask.y is None else label(ask.y),
            "color": label(ask.color),
            "at": [[label(name), _word(value)] for name, value in ask.at.items()],
        },
    }


def _shown(axis: Axis) -> list[Any]:
    """Values of an axis: numbers, or the names of categories."""
    return [_word(value) for value in axis.values] if axis.kind == "categorical" else list(axis.values)


def _word(value: Any) -> str:
    return label("none" if value is None else str(value) or EMPTY)


def _column(column: Column, rows: Sequence[Row], axis: Axis | None, blocks: Blocks) -> dict[str, Any]:
    """What counts of every row: numbers with NaN for none, or numbers of words with -1; and why there is none."""
    readings = [column.reading(row) for row in rows]
    values = [reading.value for reading in readings]
    lacking = np.array([LACKS.index(reading.lack) for reading in readings], np.uint8)
    found: dict[str, Any] = {
        "name": label(column.name),
        "group": "axes" if axis is not None else column.part if column.part in GROUPS else "run",
        "kind": column.kind,
        "none": none_word(column),
        "about": label(tags()[column.name].says) if column.part == "verdicts" and column.name in tags() else "",
        "lacks": blocks.u8(lacking) if lacking.any() else None,
    }
    if column.kind != "word":
        numbers = [np.nan if value is None else value for value in values]
        return found | {"values": blocks.f64(np.array(numbers, float))}
    known = values if axis is not None else [value for value in values if value is not None]
    places = {value: i for i, value in enumerate(dict.fromkeys([*(axis.values if axis else ()), *known]))}
    codes = np.array([places.get(value, -1) for value in values], int)
    return found | {"values": blocks.i32(codes), "names": [_word(value) for value in places]}


def _recreate(sweep: Sweep, row: dict[str, Any]) -> str:
    at = [f"{name}={value}" for name, value in row["at"].items()]
    words = [
        "stagescope",
        "recreate",
        sweep.folder.resolve().name,
        "--at",
        *at,
        "--seed",
        str(row["seed"]),
        "--out",
        _folder(row),
    ]
    return f"{shlex.join(words)}\n{_opened(row)}"


def _run(row: dict[str, Any]) -> str:
    changed = {name: value for name, value in row["config"].items() if value is not None}
    return f"{run_command(row['study'], changed, row['seed'], _folder(row))}\n{_opened(row)}"


def _opened(row: dict[str, Any]) -> str:
    return shlex.join(["stagescope", "report", _folder(row), "--out", f"{_folder(row)}.html", "--open"])


def _folder(row: dict[str, Any]) -> str:
    return f"run-{row['digest'][:8]}"


def _texts(texts: Sequence[str], blocks: Blocks) -> dict[str, Any]:
    whole = BETWEEN.join(text.replace(BETWEEN, "\ufffd") for text in texts).encode("utf-8", "replace")
    return blocks.u8(np.frombuffer(whole, np.uint8))


def _counts(sweep: Sweep, columns: Sequence[Column]) -> list[int]:
    """How many rows of a cell may count in a statistic, where they are more than one."""
    places = {cell: i for i, cell in enumerate(sweep.cells)}
    cells = np.array([places[sweep.cell(row)] for row in sweep.rows], int)
    found: set[int] = set()
    for column in columns:
        counted = np.array([column.reading(row).lack in (None, *CLOCKED) for row in sweep.rows])
        found.update(np.bincount(cells[counted]).tolist())
    return sorted(n for n in found if n > 1)
