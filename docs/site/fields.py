"""Signatures of described classes, whose constructors take their fields: read from the imported package."""

import inspect
import typing
from typing import Any

import griffe
from pydantic import BaseModel

import stagescope
from stagescope.core.errors import InputError


def shown(hint: Any) -> str:
    """A type as a reader would write it."""
    return inspect.formatannotation(hint).replace("stagescope.", "").replace("typing.", "").rsplit("papers.", 1)[-1]


def parameters(kind: type) -> list[griffe.Parameter]:
    hints = typing.get_type_hints(kind)
    found = []
    for name, each in inspect.signature(kind).parameters.items():
        default = None if each.default is each.empty else repr(each.default)
        hint = shown(hints.get(name, Any))
        short = hint if len(hint) < 60 else None
        found.append(griffe.Parameter(name, annotation=short, kind=griffe.ParameterKind.keyword_only, default=default))
    return found


class Fields(griffe.Extension):
    """Gives described classes a constructor."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        try:
            kind = getattr(stagescope, cls.name) if cls.name in stagescope.__all__ else None
        except InputError:  # it belongs to a package that is not installed, such as transformers; it is no described class
            return
        if isinstance(kind, type) and kind.__module__ == cls.module.path and issubclass(kind, BaseModel):
            made = griffe.Function("__init__", parameters=griffe.Parameters(*parameters(kind)), parent=cls)
            cls.set_member("__init__", made)
