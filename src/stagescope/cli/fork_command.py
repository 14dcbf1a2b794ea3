"""The command `fork`: what if, from a frame of a run on."""

import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import tyro
from pydantic import Field

from stagescope.cli.answers import info, outcome
from stagescope.cli.command import OUT, OWN_OBJECTIVE, Command, OwnObjective, RunFolder, objective, print_json
from stagescope.errors import InputError, printable


class Fork(Command):
    """A new run, bitwise a stored one up to one of its frames; then with other options, frozen blocks, or a push."""

    folder: RunFolder
    at: str = Field(description="where: t=120, step=4000 or frame=17; between two frames it is the first")
    out: Annotated[Path, OUT] = Field(description="folder of the new run")
    until: float | None = Field(None, description="end of a flow; default: that of the old run")
    steps: int | None = Field(None, description="number of all steps, those before the fork too; default: that of the old run")
    set: tuple[str, ...] = Field(
        (), description="options of the motion after the fork: lr=.05 momentum=.5 clip=1 optimizer=adam rtol=1e-8 rates.WQ=2"
    )
    freeze: tuple[str, ...] = Field((), description="blocks of parameters that stay as they are at the fork")
    perturb: float | None = Field(None, description="how far to push the parameters at the fork: a distance")
    along: int = Field(1, description="direction of the push: 1 grows fastest there, 2 comes next")
    objective: OwnObjective = OWN_OBJECTIVE
    overwrite: bool = Field(False, description="replace a run in --out (never anything else)")
    quiet: bool = Field(False, description="no progress bar, no summary")
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print the outcome as JSON")

    def run(self) -> int:
        from stagescope.papers.fork import fork
        from stagescope.papers.fork_difference import fork_difference
        from stagescope.runs.store import load

        parent, names = load(self.folder), ("at", "out", "until", "steps", "freeze", "perturb", "along", "overwrite")
        chosen: Any = {name: getattr(self, name) for name in names}
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", UserWarning)
            shown = False if self.quiet or self.json_ else None
            made = fork(parent, objective(self.objective), changes=_changes(self.set), progress=shown, **chosen)
        notes = [str(each.message) for each in heard if issubclass(each.category, UserWarning)]
        if self.json_:
            print_json({**info(made), "notes": notes, "difference": fork_difference(parent, made).json()})
        else:
            for note in notes:
                print(printable(f"note: {note}"), file=sys.stderr)
            if not self.quiet:
                print(printable(str(fork_difference(parent, made))), outcome(made), sep="\n")
        if not made.done:
            print(printable(f"stagescope: {made.status}: {made.reason}"), file=sys.stderr)
        return 0 if made.done else 1


def _changes(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in given:
        name, equal, value = word.partition("=")
        if not (name and equal and value):
            raise InputError(f"--set {word} names no value; write it as lr=0.05")
        if name in found:
            raise InputError(f"--set gives {name} twice; give it once")
        found[name] = value
    return found
