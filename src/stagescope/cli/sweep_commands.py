"""Commands for many points of a study; heavy imports are inside."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from pydantic import Field

from stagescope.cli.command import (
    AS_JSON,
    NO_SUMMARY,
    OUT,
    OWN_CLAIMS,
    Command,
    Json,
    OwnClaims,
    StudyFlags,
    named_values,
    open_page,
    print_json,
    print_notes,
)
from stagescope.core.errors import printable
from stagescope.core.options import field_name
from stagescope.readings.registry import study

if TYPE_CHECKING:
    from stagescope.sweeping.table import Sweep as Table

SweepFolder = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="SWEEP")]


class SweepFlags(StudyFlags):
    """What a sweep of any study understands besides the study's options, which stay fixed."""

    out: Annotated[Path, OUT]
    """folder of the sweep; a call with the same folder continues and extends it"""
    preset: str | None = None
    """named sweep, or named settings of the study; options given here override them"""
    grid: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUES")] = ()
    """a swept option: a,b,c or lo:hi:n or lo:hi:n:log; elements of a list are pi.0; give it once per option"""
    table: Path | None = None
    """CSV file with a column for each swept option, and maybe seed; one point a line"""
    seeds: str | None = None
    """how many (5 means 0 to 4), or which: 3,7,11; default: 1"""
    measure: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME...")] = Field(
        None,
        description="what a row holds: events, verdicts (several times as long), numbers, or a measure of the study's own "
        "(see `stagescope list STUDY`); default: events numbers",
    )
    claims: OwnClaims = OWN_CLAIMS
    refine: int = 0
    """rounds that add points only where neighbouring cells differ"""
    refine_by: str | None = None
    """column in which they differ; default: which events occurred, and verdicts"""
    workers: int | None = None
    """processes on this machine; default: one per core"""
    scheduler: str | None = None
    """address of a running Dask scheduler to use instead, tcp://HOST:8786"""
    timeout: float | None = None
    """seconds after which a point is given up; a worker's first point has 30 more, to import and compile"""
    keep_runs: bool = False
    """store every run whole, in runs/ of the folder"""
    retry_failed: bool = False
    """compute points again that failed, diverged or timed out"""
    remeasure: bool = False
    """compute points again whose claims, or their rules, have changed since"""
    yes: bool = False
    """more than a million points are meant"""
    quiet: bool = NO_SUMMARY
    json_: Json = AS_JSON


class Sweep(Command):
    """Compute a grid of points on all cores or a cluster, as one table. Ctrl-C and crashes lose nothing that is committed."""

    study: Any

    def run(self) -> int:
        from stagescope.sweeping.engine import sweep

        flags: SweepFlags = self.study
        fields = type(flags).model_fields
        settings = flags.options_of(study(flags.study_name))
        options = {name: value for name, value in settings.items() if value != fields[name].default}
        names = ("out", "table", "seeds", "measure", "claims", "refine", "refine_by", "workers", "scheduler")
        names += ("timeout", "keep_runs", "retry_failed", "remeasure", "yes")
        choices = {name: getattr(flags, name) for name in names}
        table = sweep(flags.study_name, flags.preset, grid=_grids(flags.grid), progress=flags.progress, **choices, **options)
        if flags.json_:
            facts = {
                "sweep": str(table.folder),
                "study": table.plan.study,
                "axes": {axis.name: len(axis.values) for axis in table.axes},
                "cells": len(table.cells),
                "rows": len(table),
                "failed": [{name: row[name] for name in ("at", "seed", "status", "reason")} for row in table.failed],
                "damaged": list(table.damaged),
                "renewed": table.renewed,
                "seconds": sum(row.get("seconds") or 0.0 for row in table.rows),
                "table": str(table.folder / "table.csv"),
            }
            print_json(facts)
        elif not flags.quiet:
            _print_outcome(table)
        return 1 if table.rows and len(table.failed) == len(table) else 0


class Diagram(Command):
    """Draw a column of a sweep over one or two of its axes: figure (PDF, SVG, PNG, numbers as JSON) and interactive page."""

    folder: SweepFolder
    x: str
    """axis across"""
    y: str | None = None
    """axis upwards; without it a curve is drawn"""
    color: str | None = Field(
        None,
        description="column that is shown: an event, 'predicted E2' (from each start, without its run), a claim by its tag, a "
        "number, stages; default: that of a named sweep, else last stage, else status",
    )
    at: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE...")] = ()
    """values of other axes; those not named give a panel for each of their values"""
    boundary: str | None = None
    """line of theory over the two axes: stall of focus-dilution"""
    out: Annotated[Path | None, OUT] = None
    """folder for the figure; default: diagrams in the sweep's folder"""
    page: Path | None = None
    """file of the page; default: diagram.html beside the figure"""
    open: bool = False
    """show the page in the browser"""
    quiet: bool = False
    """print the paths alone"""

    def run(self) -> int:
        from stagescope.show.diagram import diagram

        drawing = diagram(
            self.folder, self.x, self.y, self.color, at=_grids(self.at), boundary=self.boundary, out=self.out, page=self.page
        )
        if self.quiet:
            print(f"{drawing.figure}\n{drawing.page}")
        else:
            size = drawing.page.stat().st_size / 1e6
            print(f"{drawing.figure.with_suffix('')}.{{pdf,svg,png,json}}\n{drawing.page}: {size:.1f} MB, works offline")
            print_notes(drawing.notes)
        if self.open:
            open_page(drawing.page)
        return 0


def _grids(words: tuple[str, ...]) -> dict[str, str]:
    """`pi.0=.3,.4` as name and values; names as Python spells them."""
    spelled = (f"{field_name(name)}={values}" for name, _, values in (word.partition("=") for word in words))
    return named_values(spelled, "pi.0=.3,.4 or persistence=.1:.9:9")


def _print_outcome(table: "Table") -> None:
    """How many rows there are, which failed and why, and what to do next."""
    from stagescope.sweeping.rows import counted, outcome

    failed = f", {len(table.failed)} failed" if table.failed else ""
    size = f"{counted(len(table), 'row')} in {counted(len(table.cells), 'cell')}"
    print(f"{table.folder}: {size}{failed}; {table.folder / 'table.csv'}")
    reasons = Counter(outcome(row["status"], row["reason"]) for row in table.failed)
    for reason, count in reasons.most_common(3):
        print(printable(f"{count} {reason}"))
    if len(reasons) > 3:
        print(f"and {counted(len(reasons) - 3, 'other reason')}, in the table")
    if names := [axis.name for axis in table.axes if len(axis.values) > 1]:
        upwards = f" --y {names[1]}" if len(names) > 1 else ""
        print(f"next: stagescope diagram {table.folder} --x {names[0]}{upwards}")
