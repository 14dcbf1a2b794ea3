"""The page: runs that share a scrubber, their views as blocks, all else as JSON (`show/viewer/types.js`), in one HTML file.

Its data, its script and its styles are inside, and a policy lets nothing else run.
"""

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import numpy as np

import stagescope
from stagescope.claims.claim import Verdict
from stagescope.core.errors import InputError, first_names
from stagescope.core.spec import Json
from stagescope.detect.stage import Stage, Stages
from stagescope.landscape.ladder import Rung
from stagescope.readings.reading import reading
from stagescope.readings.registry import studies, tags
from stagescope.runs.run import Run
from stagescope.show.bundle import Blocks, uplot_file, viewer_script, viewer_style
from stagescope.show.play_data import laws_script, play_of_runs
from stagescope.show.portrait import legs_as_stages, predicted_events
from stagescope.views.axes import change_of, log_time, log_values
from stagescope.views.view import GLOSSARY, Curves, Explained, Matrices, Points, Portrait, View, captions, plain

OTHER_CLAIMS = "other claims"


def span_of(verdict: Verdict, stages: Stages | None, run: Run) -> tuple[float, float] | None:
    """The span of the events and stages that a verdict names, on the run's clock, cut to its recorded frames.

    None where the first of them was not reached: the run does not show it. A later one that was not reached lasts until the
    end of the run.
    """
    if not verdict.shown or run.frames == 0:
        return None
    begin, end = float(run.time[0]), float(run.time[-1])
    first, *later = [_named_span(name, stages, begin, end) for name in verdict.shown]
    if first is None:
        return None
    spans = [first, *((end, end) if one is None else one for one in later)]
    start, stop = min(span[0] for span in spans), max(span[1] for span in spans)
    return min(max(start, begin), end), min(max(stop, begin), end)


def jump_target(verdict: Verdict, stages: Stages | None, run: Run) -> float | None:
    """Where in its span a reader lands: at its start, or where the stage of the run begins that the verdict names last.

    A claim on "focus*" and "dilution*" is about the dilution: that is where it is seen, though its span has both.
    """
    span = span_of(verdict, stages, run)
    if span is None:
        return None
    starts = [stage.start for stage in stages or () if not stage.track and _matches(verdict.shown[-1], stage.name)]
    return next((start for start in starts if span[0] <= start < span[1]), span[0])


def _named_span(name: str, stages: Stages | None, begin: float, end: float) -> tuple[float, float] | None:
    if name in ("start", "end"):
        return (begin, begin) if name == "start" else (end, end)
    if stages is None:
        return None
    spans = [(time, time) for event, time in stages.events.items() if time is not None and _matches(name, event)]
    spans += [(stage.start, end if stage.stop is None else stage.stop) for stage in stages if _matches(name, stage.name)]
    return (min(span[0] for span in spans), max(span[1] for span in spans)) if spans else None


def _matches(name: str, other: str) -> bool:
    return name == other or (name.endswith("*") and other.startswith(name[:-1]))


Owned = tuple[str, View]
"""The name of a run, and a view of it."""


def scenes_of(portraits: Sequence[Portrait]) -> list[list[Portrait]]:
    """Runs by the clock and by what is shown of them: runs of unlike models do not share a plot, be they of one study."""
    scenes: dict[Any, list[Portrait]] = {}
    for portrait in portraits:
        # Runs whose views are made by the same function look alike; runs of no paper are alike where their fields are.
        # Models that were trained elsewhere are alike where they have one name and as many heads.
        run = portrait.run
        run_reading, source = reading(run), run.spec.get("source") or {}
        family = (
            run_reading.type
            if run_reading.kind is None
            else (run_reading.kind.views, str(source.get("model")), str(source.get("heads")))
        )
        scenes.setdefault((run.clock, family), []).append(portrait)
    return [drawable_together(scene) for scene in scenes.values()]


