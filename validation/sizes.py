"""Absurd sizes: every option of every study that counts something, at 1e7, 1e9 and 1e12, in 3 GB and 5 seconds.

A run must either begin or be refused in one sentence; a traceback, an error of memory, a kill or a wait is a failure.
"""

import contextlib
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VALUES = (10**7, 10**9, 10**12)
BYTES, SECONDS = 3 * 2**30, 5.0
SEEDS = ("feature_seed", "init_seed", "shuffle")
"""Whole numbers that count nothing."""
NEEDED: dict[str, dict[str, list[dict[str, Any]]]] = {
    "scan-snap": {
        "steps": [{"optimizer": "gd"}, {"optimizer": "gd", "record": "every-step"}],
        "length": [{"optimizer": "heavy-ball"}],
        "batch": [{"optimizer": "heavy-ball", "length": 128}],
        "vocab": [{}, {"columns": "all"}, {"optimizer": "heavy-ball", "length": 128}],
        "frames": [{}, {"record": "uniform"}, {"record": "log", "optimizer": "adam", "steps": 10**13}],
    },
    "focus-dilution": {
        "tokens": [{"pi0": 0.5}],
        "length": [{"form": "finite"}, {"form": "sampled", "sequences": 8}],
        "sequences": [{"form": "sampled"}, {"form": "sampled", "length": 1}],
        "batch": [{"form": "sampled", "optimizer": "sgd", "sequences": 10**13}, {"form": "sampled", "optimizer": "sgd"}],
        "steps": [{"optimizer": "gd"}],
        "width": [{}, {"form": "finite"}, {"form": "sampled"}, {"optimizer": "gd"}],
        "key_width": [{}, {"optimizer": "gd"}],
        "frames": [{}, {"optimizer": "gd", "steps": 10**13}],
    },
    "incremental": {
        "layers": [{"model": "transformer"}],
        "width": [{"model": "transformer"}],
        "mlp": [{"model": "transformer"}],
        "positions": [{"model": "regression"}, {"model": "mirror"}, {"model": "regression-transformer"}],
        "dim": [{"model": "regression-transformer"}],
        "heads": [
            {},
            {"model": "content"},
            {"model": "transformer"},
            {"model": "regression"},
            {"model": "regression-transformer"},
        ],
        "batch": [{}, {"fresh": True}, {"model": "regression-transformer"}],
        "steps": [{}, {"record": "every-step"}],
        "frames": [{}, {"model": "mirror"}],
        "spans": [{}, {"vocab": 2, "targets": 1}],
    },
    "text-focus": {
        "vocab": [{}, {"tokens": "bpe"}],
        "window": [{}, {"form": "causal"}, {"positions": True}],
        "width": [{}, {"positions": True}],
        "batch": [{}, {"form": "causal"}, {"residual": True}],
        "watched": [{}, {"form": "causal"}, {"residual": True}],
    },
    "text-incremental": {},
    "text-snap": {
        "width": [{"model": "transformer"}],
        "hidden": [{"model": "transformer"}],
        "batch": [{}, {"model": "transformer"}],
        "steps": [{}, {"model": "transformer"}],
        "window": [{}, {"model": "transformer"}],
    },
}
"""Settings that an option needs in order to have an effect; by default none."""


class Begun(BaseException):
    """Raised in place of the walk: the run was set up and made its first point."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case, how long it took, and the sentence."""

    word: str
    seconds: float
    said: str

    @property
    def holds(self) -> bool:
        return self.word in ("refused", "begins") and self.seconds < SECONDS


Case = tuple[str, Callable[[], Any]]


def main() -> bool:
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    with tempfile.TemporaryDirectory() as scratch:
        return _table(cases(Path(scratch)))


def _table(asked: Iterator[Case]) -> bool:
    _warm()
    outcomes = []
    for name, make in asked:
        outcome = judge(make)
        outcomes.append(outcome)
        print(f"{'' if outcome.holds else '!! '}{name}: {outcome.word}, {outcome.seconds:.1f} s  {outcome.said}", flush=True)
    words = {word: sum(outcome.word == word for outcome in outcomes) for word in sorted({o.word for o in outcomes})}
    slowest = max(outcome.seconds for outcome in outcomes)
    print(f"{len(outcomes)} cases: {', '.join(f'{count} {word}' for word, count in words.items())}; slowest {slowest:.1f} s")
    return all(outcome.holds for outcome in outcomes)


def _warm() -> None:
    """Import and compile once; the cases are made in copies of this process."""
    from stagescope.papers import registry

    for name, study in registry.studies().items():
        study.setup(study.configured(), 0) if name.startswith("text") else None
        study.setup.load() if hasattr(study.setup, "load") else None  # pyright: ignore[reportFunctionMemberAccess]


def cases(scratch: Path) -> Iterator[Case]:
    """Studies from Python, studies from the command line, public classes, files."""
    yield from _of_studies()


def _of_studies() -> Iterator[Case]:
    from stagescope.papers import registry

    for name, study in registry.studies().items():
        for option in counted(study.options):
            for extra in NEEDED.get(name, {}).get(option, [{}]):
                for value in VALUES:
                    given = {**extra, option: (value, 2) if option == "spans" else value}
                    yield f"{name} {shown(given)}", lambda name=name, given=given: _begin(name, given)


def counted(options: Any) -> list[str]:
    """The options that are whole numbers, or lists of them."""
    return [name for name, info in options.model_fields.items() if name not in SEEDS and _whole(info.annotation)]


def _whole(annotation: Any) -> bool:
    inner = typing.get_args(annotation)
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) in (typing.Union, tuple):
        return any(_whole(part) for part in inner)
    return annotation is int


def shown(given: Mapping[str, Any]) -> str:
    return " ".join(
        f"--{name.replace('_', '-')} {value:.0e}"
        if isinstance(value, int) and value >= 10**6
        else f"--{name.replace('_', '-')} {value}"
        for name, value in given.items()
    )


def _begin(name: str, given: Mapping[str, Any]) -> None:
    import stagescope as ss

    ss.run_study(name, **given, progress=False)


def judge(make: Callable[[], Any]) -> Outcome:
    """Make a case in a copy of this process, which ends on its own after the time."""
    here, there = multiprocessing.Pipe(duplex=False)
    began, child = time.monotonic(), os.fork()
    if not child:
        signal.alarm(int(SECONDS) + 3)  # ends also what is deep in compiled code
        there.send(_tried(make))
        os._exit(0)
    there.close()
    word, said = "killed or too long", ""
    with contextlib.suppress(EOFError):
        word, said = here.recv()
    os.waitpid(child, 0)
    return Outcome(word, time.monotonic() - began, said)


def _tried(make: Callable[[], Any]) -> tuple[str, str]:
    import stagescope as ss
    from stagescope.dynamics import evolve

    def begun(*_: Any) -> None:
        raise Begun

    evolve._drive = begun  # pyright: ignore[reportPrivateUsage]
    try:
        make()
    except Begun:
        return "begins", ""
    except ss.StagescopeError as error:
        return "refused", str(error)
    except MemoryError as error:
        return "error of memory", " ".join(str(error).split()) + " " + _where(error)
    except BaseException as error:
        return "traceback", f"{type(error).__name__}: {' '.join(str(error).split())[:200]} {_where(error)}"
    return "begins", ""


def _where(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if re.search("stagescope", frame.filename)]
    return f"({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
