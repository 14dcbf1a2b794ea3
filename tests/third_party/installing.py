"""Install the example package as a third party would, once for all processes of a test session."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PROJECT = Path(__file__).parent / "unigram-paper"
FLAGS = ("--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check")
"""Nothing is fetched: the build backend is hatchling of the development extra."""


def shared(factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this test session share."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "third-party"
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def locked(folder: Path, name: str) -> Iterator[None]:
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def installed(folder: Path) -> Path:
    """Where the package is installed inside a folder; the first process that asks installs it."""
    place = folder / "installed"
    with locked(folder, "installed"):
        if not place.exists():
            command = [sys.executable, "-m", "pip", "install", *FLAGS, "--target", str(place), str(PROJECT)]
            subprocess.run(command, check=True)
    return place


def environment(*folders: Path) -> dict[str, str]:
    """The present environment with more folders to import from."""
    known = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*known, *map(str, folders)])}


class Answer(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def answers(folder: Path, name: str, env: dict[str, str], commands: Mapping[str, str]) -> dict[str, Answer]:
    """What commands answer, given in order to one process that works in `folder`; computed once and kept there as `name`."""
    kept = folder / f"{name}.json"
    with locked(folder, name):
        if not kept.exists():
            script = Path(__file__).parent / "commands.py"
            asked = [sys.executable, str(script), *commands.values()]
            done = subprocess.run(asked, cwd=folder, env=env, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            kept.write_text(done.stdout)
    given = json.loads(kept.read_text())
    return {key: Answer(**given[command]) for key, command in commands.items()}
