"""Claims of your own: given as objects, or by the name of a module that has them."""

import hashlib
import importlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from stagescope.claims.claim import Claim
from stagescope.errors import InputError, message

Claims = str | Claim | Iterable[Claim]
"""Claims as a caller gives them: one, several, or "module:NAME"."""


def own_claims(given: Claims) -> tuple[Claim, ...]:
    """The claims that are given; "module:NAME" is imported from the current folder or from what is installed."""
    if isinstance(given, str):
        module, name = _parts(given)
        return _checked(_named(_imported(module), name), given)
    return _checked(given, "claims")


def source_digest(given: str) -> str:
    """SHA-256 of the file of the module in "module:NAME", so that a change of the claims is noticed."""
    module = _imported(_parts(given)[0])
    if getattr(module, "__file__", None) is None or module.__name__ == "__main__":
        raise InputError(f"{given}: workers cannot import {module.__name__}; write the claims into a file of their own")
    return hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest()


def forget(given: str) -> None:
    """Import the module of "module:NAME" anew when it is next used: a worker may have the claims of an earlier call."""
    sys.modules.pop(_parts(given)[0], None)
    importlib.invalidate_caches()


def _parts(given: str) -> tuple[str, str]:
    module, _, name = given.partition(":")
    if not module or not name or module.startswith(".") or module.endswith(".py"):
        raise InputError(f"{given!r} names no claims; write module:NAME, such as myclaims:CLAIMS")
    return module, name


def _imported(module: str) -> ModuleType:
    """The current folder comes first while the module is imported, and stays on the path for what it imports later."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:  # the user's own code may raise anything
        missing = isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
        why = f"there is none in {here}, and none is installed" if missing else f"{type(error).__name__}: {message(error)}"
        raise InputError(f"the module {module!r} of the claims cannot be imported: {why}") from None
    finally:
        sys.path.remove(here)
        if here not in sys.path and "" not in sys.path:
            sys.path.append(here)


def _named(module: ModuleType, name: str) -> Any:
    if not hasattr(module, name):
        known = [each for each, value in vars(module).items() if isinstance(value, Claim | tuple | list) and each[0] != "_"]
        more = f"; it has {', '.join(known)}" if known else ""
        raise InputError(f"the module {module.__name__!r} has no {name!r}{more}")
    return getattr(module, name)


def _checked(given: Any, what: str) -> tuple[Claim, ...]:
    """Claims and nothing else."""
    if isinstance(given, Claim):
        return (given,)
    if isinstance(given, dict) or not isinstance(given, Iterable):
        raise InputError(f"{what} is of type {type(given).__name__}; give a Claim, or a list of claims")
    found = tuple(given)
    for place, claim in enumerate(found):
        if not isinstance(claim, Claim):
            raise InputError(f"{what}: number {place + 1} is of type {type(claim).__name__}, not a stagescope Claim")
    tags = [claim.tag for claim in found]
    for tag in tags:
        if tags.count(tag) > 1:
            raise InputError(f"{what}: {tags.count(tag)} claims have the tag {tag!r}; give each a tag of its own")
    return found
