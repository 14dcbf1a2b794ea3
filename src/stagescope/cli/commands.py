"""The commands. Each is a typed set of arguments with a `run` that returns an exit code; heavy imports are inside."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import tyro
from pydantic import BaseModel, Field

from stagescope.cli.command import Command, print_json
from stagescope.cli.corpus_command import Corpus
from stagescope.errors import unknown

LONG_SECONDS = 20.0
"""A command that will take longer says so before it begins."""
RunFolder = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]


class RunFlags(BaseModel):
    """What every study's run understands besides its own options."""

    study_name: ClassVar[str] = ""

    out: Path = Field(description="folder of the new run")
    preset: str | None = Field(None, description="named settings; options given here override them")
    seed: int = Field(0, description="seed of the initial parameters and of all draws")
    overwrite: bool = Field(False, description="replace a run in --out (never anything else)")
    quiet: bool = Field(False, description="no progress bar, no summary")
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print the outcome as JSON")


class Run(Command):
    """Run a study and store it. Ctrl-C leaves a run that `stagescope resume` continues."""

    study: Any

    def run(self) -> int:
        from stagescope.studies.table import study

        flags: RunFlags = self.study
        found = study(flags.study_name)
        options = {name: getattr(flags, name) for name in found.options.model_fields}
        chosen = found.configured(None, **options)
        shown = False if flags.quiet or flags.json_ else None
        made = found.run(chosen, seed=flags.seed, out=flags.out, overwrite=flags.overwrite, progress=shown)
        return report_run(made, flags.quiet, flags.json_)


class Resume(Command):
    """Continue a run that was interrupted or killed."""

    folder: RunFolder
    quiet: bool = Field(False, description="no progress bar, no summary")
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print the outcome as JSON")

    def run(self) -> int:
        from stagescope.reopen import resume

        made = resume(self.folder, progress=False if self.quiet or self.json_ else None)
        return report_run(made, self.quiet, self.json_)


class Verify(Command):
    """Check every stored byte of a run."""

    folder: RunFolder
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print the findings as JSON")

    def run(self) -> int:
        from stagescope.runs.store import verify

        problems = verify(self.folder)
        if self.json_:
            print_json({"run": str(self.folder), "intact": not problems, "problems": problems})
        elif problems:
            print("\n".join(problems), file=sys.stderr)
        else:
            print(f"{self.folder}: every byte is as it was committed")
        return 1 if problems else 0


class Info(Command):
    """What a run is and how it ended."""

    folder: RunFolder
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print as JSON")

    def run(self) -> int:
        from stagescope.cli.answers import info
        from stagescope.runs.store import load

        found = info(load(self.folder))
        if self.json_:
            print_json(found)
        else:
            from stagescope.cli.render import print_info

            print_info(found)
        return 0


class Stages(Command):
    """Events and stages of a run; what was not reached is said so."""

    folder: RunFolder
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print as JSON")

    def run(self) -> int:
        from stagescope.reading.table import stages
        from stagescope.runs.store import load

        found = stages(load(self.folder))
        if self.json_:
            print_json(found.json())
        else:
            from stagescope.cli.render import print_stages

            print_stages(found)
        return 0


class Check(Command):
    """Put the paper's claims to a run: the ledger of verdicts."""

    folder: RunFolder
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print as JSON")

    def run(self) -> int:
        from stagescope.reading.table import check
        from stagescope.runs.store import load

        ledger = check(load(self.folder))
        if self.json_:
            print_json(ledger.json())
        else:
            from stagescope.cli.render import print_ledger

            print_ledger(ledger)
        return 0


class Ladder(Command):
    """The critical points a run passed, what opens at each, and when it should have been and was left."""

    folder: RunFolder
    quiet: bool = Field(False, description="no progress bar, no word on how long it will take")
    json_: Annotated[bool, tyro.conf.arg(name="json")] = Field(False, description="print as JSON")

    def run(self) -> int:
        from stagescope.reading.table import ladder_cost, saddle_ladder
        from stagescope.runs.store import load

        stored = load(self.folder)
        if not self.quiet:
            seconds, sentence = ladder_cost(stored)
            if seconds > LONG_SECONDS:
                print(f"stagescope: {sentence}", file=sys.stderr, flush=True)
        found = saddle_ladder(stored, progress=False if self.quiet else None)
        if self.json_:
            print_json(found.json())
        else:
            from stagescope.cli.render import print_ladder

            print_ladder(found)
        return 0


class Export(Command):
    """Write the recorded arrays of a run for other tools."""

    folder: RunFolder
    to: Literal["npz", "csv", "netcdf"] = Field(
        description="npz: all arrays; csv: one row a frame, series only; netcdf: all, named axes"
    )
    out: Path | None = Field(None, description="file to write; default: the run's name with the format's suffix")
    overwrite: bool = Field(False, description="replace an existing file")

    def run(self) -> int:
        from stagescope.runs.export import export
        from stagescope.runs.store import load

        print(export(load(self.folder), self.to, self.out, self.overwrite))
        return 0