def drawable_together(scene: Sequence[Portrait]) -> list[Portrait]:
    """The portraits of a scene with views that can be drawn slot by slot.

    Views of a slot that mean different things, by title, axes or marks, get slots of their own. Those that stay together
    have one sentence, which says for which run it holds, and levels that are not the same in all of them name their run.
    """
    if len(scene) < 2:
        return list(scene)
    owned = [(portrait.name, view) for portrait in scene for view in portrait.views]
    separate_views = iter(_shared_words(_separate_slots(owned)))
    return [replace(portrait, views=tuple(next(separate_views) for _ in portrait.views)) for portrait in scene]


def _meaning(view: View) -> tuple[Any, ...]:
    """What two views of a slot must have in common to be drawn in one plot."""
    match view:
        case Curves():
            return ("curves", view.title, view.axis)
        case Matrices():
            marks = None if view.marks is None else view.marks.names
            return ("matrices", view.title, view.row_axis, view.column_axis, marks)
    return (type(view).__name__, view.title)


def _separate_slots(owned: Sequence[Owned]) -> list[Owned]:
    """Views with a slot for each meaning; where titles of a slot's meanings are the same, they name their runs."""
    meanings: dict[str, dict[tuple[Any, ...], list[str]]] = {}
    for name, view in owned:
        meanings.setdefault(view.slot, {}).setdefault(_meaning(view), []).append(name)
    slots: dict[tuple[str, tuple[Any, ...]], str] = {}
    names = set(meanings)
    for slot, names_by_meaning in meanings.items():
        for place, meaning in enumerate(names_by_meaning):
            free = (f"{slot}-{number}" for number in count(2))
            slots[slot, meaning] = slot if place == 0 else next(name for name in free if name not in names)
            names.add(slots[slot, meaning])
    separated = []
    for name, view in owned:
        names_by_meaning, meaning = meanings[view.slot], _meaning(view)
        ambiguous = sum(meaning_of_view[1] == view.title for meaning_of_view in names_by_meaning) > 1
        title = f"{view.title} ({first_names(names_by_meaning[meaning])})" if ambiguous else view.title
        separated.append((name, replace(view, slot=slots[view.slot, meaning], title=title)))
    return separated


def _shared_words(owned: Sequence[Owned]) -> list[View]:
    """Views with the sentence of their slot, and with levels that name their run where these differ."""
    slots = by_slot(owned)
    abouts = {slot: _about(owned_views) for slot, owned_views in slots.items()}
    views = []
    for name, view in owned:
        view = replace(view, about=abouts[view.slot])
        if isinstance(view, Curves):
            levels_of_runs = [slot_view.levels for _, slot_view in slots[view.slot] if isinstance(slot_view, Curves)]
            levels = (
                level
                if all(level in run_levels for run_levels in levels_of_runs)
                else replace(level, name=f"{level.name} ({name})")
                for level in view.levels
            )
            view = replace(view, levels=tuple(levels))
        views.append(view)
    return views


def by_slot(owned: Iterable[Owned]) -> dict[str, list[Owned]]:
    views_by_slot: dict[str, list[Owned]] = {}
    for name, view in owned:
        views_by_slot.setdefault(view.slot, []).append((name, view))
    return views_by_slot


def _about(owned: Sequence[Owned]) -> str:
    """The sentences that all views begin with, then those of single runs after their names."""
    split = [re.split(r"(?<=[.:]) ", view.about) for _, view in owned]
    shared = [sentences[0] for sentences in takewhile(lambda sentences: len(set(sentences)) == 1, zip(*split, strict=False))]
    rests: dict[str, list[str]] = {}
    for (name, _), sentences in zip(owned, split, strict=True):
        rests.setdefault(" ".join(sentences[len(shared) :]), []).append(name)
    return " ".join([*shared, *(f"{first_names(names)}: {remainder}" for remainder, names in rests.items() if remainder)])


