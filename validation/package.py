"""The distributions in clean environments: wheel and source distribution, the oldest allowed versions, other Pythons.

Each environment is made by uv and gets the base installation. `stagescope demo --quick` works with a home that cannot be
written, a study of every paper runs and is judged, and `uninstall` leaves no file of the package. It needs an index of packages.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.packaging import built

PYTHONS = ("3.11", "3.12", "3.13")
STUDIES = ("focus-dilution", "incremental --preset published-flow", "linear-icl", "markov-icl --model R --lags 20", "scan-snap")


class Case(NamedTuple):
    name: str
    python: str
    distribution: Path
    flags: tuple[str, ...] = ()


def main() -> bool:
    """True if all environments work. A Python that is not on this machine is named and left out."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        uv = _uv(folder)
        wheel, source = built(folder / "dist")
        cases = [
            Case("source distribution", PYTHONS[0], source),
            Case("oldest", PYTHONS[0], wheel, ("--resolution", "lowest-direct")),
        ]
        cases += [Case("wheel", python, wheel) for python in PYTHONS]
        held = [_holds(uv, case, folder / str(number)) for number, case in enumerate(cases)]
    return all(held)


def _uv(folder: Path) -> Path:
    """uv in an environment of its own."""
    subprocess.run([sys.executable, "-m", "venv", folder / "uv"], check=True)
    subprocess.run([folder / "uv" / "bin" / "pip", "install", "--quiet", "uv"], check=True)
    return folder / "uv" / "bin" / "uv"


def _holds(uv: Path, case: Case, folder: Path) -> bool:
    name = f"{case.name}, Python {case.python}"
    python = _python(case.python)
    if python is None:
        print(f"  {name}: not on this machine")
        return True
    place = folder / "env"
    env = {**os.environ, "VIRTUAL_ENV": str(place)}
    subprocess.run([uv, "venv", "--quiet", "--python", python, place], check=True)
    subprocess.run([uv, "pip", "install", "--quiet", *case.flags, case.distribution], check=True, env=env)
    problem = _problem(place, folder)
    subprocess.run([uv, "pip", "uninstall", "--quiet", "stagescope"], check=True, env=env)
    left = [path for path in place.rglob("stagescope*") if path.name != "__pycache__"]
    problem = problem or (f"left after uninstall: {left[0]}" if left else "")
    print(f"  {name}: {problem or 'holds'}", flush=True)
    return not problem


def _python(version: str) -> str | None:
    """The interpreter of a version on this machine that starts."""
    for known in (shutil.which(f"python{version}"), *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))):
        if known and subprocess.run([known, "--version"], capture_output=True, check=False).returncode == 0:
            return known
    return None


def _problem(place: Path, folder: Path) -> str:
    """What does not work, in a line; empty if everything does."""
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "STAGESCOPE_CACHE", "XDG_CACHE_HOME")}
    env |= {"HOME": "/proc/nowhere", "TMPDIR": str(folder)}
    commands = ["demo --quick --quiet", *(f"run {study} --out {number} --quiet" for number, study in enumerate(STUDIES))]
    commands += [f"check {number} --json" for number in range(len(STUDIES))]
    for number, command in enumerate(commands):
        if number:  # only the first one compiles for itself
            env["STAGESCOPE_CACHE"] = str(folder / "cache")
        asked = [place / "bin" / "stagescope", *command.split()]
        done = subprocess.run(asked, cwd=folder, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"`stagescope {command}` ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
    return ""


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
