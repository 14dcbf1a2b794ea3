"""Portraits as the data of a page: scenes of runs, their views as blocks, everything else as plain JSON (`viewer/types.js`)."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import stagescope
from stagescope.detect.stage import Stage
from stagescope.errors import InputError
from stagescope.landscape.ladder import Rung
from stagescope.reporting.blocks import Blocks
from stagescope.reporting.spans import span_of
from stagescope.reporting.views import Curves, Matrices, Points, Portrait, View
from stagescope.runs.run import Run
from stagescope.studies.table import STUDIES
from stagescope.theory.claim import Verdict

LONGEST = 2000
"""Characters of a name or a label that travel; the page shows fewer and puts the rest into a tooltip."""


def page_data(
    portraits: Sequence[Portrait], title: str, blocks: Blocks, *, exact: bool = False, done: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """What the viewer draws; the arrays go into `blocks`. `done` is called after each run."""
    scenes = []
    for group in scenes_of(portraits):
        runs = []
        for portrait in group:
            runs.append(_run(portrait, blocks, exact))
            done()
        scenes.append({"title": scene_title(group[0].run), "clock": group[0].run.clock, "runs": runs})
    _tell_apart(scenes)
    return {"title": label(title), "version": stagescope.__version__, "scenes": scenes}


def scenes_of(portraits: Sequence[Portrait]) -> list[list[Portrait]]:
    """Runs that share one scrubber: with the same clock, and of the same study or the same kind of field."""
    scenes: list[list[Portrait]] = []
    for portrait in portraits:
        home = next((scene for scene in scenes if any(_together(other.run, portrait.run) for other in scene)), None)
        if home is None:
            scenes.append([portrait])
        else:
            home.append(portrait)
    return scenes


def _together(one: Run, other: Run) -> bool:
    study = one.study is not None and one.study == other.study
    return one.clock == other.clock and (study or one.spec["field"]["type"] == other.spec["field"]["type"])


def scene_title(run: Run) -> str:
    """The name of the paper's idea, which is what stands before the colon in the title of a study."""
    if run.study in STUDIES:
        return STUDIES[run.study].title.split(":")[0]
    return label(run.study or str(run.spec["field"]["type"]))


def _tell_apart(scenes: list[dict[str, Any]]) -> None:
    """Two scenes of one study have different clocks; say which."""
    titles = [scene["title"] for scene in scenes]
    for scene in scenes:
        if titles.count(scene["title"]) > 1:
            scene["title"] += f" (clock: {scene['clock']})"


def _run(portrait: Portrait, blocks: Blocks, exact: bool) -> dict[str, Any]:
    run, found = portrait.run, portrait.stages
    return {
        "name": label(portrait.name),
        "status": label(run.status),
        "reason": label(run.reason),
        "clock": run.clock,
        "frames": run.frames,
        "time": blocks.f64(run.time),
        "notes": [label(note) for note in portrait.notes],
        "stages": [{"name": label(s.name), "start": s.start, "stop": s.stop, "evidence": label(s.evidence)} for s in found or ()],
        "events": {label(name): number(when) for name, when in found.events.items()} if found else {},
        "event_notes": {label(name): label(note) for name, note in found.notes.items()} if found else {},
        "ledger": None if portrait.ledger is None else [_verdict(row, portrait) for row in portrait.ledger],
        "ladder": None if portrait.ladder is None else [_rung(rung) for rung in portrait.ladder],
        "provenance": [_facts(name, value) for name, value in portrait.provenance.items()],
        "views": [_view(view, run, blocks, exact) for view in portrait.views],
    }


def _stage(stage: Stage) -> dict[str, Any]:
    evidence = label(stage.evidence)
    return {"name": label(stage.name), "start": float(stage.start), "stop": number(stage.stop), "evidence": evidence}


def _view(view: View, run: Run, blocks: Blocks, exact: bool) -> dict[str, Any]:
    shown = run.frames if view.frames is None else len(view.frames)
    common = {
        "slot": label(view.slot),
        "title": label(view.title),
        "about": label(view.about),
        "frames": None if view.frames is None else blocks.i32(view.frames),
        "of": run.frames,
        "shown": shown,
    }
    for values in _arrays(view):
        if len(values) != shown:
            raise InputError(f"{view.slot}: a view of {shown} frames holds an array of {len(values)}")
    match view:
        case Curves():
            return common | _curves(view, blocks)
        case Matrices():
            return common | _matrices(view, blocks, exact)
        case Points():
            return common | _points(view, blocks)
    raise InputError(f"{view.slot}: a page cannot draw {type(view).__name__}; it draws Curves, Matrices and Points")


