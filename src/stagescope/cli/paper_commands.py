"""Commands that make what a paper shows, and say what there is."""

import sys
from pathlib import Path
from typing import Annotated

import tyro
from pydantic import Field

from stagescope.cli.command import Command, print_json


class Stopping(Command):
    """Early stopping of incremental learning over the number of training sequences: rules, classes, and convex fits.

    Takes the options of `run incremental`, but for --sequences.
    """

    preset: str = Field("ladder", description="named settings; options given here override them")
    sizes: str = Field("50:3200:7", description="training sequences: lo:hi:n at equal ratios, or 50,200,800")
    repetitions: int = Field(5, description="runs for each size, with seeds from --seed on")
    seed: int = Field(0, description="seed of the first repetition")
    held_sequences: int | None = Field(None, description="held-out sequences of the rules; default: a quarter of N")
    patience: float | None = Field(None, description="steps the held-out rule waits; default: a tenth of the run")
    workers: int = Field(2, description="processes; results do not depend on it")
    out: Path | None = Field(None, description="folder for the figure (PDF, SVG, PNG) and its numbers as JSON")
    quiet: bool = Field(False, description="no progress bar")
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print as JSON")

    def run(self) -> int:
        from stagescope.papers.incremental.stopping.study import early_stopping
        from stagescope.papers.incremental.study import IncrementalOptions

        names = ("preset", "sizes", "repetitions", "seed", "held_sequences", "patience", "workers")
        options = {name: getattr(self, name) for name in IncrementalOptions.model_fields if hasattr(self, name)}
        shown = False if self.quiet or self.json_ else None
        found = early_stopping(**{name: getattr(self, name) for name in names}, **options, progress=shown)
        if self.out is not None:
            from stagescope.papers.incremental.stopping.figures import STOPPING, stopping_numbers
            from stagescope.views.figure import store

            store(STOPPING, stopping_numbers(found), self.out)
        if self.json_:
            print_json(found.json())
        else:
            from stagescope.cli.render import print_stopping

            print_stopping(found)
        for row in found.failed:
            print(f"stagescope: N = {row['sequences']}, seed {row['seed']}: {row['status']}: {row['reason']}", file=sys.stderr)
        return 1 if found.failed else 0


class Reproduce(Command):
    """Make a paper's figures (PDF, SVG, PNG, numbers as JSON) and its ledger from nothing."""

    paper: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PAPER")]
    figure: str | None = Field(None, description="one figure by name (see `stagescope list`); default: all that take minutes")
    full: bool = Field(False, description="also figures that take hours")
    out: Path = Field(description="folder for the figures")
    quiet: bool = Field(False, description="no progress bar")

    def run(self) -> int:
        from stagescope.papers.registry import study
        from stagescope.progress import progress_for
        from stagescope.views.figure import chosen, reproduce

        figures = study(self.paper).figures()
        made = chosen(figures, self.figure, self.full)
        for figure in made:
            with progress_for(False if self.quiet else None) as bar:
                path = reproduce(figure, self.out, bar)
            print(f"{path.with_suffix('')}.{{pdf,svg,png,json}}: {figure.title}")
        if self.figure is None:
            from stagescope.papers.ledgers import ledgers, write_ledgers

            with progress_for(False if self.quiet else None) as bar:
                found = ledgers(study(self.paper), bar)
            print(f"{write_ledgers(found, self.out)}: which claim holds where")
            for name, figure in figures.items():
                if figure not in made:
                    why = figure.lacking or f"{figure.cost}; add --full to make it"
                    print(f"left out: figure {name} ({figure.title}), {why}")
        return 0


class List(Command):
    """Studies, presets, figures and claims."""

    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print as JSON")

    def run(self) -> int:
        from stagescope.cli.render import catalogue, print_catalogue
        from stagescope.papers.registry import problems

        found = catalogue()
        for problem in problems():
            print(f"stagescope: {problem}", file=sys.stderr)
        if self.json_:
            print_json(found)
        else:
            print_catalogue(found)
        return 0


class Cite(Command):
    """What to cite for a study, with the statements of its paper that the code uses."""

    study: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")]

    def run(self) -> int:
        from stagescope.papers.registry import paper_of, study

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