def shared(views: Sequence[View]) -> Json:
    """What all views of a slot start with: the range of colours, or whether values are on a logarithmic axis."""
    curves = [view for view in views if isinstance(view, Curves)]
    if curves:
        return {"start_log": log_values(curves)}
    ranges = [bounds(view) for view in views if isinstance(view, Matrices)]
    if not ranges:
        return {}
    low, high = min(one[0] for one in ranges), max(one[1] for one in ranges)
    if any(one[0] == -one[1] for one in ranges):
        high = max(-low, high)
        low = -high
    return {"low": low, "high": high}


def bounds(view: Matrices) -> tuple[float, float]:
    """The range of colours of one view; from 0 to 1 where its own is none."""
    good = -math.inf < view.low < view.high < math.inf
    return (float(view.low), float(view.high)) if good else (0.0, 1.0)


def page_data(
    portraits: Sequence[Portrait], title: str, blocks: Blocks, *, exact: bool = False, done: Callable[[], None] = lambda: None
) -> Json:
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
        frames = np.unique(np.concatenate([portrait.run.time for portrait in group]))
        scenes.append(
            {
                "title": scene_title(run),
                "clock": run.clock,
                "log_time": log_time(frames),
                "runs": runs,
                "glossary": glossary(group),
                "differs": differing(group),
                "tokens": tokens_of(group),
                "places": places_of(group),
            }
        )
    # Scenes of one study have different clocks, which are written, or different models: then their runs are named.
    titles = [(scene["title"], scene["clock"]) for scene in scenes]
    for scene, (name, clock) in zip(scenes, titles, strict=True):
        if titles.count((name, clock)) > 1:
            scene["title"] += f" ({first_names(run['name'] for run in scene['runs'])})"
        elif [title_of_scene for title_of_scene, _ in titles].count(name) > 1:
            scene["title"] += f" (clock: {clock})"
    return {"title": label(title), "version": stagescope.__version__, "scenes": scenes}


def scene_title(run: Run) -> str:
    """The name of the paper's idea, which is what stands before the colon in the title of a study."""
    if run.study in studies():
        return studies()[run.study].title.split(":")[0]
    return label(run.study or str((run.spec.get("source") or {}).get("model") or run.type))


def _run(portrait: Portrait, common: Mapping[str, Json], blocks: Blocks, exact: bool) -> Json:
    """`common` is what all views of a slot start with, in every run of the scene."""
    run, stages, path = portrait.run, portrait.stages, portrait.prediction
    views = [_view(view, run, blocks, exact) | common[view.slot] for view in portrait.views]
    change, ledger = change_of(run, portrait.views), portrait.ledger
    estimates = {label(name): event for name, event in stages.estimates.items()} if stages else {}
    predicted = [
        {name: label(row[name]) for name in ("name", "said")}
        | {name: number(row[name]) for name in ("t", "low", "high", "measured")}
        for row in (predicted_events(path, stages, run) if path else ())
    ]
    return {
        "name": label(portrait.name),
        **texts_of(run, "status", "reason"),
        "clock": run.clock,
        "frames": run.frames,
        "time": blocks.f64(run.time),
        "about": about(portrait),
        "change": None if change is None else {"of": label(change.of), "at": blocks.f64(change.at)},
        "notes": labels(portrait.notes),
        "stages": [_stage(stage, run) for stage in (*(stages or ()), *(legs_as_stages(path, run) if path else ()))],
        "events": {label(name): number(time) for name, time in stages.events.items()} if stages else {},
        "event_notes": {label(name): label(note) for name, note in stages.notes.items()} if stages else {},
        "event_states": {name: event.words for name, event in estimates.items()},
        "event_intervals": {
            name: list(map(float, event.interval)) if event.interval and all(map(math.isfinite, event.interval)) else None
            for name, event in estimates.items()
        },
        "ledger": None if ledger is None else [_verdict(row, portrait) for row in ledger],
        "ledger_counts": {} if ledger is None else dict(ledger.counts()),
        "ledger_summary": "" if ledger is None else label(ledger.summary()),
        "ladder": None if portrait.ladder is None else [_rung(rung) for rung in portrait.ladder],
        "prediction": None if path is None else predicted,
        "provenance": [_facts(name, value) for name, value in portrait.provenance.items()],
        "views": views,
    }


