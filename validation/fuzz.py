"""Ten thousand damaged and hostile folders: no traceback, no hang, no write outside, no wrong data."""

import random
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import stagescope as ss
from validation import fuzzing
from validation.fuzzing import Case, Hang

CASES, SEED = 10_000, 17
SHOWN = 10
"""Failures that are printed."""


def main() -> bool:
    with tempfile.TemporaryDirectory() as scratch:
        found = hunt(Path(scratch), CASES, SEED)
    print(f"{'kind':<12} {'cases':>6} {'wrong':>6}")
    for kind, count in found["cases"].items():
        print(f"{kind:<12} {count:>6} {found['wrong'][kind]:>6}")
    print("\n".join(found["said"][:SHOWN]))
    return not found["wrong"].total()


def goods(folder: Path) -> dict[str, Path]:
    """Good folders: a finished run of a study, an unfinished one of an own objective, a run of plain arrays, a sweep."""
    from tests.runs import samples

    made = {"run": folder / "run", "unfinished": folder / "unfinished", "arrays": folder / "arrays", "sweep": folder / "sweep"}
    ss.run_study("scan-snap", until=3.0, frames=12, num_last=2, num_unique=3, out=made["run"], progress=False)
    samples.unfinished(made["unfinished"])
    ss.from_arrays(step=range(12), loss=[1.0 / (1 + i) for i in range(12)]).save(made["arrays"])
    grid = {"rate_y": [1.0, 2.0]}
    ss.sweep("scan-snap", grid=grid, out=made["sweep"], progress=False, until=3.0, frames=12, num_last=2, num_unique=3)
    return made


def hunt(scratch: Path, cases: int, seed: int) -> dict:
    """Try so many cases; counts by kind of folder, and a line for each failure."""
    good = goods(scratch / "good")
    expected = {kind: fuzzing.arrays_of(path) for kind, path in good.items() if kind != "sweep"}
    counts, wrong, said = Counter(), Counter(), []
    for number in range(cases):
        rng = random.Random(f"{seed} {number}")
        kind = rng.choice(list(good))
        case = fuzzing.made(good[kind], scratch / "box", rng)
        tried: Callable[[Case], list[str]] = (
            fuzzing.try_sweep if kind == "sweep" else lambda c, k=kind, r=rng: fuzzing.try_run(c, expected[k], r)
        )
        counts[kind] += 1
        if problems := _problems(tried, case):
            wrong[kind] += 1
            said.append(f"case {number} ({kind}; {', '.join(case.done)}; hashed again: {case.hashed}): {'; '.join(problems)}")
    return {"cases": counts, "wrong": wrong, "said": said}


def _problems(tried: Callable[[Case], list[str]], case: Case) -> list[str]:
    try:
        return tried(case)
    except Hang:
        return [f"more than {fuzzing.SECONDS:g} s"]
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return [f"{type(error).__name__}: {str(error)[:80]} ({Path(place.filename).name}, line {place.lineno})"]
