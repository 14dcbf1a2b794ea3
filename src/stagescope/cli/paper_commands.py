"""Commands that make what a paper shows, the tour of all papers, and facts of a text. Heavy imports are inside."""

import math
from pathlib import Path
from typing import Annotated, Literal

import tyro
from pydantic import Field

from stagescope.cli.command import (
    AS_JSON,
    OUT,
    QUIET,
    AnyStudy,
    Command,
    Json,
    OwnClaims,
    StudyName,
    answer,
    open_page,
    print_json,
)
from stagescope.core.caches import say
from stagescope.core.errors import InputError, sentence
from stagescope.core.progress import progress_for
from stagescope.corpora.files import Layout
from stagescope.corpora.options import CORPUS, LAYOUT, TOKENS, VOCAB
from stagescope.readings.registry import cite, is_ours, papers, problems, studies, study
from stagescope.readings.study import Study

TITLE = "How attention learns: a tour"


def tour() -> list[tuple[Study, str, str]]:
    """Study, preset and sentence of each stop: what every study of every paper shows."""
    return [(study, preset, sentence) for study in studies().values() for preset, sentence in study.tour.items()]


class Reproduce(Command):
    """Make a paper's figures (PDF, SVG, PNG, numbers as JSON) and its ledger from nothing."""

    paper: StudyName
    figure: str | None = None
    """a figure by name (see `stagescope list STUDY`); default: all that take minutes"""
    full: bool = False
    """also figures that take an hour or more"""
    quick: bool = False
    """figures that have a quick version, from fewer sequences and steps; the picture says so"""
    table: bool = False
    """in place of figures, the table of distances: every published number (of --figure), ours, tolerance, verdict, cause"""
    sweep: Path | None = None
    """folder of a sweep to draw, for a figure of a sweep; default: made in --out"""
    out: Annotated[Path | None, OUT] = None
    """folder for the figures; of a table its files with every number, which --table prints in short"""
    quiet: bool = QUIET

    def run(self) -> int:
        from stagescope.readings.published import distance_table, write_distances
        from stagescope.show.reproducing import reproduce
        from stagescope.views.figure import chosen as chosen_figures

        if self.table:
            compare = study(self.paper).distances
            if compare is None:
                has = ", ".join(name for name, of_study in studies().items() if of_study.distances is not None)
                raise InputError(f"{self.paper} has no table of distances; those that have one: {has or 'none'}")
            chosen_figures(study(self.paper).figures(), self.figure, full=True)
            with progress_for(self.progress) as bar:
                distances = compare(bar, self.quick)
            if self.figure is not None:
                distances = [row for row in distances if self.figure in row.shown_in]
            if not distances:
                raise InputError(f"no number of figure {self.figure} has a published or reference value; leave out --figure")
            print(distance_table(distances), end="")
            if self.out is not None:
                print(f"every number: {write_distances(distances, self.out)}")
            return 0
        if self.out is None:
            raise InputError("name a folder for the figures: --out FOLDER")
        reproduce(
            self.paper,
            self.out,
            self.figure,
            full=self.full,
            quick=self.quick,
            sweep=self.sweep,
            progress=self.progress,
            said=print,
        )
        return 0


class List(Command):
    """The studies there are; or of one study its presets, named sweeps, figures and claims."""

    study: AnyStudy = None
    """show this one"""
    json_: Json = AS_JSON

    def run(self) -> int:
        from stagescope.cli.render import catalogue, print_catalogue, print_studies

        if self.study is None and not self.json_:
            for problem in problems():
                say(problem)
            print_studies()
            return 0
        listing = catalogue(None if self.study is None else study(self.study).name)
        for problem in (*problems(), *(problem for entry in listing.values() for problem in entry["problems"])):
            say(problem)
        if self.json_:
            print_json(listing)
        else:
            print_catalogue(listing)
        return 0


class Calibrate(Command):
    """How often each claim of a study is confirmed, violated or left open: on inputs drawn by seed, and on its nulls."""

    study: StudyName
    draws: int = 30
    """runs of every family of inputs, and of every null"""
    nulls: int | None = None
    """draws of every null, where they are to be others than of inputs"""
    claims: OwnClaims = None
    """your own claims instead of the study's: a Claim or a list of them in a module"""
    first: int = 0
    """the first seed"""
    keep: Path | None = None
    """file that gets a line for every draw; a second call goes on with it"""
    workers: int = 1
    """processes"""
    quiet: bool = QUIET
    json_: Json = AS_JSON

    def run(self) -> int:
        from stagescope.readings.calibrate import calibrate

        table = calibrate(
            self.study,
            self.draws,
            self.first,
            nulls=self.nulls,
            claims=self.claims or (),
            keep=self.keep,
            workers=self.workers,
            progress=self.progress,
        )
        answer(table, self.json_, "print_text")
        return 0 if table.holds else 1


