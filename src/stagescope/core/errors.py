"""What can go wrong, in sentences a person can act on."""

import difflib
import traceback
import unicodedata
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories that a terminal obeys instead of showing: control and format characters, half pairs, separators of lines."""


def printable(text: str) -> str:
    """Text that cannot steer a terminal: what it would obey is spelled out, such as \\x1b; lines stay lines."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode() if c != "\n" and unicodedata.category(c) in _UNSEEN else c for c in text)


class StagescopeError(Exception):
    """Base of every error this package raises on purpose; `exit_code` is what the command line returns.

    Examples:
        >>> issubclass(ss.InputError, ss.StagescopeError)
        True
    """

    exit_code = 1

    def __str__(self) -> str:
        """A message may quote what somebody else stored."""
        return printable(super().__str__())


class InputError(StagescopeError, ValueError):
    """A value from the caller cannot be used: the message names it and what is expected.

    Examples:
        >>> try:
        ...     ss.LazyChain(pi=(0.5, 0.6), persistence=0.6)
        ... except ss.InputError as error:
        ...     print(error)
        pi sums to 1.1, not 1; divide it by its sum
    """

    exit_code = 2


class StoreError(StagescopeError):
    """A run could not be written or read; what was committed before is untouched.

    Examples:
        >>> issubclass(ss.DamagedRun, ss.StagescopeError), issubclass(ss.StoreError, ss.StagescopeError)
        (True, True)
    """


class NotARun(StoreError):
    """The folder holds no run.

    Examples:
        >>> try:
        ...     ss.load("nowhere")
        ... except ss.NotARun:
        ...     print("no run")
        no run
    """

    exit_code = 2


class DamagedRun(StoreError):
    """Stored bytes are not those that were committed.

    Examples:
        >>> folder = run.save("broken", overwrite=True).path
        >>> block = max((file for file in folder.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)
        >>> _ = block.write_bytes(b"x" + block.read_bytes()[1:])
        >>> try:
        ...     ss.load("broken")
        ... except ss.DamagedRun:
        ...     print("damaged")
        damaged
    """


def shortened(text: str, most: int) -> str:
    """A text of at most `most` characters."""
    return text if len(text) <= most else text[: most - 3] + "..."


def first_names(names: Iterable[str], most: int = 3) -> str:
    """The first of some names, each once, and the number of the others."""
    once = list(dict.fromkeys(names))
    return ", ".join(once[:most]) + (f" and {len(once) - most:,} more" if len(once) > most else "")


def message(error: BaseException) -> str:
    """The text of an error, also of one whose `__str__` raises an error itself."""
    try:
        return str(error)
    except (Exception, SystemExit):
        return "its message cannot be read"


def sentence(error: BaseException) -> str:
    """An error in one line: ours as it is, any other with its type and the file and line that raised it."""
    text = (message(error).splitlines() or [""])[0]
    text = printable(text)
    if isinstance(error, StagescopeError):
        return text
    return f"{type(error).__name__}: {text}{raised_at(traceback.extract_tb(error.__traceback__))}"


def raised_at(frames: Sequence[traceback.FrameSummary]) -> str:
    """The last name of the file, and the line, of the last of some frames."""
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def needed(package: str, extra: str, work: str) -> ModuleType:
    """A package that only some work needs, imported; where it is missing, the error names the extra that brings it."""
    try:
        return import_module(package)
    except ImportError:
        remedy = f"pip install 'stagescope[{extra}]'"
        raise InputError(f"{work} needs the package {package.replace('_', '-')}, which is not installed; {remedy}") from None


def unknown(kind: str, name: str, known: Iterable[str], more: Iterable[str] = ()) -> InputError:
    """The error for a name that does not exist, with the nearest one that does, in upper or lower case.

    The shortest name that begins with what was given is nearest: "focus" is a slip for "focus-dilution". A number
    is never a slip for another. `more` are sentences that may explain why the name is missing.
    """
    choices = sorted(sorted(known), key=lambda each: int(each) if each.isdigit() else float("inf"))
    folded = {choice.casefold(): choice for choice in reversed(choices)}
    begun = sorted((choice for choice in folded if len(name) > 1 and choice.startswith(name.casefold())), key=len)
    near = [] if name.isdigit() else begun or difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    hint = f"did you mean {folded[near[0]]!r}?" if near else "known: " + ", ".join(choices)
    return InputError("; ".join((f"unknown {kind} {name!r}; {hint}", *more)))
