"""`sweep`: from a plan to a table with one row for every point, on whatever workers there are."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stagescope.dynamics.evolve import Interrupted
from stagescope.errors import InputError, StoreError
from stagescope.runs.files import Lock, told
from stagescope.studies.table import study as study_named
from stagescope.sweeping.axes import Value
from stagescope.sweeping.board import Board, board_for
from stagescope.sweeping.boxes import Scale
from stagescope.sweeping.cluster import Pool, cores, local_pool, remote_pool
from stagescope.sweeping.dispatch import Dispatch
from stagescope.sweeping.plan import FILE, Plan, load_plan, new_id
from stagescope.sweeping.points import Point, points
from stagescope.sweeping.refine import refine as next_cells
from stagescope.sweeping.request import Axes, Seeds, Table, requested
from stagescope.sweeping.rows import RowWriter, reached_end
from stagescope.sweeping.signatures import signatures
from stagescope.sweeping.table import Cell, Sweep, load_sweep
from stagescope.sweeping.worker import Brief, Task


@dataclass(frozen=True)
class Terms:
    """How points are computed, which decides nothing about what they are."""

    workers: int | None = None
    scheduler: str | None = None
    timeout: float | None = None
    keep_runs: bool = False
    retry_failed: bool = False

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
    refine: int = 0,
    refine_by: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    timeout: float | None = None,
    keep_runs: bool = False,
    retry_failed: bool = False,
    yes: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> Sweep:
    """Compute every point of a grid that has no row yet, and return the table of all rows in the folder `out`.

    `grid` maps options to values or to text: `{"pi.0": ".3,.4", "persistence": ".1:.9:9", "init_scale": "1e-4:1e-1:4:log"}`.
    `table` is a CSV file, or mappings, with one point a line. A second call continues and extends the sweep, with more seeds
    or a finer grid, and computes no committed point again. `refine` rounds add points only where neighbouring cells differ
    in the column `refine_by`. A point that fails is a row with its reason; `retry_failed` computes those again. Workers are
    processes of this machine, as many as cores, or those of a Dask `scheduler`.

    In a script, call it under `if __name__ == "__main__":`, because workers import the script.

    Example:
        table = ss.sweep("focus-dilution", grid={"pi.0": ".3:.6:7"}, seeds=5, out="sweeps/pi0")
        table.statistics("E2")
    """
    terms = Terms(workers, scheduler, timeout, keep_runs, retry_failed)
    folder, found = Path(out), study_named(study)
    stored = load_plan(folder) if (folder / FILE).exists() else None
    asked = requested(
        found, preset, grid=grid, table=table, seeds=seeds, measures=measure, options=options, stored=stored, yes=yes
    )
    _check_refine(asked, refine, refine_by)
    with _held(folder, stored is None), board_for(progress) as board:
        plan = asked if stored is None else load_plan(folder).extended(asked)  # another call may have ended in between
        plan.save(folder)
        job = Job(folder, plan, terms, board)
        try:
            job.run(asked, refine, refine_by)
        except KeyboardInterrupt:
            made = load_sweep(folder)
            made.write_csv()
            raise Interrupted(f"interrupted: {len(made)} rows are committed in {folder}; call again to continue") from None
        made = load_sweep(folder)
        made.write_csv()
        return made


@contextmanager
def _held(folder: Path, new: bool) -> Iterator[None]:
    """The folder, for one client at a time."""
    with told(folder):
        if new and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} is not empty and holds no sweep; choose another --out")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock = Lock(folder)
        except StoreError:
            raise StoreError(f"{folder}: another call is computing this sweep; wait for it or stop it") from None
    try:
        yield
    finally:
        lock.release()


def _check_refine(plan: Plan, rounds: int, by: str | None) -> None:
    if rounds < 0:
        raise InputError(f"refine is {rounds}, but must be 0 rounds or more")
    if by is not None and not rounds:
        raise InputError(f"refine_by {by!r} needs --refine N, the number of rounds")
    if rounds and any(grid.lines is not None for grid in plan.grids):
        raise InputError("a table cannot be refined: its lines have no neighbours; use --grid")


class Job:
    """One call of `sweep`: its workers, started when first needed and kept to the end."""

    def __init__(self, folder: Path, plan: Plan, terms: Terms, board: Board) -> None:
        self.folder, self.plan, self.terms, self.board = folder, plan, terms, board
        self.writer = RowWriter(folder)
        self.task = Task(
            folder=str(folder.resolve()),
            sweep=plan.id,
            call=new_id(),
            study=plan.study,
            measures=plan.measures,
            points=(),
            versions=plan.versions,
            timeout=terms.timeout,
            keep_runs=terms.keep_runs,
        )

    def run(self, asked: Plan, rounds: int, by: str | None) -> None:
        """The points asked for, then rounds of refinement between them."""
        every = list(points(asked))
        self._say_damaged()
        first = self._missing(every)
        with self._pool(len(first)) if first or rounds else nullcontext() as pool:
            self._compute(pool, every, first, "points")
            names = [axis.name for axis in asked.axes]
            cells = {tuple(point.at[name] for name in names) for point in every}
            for number in range(1, rounds + 1):
                new = self._next(asked, cells, by)
                if not new:
                    break
                cells |= {tuple(at.values()) for at, _ in new}
                added = list(points(asked, iter(new)))
                self._compute(pool, added, self._missing(added), f"round {number}")

    def _say_damaged(self) -> None:
        damaged = self.writer.rows.refresh().damaged
        if damaged:
            more = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
            self.board.warn(f"damaged: {damaged[0]}{more}; points without an intact row are computed again")

    def _missing(self, every: Sequence[Point]) -> list[Point]:
        """Points without a row, and on request those whose run did not reach its end."""
        rows = self.writer.rows.refresh().current
        found = []
        for point in every:
            row = rows.get(point.digest)
            if row is None:
                found.append(point)
            elif self.terms.retry_failed and not reached_end(row):
                found.append(replace(point, retry=row["retry"] + 1))
        return found

    @contextmanager
    def _pool(self, most: int) -> Iterator[Pool]:
        if self.terms.scheduler is not None:
            with remote_pool(self.terms.scheduler) as pool:
                yield pool
        else:
            wanted = self.terms.workers or cores()
            with local_pool(max(1, min(wanted, most) if most else wanted)) as pool:
                yield pool

    def _compute(self, pool: Pool | None, every: Sequence[Point], missing: Sequence[Point], what: str) -> None:
        done = len(every) - len(missing)
        self.board.begin(what, len(every), done)
        if pool is None or not missing:
            return
        crew = Dispatch(pool, self.task, self.writer, self.board)

        def told(point: Point, brief: Brief) -> None:
            nonlocal done
            done += 1
            if not reached_end({"status": brief.status}):
                self.board.failure(point, brief)
            self.board.update(done, crew.running, crew.workers)

        crew.run(missing, told)
        lacking = [point for point in every if point.digest not in self.writer.rows.refresh().current]
        if lacking:
            raise StoreError(f"{len(lacking)} rows were computed but are not seen in {self.folder}; call again in a minute")

    def _next(self, asked: Plan, cells: set[Cell], by: str | None) -> list[tuple[dict[str, Value], tuple[int, ...]]]:
        """Cells of the next round: between neighbours among `cells` that differ; a call repeated asks for the same ones."""
        names = [axis.name for axis in asked.axes]
        made = load_sweep(self.folder)
        order = [[axis.name for axis in made.axes].index(name) for name in names]
        said = {tuple(cell[place] for place in order): found for cell, found in signatures(made, by).items()}
        scales = [Scale(axis.kind, axis.values) for axis in asked.axes]
        seeds = tuple(dict.fromkeys(seed for grid in asked.grids for seed in grid.seeds))
        new: Any = next_cells(scales, {cell: said[cell] for cell in cells if cell in said})
        return [(dict(zip(names, cell, strict=True)), seeds) for cell in new]
