"""Absurd sizes: every option of every study that counts something, at 1e7, 1e9 and 1e12, in 3 GB and 5 seconds of CPU each.

Public classes, files and stored runs follow. Each case must begin, end, or be refused in one sentence; a traceback, an error of
memory, a kill or a wait is a failure.
"""

import contextlib
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import types
import typing
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validation.size_cases import Case, of_classes, of_commands, of_files, of_runs

VALUES = (10**7, 10**9, 10**12)
BYTES, SECONDS = 3 * 2**30, 5.0
SEEDS = ("feature_seed", "init_seed", "shuffle", "layers")
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
        "streams": [{"model": "transformer"}],
        "batch": [{}, {"model": "transformer"}],
        "steps": [{}, {"model": "transformer"}],
        "window": [{}, {"model": "transformer"}],
    },
}
"""Settings that an option needs in order to have an effect; by default none."""


class Begun(BaseException):
    """Raised in place of the walk: the run was set up and has its first point."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case, after how many seconds, and the sentence."""

    word: str
    seconds: float
    said: str

    @property
    def holds(self) -> bool:
        return self.word in ("refused", "begins") and self.seconds < SECONDS


def main() -> bool:
    if "stagescope" in sys.modules:  # which learns the limit when it is imported
        return subprocess.run([sys.executable, "-m", "validation.sizes"], check=False).returncode == 0
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    _warm()
    with tempfile.TemporaryDirectory() as scratch:
        outcomes = [_judged(name, make) for name, make in _cases(Path(scratch))]
    words = Counter(outcome.word for outcome in outcomes)
    slowest = max(outcome.seconds for outcome in outcomes)
    print(f"{len(outcomes)} cases: {', '.join(f'{count} {word}' for word, count in words.items())}; slowest {slowest:.1f} s")
    return all(outcome.holds for outcome in outcomes)


def _judged(name: str, make: Callable[[], Any]) -> Outcome:
    outcome = judge(make)
    print(f"{'' if outcome.holds else '!! '}{name}: {outcome.word}, {outcome.seconds:.1f} s  {outcome.said}", flush=True)
    return outcome


def _warm() -> None:
    """Read texts and import modules here; compile in copies of this process, which keep what they compiled in files."""
    from stagescope.readings import registry

    for name, study in registry.studies().items():
        study.setup(study.configured(), 0)
        judge(lambda name=name: _begin(name, {}), 60.0)


def _cases(scratch: Path) -> Iterator[Case]:
    yield from _of_studies()
    yield from of_commands(scratch)
    yield from of_classes()
    yield from of_files(scratch)
    yield from of_runs(scratch)


def _of_studies() -> Iterator[Case]:
    from stagescope.readings import registry

    for name, study in registry.studies().items():
        for option in counted(study.options):
            for extra in NEEDED[name].get(option, [{}]):
                for value in VALUES:
                    given = {**extra, option: (value, 2) if option == "spans" else value}
                    words = " ".join(f"--{key.replace('_', '-')} {chosen}" for key, chosen in given.items())
                    yield f"{name} {words}", lambda name=name, given=given: _begin(name, given)


def counted(options: Any) -> list[str]:
    """The options that are whole numbers, or lists of them."""
    return [name for name, info in options.model_fields.items() if name not in SEEDS and _whole(info.annotation)]


def _whole(annotation: Any) -> bool:
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is tuple:
        return any(_whole(part) for part in typing.get_args(annotation))
    return annotation is int


def _begin(name: str, given: Mapping[str, Any]) -> None:
    import stagescope as ss

    ss.run_study(name, **given, progress=False)


def judge(make: Callable[[], Any], seconds: float = SECONDS + 1) -> Outcome:
    """Try a case in a copy of this process, which ends by a signal after its time, also deep in compiled code.

    The time is that of the processor, so that other work on the machine does not count; ten times that is the longest wait.
    """
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, 10 * seconds)
        os.write(write, pickle.dumps(_tried(make)))
        os._exit(0)
    os.close(write)
    word, said = "killed or too long", ""
    with open(read, "rb") as answer, contextlib.suppress(EOFError):
        word, said = pickle.load(answer)
    used = os.wait4(child, 0)[2]
    return Outcome(word, used.ru_utime + used.ru_stime, said)


def _tried(make: Callable[[], Any]) -> tuple[str, str]:
    import stagescope as ss
    from stagescope.core.errors import sentence
    from stagescope.flow import evolve

    def begun(*_: Any) -> None:
        raise Begun

    evolve._drive = begun  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    try:
        make()
    except Begun:
        return "begins", ""
    except ss.StagescopeError as error:
        return "refused", str(error)
    except MemoryError as error:
        return "error of memory", sentence(error)
    except BaseException as error:
        return "traceback", sentence(error)
    return "begins", ""


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