def _stage(stage: Stage, run: Run) -> Json:
    """Without a finite stop the stage lasts to the end; without a finite start it begins with the run."""
    start = stage.start if math.isfinite(stage.start) else run.time[0]
    return {
        **texts_of(stage, "name", "evidence", "track"),
        "start": float(start),
        "stop": number(stage.stop),
        "aside": stage.aside,
    }


def _view(view: View, run: Run, blocks: Blocks, exact: bool) -> Json:
    frames = run.frames if view.frames is None else len(view.frames)
    common = {
        **texts_of(view, "slot", "title", "about"),
        "frames": None if view.frames is None else blocks.i32(view.frames),
        "of": run.frames,
        "shown": frames,
    }
    match view:
        case Curves():
            arrays, data = [curve.values for curve in view.curves], _curves(view, blocks)
        case Matrices():
            arrays, data = [view.values], _matrices(view, blocks, exact)
        case Points():
            # Points are few and always f32: in 8 bits they would be seen to jump.
            arrays = [view.values, view.explained]
            data = {"kind": "points", "labels": labels(view.labels), "tokens": view.tokens}
            data |= {"values": blocks.f32(view.values), "explained": blocks.f64(view.explained)}
        case _:
            raise InputError(f"{view.slot}: a page cannot draw {type(view).__name__}; it draws Curves, Matrices and Points")
    for values in arrays:
        if len(values) != frames:
            raise InputError(f"{view.slot}: a view of {frames} frames holds an array of {len(values)}")
    return common | data


def _curves(view: Curves, blocks: Blocks) -> Json:
    curves = [
        {**texts_of(c, "name", "family", "token"), "faint": c.faint, "dashed": c.dashed, "values": blocks.f64(c.values)}
        for c in view.curves
    ]
    levels = [{"name": label(level.name), "value": float(level.value)} for level in view.levels if math.isfinite(level.value)]
    return {"kind": "curves", "axis": label(view.axis), "log": view.log, "curves": curves, "levels": levels}


def _matrices(view: Matrices, blocks: Blocks, exact: bool) -> Json:
    """Cells are coded in the view's own range, for precision; the range of colours is that of its slot (`shared`)."""
    marks = view.marks and {"names": labels(view.marks.names), "cells": blocks.u8(view.marks.cells)}
    return {
        "kind": "matrices",
        "values": blocks.f32(view.values) if exact else blocks.companded(view.values, *bounds(view)),
        **{name: labels(getattr(view, name)) for name in ("panels", "rows", "columns")},
        **texts_of(view, "row_axis", "column_axis"),
        "across": view.across,
        "tokens": view.tokens,
        "marks": marks,
    }


def _verdict(row: Verdict, portrait: Portrait) -> Json:
    span, stages, over = span_of(row, portrait.stages, portrait.run), row.over_runs, None
    if stages is not None:
        over = {name: list(getattr(stages, name)) for name in ("x", "measured", "predicted")}
        over |= texts_of(stages, "x_axis", "y_axis")
        over |= {"names": labels(stages.names), "log_x": stages.log_x, "log_y": stages.log_y}
    return {
        **texts_of(row, "tag", "statement", "regime", "verdict", "reason", "unit", "group"),
        **{name: cell(getattr(row, name)) for name in ("predicted", "measured", "tolerance")},
        **numbers_of(row, "predicted_error", "measured_error"),
        "place": claim_place(row),
        "kind": row.kind,
        "calibrated": row.calibrated,
        "rates": None if row.rates is None else asdict(row.rates),
        "span": None if span is None else list(span),
        "lands": jump_target(row, portrait.stages, portrait.run),
        "over_runs": over,
    }


