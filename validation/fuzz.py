"""Ten thousand damaged and hostile folders: no traceback, no hang, no write outside, no wrong data."""

import random
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import stagescope as ss
from validation import fuzzing
from validation.fuzzing import Hang

CASES, SEED, COMMANDS = 10_000, 17, 0.1
"""How many, drawn from which seed, and the share of them that commands are tried on too."""
SHOWN = 10
"""Failures that are printed."""


@dataclass
class Found:
    """Cases and failures by kind of folder, and a line for each failure."""

    cases: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)


def main() -> bool:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        good = runs(folder / "good") | a_sweep(folder / "good" / "sweep")
        found = hunt(good, folder, CASES, SEED, COMMANDS)
    print(f"{'kind':<12} {'cases':>6} {'wrong':>6}")
    for kind, count in found.cases.items():
        print(f"{kind:<12} {count:>6} {found.wrong[kind]:>6}")
    print("\n".join(found.said[:SHOWN]))
    return not found.said


def runs(folder: Path) -> dict[str, Path]:
    """Good runs: a finished one of a study, an unfinished one of an own objective, one of plain arrays."""
    from tests.runs import samples

    made = {name: folder / name for name in ("run", "unfinished", "arrays")}
    ss.run_study("scan-snap", until=3.0, frames=12, num_last=2, num_unique=3, out=made["run"], progress=False)
    samples.unfinished(made["unfinished"])
    ss.from_arrays(step=range(12), loss=[1.0 / (1 + i) for i in range(12)]).save(made["arrays"])
    return made


def a_sweep(folder: Path) -> dict[str, Path]:
    """A good sweep of two points."""
    options = {"until": 3.0, "frames": 12, "num_last": 2, "num_unique": 3}
    ss.sweep("scan-snap", grid={"rate_y": [1.0, 2.0]}, out=folder, progress=False, **options)
    return {"sweep": folder}


def hunt(good: dict[str, Path], scratch: Path, cases: int, seed: int, commands: float) -> Found:
    """Try so many cases, a share of them by commands too."""
    expected = {kind: fuzzing.arrays_of(path) for kind, path in good.items() if kind != "sweep"}
    rows = ss.load_sweep(good["sweep"]).rows if "sweep" in good else []
    found = Found()
    for number in range(cases):
        rng = random.Random(f"{seed} {number}")
        kind = rng.choice(list(good))
        case = fuzzing.made(good[kind], scratch / "box", rng)
        words = fuzzing.COMMANDS if rng.random() < commands else ()
        tried = (
            partial(fuzzing.try_sweep, case, rows, words[1:2])
            if kind == "sweep"
            else partial(fuzzing.try_run, case, expected[kind], words)
        )
        found.cases[kind] += 1
        if problems := _problems(tried):
            found.wrong[kind] += 1
            found.said.append(
                f"case {number}, {kind}: {', '.join(case.done)}; digests renewed: {case.hashed}: {'; '.join(problems)}"
            )
    return found


def _problems(tried: Callable[[], list[str]]) -> list[str]:
    try:
        return tried()
    except Hang:
        return [f"more than {fuzzing.SECONDS:g} s"]
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return [f"{type(error).__name__}: {str(error)[:80]} ({Path(place.filename).name}, line {place.lineno})"]
