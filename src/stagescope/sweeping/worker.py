"""What a worker does with a batch of points: look for committed rows, compute and measure the others, commit.

Whatever goes wrong on the way is a row too. Nothing here imports Dask: a worker is any process that can call `work`.
"""

import faulthandler
import os
import re
import shutil
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stagescope
from stagescope.claims.claim import Claim
from stagescope.claims.own import forget, own_claims, source_digest
from stagescope.core.errors import NotARun, StagescopeError, sentence, shortened
from stagescope.core.spec import Json, finite
from stagescope.readings.registry import study as study_named
from stagescope.readings.study import Study
from stagescope.runs.run import Run
from stagescope.sweeping.columns import Rules
from stagescope.sweeping.plan import MEASURES, Measure, Plan, Point, changed_file, load_plan, versions
from stagescope.sweeping.rows import Attempts, Row, RowWriter


def measured(
    study: Study,
    point: Point,
    measures: Sequence[Measure],
    keep: Path | None = None,
    claims: Sequence[Claim] = (),
    source: str | None = None,
) -> Row:
    """Run a point and measure it.

    `keep` is the folder that its whole run is stored in, `claims` are the caller's own, `source` is the digest of their module.
    """
    began, clock = time.time(), time.monotonic()
    draft = None if keep is None else keep.with_name(f"{keep.name}.{socket.gethostname()}.{os.getpid()}")
    try:
        run = study.run(study.configured(None, **point.config), seed=point.seed, out=draft, overwrite=True, progress=False)
    except (Exception, SystemExit) as error:
        facts = {"status": "failed", "reason": reason(error)}
    else:
        facts = _read(study, run, measures, claims, source)
        if draft is not None and keep is not None and (wrong := _settle(draft, keep)):
            facts |= {"status": "failed", "reason": f"the run is {run.status}, but cannot be kept: {wrong}"}
    return row_at(study, point, {**facts, "seconds": time.monotonic() - clock, "started": began})


def _settle(draft: Path, keep: Path) -> str | None:
    """Move a stored run to its place; what went wrong, if it did.

    Until then it has a folder of its own, because another worker may be making the same run.
    """
    old = draft.with_name(f"{draft.name}.old")
    try:
        if keep.exists():  # of a try before, or of a worker that was faster
            keep.rename(old)
        draft.rename(keep)
    except OSError as error:
        return None if keep.exists() else str(error)
    finally:
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(draft, ignore_errors=True)
    return None


def row_at(study: Study, point: Point, results: Mapping[str, Any]) -> Row:
    """A row with what it always has; numbers that are not finite are null."""
    facts = {"digest": point.digest, "study": study.name, "seed": point.seed, "at": dict(point.values)}
    origin = {"config": dict(point.config), "host": socket.gethostname(), "version": stagescope.__version__}
    return finite({**facts, **origin, "retry": point.retry, "renew": point.renew, "reason": "", **results})


def _read(study: Study, run: Run, measures: Sequence[Measure], claims: Sequence[Claim], source: str | None) -> Json:
    """What a run shows. A finished run that cannot be read has failed: a row without events must not look like one."""
    facts: Json = {"status": run.status, "reason": run.reason, "clock": run.clock, "end": float(run.time[-1])}
    try:
        if "numbers" in measures:
            facts["numbers"] = study.numbers(run)
        if "events" in measures:
            facts |= _events(run)
        if "verdicts" in measures:
            from stagescope.readings.reading import check

            verdicts, counts = {}, Counter()  # a tag that a paper uses twice is numbered
            for row in check(run, claims):
                counts[row.tag] += 1
                verdicts[row.tag if counts[row.tag] == 1 else f"{row.tag} ({counts[row.tag]})"] = row.verdict
            facts |= {"verdicts": verdicts, **Rules.of(study.claims(), claims, source).row()}
        study_measures = [name for name in measures if name not in MEASURES and run.done]
        if study_measures:
            facts["measures"] = {name: study.measures[name](run) for name in study_measures}
    except (Exception, SystemExit) as error:
        if run.done:
            return {**facts, "status": "failed", "reason": f"the run is {run.status}, but cannot be read: {reason(error)}"}
    return facts


