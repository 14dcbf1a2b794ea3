"""Words of the command line before they are parsed: unknown options of a study, and `run --config FILE`."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from stagescope.core.errors import InputError, unknown
from stagescope.core.memory import read_table
from stagescope.core.options import option, option_words
from stagescope.readings.registry import studies, study


def refuse_unknown(verb: str, name: str, fields: Iterable[str], arguments: Iterable[str]) -> None:
    """The first word that looks like an option and is none of these fields, with the nearest one, or the studies that have it."""
    options = {option(field.rstrip("_")) for field in fields} | {"--help"}
    for word in arguments:
        flag = word.partition("=")[0].replace("_", "-")
        if not flag.startswith("--") or not flag[2:3].isalpha() or flag in options:
            continue
        hint = f"`stagescope {verb} {name} --help` lists the options"
        studies_with = [
            study.name for study in studies().values() if any(option(field) == flag for field in study.options.model_fields)
        ]
        if not studies_with:
            raise unknown(f"option of {verb} {name}", flag, options, (hint,))
        if name in studies_with:
            raise InputError(f"`stagescope {verb}` does not take {flag}: it is an option of `stagescope run {name}`; {hint}")
        raise InputError(f"{name} has no option {flag}; it is for {', '.join(studies_with)}; {hint}")


FLAG = "--config"
_SETTINGS = ("study", "preset", "seed", "out")
"""What a configuration may set besides the options of its study."""


def expanded(arguments: Sequence[str]) -> list[str]:
    """The words of `run` with those of a configuration in the place of --config; words that are given come first."""
    words = [part for word in arguments for part in (word.split("=", 1) if word.startswith(f"{FLAG}=") else [word])]
    if words[:1] != ["run"] or FLAG not in words:
        return list(arguments)
    place = words.index(FLAG)
    if place + 1 >= len(words):
        raise InputError(f"{FLAG} needs the file of a run configuration, such as the page of `stagescope play` saves")
    path, remaining = Path(words[place + 1]), [*words[1:place], *words[place + 2 :]]
    config = read_config(path)
    named = remaining[:1] if remaining and not remaining[0].startswith("-") else []
    if named and named != [config["study"]]:
        raise InputError(f"{path} is a configuration of {config['study']}, not of {named[0]}")
    flags = {word.partition("=")[0].replace("_", "-") for word in remaining if word.startswith("--")}
    settings = {name: value for name, value in config.items() if name != "study" and option(name) not in flags}
    setting_words = [word for name, value in settings.items() for word in option_words(name, value)]
    return ["run", config["study"], *setting_words, *remaining[len(named) :]]


def read_config(path: Path) -> dict[str, Any]:
    """A configuration: a JSON object with the study, and perhaps preset, seed, out, and options by their names in Python."""
    try:
        config = json.loads(read_table("the run configuration", path))
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the run configuration {path}: {error}") from None
    if not isinstance(config, dict) or not isinstance(config.get("study"), str):
        raise InputError(f'{path} is no run configuration; expected a JSON object such as {{"study": "focus-dilution"}}')
    names = (*_SETTINGS, *study(config["study"]).options.model_fields)
    for name, value in config.items():
        if name not in names:
            raise unknown(f"option of {config['study']} in {path}:", name, names)
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, dict | list):
                raise InputError(f"{name} in {path} is {value!r:.60}; expected a number, a text or a list of them")
            if isinstance(one, str) and one.startswith("-"):  # it would be an option of its own, such as --overwrite
                raise InputError(f"{name} in {path} is {one!r:.60}; no text in a configuration may begin with '-'")
    return config
