"""Portraits as the data of a page: scenes of runs, their views as blocks, everything else as plain JSON (`viewer/types.js`)."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import stagescope
from stagescope.claims.claim import Verdict
from stagescope.claims.over_runs import OverRuns
from stagescope.detect.stage import Stage
from stagescope.errors import InputError
from stagescope.landscape.ladder import Rung
from stagescope.papers.registry import studies
from stagescope.reporting.blocks import Blocks
from stagescope.reporting.prediction import legs_as_stages, predicted_events
from stagescope.reporting.scenes import bounds, by_slot, listed, scenes_of, shared, starts_log
from stagescope.reporting.spans import landing, span_of
from stagescope.reporting.words import about, claim_place, clean, differing, glossary, label, number, places_of, tokens_of
from stagescope.runs.run import Run
from stagescope.views.change import Change, change_of
from stagescope.views.view import Curves, Matrices, Points, Portrait, View


def page_data(
    portraits: Sequence[Portrait], title: str, blocks: Blocks, *, exact: bool = False, done: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """What the viewer draws; the arrays go into `blocks`. `done` is called after each run."""
    scenes = []
    for group in scenes_of(portraits):
        slots = by_slot((portrait.name, view) for portrait in group for view in portrait.views)
        common = {slot: shared([view for _, view in owned]) for slot, owned in slots.items()}
        runs = []
        for portrait in group:
            runs.append(_run(portrait, common, blocks, exact))
            done()
        run = group[0].run
        words = {"glossary": glossary(group), "differs": differing(group), "tokens": tokens_of(group), "places": places_of(group)}
        scenes.append({"title": scene_title(run), "clock": run.clock, "log_time": starts_log(group), "runs": runs, **words})
    _tell_apart(scenes)
    return {"title": label(title), "version": stagescope.__version__, "scenes": scenes}


def scene_title(run: Run) -> str:
    """The name of the paper's idea, which is what stands before the colon in the title of a study."""
    if run.study in studies():
        return studies()[run.study].title.split(":")[0]
    return label(run.study or str((run.spec.get("source") or {}).get("model") or run.type))


def _tell_apart(scenes: list[dict[str, Any]]) -> None:
    """Scenes of one study have different clocks, which are written, or different models: then their runs are named."""
    known = [(scene["title"], scene["clock"]) for scene in scenes]
    for scene, (title, clock) in zip(scenes, known, strict=True):
        if known.count((title, clock)) > 1:
            scene["title"] += f" ({listed(run['name'] for run in scene['runs'])})"
        elif [other for other, _ in known].count(title) > 1:
            scene["title"] += f" (clock: {clock})"


def _run(portrait: Portrait, common: Mapping[str, dict[str, Any]], blocks: Blocks, exact: bool) -> dict[str, Any]:
    """`common` is what all views of a slot start with, in every run of the scene."""
    run, found, path = portrait.run, portrait.stages, portrait.prediction
    views = [_view(view, run, blocks, exact) | common[view.slot] for view in portrait.views]
    return {
        "name": label(portrait.name),
        "status": label(run.status),
        "reason": label(run.reason),
        "clock": run.clock,
        "frames": run.frames,
        "time": blocks.f64(run.time),
        "about": about(portrait),
        "change": _change(change_of(run, portrait.views), blocks),
        "notes": [label(note) for note in portrait.notes],
        "stages": [_stage(stage, run) for stage in (*(found or ()), *(legs_as_stages(path, run) if path else ()))],
        "events": {label(name): number(when) for name, when in found.events.items()} if found else {},
        "event_notes": {label(name): label(note) for name, note in found.notes.items()} if found else {},
        "event_states": {label(name): event.words for name, event in found.estimates.items()} if found else {},
        "event_intervals": {label(name): _ends(event.interval) for name, event in found.estimates.items()} if found else {},
        "ledger": None if portrait.ledger is None else [_verdict(row, portrait) for row in portrait.ledger],
        "ledger_counts": {} if portrait.ledger is None else dict(portrait.ledger.counts()),
        "ledger_summary": "" if portrait.ledger is None else label(portrait.ledger.summary()),
        "ladder": None if portrait.ladder is None else [_rung(rung) for rung in portrait.ladder],
        "prediction": None if path is None else [_predicted(row) for row in predicted_events(path, found, run)],
        "provenance": [_facts(name, value) for name, value in portrait.provenance.items()],
        "views": views,
    }


def _change(found: Change | None, blocks: Blocks) -> dict[str, Any] | None:
    return None if found is None else {"of": label(found.of), "at": blocks.f64(found.at)}


