"""Many watched trainings into one folder, one process at a time; those already there are skipped.

    python -m validation.watched_runs --out FOLDER --seeds 1 2 3 --sets tasks controls others

Sets: `tasks` (a, b, c), `controls` (every control of every task), `others` (other sizes, rates, optimisers), `other-controls`
(the two hardest controls in other sizes). Each run prints one line; its numbers are in FOLDER/NAME.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from validation.watched_tasks import CONTROLS, TASKS, Outcome, Setting, line, usual

OTHERS = (
    ("a", {"width": 96}),
    ("a", {"layers": 3, "heads": 2}),
    ("a", {"lr": 3e-3, "warmup": 100}),
    ("a", {"optimizer": "sgd", "lr": 0.3}),
    ("b", {"width": 96}),
    ("b", {"layers": 3, "heads": 2}),
    ("b", {"warmup": 0}),
    ("b", {"lr": 3e-3, "decay": True}),
    ("c", {"width": 96}),
    ("c", {"layers": 3, "heads": 2}),
    ("c", {"lr": 3e-3, "warmup": 100}),
)
"""Settings to which no rule was fitted."""
HARD = ("bigram", "sharp")
"""Controls that pass a gate on the loss."""


def tasks(seeds: Iterable[int]) -> list[Setting]:
    return [usual(task, seed=seed) for task in TASKS for seed in seeds]


def controls(seeds: Iterable[int]) -> list[Setting]:
    cases = [(task, control) for task in TASKS for control in CONTROLS[1:] if (task, control) != ("c", "bigram")]
    return [usual(task, control=control, seed=seed) for task, control in cases for seed in seeds]


def others(seeds: Iterable[int]) -> list[Setting]:
    return [usual(task, seed=seed, **changes) for task, changes in OTHERS for seed in seeds]


def other_controls(seeds: Iterable[int]) -> list[Setting]:
    cases = [(task, control, changes) for task, changes in OTHERS for control in HARD if (task, control) != ("c", "bigram")]
    return [usual(task, control=control, seed=seed, **changes) for task, control, changes in cases for seed in seeds]


SETS = {"tasks": tasks, "controls": controls, "others": others, "other-controls": other_controls}


def make(settings: Iterable[Setting], out: Path, *options: str) -> list[tuple[Setting, Outcome]]:
    """Make the runs that are not there yet, each in a process of its own; the numbers of all."""
    found = []
    with tempfile.TemporaryDirectory(prefix="stagescope-bpe-") as cache:
        for setting in settings:
            if not (out / f"{setting.name}.json").exists():
                _process(setting, "--out", str(out), "--cache", cache, *options)
            found.append((setting, read(out, setting)))
            print(line(*found[-1]), flush=True)
    return found


def read(out: Path, setting: Setting) -> Outcome:
    """The numbers of a run that is there."""
    return Outcome(**json.loads((out / f"{setting.name}.json").read_text(encoding="utf-8"))["outcome"])


def _process(setting: Setting, *options: str) -> None:
    """One training, nice, on one thread."""
    given = [f"--{f.name}={getattr(setting, f.name)}" for f in fields(setting) if f.name != "decay"]
    given += ["--decay"] if setting.decay else []
    command = ["nice", sys.executable, "-m", "validation.watched_tasks", *given, *options]
    alone = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | alone)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train many watched models, one after another.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--sets", choices=SETS, nargs="+", default=list(SETS))
    parser.add_argument("--unwatched", action="store_true", help="train without recording")
    given = parser.parse_args()
    options = ["--unwatched"] if given.unwatched else []
    make([setting for name in given.sets for setting in SETS[name](given.seeds)], given.out, *options)


if __name__ == "__main__":
    main()
