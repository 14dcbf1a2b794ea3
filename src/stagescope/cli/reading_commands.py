"""Commands that read a run or checkpoints: stages, claims and ladder, pages and figures, defects."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from stagescope.cli.command import (
    AS_JSON,
    OUT,
    OWN_CLAIMS,
    OWN_OBJECTIVE,
    QUIET,
    AnyStudy,
    Command,
    Json,
    OwnClaims,
    OwnObjective,
    ReadingCommand,
    RunFolder,
    Skipped,
    answer,
    objective,
    open_page,
    print_notes,
)
from stagescope.cli.kept import show
from stagescope.core.caches import say
from stagescope.core.errors import InputError, printable

LONG_SECONDS = 20.0
"""A command that will take longer says so before it begins."""


class Stages(ReadingCommand):
    """The stages of a run, and its events with intervals. A stage is a stretch of a run in which one thing is learned."""

    folder: RunFolder
    all: bool = False
    """list events that were not reached too, with the reason"""
    explain: bool = False
    """say what happens in each stage and what the symbols mean, as the report does"""
    objective: OwnObjective = OWN_OBJECTIVE
    json_: Json = AS_JSON

    def answered(self) -> int:
        from stagescope.cli.render import print_captions, print_stage_legend
        from stagescope.readings.reading import reading

        run_reading = reading(self.folder, objective(self.objective))
        stages = run_reading.told_stages
        show("stages", stages, self.json_, self.all, hint=not self.explain)
        if self.explain and not self.json_:
            print_captions(run_reading)
            print_stage_legend(run_reading, stages)
        return 0


class Check(ReadingCommand):
    """Put the claims of the paper, and your own, to a run: the ledger of verdicts. A claim is a sentence of the paper that a run
    can confirm or violate."""

    folder: RunFolder
    claims: OwnClaims = OWN_CLAIMS
    elsewhere: bool = False
    """make the runs beside this one that decide what it cannot"""
    explain: bool = False
    """say what the symbols mean, as the report does"""
    control: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """of a watched model: a run in which there was nothing to learn, such as on shuffled text"""
    quiet: bool = QUIET
    json_: Json = AS_JSON

    def answered(self) -> int:
        from stagescope.readings.reading import check
        from stagescope.readings.registry import watched_problems
        from stagescope.runs.store import load

        run = load(self.folder)
        ledger = check(run, self.claims or (), self.elsewhere, control=self.control, progress=self.progress)
        if run.spec["field"] is None:  # as of every watched model
            from stagescope.watching.source import is_watched

            for problem in watched_problems() if is_watched(run) else ():
                say(printable(problem))
        show("check", ledger, self.json_, hint=not self.explain)
        if self.explain and not self.json_:
            from stagescope.cli.render import print_claim_legend
            from stagescope.readings.reading import reading

            print_claim_legend(reading(run), ledger)
        return 0


class Heads(Command):
    """What each head of a watched model does (previous token, induction, sink, ...), and since when."""

    folder: RunFolder
    json_: Json = AS_JSON

    def run(self) -> int:
        from stagescope.watching.heads import heads

        return answer(heads(self.folder), self.json_, "print_heads")


class Ladder(ReadingCommand):
    """The critical points a run passed, each a rung: what opens at it, and when it should have been left and was left."""

    folder: RunFolder
    objective: OwnObjective = OWN_OBJECTIVE
    quiet: bool = False
    """no progress bar, no estimate of the time"""
    json_: Json = AS_JSON

    def answered(self) -> int:
        from stagescope.readings.reading import reading, saddle_ladder
        from stagescope.runs.store import load

        stored, law = load(self.folder), objective(self.objective)
        if not self.quiet:
            seconds, sentence = reading(stored, law).ladder_cost
            if seconds > LONG_SECONDS:
                say(sentence)
        show("ladder", saddle_ladder(stored, law, progress=self.progress), self.json_)
        return 0


class Report(ReadingCommand):
    """Write runs as one offline page in which to watch them learn; runs of one study share its scrubber."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN...", help="folders of runs")]
    out: Annotated[Path, OUT] = Path("report.html")
    """the file; an earlier report is replaced, no other file"""
    exact: bool = False
    """matrices as float32 instead of 8 bits a cell; a file up to ten times as large"""
    title: str | None = None
    """of the page; default: the names of the runs"""
    skip: Skipped = ()
    """what to leave out because it takes long"""
    claims: OwnClaims = OWN_CLAIMS
    objective: OwnObjective = OWN_OBJECTIVE
    open: bool = False
    """show it in the browser"""
    quiet: bool = False
    """no progress bar; print the path alone"""

    def answered(self) -> int:
        from stagescope.show.report import html_target, report

        law = objective(self.objective)
        target = html_target(self.out)
        page = report(
            self.folders,
            exact=self.exact,
            title=self.title,
            skip=self.skip,
            claims=self.claims or (),
            objective=law,
            progress=self.progress,
        )
        file = page.save(target)
        print(file if self.quiet else f"{file}: {file.stat().st_size / 1e6:.1f} MB, works offline")
        print_notes(() if self.quiet else page.notes)
        if self.open:
            open_page(file)
        return 0