def _rung(rung: Rung) -> Json:
    times = ("measured_rate", "local_rate", "predicted_escape", "measured_escape")
    return {
        **texts_of(rung, "label", "note"),
        "t": float(rung.t),
        **numbers_of(rung, "residual", "loss", "remainder", *times),
        "distance": number(rung.distance) if rung.found else None,
        "opening": None if rung.opening is None else label(rung.opening),
        "rates": [float(rate) for rate in rung.rates if math.isfinite(rate)],
        "cosines": [float(cosine) for cosine in rung.cosines if math.isfinite(cosine)],
        "law": label(rung.law_words or rung.law),
    }


def _facts(name: str, value: Any) -> Json:
    """One group of provenance: rows of a name and a value, or a text such as a citation."""
    if isinstance(value, str):
        return {"title": label(name), "text": clean(value)}
    rows = value.items() if isinstance(value, Mapping) else value
    texts = ((key, item if isinstance(item, str) else json.dumps(item, default=str, ensure_ascii=False)) for key, item in rows)
    return {"title": label(name), "rows": [[label(key), label(text)] for key, text in texts]}


def cell(value: float | str | None) -> float | str | None:
    """A cell of the ledger; numbers that JSON does not know are written in words."""
    if isinstance(value, str):
        return label(value)
    return value if value is None else number(value) if math.isfinite(value) else str(float(value))


def label(text: str | None, longest: int = 2000) -> str:
    """A name as it travels, empty for none: cleaned, and cut where nobody reads on; a page shows the rest in a tooltip."""
    cleaned = "" if text is None else clean(str(text))
    return cleaned if len(cleaned) <= longest else f"{cleaned[:longest]}… ({len(cleaned):,} characters)"


def labels(names: Iterable[str]) -> list[str]:
    return list(map(label, names))


def texts_of(item: Any, *names: str) -> dict[str, str]:
    """Texts of an object as they travel."""
    return {name: label(getattr(item, name)) for name in names}


