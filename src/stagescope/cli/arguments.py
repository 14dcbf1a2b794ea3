"""Words of the command line before they are parsed: unknown options of a study, and `run --config FILE`."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from stagescope.errors import InputError, unknown
from stagescope.memory import read_table
from stagescope.options import option, option_words
from stagescope.papers.registry import studies, study


def refuse_unknown(verb: str, name: str, fields: Iterable[str], arguments: Iterable[str]) -> None:
    """The first word that looks like an option and is none of these fields, with the nearest one, or the studies that have it."""
    known = {option(field.rstrip("_")) for field in fields} | {"--help"}
    for word in arguments:
        given = word.partition("=")[0].replace("_", "-")
        if not given.startswith("--") or not given[2:3].isalpha() or given in known:
            continue
        more = f"`stagescope {verb} {name} --help` lists the options"
        others = [
            study.name for study in studies().values() if any(option(field) == given for field in study.options.model_fields)
        ]
        if not others:
            raise unknown(f"option of {verb} {name}", given, known, (more,))
        if name in others:
            raise InputError(f"`stagescope {verb}` does not take {given}: it is an option of `stagescope run {name}`; {more}")
        raise InputError(f"{name} has no option {given}; it is for {', '.join(others)}; {more}")


FLAG = "--config"
_OWN = ("study", "preset", "seed", "out")
"""What a configuration may set besides the options of its study."""


def expanded(arguments: Sequence[str]) -> list[str]:
    """The words of `run` with those of a configuration in the place of --config; words that are given come first."""
    words = [part for word in arguments for part in (word.split("=", 1) if word.startswith(f"{FLAG}=") else [word])]
    if words[:1] != ["run"] or FLAG not in words:
        return list(arguments)
    place = words.index(FLAG)
    if place + 1 >= len(words):
        raise InputError(f"{FLAG} needs the file of a run configuration, such as the page of `stagescope play` saves")
    path, rest = Path(words[place + 1]), [*words[1:place], *words[place + 2 :]]
    config = read_config(path)
    named = rest[:1] if rest and not rest[0].startswith("-") else []
    if named and named != [config["study"]]:
        raise InputError(f"{path} is a configuration of {config['study']}, not of {named[0]}")
    given = {word.partition("=")[0].replace("_", "-") for word in rest if word.startswith("--")}
    kept = {name: value for name, value in config.items() if name != "study" and option(name) not in given}
    own = [word for name, value in kept.items() for word in option_words(name, value)]
    return ["run", config["study"], *own, *rest[len(named) :]]


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
    known = (*_OWN, *study(config["study"]).options.model_fields)
    for name, value in config.items():
        if name not in known:
            raise unknown(f"option of {config['study']} in {path}:", name, known)
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, dict | list):
                raise InputError(f"{name} in {path} is {value!r:.60}; expected a number, a text or a list of them")
            if isinstance(one, str) and one.startswith("-"):  # it would be an option of its own, such as --overwrite
                raise InputError(f"{name} in {path} is {one!r:.60}; no text in a configuration may begin with '-'")
    return config
