"""Reference numbers of a paper: each stands once, in `reference.json` beside the paper, with its unit, tolerance and source."""

import json
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

from stagescope.errors import StagescopeError


@dataclass(frozen=True)
class Published:
    """A number to compare with, or a list or table of them.

    `tolerance` is relative or absolute as `source` states, and None where the number is only shown. `source` says where the
    number comes from: a figure or table of the paper, an independent implementation, or an earlier result of this package.
    """

    value: Any
    unit: str
    tolerance: float | None
    source: str


@cache
def published(package: str) -> dict[str, Published]:
    """The reference numbers of a paper by name, from the file `reference.json` of its package."""
    where = f"reference.json of {package}"
    try:
        found = json.loads(resources.files(package).joinpath("reference.json").read_text(encoding="utf-8"))
    except (OSError, ModuleNotFoundError) as error:
        raise StagescopeError(f"cannot read {where}: {error}") from None
    except ValueError as error:
        raise StagescopeError(f"{where} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise StagescopeError(f"{where} is a {type(found).__name__}; expected an object with one entry per number")
    return {name: _entry(f"the entry {name!r} in {where}", entry) for name, entry in found.items()}


def _entry(where: str, entry: Any) -> Published:
    wanted = [field.name for field in fields(Published)]
    if not isinstance(entry, dict) or set(entry) != set(wanted):
        has = ", ".join(map(str, entry)) if isinstance(entry, dict) else type(entry).__name__
        raise StagescopeError(f"{where} has {has or 'no fields'}; expected {', '.join(wanted)}")
    made = Published(**entry)
    for name, good, expected in (
        (
            "value",
            _is_number(made.value) or (isinstance(made.value, list | dict) and made.value),
            "a number, a list or an object",
        ),
        (
            "tolerance",
            made.tolerance is None or (_is_number(made.tolerance) and made.tolerance >= 0),
            "a number from 0 on, or null",
        ),
        ("unit", isinstance(made.unit, str), "text, empty for a pure number"),
        ("source", isinstance(made.source, str) and made.source, "text that says where the number comes from"),
    ):
        if not good:
            raise StagescopeError(f"{where} has the {name} {getattr(made, name)!r}; expected {expected}")
    return made


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
