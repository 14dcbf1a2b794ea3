"""Objects of your own by the name of a module that has them: "module:NAME", from the current folder or from what is installed."""

import importlib
import os
import sys
from types import ModuleType
from typing import Any

from stagescope.errors import InputError, message


def parts(given: str, what: str, example: str) -> tuple[str, str]:
    """Module and name in "module:NAME"; `what` is looked for, `example` is how it may be written."""
    module, _, name = given.partition(":")
    if not module or not name or module.startswith(".") or module.endswith(".py"):
        raise InputError(f"{given!r} names no {what}; write module:NAME, such as {example}")
    return module, name


def imported(module: str, what: str) -> ModuleType:
    """The current folder comes first while the module is imported, and stays on the path for what it imports later."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:  # the user's own code may raise anything
        missing = isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
        why = f"there is none in {here}, and none is installed" if missing else f"{type(error).__name__}: {message(error)}"
        raise InputError(f"the module {module!r} of the {what} cannot be imported: {why}") from None
    finally:
        sys.path.remove(here)
        if here not in sys.path and "" not in sys.path:
            sys.path.append(here)


def member(module: ModuleType, name: str, kinds: tuple[type, ...]) -> Any:
    """What a module has by a name; the error names what it has of the same kinds."""
    if not hasattr(module, name):
        known = [each for each, value in vars(module).items() if isinstance(value, kinds) and each[0] != "_"]
        more = f"; it has {', '.join(known)}" if known else ""
        raise InputError(f"the module {module.__name__!r} has no {name!r}{more}")
    return getattr(module, name)
