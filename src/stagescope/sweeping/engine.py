"""`sweep`: from a plan to a table with one row for every point, on whatever workers there are."""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stagescope.claims.own import forget, own_claims
from stagescope.core.errors import InputError, StoreError, needed
from stagescope.flow.evolve import Interrupted
from stagescope.readings.registry import study as study_named
from stagescope.runs.files import Lock, refuse_foreign, store_errors
from stagescope.sweeping.axes import Scale
from stagescope.sweeping.columns import Rules, outdated
from stagescope.sweeping.dispatch import Dispatch, cores, local_pool, remote_pool
from stagescope.sweeping.plan import (
    CALL,
    FILE,
    Axes,
    Plan,
    Point,
    Seeds,
    Table,
    check_count,
    load_plan,
    new_id,
    points,
    requested,
)
from stagescope.sweeping.progress import SweepProgress, sweep_progress
from stagescope.sweeping.refine import boundary, check_column, signatures
from stagescope.sweeping.refine import refine as next_cells
from stagescope.sweeping.rows import Rows, RowWriter, counted, reached_end
from stagescope.sweeping.table import Cell, Sweep, load_sweep
from stagescope.sweeping.worker import Brief, Task


@dataclass(frozen=True)
class Execution:
    """How points are computed, which decides nothing about what they are."""

    workers: int | None = None
    scheduler: str | None = None
    timeout: float | None = None
    keep_runs: bool = False
    retry_failed: bool = False
    remeasure: bool = False
    yes: bool = False

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise InputError(f"workers is {self.workers}, but at least 1 process is needed")
        if self.workers is not None and self.scheduler is not None:
            raise InputError(
                f"--workers {self.workers} are processes of this machine; the scheduler {self.scheduler} has its own"
            )
        if self.timeout is not None and not 0 < self.timeout < 1e7:
            raise InputError(f"timeout is {self.timeout:g} s, but must be above 0 and below 1e7")


