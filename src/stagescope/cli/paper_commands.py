"""Commands that make what a paper shows, and say what there is."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import tyro
from pydantic import Field

from stagescope.cli.command import OUT, Command, OwnClaims, answer, print_json
from stagescope.papers.registry import cite, problems, study


class Reproduce(Command):
    """Make a paper's figures (PDF, SVG, PNG, numbers as JSON) and its ledger from nothing."""

    paper: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PAPER")]
    figure: str | None = Field(None, description="a figure by name (see `stagescope list STUDY`); default: all that take minutes")
    full: bool = Field(False, description="also figures that take an hour or more")
    sweep: Path | None = Field(None, description="folder of a sweep to draw, for a figure of a sweep; default: made in --out")
    out: Annotated[Path, OUT] = Field(description="folder for the figures")
    quiet: bool = Field(False, description="no progress bar")

    def run(self) -> int:
        from stagescope.diagrams.reproducing import reproduce

        shown = False if self.quiet else None
        reproduce(self.paper, self.out, self.figure, full=self.full, sweep=self.sweep, progress=shown, said=print)
        return 0


class List(Command):
    """The studies there are; or of one study its presets, named sweeps, figures and claims."""

    study: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")] = Field(None, description="show this one")
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print all of it as JSON")

    def run(self) -> int:
        from stagescope.cli.render_catalogue import catalogue, print_catalogue, print_studies

        if self.study is None and not self.json_:
            _complain(problems())
            print_studies()
            return 0
        found = catalogue(None if self.study is None else study(self.study).name)
        _complain((*problems(), *(problem for each in found.values() for problem in each["problems"])))
        if self.json_:
            print_json(found)
        else:
            print_catalogue(found)
        return 0


def _complain(sentences: Iterable[str]) -> None:
    for each in sentences:
        print(f"stagescope: {each}", file=sys.stderr)


class Calibrate(Command):
    """How often each claim of a study is confirmed, violated or left open: on inputs drawn by seed, and on its nulls."""

    study: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")]
    draws: int = Field(30, description="runs of every family of inputs, and of every null")
    nulls: int | None = Field(None, description="draws of every null, where they are to be others than of inputs")
    claims: OwnClaims = Field(None, description="your own claims instead of the study's: a Claim or a list of them in a module")
    first: int = Field(0, description="the first seed")
    keep: Path | None = Field(None, description="file that gets a line for every draw; a second call goes on with it")
    workers: int = Field(1, description="processes")
    quiet: bool = Field(False, description="no progress bar")
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print as JSON")

    def run(self) -> int:
        from stagescope.papers.calibrate import calibrate

        shown = False if self.quiet or self.json_ else None
        found = calibrate(
            self.study,
            self.draws,
            self.first,
            nulls=self.nulls,
            claims=self.claims or (),
            keep=self.keep,
            workers=self.workers,
            progress=shown,
        )
        answer(found, self.json_, "print_calibration")
        return 0 if found.holds else 1


class Cite(Command):
    """What to cite for a study, with the statements of its paper that the code uses."""

    study: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")]

    def run(self) -> int:
        print(cite(self.study))
        return 0


class Demo(Command):
    """A short tour: run a study of each paper, read its stages, put its paper's claims to it, and show all of it on one page."""

    out: Annotated[Path, OUT] = Field(Path("demo"), description="folder for the tour's runs and their report")
    open: bool = Field(False, description="show the report in the browser")
    quick: bool = Field(False, description="the first stop only, in seconds: does the installation work?")
    quiet: bool = Field(False, description="no progress bar")

    def run(self) -> int:
        from stagescope.cli.demo import demo

        return demo(self.out, quiet=self.quiet, show=self.open, quick=self.quick)
