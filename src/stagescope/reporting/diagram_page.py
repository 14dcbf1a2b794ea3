"""The page of a sweep: its whole table, and a viewer that draws any column over any axes (`viewer/diagram.js`)."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import stagescope
from stagescope.reporting.blocks import Blocks
from stagescope.reporting.bundle import viewer_script, viewer_style
from stagescope.reporting.diagram_numbers import EMPTY, Asked, absent_word
from stagescope.reporting.page import document
from stagescope.reporting.page_data import label
from stagescope.reporting.provenance import run_command
from stagescope.runs.run import DONE
from stagescope.studies.table import STUDIES
from stagescope.sweeping.axes import Axis
from stagescope.sweeping.table import CONFIDENCE, Sweep, resamples

HIDDEN = ("digest",)
"""Columns of the table that say nothing to a reader."""
BETWEEN = "\0"
"""Between texts that travel as one block."""


def diagram_page(sweep: Sweep, ask: Asked) -> str:
    """The whole file; it opens with what was asked for. The same sweep gives the same bytes."""
    blocks = Blocks()
    title = f"{sweep.folder.resolve().name}: sweep over {', '.join(axis.name for axis in sweep.axes)}"
    data = page_data(sweep, ask, title, blocks)
    return document(title, data, blocks, [], viewer_script("diagram"), [viewer_style("style", "panels", "diagram")], "diagram")


def page_data(sweep: Sweep, ask: Asked, title: str, blocks: Blocks) -> dict[str, Any]:
    """What the viewer draws; `viewer/sweep_types.js` says what the entries are."""
    axes = {axis.name: axis for axis in sweep.axes}
    columns = {name: sweep.column(name) for name in sweep.columns if name not in HIDDEN}
    groups = _groups(sweep)
    study = STUDIES[sweep.plan.study].title if sweep.plan.study in STUDIES else ""
    return {
        "title": label(title),
        "version": stagescope.__version__,
        "study": label(f"{sweep.plan.study}: {study}" if study else sweep.plan.study),
        "rows": len(sweep),
        "axes": [{"name": label(name), "kind": axis.kind, "values": _shown(axis)} for name, axis in axes.items()],
        "columns": [
            {"name": label(name), "group": groups.get(name, "run"), "absent": absent_word(sweep, name)}
            | _column(values, axes.get(name), blocks)
            for name, values in columns.items()
        ],
        "done": list(DONE),
        "recreate": _texts([_recreate(sweep, row) for row in sweep.rows], blocks),
        "run": _texts([_run(row) for row in sweep.rows], blocks),
        "confidence": CONFIDENCE,
        "resamples": [[n, blocks.i32(resamples(n))] for n in _counts(sweep, columns)],
        "damaged": len(sweep.damaged),
        "start": {
            "x": label(ask.x),
            "y": None if ask.y is None else label(ask.y),
            "color": label(ask.color),
            "at": [[label(name), _word(value)] for name, value in ask.at.items()],
        },
    }


def _groups(sweep: Sweep) -> dict[str, str]:
    """Which part of a row a column is of."""
    parts = {"events": "", "starts": "stage ", "durations": "duration ", "verdicts": "", "numbers": ""}
    found = {axis.name: "axes" for axis in sweep.axes}
    for part, prefix in parts.items():
        for name in dict.fromkeys(name for row in sweep.rows for name in row.get(part) or ()):
            found.setdefault(prefix + name, part)
    return found


def _shown(axis: Axis) -> list[Any]:
    """Values of an axis: numbers, or the names of categories."""
    return [_word(value) for value in axis.values] if axis.kind == "categorical" else list(axis.values)


def _word(value: Any) -> str:
    return label("none" if value is None else str(value) or EMPTY)


def _column(values: Sequence[Any], axis: Axis | None, blocks: Blocks) -> dict[str, Any]:
    """Numbers as they are, NaN where there is none; anything else as the number of its name, -1 where there is none."""
    known = [value for value in values if value is not None]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
    if known and numeric and (axis is None or axis.kind != "categorical"):
        return {"kind": "number", "values": blocks.f64(np.array([np.nan if v is None else v for v in values], float))}
    given = [] if axis is None else list(axis.values)
    places = {value: i for i, value in enumerate(dict.fromkeys([*given, *(known if axis is None else values)]))}
    codes = np.array([places.get(value, -1) for value in values], int)
    return {"kind": "category", "values": blocks.i32(codes), "names": [_word(value) for value in places]}


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


def _counts(sweep: Sweep, columns: Mapping[str, Sequence[Any]]) -> list[int]:
    """How many rows of a cell may have a value, where they are more than one."""
    places = {cell: i for i, cell in enumerate(sweep.cells)}
    cells = np.array([places[sweep.cell(row)] for row in sweep.rows], int)
    found: set[int] = set()
    for values in columns.values():
        known = np.array([value is not None for value in values])
        found.update(np.bincount(cells[known]).tolist())
    return sorted(n for n in found if n > 1)
