"""`stagescope audit`: defects in a folder of checkpoints, or in the hashes that were published of them."""

from pathlib import Path
from typing import Annotated

import tyro
from pydantic import Field

from stagescope.cli.command import Command, answer
from stagescope.errors import InputError


class Audit(Command):
    """Look for defects in checkpoints: cut, NaN, duplicate, foreign tensor, out of order, other lineage. Exit code 1 if any."""

    folder: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")] = Field(
        None, description="holds one folder or file for each checkpoint, its step in its name"
    )
    hashes: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = Field(
        None, description="also, or only, published hashes: JSON {checkpoint: {file: sha256}}"
    )
    quiet: bool = Field(False, description="no progress bar")
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print as JSON")

    def run(self) -> int:
        if self.folder is None and self.hashes is None:
            raise InputError("nothing to audit; give the folder that holds the checkpoints, or --hashes FILE")
        from stagescope.watching.audit import audit, audit_hashes

        audits = [audit_hashes(self.hashes)] if self.hashes is not None else []
        if self.folder is not None:
            audits.insert(0, audit(self.folder, progress=False if self.quiet or self.json_ else None))
        found = sum(audits[1:], audits[0])
        answer(found, self.json_, "print_audit")
        return 0 if found.clean else 1