def _events(run: Run) -> Json:
    """Events, names of stages in order, when each first began, and how long it lasted in all; None where the run ended inside."""
    from stagescope.readings.reading import reading

    stages = reading(run).stages  # without the transitions of all curves, which no column shows
    spans: dict[str, float | None] = {}
    starts: dict[str, float] = {}
    for stage in stages:
        starts.setdefault(stage.name, stage.start)
        before = spans.get(stage.name, 0.0)
        spans[stage.name] = None if stage.stop is None or before is None else before + stage.stop - stage.start
    return {"events": dict(stages.events), "stages": [stage.name for stage in stages], "starts": starts, "durations": spans}


def reason(error: BaseException) -> str:
    """A sentence for a row, not too long."""
    return shortened(sentence(error), 400)


DEATHS = 8
"""A point that was begun so often in one call and never ended is given up: whatever kills its worker will do so again."""
COMMIT_SECONDS = 1.0
"""At most about this much finished work is lost when a worker is killed."""
START_SECONDS = 30.0
"""What the first point of a process gets beyond the time-out: it imports and compiles, which is no fault of the point."""


@dataclass(frozen=True)
class Task:
    """A batch of points of one sweep, as it travels to a worker; `plan` is that of the call, without its grids."""

    folder: str
    plan: Plan
    call: str
    points: tuple[Point, ...]
    timeout: float | None = None
    keep_runs: bool = False


@dataclass(frozen=True)
class Brief:
    """What the client shows of a point that is done."""

    digest: str
    status: str
    reason: str
    seconds: float


@dataclass(frozen=True)
class Done:
    """The outcome of a batch; `rows` are those that the client has to commit because this worker does not see its folder."""

    briefs: tuple[Brief, ...]
    rows: tuple[Row, ...] = ()


class Mismatch(StagescopeError):
    """Client and worker do not run the same code."""


class Desk:
    """What one process keeps for one sweep: its place among the rows, and its list of attempts."""

    def __init__(self, folder: Path) -> None:
        self.writer = RowWriter(folder)
        self.attempts = Attempts(folder, self.writer.name)

    def begin(self, task: Task, point: Point) -> bool:
        """Take up a point unless it has its row. Under the lock: what was committed is never begun again."""
        with self.writer.locked() as rows:
            if rows.has(point.digest, point.retry, point.renew):
                return False
            self.attempts.begin(task.call, point.digest)
            return True

    def close(self) -> None:
        self.writer.close()
        self.attempts.close()


_DESKS: dict[tuple[str, str, str], Desk | None] = {}
_CLAIMS: dict[str, tuple[Claim, ...]] = {}
"""The caller's own claims, by call."""
_ONE = threading.Lock()
"""One point at a time in a process: kernels hold the interpreter anyway, and there is one timer."""
_WARM = threading.Event()
"""Whether this process has computed a point."""


def work(task: Task) -> Done:
    """Compute a batch."""
    # Refuse work from a client that runs other code: its rows would not be those of this one.
    client = task.plan.versions
    local = versions()
    for name, version in client.items():
        if local[name] != version:
            raise Mismatch(f"a worker has {name} {local[name]}, this client {version}; install the same version on both")
    study = study_named(task.plan.study)
    with _ONE:
        desk = _desk(task)
        _claims(task)
        if desk is None:
            rows = _compute(study, task, list(task.points))
            return Done(tuple(map(brief_of, rows)), tuple(rows))
        desk.attempts.refresh()
        fresh = not any(desk.attempts.count(task.call, point.digest) for point in task.points)
        if fresh and _at_once(study, task):
            desk.writer.commit(_compute(study, task, [point for point in task.points if desk.begin(task, point)]))
        else:
            _one_by_one(study, task, desk)
        current = desk.writer.rows.current
        return Done(tuple(brief_of(current[point.digest]) for point in task.points))


def _desk(task: Task) -> Desk | None:
    """The sweep's folder as this worker sees it; None if it is not there, or another sweep's."""
    key = task.folder, task.plan.id, task.call
    if key not in _DESKS:  # another call: its files may have been changed by hand since the last one
        for desk in filter(None, _DESKS.values()):
            desk.close()
        _DESKS.clear()
        try:
            visible = load_plan(Path(task.folder)).id == task.plan.id
        except NotARun:
            visible = False
        if wrong := changed_file(task.plan.files):
            raise Mismatch(f"on the worker {socket.gethostname()}, {wrong}; a worker needs the client's files, at the same path")
        _DESKS[key] = Desk(Path(task.folder)) if visible else None
    return _DESKS[key]