def clean(text: str) -> str:
    """Halves of surrogate pairs are no characters; each is replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def number(value: float | None) -> float | None:
    """JSON has no infinity: what is not finite becomes null."""
    return None if value is None or not math.isfinite(value) else float(value)


def numbers_of(item: Any, *names: str) -> dict[str, float | None]:
    """Numbers of an object as they travel."""
    return {name: number(getattr(item, name)) for name in names}


def about(portrait: Portrait) -> dict[str, Any] | None:
    """The explanation of a run; without one, the evidence of its stages."""
    explained = portrait.explained
    if explained is None:
        if portrait.stages is None:
            return None
        explained = Explained("", captions=captions(portrait.stages, plain))
    cited, table = portrait.reference, explained.table
    return {
        **texts_of(explained, "sentence", "lead"),
        "table": None
        if table is None
        else {
            "title": label(table.title),
            "rows": labels(table.rows),
            "columns": labels(table.columns),
            "values": [[number(float(value)) for value in row] for row in table.values],
        },
        "captions": [
            {**texts_of(one, "title", "text"), "start": number(one.start) or 0.0, "stop": number(one.stop)}
            for one in explained.captions
        ],
        "paper": None if cited is None else texts_of(cited, "text", "arxiv"),
    }


def glossary(group: Sequence[Portrait]) -> dict[str, str]:
    """Symbols of all pages, then those of the papers of a scene."""
    symbols_of_runs = [portrait.explained.glossary for portrait in group if portrait.explained is not None]
    return {label(symbol): label(says) for symbols in (GLOSSARY, *symbols_of_runs) for symbol, says in symbols.items()}


def claim_place(row: Verdict) -> str:
    """Where a claim stands in its theory, such as a saddle or a stage."""
    tag = tags().get(row.tag)
    return label(tag.number) if tag is not None else OTHER_CLAIMS


def places_of(group: Sequence[Portrait]) -> list[str]:
    """Places of all claims of a scene, in the order in which their papers declare them."""
    declared = list(tags())
    first: dict[tuple[str, str], int] = {}
    for rank, tag in enumerate(declared):
        first.setdefault((_paper(tag), label(tags()[tag].number)), rank)
    ranks: dict[str, int] = {}
    for row in (row for portrait in group for row in portrait.ledger or ()):
        place = claim_place(row)
        rank = first.get((_paper(row.tag), place), len(declared))
        ranks[place] = min(rank, ranks.get(place, rank))
    return sorted(ranks, key=lambda place: ranks[place])


def _paper(tag: str) -> str:
    return tag.split(":")[0]


def tokens_of(group: Sequence[Portrait]) -> list[str]:
    """Tokens of a scene in the order of their colours: that of the matrices between tokens, or of points."""
    views = [view for portrait in group for view in portrait.views]
    names = [name for view in views if isinstance(view, Matrices) and view.tokens for name in view.rows]
    names = names or [name for view in views if isinstance(view, Points) and view.tokens for name in view.labels]
    return labels(dict.fromkeys(names))[:1000]  # more than eight have no colour


def differing(group: Sequence[Portrait]) -> list[list[Any]]:
    """Options that are not the same in all runs of a scene: the name, and the value of each run."""
    configs = [portrait.run.config or {} for portrait in group]
    names = dict.fromkeys(name for config in configs for name in config)
    rows = [[label(name), [_value(config.get(name)) for config in configs]] for name in names]
    return [[name, values] for name, values in rows if len(set(values)) > 1][:12]


def _value(value: Any) -> str:
    """A setting as it is shown: of a file its name alone."""
    if isinstance(value, str):
        return label(Path(value).name if Path(value).is_absolute() else value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return label(" ".join(map(_value, value)))
    return "–" if value is None else label(json.dumps(value, default=str))


GENERATOR = '<meta name="generator" content="Stagescope'
"""Near the start of every page, so that reports are recognised."""
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def page(
    portraits: Sequence[Portrait], title: str | None = None, *, exact: bool = False, done: Callable[[], None] = lambda: None
) -> str:
    """The whole file. The same portraits give the same bytes; `done` is called after each run."""
    blocks = Blocks()
    named = title or first_names(portrait.name for portrait in portraits)
    data = page_data(portraits, named, blocks, exact=exact, done=done)
    styles = [uplot_file("uPlot.min.css"), viewer_style("style", "panels", "player", "guide", "play")]
    libraries = [uplot_file("uPlot.iife.js")]
    if played := play_of_runs([portrait.run for portrait in portraits]):
        data["play"] = played
        libraries.append(laws_script([study["name"] for study in played["studies"]]))
    return document(named, data, blocks, libraries, viewer_script("main"), styles)


def document(
    title: str, data: Any, blocks: Blocks, libraries: Sequence[str], viewer: str, styles: Sequence[str], kind: str = "report"
) -> str:
    """The HTML file: its data, scripts that are no modules, the viewer, and its styles."""
    parts = [
        *head(title, [*libraries, viewer], styles),
        f"<noscript>This {kind} is drawn by a script inside this file. Please allow scripts for it.</noscript>",
        '<main id="page"></main>',
        f'<script type="application/json" id="data">{safe_json(data)}</script>',
        *(f'<script type="application/octet-stream" id="block-{i}">{text}</script>' for i, text in enumerate(blocks.payloads)),
        *(f"<script>{library}</script>" for library in libraries),
        f'<script type="module">{viewer}</script>',
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


def head(title: str, scripts: Sequence[str], styles: Sequence[str], scheme: str = "light dark") -> list[str]:
    """The beginning of a file that runs these scripts alone, up to its body."""
    return [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy(scripts, styles)}">',
        f'{GENERATOR} {stagescope.__version__}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta name="color-scheme" content="{scheme}">',
        '<link rel="icon" href="data:,">',  # or a browser asks a server for one
        f"<title>{html.escape(clean(title)[:200])}</title>",
        *(f"<style>{style}</style>" for style in styles),
        "</head>\n<body>",
    ]


def policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Content Security Policy: these scripts, these styles, pictures the page itself makes, and nothing else."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {' '.join(map(_hash, styles))}",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def safe_json(value: Any) -> str:
    """JSON that may stand inside <script>: no sign in it can end the element or open another."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)
