"""Focus and dilution: the published experiment of fresh seeds against an independent implementation (reference.json).

    python -m validation.focus_dilution_published [--first SEED] [--seeds 4]

Each run must have three cycles, on tokens 0, 1 and 2, with the rows 1 2 3, 2 3 and 3; its events must lie in the range of the
reference seeds, widened at both ends by its width and by the spacing of frames. The rules stood before the seeds were drawn.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import stagescope as ss
from stagescope.readings.published import published

REFERENCE = published("stagescope.papers.focus_dilution")
FIRST, SEEDS = 4_100_000, 4
CYCLES = {0: [1, 2, 3], 1: [2, 3], 2: [3]}


@dataclass(frozen=True)
class Row:
    """One number of one seed beside the range that it must lie in."""

    seed: int
    name: str
    value: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        return self.low <= self.value <= self.high


def rows(seed: int) -> Iterator[Row]:
    """Cycles, events and heights of the run of one seed."""
    stages = ss.stages(ss.run_study("focus-dilution", "published", seed=seed, progress=False))
    cycles = [stage.facts for stage in stages if stage.name == "total focus"]
    yield Row(seed, "cycles on tokens 0 1 2", float({facts["token"]: facts["rows"] for facts in cycles} == CYCLES), 1.0, 1.0)
    halves = {name: when for facts in cycles for name, when in _of_rows(facts, "half").items()}
    heights = {name.replace("half", "focus"): height for facts in cycles for name, height in _of_rows(facts, "height").items()}
    for reference, values in (("published_steps", {**stages.events, **halves}), ("published_peaks", heights)):
        room = REFERENCE[reference].tolerance or 0.0
        for name, (low, high) in REFERENCE[reference].value.items():
            value = values.get(name)
            more = high - low + room
            yield Row(
                seed, f"{name} {REFERENCE[reference].unit}", float("nan") if value is None else value, low - more, high + more
            )


def _of_rows(facts: Mapping[str, Any], kind: str) -> dict[str, float]:
    """A fact of each row of a cycle, by the name of the event half1, on1half2 and so on."""
    where = "" if facts["token"] == 0 else f"on{facts['token']}"
    return {f"{where}half{row}": value for row, value in facts[kind].items()}


def main(words: Sequence[str] = ()) -> bool:
    parser = argparse.ArgumentParser(prog="python -m validation.focus_dilution_published")
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    given = parser.parse_args(words)
    found: list[Row] = []
    for seed in range(given.first, given.first + given.seeds):
        began = time.process_time()
        found += rows(seed)
        print(f"seed {seed}: {time.process_time() - began:.0f} s of CPU", flush=True)
    print(f"{'what':<26} {'allowed':>18}  measured, by seed")
    for name in dict.fromkeys(row.name for row in found):
        same = [row for row in found if row.name == name]
        values = " ".join(f"{row.value:9.4g}" + ("" if row.holds else "!") for row in same)
        print(f"{name:<26} {f'[{same[0].low:.4g}, {same[0].high:.4g}]':>18} {values}")
    missed = sum(not row.holds for row in found)
    print(f"{len(found) - missed} of {len(found)} numbers in their range")
    return not missed


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