def _claims(task: Task) -> tuple[Claim, ...]:
    """The caller's own claims, imported once a call: since another call their file may have changed."""
    name = task.plan.claims
    if name is None:
        return ()
    if task.call not in _CLAIMS:
        _CLAIMS.clear()
        forget(name)
        claims = own_claims(name)
        if source_digest(name) != task.plan.claims_digest:
            raise Mismatch(f"the module of the claims {name} is another one on the worker {socket.gethostname()}")
        _CLAIMS[task.call] = claims
    return _CLAIMS[task.call]


def _at_once(study: Study, task: Task) -> bool:
    """Whether one kernel call may serve many points: then there is no single one to time, or to keep."""
    return study.many is not None and task.plan.measures == ("numbers",) and task.timeout is None and not task.keep_runs


def _compute(study: Study, task: Task, points: list[Point]) -> list[Row]:
    """Rows of points, together where the study can, one by one where it cannot."""
    numbers_of_points: list[dict[str, float] | None] = [None] * len(points)
    began, clock = time.time(), time.monotonic()
    if study.many is not None and _at_once(study, task) and points:
        try:
            numbers_of_points = study.many(
                [study.configured(None, **point.config) for point in points], [point.seed for point in points]
            )
        except Exception:
            numbers_of_points = [None] * len(points)  # one of them is at fault; one by one, that one says why
    share = {"started": began, "seconds": (time.monotonic() - clock) / max(1, len(points))}
    rows = []
    for point, numbers in zip(points, numbers_of_points, strict=True):
        if numbers is None:
            with _timer(task.timeout, None):
                rows.append(_measured(study, task, point))
        else:
            rows.append(row_at(study, point, {"status": "finished", "clock": "t", "numbers": numbers, **share}))
    return rows


def _one_by_one(study: Study, task: Task, desk: Desk) -> None:
    waiting: list[Row] = []
    due = time.monotonic() + COMMIT_SECONDS
    for point in task.points:
        tried = desk.attempts.count(task.call, point.digest)
        if tried and waiting:  # it may kill this worker too: nothing else shall be lost
            desk.writer.commit(waiting)
            waiting = []
        if not desk.begin(task, point):
            continue
        waiting.append(_row(study, task, desk, point, tried))
        if time.monotonic() > due:
            desk.writer.commit(waiting)
            waiting, due = [], time.monotonic() + COMMIT_SECONDS
    desk.writer.commit(waiting)


def _row(study: Study, task: Task, desk: Desk, point: Point, tried: int) -> Row:
    trace = desk.attempts.folder / f"{point.digest}.{point.retry}.trace"
    if trace.exists() and trace.stat().st_size:
        # The time that was given, as the trace says it: a first point has more, and a later call may have another.
        text = trace.read_text(errors="replace")
        match = re.match(r"Timeout \((\d+):(\d+):([\d.]+)\)", text)
        limit = sum(float(part) * unit for part, unit in zip(match.groups(), (3600, 60, 1), strict=True)) if match else None
        # the innermost function of ours that was running
        frame = re.search(r'stagescope/([\w/]+\.py)", line \d+ in (\w+)', text)
        place = f" in {frame.group(2)} of {frame.group(1)}" if frame else ""
        cause = f"timed out{'' if limit is None else f' after {limit:g} s'}{place}"
        return row_at(study, point, {"status": "timed out", "reason": cause, "seconds": limit, "started": time.time()})
    if tried >= DEATHS:
        cause = f"its worker died {tried} times while computing it (out of memory?)"
        return row_at(study, point, {"status": "failed", "reason": cause, "seconds": None, "started": time.time()})
    keep = Path(task.folder) / "runs" / point.digest if task.keep_runs else None
    with _timer(task.timeout, trace):
        return _measured(study, task, point, keep)


def _measured(study: Study, task: Task, point: Point, keep: Path | None = None) -> Row:
    return measured(study, point, task.plan.measures, keep, _claims(task), task.plan.claims_digest)


@contextmanager
def _timer(seconds: float | None, trace: Path | None) -> Iterator[None]:
    """End this process when time is up, leaving a trace of where it was: compiled code hears no signals and no exceptions.

    The watchdog reads frames while they change, so now and then the process ends by a fault; that time was up is written first.
    """
    if seconds is None:
        yield
        _WARM.set()
        return
    with open(trace or "/dev/null", "wb") as file:
        faulthandler.dump_traceback_later(seconds if _WARM.is_set() else seconds + START_SECONDS, exit=True, file=file)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
    _WARM.set()
    if trace is not None:
        trace.unlink()


def brief_of(row: Row) -> Brief:
    return Brief(row["digest"], row["status"], row["reason"], row.get("seconds") or 0.0)
