"""The command `import`: somebody else's training as a run."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from pydantic import Field

from stagescope.cli.answers import info
from stagescope.cli.command import OUT, Command, print_json, print_notes
from stagescope.errors import InputError, message, printable

if TYPE_CHECKING:
    from stagescope.runs.run import Run


class Import(Command):
    """Make a run of somebody else's training: of a folder of checkpoints, or of a TensorBoard log directory.

    Checkpoints are loaded one by one and looked at on --probe; --model and --tokenizer are needed where the folder has no
    config.json and tokenizer.json of transformers. Of a log directory the scalars are read, as curves with stages.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    out: Annotated[Path, OUT] = Field(description="folder of the new run")
    probe: Annotated[str | None, tyro.conf.arg(metavar="TEXT")] = Field(
        None, description="checkpoints: a text to look at the model on, or @FILE; a .npy or .json FILE holds token ids"
    )
    model: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FACTORY")] = Field(
        None, description="checkpoints: a function of a Python module that makes the model"
    )
    tokenizer: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = Field(None, description="checkpoints: a tokenizer.json")
    run_: Annotated[str | None, tyro.conf.arg(name="run")] = Field(
        None, description="logs: which run, where there are several below the folder: its path from there"
    )
    loss: str | None = Field(None, description="logs: the tag that is the loss; default: the one called so, held-out first")
    tags: str = Field("*", description="logs: pattern of the tags to read, such as 'train/*'")
    overwrite: bool = Field(False, description="replace a run in --out (never anything else)")
    quiet: bool = Field(False, description="no progress bar")
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print the outcome as JSON")

    def run(self) -> int:
        from stagescope.watching.logs import event_files

        if not self.folder.is_dir():
            what = "is a file" if self.folder.exists() else "does not exist"
            raise InputError(f"{self.folder} {what}; give the folder that holds the event files or the checkpoints")
        made = self._logs() if event_files(self.folder) and self.probe is None else self._checkpoints()
        if self.json_:
            print_json(info(made))
        else:
            _print(made)
        return 0

    def _logs(self) -> "Run":
        from stagescope.watching.logs import from_tensorboard

        return from_tensorboard(self.folder, self.run_, self.loss, self.tags).save(self.out, self.overwrite)

    def _checkpoints(self) -> "Run":
        from stagescope.watching.folders import checkpoints

        try:
            checkpoints(self.folder)
        except InputError:
            if any(self.folder.iterdir()) and self.probe is not None:
                raise
            raise InputError(
                f"{self.folder} holds nothing that can be imported: no event files of TensorBoard (events.out.tfevents.*) and no"
                " checkpoints such as checkpoint-500, step1000 or ckpt_200.pt"
            ) from None
        if self.probe is None:
            raise InputError("checkpoints are looked at on a text; give it as --probe TEXT, or --probe @FILE")
        from stagescope.watching.checkpoints import read_checkpoints

        return read_checkpoints(
            self.folder,
            probe=_probe(self.probe),
            out=self.out,
            model=self.model,
            tokenizer=self.tokenizer,
            overwrite=self.overwrite,
            progress=False if self.quiet or self.json_ else None,
        )


def _probe(given: str) -> Any:
    """A text, the text of a file, or token ids in a file."""
    if not given.startswith("@"):
        return given
    path = Path(given[1:])
    try:
        if path.suffix == ".npy":
            import numpy as np

            return np.load(path, allow_pickle=False)
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else text
    except (OSError, ValueError) as error:
        raise InputError(f"the probe {path} cannot be read: {message(error)}") from None


def _print(made: "Run") -> None:
    """What was read, what to know of it, and what to do next."""
    source: dict[str, Any] = made.spec["source"]
    curves = [name for name in made.series if name != made.clock]
    shown = ", ".join(curves[:8]) + (f" and {len(curves) - 8:,} more" if len(curves) > 8 else "")
    frames = f"{made.frames:,} frame{'' if made.frames == 1 else 's'}"
    print(printable(f"{frames} to {made.clock} = {made.time[-1]:.6g}; {len(curves):,} curves: {shown}"))
    print_notes(source.get("notes", ()))
    print(f"next: stagescope stages {made.path}  |  stagescope report {made.path}")