def _ends(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None or not all(map(math.isfinite, interval)) else [float(end) for end in interval]


def _stage(stage: Stage, run: Run) -> dict[str, Any]:
    """Without a finite stop the stage lasts to the end; without a finite start it begins with the run."""
    start = stage.start if math.isfinite(stage.start) else run.time[0]
    texts = {name: label(getattr(stage, name)) for name in ("name", "evidence", "track")}
    return {**texts, "start": float(start), "stop": number(stage.stop), "aside": stage.aside}


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
    match view:
        case Curves():
            arrays, made = [curve.values for curve in view.curves], _curves(view, blocks)
        case Matrices():
            arrays, made = [view.values], _matrices(view, blocks, exact)
        case Points():
            arrays, made = [view.values, view.explained], _points(view, blocks)
        case _:
            raise InputError(f"{view.slot}: a page cannot draw {type(view).__name__}; it draws Curves, Matrices and Points")
    for values in arrays:
        if len(values) != shown:
            raise InputError(f"{view.slot}: a view of {shown} frames holds an array of {len(values)}")
    return common | made


def _curves(view: Curves, blocks: Blocks) -> dict[str, Any]:
    curves = [
        {
            "name": label(c.name),
            "family": label(c.family),
            "token": label(c.token),
            "faint": c.faint,
            "dashed": c.dashed,
            "values": blocks.f64(c.values),
        }
        for c in view.curves
    ]
    levels = [{"name": label(level.name), "value": float(level.value)} for level in view.levels if math.isfinite(level.value)]
    return {"kind": "curves", "axis": label(view.axis), "log": view.log, "curves": curves, "levels": levels}


def _matrices(view: Matrices, blocks: Blocks, exact: bool) -> dict[str, Any]:
    """Cells are coded in the view's own range, for precision; the range of colours is that of its slot (`scenes.shared`)."""
    marks = view.marks and {"names": _labels(view.marks.names), "cells": blocks.u8(view.marks.cells)}
    return {
        "kind": "matrices",
        "values": blocks.f32(view.values) if exact else blocks.companded(view.values, *bounds(view)),
        "panels": _labels(view.panels),
        "rows": _labels(view.rows),
        "columns": _labels(view.columns),
        "row_axis": label(view.row_axis),
        "column_axis": label(view.column_axis),
        "across": view.across,
        "tokens": view.tokens,
        "marks": marks,
    }


def _points(view: Points, blocks: Blocks) -> dict[str, Any]:
    """Points are few and always f32: in 8 bits they would be seen to jump."""
    values, explained = blocks.f32(view.values), blocks.f64(view.explained)
    return {"kind": "points", "values": values, "labels": _labels(view.labels), "tokens": view.tokens, "explained": explained}


def _verdict(row: Verdict, portrait: Portrait) -> dict[str, Any]:
    texts = {name: label(getattr(row, name)) for name in ("tag", "statement", "regime", "verdict", "reason")}
    cells = {name: cell(getattr(row, name)) for name in ("predicted", "measured", "tolerance")}
    errors = {name: number(getattr(row, name)) for name in ("predicted_error", "measured_error")}
    about = {
        "place": claim_place(row),
        "group": label(row.group or ""),
        "kind": row.kind,
        "calibrated": row.calibrated,
        "rates": None if row.rates is None else asdict(row.rates),
    }
    texts["unit"] = label(row.unit or "")
    span, lands = span_of(row, portrait.stages, portrait.run), landing(row, portrait.stages, portrait.run)
    over = None if row.over_runs is None else _over_runs(row.over_runs)
    return {**texts, **cells, **errors, **about, "span": None if span is None else list(span), "lands": lands, "over_runs": over}


def _over_runs(found: OverRuns) -> dict[str, Any]:
    numbers = {name: list(getattr(found, name)) for name in ("x", "measured", "predicted")}
    texts = {name: label(getattr(found, name)) for name in ("x_axis", "y_axis")}
    return {**numbers, **texts, "names": _labels(found.names), "log_x": found.log_x, "log_y": found.log_y}


def _rung(rung: Rung) -> dict[str, Any]:
    numbers = ("residual", "loss", "measured_rate", "local_rate", "predicted_escape", "measured_escape", "remainder")
    return {
        "label": label(rung.label),
        "t": float(rung.t),
        **{name: number(getattr(rung, name)) for name in numbers},
        "distance": number(rung.distance) if rung.found else None,
        "opening": None if rung.opening is None else label(rung.opening),
        "rates": [float(rate) for rate in rung.rates if math.isfinite(rate)],
        "cosines": [float(cosine) for cosine in rung.cosines if math.isfinite(cosine)],
        "law": label(rung.law_words or rung.law or ""),
        "note": label(rung.note),
    }


def _predicted(row: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {name: number(row[name]) for name in ("t", "low", "high", "measured")}
    return {"name": label(row["name"]), **numbers, "said": label(row["said"])}


def _facts(name: str, value: Any) -> dict[str, Any]:
    """One group of provenance: rows of a name and a value, or a text such as a citation."""
    if isinstance(value, str):
        return {"title": label(name), "text": clean(value)}
    rows = value.items() if isinstance(value, Mapping) else value
    texts = ((key, item if isinstance(item, str) else json.dumps(item, default=str, ensure_ascii=False)) for key, item in rows)
    return {"title": label(name), "rows": [[label(key), label(text)] for key, text in texts]}


def _labels(names: Sequence[str]) -> list[str]:
    return [label(name) for name in names]


def cell(value: float | str | None) -> float | str | None:
    """A cell of the ledger; numbers that JSON does not know are written in words."""
    if isinstance(value, str):
        return label(value)
    return value if value is None else number(value) if math.isfinite(value) else str(float(value))
