"""Which modules a command walks through, in order: `python -m validation.walks` traces three commands and writes docs/layers.md.

A module counts from the first call of one of its functions; what runs while modules are imported does not count.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import stagescope
from stagescope.core.caches import FRESH

SOURCE = Path(stagescope.__file__).parent
LAYERS = Path(__file__).parents[1] / "docs" / "layers.md"
WALKS = {
    "run": "run scan-snap --until 5 --out runs/flow",
    "check": "check runs/flow",
    "report": "report runs/flow -o flow.html",
}
"""Each command works on what the one before it made, in a process of its own."""
MOST = {"run": 45, "check": 65, "report": 90}
"""Modules that a reader of a walk has to open; a test refuses more."""
HEADING = "## A newcomer's walk"


def traced(words: list[str]) -> list[str]:
    """The modules of the package in the order in which a command first calls a function of theirs."""
    modules: dict[str, None] = {}
    importing = 0

    def trace(frame: FrameType, event: str, _: Any) -> None:
        nonlocal importing
        code = frame.f_code
        if code.co_name == "<module>":
            importing += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not importing and code.co_filename.startswith(f"{SOURCE}{os.sep}"):
            modules[code.co_filename.removeprefix(f"{SOURCE}{os.sep}")] = None

    from stagescope.cli.main import run

    sys.setprofile(trace)
    try:
        code = run(words)
    finally:
        sys.setprofile(None)
    if code:
        raise SystemExit(code)
    return list(modules)


def walks(names: tuple[str, ...] = tuple(WALKS)) -> dict[str, list[str]]:
    """The walks of commands, each traced in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, FRESH: "1", "PYTHONPATH": os.pathsep.join([str(SOURCE.parent), str(LAYERS.parents[1])])}
        answers = {}
        for name in names:
            command = [sys.executable, "-m", "validation.walks", *WALKS[name].split()]
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr)
            answers[name] = json.loads(done.stdout.splitlines()[-1])
        return answers


def section(walked: dict[str, list[str]]) -> str:
    """The walks as a section of docs/layers.md."""
    parts = [HEADING, "", "What three commands call, in order (`python -m validation.walks` writes this section)."]
    for name, modules in walked.items():
        parts += ["", f"**`stagescope {WALKS[name]}`** goes through {len(modules)} modules:", ""]
        parts += [f"{place}. `{module}`: {_about(module)}" for place, module in enumerate(modules, 1)]
    return "\n".join(parts) + "\n"


def _about(module: str) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse((SOURCE / module).read_text(encoding="utf-8"))) or ""
    return re.split(r"(?<=[.?])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(".")


def main() -> None:
    text = LAYERS.read_text(encoding="utf-8")
    begin = text.index(HEADING)
    end = text.index("\n## ", begin + 1) + 1
    walked = walks()
    LAYERS.write_text(f"{text[:begin]}{section(walked)}\n{text[end:]}", encoding="utf-8")
    print(", ".join(f"{name} {len(modules)}" for name, modules in walked.items()))


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(traced(sys.argv[1:])))
    else:
        main()