def _arrays(view: View) -> list[np.ndarray]:
    match view:
        case Curves():
            return [curve.values for curve in view.curves]
        case Matrices():
            return [view.values]
        case Points():
            return [view.values, view.explained]
    return []


def _curves(view: Curves, blocks: Blocks) -> dict[str, Any]:
    curves = [
        {"name": label(c.name), "family": label(c.family), "faint": c.faint, "values": blocks.f64(c.values)} for c in view.curves
    ]
    levels = [{"name": label(level.name), "value": float(level.value)} for level in view.levels if math.isfinite(level.value)]
    return {"kind": "curves", "axis": label(view.axis), "log": view.log, "curves": curves, "levels": levels}


def _matrices(view: Matrices, blocks: Blocks, exact: bool) -> dict[str, Any]:
    marks = view.marks and {"names": _labels(view.marks.names), "cells": blocks.u8(view.marks.cells)}
    low, high = (view.low, view.high) if -math.inf < view.low < view.high < math.inf else (0.0, 1.0)
    return {
        "kind": "matrices",
        "values": blocks.f32(view.values) if exact else blocks.companded(view.values, low, high),
        "panels": _labels(view.panels),
        "rows": _labels(view.rows),
        "columns": _labels(view.columns),
        "row_axis": label(view.row_axis),
        "column_axis": label(view.column_axis),
        "low": float(low),
        "high": float(high),
        "marks": marks,
    }


def _points(view: Points, blocks: Blocks) -> dict[str, Any]:
    """Points are few and always f32: in 8 bits they would be seen to jump."""
    values, explained = blocks.f32(view.values), blocks.f64(view.explained)
    return {"kind": "points", "values": values, "labels": _labels(view.labels), "explained": explained}


def _verdict(row: Verdict, portrait: Portrait) -> dict[str, Any]:
    texts = {name: label(getattr(row, name)) for name in ("tag", "statement", "regime", "verdict", "reason")}
    cells = {name: cell(getattr(row, name)) for name in ("predicted", "measured", "tolerance")}
    span = span_of(row, portrait.stages, portrait.run)
    return {**texts, **cells, "span": None if span is None else list(span)}


def _rung(rung: Rung) -> dict[str, Any]:
    numbers = ("residual", "distance", "loss", "measured_rate", "local_rate", "predicted_escape", "measured_escape")
    return {
        "label": label(rung.label),
        "t": float(rung.t),
        **{name: number(getattr(rung, name)) for name in numbers},
        "opening": None if rung.opening is None else label(rung.opening),
        "rates": [float(rate) for rate in rung.rates if math.isfinite(rate)],
        "cosines": [float(cosine) for cosine in rung.cosines if math.isfinite(cosine)],
        "note": label(rung.note),
    }


def _facts(name: str, value: Any) -> dict[str, Any]:
    """One group of provenance: rows of a name and a value, or a text such as a citation."""
    if isinstance(value, str):
        return {"title": label(name), "text": clean(value)}
    rows = value.items() if isinstance(value, Mapping) else value
    return {"title": label(name), "rows": [[label(key), label(_said(item))] for key, item in rows]}


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _labels(names: Sequence[str]) -> list[str]:
    return [label(name) for name in names]


def label(text: str) -> str:
    """A name as it travels: cleaned, and cut where nobody would read on."""
    whole = clean(str(text))
    return whole if len(whole) <= LONGEST else f"{whole[:LONGEST]}… ({len(whole):,} characters)"


def clean(text: str) -> str:
    """Halves of surrogate pairs are no characters; each is replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def number(value: float | None) -> float | None:
    """JSON has no infinity: a number that is none is null."""
    return None if value is None or not math.isfinite(value) else float(value)


def cell(value: float | str | None) -> float | str | None:
    """A cell of the ledger; numbers that JSON does not know are said in words."""
    if isinstance(value, str):
        return label(value)
    return value if value is None else number(value) if math.isfinite(value) else str(float(value))
