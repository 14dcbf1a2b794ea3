"""Where workers come from, and points to workers: batches by what points cost, and nothing lost when workers are."""

import asyncio
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import ceil
from statistics import median
from typing import TYPE_CHECKING, Any

from stagescope.core.errors import InputError, StagescopeError
from stagescope.readings.registry import study as study_named
from stagescope.sweeping.plan import Point, versions
from stagescope.sweeping.progress import SweepProgress
from stagescope.sweeping.rows import RowWriter
from stagescope.sweeping.worker import DEATHS, Brief, Task, brief_of, row_at, work

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_SECONDS = 6
_LOCAL_SETTINGS = {
    "distributed.scheduler.allowed-failures": 1_000_000,  # deaths are counted per point, by the attempts on disk
    "distributed.scheduler.worker-ttl": None,  # a kernel may hold the interpreter, and so the heartbeat, for hours
    "distributed.deploy.lost-worker-timeout": "1000h",  # on a busy machine a restart takes long; `mend` sees the lost ones
    "distributed.worker.profile.enabled": False,  # it would stop the kernels a hundred times a second to look at the stack
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}
_ONE_THREAD = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}


class Pool:
    """A Dask client and how many workers stand behind it."""

    def __init__(self, client: "Client", size: int | None = None, cluster: Any = None) -> None:
        self.client, self._wanted, self._cluster = client, size, cluster
        self._gone: dict[Any, float] = {}

    def workers(self) -> int:
        """Workers that are there now."""
        return len(self.client.scheduler_info(n_workers=-1)["workers"])

    def mend(self) -> None:
        """Replace local workers that are not restarted: a nanny whose first process was killed at its start gives up."""
        if self._cluster is None:
            return
        for name, nanny in list(self._cluster.workers.items()):
            now = time.monotonic()
            if nanny.pid is not None:
                self._gone.pop(name, None)
            elif now - self._gone.setdefault(name, now) > PATIENCE_SECONDS:  # it is not being started again
                del self._gone[name], self._cluster.workers[name]
                self._cluster.loop.add_callback(nanny.close)
                self._cluster.scale(self._wanted)

    def stop(self) -> None:
        """End local workers at once: what they compute is of no use any more, and they have nothing to put in order."""
        for nanny in list(self._cluster.workers.values()) if self._cluster is not None else ():
            if nanny.pid is not None:
                nanny.close_gracefully()  # or it would start another
                try:
                    os.kill(nanny.pid, 9)
                except ProcessLookupError:
                    continue


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _quiet() -> None:
    """Silence Dask's log messages on lost workers and schedulers; we report these ourselves."""
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


@contextmanager
def local_pool(workers: int) -> Iterator[Pool]:
    """One single-threaded process for each worker on this machine; killed ones are started again."""
    from dask import config
    from distributed import Client, LocalCluster

    _quiet()
    environment = {name: value for name, value in _ONE_THREAD.items() if name not in os.environ}
    with config.set(_LOCAL_SETTINGS):
        try:
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL + 1,
                env=environment,
                preload=["stagescope.sweeping.preload"],
            )
        except (RuntimeError, OSError) as error:
            raise StagescopeError(
                f"the workers could not start: {error}; in a script, call sweep under `if __name__ == '__main__':`"
            ) from None
        try:
            with Client(cluster, timeout=CONNECT_SECONDS, set_as_default=False) as client:
                pool = Pool(client, workers, cluster)
                try:
                    yield pool
                finally:
                    pool.stop()
        finally:
            cluster.close(timeout=10)


@contextmanager
def remote_pool(address: str) -> Iterator[Pool]:
    """The workers of a running scheduler, once it answers and they run the same code as this client."""
    from distributed import Client

    _quiet()
    try:
        with ThreadPoolExecutor(1) as thread:  # a notebook has a loop of its own in this one
            thread.submit(asyncio.run, _knock(address)).result()
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except ValueError as error:
        raise InputError(f"scheduler {address!r} is no address: {error}; it looks like tcp://HOST:8786") from None
    except OSError:
        raise StagescopeError(
            f"no scheduler answers at {address} within {CONNECT_SECONDS} s; start one with `dask scheduler`, or check the address"
        ) from None
    except TypeError as error:  # no certificate for tls://
        raise StagescopeError(f"the scheduler {address} cannot be used: {error}") from None
    except MemoryError:  # its first words, read as the length of a message
        raise StagescopeError(f"what answers at {address} is no Dask scheduler; check the address") from None
    with client:
        _same_versions(client)
        yield Pool(client)


async def _knock(address: str) -> None:
    """Connect once, in limited time: a client would wait for ever for a server that accepts and never answers."""
    from distributed import Security
    from distributed.comm.core import connect

    security = Security().get_connection_args("client")
    comm = await asyncio.wait_for(connect(address, timeout=CONNECT_SECONDS, **security), CONNECT_SECONDS)
    comm.abort()


