"""The command `import`: somebody else's training as a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from pydantic import Field

from stagescope.cli.answers import info
from stagescope.cli.command import Command, print_json, print_notes
from stagescope.errors import InputError, printable

if TYPE_CHECKING:
    from stagescope.runs.run import Run


class Import(Command):
    """Make a run of a TensorBoard log directory: its scalars, as curves with stages."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    out: Path = Field(description="folder of the new run")
    run_: Annotated[str | None, tyro.conf.arg(name="run")] = Field(
        None, description="which run, where there are several below the folder: its path from there"
    )
    loss: str | None = Field(None, description="the tag that is the loss; default: the one that is called so, held-out first")
    tags: str = Field("*", description="pattern of the tags to read, such as 'train/*'")
    overwrite: bool = Field(False, description="replace a run in --out (never anything else)")
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print the outcome as JSON")

    def run(self) -> int:
        made = self._read().save(self.out, self.overwrite)
        if self.json_:
            print_json(info(made))
        else:
            _print(made)
        return 0

    def _read(self) -> "Run":
        """The run in a folder, by what the folder holds."""
        from stagescope.watching.tensorboard import event_files, from_tensorboard

        if not event_files(self.folder):
            raise InputError(
                f"{self.folder} holds nothing that can be imported: no event files of TensorBoard (events.out.tfevents.*);"
                " give a log directory"
            )
        return from_tensorboard(self.folder, self.run_, self.loss, self.tags)


def _print(made: "Run") -> None:
    """What was read, what to know of it, and what to do next."""
    source: dict[str, Any] = made.spec["source"]
    curves = [name for name in made.series if name != made.clock]
    shown = ", ".join(curves[:8]) + (f" and {len(curves) - 8:,} more" if len(curves) > 8 else "")
    print(printable(f"{made.frames:,} frames to {made.clock} = {made.time[-1]:.6g}; {len(curves):,} curves: {shown}"))
    print_notes(source.get("notes", ()))
    print(f"next: stagescope stages {made.path}  |  stagescope report {made.path}")