class Figures(ReadingCommand):
    """Draw the views of a run's report as files (PDF, SVG, PNG), and its stages and ledger as text."""

    folder: RunFolder
    out: Annotated[Path, OUT]
    """folder for the figures; earlier ones there are replaced, no other file is"""
    to: tuple[Literal["pdf", "svg", "png"], ...] = ("pdf", "svg", "png")
    """kinds of files"""
    skip: Skipped = ()
    """what to leave out because it takes long"""
    claims: OwnClaims = OWN_CLAIMS
    quiet: bool = False
    """no progress bar; print the paths alone"""

    def answered(self) -> int:
        from stagescope.show.static import figures

        notes: list[str] = []
        files = figures(
            self.folder, self.out, to=self.to, skip=self.skip, claims=self.claims or (), progress=self.progress, said=notes.append
        )
        names = len({path.stem for path in files[:-1]})
        kinds = ", ".join(kind.upper() for kind in self.to)
        print("\n".join(map(str, files)) if self.quiet else f"{names} figures ({kinds}) and {files[-1]}")
        print_notes(() if self.quiet else notes)
        return 0


class Play(Command):
    """Write one offline page with sliders for the options of a study; each move integrates its flow again, in the page."""

    study: AnyStudy = None
    """the study; default: all that can be played"""
    out: Annotated[Path, OUT] = Path("play.html")
    """the file; an earlier page is replaced, no other file"""
    open: bool = False
    """show it in the browser"""
    quiet: bool = False
    """print the path alone"""

    def run(self) -> int:
        from stagescope.show.play import write_play

        file = write_play([self.study] if self.study else [], self.out)
        print(file if self.quiet else f"{file}: {file.stat().st_size / 1e6:.1f} MB, works offline")
        if self.open:
            open_page(file)
        return 0


class Audit(Command):
    """Look for defects in checkpoints: cut, NaN, duplicate, foreign tensor, out of order, other lineage. Exit code 1 if any."""

    folder: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")] = None
    """holds one folder or file for each checkpoint, its step in its name"""
    hashes: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """also, or only, published hashes: JSON {checkpoint: {file: sha256}}"""
    quiet: bool = QUIET
    json_: Json = AS_JSON

    def run(self) -> int:
        if self.folder is None and self.hashes is None:
            raise InputError("nothing to audit; give the folder that holds the checkpoints, or --hashes FILE")
        from stagescope.watching.audit import audit, audit_hashes

        audits = [audit_hashes(self.hashes)] if self.hashes is not None else []
        if self.folder is not None:
            audits.insert(0, audit(self.folder, progress=self.progress))
        audit_sum = sum(audits[1:], audits[0])
        answer(audit_sum, self.json_, "print_text")
        return 0 if audit_sum.clean else 1