def sweep(
    study: str,
    preset: str | None = None,
    *,
    out: str | Path,
    grid: Axes | None = None,
    table: Table | None = None,
    seeds: Seeds | None = None,
    measure: Sequence[str] | None = None,
    claims: str | None = None,
    refine: int = 0,
    refine_by: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    timeout: float | None = None,
    keep_runs: bool = False,
    retry_failed: bool = False,
    remeasure: bool = False,
    yes: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> Sweep:
    """Compute every point of a grid that has no row yet, and return the table of all rows in the folder `out`.

    `grid` maps options to values or to text: `{"pi.0": ".4,.5", "persistence": ".1:.9:9", "init_scale": "1e-4:1e-1:4:log"}`; with
    a named sweep as `preset` it replaces the grids of the same names. `table` is a CSV file, or mappings, with one point a line.
    A second call continues and extends the sweep, with more seeds or a finer grid, and computes no committed point again.
    `refine` rounds add points only where neighbouring cells differ in the column `refine_by`. A point that fails is a row with
    its reason; `retry_failed` computes those again, `remeasure` those whose claims were judged by older rules. Workers are
    processes of this machine, as many as cores, or those of a Dask `scheduler`.

    `claims` is "module:NAME" of your own claims, judged after those of the paper; each has a column by its tag. The module is
    imported by this process and by every worker, from the current folder or from what is installed. A later call for the same
    folder must give the same name again: a name that is stored in a folder is never imported by itself.

    In a script, call it under `if __name__ == "__main__":`, because workers import the script.

    Args:
        study: its name.
        preset: settings by name, or a named sweep.
        out: the folder of the table.
        grid: values for each option, as numbers or as text.
        table: points one by one, a CSV file or mappings.
        seeds: how many, or which.
        measure: what is kept of each run.
        claims: "module:NAME" of your own claims.
        refine: rounds that add points where cells differ.
        refine_by: the column that they differ in.
        workers: processes.
        scheduler: address of a Dask scheduler.
        timeout: seconds after which a point is given up.
        keep_runs: keep the runs in the folder.
        retry_failed: compute failed points again.
        remeasure: judge again what older rules judged.
        yes: begin without a question, however long it takes.
        progress: show a bar; None shows it on a terminal.
        options: settings that differ from the preset.

    Returns:
        The table.

    Examples:
        >>> table = ss.sweep("linear-icl", grid={"context": "10,20"}, seeds=1, out="swept", workers=1, until=20.0, progress=False)
        >>> [row["config"]["context"] for row in table.rows]
        [10, 20]
    """
    needed("distributed", "sweep", "a sweep")
    execution = Execution(workers, scheduler, timeout, keep_runs, retry_failed, remeasure, yes)
    folder, chosen_study = Path(out), study_named(study)
    stored = load_plan(folder) if (folder / FILE).exists() else None
    request = requested(
        chosen_study,
        preset,
        grid=grid,
        table=table,
        seeds=seeds,
        measures=measure,
        claims=claims,
        options=options,
        stored=stored,
        yes=yes,
    )
    _check_refine(request, refine, refine_by, folder)
    if claims is not None and stored is not None and stored.claims_digest != request.claims_digest:
        forget(claims)  # this process may have imported them before they were changed
    with _locked(folder, stored is None), sweep_progress(progress) as display:
        # another call may have ended in between
        plan = request if stored is None else load_plan(folder).extended(request, remeasure)
        rules = Rules.of(chosen_study.claims(), own_claims(claims or ()), plan.claims_digest)
        job = Job(folder, plan, execution, display, refine_by, rules)
        job.settle()
        try:
            job.run(request, refine)
        except KeyboardInterrupt:
            done = counted(len(load_sweep(folder)), "row")
            raise Interrupted(f"interrupted: {done} committed in {folder}; call again to continue", folder) from None
        finally:
            job.settle()
            swept = replace(load_sweep(folder), renewed=job.renewed)
            swept.write_csv()
        return swept


@contextmanager
def _locked(folder: Path, new: bool) -> Iterator[None]:
    """The folder, for one client at a time."""
    with store_errors(folder):
        if new and folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file; choose another --out")
        if new and folder.exists() and any(path.name != CALL for path in folder.iterdir()):
            raise InputError(f"{folder} is not empty and holds no sweep; choose another --out")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileNotFoundError:  # such as below /proc
            raise InputError(f"{folder}: no folder can be made there; choose another --out") from None
        refuse_foreign(folder)
        try:
            lock = Lock(folder / CALL)
        except StoreError:
            raise StoreError(f"{folder}: another call is computing this sweep; wait for it or stop it") from None
    try:
        yield
    finally:
        lock.release()


def _check_refine(plan: Plan, rounds: int, refine_by: str | None, folder: Path) -> None:
    if rounds < 0:
        raise InputError(f"refine is {rounds}, but must be 0 rounds or more")
    if refine_by is not None and not rounds:
        raise InputError(f"refine_by {refine_by!r} needs --refine N, the number of rounds")
    if rounds and any(grid.lines is not None for grid in plan.grids):
        raise InputError("a table cannot be refined: its lines have no neighbours; use --grid")
    if rounds and not any(axis.kind != "categorical" and len(axis.values) > 1 for axis in plan.axes):
        names = ", ".join(axis.name for axis in plan.axes)
        raise InputError(f"nothing lies between the values of {names}; refine needs an axis of several numbers")
    if refine_by is not None:
        check_column(refine_by, plan, list(Rows(folder).refresh().current.values()))


@dataclass(eq=False)
class Job:
    """One call of `sweep`: its workers, started when first needed and kept to the end."""

    folder: Path
    plan: Plan
    execution: Execution
    progress: SweepProgress
    refine_by: str | None
    rules: Rules

    def __post_init__(self) -> None:
        self.renewed = 0
        self._column_checked = self.refine_by is None
        self._workers, self._limit, self._started = ExitStack(), None, None
        self.writer = RowWriter(self.folder)

    def settle(self) -> None:
        """Store the plan, with the size of the journal that names every committed row."""
        journal = self.writer.rows.refresh().journal
        if journal.damaged or journal.size < (self.plan.journal or 0):  # rows may be lost that it would name
            self.progress.warn(f"{journal.folder}: damaged; it is written again from the rows that are intact")
        if not (self.folder / FILE).exists():
            self.plan.save(self.folder)  # first, so that a folder whose call was killed here is a sweep
        self.plan = self.plan.model_copy(update={"journal": self.writer.settle()})
        self.plan.save(self.folder)

    def run(self, request: Plan, rounds: int) -> None:
        """The requested points, then rounds of refinement between them."""
        all_points = list(points(request))
        bare = request.model_copy(update={"grids": ()})
        self.task = Task(str(self.folder.resolve()), bare, new_id(), (), self.execution.timeout, self.execution.keep_runs)
        first = self._missing(all_points)
        rows = self.writer.rows
        if problems := rows.problems() if first else []:
            further = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
            self.progress.warn(f"{problems[0]}{further}; points without an intact row are computed again")
        current_rows = (rows.current.get(point.digest) for point in all_points)
        older = sum(row is not None and outdated(row, self.rules) for row in current_rows)
        if older and not self.execution.remeasure:
            self.progress.note(f"{counted(older, 'row')} judged by older rules; --remeasure computes them again")
        with ExitStack() as self._workers:
            self._limit = None if rounds else len(first)
            self._compute(all_points, first, "points")
            names = [axis.name for axis in request.axes]
            seeds = tuple(dict.fromkeys(seed for grid in request.grids for seed in grid.seeds))
            cells = {tuple(point.values[name] for name in names) for point in all_points}
            for number in range(1, rounds + 1):
                # cells of the next round: between neighbours that differ; the same call gives the same cells
                new: Any = next_cells(*self._signatures(request, cells))
                if not new:
                    break
                cells |= set(new)
                check_count(len(cells) * len(seeds), self.execution.yes)
                added = list(points(request, ((dict(zip(names, cell, strict=True)), seeds) for cell in new)))
                self._compute(added, self._missing(added), f"round {number}")
            if rounds:
                self.progress.note(boundary(request.axes, *self._signatures(request, cells)))
        if self.execution.remeasure:
            judged = "verdicts" in request.measures
            reason = "all were judged by the claims and rules of today" if judged else "this sweep judges no claims"
            outcome = "by the claims and rules of today" if self.renewed else f": {reason}"
            self.progress.note(f"{counted(self.renewed, 'row')} renewed{' ' if self.renewed else ''}{outcome}")

    def _missing(self, all_points: Sequence[Point]) -> list[Point]:
        """Points without a row, those whose last try was damaged, and on request those that failed or are outdated."""
        rows = self.writer.rows.refresh().current
        lost, missing_points = self.writer.rows.lost, []
        for point in all_points:
            row = rows.get(point.digest)
            last = lost.get(point.digest, 0)
            if row is None:
                missing_points.append(replace(point, retry=last))
            else:
                renew = (
                    outdated(row, self.rules) and self.execution.remeasure if reached_end(row) else self.execution.retry_failed
                )
                if renew or row["retry"] < last:
                    missing_points.append(replace(point, retry=max(row["retry"] + 1, last), renew=reached_end(row)))
        return missing_points

    def _compute(self, all_points: Sequence[Point], missing: Sequence[Point], what: str) -> None:
        self.progress.begin(what, len(all_points), len(all_points) - len(missing))
        if not missing:
            return
        # The workers, started when they are first needed; no more of them than there are points, where that is known.
        if self._started is None:
            workers = self.execution.workers or cores()
            remote, few = self.execution.scheduler, workers if self._limit is None else min(workers, self._limit)
            self._started = self._workers.enter_context(local_pool(few) if remote is None else remote_pool(remote))
        Dispatch(self._started, self.task, self.writer, self.progress).run(missing, self._ended)
        committed = self.writer.rows.refresh().current
        renewed = (point for point in missing if self.execution.remeasure and point.renew and point.digest in committed)
        self.renewed += sum(committed[point.digest]["retry"] >= point.retry for point in renewed)
        absent = [point for point in all_points if point.digest not in committed]
        if absent:
            raise StoreError(f"{len(absent)} rows were computed but are not seen in {self.folder}; call again in a minute")

    def _ended(self, point: Point, brief: Brief) -> None:
        self.progress.ended(point, brief)
        if not self._column_checked and reached_end({"status": brief.status}):
            assert self.refine_by is not None
            check_column(self.refine_by, self.plan, list(self.writer.rows.refresh().current.values()))
            self._column_checked = True

    def _signatures(self, request: Plan, cells: set[Cell]) -> tuple[list[Scale], dict[Any, Hashable]]:
        """The scales of the axes, and the signature of each of the cells."""
        swept = load_sweep(self.folder)
        order = [[axis.name for axis in swept.axes].index(axis.name) for axis in request.axes]
        signed = signatures(swept, self.refine_by).items()
        by_cell = {tuple(cell[place] for place in order): signature for cell, signature in signed}
        scales = [Scale(axis.kind, axis.values) for axis in request.axes]
        return scales, {cell: by_cell[cell] for cell in cells if cell in by_cell}
