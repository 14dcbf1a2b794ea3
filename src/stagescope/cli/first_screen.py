"""What `stagescope` and `stagescope --help` print: what this is, five commands to start with, and the words it uses."""

import re
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

import stagescope

START = {
    "demo --open": "a tour: a run of each paper, all on one page",
    "list": "the studies there are; `list STUDY`: one of them",
    "run STUDY --out FOLDER": "train, and store the run in a folder",
    "check FOLDER": "which claims of the paper hold on this run",
    "report FOLDER --open": "watch the run learn, in the browser",
}
WORDS = {
    "study": "one question of a paper: a task, a model and their options",
    "preset": "named options of a study: run STUDY --preset NAME",
    "stage": "a stretch of a run in which one thing is learned",
    "claim": "a sentence of the paper that a run can confirm or violate",
    "rung": "a critical point that a run passed (a plateau); `ladder` lists them",
}
GROUPS = {
    "make": "run resume fork sweep predict continue import",
    "read": "info stages check ladder heads verify audit",
    "show": "report play figures export diagram",
    "papers": "demo list reproduce calibrate cite corpus completion",
}
"""Where each command stands."""


def at_once(arguments: list[str]) -> bool:
    """Print the version or the first screen, if nothing else is asked for."""
    if arguments == ["--version"]:
        print(f"stagescope {stagescope.__version__}")
    elif arguments in ([], ["--help"], ["-h"]):
        # 24 lines of 80 columns
        lines = [
            Text.assemble(("usage: ", "bold"), "stagescope COMMAND [OPTIONS]; `stagescope COMMAND --help` explains one"),
            Text(
                "A laboratory for how attention learns: it trains small models exactly, finds the\nstages of a training, "
                "and checks what papers say about them."
            ),
            *_part("Start with (each after the word `stagescope`)", START, 24),
            *_part("Words", WORDS, 8),
            *_part("All commands", GROUPS, 8),
        ]
        console = Console(highlight=False)
        for line in lines:
            console.print(line, soft_wrap=True)
    else:
        return False
    return True


def _part(title: str, rows: dict[str, str], width: int) -> list[Text]:
    return [
        Text(title, style="bold"),
        *(Text.assemble("  ", (f"{name:<{width}}", "cyan"), about) for name, about in rows.items()),
    ]


class Wrapped:
    """Standard output for the help of a command: tyro wraps its boxes, not the lines above them, and lists all studies there."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write("\n".join(map(_wrapped, text.split("\n"))))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _wrapped(line: str) -> str:
    """A line as several of the terminal's width; those of boxes fit already."""
    width = get_terminal_size().columns
    line = re.sub(r" \{[\w,-]{40,}\}$", " STUDY", line)
    return line if len(line) <= width else "\n".join(wrap(line, width - 1, break_long_words=False, break_on_hyphens=False))
