"""What every command is, what it prints about a run, and how its answer is printed as JSON. No heavy imports."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro
from pydantic import BaseModel, ConfigDict, Field

from stagescope.cli.kept import print_json
from stagescope.core.caches import FRESH, say
from stagescope.core.errors import InputError, printable

if TYPE_CHECKING:
    from stagescope.readings.study import Study
    from stagescope.runs.run import Run


def info(run: "Run") -> dict[str, Any]:
    """A run in a few facts, the same for people and for --json."""
    series = {name: float(values[-1]) for name, values in run.series.items() if run.frames and values.ndim == 1}
    return {
        "run": str(run.path) if run.path else None,
        "study": run.study,
        "status": run.status,
        "reason": run.reason,
        "clock": run.clock,
        "frames": run.frames,
        "last": series,
        "params": {name: list(values.shape[1:]) for name, values in run.params.items()},
        "field": run.spec["field"] and run.spec["field"]["type"],
        "source": run.spec.get("source"),
        "dynamics": {name: value for name, value in (run.spec["dynamics"] or {}).items() if value not in ({}, None)} or None,
        "seed": run.seed,
        "config": dict(run.config) if run.config is not None else None,
        "config_digest": run.config_digest,
        "environment": run.provenance.get("environment"),
    }


def outcome(run: "Run") -> str:
    """How a run ended, and what to do next."""
    last = f"{run.clock} = {run.time[-1]:.6g}" if run.frames else "nothing"
    loss = f", loss {run.series['loss'][-1]:.6g}" if "loss" in run.series and run.frames else ""
    sentence = printable(f"{run.status}: {run.frames} frame{'' if run.frames == 1 else 's'} to {last}{loss}")
    return f"{sentence}\nnext: stagescope stages {run.path}  |  stagescope check {run.path}" if run.done else sentence


def open_page(path: Path) -> None:
    """Show a file in the browser, or say that there is none."""
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        say(f"no browser was found; open {path} by hand")


OwnClaims = Annotated[str | None, tyro.conf.arg(metavar="MODULE:NAME")]
OWN_CLAIMS: Any = Field(None, description="your own claims too: a Claim or a list of them in a Python module, here or installed")
OwnObjective = Annotated[str | None, tyro.conf.arg(metavar="MODULE:NAME")]
OWN_OBJECTIVE: Any = Field(
    None, description="the objective of a run of your own: an Objective, or a function that makes one, in a Python module"
)
OUT = tyro.conf.arg(aliases=["-o"])
"""The short form of --out, of every command that writes a file or folder."""
Json = Annotated[bool, tyro.conf.arg(name="json")]
AS_JSON: Any = Field(False, description="print as JSON")
QUIET: Any = Field(False, description="no progress bar")
NO_SUMMARY: Any = Field(False, description="no progress bar, no summary")
OVERWRITE: Any = Field(False, description="replace a run in --out (never anything else)")
PRESET: Any = Field(None, description="named settings; options given here override them")
StudyName = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")]
AnyStudy = Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")]
Skipped = tuple[Literal["ledger", "ladder", "prediction"], ...]
RunFolder = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN", help="folder of a run")]


def _hint(default: str) -> str:
    """What help says behind an option: its default, where it has one that says something."""
    return "" if default in ("None", "False", "") else f"(default: {default})"


_HINT = tyro.conf.arg(help_behavior_hint=_hint)


class Arguments(BaseModel):
    """Arguments whose help names no default that is nothing."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        annotations = cls.__annotations__  # where tyro looks
        for name, info in cls.model_fields.items():
            if name in annotations and not info.is_required():
                annotations[name] = Annotated[annotations[name], _HINT]

    @property
    def progress(self) -> bool | None:
        """Whether bars are shown: None where nothing was said, so on a terminal."""
        return False if getattr(self, "quiet", False) or getattr(self, "json_", False) else None


class StudyFlags(Arguments):
    """What a command understands besides the options of the study that it is about."""

    study_name: ClassVar[str] = ""

    @classmethod
    def unused_of(cls, of_study: "Study") -> tuple[str, ...]:
        """Options of the study that have no effect on this command."""
        return ()

    def options_of(self, of_study: "Study") -> dict[str, Any]:
        """The options of the study as they are given."""
        return {name: getattr(self, name) for name in of_study.options.model_fields if name in type(self).model_fields}


class Command(Arguments):
    """Arguments of one command."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    def run(self) -> int:
        raise AssertionError("abstract")


class ReadingCommand(Command):
    """Arguments of a command that reads runs."""

    fresh: bool = False
    """compute everything again: what earlier readings kept is neither used nor replaced"""

    def run(self) -> int:
        if self.fresh:
            os.environ[FRESH] = "1"
        return self.answered()

    def answered(self) -> int:
        raise AssertionError("abstract")


def print_notes(notes: Iterable[str], file: IO[str] | None = None) -> None:
    for note in notes:
        print(printable(f"note: {note}"), file=file)


def named_values(words: Iterable[str], example: str) -> dict[str, str]:
    """Words such as lr=0.05 as names and values."""
    values: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not (name and value):
            raise InputError(f"{word!r} names no value; write NAME=VALUE, such as {example}")
        if name in values:
            raise InputError(f"{name} is given twice; give it once")
        values[name] = value
    return values


def objective(name: str | None) -> Any:
    """The objective that an option names; None where it is not given."""
    if name is None:
        return None
    from stagescope.readings.rebuild import own_objective

    return own_objective(name)


def answer(value: Any, as_json: bool, show: str) -> int:
    """Print what a command found: as JSON, or by the function of `render` that is named."""
    if as_json:
        print_json(value.json() if hasattr(value, "json") else value)
    else:
        from stagescope.cli import render

        getattr(render, show)(value)
    return 0