def _same_versions(client: "Client") -> None:
    """Refuse a cluster whose scheduler or workers run other versions than this client."""
    local = versions()
    packages: Any = client.get_versions(packages=["stagescope"])
    _compare("the scheduler", packages["scheduler"], {name: local[name] for name in ("python", "stagescope", "dask")})
    for address, worker in packages["workers"].items():
        _compare(f"worker {address}", worker, local)


def _compare(who: str, theirs: Any, local: dict[str, str]) -> None:
    packages = {**theirs["packages"], "python": ".".join(str(theirs["packages"]["python"]).split(".")[:2])}
    for name, expected in local.items():
        installed = packages.get(name) or "missing"
        if installed != expected:
            raise StagescopeError(f"{who} has {name} {installed}, this client {expected}; install the same version on both")


TASK_SECONDS = 1.5
"""Work of one task: long against what a task costs to send, short against what is lost with a worker."""
QUEUED, SLOW_SECONDS = 2, 0.2
"""Tasks for each worker, so that none waits for the client; where a point is slow against that, one: at the end none shall wait
behind it while another worker is idle."""
LOOK_SECONDS, PATIENCE_SECONDS = 0.5, 10.0
"""Between two looks at tasks and workers; without a worker, or a worker without a process, until something is done about it."""


@dataclass(eq=False)
class Dispatch:
    """Sends points until each has its row; `ended` is called with every point that is done."""

    pool: Pool
    task: Task
    writer: RowWriter
    progress: SweepProgress

    def __post_init__(self) -> None:
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
                per_worker = 1 if self._costs and median(self._costs) >= SLOW_SECONDS else QUEUED
                while (self._queue or self._alone) and len(self._flying) < per_worker * max(1, self._workers):
                    alone = (self._alone.popleft(),) if self._alone else None
                    batch = alone or tuple(self._queue.popleft() for _ in range(self._size()))
                    self._flying[self.pool.client.submit(work, replace(self.task, points=batch), pure=False)] = batch
                self.progress.tick(min(len(self._flying), self._workers), self._workers)
                for future in self._ended():
                    for point, brief in self._receive(future):
                        ended(point, brief)
            self.progress.tick(0, self._workers)
        except OSError as error:  # what Dask raises of connections; our own files raise StoreError
            raise self._gone() from error
        finally:
            with suppress(OSError):
                self.pool.client.cancel(list(self._flying), force=True)

    def _look(self) -> None:
        """Count the workers now and then; say so if there are none."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        self.pool.mend()
        self._workers = self.pool.workers()
        if not self._workers and not self._warned and now - self._began > PATIENCE_SECONDS:
            self._warned = True
            self.progress.note("no worker has joined yet; waiting for one")

    def _size(self) -> int:
        """As many points as fill a task, by what the last ones cost; fewer near the end, so that all workers end together."""
        remaining = len(self._queue)
        if not self._costs:
            return min(1, remaining)
        fair = ceil(remaining / (QUEUED * max(1, self._workers)))
        return max(1, min(remaining, fair, 500, int(TASK_SECONDS / max(median(self._costs), 1e-6))))

    def _ended(self) -> list["Future"]:
        from distributed import wait

        try:
            with self.pool.client.as_current():
                ended: Any = wait(list(self._flying), timeout=LOOK_SECONDS, return_when="FIRST_COMPLETED")
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
            outcome = future.result()
            self.writer.commit(outcome.rows)
            spent = sum(brief.seconds for brief in outcome.briefs)
            self._costs.append(spent / len(points))
            return list(zip(points, outcome.briefs, strict=True))
        if future.status == "error":
            from distributed import KilledWorker

            # A task whose workers died goes out again, its points one by one; any other error is ours, not a point's.
            error: Any = future.exception()
            if not isinstance(error, KilledWorker):
                problem = str(error) if isinstance(error, StagescopeError) else f"{type(error).__name__}: {error}"
                raise StagescopeError(f"a worker cannot compute this sweep: {problem}")
            if len(points) == 1:
                self._deaths[points[0].digest] += error.allowed_failures + 1
            self._alone.extend(point for point in points if self._deaths[point.digest] < DEATHS)
            # Rows for points that killed their workers again and again, where the workers themselves could not write them.
            lost = [point for point in points if self._deaths[point.digest] >= DEATHS]
            for point in lost:
                limit = f", or it takes longer than {self.task.timeout:g} s" if self.task.timeout is not None else ""
                reason = f"its worker died {self._deaths[point.digest]} times while computing it (out of memory?{limit})"
                facts = {"status": "failed", "reason": reason, "seconds": None, "started": time.time()}
                self.writer.commit([row_at(study_named(self.task.plan.study), point, facts)])
            return [(point, brief_of(self.writer.rows.current[point.digest])) for point in lost]
        raise self._gone()

    def _gone(self) -> StagescopeError:
        return StagescopeError("the scheduler is gone, and with it the points under way; what was committed is safe")
