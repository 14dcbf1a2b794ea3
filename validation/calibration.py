"""Every claim on inputs of its regime and on its nulls, drawn by seed: how often it is confirmed, violated or left open.

    python -m validation.calibration [STUDY ...]

Rows are kept in `validation/calibration/STUDY.jsonl` while it runs, so that an interrupted call goes on. The table is written
to docs/calibration.json, from which docs/how-sure.md is made. The rules of the claims were frozen before FIRST was drawn.
"""

import json
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import stagescope as ss
from stagescope.claims.claim import Claim
from stagescope.claims.inputs import Inputs
from stagescope.papers.registry import studies
from stagescope.papers.study import Study
from validation.calibration_table import table, written

FIRST, DRAWS = 60_000, 30
"""First seed, and draws of each family of inputs and of each null."""
FOLDER = Path(__file__).parent / "calibration"


def families(study: Study) -> Iterator[tuple[Inputs, str, tuple[str, ...]]]:
    """(inputs, "input" or "null", tags of the claims that are tried on them); a null is drawn once for all its claims."""
    claims = study.claims()
    for inputs in study.inputs():
        yield inputs, "input", tuple(claim.tag for claim in claims)
    nulls: dict[str, tuple[Inputs, list[str]]] = {}
    for claim in claims:
        for null in claim.nulls:
            nulls.setdefault(null.name, (null, []))[1].append(claim.tag)
    for null, tags in nulls.values():
        yield null, "null", tuple(tags)


def tried(name: str, family: str, role: str, seed: int) -> dict[str, Any]:
    """One draw: the verdicts of the claims of a study on it. What fails is a row with its reason."""
    study = studies()[name]
    inputs, _, tags = next(each for each in families(study) if (each[0].name, each[1]) == (family, role))
    row: dict[str, Any] = {"study": name, "family": family, "role": role, "seed": seed}
    began = time.monotonic()
    try:
        ledger = ss.check(inputs.make(seed))
        found = {v.tag: _brief(v) for v in ledger if v.tag in tags}
        return {**row, "verdicts": found, "seconds": time.monotonic() - began}
    except Exception as error:
        return {**row, "failed": f"{type(error).__name__}: {error}", "seconds": time.monotonic() - began}


def _brief(verdict: ss.Verdict) -> dict[str, Any]:
    return {name: getattr(verdict, name) for name in ("verdict", "in_regime", "rules", "reason")}


def _todo(name: str, first: int, draws: int) -> Iterator[tuple[str, str, str, int]]:
    for inputs, role, _ in families(studies()[name]):
        for seed in range(first, first + draws):
            yield name, inputs.name, role, seed


def draw(name: str, first: int = FIRST, draws: int = DRAWS, processes: int = 2) -> list[dict[str, Any]]:
    """The rows of a study; those on disk are not computed again."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(row["study"], row["family"], row["role"], row["seed"]) for row in rows}
    left = [each for each in _todo(name, first, draws) if each not in known]
    with multiprocessing.get_context("spawn").Pool(processes) as pool, path.open("a") as file:
        for done, row in enumerate(pool.imap_unordered(_tried, left), 1):
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
            if done % 10 == 0:
                print(f"{name}: {done} of {len(left)} draws", file=sys.stderr, flush=True)
    return [row for row in rows if first <= row["seed"] < first + draws]


def _tried(arguments: tuple[str, str, str, int]) -> dict[str, Any]:
    return tried(*arguments)


def claims_of(name: str) -> tuple[Claim, ...]:
    return studies()[name].claims()


def main(names: Iterable[str] = ()) -> bool:
    """The table of all studies, or of some, and whether every claim is calibrated."""
    good = True
    for name in names or studies():
        found = table(claims_of(name), draw(name))
        good &= written(name, found)
    return good


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