class Cite(Command):
    """What to cite for a study, with the statements of its paper that the code uses."""

    study: StudyName

    def run(self) -> int:
        print(cite(self.study))
        return 0


class Demo(Command):
    """A short tour: run a study of each paper, read its stages, put its paper's claims to it, and show all of it on one page."""

    out: Annotated[Path, OUT] = Path("demo")
    """folder for the tour's runs and their report"""
    open: bool = False
    """show the report in the browser"""
    quick: bool = False
    """the first stop only, in seconds: does the installation work?"""
    quiet: bool = QUIET

    def run(self) -> int:
        from rich.console import Console
        from rich.padding import Padding
        from rich.text import Text

        from stagescope.runs.files import store_errors
        from stagescope.show.portrait import portrait
        from stagescope.show.report import html_target, write

        console, portraits, stored = Console(highlight=False), [], []
        with store_errors(self.out):
            self.out.mkdir(parents=True, exist_ok=True)
        page = html_target(self.out / "report.html")
        try:
            for study, preset, sentence in tour()[: 1 if self.quick else None]:
                console.print(Text.assemble((f"{study.name}: ", "bold"), sentence))
                place = self.out / f"{study.name}-{preset}"
                run = study.run(study.configured(preset), out=place, overwrite=True, progress=self.progress)
                stored.append(str(place))
                portraits.append(of_run := portrait(run, preset))
                # what was found: the stages of the run itself with their starts, and the verdicts as `check` counts them
                lines = []
                if of_run.stages is not None:
                    stages = [stage for stage in of_run.stages if not stage.track]
                    starts = (f"{stage.start:{'.3g' if stage.start < 1000 else '.0f'}} {stage.name}" for stage in stages)
                    lines.append(f"stages from {of_run.stages.clock} = {', '.join(starts)}")
                if of_run.ledger is not None:
                    lines.append(f"claims: {of_run.ledger.summary()}")
                for line in lines:
                    console.print(Padding(Text(line), (0, 0, 0, 2)))
            report = write(portraits, page, title=TITLE)
        except KeyboardInterrupt as interrupt:
            # what it leaves: a run that can be continued, if one was being stored, and those that are finished
            text = str(interrupt) if getattr(interrupt, "folder", None) is not None else "interrupted; no page was written"
            raise KeyboardInterrupt(f"{text}; finished runs: {', '.join(stored)}" if stored else text) from None
        console.print(Text(f"The page with all of it: {report}", style="bold"))
        console.print(Text(f"Each run is a folder in {self.out}/: look with `stagescope stages`, `check`, `ladder`."))
        if self.open:
            open_page(report)
        return 0


class Corpus(Command):
    """A text before anything is trained on it: counts, vocabulary, importance of lags, and what papers predict for it."""

    corpus: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME|PATH")] = CORPUS
    tokens: Literal["word", "lower", "basic", "char", "bpe"] | None = TOKENS
    layout: Layout | None = LAYOUT
    vocab: int = Field(200, description=VOCAB)
    window: int = 256
    """tokens per window of the predictions"""
    events: float | None = None
    """also follow the bigram flow up to this t (4000 shows most; a minute)"""
    quiet: bool = QUIET
    json_: Json = AS_JSON

    def run(self) -> int:
        from stagescope.corpora.corpus import AboutText, corpus_facts, read_corpus

        if self.events is not None and not 0 < self.events < math.inf:
            raise InputError(f"--events {self.events:g} is no time to follow the flow to; take one above 0, such as 4000")
        text = read_corpus(
            self.corpus, tokens=self.tokens, layout=self.layout, vocab=self.vocab, progress=progress_for(self.progress)
        )
        facts, about, errors = corpus_facts(text), [], {}
        for name, paper in papers().items():
            try:
                if paper.about_text is not None:
                    prediction = paper.about_text(text, self.window, self.events, self.progress)
                    if not isinstance(prediction, AboutText):
                        raise InputError(f"about_text returned {prediction!r:.60}; expected an AboutText")
                    about.append(prediction)
            except Exception as error:  # code of a paper runs here
                if is_ours(name):  # such as a text that is shorter than a window
                    raise
                errors[name] = error
        for name, error in errors.items():
            say(f"what {name} predicts is left out: {sentence(error)}")
        if self.json_:
            print_json({**facts, **{name: value for prediction in about for name, value in prediction.facts.items()}})
        else:
            from stagescope.cli.render import print_corpus

            print_corpus(facts, [item for prediction in about for item in prediction.renderables])
        return 0
