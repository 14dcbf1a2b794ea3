"""`stagescope play`: sliders for the options of a study, and its flow integrated in the page."""

from pathlib import Path
from typing import Annotated

import tyro
from pydantic import Field

from stagescope.cli.answers import open_page
from stagescope.cli.command import OUT, Command


class Play(Command):
    """Write one offline page with sliders for the options of a study; each move integrates its flow again, in the page."""

    study: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")] = Field(
        None, description="the study; default: all that can be played"
    )
    out: Annotated[Path, OUT] = Field(Path("play.html"), description="the file; an earlier page is replaced, no other file")
    open: bool = Field(False, description="show it in the browser")
    quiet: bool = Field(False, description="print the path alone")

    def run(self) -> int:
        from stagescope.reporting.play import write_play

        made = write_play([self.study] if self.study else [], self.out)
        print(made if self.quiet else f"{made}: {made.stat().st_size / 1e6:.1f} MB, works offline")
        if self.open:
            open_page(made)
        return 0
