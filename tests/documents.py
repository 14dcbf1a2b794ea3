"""Run the blocks of a document in order and compare what they print with what the document shows.

    python -m tests.documents docs/five-minutes.md [--long]

A ```python block is run; the blocks of one document share one namespace. A ```sh block, or a plain block that begins with
`stagescope` or `make`, is given to a shell. Without --long, the lines of a block that are all commands of `stagescope` are
called in this process instead, because each start of the command takes a second or more. All blocks of a document work in one
temporary folder. A plain block directly after a block that is run is what it prints: text must be equal, a number may differ
by one unit of its last digit, and a line `...` stands for any lines. A comment before a block says what else happens to it:

    <!-- not run: reason -->   it is not run
    <!-- long: reason -->      it is run by `make validate` only
    <!-- file: NAME -->        it is written to that file of the temporary folder
    <!-- from: PATH -->        it is a contiguous part of that file of the repository
"""

import contextlib
import difflib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import traceback
import webbrowser
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from stagescope.cli.main import run

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MARK = re.compile(r"<!-- (not run|long|file|from): (.+) -->")
NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)")
ROUNDING = 1e-12
"""Two numbers below this are equal: they are what rounding left of zero."""


@dataclass
class Block:
    """A fenced block: the line of its fence, what it is, its text, the comments before it, and what it should print."""

    line: int
    kind: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)
    expected: str | None = None


def parse(text: str) -> list[Block]:
    """The blocks of a document; a plain block that is what another one prints is part of that one."""
    found: list[Block] = []
    marks: dict[str, str] = {}
    before: Block | None = None  # the block that this line directly follows
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        if line.startswith("```"):
            body = _body(lines)
            kind = _kind(line[3:].strip(), body, before is not None)
            if kind == "output" and before is not None:
                before.expected, before = body, None
                continue
            before = Block(number, kind, body, marks)
            found.append(before)
            before = before if kind in ("python", "sh") else None
            marks = {}
        elif mark := MARK.fullmatch(line.strip()):
            marks[mark[1]] = mark[2]
            before = None
        elif line.strip():
            marks, before = {}, None
    return found


def _body(lines: Iterator[tuple[int, str]]) -> str:
    """What stands between a fence and the next one."""
    body = []
    for _, line in lines:
        if line.startswith("```"):
            return "\n".join(body)
        body.append(line)
    raise ValueError("a fenced block has no end")


def _kind(language: str, body: str, follows: bool) -> str:
    if language:
        return {"python": "python", "sh": "sh", "bash": "sh"}.get(language, "text")
    if body.split(maxsplit=1)[:1] in (["stagescope"], ["make"]):
        return "sh"
    return "output" if follows else "unknown"


def is_run(block: Block, long: bool = False) -> bool:
    skipped = {"not run", "from", "file"} if long else {"not run", "from", "file", "long"}
    return block.kind in ("python", "sh") and not skipped & set(block.marks)


def problems(path: Path, long: bool = False, times: bool = False) -> list[str]:
    """One sentence with details for each block of a document that fails or prints something else."""
    found, space = [], {"__name__": "__main__"}
    with _own_folder():
        for block in parse(path.read_text()):
            where = f"{path.name}, line {block.line}"
            if "file" in block.marks:
                Path(block.marks["file"]).write_text(block.text + "\n")
            if not is_run(block, long):
                continue
            began, used = time.monotonic(), _cpu()
            try:
                printed = _python(block, where, space) if block.kind == "python" else _shell(block, long)
            except Exception:
                found.append(f"{where} fails:\n{traceback.format_exc()}")
            else:
                if block.expected is not None and not agree(block.expected, printed):
                    found.append(f"{where} prints something else:\n{_difference(block.expected, printed)}")
            if times:
                print(f"{where:<32}{_cpu() - used:6.1f} s CPU{time.monotonic() - began:7.1f} s", flush=True)
    return found


def _cpu() -> float:
    return sum(os.times()[:4])


def _python(block: Block, where: str, space: dict[str, Any]) -> str:
    out = io.StringIO()
    code = compile("\n" * block.line + block.text, where, "exec")
    with contextlib.redirect_stdout(out):
        exec(code, space)
    return out.getvalue()


def _shell(block: Block, long: bool) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "COLUMNS": "130", "BROWSER": "true", "NO_COLOR": "1"}
    lines = [line for line in block.text.splitlines() if line.strip()]
    plain = all(line.startswith("stagescope ") and not set("|&;<>$") & set(line) for line in lines)
    if plain and not long:
        return _commands([shlex.split(line, comments=True)[1:] for line in lines], env)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _commands(every: list[list[str]], env: dict[str, str]) -> str:
    """What commands of `stagescope` print, called one after the other in this process until one fails."""
    out, err = io.StringIO(), io.StringIO()
    opened = mock.patch.object(webbrowser, "open", return_value=True)
    with mock.patch.dict(os.environ, env), opened, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        for words in every:
            try:
                code = run(words)
            except SystemExit as end:
                code = end.code
            if code:
                raise RuntimeError(f"exit code {code}\n{out.getvalue()}{err.getvalue()}")
    return out.getvalue()


@contextlib.contextmanager
def _own_folder() -> Iterator[None]:
    """A temporary folder to work in; what was imported from it is forgotten."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch), mock.patch.object(sys, "path", [*sys.path]):
        yield
        for name, module in list(sys.modules.items()):
            if Path(getattr(module, "__file__", None) or "/").is_relative_to(scratch):
                del sys.modules[name]


def agree(expected: str, printed: str) -> bool:
    """Whether a block prints what the document shows; blank lines and the width of spaces do not count."""
    return _match(_lines(expected), _lines(printed))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _match(want: list[str], got: list[str]) -> bool:
    if not want:
        return not got
    if want[0] == "...":
        return any(_match(want[1:], got[skipped:]) for skipped in range(len(got) + 1))
    return bool(got) and _same_line(want[0], got[0]) and _match(want[1:], got[1:])


def _same_line(want: str, got: str) -> bool:
    words, others = want.split(), got.split()
    return len(words) == len(others) and all(_same_word(*pair) for pair in zip(words, others, strict=True))


def _same_word(want: str, got: str) -> bool:
    """Equal text, and numbers that differ by one unit of the last digit shown at most; whole numbers are equal."""
    parts, others = NUMBER.split(want), NUMBER.split(got)
    if len(parts) != len(others) or parts[::2] != others[::2]:
        return False
    return all(_near(*pair) for pair in zip(parts[1::2], others[1::2], strict=True))


def _near(want: str, got: str) -> bool:
    mantissa, _, exponent = want.partition("e")
    whole = "." not in mantissa and not exponent
    unit = 0.0 if whole else 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    first, second = float(want), float(got)
    return max(abs(first), abs(second)) < ROUNDING or abs(first - second) <= 1.01 * unit


def _difference(expected: str, printed: str) -> str:
    return "\n".join(difflib.unified_diff(_lines(expected), _lines(printed), "document", "printed", lineterm="", n=1))


def main(words: list[str]) -> int:
    names = [word for word in words if word != "--long"]
    bad = [each for name in names for each in problems(Path(name).resolve(), "--long" in words, times=True)]
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
