"""Damaged and hostile folders: how they are made from good ones, and what is done with each. Shared by the suite and `fuzz`.

A case is a copy of a good folder in a box, with one or several mutations. Some are hashed again, so that the checks behind the
digest are reached. Beside the folder lies a file of the user's own; nothing may ever change it.
"""

import contextlib
import io
import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.cli.main import run as command
from stagescope.core.errors import StagescopeError
from stagescope.runs import files
from stagescope.runs.store import load, verify
from stagescope.sweeping.table import load_sweep, verify_sweep

SECONDS = 5.0
"""A command that takes longer hangs."""
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 10**9, 10**400, float("inf"), "", "x", "../../../x", "/etc/passwd", "\x1b[31mred", "=1+1",
    [], [1], {}, {"a": 1}, [[10**9, 10**9]], "a" * 5000,
)  # fmt: skip
"""Values that nobody expects in a file."""


class Hang(BaseException):
    """The time is up."""


@dataclass(frozen=True)
class Case:
    """A folder in its box: what was done to it, and whether its digests were renewed afterwards."""

    box: Path
    folder: Path
    done: tuple[str, ...]
    hashed: bool

    @property
    def outside(self) -> Path:
        return self.box / "notes.txt"


def made(good: Path, box: Path, rng: random.Random) -> Case:
    """A copy of a good folder with one to three mutations."""
    shutil.rmtree(box, ignore_errors=True)
    box.mkdir(parents=True)
    (box / "notes.txt").write_text("mine")
    folder = box / "folder"
    shutil.copytree(good, folder)
    chosen = [rng.choice(MUTATIONS) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    done = [f"{change.__name__.strip('_')} {change(folder, rng)}" for change in chosen]
    hashed = rng.random() < 0.5
    if hashed:
        renew(folder)
    return Case(box, folder, tuple(done), hashed)


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]


def _flip(folder: Path, rng: random.Random) -> str:
    path = rng.choice(_files(folder))
    data = bytearray(path.read_bytes())
    if data:
        data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        path.write_bytes(data)
    return path.name


def _cut(folder: Path, rng: random.Random) -> str:
    path = rng.choice(_files(folder))
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data) + 1)])
    return path.name


def _grow(folder: Path, rng: random.Random) -> str:
    path = rng.choice(_files(folder))
    path.write_bytes(path.read_bytes() + rng.randbytes(rng.randrange(1, 64)))
    return path.name


def _drop(folder: Path, rng: random.Random) -> str:
    path = rng.choice(_files(folder))
    path.unlink()
    return path.name


def _exchange(folder: Path, rng: random.Random) -> str:
    one, other = rng.choice(_files(folder)), rng.choice(_files(folder))
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    return f"{one.name} and {other.name}"


def _value(folder: Path, rng: random.Random) -> str:
    """An odd value in a JSON file, or in a line of one."""
    path = rng.choice([path for path in _files(folder) if path.suffix in (".json", ".jsonl")] or _files(folder))
    try:
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.suffix == ".jsonl" else None
        body = json.loads(path.read_text()) if lines is None else rng.choice(lines or [{}])
    except ValueError:  # an earlier mutation broke it
        return path.name
    where = _replaced(body, rng)
    dumped = [json.dumps(line) for line in lines] if lines is not None else [json.dumps(body, indent=1)]
    path.write_text("".join(f"{line}\n" for line in dumped))
    return f"{path.name} at {where}"


def _replaced(body: Any, rng: random.Random) -> str:
    """Replace one value somewhere inside; where it was."""
    where = []
    while isinstance(body, dict | list) and body:
        name = rng.choice(list(body)) if isinstance(body, dict) else rng.randrange(len(body))
        where.append(str(name))
        inner = body[name]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.3:
            if isinstance(body, dict) and rng.random() < 0.2:
                body[str(rng.choice(ODD))] = body.pop(name)
            else:
                body[name] = rng.choice(ODD)
            break
        body = inner
    return "/".join(where)


