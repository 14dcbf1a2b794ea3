"""A portrait: everything a page says about one run, with its prediction and where it comes from.

What cannot be computed is left out, and a note says why.
"""

import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import stagescope
from stagescope.claims.claim import Claim
from stagescope.claims.reference import Reference
from stagescope.core.errors import StagescopeError, unknown
from stagescope.core.options import option_words
from stagescope.core.spec import Json
from stagescope.corpora.known import folders
from stagescope.detect.stage import Stage, Stages
from stagescope.landscape.ladder import BATCHES, drawn_afresh
from stagescope.landscape.saddle_path import SaddlePath
from stagescope.readings.reading import Reading, reading
from stagescope.readings.registry import paper_of, studies
from stagescope.runs.run import Run
from stagescope.views.any_run import any_views
from stagescope.views.view import Curve, Curves, Portrait, View
from stagescope.watching.source import KINDS, is_watched

TRACK = "predicted"
LEFT_OUT = "the prediction was left out as asked; `stagescope predict` makes it from the options of the run"
ABOUT = " Dashed, and the ticks at the bottom: loss and events predicted from the start, without the run."


def path_of(run_reading: Reading, skip: Collection[str], notes: list[str]) -> SaddlePath | None:
    """The prediction that a page shows: of gradient flows whose paper gives a path; a note says why a flow has none.

    Where the claims on a kind of runs are slow, so are its paths, and none is made for a page.
    """
    flow = (run_reading.run.spec["dynamics"] or {}).get("type") == "GradientFlow"
    if (
        not flow
        or not run_reading.run.frames
        or run_reading.kind is None
        or run_reading.kind.path is None
        or run_reading.cost.slow_claims
    ):
        return None
    if "prediction" in skip:
        notes.append(LEFT_OUT)
        return None
    if run_reading.prediction is None:
        notes.append(f"nothing is predicted from the start: {run_reading.unpredicted}")
    return run_reading.prediction


def with_predicted_loss(views: Iterable[View], path: SaddlePath, run: Run) -> tuple[View, ...]:
    """The views, the loss with that of the path; beyond the end of a path that does not end at rest there is none."""
    views_with_prediction = []
    for view in views:
        if isinstance(view, Curves) and view.slot == "loss" and path.losses.size:
            time = run.time if view.frames is None else run.time[view.frames]
            rests = any(event.absent for event in path.events.values())
            values = np.interp(time, path.time, path.losses, right=None if rests else np.nan)
            predicted = Curve("predicted", values, dashed=True)
            view = replace(view, about=view.about + ABOUT, curves=(*view.curves, predicted))
        views_with_prediction.append(view)
    return tuple(views_with_prediction)


def legs_as_stages(path: SaddlePath, run: Run) -> list[Stage]:
    """The legs of a path that begin before the run ends, on a track of their own."""
    stages = []
    for leg in path.legs:
        if leg.t_in < run.time[-1]:
            rate = "" if leg.local_rate is None else f", {leg.opens} opens at rate {leg.local_rate:.3g}"
            words = f"predicted from the start: loss {leg.loss:.4f} at its end, {leg.state}{rate}"
            stages.append(Stage(f"predicted {leg.label}", leg.t_in, leg.t_out, words, TRACK))
    return stages


def predicted_events(path: SaddlePath, stages: Stages | None, run: Run) -> list[Json]:
    """One row an event, in order of the predicted time: when it should come, and when it came."""
    measured = {} if stages is None else stages.events
    names = [*path.sequence, *(name for name in path.events if path.events[name].t is None)]
    rows = []
    for name in names:
        event, came, outcome = path.events[name], measured.get(name), ""
        if event.t is None:
            outcome = "does not come: " + event.reason if event.absent else event.reason
        elif came is None:
            outcome = "after the end of the run" if event.t > run.time[-1] else "did not come"
        rows.append({**event.json(), "name": name, "measured": came, "said": outcome})
    return rows


