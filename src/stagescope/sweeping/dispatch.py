"""Points to workers: batches sized by what points cost, a short queue, and nothing lost when workers are."""

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from math import ceil
from statistics import median
from typing import TYPE_CHECKING, Any

from stagescope.errors import StagescopeError
from stagescope.papers.registry import study as study_named
from stagescope.sweeping.cluster import Pool
from stagescope.sweeping.measure import row_at
from stagescope.sweeping.points import Point
from stagescope.sweeping.progress import SweepProgress
from stagescope.sweeping.rows import RowWriter
from stagescope.sweeping.worker import DEATHS, Brief, Done, Task, brief_of, work

if TYPE_CHECKING:
    from distributed import Future

TASK_SECONDS = 1.5
"""Work of one task: long against what a task costs to send, short against what is lost with a worker."""
QUEUED, SLOW_SECONDS = 2, 0.2
"""Tasks for each worker, so that none waits for the client; where a point is slow against that, one: at the end none shall wait
behind it while another worker is idle."""
LOOK_SECONDS, WAIT_SECONDS, PATIENCE_SECONDS = 1.0, 0.5, 10.0


class Dispatch:
    """Sends points until each has its row; `ended` is called with every point that is done."""

    def __init__(self, pool: Pool, task: Task, writer: RowWriter, progress: SweepProgress) -> None:
        self._pool, self._task, self._writer, self._progress = pool, task, writer, progress
        self._costs: deque[float] = deque(maxlen=7)
        self._deaths: Counter[str] = Counter()
        self._queue: deque[Point] = deque()
        self._alone: deque[Point] = deque()
        self._flying: dict[Future, tuple[Point, ...]] = {}
        self._workers, self._looked, self._began, self._warned = 0, 0.0, time.monotonic(), False

    def run(self, points: Sequence[Point], ended: Callable[[Point, Brief], None]) -> None:
        self._queue.extend(points)
        try:
            while self._queue or self._alone or self._flying:
                self._look()
                while (self._queue or self._alone) and len(self._flying) < self._each() * max(1, self._workers):
                    self._send()
                self._progress.tick(min(len(self._flying), self._workers), self._workers)
                for future in self._ended():
                    for point, brief in self._receive(future):
                        ended(point, brief)
            self._progress.tick(0, self._workers)
        except OSError as error:  # what Dask raises of connections; our own files raise StoreError
            raise self._gone() from error
        finally:
            with suppress(OSError):
                self._pool.client.cancel(list(self._flying), force=True)

    def _look(self) -> None:
        """Count the workers now and then; say so if there are none."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        self._pool.mend()
        self._workers = self._pool.workers()
        if not self._workers and not self._warned and now - self._began > PATIENCE_SECONDS:
            self._warned = True
            self._progress.note("no worker has joined yet; waiting for one")

    def _send(self) -> None:
        points = tuple(self._queue.popleft() for _ in range(self._size())) if not self._alone else (self._alone.popleft(),)
        future = self._pool.client.submit(work, replace(self._task, points=points), pure=False)
        self._flying[future] = points

    def _each(self) -> int:
        return 1 if self._costs and median(self._costs) >= SLOW_SECONDS else QUEUED

    def _size(self) -> int:
        """As many points as fill a task, by what the last ones cost; fewer near the end, so that all workers end together."""
        left = len(self._queue)
        if not self._costs:
            return min(1, left)
        fair = ceil(left / (QUEUED * max(1, self._workers)))
        return max(1, min(left, fair, 500, int(TASK_SECONDS / max(median(self._costs), 1e-6))))

    def _ended(self) -> list["Future"]:
        from distributed import wait

        try:
            with self._pool.client.as_current():
                ended: Any = wait(list(self._flying), timeout=WAIT_SECONDS, return_when="FIRST_COMPLETED")
                return list(ended.done)
        except TimeoutError:
            return []
        except CancelledError:  # those that were lost say so themselves
            return [future for future in self._flying if future.done()]

    def _receive(self, future: "Future") -> list[tuple[Point, Brief]]:
        if future.status in ("lost", "pending"):  # its worker died with the answer: the scheduler has it made again
            return []
        points = self._flying.pop(future)
        if future.status == "finished":
            return self._done(points, future.result())
        if future.status == "error":
            self._failed(points, future.exception())
            return self._given_up(points)
        raise self._gone()

    def _gone(self) -> StagescopeError:
        return StagescopeError("the scheduler is gone, and with it the points under way; what was committed is safe")

    def _done(self, points: tuple[Point, ...], outcome: Done) -> list[tuple[Point, Brief]]:
        self._writer.commit(outcome.rows)
        spent = sum(brief.seconds for brief in outcome.briefs)
        self._costs.append(spent / len(points))
        return list(zip(points, outcome.briefs, strict=True))

    def _failed(self, points: tuple[Point, ...], error: Any) -> None:
        """A task whose workers died goes out again, its points one by one; any other error is ours, not a point's."""
        from distributed import KilledWorker

        if not isinstance(error, KilledWorker):
            problem = str(error) if isinstance(error, StagescopeError) else f"{type(error).__name__}: {error}"
            raise StagescopeError(f"a worker cannot compute this sweep: {problem}")
        if len(points) == 1:
            self._deaths[points[0].digest] += error.allowed_failures + 1
        self._alone.extend(point for point in points if self._deaths[point.digest] < DEATHS)

    def _given_up(self, points: tuple[Point, ...]) -> list[tuple[Point, Brief]]:
        """Rows for points that killed their workers again and again, where the workers themselves could not write them."""
        lost = [point for point in points if self._deaths[point.digest] >= DEATHS]
        for point in lost:
            limit = f", or it takes longer than {self._task.timeout:g} s" if self._task.timeout is not None else ""
            why = f"its worker died {self._deaths[point.digest]} times while computing it (out of memory?{limit})"
            found = {"status": "failed", "reason": why, "seconds": None, "started": time.time()}
            self._writer.commit([row_at(study_named(self._task.plan.study), point, found)])
        return [(point, brief_of(self._writer.rows.current[point.digest])) for point in lost]
