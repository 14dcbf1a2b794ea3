"""`python commands.py "list --json" "run unigram --out runs/a" ...`: each command of the command line, its answer as JSON."""

import contextlib
import io
import json
import shlex
import sys
from typing import Any


def answer(command: str) -> dict[str, Any]:
    from stagescope.cli.main import run

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        words = shlex.split(command)
        code = interrupted(words[1:]) if words[0] == "interrupted" else run(words)
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def interrupted(words: list[str]) -> int:
    """A command in which Ctrl-C is pressed at the fifth point of the walk."""
    from stagescope.cli.main import run
    from stagescope.flow.evolve import Journey

    walk = Journey.walk

    def cut(journey: Any, state: Any) -> Any:
        for place, point in enumerate(walk(journey, state)):
            if place == 5:
                raise KeyboardInterrupt
            yield point

    Journey.walk = cut
    try:
        return run(words)
    finally:
        Journey.walk = walk


if __name__ == "__main__":
    print(json.dumps({command: answer(command) for command in sys.argv[1:]}))