def _trap(folder: Path, rng: random.Random) -> str:
    """A link, a FIFO or a folder in place of a file, or under a name that a writer uses."""
    path = rng.choice(_files(folder) or [folder / "manifest.json"])
    if rng.random() < 0.5:
        path = path.with_name(f"{path.name}.new")
    if path.is_dir() and not path.is_symlink():
        return f"folder {path.name}"
    path.unlink(missing_ok=True)
    kind = rng.choice(("link", "broken link", "fifo", "folder", "link to a folder"))
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        target = {"link": "notes.txt", "broken link": "absent", "link to a folder": "."}[kind]
        path.symlink_to(folder.parent / target)
    return f"{kind} {path.name}"


def _stray(folder: Path, rng: random.Random) -> str:
    place = rng.choice([folder, *(path.parent for path in _files(folder))])
    name = rng.choice(("stray", "9", "c", ".hidden", "zarr.json.new", "manifest.json.bak"))
    with contextlib.suppress(OSError):
        (place / name).write_bytes(rng.randbytes(20))
    return name


MUTATIONS: tuple[Callable[[Path, random.Random], str], ...] = (
    _flip, _cut, _grow, _drop, _exchange, _value, _value, _value, _trap, _trap, _stray,
)  # fmt: skip


def renew(folder: Path) -> None:
    """Make the digests of a folder those of what it holds now, as somebody would who wants to be believed."""
    for path in (folder / "manifest.json", folder / "sweep.json"):
        if path.is_symlink() or not path.is_file():
            continue
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            body = json.loads(path.read_bytes())
            for name in body.get("files", {}) if path.name == "manifest.json" else ():
                held = folder / name
                if held.is_file() and not held.is_symlink():
                    body["files"][name] = files.sha256(held)
            body.pop("digest", None)
            plain = json.dumps(body, indent=1, allow_nan=False)
            path.write_text(json.dumps({**body, "digest": files.digest(plain.encode())}, indent=1) + "\n")


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raises `Hang` where the time is up."""

    def ring(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def arrays_of(folder: Path) -> dict[str, bytes]:
    """The bytes of all arrays of a run."""
    run = load(folder)
    return {name: np.asarray(values).tobytes() for group in (run.params, run.series) for name, values in group.items()}


COMMANDS = ("info", "verify", "stages", "export", "resume")
"""What a user does with a folder that somebody sent."""


def try_run(case: Case, expected: dict[str, bytes], words: tuple[str, ...] = COMMANDS) -> list[str]:
    """What goes wrong with a mutated run, read from Python and by some commands; empty where all is well."""
    wrong = []
    with limited():
        try:
            found = arrays_of(case.folder)
            if not case.hashed and found != expected:
                wrong.append("other arrays are served")
        except StagescopeError:
            pass
        with contextlib.suppress(StagescopeError):
            verify(case.folder)
    for word in words:
        more = ("--to", "npz", "--out", str(case.box / "out.npz"), "--overwrite") if word == "export" else ()
        wrong += _command(word, str(case.folder), *more)
    return wrong + _outside(case, {"folder", "notes.txt", "out.npz"})


def try_sweep(case: Case, expected: Sequence[Any], words: tuple[str, ...] = ("verify",)) -> list[str]:
    """What goes wrong with a mutated sweep."""
    wrong = []
    with limited():
        with contextlib.suppress(StagescopeError):
            rows = load_sweep(case.folder).rows
            if not case.hashed and not all(row in expected for row in rows):
                wrong.append("other rows are served")
        with contextlib.suppress(StagescopeError):
            verify_sweep(case.folder)
    for word in words:
        wrong += _command(word, str(case.folder))
    return wrong + _outside(case, {"folder", "notes.txt"})


def _command(*words: str) -> list[str]:
    """Run a command; a traceback on the screen or an error that escapes is wrong."""
    out, err = io.StringIO(), io.StringIO()
    with limited(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
        command(list(words))
    said = out.getvalue() + err.getvalue()
    wrong = [f"{words[0]} prints a traceback"] if "Traceback" in said else []
    return wrong + ([f"{words[0]} sends a control character to the terminal"] if "\x1b[31mred" in said else [])


def _outside(case: Case, allowed: set[str]) -> list[str]:
    """What was written beside the folder."""
    wrong = [] if case.outside.read_text() == "mine" else ["the user's file beside the folder was changed"]
    strays = sorted({path.name for path in case.box.iterdir()} - allowed)
    return wrong + [f"{name} was written outside the folder" for name in strays]
