"""Ids of types: how a spec names the type of an object."""

from importlib import import_module
from typing import Any

SCRIPT = "__main__"
"""What Python calls the module of a script or a notebook."""


def type_id(module: str, name: str) -> str:
    """The id of a type in a spec: bare in the core, `paper/Type` in one of our papers, `package/Type` anywhere else.

    A type of a script or a notebook is `__main__/Type`.
    """
    parts = module.split(".")
    owner = parts[0]
    if owner == __name__.split(".")[0]:
        owner = parts[2] if parts[1:2] == ["papers"] and len(parts) > 3 else ""
    spelled = owner if owner == SCRIPT else owner.replace("_", "-")
    return f"{spelled}/{name}" if owner else name


def named_object(target: str) -> Any:
    """The object of "package.module:name", imported now."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
