"""Objects of your own by the name of a module that has them: "module:NAME", from the current folder or from what is installed."""

import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Iterator
from functools import cached_property, partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from stagescope.core.errors import InputError, message


def parts(given: str, what: str, example: str) -> tuple[str, str]:
    """Module and name in "module:NAME"; `what` is looked for, `example` is how it may be written."""
    module, _, name = given.partition(":")
    if not module or not name or module.startswith(".") or module.endswith(".py"):
        raise InputError(f"{given!r} names no {what}; write module:NAME, such as {example}")
    return module, name


def imported(module: str, what: str) -> ModuleType:
    """The current folder comes first while the module is imported, and stays on the path for what it imports later."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:  # the user's own code may raise anything
        absent = isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
        reason = f"there is none in {folder}, and none is installed" if absent else f"{type(error).__name__}: {message(error)}"
        raise InputError(f"the module {module!r} of the {what} cannot be imported: {reason}") from None
    finally:
        sys.path.remove(folder)
        if folder not in sys.path and "" not in sys.path:
            sys.path.append(folder)


def member(module: ModuleType, name: str, kinds: tuple[type, ...]) -> Any:
    """What a module has by a name; the error names what it has of the same kinds."""
    if not hasattr(module, name):
        names = [attribute for attribute, value in vars(module).items() if isinstance(value, kinds) and attribute[0] != "_"]
        hint = f"; it has {', '.join(names)}" if names else ""
        raise InputError(f"the module {module.__name__!r} has no {name!r}{hint}")
    return getattr(module, name)


def fingerprint(what: Any) -> str:
    """A digest of what can be seen of an objective: the source of its class and functions, and its parameters and data."""
    hasher = hashlib.sha256()
    for part in _pieces(what, depth=0):
        hasher.update(part + b"\0")
    return hasher.hexdigest()


def _pieces(value: Any, depth: int) -> Iterator[bytes]:
    """The same in pieces; of other objects only the type is told, and nothing that is more than four objects away."""
    if depth > 4:
        return
    if value is None or isinstance(value, str | bytes | bool | int | float | complex):
        yield repr(value).encode()
    elif isinstance(value, partial | MethodType):
        bound = (value.func, *value.args, value.keywords) if isinstance(value, partial) else (value.__func__, value.__self__)
        for part in bound:
            yield from _pieces(part, depth)
    elif isinstance(value, FunctionType | type):
        yield _source(value)
        cells = getattr(value, "__closure__", None) or ()
        captured = [cell.cell_contents for cell in cells if cell != CellType()]
        named = getattr(value, "__kwdefaults__", None) or {}
        yield from _pieces([*captured, getattr(value, "__defaults__", None), *named.values()], depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield str(name).encode()
            yield from _pieces(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _pieces(item, depth + 1)
    elif hasattr(value, "__array__"):
        import numpy as np  # commands start without it

        try:
            array = np.asarray(value)
        except Exception:  # such as a key of JAX, or a tensor that asks for its gradient
            yield _source(type(value))
            return
        yield f"{array.dtype} {array.shape}".encode() + (b"" if array.dtype.hasobject else array.tobytes())
    else:
        yield _source(type(value))
        cached = {name for name, attribute in inspect.getmembers_static(type(value)) if isinstance(attribute, cached_property)}
        yield from _pieces({name: item for name, item in getattr(value, "__dict__", {}).items() if name not in cached}, depth + 1)


def _source(value: Any) -> bytes:
    try:
        return inspect.getsource(value).encode()
    except (OSError, TypeError):  # typed at a prompt, or compiled
        return f"{value.__module__}.{value.__qualname__}".encode()