class Report(Command):
    """Write runs as one offline page in which to watch them learn; runs of one study share its scrubber."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN...", help="folders of runs")]
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Field(
        Path("report.html"), description="the file; an earlier report is replaced, no other file"
    )
    exact: bool = Field(False, description="matrices as float32 instead of 8 bits a cell; a file up to ten times as large")
    title: str | None = Field(None, description="of the page; default: the names of the runs")
    skip: tuple[Literal["ledger", "ladder"], ...] = Field((), description="what to leave out because it takes long")
    open: bool = Field(False, description="show it in the browser")
    quiet: bool = Field(False, description="no progress bar; print the path alone")

    def run(self) -> int:
        from stagescope.reporting.report import noted_report

        chosen: Any = {name: getattr(self, name) for name in ("exact", "title", "skip")}
        made, notes = noted_report(self.folders, self.out, **chosen, progress=False if self.quiet else None)
        print(made if self.quiet else f"{made}: {made.stat().st_size / 1e6:.1f} MB, works offline")
        _print_notes(() if self.quiet else notes)
        if self.open:
            from stagescope.cli.answers import open_page

            open_page(made)
        return 0


class Figures(Command):
    """Write the views of a run's report as static figures (PDF, SVG, PNG), with its stages and ledger as Markdown."""

    folder: RunFolder
    out: Path = Field(description="folder for the figures; those made there before are replaced, no other file is")
    skip: tuple[Literal["ledger", "ladder"], ...] = Field((), description="what to leave out because it takes long")
    quiet: bool = Field(False, description="no progress bar; print the paths alone")

    def run(self) -> int:
        from stagescope.progress import progress_for
        from stagescope.reporting.static import run_figures
        from stagescope.runs.store import load

        found = load(self.folder)
        with progress_for(False if self.quiet else None) as bar:
            made, notes = run_figures(found, self.out, bar, self.skip)
        print("\n".join(map(str, made)) if self.quiet else f"{len(made) - 1} figures (PDF, SVG, PNG) and {made[-1]}")
        _print_notes(() if self.quiet else notes)
        return 0


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
        from stagescope.studies.early_stopping import early_stopping
        from stagescope.studies.incremental import IncrementalOptions

        names = ("preset", "sizes", "repetitions", "seed", "held_sequences", "patience", "workers")
        options = {name: getattr(self, name) for name in IncrementalOptions.model_fields if hasattr(self, name)}
        shown = False if self.quiet or self.json_ else None
        found = early_stopping(**{name: getattr(self, name) for name in names}, **options, progress=shown)
        if self.out is not None:
            from stagescope.figures.figure import store
            from stagescope.figures.incremental_stopping import STOPPING, stopping_numbers

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
        from stagescope.figures.figure import chosen, reproduce
        from stagescope.progress import progress_for
        from stagescope.studies.table import study

        figures = study(self.paper).figures()
        made = chosen(figures, self.figure, self.full)
        for figure in made:
            with progress_for(False if self.quiet else None) as bar:
                path = reproduce(figure, self.out, bar)
            print(f"{path.with_suffix('')}.{{pdf,svg,png,json}}: {figure.title}")
        if self.figure is None:
            from stagescope.figures.ledger import ledgers, write_ledgers

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

        found = catalogue()
        if self.json_:
            print_json(found)
        else:
            print_catalogue(found)
        return 0


class Cite(Command):
    """What to cite for a study, with the statements of its paper that the code uses."""

    study: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")]

    def run(self) -> int:
        from stagescope.studies.table import STUDIES
        from stagescope.theory.tags import PAPERS, TAGS

        if self.study not in STUDIES:
            raise unknown("study", self.study, STUDIES)
        paper = PAPERS[STUDIES[self.study].paper]
        print(paper.text + "\n\n" + paper.bibtex + "\n")
        for name, tag in TAGS.items():
            if tag.paper == STUDIES[self.study].paper:
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


class Completion(Command):
    """Print a completion script: `stagescope completion bash > FILE`, then source it."""

    shell: Annotated[Literal["bash", "zsh"], tyro.conf.Positional, tyro.conf.arg(metavar="SHELL")]

    def run(self) -> int:
        from stagescope.cli.main import run

        try:
            return run(["--tyro-print-completion", self.shell])
        except SystemExit as end:
            return int(end.code or 0)


COMMANDS: dict[str, type[Command]] = {
    "list": List,
    "resume": Resume,
    "verify": Verify,
    "info": Info,
    "stages": Stages,
    "check": Check,
    "ladder": Ladder,
    "export": Export,
    "report": Report,
    "figures": Figures,
    "stopping": Stopping,
    "reproduce": Reproduce,
    "corpus": Corpus,
    "cite": Cite,
    "demo": Demo,
    "completion": Completion,
}


def _print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        print(f"note: {note}")


def report_run(made: Any, quiet: bool, as_json: bool) -> int:
    """Say how a run ended; the exit code of its command."""
    from stagescope.cli.answers import info, outcome

    if as_json:
        print_json(info(made))
    elif not quiet:
        print(outcome(made))
    if not made.done:
        print(f"stagescope: {made.status}: {made.reason}", file=sys.stderr)
    return 0 if made.done else 1
