"""Commands that make what a paper shows, and say what there is."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from pydantic import Field

from stagescope.cli.command import Command, OwnClaims, answer, print_json
from stagescope.errors import InputError
from stagescope.papers.registry import paper_of, problems, study
from stagescope.progress import progress_for

if TYPE_CHECKING:
    from stagescope.views.figure import Figure


class Reproduce(Command):
    """Make a paper's figures (PDF, SVG, PNG, numbers as JSON) and its ledger from nothing."""

    paper: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PAPER")]
    figure: str | None = Field(None, description="a figure by name (see `stagescope list STUDY`); default: all that take minutes")
    full: bool = Field(False, description="also figures that take an hour or more")
    sweep: Path | None = Field(None, description="folder of a sweep to draw, for a figure of a sweep; default: made in --out")
    out: Path = Field(description="folder for the figures")
    quiet: bool = Field(False, description="no progress bar")

    def run(self) -> int:
        from stagescope.views.figure import chosen

        figures = study(self.paper).figures()
        made = chosen(figures, self.figure, self.full)
        if self.sweep is not None and not (self.figure and made[0].sweep):
            of = ", ".join(name for name, figure in figures.items() if figure.sweep)
            raise InputError(f"--sweep is for a figure of a sweep, named with --figure; {self.paper} has: {of or 'none'}")
        for figure in made:
            path = self._made(figure)
            print(f"{path.with_suffix('')}.{{pdf,svg,png,json}}: {figure.title}")
        if self.figure is None:
            from stagescope.papers.ledgers import ledgers, write_ledgers

            with progress_for(False if self.quiet else None) as bar:
                found = ledgers(study(self.paper), bar)
            if path := write_ledgers(found, self.out):
                print(f"{path}: which claim holds where")
            for name, figure in figures.items():
                if figure not in made:
                    why = figure.lacking or f"{figure.cost}; add --full to make it"
                    print(f"left out: figure {name} ({figure.title}), {why}")
        return 0

    def _made(self, figure: "Figure") -> Path:
        """Compute and draw a figure; one of a sweep from its table."""
        from stagescope.views.figure import reproduce, store

        shown = False if self.quiet else None
        if figure.sweep is None:
            with progress_for(shown) as bar:
                return reproduce(figure, self.out, bar)
        from stagescope.sweeping.engine import sweep
        from stagescope.sweeping.table import load_sweep

        own = self.out / f"sweep{figure.name}"
        table = load_sweep(self.sweep) if self.sweep else sweep(self.paper, figure.sweep, out=own, progress=shown)
        return store(figure, figure.compute(table), self.out)


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
        paper = paper_of(study(self.study).name)
        print(paper.reference.text + "\n\n" + paper.reference.bibtex + "\n")
        for name, tag in paper.tags.items():
            print(f"{name:<24} {tag.number}: {tag.says}")
        return 0


class Demo(Command):
    """A short tour: run a study of each paper, read its stages, put its paper's claims to it, and show all of it on one page."""

    out: Path = Field(Path("demo"), description="folder for the tour's runs and their report")
    open: bool = Field(False, description="show the report in the browser")
    quiet: bool = Field(False, description="no progress bar")

    def run(self) -> int:
        from stagescope.cli.demo import demo

        return demo(self.out, quiet=self.quiet, show=self.open)
