"""What a playground carries: studies that declare how they are played, their presets and sliders, and starts drawn here."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

import stagescope
from stagescope.core.errors import InputError, unknown
from stagescope.core.spec import Json
from stagescope.readings.playable import SEEDS, Playable, Slider
from stagescope.readings.registry import studies, study
from stagescope.readings.study import Study
from stagescope.runs.run import Run
from stagescope.show.bundle import embeddable, unexported

Settings = Mapping[str, Any]


def playable() -> dict[str, Study]:
    """The studies that can be played, by name."""
    return {name: study_of_name for name, study_of_name in studies().items() if study_of_name.play is not None}


def play_of(name: str) -> tuple[Study, Playable]:
    """A study by name, and how it is played."""
    of_study = study(name)
    if of_study.play is None:
        raise InputError(f"{name} cannot be played in a page; these can: {', '.join(playable())}")
    return of_study, of_study.play


def play_data(names: Sequence[str], title: str, start: Mapping[str, Settings] | None = None) -> Json:
    """The data of `viewer/play.js` for some studies; `start` has settings by study with which they begin."""
    data = [_study(*play_of(name), (start or {}).get(name, {})) for name in names]
    return {"title": title, "version": stagescope.__version__, "studies": data}


def play_of_runs(runs: Sequence[Run]) -> Json | None:
    """The data of a Play tab: studies of these runs that can be played, each from the settings of its first run."""
    start: dict[str, Settings] = {}
    for run in runs:
        of_study = studies().get(run.study or "")
        if of_study is None or of_study.play is None or of_study.name in start:
            continue
        stored = run.config or {}
        try:  # the options of a stored run are checked: somebody else may have written them
            options = of_study.configured(**{name: stored[name] for name in of_study.options.model_fields if name in stored})
        except InputError:
            continue
        config = {**options.model_dump(mode="json"), "seed": stored.get("seed", 0)}
        if type(config["seed"]) is not int or not of_study.play.fits(config) or not run.frames:
            continue
        # The preset with the fewest differences from some settings, so that a command is short; None where there is none.
        differ = {
            name: [config.get(option) for option, value in preset["options"].items() if config.get(option) != value]
            for name, preset in _presets(of_study, of_study.play).items()
        }
        possible = [name for name, values in differ.items() if not any(value is None or value is False for value in values)]
        preset = min(possible, key=lambda name: len(differ[name]), default=None)
        if "until" in config and config["until"] is None:
            config["until"] = float(f"{run.time[-1]:.3g}")  # the study chose it for these options
        if preset is None or outside(of_study.play, config):
            continue
        # Options that sliders move, and those that decide which sliders there are.
        options_moved = {name for slider in of_study.play.sliders for name in (slider.option.partition(".")[0], *slider.where)}
        start[of_study.name] = {"preset": preset} | {
            option: config[option] for option in options_moved if config.get(option) is not None
        }
    return play_data(list(start), "Play", start) if start else None


def laws_script(names: Sequence[str]) -> str:
    """The laws of some studies as one script: each in a scope of its own, by the name of its study."""
    parts = []
    for name in names:
        play = play_of(name)[1]
        text = play.text()
        for function in ("prepare", "settle"):
            if f"export function {function}(" not in text:
                raise InputError(f"the law {play.script!r} has no 'export function {function}(': see docs/play.md")
        law = unexported(embeddable(text, play.script), play.script)
        parts.append(f"{json.dumps(name)}: (() => {{\n{law}\nreturn {{ prepare, settle }};\n}})()")
    return "globalThis.stagescopeLaws = {\n...globalThis.stagescopeLaws,\n" + ",\n".join(parts) + "\n};\n"


def _study(of_study: Study, play: Playable, start: Settings) -> Json:
    presets = _presets(of_study, play)
    if not presets:
        raise InputError(f"no preset of {of_study.name} has the options that its law assumes: {dict(play.fixed)}")
    about = {name: info.description or "" for name, info in of_study.options.model_fields.items()}
    first = start.get("preset") or next(iter(presets))
    if first not in presets:
        raise unknown(f"preset of {of_study.name} that can be played:", str(first), presets)
    changes = {name: value for name, value in start.items() if name != "preset"}
    return {
        "name": of_study.name,
        "title": of_study.title,
        "about": about,
        "presets": presets,
        "sliders": [asdict(slider) for slider in play.sliders],
        "draws": [_packed(play.draws(seed)) for seed in range(SEEDS)] if play.draws else [],
        "constants": dict(play.constants()),
        "start": {"preset": first, "options": _checked(of_study, play, first, changes)},
    }


def _presets(of_study: Study, play: Playable) -> dict[str, Json]:
    """Presets that the law is made for: options as stated, and the end of the flow, which some leave open."""
    presets = {}
    for name in of_study.presets:
        options = of_study.configured(name)
        stated = options.model_dump(mode="json")
        if play.fits(stated) and not outside(play, stated):
            # The end of the flow; three digits where it is not given but predicted.
            until = getattr(options, "until", None)
            presets[name] = {
                "options": stated,
                "until": float(until if until is not None else f"{of_study.setup(options, 0).until:.3g}"),
            }
    return presets


def _checked(of_study: Study, play: Playable, preset: str, changes: Settings) -> Json:
    """Changes as JSON, with a sentence for what the page could not show."""
    seed = changes.get("seed", 0)
    options = of_study.configured(preset, **{name: value for name, value in changes.items() if name != "seed"})
    settings = {**options.model_dump(mode="json"), "seed": seed}
    if not play.fits(settings):
        wrong = next(name for name, value in play.fixed.items() if not play.fits({**play.fixed, name: settings[name]}))
        raise InputError(f"{of_study.name} is played with {wrong} {play.fixed[wrong]!r} only, not with {settings[wrong]!r}")
    for slider, value in outside(play, settings):
        raise InputError(f"{slider.option} is {value}, but is played from {slider.low:g} to {slider.high:g}")
    return {name: settings[name] for name in changes}


def outside(play: Playable, options: Settings) -> list[tuple[Slider, Any]]:
    """Values that no slider reaches."""
    beyond = []
    for slider in play.sliders:
        value = options.get(slider.option.partition(".")[0])
        several = value if isinstance(value, list | tuple) else [value]
        if not all(bool(options.get(name)) == value_where for name, value_where in slider.where.items()):
            continue
        if len(several) > slider.longest:
            beyond.append((slider, f"{len(several)} numbers"))
        beyond += [(slider, one) for one in several[: slider.longest] if one is not None and not slider.low <= one <= slider.high]
    return beyond


def _packed(blocks: Mapping[str, Any]) -> dict[str, str]:
    """Float64 in base64: every bit arrives."""
    return {name: base64.b64encode(np.asarray(block, dtype="<f8").ravel().tobytes()).decode() for name, block in blocks.items()}
