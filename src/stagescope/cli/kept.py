"""Commands that are answered before a parser is loaded: those whose answer a reading has kept."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stagescope.core.caches import FRESH, say

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a thread pool costs .2 s to start, and `evolve` uses one thread anyway
FLAGS = {
    "stages": {"--all", "--json"},
    "check": {"--elsewhere", "--json", "--quiet"},
    "ladder": {"--json", "--quiet"},
}
"""Switches with which a kept answer is shown; any other word is for the parser."""


def kept(arguments: Sequence[str]) -> bool:
    """Print the answer that is kept for these words; False, and nothing is printed, where the command must be run."""
    verb, *words = arguments or ("",)
    switches = [word for word in words if word.startswith("-")]
    if verb not in FLAGS or len(words) - len(switches) != 1 or set(switches) - FLAGS[verb] or len(set(switches)) < len(switches):
        return False
    if os.environ.get(FRESH):
        return False
    from stagescope.readings.answers import stored_answer

    [folder] = set(words) - set(switches)
    answer = stored_answer(Path(folder), " ".join([verb, *{"--elsewhere"}.intersection(switches)]))
    if answer is None:
        return False
    try:
        show(verb, answer, "--json" in switches, "--all" in switches)
        sys.stdout.flush()
    except OSError as error:
        sys.exit(unwritten(error))
    return True


def show(verb: str, value: Any, as_json: bool, all_events: bool = False, hint: bool = True) -> None:
    """Print stages, a ledger of claims or a saddle ladder, for people or as JSON."""
    if as_json:
        print_json(value.json())
        return
    from stagescope.cli import render

    if verb == "stages":
        render.print_stages(value, all_events)
    else:
        (render.print_ledger if verb == "check" else render.print_ladder)(value)
    if hint and verb != "ladder":
        print(render.HINT)


def print_json(value: Any) -> None:
    try:
        text = json.dumps(value, indent=2, allow_nan=False)
    except ValueError:  # JSON has no infinity
        from stagescope.core.spec import finite

        text = json.dumps(finite(value), indent=2)
    print(text)


def unwritten(error: OSError) -> int:
    """The exit code where standard output takes no more: its reader has gone, or a device is full."""
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    else:
        say(f"cannot write the answer: {error.strerror or error}")
    return 1