def provenance(run: Run) -> Json:
    """Titled facts: rows (name, value) or a text. The order is that of the page."""
    config = {name: value for name, value in (run.config or {}).items() if value is not None and name not in ("study", "seed")}
    sections: Json = {
        "run": _run(run),
        "model and probe": _model(run),
        "settings": [(name, setting_text(_local(value))) for name, value in config.items()],
    }
    environment = run.provenance.get("environment") or {}
    rows = [(name, str(environment[name])) for name in ("python", "system", "machine", "cores") if name in environment]
    rows += [(name, str(version)) for name, version in environment.get("packages", {}).items() if version != "absent"]
    sections["made with"] = [*rows, ("page written by stagescope", stagescope.__version__)]
    sections["on the command line"], sections["in Python"] = reproduce(run) or (None, None)
    paper = reference_of(run)
    sections["cite"] = paper and f"{paper.text}\n\n{paper.bibtex}"
    return {title: facts for title, facts in sections.items() if facts}


def _run(run: Run) -> list[tuple[str, str]]:
    last = f"{run.clock} = {run.time[-1]:.6g}" if run.frames else "none"
    clock = "flow time: the sum of step sizes" if run.clock == "t" else "steps: this optimiser has no flow time"
    field, dynamics = run.spec["field"], run.spec["dynamics"] or {}
    settings = {name: value for name, value in dynamics.items() if name != "type" and value not in ({}, None)}
    rows = [
        ("status", run.status + (f": {run.reason}" if run.reason else "")),
        ("frames", f"{run.frames:,}, the last at {last}"),
        ("clock", f"{run.clock} ({clock})" if field is not None else f"{run.clock}, as it was recorded"),
        ("seed", "not known" if run.seed is None else str(run.seed)),
        ("digest of the settings", run.config_digest),
        *([("source", _source(run.spec["source"]))] if field is None else [("model", str(field.get("name", field["type"])))]),
        ("dynamics", f"{dynamics.get('type', '')} {json.dumps(settings) if settings else ''}".strip()),
        ("parameters", ", ".join(f"{name} {'x'.join(map(str, run.params[name].shape[1:])) or '1'}" for name in run.params)),
    ]
    rows = [(name, value) for name, value in rows if value]
    if run.study is not None:
        rows.insert(0, ("study", f"{run.study}: {studies()[run.study].title}" if run.study in studies() else run.study))
    return rows


def _model(run: Run) -> list[tuple[str, str]]:
    """What is known of a model that was watched, a row each."""
    if not is_watched(run):
        return []
    rows = [(name, value) for name, value in run.spec["source"].items() if name not in ("kind", "probe")]
    probe = run.spec["source"].get("probe")
    rows += [(f"probe: {name}", value) for name, value in probe.items()] if isinstance(probe, Mapping) else []
    facts = []
    for name, value in rows:
        if isinstance(value, list):  # texts are quoted: tokens may be blanks
            value = [json.dumps(item, ensure_ascii=False) if isinstance(item, str) else item for item in value]
        if value not in (None, []):
            facts.append((str(name), setting_text(_local(value))))
    return facts


def _source(source: Mapping[str, Any]) -> str:
    """Where a run without a law of motion comes from."""
    if source["kind"] in KINDS:
        return {"watched": "training watched by ss.watch", "checkpoints": "checkpoints of a folder"}[source["kind"]]
    facts = {name: _local(value) for name, value in source.items() if name != "kind"}
    return f"{source['kind']} recorded elsewhere" + (f" {json.dumps(facts)}" if facts else "")


def _local(value: Any) -> Any:
    """A file by its name alone: the page is made to be sent, and whoever makes the run again has the file elsewhere."""
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def setting_text(value: Any) -> str:
    """An option as a page shows it."""
    if isinstance(value, list | tuple):
        first = value[:24]  # a vocabulary would fill the page
        suffix = f" ... ({len(value):,} in all)" if len(value) > len(first) else ""
        return " ".join(map(setting_text, first)) + suffix or "none"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def reproduce(run: Run) -> tuple[str, str] | None:
    """The command and the Python lines that make the run again; None for runs that are not a study's."""
    if run.study is None or run.study not in studies() or run.config is None:
        return None
    changed = {}  # options that differ from the study's defaults, as the config has them
    for name, info in studies()[run.study].options.model_fields.items():
        value = run.config.get(name)
        default = list(info.default) if isinstance(info.default, tuple) else info.default
        if value is not None and value != default:
            changed[name] = _local(value)
    literals = {name: tuple(value) if isinstance(value, list) else value for name, value in changed.items()}
    arguments = [repr(run.study), *(f"{name}={value!r}" for name, value in literals.items()), f"seed={run.seed}"]
    lines = f"import stagescope as ss\n\nrun = ss.run_study({', '.join(arguments)})\nprint(ss.check(run))"
    return run_command(run.study, changed, run.seed or 0, (run.path and run.path.name) or "run"), lines


