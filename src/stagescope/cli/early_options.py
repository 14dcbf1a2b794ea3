"""Unknown options of a command that takes a study, refused in one sentence before the parser is made."""

from collections.abc import Iterable

from stagescope.errors import InputError, unknown
from stagescope.options import option
from stagescope.papers.registry import studies


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
