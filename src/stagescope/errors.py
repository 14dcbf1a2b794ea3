"""What can go wrong, in sentences a person can act on."""

import difflib
import traceback
from collections.abc import Iterable
from pathlib import Path


class StagescopeError(Exception):
    """Base of every error this package raises on purpose; `exit_code` is what the command line returns."""

    exit_code = 1


class InputError(StagescopeError, ValueError):
    """A value from the caller cannot be used: the message names it and what is expected."""

    exit_code = 2


class StoreError(StagescopeError):
    """A run could not be written or read; what was committed before is untouched."""


class NotARun(StoreError):
    """The folder holds no run."""

    exit_code = 2


class DamagedRun(StoreError):
    """Stored bytes are not those that were committed."""


def message(error: BaseException) -> str:
    """The text of an error, also of one whose `__str__` raises an error itself."""
    try:
        return str(error)
    except (Exception, SystemExit):
        return "its message cannot be read"


def sentence(error: BaseException) -> str:
    """An error in one line: ours as it is, any other with its type and the file and line that raised it."""
    text = (message(error).splitlines() or [""])[0]
    if isinstance(error, StagescopeError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {text}{where}"


def unknown(kind: str, name: str, known: Iterable[str], more: Iterable[str] = ()) -> InputError:
    """The error for a name that does not exist, with the nearest one that does; a number is never a slip for another.

    `more` are sentences that may explain why the name is missing.
    """
    choices = sorted(sorted(known), key=lambda each: int(each) if each.isdigit() else float("inf"))
    near = [] if name.isdigit() else difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else "known: " + ", ".join(choices)
    return InputError("; ".join((f"unknown {kind} {name!r}; {hint}", *more)))