def run_command(study: str, changed: Mapping[str, Any], seed: int, out: str) -> str:
    """The command that makes a run of a study, from the options that differ from its defaults."""
    words = [word for name, value in changed.items() for word in option_words(name, _local(value))]
    return shlex.join(["stagescope", "run", study, *words, "--seed", str(seed), "--out", out])


Found = TypeVar("Found")
PARTS = ("views", "stages", "ledger", "ladder", "prediction")
SKIPPED = ("ledger", "ladder", "prediction")
"""Parts that can be slow and may be left out."""
_ABSOLUTE = re.compile(r"(?<![^\s'\"(=])/[^\s,;:'\"()]+")
"""An absolute path in a sentence."""
LARGE = 500
"""Parameters from which the general search for critical points takes minutes."""


def portrait(
    run: Run,
    name: str | None = None,
    *,
    skip: Collection[str] = (),
    claims: Sequence[Claim] = (),
    done: Callable[[str], None] = lambda part: None,
) -> Portrait:
    """Views, stages, ledger, ladder and prediction of a run; `skip` leaves out some of `SKIPPED`, `done` gets each part's name.

    The ledger has the claims of the run's paper, then your own `claims`. It never raises for what a run is: one that failed,
    was interrupted, has a single frame or numbers that are not finite has a portrait of what there is.
    """
    skip = skipped(skip)
    notes: list[str] = []  # first what a reader must know before believing the rest
    if not run.done:
        reason = run.reason or "it did not reach its end"
        notes.append(f"the run is {run.status}: {reason}; nothing after its last frame is known")
    if run.frames < 2:
        sentence = "a single frame was recorded: nothing is seen to move"
        notes.append(sentence if run.frames else "no frame was recorded: there is nothing to show")
    run_reading = reading(run)
    if run.frames and (missed := _tried("the replay", lambda: run_reading.replay_note, notes)):
        notes.append(missed)
    views = _views(run, notes)
    done("views")
    stages = _tried("stages", lambda: run_reading.told_stages, notes) if run.frames else None
    events = () if stages is None else (*stages.events, "replay")
    notes += [f"{name}: {note}" for name, note in (stages.notes if stages else {}).items() if name not in events]
    done("stages")
    read = run_reading.kind is not None and run.frames > 0
    judged = read or (bool(claims) and run.frames > 0)
    reason = str(run_reading.not_available_error("claims"))
    if not judged and not any(reason in note for note in notes):
        notes.append(reason)
    if judged and "ledger" in skip:
        notes.append(_as_asked("ledger", "check"))
    ledger = _tried("the ledger", lambda: run_reading.check(claims), notes) if judged and "ledger" not in skip else None
    if ledger is not None:  # what could not be computed for a claim may name a file
        ledger = replace(ledger, verdicts=tuple(replace(row, reason=_without_path(row.reason, run)) for row in ledger))
    done("ledger")
    reason = no_ladder(run, skip)
    if reason is not None:
        notes.append(reason)
    ladder = _tried("the saddle ladder", lambda: run_reading.ladder, notes) if reason is None else None
    done("ladder")
    path = _tried("the prediction", lambda: path_of(run_reading, skip, notes), notes)
    views = views if path is None else with_predicted_loss(views, path, run)
    done("prediction")
    words = _tried("the explanation", lambda: run_reading.explained, notes) if run.frames else None
    clean = tuple(_without_path(note, run) for note in notes)
    shared_run = replace(run, reason=_without_path(run.reason, run))
    facts = {"explained": words, "reference": reference_of(run)}
    return Portrait(name or named(run), shared_run, views, stages, ledger, ladder, provenance(shared_run), clean, path, **facts)


def reference_of(run: Run) -> Reference | None:
    """The paper of a run that was made by a study."""
    return paper_of(run.study).reference if run.study in studies() else None


def skipped(skip: Collection[str]) -> tuple[str, ...]:
    """The parts to leave out, checked; a single one may be given as it is."""
    parts = (skip,) if isinstance(skip, str) else tuple(skip)
    for part in parts:
        if part not in SKIPPED:
            raise unknown("part to skip", part, SKIPPED)
    return parts


def named(run: Run) -> str:
    """A short name: that of its folder, or what it is."""
    if run.path is not None:
        return run.path.resolve().name
    return f"{run.study or run.type}" + ("" if run.seed is None else f", seed {run.seed}")


def _without_path(text: str, run: Run) -> str:
    """A page is made to be sent: of where a run or another file is stored it says the last name alone."""
    places = set() if run.path is None else {str(run.path.resolve()), str(run.path.absolute()), str(run.path)}
    for path in sorted(places, key=len, reverse=True):
        text = text.replace(path, named(run)) if os.sep in path else text
    files = {
        value
        for value in (*(run.config or {}).values(), *_strings([run.spec["field"], run.spec.get("source")]))
        if isinstance(value, str)
    }
    files |= set(map(str, (*folders(), Path.cwd())))
    for path in sorted(files, key=len, reverse=True):  # they may hold blanks, where the pattern would end
        text = text.replace(path, Path(path).name) if Path(path).is_absolute() and Path(path).name else text
    return _ABSOLUTE.sub(lambda match: Path(match[0]).name, text)


def _strings(described: Any) -> Iterator[str]:
    """All texts in a description."""
    if isinstance(described, str):
        yield described
    elif isinstance(described, dict | list):
        for item in described.values() if isinstance(described, dict) else described:
            yield from _strings(item)


def _views(run: Run, notes: list[str]) -> tuple[View, ...]:
    if run.frames == 0:
        return ()
    run_reading = reading(run)
    listed = _tried("the views of its model", lambda: run_reading.views, notes)
    if listed is None:
        listed = any_views(run_reading)
    views = []
    for maker in listed:
        name = getattr(getattr(maker, "func", maker), "__name__", "view").strip("_").replace("_", " ")
        views.append(_tried(f"a view ({name})", maker, notes))
    return tuple(view for view in views if view is not None)


def _tried(part: str, make: Callable[[], Found], notes: list[str]) -> Found | None:
    """What `make` makes; None and a note where it fails.

    Every error is caught: numbers that are not finite break solvers and fits in many ways, and the page that says so is
    what its reader needs then.
    """
    try:
        return make()
    except StagescopeError as error:
        notes.append(f"{part} could not be computed: {error}")
    except Exception as error:
        notes.append(f"{part} could not be computed: {type(error).__name__}: {error}")
    return None


def _as_asked(part: str, command: str) -> str:
    return f"the {part} was left out as asked; `stagescope {command}` on the folder of the run computes it"


def no_ladder(run: Run, skip: Collection[str] = ()) -> str | None:
    """Why a run has no saddle ladder on the page; None where one is computed."""
    run_reading, size = reading(run), sum(run.params[name][0].size for name in run.params) if run.frames else 0
    if run.frames < 2:
        return "a saddle ladder needs more than one frame"
    if run.spec["field"] is None:
        return "a saddle ladder needs a law of motion, and this run was recorded elsewhere"
    if run_reading.type == "own" and run_reading.what is None:
        return "the saddle ladder needs your objective: ss.report(run, objective=...), or --objective MODULE:NAME of `report`"
    with suppress(StagescopeError):  # a law that cannot be built, which the ladder says
        if not run_reading.has_own_ladder and drawn_afresh(run_reading.field):
            return f"there is no saddle ladder: {BATCHES}"
    if "ladder" in skip:
        return _as_asked("ladder", "ladder")
    if not run_reading.has_own_ladder and (size > LARGE or run_reading.cost.slow_ladder):
        advice = "`stagescope ladder` on the folder of the run says how long, and computes it"
        return f"the saddle ladder of {size:,} parameters takes from minutes to hours and was left out; {advice}"
    return None
